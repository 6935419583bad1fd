"""mma.m8n8k4 of halves from sm_80 on, which has no such instruction: two products of 16x8x8 hold the four small
products in their diagonal blocks.

Eight threads compute one product of 8x8x4 (threads 4q..4q+3 and 16 above them, q = 0..3). Pass p puts the factors of
q = 2p into rows 0 to 7 and k 0 to 3, those of q = 2p + 1 into rows 8 to 15 and k 4 to 7, and zeros elsewhere. Shuffles
move the factors to the threads that the instruction reads them from, and the results back; then the accumulator is
added. The layouts are those of the PTX manual's figures.
"""

from __future__ import annotations

from ir_format import ptx
from ir_format.model import PT, RZ, Imm, Name, Reg
from ir_format.ptx import PtxInst
from stages.lower.builder import Builder
from stages.lower.elements import vector_of
from stages.lower.rules.integer import compare, logic
from stages.lower.rules.matrix import operand

_ALL = Imm("I", 0x1F)  # any lane of the warp


def _shuffle(b: Builder, v: Reg, lane: Reg) -> Reg:
    d = b.r()
    b.emit("SHFL.IDX", (PT, d), (v, lane, _ALL), attrs={"warp": 1})
    return d


def _bits(b: Builder, x: Reg, mask: int, left: int = 0) -> Reg:
    """``(x & mask) << left``, to the right for a negative number."""
    d = b.r()
    logic(b, d, 0xC0, x, Imm("I", mask))
    if not left:
        return d
    out = b.r()
    b.emit(
        "SHF.L.U32" if left > 0 else "SHF.R.U32.HI",
        out,
        (d, Imm("I", left), RZ) if left > 0 else (RZ, Imm("I", -left), d),
    )
    return out


def _sum(b: Builder, *parts: Reg | Imm) -> Reg:
    d = b.r()
    x, y, z = sorted((*parts, *([RZ] * (3 - len(parts)))), key=lambda v: type(v) is Imm)
    b.emit("IADD3", d, (x, z, y))  # a number goes into the middle
    return d


def _pick(b: Builder, p: Reg, yes: Reg, no: Reg) -> Reg:
    d = b.r()
    b.select(d, yes, no, p)
    return d


class _Lanes:
    """Facts about the lane: ``upper`` if its product is in the second diagonal block; ``base`` is 4 * (q of the block
    that it feeds, less 2p)."""

    __slots__ = ("b", "bit0", "bit1", "bit4", "first", "g", "lane", "second", "t")

    def __init__(self, b: Builder) -> None:
        self.b = b
        self.lane = b.r()
        b.emit("S2R", self.lane, (Name("N", "SR_LANEID"),))
        self.t = _bits(b, self.lane, 3)
        self.g = _bits(b, self.lane, 0x1C, -2)
        self.bit0, self.bit1, self.bit4 = (self.has(1 << k) for k in (0, 1, 4))
        self.second = self.bit1  # threads 2 and 3 of a group feed k 4 to 7
        self.first = b.not_(self.bit1)

    def has(self, mask: int) -> Reg:
        return compare(self.b, "NE", "u32", _bits(self.b, self.lane, mask), Imm("I", 0))[0]


def _factor(b: Builder, w: _Lanes, x: Reg, one_line: bool, p: int) -> Reg:
    """The two halves (k = 2t', 2t' + 1 of row or column g) that this thread feeds in pass ``p``, from the threads of q
    = 2p or 2p + 1.

    ``one_line``: a thread of the factor holds a whole row of a (column of b), else one k of four of them."""
    regs = [x._replace(sub=x.sub + i, width=1, mod="") for i in range(2)]
    block = _sum(b, _bits(b, w.lane, 2, 1), _bits(b, w.g, 4, 2), Imm("I", 8 * p))  # 4q + 16 for the upper four
    if one_line:
        source = _sum(b, block, _bits(b, w.g, 3))
        return _pick(b, w.bit0, _shuffle(b, regs[1], source), _shuffle(b, regs[0], source))
    halves = []
    upper = compare(b, "NE", "u32", _bits(b, w.g, 2), Imm("I", 0))[0]
    for k in range(2):
        source = _sum(b, block, _bits(b, w.lane, 1, 1), Imm("I", k))
        halves.append(_pick(b, upper, _shuffle(b, regs[1], source), _shuffle(b, regs[0], source)))
    odd = compare(b, "NE", "u32", _bits(b, w.g, 1), Imm("I", 0))[0]
    both = []
    for how in (0x5410, 0x7632):
        d = b.r()
        b.emit("PRMT", d, (halves[0], Imm("I", how), halves[1]))
        both.append(d)
    return _pick(b, odd, both[1], both[0])


