"""wmma: fragments loaded from matrices in memory, multiplied and stored.

The element of a matrix that each register of a lane holds was measured on ptxas 13.0.88, by running its code with
numbered elements on sm_75, 80, 90 and 120. It is the same on all of them, except for one accumulator of sm_75. If eight
registers hold the data of four or two (f16), the others repeat them. The products are the SM's mma over parts of the
fragments, in ptxas's order, so that the sums round in the same way.
"""

from __future__ import annotations

from functools import lru_cache

from ir_format import ptx
from ir_format.model import RZ, Imm, Mem, Reg
from ir_format.ptx import PtxInst
from ir_format.ptx_types import TYPE_BITS
from ir_format.record import NamedTuple
from ir_format.typed import Final
from stages.lower.builder import Builder, Rule
from stages.lower.elements import vector_of
from stages.lower.math.common import NEG_RZ
from stages.lower.math.convert import f2fp
from stages.lower.math.half import NEG_RZ_LOW
from stages.lower.memory import resolve
from stages.lower.rules.integer import Val, wide
from stages.lower.rules.matrix import small_product
from stages.lower.rules.memory import access_op

#: shape, bits of an element, matrix (c is d too): bits of the row index | bits of the column index, lowest first. L:
#: bit of the lane, R: bit of the number of the register in the fragment, E: bit of the number of the element in the
#: register.
_FRAGMENTS: Final = """
m16n16k16 16 a : L2 L3 L4 R0    | E0 L0 L1 R1
m16n16k16 16 b : E0 L0 L1 R0    | L2 L3 L4 R1
m16n16k16 16 c : L2 L3 L4 R0    | E0 L0 L1 R1
m16n16k16 32 c : L2 L3 L4 R1    | R0 L0 L1 R2
m16n16k16 8 a  : L2 L3 L4 R0    | E0 E1 L0 L1
m16n16k16 8 b  : E0 E1 L0 L1    | L2 L3 L4 R0
m8n32k16 16 a  : L2 L3 L4       | E0 L0 L1 R0
m8n32k16 16 b  : E0 L0 L1 R1    | L2 L3 L4 R0 R2
m8n32k16 16 c  : E0 L0 L1       | L2 L3 L4 R0 R1
m8n32k16 32 c  : R0 L0 L1       | L2 L3 L4 R1 R2
m8n32k16 8 a   : L2 L3 L4       | E0 E1 L0 L1
m8n32k16 8 b   : E0 E1 L0 L1    | L2 L3 L4 R0 R1
m32n8k16 16 a  : L2 L3 L4 R0 R2 | E0 L0 L1 R1
m32n8k16 16 b  : E0 L0 L1 R0    | L2 L3 L4
m32n8k16 16 c  : L2 L3 L4 R0 R1 | E0 L0 L1
m32n8k16 32 c  : L2 L3 L4 R1 R2 | R0 L0 L1
m32n8k16 8 a   : L2 L3 L4 R0 R1 | E0 E1 L0 L1
m32n8k16 8 b   : E0 E1 L0 L1    | L2 L3 L4
m16n16k8 32 a  : L2 L3 L4 R0    | L0 L1 R1
m16n16k8 32 b  : L0 L1 R0       | L2 L3 L4 R1
m16n16k8 32 c  : L2 L3 L4 R1    | R0 L0 L1 R2
m8n8k4 64 a    : L2 L3 L4       | L0 L1
m8n8k4 64 b    : L0 L1          | L2 L3 L4
m8n8k4 64 c    : L2 L3 L4       | R0 L0 L1
m8n8k32 4 a    : L2 L3 L4       | E0 E1 E2 L0 L1
m8n8k32 4 b    : E0 E1 E2 L0 L1 | L2 L3 L4
m8n8k32 32 c   : L2 L3 L4       | R0 L0 L1
m8n8k128 1 a   : L2 L3 L4       | E0 E1 E2 E3 E4 L0 L1
m8n8k128 1 b   : E0 E1 E2 E3 E4 L0 L1 | L2 L3 L4
m8n8k128 32 c  : L2 L3 L4       | R0 L0 L1
"""
#: The integer accumulators of sm_75, which has no product of 16 rows of bytes.
_FRAGMENTS_75: Final = {("m8n32k16", "s32", "c"): "L2 L3 L4 | R0 L0 L1 R1 R2"}

