"""Warp-wide matrix instructions: ldmatrix, stmatrix, movmatrix, and the mma forms that are one SASS instruction.

Opcode and modifier spellings and the SMs that have each form: measured with ptxas 13.0.88. Forms that ptxas calls helper
routines for (sub-byte and 1-bit on sm_90 and later, m8n8k4 with f16) are refused.
"""

from __future__ import annotations

from ir_format import ptx
from ir_format.model import Reg
from ir_format.ptx import PtxInst

from .builder import Builder, Rule
from .rules_async import shared_address
from .rules_memory import gather

_COUNT = {"x1": 1, "x2": 2, "x4": 4}


def _matrix_op(b: Builder, inst: PtxInst, op: str) -> tuple[str, int]:
    n = next((_COUNT[m] for m in inst.mods if m in _COUNT), 0)
    if not n or not inst.has("m8n8") or inst.types != ("b16",):
        raise b.unsupported(inst)
    trans = "MT88" if inst.has("trans") else "M88"
    return f"{op}.16.{trans}" + (f".{n}" if n > 1 else ""), n


def ldmatrix(b: Builder, inst: PtxInst) -> None:
    op, n = _matrix_op(b, inst, "LDSM")
    to = inst.operands[0]
    elems = to.elems if isinstance(to, ptx.Vec) else (to,)
    if len(elems) != n:
        raise b.unsupported(inst)
    at = shared_address(b, inst, inst.operands[1])
    got = b.r(n)
    b.emit(op, got, (at,), attrs={"warp": 1})
    for i, e in enumerate(elems):
        if not isinstance(e, ptx.Sink):
            b.copy(b.dst(e), got._replace(sub=i, width=1))


def stmatrix(b: Builder, inst: PtxInst) -> None:
    b.need(inst, 90)
    op, n = _matrix_op(b, inst, "STSM")
    x = inst.operands[1]
    elems = x.elems if isinstance(x, ptx.Vec) else (x,)
    if len(elems) != n:
        raise b.unsupported(inst)
    at = shared_address(b, inst, inst.operands[0])
    b.emit(op, (), (at, gather(b, elems, "b32")), attrs={"warp": 1})


def movmatrix(b: Builder, inst: PtxInst) -> None:
    b.emit("MOVM.16.MT88", b.dst(inst.operands[0]), (b.in_reg(b.src(inst.operands[1], "b32")),), attrs={"warp": 1})


# --------------------------------------------------------------------------- mma

# (shape, a type) -> (opcode with shape, words of a, of b, first SM). Accumulators: f32 and s32 four words (8-row shapes two), f16 two.
_FLOAT: dict[tuple[str, str], tuple[str, int, int, int]] = {
    ("m16n8k16", "f16"): ("HMMA.16816", 4, 2, 80),
    ("m16n8k8", "f16"): ("HMMA.1688", 2, 1, 75),
    ("m16n8k16", "bf16"): ("HMMA.16816", 4, 2, 80),
    ("m16n8k8", "bf16"): ("HMMA.1688", 2, 1, 80),
    ("m16n8k4", "tf32"): ("HMMA.1684", 2, 1, 80),
    ("m16n8k8", "tf32"): ("HMMA.1688", 4, 2, 80),
}
_BYTES: dict[str, tuple[str, int, int, int, int, int]] = {  # (opcode, words of a, b, c, first SM, last SM)
    "m8n8k16": ("IMMA.8816", 1, 1, 2, 75, 99),
    "m16n8k16": ("IMMA.16816", 2, 1, 4, 80, 999),
    "m16n8k32": ("IMMA.16832", 4, 2, 4, 80, 999),
}
_NIBBLES: dict[str, tuple[str, int, int, int, int, int]] = {
    "m8n8k32": ("IMMA.8832", 1, 1, 2, 75, 89),
    "m16n8k32": ("IMMA.16832", 2, 1, 4, 80, 89),
    "m16n8k64": ("IMMA.16864", 4, 2, 4, 80, 89),
}
_BITS: dict[str, tuple[str, int, int, int, int, int]] = {
    "m8n8k128": ("BMMA.88128", 1, 1, 2, 75, 89),
    "m16n8k128": ("BMMA.168128", 2, 1, 4, 80, 89),
    "m16n8k256": ("BMMA.168256", 4, 2, 4, 80, 89),
}
_F8 = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")


