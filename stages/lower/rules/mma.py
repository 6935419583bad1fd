"""mma.sync: dense forms go to :mod:`stages.lower.rules.matrix`; here are sparse and scaled operands, eight-bit floats,
the shapes of doubles, and sm_75's m8n8k4.

Each form uses the instruction (or the sequence) that ptxas 13.0.88 uses, with PTX's fragments (measured on sm_75, 80,
89, 90, 100 and 120). The exceptions are sparse eight-bit floats and m8n8k4 on SMs without them: these sequences are our
own (:mod:`sparse_eight`, :mod:`quads`).
"""

from __future__ import annotations

from ir_format import ptx
from ir_format.model import RZ, URZ, Imm, Operand, Reg
from ir_format.ptx import PtxInst
from ir_format.typed import Final
from stages.lower.builder import Builder, Rule
from stages.lower.elements import vector_of
from stages.lower.math.common import ROUND
from stages.lower.rules.integer import logic
from stages.lower.rules.matrix import by_planes, dense, operand
from stages.lower.rules.mma_m8n8k4 import quads
from stages.lower.rules.sparse_eight import sparse_eight

_F8: Final = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
#: Sparse factors: shape, type -> opcode, words of a and of b.
_SPARSE_FLOAT: Final = {
    ("m16n8k16", "f16"): ("HMMA.SP.16816", 2, 2), ("m16n8k32", "f16"): ("HMMA.SP.16832", 4, 4),
    ("m16n8k16", "bf16"): ("HMMA.SP.16816", 2, 2), ("m16n8k32", "bf16"): ("HMMA.SP.16832", 4, 4),
    ("m16n8k8", "tf32"): ("HMMA.SP.1688", 2, 2), ("m16n8k16", "tf32"): ("HMMA.SP.16816", 4, 4),
}  # fmt: skip
_SPARSE_INT: Final = {
    ("m16n8k32", "8"): ("IMMA.SP.16832", 2, 2), ("m16n8k64", "8"): ("IMMA.SP.16864", 4, 4),
    ("m16n8k64", "4"): ("IMMA.SP.16864", 2, 2), ("m16n8k128", "4"): ("IMMA.SP.168128", 4, 4),
}  # fmt: skip
#: Eight-bit floats by shape and sparsity.
_EIGHT: Final = {
    ("m16n8k16", False): ("QMMA.16816", 2, 1), ("m16n8k32", False): ("QMMA.16832", 4, 2),
    ("m16n8k64", True): ("QMMA.SP.16864", 4, 4),
}  # fmt: skip
#: Scaled factors by shape and sparsity.
_SCALED: Final = {
    ("m16n8k32", False): ("QMMA.SF.16832", 4, 2), ("m16n8k64", True): ("QMMA.SF.SP.16864", 4, 4),
    ("m16n8k64", False): ("OMMA.SF.16864", 4, 2), ("m16n8k128", True): ("OMMA.SF.SP.168128", 4, 4),
}  # fmt: skip
#: Doubles: steps of 4 along k of 16 rows.
_DOUBLE: Final = {"m16n8k4": 1, "m16n8k8": 2, "m16n8k16": 4}


def _shape(inst: PtxInst) -> str:
    return next((m for m in inst.mods if m[:1] == "m" and m[1:2].isdigit()), "")


def _give(b: Builder, d: ptx.Operand, out: Reg, width: int = 1) -> None:
    t = "b64" if width == 2 else "b32"
    for k, to in enumerate(vector_of(d)):
        if not isinstance(to, ptx.Sink):
            b.copy(b.dst(to, t), out._replace(sub=width * k, width=width))


def _metadata(b: Builder, inst: PtxInst, at: int) -> tuple[Operand, Operand]:
    """The register of metadata and the selector that follow the accumulator."""
    selector = inst.operands[at + 1]
    if not isinstance(selector, ptx.Imm):
        raise b.unsupported(inst, "selector")
    return b.in_reg(b.src(inst.operands[at], "b32")), Imm("I", selector.value)


def _factors(b: Builder, inst: PtxInst, na: int, nb: int, nc: int, roles: bool = False) -> list[Reg]:
    _, x, y, c = inst.operands[:4]
    out = [operand(b, inst, x, na, "b32"), operand(b, inst, y, nb, "b32"), operand(b, inst, c, nc, "b32")]
    if roles:
        out[0], out[1] = out[0]._replace(mod="ROW"), out[1]._replace(mod="COL")
    return out


