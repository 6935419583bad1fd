"""The uniform datapath."""

from __future__ import annotations

TEXT = r"""
op UIADD3     pure class=udp|64:udp64
UIADD3       090 UABC           ud <75-90>UPu?=UPT <75-90>UPv?=UPT <100+>UPu=UPT <100+>UPv=UPT <- ua-~X ub-~X uc-~X
          UPp?X=!UPT UPq?X=!UPT ; .X@74 ; comm=abc
op UIMAD      pure class=udp
UIMAD        0a4 UIABC          ud <- ua ub uc-~X UPp?X=!UPT
          ; .U32@73=0 .X@74 81-83=7 ; comm=ab
UIMAD.WIDE   0a5 UABC           ud2 UPu?=UPT <- ua ub uc2-~X UPp?X=!UPT
          ; .U32@73=0 .X@74 ; comm=ab
UIMAD.HI     0a6 UABC sm=120+   ud UPu?=UPT <- ua ub uc2-~X UPp?X=!UPT
          ; .U32@73=0 .X@74 ; comm=ab
op ULEA       pure class=udp
ULEA         091 UABC           ud UPu?=UPT <- ua-~X ub-~X uc?HI s:I(u)@75-79 UPp?X=!UPT
          ; .HI@80 .X@74 73=0 ; imm=u
op ULOP3      pure class=udp
ULOP3        092 UABC           UPu?=UPT ud <- ua ub uc lut:I(u)@72-79 UPp=!UPT
          ; .LUT .PAND@80 ; imm=u
op UPLOP3     pure class=udp
UPLOP3       89c -              UPu=UPT UPv=UPT <- UPp UPq UPx lut:I(u)@64-66+72-76 lutv:I(u)@16-23
          ; .LUT ; guard=UP imm=u
op USHF       pure class=udp
USHF         099 UIABC          ud <- ua ub uc
          ; .{L R}@76 .W@75 .{S64 U64 S32 U32}@73-74 .HI@80 ; imm=u
op UPRMT      pure class=udp
UPRMT        096 UABC           ud <- ua ub uc                          ; ; imm=u
op USGXT      pure class=udp
USGXT        09a UAB            ud <- ua ub
          ; .W@75 .U32@73=0 ; imm=u
op UBMSK      pure class=udp
UBMSK        09b UAB            ud <- ua ub
          ; .W@75 ; imm=u
op UISETP     pure class=udp|U64:udp64|S64:udp64
UISETP       08c UAB            UPu UPv <- ua ub UPp UPx?EX=UPT         ; .icmp@76-78 .U32@73=0 .bop@74-75 .EX@72 80=0
UISETP       08c UAB sm=120+    UPu UPv <- ua2 ub2 UPp
          ; .icmp@76-78 .{U64 S64}@73 .bop@74-75 72=0 80=1 68-71=7
op USEL       pure class=udp
USEL         087 UAB            ud <- ua ub UPp                         ; ; imm=u
USEL.64      c87+91 - sm=120+   ud2 <- ua2 ub2 UPp                      ;
USEL.64      487+91 - sm=120+   ud2 <- ua2 i:I(s)@32-64 UPp             ;
op UMOV       pure moves constant class=uldc|64:uldc
UMOV        082 UB              ud <- ub                                ; 80=0 ; imm=u
UMOV.64     082 UB forms=u sm=120+   ud2 <- ub2                      ; 80=1 ; imm=u
UMOV.64     482+91 -  sm=120+   ud2 <- i:I(u)@24-87             ; ; imm=u
op UFLO       pure class=udp
UFLO         0bd UB1            ud UPu?=UPT <- ub~
          ; .U32@73=0 .SH@74 ; imm=u
op UPOPC      pure class=udp
UPOPC        0bf UB1            ud <- ub~                               ; ; imm=u
op UBREV      pure class=udp
UBREV        0be UB1            ud <- ub                                ; ; imm=u
op ULDC       pure read=const constant class=uldc
ULDC        ab9 -  sm=75-90     ud/csize <- k:UK
          ; .csize@73-75 ; imm=u
ULDC        abb+91 - sm=75-90     ud/csize <- k:UKi
          ; .csize@73-75 ; imm=u
op LDCU       pure read=const constant class=ldc
LDCU        7ac+91 - sm=100+   ud/usize <- k:UK
          ; .{U8:1 S8:1 U16:1 S16:1 _:1 64:2 128:4 ?}:usize@73-75 ; guard=UP
op R2UR       pure moves convergent class=xu/75-89|r2ur/90+
R2UR         3c2 -  sm=75-89    Pu?=PT ud <- a                          ; 84=0
R2UR         2ca -  sm=90+      Pu?=PT ud <- a                          ; 84=0 <100+>.{_ FILL BROADCAST ?}@86-87
          ; reuse=1
op S2UR       sreg speculatable constant class=sreg
S2UR         9c3 -               ud <- sr:N(sr)@72-79
          ; ; guard=UP
op CS2UR      sreg speculatable varies class=32:udp|udp64
CS2UR        8cb - sm=120+      ud <- sr:N(sr)@72-79                     ; .32 80=0 ; guard=UP
CS2UR        8cb - sm=120+      ud2 <- sr:N(sr)@72-79                    ; 80=1 ; guard=UP
op VOTEU      effect=warp convergent synchronizing agrees class=uldc
VOTEU        886 -              ud?=URZ UPu=UPT <- Pp                   ; .{ALL ANY EQ ?}@72-73
op UFADD      pure class=uflt
UFADD        054 UAY sm=120+     ud <- ua-| ub-|                         ; .FTZ@80 .rnd@78-79 .SAT@77 81=0 ; imm=f32
op UFMUL      pure class=uflt
UFMUL        056 UAB sm=120+     ud <- ua-| ub-|
          ; .{_ FTZ FMZ ?}@80+76 .{? D8 D4 D2 _ M2 M4 M8}@84-86 .rnd@78-79 .SAT@77 ; imm=f32
op UFFMA      pure class=uflt
UFFMA        055 UIABC sm=120+   ud <- ua-| ub-| uc-|                    ; .{_ FTZ FMZ ?}@80+76 .rnd@78-79 .SAT@77 81=0
          ; imm=f32
op UFSETP     pure class=uflt
UFSETP       053 UAB sm=120+     UPu UPv <- ua-| ub-| UPp                ; .fcmp@76-79 .FTZ@80 .bop@74-75 ; imm=f32
op UFSEL      pure class=uflt
UFSEL        051 UAB sm=120+     ud <- ua-| ub-| UPp                     ; .FTZ@80 ; imm=f32
op UFRND      pure class=uflt
UFRND        05d UAB sm=120+     ud <- ub-|
          ; .FTZ@80 75-77=2 84-86=2 .{_ FLOOR CEIL TRUNC}@78-79 ; imm=f32
op UI2F       pure class=uflt
UI2F         05a UAB sm=120+ forms=r ud <- ub<h1>@60-61
          ; .{? F16 _ ? BF16 ? ? ?}@75-77 .{? ? U16 S16 ? ? ? ?}@74+84-85 .rnd@78-79 ; imm=u isa=2
UI2F         05a UAB sm=120+ forms=r ud <- ub<b4>@60-61
          ; .{? F16 _ ? BF16 ? ? ?}@75-77 .{U8 S8 ? ? ? ? ? ?}@74+84-85 .rnd@78-79 ; imm=u isa=2
UI2F         05a UAB sm=120+     ud <- ub
          ; .{? F16 _ ? BF16 ? ? ?}@75-77 .{? ? ? ? U32 _ ? ?}@74+84-85 .rnd@78-79 ; imm=int isa=2
op UF2F       pure class=uflt
UF2F         05b UAB sm=120+     ud <- ub-|
          ; .FTZ@80 .{? F16 ? ? BF16 ? ? ?}@75-77 .F32 84-86=2 .rnd@78-79 ; imm=f32
UF2F         05b UAB sm=120+ forms=r ud <- ub-|
          ; .FTZ@80 .F32 75-77=2 .{? F16 ? ? BF16 ? ? ?}@84-86 78-79=0 ; imm=f32
op UF2I       pure class=uflt
UF2I         05c UAB sm=120+     ud <- ub-|
          ; .FTZ@80 .{U8 S8 U16 S16 U32 _ ? ?}@72+75-76 84-86=2 .{_ FLOOR CEIL TRUNC}@78-79 .NTZ@77 ; imm=f32
UF2I         05c UAB sm=120+ forms=r ud <- ub-|
          ; .FTZ@80 .{U8 S8 U16 S16 U32 _ ? ?}@72+75-76 .{? F16 ? ? BF16 ? ? ?}@84-86 .{_ FLOOR CEIL TRUNC}@78-79
          .NTZ@77 ; imm=f32
op UI2I       pure class=udp
UI2I         04e UAB sm=120+     ud <- ub                                ; .{U8 S8 U16 S16}@76-77 .S32 .SAT ; imm=s
op UI2IP      pure class=udp
UI2IP        04f UABC sm=120+   ud <- ua ub uc<h1>@72
          ; .{U8 S8 U16 S16 ? ? ? ?}@76-78 .S32 .SAT@74 73=0 75=0
UI2IP        04f UABC sm=120+   ud <- ua ub uc<sh2>@72-73               ; .{? ? ? ? U2 S2 ? ?}@76-78 .S32 .SAT@74 75=0
UI2IP        04f UABC sm=120+   ud <- ua ub uc<sh4>@72-73               ; .{? ? ? ? ? ? U4 S4}@76-78 .S32 .SAT@74 75=0
op UI2FP      pure class=uflt
UI2FP        05e UAB sm=120+     ud <- ub
          ; .{? ? F32 ? ? ? ? ?}@75-77 .{? ? ? ? U32 S32 ? ?}@74+84-85 .{_ ? ? RZ}@78-79 ; imm=int
UIADD3.64    097 UABC sm=90+      ud2 <90>UPu?=UPT <90>UPv?=UPT <100+>UPu=UPT <100+>UPv=UPT <- ua2- ub2- uc2-
          ; 74=0 87-90=15 77-80=15 ; comm=abc
UIADD3.64    097 UABC sm=90+      ud2 <90>UPu?=UPT <90>UPv?=UPT <100+>UPu=UPT <100+>UPv=UPT <- ua2-~X ub2-~X uc2-~X
          UPp=!UPT UPq=!UPT ; .X 74=1 ; comm=abc
op UP2UR      pure predmask class=udp
UP2UR        883 -  sm=75+      ud <- p:N(UPR) ua i:I(u)@32-63 ; .{_ B1 B2 B3}@76-77 91=1
op UR2UP      pure predmask class=udp
UR2UP        884 -  sm=75+      p:N(UPR) <- ua<b4>@76-77 i:I(u)@32-63?=255 ; 91=1
op UCGABAR_ARV effect=sync waits noduplicate class=gate
UCGABAR_ARV  9c7+91 - sm=90+    <-                                      ;
op UCGABAR_WAIT effect=sync waits noduplicate class=gate
UCGABAR_WAIT dc7+91 - sm=90+    <-                                      ;
op ARRIVES    read=shared write=shared fence class=arrives
ARRIVES.LDGSTSBAR.64 9b0+91 L forms=u sm=80-90 <- m:M(R24,O40-63,U64)
          ; 73-75=5 <80-89>70-71=0 <90>.{_ ARVCNT TRANSCNT ?}@70-71
ARRIVES.LDGSTSBAR.64 9b0+91 L forms=u sm=100+ <- m:M(R24,O40-63,U64)
          ; 73-75=5 .{<100-103>_ <107>? <110+>_ ARVCNT TRANSCNT ?}@76-77
op UGETNEXTWORKID write=shared protocol class=bulk
UGETNEXTWORKID 3ca+91 - sm=100+ <- m:MU(24) n:MUN(24)                   ; .{SELFCAST BROADCAST}@72
op UVIMNMX    pure class=udp
UVIMNMX      04a UAB sm=120+    ud <- ua ub UPp
          ; .{U32 S32 U16x2 S16x2 U8x4 S8x4 ? ?}@72-74 .RELU@76 81-86=63
op UIMNMX     pure class=udp
UIMNMX       085 UAB sm=120+    UPu=UPT UPv=UPT ud2 <- ua2 ub2 UPp UPq=!UPT ; .{U64 S64}@73 74=1
ULEA.HI.SX32 091 UABC           ud UPu?=UPT <- ua-~X ub-~X s:I(u)@75-79 UPp?X=!UPT
          ; 80=1 73=1 74=0 <75-90>64-71=63 <100+>64-71=255 ; imm=u
ULEA.HI.X.SX32 091 UABC         ud UPu?=UPT <- ua-~X ub-~X s:I(u)@75-79 UPp=!UPT
          ; 80=1 73=1 74=1 <75-90>64-71=63 <100+>64-71=255 ; imm=u
R2UR.OR      3c2 -  sm=75-89    Pu=PT ud <- a                           ; 84=1
R2UR.OR      2ca -  sm=90+      Pu=PT ud <- a                           ; 84=1 <100+>.{_ FILL BROADCAST ?}@86-87
          ; reuse=1
UPLOP3.LUT  09d UAB forms=r           UPu=UPT UPv=UPT <- UPp ub<=SIGN> UPx lut:I(u)@72-79 lutv:I(u)@16-23 ;
          ; imm=u
UPLOP3.LUT  09e UABC forms=rr          UPu=UPT UPv=UPT <- UPp ub<=SIGN> uc<=SIGN> lut:I(u)@72-79 lutv:I(u)@16-23 ;
          ; imm=u
UPLOP3.LUT  09f UABC forms=rr          UPu=UPT UPv=UPT <- ua<=SIGN> ub<=SIGN> uc<=SIGN> lut:I(u)@72-79 lutv:I(u)@16-23 ;
          ; imm=u
"""