def mma(b: Builder, inst: PtxInst) -> None:
    """mma.sync with dense operands."""
    if any(m.startswith(("sp", "block_scale", "kind", "scale_vec")) for m in inst.mods) or len(inst.types) != 4 or len(inst.operands) != 4:
        raise b.unsupported(inst)
    shape = next((m for m in inst.mods if m[:1] == "m" and m[1:2].isdigit()), "")
    dt, at, bt, ct = inst.types
    if not (inst.has("row") and inst.has("col")) or inst.mods.index("row") > inst.mods.index("col"):
        raise b.unsupported(inst)
    got = _FLOAT.get((shape, at))
    if got is not None and at == bt and dt == ct:
        op, na, nb, first = got
        if (dt != "f32" and at != "f16") or dt not in ("f32", "f16"):
            raise b.unsupported(inst)
        b.need(inst, first)
        kind = {"f16": "", "bf16": ".BF16", "tf32": ".TF32"}[at]
        _emit(b, inst, f"{op}.{dt.upper()}{kind}", na, nb, 4 if dt == "f32" else 2, "", "")
        return
    if dt == "f64" and shape == "m8n8k4":
        b.need(inst, 80)
        op = "DMMA.884" if b.sm < 90 else "DMMA.8x8x4"
        _emit(b, inst, op, 2, 2, 4, "", "")
        return
    table = _BYTES if at[1:] == "8" and bt[1:] == "8" else _NIBBLES if at[1:] == "4" and bt[1:] == "4" else {}
    row = table.get(shape)
    if row is not None and dt == ct == "s32" and at[0] in "us" and bt[0] in "us":
        name, na, nb, nc, low, high = row
        if low <= b.sm <= high:
            sat = ".SAT" if inst.has("satfinite") else ""
            _emit(b, inst, f"{name}.{at.upper()}.{bt.upper()}{sat}", na, nb, nc, "ROW", "COL")
            return
    bits = _BITS.get(shape) if at == bt == "b1" and dt == ct == "s32" and inst.has("popc") else None
    how = "AND" if inst.has("and") else "XOR"
    # from sm_90 on only m16n8k256 with AND is left, and that until sm_99
    if bits is not None and (bits[4] <= b.sm <= bits[5] or (shape == "m16n8k256" and how == "AND" and b.sm == 90)):
        if how == "AND":
            b.need(inst, 80)
        _emit(b, inst, f"{bits[0]}.{how}.POPC", bits[1], bits[2], bits[3], "ROW", "COL")
        return
    if at in _F8 and bt in _F8 and shape == "m16n8k32" and dt == ct == "f32" and b.sm >= 120:
        _emit(b, inst, f"QMMA.16832.F32.{at.upper()}.{bt.upper()}", 4, 2, 4, "", "")
        return
    raise b.unsupported(inst)


def _operand(b: Builder, inst: PtxInst, x: ptx.Operand, words: int, t: str) -> Reg:
    elems = x.elems if isinstance(x, ptx.Vec) else (x,)
    got = gather(b, elems, t)
    if got.width != words:
        raise b.unsupported(inst, "operand size")
    return got


def _emit(b: Builder, inst: PtxInst, op: str, na: int, nb: int, nc: int, ma: str, mb: str) -> None:
    wide = inst.types[0] == "f64"
    t = "b64" if wide else "b32"
    d, x, y, c = inst.operands
    ra = _operand(b, inst, x, na, t)._replace(mod=ma)
    rb = _operand(b, inst, y, nb, t)._replace(mod=mb)
    rc = _operand(b, inst, c, nc, t)
    out = b.r(nc)
    b.emit(op, out, (ra, rb, rc), attrs={"warp": 1})
    elems = d.elems if isinstance(d, ptx.Vec) else (d,)
    k = 2 if wide else 1
    for i, e in enumerate(elems):
        b.copy(b.dst(e, t), out._replace(sub=k * i, width=k))


RULES: dict[str, Rule] = {"ldmatrix": ldmatrix, "stmatrix": stmatrix, "movmatrix": movmatrix, "mma": mma}