def _passes(b: Builder, w: _Lanes, inst: PtxInst, ra: Reg, rb: Reg, dt: str) -> list[Reg]:
    layouts = [m for m in inst.mods if m in ("row", "col")]
    out = []
    for p in range(2):
        a = _factor(b, w, ra, layouts[0] == "row", p)
        column = _factor(b, w, rb, layouts[1] == "col", p)
        pair = b.r(2)
        b.select(b.lo_r(pair), a, RZ, w.first)
        b.select(b.hi_r(pair), a, RZ, w.second)
        n = 4 if dt == "f32" else 2
        d = b.r(n)
        b.emit(f"HMMA.1688.{dt.upper()}", d, (pair, column, Reg("R", -1, 0, n)), attrs={"warp": 1})
        out.append(d)
    return out


def _back(b: Builder, w: _Lanes, made: list[Reg], source: Reg, odd_q: Reg, high_q: Reg, word: int, half: int) -> Reg:
    """Word ``word`` of a block's results from lane ``source``: of the pass and the block that this thread's own q
    names; ``half``: words of a block."""
    got = [[_shuffle(b, d._replace(sub=d.sub + half * k + word, width=1), source) for k in range(2)] for d in made]
    one, two = (_pick(b, odd_q, pair[1], pair[0]) for pair in got)
    return _pick(b, high_q, two, one)


def quads(b: Builder, inst: PtxInst, dt: str, ct: str) -> None:
    """The whole instruction."""
    d, x, y, c = inst.operands
    ra, rb = operand(b, inst, x, 2, "b32"), operand(b, inst, y, 2, "b32")
    acc = [b.in_reg(b.src(e, "b32")) for e in vector_of(c)]
    w = _Lanes(b)
    made = _passes(b, w, inst, ra, rb, dt)
    odd_q, high_q = w.has(4), w.has(8)
    upper = _bits(b, w.lane, 16, -2)  # 4 for threads of rows 4 to 7
    out: list[Reg] = []
    if dt == "f16":
        row4 = _sum(b, _bits(b, w.lane, 3, 2), _bits(b, w.lane, 16))
        for j in range(4):
            v = _back(b, w, made, _sum(b, row4, Imm("I", j)), odd_q, high_q, 0, 1)
            total = b.r()
            b.emit("HADD2", total, (v, acc[j]))
            out.append(total)
    else:
        for i in range(0, 8, 2):
            row = _sum(b, _bits(b, w.lane, 1), upper, Imm("I", i & 2))
            row4 = b.r()
            b.emit("SHF.L.U32", row4, (row, Imm("I", 2), RZ))
            source = _sum(b, row4, _bits(b, w.lane, 2, -1), Imm("I", (i & 4) >> 1))
            added = _accumulator(b, w, acc, i) if ct == "f16" else acc[i : i + 2]
            for k in range(2):
                v = _back(b, w, made, source, odd_q, high_q, k, 2)
                total = b.r()
                b.emit("FADD", total, (v, added[k]))
                out.append(total)
    for to, value in zip(vector_of(d), out, strict=True):
        if not isinstance(to, ptx.Sink):
            b.copy(b.dst(to, "b32"), value)


def _accumulator(b: Builder, w: _Lanes, acc: list[Reg], i: int) -> list[Reg]:
    """Elements ``i`` and ``i + 1`` of an f32 result from an accumulator of halves, whose threads hold whole rows."""
    source = _sum(b, _bits(b, w.lane, 0x1C), _bits(b, w.lane, 1), Imm("I", i & 2))
    j = (i & 4) >> 1
    word = _pick(b, w.bit1, _shuffle(b, acc[j + 1], source), _shuffle(b, acc[j], source))
    out = []
    for half in ("H0_H0", "H1_H1"):
        d = b.r()
        b.emit("HADD2.F32", d, (Reg("R", -1, 0, 1, 1), word._replace(mod=half)))
        out.append(d)
    return out
