"""Warp-wide matrix instructions: ldmatrix, stmatrix, movmatrix, and dense mma of halves and integers.

The spelling of opcodes and modifiers, and the SMs that have each form, were measured with ptxas 13.0.88. Forms on bits
and nibbles that an SM does not have use the byte instruction. The other mma are in :mod:`stages.lower.rules.mma`.
"""

from __future__ import annotations

from collections.abc import Callable

from ir_format import ptx
from ir_format.model import RZ, Imm, Reg
from ir_format.ptx import PtxInst
from ir_format.typed import TypeAlias
from stages.lower.builder import Builder, Rule
from stages.lower.elements import gather, vector_of
from stages.lower.rules.async_copy import shared_address
from stages.lower.rules.integer import logic, negated, saturated

_COUNT = {"x1": 1, "x2": 2, "x4": 4}


#: (shape, type in memory) -> SASS names of format and shape, registers for x1.
_TILES = {
    ("m8n16", "b6x16_p32"): ("U6x16P32TO8.M816", 1), ("m8n16", "b4x16_p64"): ("U4x16P64TO8.M816", 1),
    ("m16n16", "b6x16_p32"): ("U6x16P32TO8.MT1616", 2), ("m16n16", "b4x16_p64"): ("U4x16P64TO8.MT1616", 2),
    ("m8n16", "s4"): ("S4TO8.M816", 1),
    ("m16n16", ""): ("8.MT1616", 2),
    ("m16n8", ""): ("8.MT168", 1),
}  # fmt: skip


def _matrix_op(b: Builder, inst: PtxInst, op: str) -> tuple[str, int]:
    """The opcode and the number of registers."""
    n = next((_COUNT[m] for m in inst.mods if m in _COUNT), 0)
    many = f".{n}" if n > 1 else ""
    if n and inst.has("m8n8") and inst.types == ("b16",):
        return f"{op}.16.{'MT88' if inst.has('trans') else 'M88'}{many}", n
    shape = next((m for m in inst.mods if m in ("m8n16", "m16n16", "m16n8")), "")
    signed = "s4" if inst.types == ("s8", "s4") else ""
    packed = next((m for m in inst.mods if m in ("b6x16_p32", "b4x16_p64")), signed)
    tile = _TILES.get((shape, packed))
    if (
        not n
        or tile is None
        or (op == "LDSM") != (shape != "m16n8")
        or inst.has("trans") != (shape != "m8n16")
        or (shape == "m16n16" and n > 2)
    ):
        raise b.unsupported(inst)
    b.need(inst, "matrix-load-signed" if signed else "matrix-load-narrow")
    return f"{op}.{tile[0]}{many}", n * tile[1]


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
    b.need(inst, "matrix-store")
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

# (shape, a type) -> (opcode with shape, words of a, of b, feature). Accumulators: f32 and s32 four words (8-row shapes
# two), f16 two.
_FLOAT: dict[tuple[str, str], tuple[str, int, int, str]] = {
    ("m16n8k16", "f16"): ("HMMA.16816", 4, 2, "mma-16816"),
    ("m16n8k8", "f16"): ("HMMA.1688", 2, 1, "mma-1688"),
    ("m16n8k16", "bf16"): ("HMMA.16816", 4, 2, "mma-16816"),
    ("m16n8k8", "bf16"): ("HMMA.1688", 2, 1, "mma-16816"),
    ("m16n8k4", "tf32"): ("HMMA.1684", 2, 1, "mma-16816"),
    ("m16n8k8", "tf32"): ("HMMA.1688", 4, 2, "mma-16816"),
}
# (opcode, words of a, b, c, feature that PTX's shape needs, feature of SMs that have the instruction)
_IntegerRow: TypeAlias = tuple[str, int, int, int, str, str]
_BYTES: dict[str, _IntegerRow] = {
    "m8n8k16": ("IMMA.8816", 1, 1, 2, "mma-integers-8-rows", "mma-8816"),
    "m16n8k16": ("IMMA.16816", 2, 1, 4, "mma-integers-16-rows", "mma-integers-16-rows"),
    "m16n8k32": ("IMMA.16832", 4, 2, 4, "mma-integers-16-rows", "mma-integers-16-rows"),
}
_NIBBLES: dict[str, _IntegerRow] = {
    "m8n8k32": ("IMMA.8832", 1, 1, 2, "mma-integers-8-rows", "mma-nibbles"),
    "m16n8k32": ("IMMA.16832", 2, 1, 4, "mma-integers-16-rows", "mma-nibbles"),
    "m16n8k64": ("IMMA.16864", 4, 2, 4, "mma-integers-16-rows", "mma-nibbles"),
}
_BITS: dict[str, _IntegerRow] = {
    "m8n8k128": ("BMMA.88128", 1, 1, 2, "mma-integers-8-rows", "mma-bits"),
    "m16n8k128": ("BMMA.168128", 2, 1, 4, "mma-integers-16-rows", "mma-bits"),
    "m16n8k256": ("BMMA.168256", 4, 2, 4, "mma-integers-16-rows", "mma-bits"),
}