def _emit(b: Builder, inst: PtxInst, op: str, nc: int, srcs: list[Operand]) -> None:
    out = b.r(nc)
    b.emit(op, out, tuple(srcs), attrs={"warp": 1})
    _give(b, inst.operands[0], out)


def _sparse(b: Builder, inst: PtxInst, shape: str) -> None:
    dt, at, bt, ct = inst.types
    b.need(inst, "mma-sparse")
    row = _SPARSE_FLOAT.get((shape, at))
    if row is not None and at == bt and dt == ct and dt in ("f32", "f16") and (dt == "f32" or at == "f16"):
        kind = {"f16": "", "bf16": ".BF16", "tf32": ".TF32"}[at]
        nc = 4 if dt == "f32" else 2
        _emit(
            b,
            inst,
            f"{row[0]}.{dt.upper()}{kind}",
            nc,
            [*_factors(b, inst, row[1], row[2], nc), *_metadata(b, inst, 4)],
        )
        return
    row = _SPARSE_INT.get((shape, at[1:])) if at[:1] in "us" and bt[:1] in "us" and at[1:] == bt[1:] else None
    if row is None or dt != "s32" or ct != "s32":
        raise b.unsupported(inst)
    if at[1:] == "4" and not b.has("mma-nibbles"):
        _sparse_nibbles(b, inst, shape, at, bt, row[1], row[2])
        return
    op = f"{row[0]}.{at.upper()}.{bt.upper()}" + (".SAT" if inst.has("satfinite") else "")
    _emit(b, inst, op, 4, [*_factors(b, inst, row[1], row[2], 4, True), *_metadata(b, inst, 4)])


def _sparse_nibbles(b: Builder, inst: PtxInst, shape: str, at: str, bt: str, na: int, nb: int) -> None:
    """Sparse nibbles from sm_90 on. The metadata selects pairs of nibbles. So the even nibbles form a sparse product of
    bytes with the same metadata, and the odd nibbles a second one."""
    factors = _factors(b, inst, na, nb, 4)
    meta = _metadata(b, inst, 4)
    name = _SPARSE_INT["m16n8k32" if shape == "m16n8k64" else "m16n8k64", "8"][0]

    def product(px: Reg, py: Reg, total: Reg) -> Reg:
        out = b.r(4)
        b.emit(
            f"{name}.{at[0].upper()}8.{bt[0].upper()}8",
            out,
            (px._replace(mod="ROW"), py._replace(mod="COL"), total, *meta),
            attrs={"warp": 1},
        )
        return out

    words = by_planes(b, inst, shape, at, bt, (factors[0], factors[1], factors[2]), 4, product)
    for to, value in zip(vector_of(inst.operands[0]), words, strict=True):
        if not isinstance(to, ptx.Sink):
            b.copy(b.dst(to, "b32"), value)


def _eight(b: Builder, inst: PtxInst, shape: str, sparse: bool) -> None:
    dt, at, bt, ct = inst.types
    row = _EIGHT.get((shape, sparse))
    narrow = all(t in ("e4m3", "e5m2") for t in (at, bt))
    if (
        row is None
        or dt != ct
        or dt not in ("f32", "f16")
        or not (b.has("mma-narrow-floats") or (b.has("mma-eight-bit-floats") and narrow))
    ):
        raise b.unsupported(inst)
    nc = 4 if dt == "f32" else 2
    if b.has("mma-eight-by-halves"):
        if sparse:
            wide = _factors(b, inst, row[1], row[2], nc)
            held = _metadata(b, inst, 4)[0]
            assert isinstance(held, Reg)
            _give(b, inst.operands[0], sparse_eight(b, dt, at, bt, (wide[0], wide[1], wide[2]), held))
            return
        _eight_as_halves(b, inst, dt, at, bt, row[1], row[2], nc)
        return
    meta = list(_metadata(b, inst, 4)) if sparse else []
    _emit(
        b,
        inst,
        f"{row[0]}.{dt.upper()}.{at.upper()}.{bt.upper()}",
        nc,
        [*_factors(b, inst, row[1], row[2], nc, b.has("mma-16816-eight")), *meta],
    )


