"""Bulk copies, tensor-map copies and what goes with them; the registers that a warpgroup hands over.

Provenance: measured on ptxas 13.0's output for sm_90a, 100a, 103a, 110a, 120a and 121a, bits flipped one by one under
nvdisasm 13.5. Blocks of uniform registers (measured in ptxas's code): ``t`` of UTMALDG is {shared address, mbarrier,
coordinates}, of UTMASTG and UTMAREDG {shared address, coordinates}, of UTMAPF the coordinates, each for the map at
``m``; ``t`` of UBLKCP.S.* and UBLKRED.S.S is {shared address, mbarrier}. ``us`` of the bulk copies is the size in units
of 16 bytes, its high half the mask of CTAs or bytes; ``us`` of the tensor-map copies has the im2col offsets, its high
half the mask of CTAs.
"""

from __future__ import annotations

TEXT = r"""
enum ublko   = ADD MIN MAX INC DEC AND OR XOR
enum ublkt   = _ S32 U64 S64 F16.RN F32.RN F32.FTZ.RN F64.RN BF16.RN ? ? ? ? ? ? ?
enum ublkord = _ ? ? ? ? STRONG.SM ? STRONG.GPU ? ? STRONG.SYS ? ? ? ? ?
enum vchk    = _ VALIDCHK_80000000 VALIDCHK_XXXX8000 VALIDCHK_XXXXXX80 VALIDCHK_XXXXXXX8 VALIDCHK_EVERY_FF ? ?
enum ltcs    = _ LTC64B LTC128B LTC256B
def ubhead   = .MULTICAST@75 <100+>.DST_G_BYTE_MASK@84 .ltcs@81-82 .SEQUENCED@83
def ubmods   = $ubhead <100-110>.COUNTED@85 .ublkord@77-80 <107>.vchk@60-62
def tdim     = .{1D:3 2D:4 3D:5 4D:6 5D:7 ? ? ?}:dim@79-81
def sdim     = .{1D:2 2D:3 3D:4 4D:5 5D:6 ? ? ?}:dim@79-81
def pdim     = .{1D:1 2D:2 3D:3 4D:4 5D:5 ? ? ?}:dim@79-81
def gdim     = .{1D 2D 3D 4D 5D ? ? ?}@79-81
def tmode    = <90>.IM2COL@82 <100-110>.{_ IM2COL W128 W}@82-83 <120+>.{_ IM2COL ? W}@82-83 <100+>84=0
def pmode    = <90>.IM2COL <90>82=1 <100-110>.{? IM2COL W128 W}@82-83 <120+>.{? IM2COL ? W}@82-83 <100+>84=0
def twocta   = <100-110>.2CTA@85 <107>.vchk@60-62
# ---- bulk copies
op UBLKCP     read=global,shared write=global,shared,cluster protocol noduplicate class=bulk
UBLKCP       3ba+91 - sm=90+    <- t2:MU(32) m2:MU(24) us:UR@64            ; .{G.G S.G ? ?}@73-74 $ubmods 76=0
UBLKCP       3ba+91 - sm=90+    <- t2:MU(32) m2:MU(24) us:UR@64 x2:MU(D40) ; .{G.G S.G ? ?}@73-74 $ubmods 76=1
UBLKCP       3ba+91 - sm=90+    <- t2:MU(32) m:MU(24) us:UR@64
          ; .{? ? G.S S.S}@73-74 $ubhead .ublkord@77-80 76=0
UBLKCP       3ba+91 - sm=90+    <- t2:MU(32) m:MU(24) us:UR@64 x2:MU(D40)
          ; .{? ? G.S S.S}@73-74 $ubhead .ublkord@77-80 76=1
UBLKCP.S.G.MULTICAST32 3ba+91 - sm=107  <- t2:MU(32) m2:MU(24) us2:UR@64
          ; 73-74=1 87=1 .ltcs@81-82 .ublkord@77-80 .vchk@60-62 76=0
UBLKCP.S.G.MULTICAST32 3ba+91 - sm=107  <- t2:MU(32) m2:MU(24) us2:UR@64 x2:MU(D40)
          ; 73-74=1 87=1 .ltcs@81-82 .ublkord@77-80 .vchk@60-62 76=1
op UBLKRED    read=global,shared write=global,shared,cluster atomic protocol noduplicate class=bulk
UBLKRED      3bb+91 - sm=90+    <- t2:MU(32) m:MU(24) us:UR@64
          ; .{? ? G.S S.S}@73-74 .ublko@87-89 .ublkt@81-84 .ublkord@77-80 76=0
UBLKRED      3bb+91 - sm=90+    <- t2:MU(32) m:MU(24) us:UR@64 x2:MU(D40)
          ; .{? ? G.S S.S}@73-74 .ublko@87-89 .ublkt@81-84 .ublkord@77-80 76=1
# sm_107 has the two prefetches under other names (measured)
op UBLKL2CCTL effect=cache protocol noduplicate class=bulk
UBLKL2CCTL    3bc+91 - sm=107    <- m2:MU(24) us:UR@64                      ; .{PF PM DM ?}@72-73 76=0
UBLKL2CCTL    3bc+91 - sm=107    <- m2:MU(24) us:UR@64 x2:MU(D40)           ; .{PF PM DM ?}@72-73 76=1
op UTMAL2CCTL effect=cache protocol noduplicate class=bulk
UTMAL2CCTL    5b8+91 - sm=107    <- t:MU(32)/dim m2:MU(24)                      ; .{PF PM DM ?}@72-73 $pdim 76=0
UTMAL2CCTL    5b8+91 - sm=107    <- t:MU(32)/dim m2:MU(24) x2:MU(D40)           ; .{PF PM DM ?}@72-73 $pdim 76=1
UTMAL2CCTL    3b8+91 - sm=107    <- t:MU(32)/dim m2:MU(24) us:UR@64
          ; .{PF PM DM ?}@72-73 .{? 2D:2 3D:3 4D:4 5D:5 ? ? ?}:dim@79-81 $pmode 76=0
UTMAL2CCTL    3b8+91 - sm=107    <- t:MU(32)/dim m2:MU(24) us:UR@64 x2:MU(D40)
          ; .{PF PM DM ?}@72-73 .{? 2D:2 3D:3 4D:4 5D:5 ? ? ?}:dim@79-81 $pmode 76=1
UTMAL2CCTL    5b8+91 - sm=107   <- t5:MU(32) m2:MU(24)
          ; .{PF PM DM ?}@72-73 $gdim .GATHER4 84=1 76=0
UTMAL2CCTL    5b8+91 - sm=107   <- t5:MU(32) m2:MU(24) x2:MU(D40)
          ; .{PF PM DM ?}@72-73 $gdim .GATHER4 84=1 76=1
op UBLKPF     effect=cache protocol noduplicate class=bulk
UBLKPF.L2    3bc+91 - sm=90-103,110+    <- m2:MU(24) us:UR@64                      ; 76=0
UBLKPF.L2    3bc+91 - sm=90-103,110+    <- m2:MU(24) us:UR@64 x2:MU(D40)           ; 76=1
op UMEMSETS   write=shared protocol class=bulk
UMEMSETS.64  3cb+91 - sm=100+   <- m:MUO(U24,O40-63,Z) v:N(URZ) us:UR@64     ; 32-39=255
# ---- tensor-map copies: the second opcode has offsets or a mask in us
op UTMALDG    read=global write=shared,cluster protocol noduplicate class=bulk
UTMALDG      5b4+91 - sm=90+    <- t:MU(32)/dim m2:MU(24)                      ; $tdim $twocta 76=0
UTMALDG      5b4+91 - sm=90+    <- t:MU(32)/dim m2:MU(24) x2:MU(D40)           ; $tdim $twocta 76=1
UTMALDG      3b4+91 - sm=90+    <- t:MU(32)/dim m2:MU(24) us:UR@64             ; $tdim $tmode .MULTICAST@75 $twocta 76=0
UTMALDG      3b4+91 - sm=90+    <- t:MU(32)/dim m2:MU(24) us:UR@64 x2:MU(D40)  ; $tdim $tmode .MULTICAST@75 $twocta 76=1
UTMALDG      3b4+91 - sm=107   <- t:MU(32)/dim m2:MU(24) us:UR@64
          ; $tdim 82-84=0 .MULTICAST32 87=1 $twocta 76=0
UTMALDG      3b4+91 - sm=107   <- t:MU(32)/dim m2:MU(24) us:UR@64 x2:MU(D40)
          ; $tdim 82-84=0 .MULTICAST32 87=1 $twocta 76=1
UTMALDG      3b4+91 - sm=107   <- t:MU(32)/dim m2:MU(24) us2:UR@64
          ; $tdim .{? IM2COL W128 W}@82-83 84=0 .MULTICAST32 87=1 $twocta 76=0
UTMALDG      3b4+91 - sm=107   <- t:MU(32)/dim m2:MU(24) us2:UR@64 x2:MU(D40)
          ; $tdim .{? IM2COL W128 W}@82-83 84=0 .MULTICAST32 87=1 $twocta 76=1
UTMALDG      5b4+91 - sm=100+   <- t7:MU(32) m2:MU(24)                         ; $gdim .GATHER4 84=1 $twocta 76=0
UTMALDG      5b4+91 - sm=100+   <- t7:MU(32) m2:MU(24) x2:MU(D40)              ; $gdim .GATHER4 84=1 $twocta 76=1
UTMALDG      3b4+91 - sm=100+   <- t7:MU(32) m2:MU(24) us:UR@64
          ; $gdim .GATHER4 82-84=4 .MULTICAST@75 $twocta 76=0
UTMALDG      3b4+91 - sm=100+   <- t7:MU(32) m2:MU(24) us:UR@64 x2:MU(D40)
          ; $gdim .GATHER4 82-84=4 .MULTICAST@75 $twocta 76=1
op UTMASTG    read=shared write=global protocol noduplicate class=bulk
UTMASTG      3b5+91 - sm=90+    <- t:MU(32)/dim m2:MU(24)                      ; $sdim .IM2COL@82 83=0 76=0
UTMASTG      3b5+91 - sm=90+    <- t:MU(32)/dim m2:MU(24) x2:MU(D40)           ; $sdim .IM2COL@82 83=0 76=1
UTMASTG      3b5+91 - sm=100+   <- t6:MU(32) m2:MU(24)                         ; $gdim .SCATTER4 82-83=2 76=0
UTMASTG      3b5+91 - sm=100+   <- t6:MU(32) m2:MU(24) x2:MU(D40)              ; $gdim .SCATTER4 82-83=2 76=1
op UTMAREDG   read=global,shared write=global atomic protocol noduplicate class=bulk
UTMAREDG     3b6+91 - sm=90+    <- t:MU(32)/dim m2:MU(24)                      ; $sdim .IM2COL@82 .ublko@87-89 76=0
UTMAREDG     3b6+91 - sm=90+    <- t:MU(32)/dim m2:MU(24) x2:MU(D40)           ; $sdim .IM2COL@82 .ublko@87-89 76=1
op UTMAPF     effect=cache protocol noduplicate class=bulk
UTMAPF.L2    5b8+91 - sm=90-103,110+    <- t:MU(32)/dim m2:MU(24)                      ; $pdim 76=0
UTMAPF.L2    5b8+91 - sm=90-103,110+    <- t:MU(32)/dim m2:MU(24) x2:MU(D40)           ; $pdim 76=1
UTMAPF.L2    3b8+91 - sm=90-103,110+    <- t:MU(32)/dim m2:MU(24) us:UR@64             ; $pdim $pmode 76=0
UTMAPF.L2    3b8+91 - sm=90-103,110+    <- t:MU(32)/dim m2:MU(24) us:UR@64 x2:MU(D40)  ; $pdim $pmode 76=1
UTMAPF.L2    5b8+91 - sm=100-103,110+   <- t5:MU(32) m2:MU(24)                         ; $gdim .GATHER4 84=1 76=0
UTMAPF.L2    5b8+91 - sm=100-103,110+   <- t5:MU(32) m2:MU(24) x2:MU(D40)              ; $gdim .GATHER4 84=1 76=1
op UTMACCTL   effect=cache protocol noduplicate class=bulk
UTMACCTL     9b9+91 - sm=90+    <- m2:MU(24)                                   ; .{IV PF}@82
op UTMACMDFLUSH effect=order fence protocol noduplicate commit class=bulk
UTMACMDFLUSH 9b7 -  sm=90+      <-                                             ;
# ---- register counts of warps
op USETMAXREG effect=state wall protocol noduplicate boundary class=setreg|DEALLOC:setregd
USETMAXREG   9c8+91 - sm=90+    UPu <- i:I(u)@32-41                            ; .TRY_ALLOC 72-73=2 .CTAPOOL 74=1
USETMAXREG   9c8+91 - sm=90+    <- i:I(u)@32-41                                ; .DEALLOC 72-73=1 .CTAPOOL 74=1 81-83=7
# ---- reductions of multicast objects over eight-bit floats (the others are in memory.py)
op LDGMC      read=multicast class=ldg
LDGMC        1a5 GU sm=100+     d/at <- m:M(R24,O40-63,U64,X82,W81)
          ; .E 72=1 .{ADD MIN MAX HPADD}@88-89 87=1
          .{? E5M2x4.RN:1 E5M2x8.RN:2 E5M2x16.RN:4 E4M3x4.RN:1 E4M3x8.RN:2 E4M3x16.RN:4 ? ? ? ? ? ? ? ? ?}:at@73-76
          .STRONG.SYS 77-80=10
# ---- with a counter: t is the address and the counter's (PTX's fabric copies)
UBLKCP       3ba+91 - sm=100-110 <- t4:MU(32) m:MU(24) us:UR@64
          ; .{? ? G.S S.S}@73-74 $ubhead .COUNTED 85=1 .ublkord@77-80 76=0
UBLKCP       3ba+91 - sm=100-110 <- t4:MU(32) m:MU(24) us:UR@64 x2:MU(D40)
          ; .{? ? G.S S.S}@73-74 $ubhead .COUNTED 85=1 .ublkord@77-80 76=1
UBLKRED      3bb+91 - sm=100-110 <- t4:MU(32) m:MU(24) us:UR@64
          ; .{? ? G.S S.S}@73-74 .ublko@87-89 .COUNTED 85=1 .ublkt@81-84 .ublkord@77-80 76=0
UBLKRED      3bb+91 - sm=100-110 <- t4:MU(32) m:MU(24) us:UR@64 x2:MU(D40)
          ; .{? ? G.S S.S}@73-74 .ublko@87-89 .COUNTED 85=1 .ublkt@81-84 .ublkord@77-80 76=1
# ---- im2col of rows (PTX 9.4)
UTMASTG      3b5+91 - sm=107    <- t:MU(32)/dim m2:MU(24)                      ; $sdim .W 82-83=3 76=0
UTMASTG      3b5+91 - sm=107    <- t:MU(32)/dim m2:MU(24) x2:MU(D40)           ; $sdim .W 82-83=3 76=1
UTMAREDG     3b6+91 - sm=107    <- t:MU(32)/dim m2:MU(24)                      ; $sdim .W 82-83=3 .ublko@87-89 76=0
UTMAREDG     3b6+91 - sm=107    <- t:MU(32)/dim m2:MU(24) x2:MU(D40)           ; $sdim .W 82-83=3 .ublko@87-89 76=1
UTMALDG      3b4+91 - sm=107    <- t7:MU(32) m2:MU(24) us:UR@64
          ; $gdim .GATHER4 82-84=4 .MULTICAST32 87=1 $twocta 76=0
UTMALDG      3b4+91 - sm=107    <- t7:MU(32) m2:MU(24) us:UR@64 x2:MU(D40)
          ; $gdim .GATHER4 82-84=4 .MULTICAST32 87=1 $twocta 76=1
"""
