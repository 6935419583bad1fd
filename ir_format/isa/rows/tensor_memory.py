"""Tensor memory: its matrix operations, loads, stores, copies, allocation, and the barrier that they arrive at.

Provenance: measured on ptxas 13.0's output for sm_100a, 103a and 110a, bits flipped one by one under nvdisasm 13.5. The
data width of ``LDTM`` and ``STTM`` is rows times columns of the shape for a warp; combinations above 128 registers are
left out.
"""

from __future__ import annotations

from ir_format.typed import Final

#: Value of bits 81, 82 and 87: name and registers for x1.
_SHAPES: Final = (
    ("16dp128bit", 2),
    ("16dp256bit", 4),
    ("", 1),
    ("16dp64bit", 1),
    ("16dp32bit_t0_t15", 1),
    ("16dp32bit_t16_t31", 1),
    ("?", 0),
    ("?", 0),
)


def _shapes(low: int, high: int) -> str:
    """Shape and count (bits 83-85) as one table: the two give the width together."""
    items = []
    for k in range(8):
        for name, unit in _SHAPES[low:high]:
            width = unit << k
            text = ".".join(filter(None, (name, f"x{1 << k}" if k else ""))) or "_"
            items.append("?" if name == "?" or width > 128 else f"{text}:{width}")
    return " ".join(items)