def dense(b: Builder, inst: PtxInst) -> None:
    """mma.sync of f16, bf16, tf32 and integers with dense operands."""
    shape = next((m for m in inst.mods if m[:1] == "m" and m[1:2].isdigit()), "")
    dt, at, bt, ct = inst.types
    got = _FLOAT.get((shape, at))
    if got is not None and at == bt and dt == ct:
        op, na, nb, feature = got
        if (dt != "f32" and at != "f16") or dt not in ("f32", "f16"):
            raise b.unsupported(inst)
        b.need(inst, feature)
        kind = {"f16": "", "bf16": ".BF16", "tf32": ".TF32"}[at]
        _emit(b, inst, f"{op}.{dt.upper()}{kind}", na, nb, 4 if dt == "f32" else 2, "", "")
        return
    small = small_row(at, bt, shape)
    if small is not None and dt == ct == "s32":
        d, x, y, c = inst.operands
        out = small_product(
            b, inst, shape, at, bt, *(operand(b, inst, o, n, "b32") for o, n in zip((x, y, c), small[1:4], strict=True))
        )
        for e, q in zip(vector_of(d), out, strict=True):
            b.copy(b.dst(e), q)
        return
    raise b.unsupported(inst)


# --------------------------------------------------------------------------- small integers by way of bytes
#
# The order of the terms of a dot product does not matter if it is the same in both factors. So the nibbles (or bits) of
# a word are split into planes of four bytes each, and the byte instruction with the same rows and columns multiplies
# each plane.

_PLANE_SHAPE = {
    "m8n8k16": "m8n8k16", "m8n8k32": "m8n8k16", "m16n8k32": "m16n8k16", "m16n8k64": "m16n8k32", "m8n8k128": "m8n8k16",
    "m16n8k128": "m16n8k16",
    "m16n8k256": "m16n8k32",
}  # fmt: skip


def small_row(at: str, bt: str, shape: str) -> _IntegerRow | None:
    """The row of the tables above for integer factors, or None."""
    tables = {"8": _BYTES, "4": _NIBBLES, "1": _BITS}
    return tables.get(at[1:] if at[1:] == bt[1:] and at[0] in "usb" else "", {}).get(shape)


def small_product(b: Builder, inst: PtxInst, shape: str, at: str, bt: str, rx: Reg, ry: Reg, rc: Reg) -> list[Reg]:
    """The words of ``x * y + c`` for integer factors of a shape of :func:`small_row`. ``inst`` has the modifiers xor or
    and, and satfinite."""
    row = small_row(at, bt, shape)
    if row is None or (at == "b1" and not inst.has("popc")):
        raise b.unsupported(inst)
    name, _, _, nc, needed, native = row
    conjunction = inst.has("and")
    if not b.has(needed) or (at == "b1" and conjunction and not b.has("mma-bits-and")):
        raise b.unsupported(inst)
    if at == "b1" and b.has(
        "mma-bits-and-only"
    ):  # only AND is left there: what differs is x and not y, and y and not x (measured)
        out = rc
        for p, q in ((rx, ry),) if conjunction else ((rx, _inverted(b, ry)), (_inverted(b, rx), ry)):
            out = _one(b, f"{name}.AND.POPC", p, q, out, nc)
    elif not b.has(native):
        return _by_bytes(b, inst, shape, at, bt, rx, ry, rc, nc)
    else:
        how = (
            f"{'AND' if conjunction else 'XOR'}.POPC"
            if at == "b1"
            else f"{at.upper()}.{bt.upper()}" + (".SAT" if inst.has("satfinite") else "")
        )
        out = _one(b, f"{name}.{how}", rx, ry, rc, nc)
    return [out._replace(sub=i, width=1) for i in range(nc)]


def _one(b: Builder, op: str, x: Reg, y: Reg, c: Reg, nc: int) -> Reg:
    out = b.r(nc)
    b.emit(op, out, (x._replace(mod="ROW"), y._replace(mod="COL"), c), attrs={"warp": 1})
    return out


def _inverted(b: Builder, x: Reg) -> Reg:
    out = b.r(x.width)
    for i in range(x.width):
        logic(b, out._replace(sub=i, width=1), 0x0F, x._replace(sub=x.sub + i, width=1))
    return out


def _by_bytes(b: Builder, inst: PtxInst, shape: str, at: str, bt: str, rx: Reg, ry: Reg, rc: Reg, nc: int) -> list[Reg]:
    xor = at == "b1" and not inst.has("and")

    def product(px: Reg, py: Reg, total: Reg) -> Reg:
        return _bytes_mma(b, _PLANE_SHAPE[shape], _plane_type(at, xor), _plane_type(bt, xor), px, py, total, nc)

    return by_planes(b, inst, shape, at, bt, (rx, ry, rc), nc, product)


