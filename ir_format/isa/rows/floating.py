"""Single and double precision arithmetic."""

from __future__ import annotations

TEXT = r"""
enum f2s     = F32x2.HI_LO F32x2.LO_HI F32 ?
enum f2      = F32x2.HI_LO F32x2.LO_HI F32 ? F32x2.HI_LO.NP ? ? ?
enum h1      = _ H1 ? ?
def fmods  = .FTZ@80 .rnd@78-79 .SAT@77
op FADD       pure class=fma
FADD        021 AC             d <- a-| b-|
          ; .FTZ@80 .rnd@78-79 .SAT@77 <100+>81-82=0 ; imm=f32 comm=ab
op FMUL       pure class=fma fused=FADD:FFMA
FMUL        020 AB             d <- a-| b-|
          ; .{_ FTZ FMZ ?}@80+76 .{? D8 D4 D2 _ M2 M4 M8}@84-86 .rnd@78-79 .SAT@77 ; imm=f32 comm=ab
op FFMA       pure class=fma
FFMA        023 ABC            d <- a-| b-| c-|
          ; .{_ FTZ FMZ ?}@80+76 .rnd@78-79 .SAT@77 ; imm=f32 comm=ab
op FMNMX      pure class=dual
FMNMX       009 AB             d <- a-| b-| Pp
          ; .FTZ@80 <75>81-82=0 <80+>.NAN@81 <80>82=0 <86+>.XORSIGN@82 ; imm=f32 comm=ab
op FMNMX3     pure class=alu
FMNMX3      076 ABc sm=100-110 d <- a-| b-| c-| Pp
          ; .FTZ@80 .NAN@81 ; imm=f32
op FSEL       pure class=dual
FSEL        008 AB             d <- a-| b-| Pp
          ; .FTZ@80 ; imm=f32
op FSETP      pure class=dual
FSETP       00b AB             Pu Pv <- a-| b-| Pp
          ; .fcmp@76-79 .FTZ@80 .bop@74-75 ; imm=f32
op FSET       pure class=dual
FSET        00a AB             d <- a-| b-| Pp
          ; .BF 71=0 .fcmp@76-79 .FTZ@80 .bop@74-75 ; imm=f32
op FCHK       pure class=xu
FCHK        102 AB             Pu <- a-| b-|               ; ; imm=f32 reuse=0
op MUFU       pure halfgap class=xu
MUFU        108 AB             d <- b-|
          ; .{COS SIN EX2 LG2 RCP RSQ ? ? SQRT TANH ? ? ? ? ? ?}@74-77 72-73=0 80=0 ; imm=f32 reuse=0
MUFU        108 AB             d <- b-|
          ; .{? ? ? ? ? ? RCP64H RSQ64H ? ? ? ? ? ? ? ?}@74-77 72-73=0 80=0 ; imm=f64 reuse=0
MUFU        108 AB sm=75-89    d <- b-<h1>@60-61
          ; .{? ? EX2 ? ? ? ? ? ? TANH ? ? ? ? ? ?}@74-77 .{? ? F16 ?}@72-73 ; imm=src reuse=0
MUFU        108 AB sm=90+      d <- b-<h1>@60-61
          ; .{? ? EX2 ? ? ? ? ? ? TANH ? ? ? ? ? ?}@74-77 .{? F16 BF16 ?}@72-73 ; imm=src reuse=0
MUFU        108 AB sm=103,107      d <- b-|                   ; .EX2 74-77=2 .F16x2 72-73=3 80=0 ; imm=f16x2 reuse=0
MUFU        108 AB sm=103,107      d <- b-|                   ; .EX2 74-77=2 .BF16x2 72-73=0 80=1 ; imm=bf16x2 reuse=0
op DADD       pure class=fp64
DADD        029 AY             d2 <- a2-| b2-|
          ; .rnd@78-79 ; <120+>reuse=0 imm=f64 comm=ab
op DMUL       pure class=fp64 fused=DADD:DFMA
DMUL        028 AB             d2 <- a2-| b2-|
          ; .rnd@78-79 ; <120+>reuse=0 imm=f64 comm=ab
op DFMA       pure class=fp64
DFMA        02b ABC            d2 <- a2-| b2-| c2-|
          ; .rnd@78-79 ; <120+>reuse=0 imm=f64 comm=ab
op CLMAD      pure class=fp64
CLMAD       02c ABC forms=rr,ur,ru sm=80+   d2 <- a2 b2 c2
          ; .{LO HI}@77 ; <120+>reuse=0 imm=u comm=ab
op DSETP      pure class=fp64
DSETP       02a AC             Pu Pv <- a2-| b2-| Pp
          ; .{MIN LT EQ LE GT NE GE NUM NAN LTU EQU LEU GTU NEU GEU MAX}@76-79 .bop@74-75 ; <120+>reuse=0 imm=f64
op FADD2      pure class=fma
FADD2       04b AC  sm=100-107 d2 <- a2-|<f2>@81-83 b2-|<f2>@84-86 ; .FTZ@80 .rnd@78-79 ; imm=f32 immsub=F32 comm=ab
op FMUL2      pure class=fma fused=FADD2:FFMA2
FMUL2       04a AB  sm=100-107 d2 <- a2-|<f2>@81-83 b2-|<f2s>@87-88 ; .{_ FTZ FMZ ?}@80+76 .rnd@78-79
          ; imm=f32 immsub=F32 comm=ab
op FFMA2      pure class=fma
FFMA2       049 ABC sm=100-107 d2 <- a2-|<f2>@81-83 b2-|<f2s>@87-88 c2-|<f2>@84-86 ; .{_ FTZ FMZ ?}@80+76 .rnd@78-79
          ; imm=f32 immsub=F32 comm=ab
op FHADD2     pure class=fma
FHADD2.F32x2 04b 3ABC sm=107 forms=rr d2 <- a-| b2-|<f2>@84-86
          ; .{? F16x2 BF16x2 ?}@87-88 .F32x2 74-77=0 .rnd@78-79 80-83=0 89-90=0
op FHFMA2     pure class=fma
FHFMA2.F32x2 049 3ABC sm=107 forms=rr d2 <- a-| b2-|<f2s>@87-88 c2-|<f2>@84-86
          ; .{F16x2 BF16x2}@89 .F32x2 .F32x2 76-77=0 .rnd@78-79 80-83=0 90=0
# ---- four numbers of eight bits and less
enum q4      = E5M2x4 E4M3x4 ? E3M2x4 E2M3x4 E2M1x4 ? E8x4
enum q4part  = B3210 B3 B2 ? B0 ? N3210 N6420
enum q4whole = B3210 ? ? ? ? ? ? ?
op QADD4      pure class=fma
QADD4       07d AY  sm=100,103 forms=r d <- a-@73|@72<q4part>@74-76 b-|<q4whole>@85-87
          ; .{E5M2x4 E4M3x4 ? ?}@88-89 .q4@77-79 .SATFINITE@90 80-82=0 ; yneg=84
op QMUL4      pure class=fma
QMUL4       07c AB  sm=100,103 forms=r d <- a-@73|@72<q4part>@74-76 b-|<q4part>@59-61
          ; .{E5M2x4 E4M3x4 ? ?}@88-89 .q4@77-79 .q4@80-82 .SATFINITE@90 64-71=0 83-87=0
op QFMA4      pure class=fma
QFMA4       07b ABC sm=100,103 forms=rr d <- a-@73|@72<q4part>@74-76 b-|<q4part>@59-61 c-|<q4whole>@85-87
          ; .{E5M2x4 E4M3x4 ? ?}@88-89 .q4@77-79 .q4@80-82 .SATFINITE@90 ; yneg=84
op FHADD      pure class=fma
FHADD       021 AC  sm=100+ forms=r,u d <- a-|<h1>@83 b-|
          ; .{? _ ? BF16}@81-82 .rnd@78-79 .SAT@77 ; imm=f32 comm=ab
op FHFMA      pure class=fma
FHFMA       023 ABC sm=100+ forms=rr,ur,ru d <- a-|<h1>@83 b-|<h1>@84 c-|
          ; .{? _ ? BF16}@81-82 .rnd@78-79 .SAT@77 ; imm=f32 comm=ab
"""