#: shape, bits of a factor: the mma that make the product, each with the registers of its factors and (32-bit)
#: accumulators. ``b`` first: the product is made transposed.
_PRODUCTS: Final = """
m16n16k16 16 : a0-3 b0-1 c0-3, a0-3 b2-3 c4-7
m32n8k16 16  : a0-3 b0-1 c0-3, a4-7 b0-1 c4-7
m8n32k16 16  : b0-3 a0-1 c0-3, b4-7 a0-1 c4-7
m16n16k8 32  : a0-3 b0-1 c0-3, a0-3 b2-3 c4-7
m16n16k16 8  : a0-1 b0-0 c0-3, a0-1 b1-1 c4-7
m32n8k16 8   : a0-1 b0-0 c0-3, a2-3 b0-0 c4-7
m8n32k16 8   : b0-1 a0-0 c0-3, b2-3 a0-0 c4-7
m8n8k4 64    : a0-0 b0-0 c0-1
m8n8k32 4    : a0-0 b0-0 c0-1
m8n8k128 1   : a0-0 b0-0 c0-1
"""
_PRODUCTS_75: Final = """
m16n16k16 8  : a0-0 b0-0 c0-1, a1-1 b0-0 c2-3, a0-0 b1-1 c4-5, a1-1 b1-1 c6-7
m32n8k16 8   : a0-0 b0-0 c0-1, a1-1 b0-0 c2-3, a2-2 b0-0 c4-5, a3-3 b0-0 c6-7
m8n32k16 8   : a0-0 b0-0 c0-1, a0-0 b1-1 c2-3, a0-0 b2-2 c4-5, a0-0 b3-3 c6-7
"""
#: The shape of the integer mma that implements a shape, by the number of rows of its first factor.
_SMALL: Final = {"m8n8k32": "m8n8k32", "m8n8k128": "m8n8k128"}


class Part(NamedTuple):
    """One mma of a product: which fragment is the first factor, and the registers (first, count) of both factors and of
    the accumulator."""

    swapped: bool
    x: tuple[int, int]
    y: tuple[int, int]
    c: tuple[int, int]


@lru_cache(maxsize=1)
def fragments() -> dict[tuple[str, int, str], tuple[tuple[str, ...], tuple[str, ...]]]:
    """(shape, bits, matrix) -> sources of the bits of row and column."""
    out = {}
    for line in _FRAGMENTS.strip().splitlines():
        key, _, axes = line.partition(":")
        shape, bits, matrix = key.split()
        out[shape, int(bits), matrix] = _axes(axes)
    return out


