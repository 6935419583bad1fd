"""Tensor core operations of a warp. Widths are those of the fragments."""

from __future__ import annotations

TEXT = r"""
def hacc     = .{F16:2 F32:4}:acc@76
def upz      = <86+>UPz:UPI@87?=UPT
enum rowcol  = ROW COL
# reuse hints: the registers that may carry one; ptxas also sets bit 125 (of sparse products on sm_90), which
# nvdisasm does not print
def hre      = <75>reuse=b <80-110>reuse=ab <120+>reuse=b
def hsre     = <80-110>reuse=abe <120+>reuse=b
def ire      = <75>reuse=abc <80-110>reuse=ab <120+>reuse=b
def sparse   = e:R@40 <80-110>h:H@125?=0 sel:I(u)@48-49
# ---- half, bfloat, tf32
op HMMA       effect=warp convergent varies latesrc
          class=mma1|1688:mma1|1684:mma1|884:mma1|SP.16816:mma1/80-90|SP.1688.TF32:mma1/80-90|16816:mma2
          class=16832:mma2|1688.TF32:mma2|SP.16816.TF32:mma2
HMMA.884      236 -  sm=75       d2 <- a2-@72<rowcol>@73 b2-<rowcol>@74 c2
          ; 75-76=0 .F16 78=0 .F16 .{STEP0 STEP1 ? ?}@79-80 .SATFINITE@77 ; reuse=abc
HMMA.884      236 -  sm=75       d2 <- a2-@72<rowcol>@73 b2-<rowcol>@74 c2
          ; 75-76=2 .F32 .{F16 F32}@78 .{STEP0 STEP1 STEP2 STEP3}@79-80 .SATFINITE@77 ; reuse=abc
HMMA.1684     23c -  sm=80+      d4 <- a2-@72 b- c4 $upz
          ; 75=0 78=1 73-74=0 76-77=1 .F32 .TF32 82-83=2 ; $hre
HMMA.1688     23c -              d/acc <- a2-@72 b- c/acc $upz
          ; 75=0 78=0 73-74=0 77=0 $hacc .{_ <80+>BF16 <75>? ? ?}@82-83 ; $hre
HMMA.1688     23c -  sm=80+      d4 <- a4-@72 b2- c4 $upz
          ; 75=0 78=0 73-74=0 76-77=1 .F32 .TF32 82-83=2 ; $hre
HMMA.16816    23c -  sm=80+      d/acc <- a4-@72 b2- c/acc $upz
          ; 75=1 78=0 73-74=0 77=0 $hacc .{_ BF16 ? ?}@82-83 ; $hre
HMMA.SP.1688  23c -  sm=80+      d4 <- a2-@72 b2- c4 $upz $sparse
          ; 73=1 75=0 78=0 74=0 76-77=1 .F32 .TF32 82-83=2 ; $hsre
HMMA.SP.16816 23c -  sm=80+      d4 <- a4-@72 b4- c4 $upz $sparse
          ; 73=1 75=1 78=0 74=0 76-77=1 .F32 .TF32 82-83=2 ; $hsre
HMMA.SP.16816 23c -  sm=80+      d/acc <- a2-@72 b2- c/acc $upz $sparse
          ; 73=1 75=1 78=0 74=0 77=0 $hacc .{_ BF16 ? ?}@82-83 ; $hsre
HMMA.SP.16832 23c -  sm=80+      d/acc <- a4-@72 b4- c/acc $upz $sparse
          ; 73=1 75=1 78=1 74=0 77=0 $hacc .{_ BF16 ? ?}@82-83 ; $hsre
# ---- integers
def ity      = .{U8 S8}@76 77=0 83=0 .{U8 S8}@78 79=0 84=0 .SAT@82 73-74=2
def ity4     = .{U4 S4}@76 77=0 83=1 .{U4 S4}@78 79=0 84=1 .SAT@82 73-74=2
op IMMA       effect=warp convergent varies latesrc
          class=imma1|16832:imma1/103|16864:imma1/103|16816:mma1|16832.S4:mma1/80-89|16832.U4:mma1/80-89
          class=SP.16864.S4:mma1/80-89|SP.16864.U4:mma1/80-89|SP.16832.S8:mma1/80-90|SP.16832.U8:mma1/80-90
          class=16832:mma2/75-100,110+|16864:mma2/75-100,110+
IMMA.8816     237 -  sm=75-90    d2 <- a<=ROW> b<=COL> c2 $upz
          ; 72=0 75=0 85-86=0 $ity ; $ire
IMMA.16816    237 -  sm=80+      d4 <- a2<=ROW> b<=COL> c4 $upz
          ; 72=0 75=0 85-86=2 $ity ; $ire
IMMA.16832    237 -  sm=80+      d4 <- a4<=ROW> b2<=COL> c4 $upz
          ; 72=0 75=1 85-86=2 $ity ; $ire
IMMA.8832     237 -  sm=75-89    d2 <- a<=ROW> b<=COL> c2 $upz
          ; 72=0 75=0 85-86=1 $ity4 ; $ire
IMMA.16832    237 -  sm=80-89    d4 <- a2<=ROW> b<=COL> c4 $upz
          ; 72=0 75=1 85-86=2 $ity4 ; $ire
IMMA.16864    237 -  sm=80-89    d4 <- a4<=ROW> b2<=COL> c4 $upz
          ; 72=0 75=0 85-86=3 $ity4 ; $ire
IMMA.SP.16832 237 -  sm=80+      d4 <- a2<=ROW> b2<=COL> c4 $upz $sparse
          ; 72=1 75=1 85-86=2 $ity ; $hsre
IMMA.SP.16864 237 -  sm=80+      d4 <- a4<=ROW> b4<=COL> c4 $upz $sparse
          ; 72=1 75=0 85-86=3 $ity ; $hsre
IMMA.SP.16864 237 -  sm=80-89    d4 <- a2<=ROW> b2<=COL> c4 $upz $sparse
          ; 72=1 75=0 85-86=3 $ity4 ; $hsre
IMMA.SP.168128 237 - sm=80-89    d4 <- a4<=ROW> b4<=COL> c4 $upz $sparse
          ; 72=1 75=1 85-86=3 $ity4 ; $hsre
def bmop     = .{<75-89>XOR <90>? ? <80+>AND <75>? ?}@77-78
op BMMA       effect=warp convergent varies latesrc class=88128:imma1|mma1|168256:mma2
BMMA.88128    23d -  sm=75-90    d2 <- a<=ROW> b<=COL> c2 $upz
          ; 72=0 73-74=2 75-76=0 $bmop .POPC 79-80=2 ; $ire <90>isa=4
BMMA.168128   23d -  sm=80-90    d4 <- a2<=ROW> b<=COL> c4 $upz
          ; 72=0 73-74=2 75-76=1 $bmop .POPC 79-80=2 ; $ire <90>isa=4
BMMA.168256   23d -  sm=80-90    d4 <- a4<=ROW> b2<=COL> c4 $upz
          ; 72=0 73-74=2 75-76=2 $bmop .POPC 79-80=2 ; $ire <90>isa=4
# ---- double
op DMMA       effect=warp convergent varies latesrc class=dmma
DMMA.884      23f -  sm=80-89    d4 <- a2-| b2-| c4-|
          ; 76=0 .rnd@78-79 ; reuse=ab
DMMA.8x8x4    23f -  sm=90+      d4 <- a2-| b2-| c4-| $upz
          ; 76-77=0 .rnd@78-79 ; <90-110>reuse=ab
DMMA.16x8x4   23f -  sm=90       d8 <- a4-| b2-| c8-| $upz
          ; 76-77=1 .rnd@78-79 ; reuse=ab isa=4
DMMA.16x8x8   23f -  sm=90       d8 <- a8-| b4-| c8-| $upz
          ; 76-77=2 .rnd@78-79 ; reuse=ab isa=4
DMMA.16x8x16  23f -  sm=90       d8 <- a16-| b8-| c8-| $upz
          ; 76-77=3 .rnd@78-79 ; reuse=ab isa=4
# ---- eight bits and fewer
enum qty     = E4M3 E5M2 ? E3M2 E2M3 E2M1 ? ?
def qacc     = .{F16:2 F32:4}:qacc@77
def qtys     = .qty@78+82-83 .qty@79+84-85
def qty8     = .{E4M3 E5M2}@78 .{E4M3 E5M2}@79
op QMMA       effect=warp convergent varies latesrc class=16816:mma1/89|mma2
QMMA.16816    27a -  sm=89       d/qacc <- a2<=ROW> b<=COL> c/qacc $upz
          ; 72-76=4 80-85=0 $qacc $qty8 ; reuse=ab
QMMA.16832    27a -  sm=89       d/qacc <- a4<=ROW> b2<=COL> c/qacc $upz
          ; 72-76=12 80-85=0 $qacc $qty8 ; reuse=ab
QMMA.SP.16864 27a -  sm=89       d/qacc <- a4<=ROW> b4<=COL> c/qacc $upz $sparse
          ; 72-76=20 80-85=1 $qacc $qty8 ; reuse=abe
QMMA.16816    27a -  sm=120+     d/qacc <- a2-@72 b- c/qacc $upz
          ; 73-76=2 80-81=0 $qacc $qtys ; reuse=b isa=2
QMMA.16832    27a -  sm=120+     d/qacc <- a4-@72 b2- c/qacc $upz
          ; 73-76=6 80-81=0 $qacc $qtys ; reuse=b isa=2
QMMA.SP.16864 27a -  sm=120+     d/qacc <- a4-@72 b4- c/qacc $upz $sparse
          ; 73-76=10 80-81=1 $qacc $qtys ; reuse=b isa=2
# ---- with block scales: s scales of a (of a sparse product: metadata, then scales), t those of b, u their places
# in the registers
def scales   = s:R@40 t:R@52 u:UR@60-62+73-77
def sscales  = s2:R@40 t:R@52 u:UR@60-62+73-77 sel:I(u)@48-49
QMMA.SF.16832 47a -  sm=120+     d4 <- a4-@72 b2- c4 $upz $scales
          ; 80-81=0 .F32 $qtys .E8 ; reuse=bt isa=2
QMMA.SF.SP.16864 47a - sm=120+   d4 <- a4-@72 b4- c4 $upz $sscales
          ; 80-81=1 .F32 $qtys .E8 ; reuse=bt isa=2
op OMMA       effect=warp convergent varies latesrc class=mma2
OMMA.SF.16864 47f -  sm=120+     d4 <- a4-@72 b2- c4 $upz $scales
          ; 78-81=0 .F32 .E2M1 .E2M1 .{E8 UE4M3}@82 .4X@83=0 ; reuse=bt isa=2
OMMA.SF.SP.168128 47f - sm=120+  d4 <- a4-@72 b4- c4 $upz $sscales
          ; 78-81=4 .F32 .E2M1 .E2M1 .{E8 UE4M3}@82 .4X@83=0 ; reuse=bt isa=2
# ---- fragments
op MOVM       effect=warp convergent varies class=lds
MOVM.16       23a -              d <- a                               ; .{MT88 M832 M864 ?}@78-79 75-77=0
MOVM.U4TO8    23a -  sm=100+     d <- a                               ; .{MT88 M832 M864 ?}@78-79 75-77=1 ; isa=2
STSM          044 L  sm=90+      <- m:M(R24,O40-63,U64,Y) s:R@32/lnum ; .16 .{M88 MT88}@78 .{_:1 2:2 4:4 ?}:lnum@72-73
"""
