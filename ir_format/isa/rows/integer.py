"""Integer, logic, move and predicate arithmetic."""

from __future__ import annotations

TEXT = r"""
enum sh2     = ? ? ? 28
enum sh4     = ? ? 24 ?
# ---- add, multiply, shift-add
op IADD3      pure adds remat=1 class=alu
IADD3       010 ABc            d <75-90>Pu?=PT <75-90>Pv?=PT <100+>Pu=PT <100+>Pv=PT <- a-~X b-~X c-~X Pp?X=!PT Pq?X=!PT
          ; .X@74 ; comm=abc
op IADD       pure adds class=alu|64:iadd64
IADD        035 AB  sm=107,120+    d Pu?=PT  <- a-~X b-~X Pp?X=!PT   ; .X@74 73=0          ; comm=ab
IADD.64     035 AB  sm=107,120+    d2 Pu?=PT <- a2-~X b2-~X Pp?X=!PT ; .X@74 73=1          ; comm=ab
op VIADD      pure adds class=fma
VIADD       036 AB  sm=90-103  d  <- a b-                  ; .16x2@73
          ; imm=u
VIADD       036 AB  sm=107,120+    d  <- a- b-
          ; .{32 16x2 S32 S16x2 U8x4 S8x4 ? ?}@73-75 .ISAT@80 ; comm=ab imm=u isa=2:ISAT,U8x4,S8x4
op IMAD       pure remat=1 class=fma|WIDE:imadw|HI:imadhi
IMAD        024 ABC            d <- a b c-~X Pp?X=!PT
          ; .MOV?(mov) .SHL?(shl) .IADD?(iadd) .U32@73=0 .X@74 81-83=7 ; comm=ab
IMAD.WIDE   025 ABC forms=rr,rk,ir,kr,ur,ru,rx,xr d2 Pu?=PT <- a b c2-~X Pp?X=!PT
          ; .U32@73=0 .X@74 ; comm=ab
IMAD.HI     027 ABC forms=rr,rk,ir,kr,ur,ru,rx,xr d Pu?=PT <- a b c2-~X Pp?X=!PT
          ; .U32@73=0 .X@74 ; comm=ab
op LEA        pure remat=1 class=alu
LEA         011 ABc            d Pu?=PT <- a-~X b-~X c?HI s:I(u)@75-79 Pp?X=!PT ; .HI@80 .X@74 73=0          ; imm=u
LEA.HI.SX32 011 ABC            d Pu?=PT <- a-~X b-~X s:I(u)@75-79 Pp?X=!PT
          ; 80=1 73=1 74=0 64-71=255 ; imm=u
LEA.HI.X.SX32 011 ABC          d Pu?=PT <- a-~X b-~X s:I(u)@75-79 Pp=!PT
          ; 80=1 73=1 74=1 64-71=255 ; imm=u
# ---- logic and bits
op LOP3       pure remat=1 class=alu
LOP3        012 ABc            Pu?=PT d <- a b c lut:I(u)@72-79 Pp=!PT ; .LUT .PAND@80
          ; imm=u
op PLOP3      pure class=dual
PLOP3       81c -              Pu=PT Pv=PT <- Pp Pq Px lut:I(u)@64-66+72-76 lutv:I(u)@16-23 ; .LUT 67=0
PLOP3       81c -              Pu=PT Pv=PT <- Pp Pq UPx lut:I(u)@64-66+72-76 lutv:I(u)@16-23 ; .LUT 67=1
op SHF        pure remat=1 class=alu
SHF         019 ABC            d <- a b c                  ; .{L R}@76 .W@75 .{S64 U64 S32 U32}@73-74 .HI@80
          ; imm=u
op PRMT       pure remat=1 class=alu
PRMT        016 ABC            d <- a b c
          ; .{_ F4E B4E RC8 ECL ECR RC16 ?}@72-74 ; imm=u
op SGXT       pure class=alu
SGXT        01a AB             d <- a b
          ; .W@75 .U32@73=0 ; imm=u
op BMSK       pure class=alu
BMSK        01b AB             d <- a b
          ; .W@75 ; imm=u
op IABS       pure class=alu
IABS        013 AB             d <- b                      ;
op POPC       pure class=xu
POPC        109 AB             d <- b~                     ; ; imm=u reuse=0
op FLO        pure class=xu
FLO         100 AB             d Pu?=PT <- b~
          ; .U32@73=0 .SH@74 ; imm=u reuse=0
op BREV       pure class=xu
BREV        101 AB             d <- b                      ; ; imm=u reuse=0
# ---- move and select
op MOV        pure moves constant remat=1 class=dual|64:alu64
MOV         002 AB             d <- b mask:I(u)@72-75?=15  ; 80=0 ; imm=u
MOV.64      002 AB forms=r,u sm=107,120+  d2 <- b2             ; 80=1 72-75=15 ; imm=u
MOV.64      402 -   sm=107,120+    d2 <- i:I(u)@24-87          ;
op SEL        pure class=dual|64:alu64
SEL         007 AB             d <- a b Pp                 ; ; imm=u
SEL.64      007 S64 forms=r,u sm=107,120+  d2 <- a2 b2 Pp              ;
SEL.64      407 -   sm=107,120+    d2 <- a2 i:I(s)@32-64 Pp    ; ; reuse=a
# ---- compare, minimum
op ISETP      pure class=dual|U64:setp64|S64:setp64
ISETP       00c AB  sm=75-103,110  Pu Pv <- a b Pp <75>Px?=PT <80+>Px?EX=PT    ; .icmp@76-78 .U32@73=0 .bop@74-75 .EX@72
ISETP       00c AB  sm=107,120+    Pu Pv <- a b Pp Px?EX=PT    ; .icmp@76-78 .U32@73=0 .bop@74-75 .EX@72 80=0
ISETP       00c AB  sm=107,120+    Pu Pv <- a2 b2 Pp           ; .icmp@76-78 .{U64 S64}@73 .bop@74-75 72=0 80=1 68-71=7
op IMNMX      pure class=dual|U64:alu64|S64:alu64
IMNMX       017 AB  sm=75-89   d <- a b Pp
          ; .U32@73=0 ; comm=ab
IMNMX       017 AB  sm=110     d <- a b Pp
          ; .U32@73=0 74=0 81-86=63 77-80=15 ; comm=ab
IMNMX       017 AB  sm=107,120+    Pu=PT Pv=PT d2 <- a2 b2 Pp Pq=!PT
          ; .{U64 S64}@73 74=1 ; comm=ab isa=2
op VISET      pure class=alu
VISET.BM     047 AB  sm=107         d <- a b
          ; .icmp@77-79 .{U32 S32 U16x2 S16x2 U8x4 S8x4 ? ?}@73-75 ; imm=u
op VIMNMX     pure class=dual
VIMNMX      048 AB  sm=90      d <- a b Pp
          ; .{U32 _ U16x2 S16x2}@72-73 .RELU@76 81-86=63 ; comm=ab
VIMNMX      048 AB  sm=107,120+    d <- a b Pp
          ; .{U32 S32 U16x2 S16x2 U8x4 S8x4 ? ?}@72-74 .RELU@76 81-86=63 ; comm=ab isa=2:U8x4,S8x4
VIMNMX      048 AB  sm=100,103 d Pu=PT Pv=PT <- a b Pp     ; .{U32 _ U16x2 S16x2}@72-73 .RELU@76
          ; comm=ab
op VIMNMX3    pure class=alu
VIMNMX3     00f ABc sm=90-103  d <- a b c Pp
          ; .{U32 _ U16x2 S16x2}@72-73 .RELU@76 ; imm=u
op VIADDMNMX  pure class=alu
VIADDMNMX   046 ABC sm=90-103  d <- a b- c Pp              ; .{U32 _ U16x2 S16x2}@72-73 .RELU@76
          ; imm=u
op VABSDIFF   pure class=alu
VABSDIFF    014 ABC sm=75-103,110  d Pu?=PT <- a b c
          ; .U32@73=0 ; imm=u
op VABSDIFF4  pure class=alu
VABSDIFF4    015 ABC sm=75-103,110  d Pu?=PT <- a b c
          ; .U8@73=0 .ACC@75 ; imm=u
# ---- predicates and registers
op P2R        pure predmask varies class=p2r
P2R         003 AB             d <- p:N(PR) a b            ; .b4@76-77 ; <75-89>imm=s <90+>imm=u
op R2P        pure predmask class=r2p
R2P         004 AB forms=r,k,u,x p:N(PR) <- a<b4>@76-77 b    ; ; imm=u
R2P         004 AB forms=i     p:N(PR) <- a<b4>@76-77 b?=255 ; ; imm=u
op IDP        pure class=fma
IDP.4A      026 ABc forms=rr,kr,ur,xr d <- a b c-
          ; .{U8 S8}@73 .{U8 S8}@74 76-77=0 ; imm=u
IDP.2A      026 ABc forms=rr,kr,ur,xr d <- a b c-
          ; .{LO HI}@77 .{U16 S16}@73 .{U8 S8}@74 76=1 ; imm=u
op I2IP       pure class=alu
I2IP        039 ABc sm=75-89   d <- a b c<h1>@72           ; .{U8 S8 U16 S16 ? ? ? ?}@76-78 .S32 .SAT 73-75=0
I2IP        039 ABc sm=75-89   d <- a b c<sh2>@72-73       ; .{? ? ? ? U2 S2 ? ?}@76-78 .S32 .SAT 74-75=0
I2IP        039 ABc sm=75-89   d <- a b c<sh4>@72-73       ; .{? ? ? ? ? ? U4 S4}@76-78 .S32 .SAT 74-75=0
I2IP        039 ABc sm=90+     d <- a b c<h1>@72           ; .{U8 S8 U16 S16 ? ? ? ?}@76-78 .S32 .SAT@74 73=0 75=0
I2IP        039 ABc sm=90+     d <- a b c<sh2>@72-73       ; .{? ? ? ? U2 S2 ? ?}@76-78 .S32 .SAT@74 75=0
I2IP        039 ABc sm=90+     d <- a b c<sh4>@72-73       ; .{? ? ? ? ? ? U4 S4}@76-78 .S32 .SAT@74 75=0
PLOP3.LUT   01f ABc forms=rr,kr,ur,xr Pu=PT Pv=PT <- a<=SIGN> b<=SIGN> c<=SIGN> lut:I(u)@72-79 lutv:I(u)@16-23 ;
          ; imm=u csp=1
PLOP3.LUT   01d AB forms=r,k,u,x Pu=PT Pv=PT <- Pp b<=SIGN> Px lut:I(u)@72-79 lutv:I(u)@16-23 ;
          ; imm=u csp=1
PLOP3.LUT   01e ABc forms=rr,kr,ur,xr Pu=PT Pv=PT <- Pp b<=SIGN> c<=SIGN> lut:I(u)@72-79 lutv:I(u)@16-23 ;
          ; imm=u csp=1
"""