def by_planes(
    b: Builder,
    inst: PtxInst,
    shape: str,
    at: str,
    bt: str,
    factors: tuple[Reg, Reg, Reg],
    nc: int,
    product: Callable[[Reg, Reg, Reg], Reg],
) -> list[Reg]:
    """The words of ``x * y + c`` where ``product`` multiplies bytes, plane by plane."""
    xor = at == "b1" and not inst.has("and")
    rx, ry, rc = factors
    total = Reg("R", -1, 0, nc)
    for px, py in zip(_planes(b, rx, at, xor), _planes(b, ry, bt, xor), strict=True):
        total = product(px, py, total)
    scale = 4 * ((at == "s4") + (bt == "s4"))  # a signed nibble is in the upper half of its byte: times 16
    out: list[Reg] = []
    for i in range(nc):
        p = total._replace(sub=i, width=1)
        q = b.r()
        if xor:  # bits as +1 and -1: their product sums to (equal - unequal)
            k, t = b.r(), b.r()
            b.emit("IADD3", t, (negated(p), Imm("I", int(shape.partition("k")[2])), RZ))
            b.emit("SHF.R.S32.HI", k, (RZ, Imm("I", 1), t))
            p = k
        elif scale:
            k = b.r()
            b.emit("SHF.R.S32.HI", k, (RZ, Imm("I", scale), p))
            p = k
        word = rc._replace(sub=rc.sub + i, width=1)
        if inst.has("satfinite"):
            saturated(b, q, p, word, False)
        else:
            b.emit("IADD3", q, (p, word, RZ))
        out.append(q)
    return out


def _plane_type(t: str, xor: bool) -> str:
    return "s8" if t[0] == "s" or xor else "u8"


def _planes(b: Builder, x: Reg, t: str, xor: bool) -> list[Reg]:
    """The bytes, nibbles or bits of the words of ``x`` as byte vectors."""
    if t[1:] == "8":
        return [x]
    out: list[Reg] = []
    for k in range(2 if t[1:] == "4" else 8):
        plane = b.r(x.width)
        for i in range(x.width):
            w, to = x._replace(sub=x.sub + i, width=1), plane._replace(sub=i, width=1)
            if t == "s4":  # odd nibbles are in place; even ones move up
                v = w
                if k == 0:
                    v = b.r()
                    b.emit("SHF.L.U32", v, (w, Imm("I", 4), RZ))
                logic(b, to, 0xC0, v, Imm("I", 0xF0F0F0F0))
                continue
            v = b.r()
            b.emit("SHF.R.U32.HI", v, (RZ, Imm("I", k * (4 if t == "u4" else 1)), w))
            if t == "u4":
                logic(b, to, 0xC0, v, Imm("I", 0x0F0F0F0F))
            elif not xor:
                logic(b, to, 0xC0, v, Imm("I", 0x01010101))
            else:
                u = b.r()
                logic(b, u, 0xC0, v, Imm("I", 0x01010101))
                b.emit("IMAD", to, (u, Imm("I", 0xFE), b.in_reg(Imm("I", 0x01010101))))
        out.append(plane)
    return out


def _bytes_mma(b: Builder, shape: str, ta: str, tb: str, x: Reg, y: Reg, c: Reg, nc: int) -> Reg:
    """One byte product. If the SM has only 16 rows, eight rows are half of them."""
    name = _BYTES[shape][0]
    out_words = nc
    if shape == "m8n8k16" and not b.has("mma-8816"):
        name, out_words = "IMMA.16816", 4
        wide = b.r(2)
        b.copy(b.lo_r(wide), x)
        b.copy(b.hi_r(wide), RZ)
        x = wide
        if c.num >= 0:
            more = b.r(4)
            for i in range(4):
                b.copy(more._replace(sub=i, width=1), c._replace(sub=i, width=1) if i < nc else RZ)
            c = more
    c = c._replace(width=out_words) if c.num < 0 else c
    out = b.r(out_words)
    b.emit(
        f"{name}.{ta.upper()}.{tb.upper()}", out, (x._replace(mod="ROW"), y._replace(mod="COL"), c), attrs={"warp": 1}
    )
    return out._replace(width=nc)


def operand(b: Builder, inst: PtxInst, x: ptx.Operand, words: int, t: str) -> Reg:
    elems = x.elems if isinstance(x, ptx.Vec) else (x,)
    got = gather(b, elems, t)
    if got.width != words:
        raise b.unsupported(inst, "operand size")
    return got


def _emit(b: Builder, inst: PtxInst, op: str, na: int, nb: int, nc: int, ma: str, mb: str) -> None:
    wide = inst.types[0] == "f64"
    t = "b64" if wide else "b32"
    d, x, y, c = inst.operands
    ra = operand(b, inst, x, na, t)._replace(mod=ma)
    rb = operand(b, inst, y, nb, t)._replace(mod=mb)
    rc = operand(b, inst, c, nc, t)
    out = b.r(nc)
    b.emit(op, out, (ra, rb, rc), attrs={"warp": 1})
    elems = d.elems if isinstance(d, ptx.Vec) else (d,)
    k = 2 if wide else 1
    for i, e in enumerate(elems):
        b.copy(b.dst(e, t), out._replace(sub=k * i, width=k))


RULES: dict[str, Rule] = {"ldmatrix": ldmatrix, "stmatrix": stmatrix, "movmatrix": movmatrix}