def _eight_as_halves(b: Builder, inst: PtxInst, dt: str, at: str, bt: str, na: int, nb: int, nc: int) -> None:
    """Eight-bit floats on sm_90 to sm_110, which have no such product. The lower bytes of every word are the factors of
    a product of halves, the upper bytes those of a second one, and the accumulator is added last (measured)."""
    ra, rb, rc = _factors(b, inst, na, nb, nc)
    op = f"HMMA.{'16816' if na == 4 else '1688'}.{dt.upper()}"
    total = Reg("R", -1, 0, nc)
    for half in ("", "H1"):
        parts = []
        for x, n, t in ((ra, na, at), (rb, nb, bt)):
            wide = b.r(n)
            for i in range(n):
                b.emit(
                    f"F2FP.F16.{t.upper()}.UNPACK_B",
                    wide._replace(sub=i, width=1),
                    (x._replace(sub=x.sub + i, width=1, mod=half),),
                )
            parts.append(wide)
        out = b.r(nc)
        b.emit(op, out, (*parts, total), attrs={"warp": 1})
        total = out
    done = b.r(nc)
    for i in range(nc):
        x, y = (v._replace(sub=v.sub + i, width=1) for v in (total, rc))
        b.emit("FADD" if dt == "f32" else "HADD2", done._replace(sub=i, width=1), (x, y))
    _give(b, inst.operands[0], done)


def _scaled(b: Builder, inst: PtxInst, shape: str, sparse: bool) -> None:
    b.need(inst, "mma-narrow-floats")
    dt, at, bt, ct, scale = inst.types
    row = _SCALED.get((shape, sparse))
    four = inst.has("scale_vec::4X")
    if row is None or dt != "f32" or ct != "f32" or scale not in ("ue8m0", "ue4m3") or (four and row[0][0] != "O"):
        raise b.unsupported(inst)
    if row[0][0] == "O" and (at, bt) != ("e2m1", "e2m1"):
        raise b.unsupported(inst)
    factors = _factors(b, inst, row[1], row[2], 4)
    rest = inst.operands[6 if sparse else 4 :]
    if len(rest) != 4:
        raise b.unsupported(inst)
    scales = [b.in_reg(b.src(rest[k], "b32")) for k in (0, 2)]
    places = _places(b, inst, [*vector_of(rest[1]), *vector_of(rest[3])])
    tail: list[Operand] = [scales[1], places]
    first: Operand = scales[0]
    if sparse:
        meta, selector = _metadata(b, inst, 4)
        pair = b.r(2)  # metadata, then scales
        b.copy(b.lo_r(pair), meta)
        b.copy(b.hi_r(pair), scales[0])
        first = pair
        tail.append(selector)
    mods = f".F32.{at.upper()}.{bt.upper()}.{'E8' if scale == 'ue8m0' else 'UE4M3'}" + (".4X" if four else "")
    _emit(b, inst, row[0] + mods, 4, [*factors, first, *tail])


def _places(b: Builder, inst: PtxInst, ids: list[ptx.Operand]) -> Reg:
    """The selectors of the scales of a and b (byte and threads): fields of 2, 1, 2 and 2 bits of a uniform register."""
    if len(ids) != 4:
        raise b.unsupported(inst)
    constant = 0
    total: Reg | None = None
    for x, (shift, mask) in zip(ids, ((0, 3), (2, 1), (3, 3), (5, 3)), strict=True):
        v = b.src(x, "u16")
        if isinstance(v, Imm):
            constant |= (v.value & mask) << shift
            continue
        part, moved, joined = b.r(), b.r(), b.r()
        logic(b, part, 0xC0, v, Imm("I", mask))
        b.emit("SHF.L.U32", moved, (part, Imm("I", shift), RZ))
        logic(b, joined, 0xFC, moved, total if total is not None else RZ)
        total = joined
    if total is None and not constant:
        return URZ
    u = b.ur()
    if total is None:
        b.emit("UMOV", u, (Imm("I", constant),))
        return u
    if constant:
        joined = b.r()
        logic(b, joined, 0xFC, total, Imm("I", constant))
        total = joined
    b.emit("R2UR", u, (total,))
    return u


