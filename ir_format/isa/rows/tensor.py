"""Tensor core operations of a warp. Widths are those of the fragments."""

from __future__ import annotations

TEXT = r"""
def hacc     = .{F16:2 F32:4}:acc@76
def upz      = <86+>UPz:UPI@87?=UPT
# ---- half, bfloat, tf32
HMMA.1684    23c -  sm=80+      d4 <- a2 b- c4 $upz                 ; 75=0 78=1 73-74=0 76-77=1 .F32 .TF32 82-83=2                        ; cls=hmma
HMMA.1688    23c -              d/acc <- a2-@72 b- c/acc $upz  ; 75=0 78=0 73-74=0 77=0 $hacc .{_ <80+>BF16 <75>? ? ?}@82-83          ; cls=hmma <75>sb=WR
HMMA.1688    23c -  sm=80+      d4 <- a4 b2- c4 $upz                ; 75=0 78=0 73-74=0 76-77=1 .F32 .TF32 82-83=2                        ; cls=hmma
HMMA.16816   23c -  sm=80+      d/acc <- a4-@72 b2- c/acc $upz      ; 75=1 78=0 73-74=0 77=0 $hacc .{_ BF16 ? ?}@82-83                    ; cls=hmma
HMMA.SP.16816 23c - sm=80+      d/acc <- a2-@72 b2- c/acc $upz e:R@40 sel:I(u)@48-49 ; 73=1 75=1 78=0 74=0 77=0 $hacc .{_ BF16 ? ?}@82-83 ; cls=hmma
HMMA.SP.16832 23c - sm=80+      d/acc <- a4-@72 b4- c/acc $upz e:R@40 sel:I(u)@48-49 ; 73=1 75=1 78=1 74=0 77=0 $hacc .{_ BF16 ? ?}@82-83 ; cls=hmma
# ---- integers
def ity      = .{U8 S8}@76 77=0 83=0 .{U8 S8}@78 79=0 84=0 .SAT@82 72-74=4
def ity4     = .{U4 S4}@76 77=0 83=1 .{U4 S4}@78 79=0 84=1 .SAT@82 72-74=4
IMMA.8816    237 -  sm=75-110   d2 <- a<=ROW> b<=COL> c2 $upz   ; 75=0 85-86=0 $ity                                                  ; cls=imma <75,103>sb=WR reuse=ab
IMMA.16816   237 -  sm=80+      d4 <- a2<=ROW> b<=COL> c4 $upz       ; 75=0 85-86=2 $ity                                                  ; cls=imma <103>sb=WR reuse=ab
IMMA.16832   237 -  sm=80+      d4 <- a4<=ROW> b2<=COL> c4 $upz      ; 75=1 85-86=2 $ity                                                  ; cls=imma <103>sb=WR reuse=ab
IMMA.8832    237 -  sm=75-89    d2 <- a<=ROW> b<=COL> c2 $upz   ; 75=0 85-86=1 $ity4                                                 ; cls=imma <75>sb=WR reuse=ab
IMMA.16864   237 -  sm=80-89    d4 <- a4<=ROW> b2<=COL> c4 $upz      ; 75=0 85-86=3 $ity4                                                 ; cls=imma reuse=ab
IMMA.16832   237 -  sm=80-89      d4 <- a2<=ROW> b<=COL> c4 $upz     ; 75=1 85-86=2 $ity4                                                 ; cls=imma reuse=ab
BMMA.88128   23d -  sm=75-90      d2 <- a<=ROW> b<=COL> c2 $upz   ; 72-76=4 .{<75-89>XOR <90>? ? <75>? <80-90>AND ?}@77-78 .POPC 80=1                ; cls=imma <75>sb=WR
BMMA.168128  23d -  sm=80-90      d4 <- a2<=ROW> b<=COL> c4 $upz       ; 72-76=12 .{<80-89>XOR <90>? ? AND ?}@77-78 .POPC 80=1                           ; cls=imma
BMMA.168256  23d -  sm=80-90    d4 <- a4<=ROW> b2<=COL> c4 $upz      ; 72-76=20 .{<80-89>XOR <90>? ? AND ?}@77-78 .POPC 80=1                           ; cls=imma
# ---- double
DMMA.884     23f -  sm=80-89    d4 <- a2-| b2-| c4-|                 ; 76=0 .rnd@78-79                                                    ; cls=dmma sb=WR reuse=ab
DMMA.8x8x4   23f -  sm=90+      d4 <- a2-| b2-| c4-| $upz            ; 76-77=0 .rnd@78-79                                                 ; cls=dmma sb=WR reuse=ab
DMMA.16x8x4  23f -  sm=90-110      d8 <- a4-| b2-| c8-| $upz            ; 76-77=1 .rnd@78-79                                                 ; cls=dmma sb=WR reuse=ab
DMMA.16x8x8  23f -  sm=90-110      d8 <- a8-| b4-| c8-| $upz            ; 76-77=2 .rnd@78-79                                                 ; cls=dmma sb=WR reuse=ab
DMMA.16x8x16 23f -  sm=90-110      d8 <- a16-| b8-| c8-| $upz           ; 76-77=3 .rnd@78-79                                                 ; cls=dmma sb=WR reuse=ab
# ---- eight bits and fewer
enum qty     = E4M3 E5M2 ? E3M2 E2M3 E2M1 ? ?
QMMA.16832   27a -  sm=120+     d/qacc <- a4-@72 b2- c/qacc $upz     ; 73-76=6 .{F16:2 F32:4}:qacc@77 .qty@78+82-83 .qty@79+84-85 80-81=0  ; cls=hmma
QMMA.16832   27a -  sm=89       d/qacc <- a4<=ROW> b2<=COL> c/qacc $upz ; 73-76=6 .{F16:2 F32:4}:qacc@77 .{E4M3 E5M2}@78 .{E4M3 E5M2}@79 80-85=0  ; cls=hmma
QMMA.16816   27a -  sm=120+     d/qacc <- a2-@72 b- c/qacc $upz      ; 73-76=2 .{F16:2 F32:4}:qacc@77 .qty@78+82-83 .qty@79+84-85 80-81=0  ; cls=hmma
# ---- fragments
MOVM.16      23a -              d <- a                               ; .{MT88 M832 M864 ?}@78-79 75-77=0                                  ; cls=lsu sb=WR
MOVM.U4TO8   23a -  sm=100+     d <- a                               ; .{MT88 M832 M864 ?}@78-79 75-77=1                                  ; cls=lsu sb=WR
STSM         044 L  sm=90+      <- m:M(R24,O40-63,U64,Y) s:R@32/lnum   ; .16 .{M88 MT88}@78 .{_:1 2:2 4:4 ?}:lnum@72-73                     ; cls=lsu sb=R mem=w space=shared
IMMA.SP.16864 237 - sm=80+      d4 <- a4<=ROW> b4<=COL> c4 $upz e:R@40 sel:I(u)@48-49 ; 75=0 85-86=3 .{U8 S8}@76 77=0 83=0 .{U8 S8}@78 79=0 84=0 .SAT@82 72-74=5 ; cls=imma <103>sb=WR reuse=ab
"""
