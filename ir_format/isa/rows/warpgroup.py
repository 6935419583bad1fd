"""Matrix operations of a warpgroup (sm_90a) and their order.

Provenance: measured on ptxas 13.0's output for sm_90a, bits flipped one by one under nvdisasm 13.5. ``gdesc[UR]`` are
four uniform registers: the descriptor of A and, in the upper two, that of B; with A in registers the lower two are not
looked at. The accumulators are d and c; UPz says whether c counts. ``gsb0`` ends a group: WARPGROUP.DEPBAR waits for
groups.
"""

from __future__ import annotations

from ir_format.typed import Final

_FLOAT: Final = range(8, 257, 8)
_INTEGER: Final = (8, 16, 24, *range(32, 257, 16))


def _shapes(ns: range | tuple[int, ...], part: int, ks: list[int], step: int = 1, first: int = 0) -> str:
    """A table of shapes 64xNxK, ``part`` columns to a register: 32 values for each K (0: undefined), the Ns ``step``
    values apart from ``first`` on."""
    names = ["?"] * max(32 * len(ks), 64)
    for row, k in enumerate(ks):
        for i, n in enumerate(ns):
            if k:
                names[32 * row + step * i + first] = f"64x{n}x{k}:{n // part}"
    return " ".join(names)


TEXT = (
    f"""
enum hshape2  = {_shapes(_FLOAT, 2, [16, 8])}
enum hshape4  = {_shapes(_FLOAT, 4, [16, 8])}
enum hspshape2 = {_shapes(_FLOAT, 2, [16, 0, 32, 0])}
enum hspshape4 = {_shapes(_FLOAT, 4, [16, 0, 32, 0])}
enum qshape2  = {_shapes(_FLOAT, 2, [32, 0])}
enum qshape4  = {_shapes(_FLOAT, 4, [32, 0])}
enum qspshape2 = {_shapes(_FLOAT, 2, [0, 64])}
enum qspshape4 = {_shapes(_FLOAT, 4, [0, 64])}
enum ishape   = {_shapes(_INTEGER, 2, [32], 3)}
enum ispshape = {_shapes(_INTEGER, 2, [64], 3, 1)}
enum bshape   = {_shapes(_INTEGER, 2, [256])}
"""
    + r"""
enum gmods   = _ tnspA tnspB tnspA.tnspB negB negB.tnspA negB.tnspB negB.tnspA.tnspB negA negA.tnspA negA.tnspB
          negA.tnspA.tnspB negA.negB negA.negB.tnspA negA.negB.tnspB negA.negB.tnspA.tnspB
enum gmodb   = _ tnspB negB negB.tnspB
enum gneg    = _ negB negA negA.negB
enum gnegb   = _ negB
enum gsb     = gsb0 ? ? ? ? ? ? none
enum gsbn    = gsb0 ? ? ? ? ? ? ?
def gend     = gsb:N(gsb)@84-86?=none
def gpred    = UPz:UPI@87?=UPT
def gmeta    = e:R@40
def hdd      = <- g4:GD@24<gmods>@61-63+72
def hrr      = <- a4:R@24-@72 g4:GD@32<gmodb>@62-63
def qdd      = <- g4:GD@24<gneg>@63+72
def qrr      = <- a4:R@24-@72 g4:GD@32<gnegb>@63
def idd      = <- g4:GD@24
def irr      = <- a4:R@24 g4:GD@32
def htype    = .{_ BF16 TF32 ?}@76-77
def qtype    = .{E4M3 E5M2}@76 .{E4M3 E5M2}@77
def itype    = .{U8 S8 ? ?}@76-77 .{U8 S8 ? ?}@82-83 .SAT@75
# ---- half, bfloat, tf32: A by descriptor (9f0) or in registers (df0)
op HGMMA      read=shared convergent varies protocol noduplicate warpgroup class=gmma
HGMMA        9f0+91 - sm=90     d/hshape4 $hdd c/hshape4 $gpred $gend
          ; .hshape4@53-58 73-74=0 .F16 75=0 $htype
HGMMA        9f0+91 - sm=90     d/hshape2 $hdd c/hshape2 $gpred $gend
          ; .hshape2@53-58 73-74=0 .F32 75=1 $htype
HGMMA        df0+91 - sm=90     d/hshape4 $hrr c/hshape4 $gpred $gend
          ; .hshape4@53-58 73-74=0 .F16 75=0 $htype
HGMMA        df0+91 - sm=90     d/hshape2 $hrr c/hshape2 $gpred $gend
          ; .hshape2@53-58 73-74=0 .F32 75=1 $htype
HGMMA.SP     9f0+91 - sm=90     d/hspshape4 $hdd c/hspshape4 $gpred $gmeta sel:I(u)@48-49 $gend
          ; .hspshape4@53-59 73-74=1 .F16 75=0 $htype
HGMMA.SP     9f0+91 - sm=90     d/hspshape2 $hdd c/hspshape2 $gpred $gmeta sel:I(u)@48-49 $gend
          ; .hspshape2@53-59 73-74=1 .F32 75=1 $htype
HGMMA.SP     df0+91 - sm=90     d/hspshape4 $hrr c/hspshape4 $gpred $gmeta sel:I(u)@48-49 $gend
          ; .hspshape4@53-59 73-74=1 .F16 75=0 $htype
HGMMA.SP     df0+91 - sm=90     d/hspshape2 $hrr c/hspshape2 $gpred $gmeta sel:I(u)@48-49 $gend
          ; .hspshape2@53-59 73-74=1 .F32 75=1 $htype
# ---- eight-bit floats
op QGMMA      read=shared convergent varies protocol noduplicate warpgroup class=gmma
QGMMA        9f3+91 - sm=90     d/qshape4 $qdd c/qshape4 $gpred $gend
          ; .qshape4@53-58 73-74=0 .F16 75=0 $qtype
QGMMA        9f3+91 - sm=90     d/qshape2 $qdd c/qshape2 $gpred $gend
          ; .qshape2@53-58 73-74=0 .F32 75=1 $qtype
QGMMA        df3+91 - sm=90     d/qshape4 $qrr c/qshape4 $gpred $gend
          ; .qshape4@53-58 73-74=0 .F16 75=0 $qtype
QGMMA        df3+91 - sm=90     d/qshape2 $qrr c/qshape2 $gpred $gend
          ; .qshape2@53-58 73-74=0 .F32 75=1 $qtype
QGMMA.SP     9f3+91 - sm=90     d/qspshape4 $qdd c/qspshape4 $gpred $gmeta sel:I(u)@48-49?=0 $gend
          ; .qspshape4@53-58 73-74=1 .F16 75=0 $qtype
QGMMA.SP     9f3+91 - sm=90     d/qspshape2 $qdd c/qspshape2 $gpred $gmeta sel:I(u)@48-49?=0 $gend
          ; .qspshape2@53-58 73-74=1 .F32 75=1 $qtype
QGMMA.SP     df3+91 - sm=90     d/qspshape4 $qrr c/qspshape4 $gpred $gmeta sel:I(u)@48-49?=0 $gend
          ; .qspshape4@53-58 73-74=1 .F16 75=0 $qtype
QGMMA.SP     df3+91 - sm=90     d/qspshape2 $qrr c/qspshape2 $gpred $gmeta sel:I(u)@48-49?=0 $gend
          ; .qspshape2@53-58 73-74=1 .F32 75=1 $qtype
# ---- integers, bits
op IGMMA      read=shared convergent varies protocol noduplicate warpgroup class=gmma
IGMMA        9f1+91 - sm=90     d/ishape $idd c/ishape $gpred $gend
          ; .ishape@53-58 73-74=0 $itype
IGMMA        df1+91 - sm=90     d/ishape $irr c/ishape $gpred $gend
          ; .ishape@53-58 73-74=0 $itype
IGMMA.SP     9f1+91 - sm=90     d/ispshape $idd c/ispshape $gpred $gmeta sel:I(u)@48-49?=0 $gend
          ; .ispshape@53-58 73-74=1 $itype
IGMMA.SP     df1+91 - sm=90     d/ispshape $irr c/ispshape $gpred $gmeta sel:I(u)@48-49?=0 $gend
          ; .ispshape@53-58 73-74=1 $itype
op BGMMA      read=shared convergent varies protocol noduplicate warpgroup class=gmma
BGMMA        9f2+91 - sm=90     d/bshape $idd c/bshape $gpred $gend
          ; .bshape@53-58 73-74=0 .AND 77-78=2 .POPC 80=1
BGMMA        df2+91 - sm=90     d/bshape $irr c/bshape $gpred $gend
          ; .bshape@53-58 73-74=0 .AND 77-78=2 .POPC 80=1
# ---- order
op WARPGROUP  effect=sync convergent waits wall protocol noduplicate class=ARRIVE:wgarrive|DEPBAR:wgdepbar
WARPGROUP.ARRIVE 9c5 - sm=90    <-                                                               ; 79-80=0
WARPGROUP.DEPBAR 9c5 - sm=90    <- gsb:N(gsbn)@84-86 n:I(u)@72-74                                 ; .LE 47=1 79-80=2
"""
)
