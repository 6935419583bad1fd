"""Conversions."""

from __future__ import annotations

TEXT = r"""
def f2fr     = .{_ ? RP RZ ? ? ? ?}@79-81
enum f2fs    = F32 F16 E5M2 E4M3 ? ? E2M3 E3M2 ? BF16 ? E8 ? ? ? ?
enum f2fd    = F16 BF16 ? E2M1 ? TF32 E2M3 E3M2 E5M2 E4M3 ? ? E8 ? ? ?
def f2fpm    = .SATFINITE@77 .RELU@75
enum lowhigh = H0 H1 ? ?
enum f2fp    = F16 BF16 ? TF32 E5M2 E4M3 ? ?
enum isrc   = U8:1 S8:1 U16:1 S16:1 U32:1 _:1 U64:2 S64:2
enum fsize  = ? F16:1 _:1 F64:2
op F2F        pure class=xu
F2F         104 AB             d <- b-|
          ; .FTZ@80 .{? F16 ? ? <75>? <80+>BF16 ? ? ?}@75-77 .F32 84-86=2 .rnd@78-79 ; imm=f32 reuse=0
F2F         104 AB             d <- b-|<h1>@60-61
          ; .FTZ@80 .F32 75-77=2 .{? F16 ? ? <75-89>? <90+>BF16 ? ? ?}@84-86 .rnd@78-79 ; imm=src inbars=1 reuse=0
F2F         110 AB             d2 <- b-|<h1>@60-61
          ; .FTZ@80 .F64 75-77=3 .{? F16 ? ? <75-89>? <90+>BF16 ? ? ?}@84-86 .rnd@78-79 ; imm=src inbars=1 reuse=0
F2F         110 AB             d2 <- b-|                   ; .FTZ@80 .F64 75-77=3 .F32 84-86=2 .rnd@78-79
          ; imm=src reuse=0
F2F         110 AB             d/dt <- b2-|
          ; .FTZ@80 .{? F16:1 F32:1 ? <75-89>? <90+>BF16:1 ? ? ?}:dt@75-77 .F64 84-86=3 .rnd@78-79 ; imm=f64 reuse=0
F2F         104 AB sm=90+            d <- b-|<h1>@60-61          ; .FTZ@80 .F16 75-77=1 .BF16 84-86=4 .rnd@78-79
          ; imm=src inbars=1 reuse=0
F2F         104 AB sm=90+            d <- b-|<h1>@60-61          ; .FTZ@80 .BF16 75-77=4 .F16 84-86=1 .rnd@78-79
          ; imm=src inbars=1 reuse=0
op I2F        pure class=xu
I2F         106 AB             d <- b
          ; .{? F16 _ ? <75-89>? <90+>BF16 ? ? ?}@75-77 .{? ? ? ? U32 _ ? ?}@74+84-85 .rnd@78-79 ; imm=int reuse=0
I2F         106 AB forms=r,k,u,x d <- b<b4>@60-61
          ; .{? F16 _ ? <75-89>? <90+>BF16 ? ? ?}@75-77 .{U8 S8 ? ? ? ? ? ?}@74+84-85 .rnd@78-79 ; imm=int reuse=0
I2F         106 AB forms=r,k,u,x d <- b<h1>@60-61
          ; .{? F16 _ ? <75-89>? <90+>BF16 ? ? ?}@75-77 .{? ? U16 S16 ? ? ? ?}@74+84-85 .rnd@78-79 ; imm=int reuse=0
I2F         112 AB             d2 <- b                     ; .F64 75-77=3 .{? ? ? ? U32 _ ? ?}@74+84-85 .rnd@78-79
          ; imm=int reuse=0
I2F         112 AB forms=r,k,u,x d2 <- b<b4>@60-61       ; .F64 75-77=3 .{U8 S8 ? ? ? ? ? ?}@74+84-85 .rnd@78-79
          ; imm=int reuse=0
I2F         112 AB forms=r,k,u,x d2 <- b<h1>@60-61       ; .F64 75-77=3 .{? ? U16 S16 ? ? ? ?}@74+84-85 .rnd@78-79
          ; imm=int reuse=0
I2F         112 AB             d2 <- b2                    ; .F64 75-77=3 .{? ? ? ? ? ? U64 S64}@74+84-85 .rnd@78-79
          ; imm=int reuse=0
I2F         112 AB             d <- b2
          ; .{? F16 _ ? <75-89>? <90+>BF16 ? ? ?}@75-77 .{? ? ? ? ? ? U64 S64}@74+84-85 .rnd@78-79 ; imm=int reuse=0
op F2I        pure halfgap class=xu
F2I         105 AB             d <- b-|
          ; .FTZ@80 .{U8 S8 U16 S16 U32 _ ? ?}@72+75-76 .{? F16 _ ? <75-89>? <90+>BF16 ? ? ?}@84-86
          .{_ FLOOR CEIL TRUNC}@78-79 .NTZ@77 ; imm=src reuse=0
F2I         105 AB forms=r,u   d <- b-|<=H1>
          ; .FTZ@80 .{U8 S8 U16 S16 U32 _ ? ?}@72+75-76 .{? F16 ? ? <75-89>? <90+>BF16 ? ? ?}@84-86
          .{_ FLOOR CEIL TRUNC}@78-79 .NTZ@77 60-61=1 ; imm=src inbars=1 reuse=0
F2I         111 AB             d/dt <- b-|
          ; .FTZ@80 .{? ? ? ? ? ? U64:2 S64:2}:dt@72+75-76 .{? F16 _ ? <75-89>? <90+>BF16 ? ? ?}@84-86
          .{_ FLOOR CEIL TRUNC}@78-79 .NTZ@77 ; imm=src reuse=0
F2I         111 AB             d/dt <- b2-|
          ; .FTZ@80 .{U8:1 S8:1 U16:1 S16:1 U32:1 _:1 U64:2 S64:2}:dt@72+75-76 .F64 84-86=3 .{_ FLOOR CEIL TRUNC}@78-79
          .NTZ@77 ; imm=f64 reuse=0
F2I         111 AB forms=r,u   d/dt <- b-|<=H1>
          ; .FTZ@80 .{? ? ? ? ? ? U64:2 S64:2}:dt@72+75-76 .{? F16 ? ? <75-89>? <90+>BF16 ? ? ?}@84-86
          .{_ FLOOR CEIL TRUNC}@78-79 .NTZ@77 60-61=1 ; imm=src inbars=1 reuse=0
op FRND       pure halfgap class=xu
FRND        107 AB             d <- b-|<h1>@60-61          ; .FTZ@80 75-77=1 .F16 84-86=1 .{_ FLOOR CEIL TRUNC}@78-79
          ; imm=src inbars=1 reuse=0
FRND        107 AB             d <- b-|                    ; .FTZ@80 75-77=2 84-86=2 .{_ FLOOR CEIL TRUNC}@78-79
          ; imm=f32 reuse=0
FRND        107 AB sm=90+            d <- b-|<h1>@60-61
          ; .FTZ@80 75-77=4 .BF16 84-86=4 .{_ FLOOR CEIL TRUNC}@78-79 ; imm=src inbars=1 reuse=0
FRND        113 AB             d2 <- b2-|                  ; .FTZ@80 .F64 75-77=3 84-86=3 .{_ FLOOR CEIL TRUNC}@78-79
          ; imm=f64 reuse=0
op I2FP       pure class=alu
I2FP        045 AB  sm=86+     d <- b
          ; .{? ? F32 ? ? ? ? ?}@75-77 .{? ? ? ? U32 S32 ? ?}@74+84-85 .{_ ? ? RZ}@78-79 ; imm=int
op F2FP       pure class=alu
F2FP        03e ABC sm=80-88   d <- a b
          ; $f2fpm .BF16@76 .PACK_AB 78=0 .{_ ? ? RZ}@79-80 81=0 64-71=255 ; imm=f32
F2FP        03e ABC sm=80-88   d <- b c<h1>@72-73
          ; $f2fpm .BF16@76 .MERGE_C 78=1 .{_ ? ? RZ}@79-80 81=0 24-31=255 ; imm=f32 cspc=1
F2FP        03e ABC sm=89-90   d <- a b
          ; $f2fpm .{F16 BF16}@76 86-87=0 .F32 73-74=0 .PACK_AB 78=0 89-90=0 .{_ ? ? RZ}@79-80 81=0 64-71=255 ; imm=f32
F2FP        03e ABC sm=89-90   d <- b c<h1>@72
          ; $f2fpm .{F16 BF16}@76 86-87=0 .F32 73-74=0 .MERGE_C 78=1 89-90=0 .{_ ? ? RZ}@79-80 81=0 24-31=255
          ; imm=f32 cspc=1
F2FP        03e ABC sm=89-90   d <- b
          ; .RELU@75 .TF32 76=1 77=0 86-87=1 .F32 73-74=0 .PACK_B 78=1 89-90=1 .{_ ? ? RZ}@79-80 81=0 24-31=255
          64-71=255 ; imm=f32
F2FP        03e ABC sm=89-90   d <- b<h1>@88 ; .RELU@75 .F16 76-77=0 86-87=0 .{? ? E5M2 E4M3}@73-74 .UNPACK_B 78=0
          89-90=1 79-81=0 24-31=255 64-71=255 ; imm=f32 csp=1 <90+>isa=2
F2FP        03e ABC sm=89-90   d <- a b c<h1>@72
          ; $f2fpm .{? ? ? ? E5M2 E4M3 ? ?}@76+86-87 .F32 73-74=0 .PACK_AB_MERGE_C 78=1 89-90=2 79-81=0
          ; imm=f32 cspc=1 <90+>isa=2
F2FP        03e ABC sm=89-90   d <- b c<h1>@72
          ; $f2fpm .{? ? ? ? E5M2 E4M3 ? ?}@76+86-87 .F16 73-74=1 .UNPACK_B_MERGE_C 78=0 89-90=2 79-81=0 24-31=255
          ; imm=f32 cspc=1 <90+>isa=2
F2FP        03e ABC sm=100+    d <- a b
          ; $f2fpm .{F16 BF16}@76 85-87=0 .F32 73-74=0 82-83=0 .PACK_AB 78=0 89-90=0 .{_ ? ? RZ ? ? ? ?}@79-81 64-71=255
          ; imm=f32
F2FP        03e ABC sm=100-107    d <- a b c
          ; $f2fpm .{F16 BF16}@76 85-87=0 .F32 73-74=0 82-83=0 .PACK_AB 78=0 89-90=0 .RS 79-81=4 ; imm=f32
F2FP        03e ABC sm=100+    d <- b c<h1>@72
          ; $f2fpm .{F16 BF16}@76 85-87=0 .F32 73-74=0 82-83=0 .MERGE_C 78=1 89-90=0 .{_ ? ? RZ ? ? ? ?}@79-81 24-31=255
          ; imm=f32 cspc=1
F2FP        03e ABC sm=100+    d <- b
          ; $f2fpm .TF32 76=1 85-87=2 .F32 73-74=0 82-83=0 .PACK_B 78=1 89-90=1 .{_ ? ? RZ ? ? ? ?}@79-81 24-31=255
          64-71=255 ; imm=f32
F2FP        03e ABC sm=100+    d <- b<h1>@88 ; .RELU@75 .F16 76=0 85-87=0 77=0
          .{? ? E5M2 E4M3 ? ? E2M3 E3M2 ? ? ? ? <100-103>? <107>UE5M3 <110+>? ? ? ?}@73-74+82-83
          .UNPACK_B 78=0 89-90=1 79-81=0 24-31=255 64-71=255
          ; imm=f32 csp=1 <90+>isa=2
F2FP        03e ABC sm=100+    d <- b<h1>@88 ; .BF16 76=1 75=0 85-87=0 77=0 .E8 73-74=3 82-83=2 .UNPACK_B 78=0 89-90=1
          79-81=0 24-31=255 64-71=255 ; imm=f32 csp=1 <90+>isa=2
F2FP        03e ABC sm=100+    d <- a b c<h1>@72
          ; .SATFINITE@77 75=0 .E8 76=0 85-87=6 .F32 73-74=0 82-83=0 .PACK_AB_MERGE_C 78=1 89-90=2
          .{? ? RP RZ ? ? ? ?}@79-81 ; imm=f32 cspc=1 <90+>isa=2
F2FP        03e ABC sm=100-103,110+    d <- b c<h1>@72
          ; $f2fpm .{? ? ? ? ? ? E2M3 E3M2 E5M2 E4M3 ? ? ? ? ? ?}@76+85-87 .{F16 ? BF16 ?}@82-83 73-74=1
          .UNPACK_B_MERGE_C 78=0 89-90=2 79-81=0 24-31=255 ; imm=f32 cspc=1 <90+>isa=2
F2FP        03e 3ABC sm=100+   d <- b<h1>@88 c<lowhigh>@24
          ; .SATFINITE@77 .RELU@75 .BF16 76=1 85-87=0
          .{? ? E5M2 E4M3 ? ? E2M3 E3M2 ? ? S2_6 ? <100-103>? <107>UE5M3 <110+>? ? ? ?}@73-74+82-83
          .UNPACK_B 72=0 78=0 89-90=1 79-81=0 ; imm=f32 isa=2
F2FP        03e 3ABC sm=100+   d <- b<b4>@72+88 c<lowhigh>@24
          ; .SATFINITE@77 .RELU@75 .BF16 76=1 85-87=0 .E2M1 73-74=1 82-83=1 .UNPACK_B 78=0 89-90=1 79-81=0
          ; imm=f32 isa=2
F2FP        03e ABC sm=100+    d <- a b c
          ; .SATFINITE@77=0 .RELU@75 .S2_6 76=1 85-87=5 .F32 72-74=0 82-83=0 .PACK_AB_MERGE_C 78=1 89-90=2 79-81=0
          ; imm=f32 isa=2
F2FP        03e ABC sm=100+    d <- b c
          ; .SATFINITE@77=0 .RELU@75 .S2_6 76=1 85-87=5 .BF16 72=0 73-74=1 82-83=2 .UNPACK_B_MERGE_C 78=0 89-90=2
          79-81=0 ; imm=f32 isa=2
F2FP        03e ABC sm=100+    d <- b c<h1>@72
          ; .SATFINITE@77 75=0 .E8 76=0 85-87=6 .BF16 73-74=1 82-83=2 .UNPACK_B_MERGE_C 78=0 89-90=2
          .{? ? RP RZ ? ? ? ?}@79-81 24-31=255 ; imm=f32 cspc=1 <90+>isa=2
# ---- sm_107: to zero, away from -0 (.PZO), divided by a power of two, and unsigned floats of five and three bits
def f2fpn    = .{? ? ? ? ? ? E2M3 E3M2 E5M2 E4M3 ? ? ? UE5M3 ? ?}@76+85-87
F2FP        03e ABC sm=107 d <- a b c<h1>@72
          ; $f2fpm $f2fpn .F32 73-74=0 82-83=0 .PACK_AB_MERGE_C 78=1 89-90=2 .SCALE_BY_C@84
          .{_ ? RP RZ ? ? ? ?}@79-81 ; imm=f32 cspc=1 isa=2
F2FP        03e ABC sm=107 d <- b c<h1>@72
          ; $f2fpm $f2fpn .{F16 ? BF16 ?}@82-83 73-74=1 .UNPACK_B_MERGE_C 78=0 89-90=2 .SCALE_BY_C@84
          .{_ ? RP RZ ? ? ? ?}@79-81 24-31=255 ; imm=f32 cspc=1 isa=2
F2FP        03e ABC sm=107 d <- a b c
          ; .SATFINITE 77=1 .RELU@75 .E2M1 72=0 76=1 85-87=1 .F32 73-74=0 82-83=0 .PACK_AB_MERGE_C 78=1 89-90=2
          .SCALE_BY_C@84 .{_ ? RP RZ ? ? ? ?}@79-81 ; imm=f32 cspc=1 isa=2
F2FP        03e ABC sm=107 d <- b c
          ; .SATFINITE 77=1 .RELU@75 .E2M1 72=0 76=1 85-87=1 .{F16 ? BF16 ?}@82-83 73-74=1 .UNPACK_B_MERGE_C 78=0
          89-90=2 .SCALE_BY_C@84 .{_ ? RP RZ ? ? ? ?}@79-81 24-31=255 ; imm=f32 cspc=1 isa=2
F2FP        03e ABC sm=107 forms=rr d <- a b c<h1>@72
          ; $f2fpm $f2fpn .F32 73-74=0 82-83=0 .PACK_AB_MERGE_C 78=1 89-90=2 .SCALE_BY_C@84
          .{_ ? RP RZ ? ? ? ?}@79-81 .PZO 63=1 ; isa=2
F2FP        03e ABC sm=107 forms=rr d <- b c<h1>@72
          ; $f2fpm $f2fpn .{F16 ? BF16 ?}@82-83 73-74=1 .UNPACK_B_MERGE_C 78=0 89-90=2 .SCALE_BY_C@84
          .{_ ? RP RZ ? ? ? ?}@79-81 24-31=255 .PZO 63=1 ; isa=2
F2FP        03e ABC sm=107 forms=rr d <- a b c
          ; .SATFINITE 77=1 .RELU@75 .E2M1 72=0 76=1 85-87=1 .F32 73-74=0 82-83=0 .PACK_AB_MERGE_C 78=1 89-90=2
          .SCALE_BY_C@84 .{_ ? RP RZ ? ? ? ?}@79-81 .PZO 63=1 ; isa=2
F2FP        03e ABC sm=107 forms=rr d <- b c
          ; .SATFINITE 77=1 .RELU@75 .E2M1 72=0 76=1 85-87=1 .{F16 ? BF16 ?}@82-83 73-74=1 .UNPACK_B_MERGE_C 78=0
          89-90=2 .SCALE_BY_C@84 .{_ ? RP RZ ? ? ? ?}@79-81 24-31=255 .PZO 63=1 ; isa=2
F2FP        03e ABC sm=107 forms=rr d <- a b
          ; $f2fpm .{F16 BF16}@76 85-87=0 .F32 73-74=0 82-83=0 .PACK_AB 78=0 89-90=0 .{_ ? ? RZ ? ? ? ?}@79-81 .PZO 63=1
          64-71=255 ; isa=2
F2FP        03e ABC sm=107 forms=rr d <- b
          ; $f2fpm .TF32 76=1 85-87=2 .F32 73-74=0 82-83=0 .PACK_B 78=1 89-90=1 .{_ ? ? RZ ? ? ? ?}@79-81 .PZO 63=1
          24-31=255 64-71=255 ; isa=2
op I2I        pure class=alu
I2I         038 AB             d <- b                      ; .{U8 S8 U16 S16}@76-77 .S32 .SAT      ; imm=s
op F2IP       pure class=alu
F2IP        043 ABC sm=86+     d <- a b c
          ; .{U8 S8 ? ?}@76-77 .F32 .{_ ? ? TRUNC}@78-79 .NTZ@74 .RELU@75 ; imm=f32 cspc=1
F2FP        03e ABC sm=100-103,110+    d <- a b c<h1>@72
          ; $f2fpm .{? ? ? ? ? ? E2M3 E3M2 E5M2 E4M3 ? ? ? ? ? ?}@76+85-87 .F32 73-74=0 82-83=0 .PACK_AB_MERGE_C 78=1
          89-90=2 79-81=0 ; imm=f32 cspc=1 <90+>isa=2
F2FP        03e ABC sm=100-103,110+    d <- a b c
          ; .SATFINITE 77=1 .RELU@75 .E2M1 76=1 85-87=1 .F32 73-74=0 82-83=0 .PACK_AB_MERGE_C 78=1 89-90=2 79-81=0
          ; imm=f32 cspc=1 <90+>isa=2
F2FP        03e ABC sm=100-107 d <- a b c
          ; .SATFINITE 77=1 .RELU@75 .{? ? ? E2M1 ? ? E2M3 E3M2 E5M2 E4M3 ? ? ? ? ? ?}@76+85-87 .F32 72-74=0 82-83=0
          .PACK_AB_MERGE_C 78=1 89-90=2 .RS 79-81=4 ; imm=f32 <90+>isa=2
F2FP        03e ABC sm=100+    d <- b<b4>@72+88 ; .RELU@75 .F16 76=0 85-87=0 77=0 .E2M1 73-74=1 82-83=1 .UNPACK_B 78=0
          89-90=1 79-81=0 24-31=255 64-71=255 ; imm=f32 csp=1 <90+>isa=2
F2FP        03e ABC sm=100-103,110+    d <- b c
          ; .SATFINITE 77=1 .RELU@75 .E2M1 76=1 85-87=1 .{F16 ? BF16 ?}@82-83 73-74=1 .UNPACK_B_MERGE_C 78=0 89-90=2
          79-81=0 24-31=255 ; imm=f32 cspc=1 <90+>isa=2
"""