TEXT = (
    f"""
enum tmshape = {_shapes(0, 8)}
"""
    + r"""
enum tmstat  = ? x2:2 x4:4 x8:8 x16:16 x32:32 x64:64 x128:128
enum akeep   = _ A_KEEP A_REUSE A_REUSE.A_KEEP
enum bkeep   = _ BUFFER1 BUFFER2 BUFFER3 B_KEEP B_KEEP.BUFFER1 B_KEEP.BUFFER2 B_KEEP.BUFFER3 B_REUSE B_REUSE.BUFFER1
          B_REUSE.BUFFER2 B_REUSE.BUFFER3
               B_REUSE.B_KEEP B_REUSE.B_KEEP.BUFFER1 B_REUSE.B_KEEP.BUFFER2 B_REUSE.B_KEEP.BUFFER3
enum cpshape = _ ? 4dp256bit 128dp128bit 2x64dp128bit_lw02_lw13 2x64dp128bit_lw01_lw23 4x32dp128bit ?
enum cpfmt   = _ U4x16P64 U6x16P32 ?
def utcab    = a2:GD@24<akeep>@84+86
def utcta    = a:TM@24<akeep>@84+86
def utcb     = b2:GD@32<bkeep>@79-82 d:TM@64 e2:TI@40 u:UR@48/lanes?=URZ UPp
def utcb2    = b2:GD@32 d:TM@64 e2:TI@40 u:UR@48/lanes?=URZ UPp
def utcbx    = b2:GD@32 d:TM@64 e2:TI@40 x2:TM@48 UPp
def utc1     = .{_:4 WS:2}:lanes@83 85=0
def utc2     = .2CTA 85=1 .{_:8 WS:2}:lanes@83 79-82=0
def utcx     = .2CTA@85 79-83=0
def utc2b    = .2CTA 85=1 .{_:8 WS:2}:lanes@83
def utcbxb   = b2:GD@32<bkeep>@79-82 d:TM@64 e2:TI@40 x2:TM@48 UPp
def utcxb    = .2CTA@85 83=0
# ---- matrix products: a from shared memory (gdesc) or tensor memory, d accumulates where the predicate says so; u:
# disabled lanes, with WS zero columns;
# x: scales; e: the pair of metadata address and instruction descriptor
op UTCHMMA    read=shared,tensor write=tensor protocol noduplicate class=utc
UTCHMMA      5ea+91 - sm=100-110  <- $utcab $utcb s:I(u)@75-78?=0  ; $utc1 72-74=0 62-63=0
UTCHMMA      5ea+91 - sm=100-110  <- $utcab $utcb2 s:I(u)@75-78?=0 ; $utc2 72-74=0 62-63=0
UTCHMMA      9ea+91 - sm=100-110  <- $utcta $utcb s:I(u)@75-78?=0  ; $utc1 .ASHIFT@74 72-73=0 62-63=0
UTCHMMA      9ea+91 - sm=100-110  <- $utcta $utcb2 s:I(u)@75-78?=0 ; $utc2 .ASHIFT@74 72-73=0 62-63=0
op UTCIMMA    read=shared,tensor write=tensor protocol noduplicate class=utc
UTCIMMA      5ea+91 - sm=100,110  <- $utcab $utcb                  ; $utc1 72-74=1 62-63=0
UTCIMMA      5ea+91 - sm=100,110  <- $utcab $utcb2                 ; $utc2 72-74=1 62-63=0
UTCIMMA      9ea+91 - sm=100,110  <- $utcta $utcb                  ; $utc1 .ASHIFT@74 72-73=1 62-63=0
UTCIMMA      9ea+91 - sm=100,110  <- $utcta $utcb2                 ; $utc2 .ASHIFT@74 72-73=1 62-63=0
op UTCQMMA    read=shared,tensor write=tensor protocol noduplicate class=utc
UTCQMMA      5ea+91 - sm=100-110  <- $utcab $utcb                  ; $utc1 72-74=3 62-63=0
UTCQMMA      5ea+91 - sm=100-110  <- $utcab $utcb2                 ; $utc2 72-74=3 62-63=0
UTCQMMA      9ea+91 - sm=100-110  <- $utcta $utcb                  ; $utc1 .ASHIFT@74 72-73=3 62-63=0
UTCQMMA      9ea+91 - sm=100-110  <- $utcta $utcb2                 ; $utc2 .ASHIFT@74 72-73=3 62-63=0
UTCQMMA      dea+91 - sm=100-110  <- $utcab $utcbx                 ; $utcx 72-74=3 62-63=0
UTCQMMA      fea+91 - sm=100-110  <- $utcta $utcbx                 ; $utcx 72-74=3 62-63=0
op UTCOMMA    read=shared,tensor write=tensor protocol noduplicate class=utc
UTCOMMA      5ea+91 - sm=100-110  <- $utcab $utcbx
          ; $utcx <100,110>.4X@62=0 <103,107>.BLOCK16@62=0 63=1 72-74=0
UTCOMMA      9ea+91 - sm=100-110  <- $utcta $utcbx
          ; $utcx <100,110>.4X@62=0 <103,107>.BLOCK16@62=0 63=1 72-74=0
# ---- copies, arrival, allocation
op UTCCP      read=shared write=tensor protocol noduplicate class=utc
UTCCP.T.S    9e7+91 - sm=100-110  <- t:TM(O40-63+72-79)@24 b2:GD@32 ; .2CTA@85 .cpshape@83-84+88 .cpfmt@80-81
op UTCSHIFT   read=tensor write=tensor protocol noduplicate class=utcshift
UTCSHIFT     9e6+91 - sm=100-110  <- t:TM(O40-63+72-79)@24      ; .2CTA@85 .DOWN 80=1
op UTCBAR     read=shared write=shared protocol noduplicate class=utc
UTCBAR       3e9+91 - sm=100-110  <- m:MU(24) b:UR@32 c:UR@64?=URZ
          ; .2CTA@85 .A0TX@77 .MULTICAST@75 <107>.MMA_READ_SHM_A@74
op UTCATOMSWS effect=state protocol noduplicate class=utcatom
UTCATOMSWS   5e3+91 - sm=100-110  UPu ud:UR@16 <- b:UR@32       ; .2CTA@85 .FIND_AND_SET .ALIGN@75
UTCATOMSWS   9e3+91 - sm=100-110  ud:UR@16 <- b:UR@32           ; .2CTA@85 .{AND OR}@87
op UVIRTCOUNT effect=state protocol noduplicate class=utcvirt
UVIRTCOUNT.DEALLOC.SMPOOL 84c    - sm=100+ <- i:I(u)@32-63      ;
FENCE.VIEW.ASYNC.T 3c6  - sm=100-110  <-                        ; 72-73=2
# ---- loads and stores
op LDTM       read=tensor convergent varies protocol noduplicate class=ldtm
LDTM         9ee+91 - sm=100-110  d/tmshape <- t:TM(O40-63+72-79)@32 ; .tmshape@81-82+87+83-85 .PACK16BIT@80
          ; guard=UP
LDTM.STAT    5ee+91 - sm=103-110  r:R@24 d/tmstat <- t:TM(O40-63+72-79)@32
          ; .{? ? _ ? 16dp32bit_t0_t15 16dp32bit_t16_t31 ? ?}@81-82+87 .tmstat@83-85 .{MAX MAXABS MIN MINABS}@66-67
          .{_ S32 F32 ?}@64-65 .NAN@68 ; guard=UP
op STTM       write=tensor convergent protocol noduplicate class=sttm
STTM         9ed+91 - sm=100-110  <- t:TM(O40-63+72-79)@64 b:R@32/tmshape ; .tmshape@81-82+87+83-85 .EXPAND16BIT@80
          ; guard=UP
# ---- sm_107 keeps B too, with pairs of CTAs and scales, and looks up B's numbers in a table (LUTB: e has its place)
UTCHMMA      5ea+91 - sm=107  <- $utcab $utcb s:I(u)@75-78?=0 ; $utc2b 72-74=0 62-63=0
UTCHMMA      9ea+91 - sm=107  <- $utcta $utcb s:I(u)@75-78?=0 ; $utc2b .ASHIFT@74 72-73=0 62-63=0
UTCQMMA      5ea+91 - sm=107  <- $utcab $utcb                 ; $utc2b 72-74=3 62-63=0
UTCQMMA      9ea+91 - sm=107  <- $utcta $utcb                 ; $utc2b .ASHIFT@74 72-73=3 62-63=0
UTCQMMA      dea+91 - sm=107  <- $utcab $utcbxb               ; $utcxb 72-74=3 62-63=0
UTCQMMA      fea+91 - sm=107  <- $utcta $utcbxb               ; $utcxb 72-74=3 62-63=0
UTCOMMA      5ea+91 - sm=107  <- $utcab $utcbxb               ; $utcxb .BLOCK16@62=0 63=1 72-74=0
UTCOMMA      9ea+91 - sm=107  <- $utcta $utcbxb               ; $utcxb .BLOCK16@62=0 63=1 72-74=0
UTCQMMA      5ea+91 - sm=107  <- $utcab $utcb                 ; .LUTB 60=1 $utc1 72-74=3 62-63=0
UTCQMMA      5ea+91 - sm=107  <- $utcab $utcb                 ; .LUTB 60=1 $utc2b 72-74=3 62-63=0
UTCQMMA      9ea+91 - sm=107  <- $utcta $utcb                 ; .LUTB 60=1 $utc1 .ASHIFT@74 72-73=3 62-63=0
UTCQMMA      9ea+91 - sm=107  <- $utcta $utcb                 ; .LUTB 60=1 $utc2b .ASHIFT@74 72-73=3 62-63=0
UTCQMMA      dea+91 - sm=107  <- $utcab $utcbxb               ; .LUTB 60=1 $utcxb 72-74=3 62-63=0
UTCQMMA      fea+91 - sm=107  <- $utcta $utcbxb               ; .LUTB 60=1 $utcxb 72-74=3 62-63=0
"""
)
