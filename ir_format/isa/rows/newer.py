"""Instructions that came with sm_100, and forms that sm_100 added to older ones.

Provenance: measured on ptxas 13.0's output (-O0 and -O3) for sm_100a to 121a, bits flipped under nvdisasm 13.5. Only
the combinations of element format and shape that ptxas emits are here: nvdisasm prints more, with register counts that
nothing shows.
"""

from __future__ import annotations

TEXT = r"""
enum ugrord  = ? ? ? ? ? ? ? STRONG.GPU MMIO.GPU ? STRONG.SYS ? MMIO.SYS ? ? ?
# ---- uniform stores and reductions to global memory (mmio asynchronous stores)
op USTGR      write=global protocol class=ustg
USTGR.E.NA   377+91 - sm=100-110 <- m:MUO(U24,O40-63,E64,Z) us:UR@32/usz
          ; .{EFL2 _ ELL2 ?}@83-84 .{U8:1 S8:1 U16:1 S16:1 _:1 64:2 ? ?}:usz@73-75 .ugrord@77-80 72=0
op UREDGR     read=global write=global atomic protocol class=ustg
UREDGR.E.ADD.NA 378+91 - sm=100-110 <- m:MUO(U24,O40-63,E64,Z) us:UR@32/usz
          ; .{EFL2 _ ELL2 ?}@83-84 .{_:1 S32:1 64:2 ? ? ? ? ?}:usz@73-75 .ugrord@77-80 72=0 87-89=0
# ---- matrices of bytes
LDSM         03b L  sm=100+      d/lnum <- m:M(R24,O40-63,U32,Y)
          ; .{? ? ? ? ? U4x16P64TO8 U6x16P32TO8 ?}@75-77 .M816 78-80=2 .{_:1 2:2 4:4 ?}:lnum@72-73
# nvdisasm prints nothing for this one; the name is ours (ptxas 13.5: ldmatrix .s8.s4)
LDSM         03b L  sm=90+      d/lnum <- m:M(R24,O40-63,U32,Y)
          ; .S4TO8 75-77=2 .M816 78-80=2 .{_:1 2:2 4:4 ?}:lnum@72-73 ; src=guess
LDSM         03b L  sm=100+      d/lnum <- m:M(R24,O40-63,U32,Y)
          ; .{? ? ? ? ? U4x16P64TO8 U6x16P32TO8 8}@75-77 .MT1616 78-80=4 .{_:2 2:4 ? ?}:lnum@72-73
op STSM       write=shared convergent class=sts
STSM         044 L  sm=100+      <- m:M(R24,O40-63,U64,Y) s:R@32/lnum
          ; .8 75=1 .MT168 78-79=2 .{_:1 2:2 4:4 ?}:lnum@72-73
# ---- caches of local memory
op CCTLL      effect=cache fence class=cctl
CCTLL        990 -               <- m:M(R24,O40-63)                  ; .{PF1 PF2 WB IV ? RS ? ? ? ? ? ? ? ? ? ?}@87-90
CCTLL        190 L6 forms=u     <- m:M(R24,U32)              ; .{PF1 PF2 WB IV ? RS ? ? ? ? ? ? ? ? ? ?}@87-90
"""