def _double(b: Builder, inst: PtxInst, shape: str) -> None:
    """Doubles: one instruction on sm_90, steps of 8x8x4 on other SMs. 16 rows need sm_90 or later."""
    rnd = ROUND[next((m for m in inst.mods if m in ("rn", "rz", "rm", "rp")), "rn")]
    d, x, y, c = inst.operands
    if shape == "m8n8k4":
        b.need(inst, "mma-16816")
        out = b.r(4)
        factors = [operand(b, inst, o, n, "b64") for o, n in ((x, 2), (y, 2), (c, 4))]
        b.emit(("DMMA.884" if b.has("dmma-884") else "DMMA.8x8x4") + rnd, out, tuple(factors), attrs={"warp": 1})
        _give(b, d, out, 2)
        return
    b.need(inst, "mma-double-16-rows")
    steps = _DOUBLE.get(shape, 0)
    if not steps:
        raise b.unsupported(inst)
    ra, rb, rc = (operand(b, inst, o, n, "b64") for o, n in ((x, 4 * steps), (y, 2 * steps), (c, 8)))
    if b.has("dmma-large"):
        out = b.r(8)
        b.emit(f"DMMA.16x8x{4 * steps}{rnd}", out, (ra, rb, rc), attrs={"warp": 1})
        _give(b, d, out, 2)
        return
    halves: list[Reg] = []
    for i in range(2):
        acc = b.r(4)
        b.copy(acc, rc._replace(sub=4 * i, width=4))
        for j in range(steps):
            pair, column, out = b.r(2), b.r(2), b.r(4)
            b.copy(pair, ra._replace(sub=4 * j + 2 * i, width=2))
            b.copy(column, rb._replace(sub=2 * j, width=2))
            b.emit(f"DMMA.8x8x4{rnd}", out, (pair, column, acc), attrs={"warp": 1})
            acc = out
        halves += [acc._replace(sub=2 * k, width=2) for k in range(2)]
    for to, value in zip(vector_of(d), halves, strict=True):
        if not isinstance(to, ptx.Sink):
            b.copy(b.dst(to, "b64"), value)


def _quads(b: Builder, inst: PtxInst) -> None:
    """m8n8k4 of halves, four products of eight threads each: two or four steps, one for each pair of results."""
    dt, _, _, ct = inst.types
    d, x, y, c = inst.operands
    layouts = [m for m in inst.mods if m in ("row", "col")]
    if len(layouts) != 2 or dt not in ("f16", "f32") or ct not in ("f16", "f32") or (dt, ct) == ("f16", "f32"):
        raise b.unsupported(inst)
    if b.has("mma-16816"):
        quads(b, inst, dt, ct)
        return
    ra, rb = (operand(b, inst, o, 2, "b32")._replace(mod=layouts[k].upper()) for k, o in enumerate((x, y)))
    words = [b.in_reg(b.src(e, "b32")) for e in vector_of(c)]
    steps = 2 if dt == "f16" else 4
    if len(words) != (4 if ct == "f16" else 8) or len(vector_of(d)) != 2 * steps:
        raise b.unsupported(inst)
    out: list[Reg] = []
    pairs: list[Reg] = []
    for k in range(len(words) // 2):
        pair = b.r(2)
        for i in range(2):
            b.copy(pair._replace(sub=i, width=1), words[2 * k + i])
        pairs.append(pair)
    for step in range(steps):
        result = b.r(2)
        b.emit(
            f"HMMA.884.{dt.upper()}.{ct.upper()}.STEP{step}",
            result,
            (ra, rb, pairs[step * len(pairs) // steps]),
            attrs={"warp": 1},
        )
        out += [result._replace(sub=i, width=1) for i in range(2)]
    for to, value in zip(vector_of(d), out, strict=True):
        if not isinstance(to, ptx.Sink):
            b.copy(b.dst(to, "b32"), value)


def mma(b: Builder, inst: PtxInst) -> None:
    """mma.sync and mma.sp.sync"""
    shape = _shape(inst)
    sparse = any(m.startswith("sp") for m in inst.mods)
    scaled = inst.has("block_scale")
    if len(inst.types) != (5 if scaled else 4) or len(inst.operands) != 4 + 2 * sparse + 4 * scaled:
        raise b.unsupported(inst)
    if shape == "m8n8k4" and inst.types[1] == "f16":
        _quads(b, inst)
        return
    if not (inst.has("row") and inst.has("col")) or inst.mods.index("row") > inst.mods.index("col"):
        raise b.unsupported(inst)
    if scaled:
        _scaled(b, inst, shape, sparse)
    elif inst.types[1] in _F8:
        _eight(b, inst, shape, sparse)
    elif sparse:
        _sparse(b, inst, shape)
    elif inst.types[0] == "f64":
        _double(b, inst, shape)
    else:
        dense(b, inst)


RULES: dict[str, Rule] = {"mma": mma}