def _axes(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    row, _, col = text.partition("|")
    return tuple(row.split()), tuple(col.split())


@lru_cache(maxsize=2)
def products(old: bool) -> dict[tuple[str, int], tuple[Part, ...]]:
    """(shape, bits) -> parts; ``old``: with those of sm_75."""
    out = {}
    for line in (_PRODUCTS + (_PRODUCTS_75 if old else "")).split("\n"):
        key, _, text = line.partition(":")
        if not text:
            continue
        shape, bits = key.split()
        parts = []
        for item in text.split(","):
            names = item.split()
            spans = [
                (int(n[1:].partition("-")[0]), int(n.partition("-")[2]) - int(n[1:].partition("-")[0]) + 1)
                for n in names
            ]
            parts.append(Part(names[0][0] == "b", *spans))
        out[shape, int(bits)] = tuple(parts)
    return out


# --------------------------------------------------------------------------- memory


class Axis(NamedTuple):
    """An index of the matrix: shifts of (lane >> 2) and (lane & 3) in it (-1: absent), and the places of register and
    element bits."""

    group: int
    thread: int
    registers: tuple[tuple[int, int], ...]  # (bit of the register number, bit of the index)
    elements: tuple[tuple[int, int], ...]

    def at(self, register: int, element: int = 0) -> int:
        """The part of the index that depends on register and element."""
        out = 0
        for number, place in self.registers:
            out |= (register >> number & 1) << place
        for number, place in self.elements:
            out |= (element >> number & 1) << place
        return out


def _axis(sources: tuple[str, ...]) -> Axis:
    group = sources.index("L2") if "L2" in sources else -1
    thread = sources.index("L0") if "L0" in sources else -1
    registers = tuple((int(s[1:]), place) for place, s in enumerate(sources) if s[0] == "R")
    elements = tuple((int(s[1:]), place) for place, s in enumerate(sources) if s[0] == "E")
    return Axis(group, thread, registers, elements)


class Matrix(NamedTuple):
    """The layout of a fragment in memory. With ``movm`` each register is a word of the transposed 8x8 tile; with
    ``bytewise`` its bytes are a stride apart."""

    contiguous: Axis
    strided: Axis
    bits: int
    movm: bool
    bytewise: bool
    registers: int  # distinct ones


def _shape(b: Builder, inst: PtxInst) -> str:
    shape = next((m for m in inst.mods if m[0] == "m" and m[1:2].isdigit()), "")
    if not shape:
        raise b.unsupported(inst)
    return shape


def _matrix(b: Builder, inst: PtxInst, name: str) -> tuple[Matrix, int]:
    """The layout of the fragment in memory, and the default stride: elements from one row (or column) to the next."""
    shape, t = _shape(b, inst), inst.types[0]
    bits = TYPE_BITS.get(t, 0)
    key = (shape, t, name)
    axes = (
        _axes(_FRAGMENTS_75[key])
        if not b.has("mma-16816") and key in _FRAGMENTS_75
        else fragments().get((shape, bits, name))
    )
    if axes is None or (not b.has("mma-16816") and t in ("bf16", "tf32", "f64")):
        raise b.unsupported(inst)
    row, col = axes
    by_row = next((m for m in inst.mods if m in ("row", "col")), "row") == "row"
    natural = 1 << len(col if by_row else row)
    near, far = (col, row) if by_row else (row, col)
    movm = bytewise = False
    if "E0" in far:
        if bits == 16:
            near, far = ("E0", "L0", "L1", *near[3:]), ("L2", "L3", "L4", *far[3:])
            movm = True
        elif bits == 8:
            bytewise = True
        else:
            raise b.unsupported(inst)
    numbers = [int(s[1:]) for s in (*row, *col) if s[0] == "R"]
    return Matrix(_axis(near), _axis(far), bits, movm, bytewise, 1 << len(numbers)), natural


def _lane_part(b: Builder, axis: Axis, scale: int) -> tuple[Reg, int]:
    """The lane's share of an index as (register, factor): ``scale`` times it is register times factor."""
    lane = b.src(ptx.SReg("%laneid"), "u32")
    part = b.r()
    if axis.group >= 0:
        b.emit("SHF.R.U32.HI", part, (RZ, Imm("I", 2), lane))
        return part, scale << axis.group
    b.emit("LOP3.LUT", part, (b.in_reg(lane), Imm("I", 3), RZ, Imm("I", 0xC0)))
    return part, scale << axis.thread


class Places:
    """Addresses of the words of a fragment: ``[lane part + strided part of the register + offset]``."""

    def __init__(self, b: Builder, inst: PtxInst, m: Matrix, at: Mem, stride: Val) -> None:
        self.b, self.m = b, m
        self.at = at
        self.wide = at.desc is not None or (at.base is not None and at.base.width == 2)
        self.stride = stride
        self.whole: dict[int, Mem] = {}
        base = at.base if at.base is not None else Reg("R", -1, 0, 2 if self.wide else 1)
        near, factor = _lane_part(b, m.contiguous, m.bits)
        base = self._plus(near, Imm("I", factor // 8), base)
        far, factor = _lane_part(b, m.strided, 1)
        self.start = self._plus(*self._step(far, factor), base)

    def _step(self, index: Reg, factor: int) -> tuple[Reg, Val]:
        """``index * factor`` strides in bytes, as two factors."""
        b, bits = self.b, self.m.bits
        if type(self.stride) is Imm:
            return index, Imm("I", self.stride.value * bits // 8 * factor)
        scaled = factor * max(1, bits // 8)
        if scaled > 1:
            k = b.r()
            b.emit("SHF.L.U32", k, (index, Imm("I", scaled.bit_length() - 1), RZ))
            index = k
        return index, self.bytes_of_stride()

    def bytes_of_stride(self) -> Val:
        """The stride in bytes over the element's (at least one)."""
        b, bits = self.b, self.m.bits
        if type(self.stride) is Imm or bits >= 8:
            return self.stride
        k = b.r()
        b.emit("SHF.R.U32.HI", k, (RZ, Imm("I", {4: 1, 1: 3}[bits]), self.stride))
        return k

    def _plus(self, x: Reg, y: Val, base: Reg) -> Reg:
        b = self.b
        if y == Imm("I", 0):
            return base
        out = b.r(2 if self.wide else 1)
        if self.wide:
            wide(b, False, out, x, y, base)
        else:
            b.emit("IMAD", out, (x, y, base))
        return out

    def word(self, register: int, element: int = 0) -> Mem:
        """The address of a register's word, or of one of its bytes."""
        b, m = self.b, self.m
        near = m.contiguous.at(register, element) * m.bits // 8
        far = m.strided.at(register, element)
        if type(self.stride) is Imm:
            offset = self.at.offset + near + far * (self.stride.value * m.bits // 8)
            if -(1 << 23) <= offset < 1 << 23:
                return self.at._replace(base=self.start, offset=offset)
        found = self.whole.get(far)
        if found is None:
            base = self.start
            if far:
                factor, size = far, max(1, m.bits // 8)
                if type(self.stride) is Imm:
                    base = self._plus(b.in_reg(Imm("I", far)), Imm("I", self.stride.value * m.bits // 8), base)
                else:
                    base = self._plus(b.in_reg(self.bytes_of_stride()), Imm("I", factor * size), base)
            found = self.at._replace(base=base)
            self.whole[far] = found
        return found._replace(offset=found.offset + near)


def _places(
    b: Builder, inst: PtxInst, m: Matrix, natural: int, address: ptx.Operand, stride: ptx.Operand | None
) -> tuple[Places, str]:
    where = resolve(b, inst, address)
    if not isinstance(where.at, Mem) or where.space not in ("global", "generic", "shared"):
        raise b.unsupported(inst, "address")
    ld = b.src(stride, "u32") if stride is not None else Imm("I", natural)
    return Places(b, inst, m, where.at, ld), where.space


def _adjacent(m: Matrix) -> bool:
    """Whether two registers are adjacent in memory: one access for both."""
    return m.bits >= 32 and m.registers > 1 and (0, 0) in m.contiguous.registers


def load(b: Builder, inst: PtxInst) -> None:
    """wmma.load of a, b or c."""
    name = next(m for m in inst.mods if m in ("a", "b", "c"))
    m, natural = _matrix(b, inst, name)
    elems = vector_of(inst.operands[0])
    words = 2 if m.bits == 64 else 1
    places, space = _places(b, inst, m, natural, inst.operands[1], inst.operands[2] if len(inst.operands) > 2 else None)
    got: list[Reg] = []
    if _adjacent(m):
        op = access_op(b, inst, space, 8 * words, False, True)
        for k in range(0, m.registers, 2):
            both = b.r(2 * words)
            b.emit(op, both, (places.word(k),))
            got += [both._replace(sub=words * i, width=words) for i in range(2)]
    elif m.bytewise:
        op = access_op(b, inst, space, 1, False, True)
        for k in range(m.registers):
            parts = [b.r() for _ in range(4)]
            for e, part in enumerate(parts):
                b.emit(op, part, (places.word(k, e),))
            lo, hi, whole = b.r(), b.r(), b.r()
            b.emit("PRMT", lo, (parts[0], Imm("I", 0x0040), parts[1]))
            b.emit("PRMT", hi, (parts[2], Imm("I", 0x0040), parts[3]))
            b.emit("PRMT", whole, (lo, Imm("I", 0x5410), hi))
            got.append(whole)
    else:
        op = access_op(b, inst, space, 4 * words, False, True)
        for k in range(m.registers):
            word = b.r(words)
            b.emit(op, word, (places.word(k),))
            got.append(word)
    if m.movm:
        got = [_transposed(b, x) for x in got]
    if len(elems) % len(got):
        raise b.unsupported(inst)
    for i, to in enumerate(elems):
        if not isinstance(to, ptx.Sink):
            b.copy(b.dst(to, "b64" if words == 2 else "b32"), got[i % len(got)])


def _transposed(b: Builder, x: Reg) -> Reg:
    out = b.r()
    b.emit("MOVM.16.MT88", out, (x,), attrs={"warp": 1})
    return out


def store(b: Builder, inst: PtxInst) -> None:
    """wmma.store.d"""
    m, natural = _matrix(b, inst, "c")
    elems = vector_of(inst.operands[1])
    words = 2 if m.bits == 64 else 1
    if len(elems) != m.registers:
        raise b.unsupported(inst)
    places, space = _places(b, inst, m, natural, inst.operands[0], inst.operands[2] if len(inst.operands) > 2 else None)
    values = [b.in_reg(b.src(e, "b64" if words == 2 else "b32"), words) for e in elems]
    if m.movm:
        values = [_transposed(b, x) for x in values]
    step = 2 if _adjacent(m) else 1
    op = access_op(b, inst, space, 4 * words * step, False, False)
    for k in range(0, m.registers, step):
        b.emit(op, (), (places.word(k), _packed(b, values[k : k + step])))


def _packed(b: Builder, words: list[Reg]) -> Reg:
    """Registers side by side."""
    if len(words) == 1:
        return words[0]
    out = b.r(sum(w.width for w in words))
    at = 0
    for w in words:
        b.copy(out._replace(sub=at, width=w.width), w)
        at += w.width
    return out


# --------------------------------------------------------------------------- products


def product(b: Builder, inst: PtxInst) -> None:
    """wmma.mma"""
    shape = _shape(b, inst)
    types = inst.types
    dt, ct = types[0], types[-1]
    at, bt = (types[1], types[2]) if len(types) == 4 else ("f16", "f16")
    bits = TYPE_BITS.get(at, 0)
    parts = products(not b.has("mma-16816")).get((shape, bits))
    floating = bits in (16, 32)
    if (
        parts is None
        or at != bt
        or (not b.has("mma-16816") and at in ("bf16", "tf32", "f64"))
        or (floating and inst.has("satfinite"))
    ):
        raise b.unsupported(inst)
    d, x, y, c = (vector_of(o) for o in inst.operands)
    word = "b64" if bits == 64 else "b32"
    fa, fb = ([b.in_reg(b.src(e, word), b.words(word)) for e in v] for v in (x, y))
    fc = [b.in_reg(b.src(e, "b64" if ct == "f64" else "b32"), 2 if ct == "f64" else 1) for e in c]
    inner = "f32" if "f32" in (dt, ct) else ct  # the accumulators of the unit
    if inner == "f32" and ct == "f16":
        fc = [half for pair in fc for half in _halves(b, pair)]
    scale = 2 if inner == "f16" else 1
    jobs = []
    for p in parts:  # all sources are copied before the first result is written
        first, second = (fb, fa) if p.swapped else (fa, fb)
        low, n = p.c[0] // scale, p.c[1] // scale
        jobs.append((first[p.x[0] : sum(p.x)], second[p.y[0] : sum(p.y)], _packed(b, fc[low : low + n])))
    out: list[Reg] = []
    for px, py, pc in jobs:
        if floating:
            out += _split(_floating(b, at, inner, px, py, pc), 1)
        elif bits == 64:
            rnd = next((f".{m.upper()}" for m in inst.mods if m in ("rm", "rp", "rz")), "")
            r = b.r(4)
            b.emit(("DMMA.884" if b.has("dmma-884") else "DMMA.8x8x4") + rnd, r, (px[0], py[0], pc), attrs={"warp": 1})
            out += _split(r, 2)
        else:
            small = _SMALL.get(shape) or ("m8n8k16" if len(px) == 1 else "m16n8k16")
            out += small_product(b, inst, small, at, bt, _packed(b, px), _packed(b, py), pc)
    if inner == "f32" and dt == "f16":
        out = [_joined(b, out[k], out[k + 1]) for k in range(0, len(out), 2)]
    if len(out) != len(d):
        raise b.unsupported(inst)
    for e, r in zip(d, out, strict=True):
        if not isinstance(e, ptx.Sink):
            b.copy(b.dst(e, "b64" if dt == "f64" else "b32"), r)


def _split(x: Reg, width: int) -> list[Reg]:
    return [x._replace(sub=x.sub + k, width=width) for k in range(0, x.width, width)]


def _floating(b: Builder, at: str, acc: str, x: list[Reg], y: list[Reg], c: Reg) -> Reg:
    """16 rows by 8 columns of f16, bf16 or tf32: in one instruction, or in steps along k as ptxas makes them."""
    kind = {"f16": "", "bf16": ".BF16", "tf32": ".TF32"}[at]
    steps = [(x, y)]
    name = "HMMA.16816"
    if at == "tf32" or not b.has("mma-16816"):
        name = "HMMA.1684" if at == "tf32" else "HMMA.1688"
        steps = [(x[:2], y[:1]), (x[2:], y[1:])]
    for px, py in steps:
        out = b.r(c.width)
        b.emit(f"{name}.{acc.upper()}{kind}", out, (_packed(b, px), _packed(b, py), c), attrs={"warp": 1})
        c = out
    return c


def _halves(b: Builder, x: Reg) -> list[Reg]:
    """The two f16 of a word as f32."""
    out = [b.r(), b.r()]
    for d, half in zip(out, ("H0_H0", "H1_H1"), strict=True):
        v = x._replace(mod=half)
        b.emit("HADD2.F32", d, (NEG_RZ, v) if b.has("half-pair-signed-zero") else (v, NEG_RZ_LOW))
    return out


def _joined(b: Builder, low: Reg, high: Reg) -> Reg:
    """Two f32 rounded to f16 in one word."""
    out = b.r()
    if b.has("pack-halves"):
        f2fp(b, out, "F16", "F32", "PACK_AB", (high, low))
        return out
    halves = [b.r(), b.r()]
    for d, x in zip(halves, (low, high), strict=True):
        b.emit("F2F.F16.F32", d, (x,))
    b.emit("PRMT", out, (halves[0], Imm("I", 0x5410), halves[1]))
    return out


def wmma(b: Builder, inst: PtxInst) -> None:
    """wmma.load, wmma.store and wmma.mma"""
    b.ctx.unit.attrs["wmma_used"] = 1
    rule = next((r for name, r in (("load", load), ("store", store), ("mma", product)) if inst.has(name)), None)
    if rule is None:
        raise b.unsupported(inst)
    rule(b, inst)


RULES: dict[str, Rule] = {"wmma": wmma}
