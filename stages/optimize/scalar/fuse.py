"""Peephole rules for two instructions that one can do, and for addresses that fit [R+imm]. Each rule returns the new
instruction or None.

A product or sum is merged into its reader only if nothing else reads it (a shift costs nothing more in LEA). An address
is folded for any number of readers, because the sum dies when all of them have folded it.
"""

from __future__ import annotations

from ir_format.features import has
from ir_format.isa import facts
from ir_format.model import ABS, NEG, NOT_PT, PT, RZ, RZ2, ZERO, Const, Imm, Inst, Mem, Operand, Reg
from ir_format.typed import TYPE_CHECKING, Final
from stages.optimize.evaluate.operands import WORD, value_of
from stages.optimize.scalar.fold import negated, plain_iadd3, plain_imad, plus_constant, split_terms
from stages.optimize.scalar.wide_sums import split_sum

if TYPE_CHECKING:
    from stages.optimize.scalar.combine import Combiner

_MINUS_ZERO = RZ._replace(flags=NEG)
_MINUS_ZERO_64 = RZ2._replace(flags=NEG)
_SCALING: Final = frozenset(
    op for op, space in (*facts.loads().items(), *facts.stores().items(), *facts.atomics().items()) if space == "shared"
) - facts.having("convergent")
#: Sum -> the operations of its type that bring their result between 0 and 1.
_SATURATING: Final = {sum_: (fused, product, sum_) for product, (sum_, fused) in facts.contractions().items()}
_SCALES = {2: "X4", 3: "X8", 4: "X16"}
OFFSET_MIN, OFFSET_END = -(1 << 23), 1 << 23  # signed 24-bit byte offset (measured B3)


def fuse_iadd3(s: Combiner, i: Inst) -> Inst | None:
    """x * y + z -> IMAD; (x << n) + z -> LEA; (x >> n) + z -> LEA.HI; (x + y) + z -> three-input IADD3."""
    if not plain_iadd3(i):
        return None
    terms = [o for o in i.srcs[:3] if o != RZ]
    if len(terms) != 2:
        return None
    for x, z in ((terms[0], terms[1]), (terms[1], terms[0])):
        if type(x) is not Reg or x.flags & ~NEG or x.mod:
            continue
        for take in (_take_imad, _take_shift, _take_high, _take_sum) if s.one_use(x) else (_take_shift,):
            new = take(s, i, x, z)
            if new is not None:
                return new
    return None


def _take_imad(s: Combiner, i: Inst, x: Reg, z: Operand) -> Inst | None:
    m = s.made_by(x, "IMAD")
    if m is None or x.flags or not plain_imad(m) or m.srcs[2] != RZ:
        return None
    if not s.unchanged(m, *m.srcs[:2]):
        return None
    return s.build(i, "IMAD", m.mods, (i.dsts[0],), (m.srcs[0], m.srcs[1], z))


def _take_shift(s: Combiner, i: Inst, x: Reg, z: Operand) -> Inst | None:
    m = s.made_by(x, "SHF")
    if m is None or x.flags or m.mods != ("L", "U32") or m.srcs[2] != RZ or not s.unchanged(m, m.srcs[0]):
        return None
    n = value_of(m.srcs[1])
    if n is None or not 0 < n < 32 or type(m.srcs[0]) is not Reg:
        return None
    return s.build(i, "LEA", (), (i.dsts[0],), (m.srcs[0], z, Imm("I", n)))


def _take_high(s: Combiner, i: Inst, x: Reg, z: Operand) -> Inst | None:
    """z + (w >> n), w signed or not: the upper word of w << (32 - n), extended."""
    m = s.made_by(x, "SHF")
    if (
        m is None
        or x.flags
        or m.mods not in (("R", "U32", "HI"), ("R", "S32", "HI"))
        or m.srcs[0] != RZ
        or not s.unchanged(m, m.srcs[2])
    ):
        return None
    n = value_of(m.srcs[1])
    if n is None or not 0 < n < 32 or type(m.srcs[2]) is not Reg or m.srcs[2].flags:
        return None
    if "U32" in m.mods:
        return s.build(i, "LEA", ("HI",), (i.dsts[0],), (m.srcs[2], z, RZ, Imm("I", 32 - n)))
    return s.build(i, "LEA", ("HI", "SX32"), (i.dsts[0],), (m.srcs[2], z, Imm("I", 32 - n)))


def _take_sum(s: Combiner, i: Inst, x: Reg, z: Operand) -> Inst | None:
    m = s.made_by(x, "IADD3")
    if m is None or not plain_iadd3(m):
        return None
    inner = [o for o in m.srcs[:3] if o != RZ]
    if len(inner) > 2 or not s.unchanged(m, *inner):
        return None
    if x.flags & NEG:
        turned = [negated(o) for o in inner]
        if any(o is None for o in turned):
            return None
        inner = [o for o in turned if o is not None]
    regs, consts = split_terms([*inner, z])
    total = sum(consts) & WORD
    if total:
        regs = [*regs[:1], Imm("I", total), *regs[1:]]  # an immediate is encoded in the second place
    regs += [RZ] * (3 - len(regs))
    return s.build(i, "IADD3", (), i.dsts, tuple(regs)) if len(regs) == 3 else None


# ------------------------------------------------------------------ addresses


def fold_address(s: Combiner, i: Inst) -> Inst | None:
    """[a + imm] with a base that is a sum with a constant."""
    for where, ops in (("srcs", i.srcs), ("dsts", i.dsts)):
        for n, o in enumerate(ops):
            if type(o) is not Mem:
                continue
            new = _address(s, o) or (_scaled(s, o) if i.op in _SCALING and has(s.sm, "shared-index-scaled") else None)
            if new is None:
                continue
            srcs, dsts = i.srcs, i.dsts
            if where == "srcs":
                srcs = (*srcs[:n], new, *srcs[n + 1 :])
            else:
                dsts = (*dsts[:n], new, *dsts[n + 1 :])
            made = Inst(i.op, i.mods, dsts, srcs, i.guard, i.line, i.loc, None, i.uses, i.defs, i.attrs)
            if s.legal(made):
                return made
    return None


def _address(s: Combiner, m: Mem) -> Mem | None:
    base = m.base
    if base is None or base.num == ZERO or base.flags or base.mod or m.sym:
        return None
    if base.width == 2:
        parts = split_sum(s, base)
        addend = parts[1].whole if parts is not None else None
        if parts is None or type(addend) is not Imm:
            return None
        a: Operand | None = parts[0].whole
        off = (addend.value ^ 1 << 63) - (1 << 63)
    else:
        sum_ = s.made_by(base, "IADD3")
        if sum_ is None or not plain_iadd3(sum_):
            return None
        regs, consts = split_terms(sum_.srcs[:3])
        if len(regs) == 2:
            return _around_sum(s, m, sum_, regs[0], regs[1], sum(consts))
        if len(regs) != 1 or len(consts) != 1 or not s.unchanged(sum_, regs[0]):
            return None
        a = regs[0]
        off = (consts[0] ^ 1 << 31) - (1 << 31)
    off += m.offset
    if type(a) is not Reg or a.flags or a.mod or not OFFSET_MIN <= off < OFFSET_END:
        return None
    return m._replace(base=a, offset=off)


def _scaled(s: Combiner, m: Mem) -> Mem | None:
    """[(x << n) + constant] in shared memory: the access shifts (to sm_89; ptxas does so whatever x is: measured)."""
    base = m.base
    if base is None or base.num == ZERO or base.flags or base.mod or base.width != 1 or m.sym or m.ubase is not None:
        return None
    i, off = s.made_by(base, "SHF"), 0
    if i is not None:
        if i.mods != ("L", "U32") or i.srcs[2] != RZ:
            return None
        n = value_of(i.srcs[1])
    else:
        i = s.made_by(base, "LEA")
        if i is None or i.mods or len(i.dsts) > 1 and i.dsts[1] != PT:
            return None
        more, n = value_of(i.srcs[1]), value_of(i.srcs[-2] if type(i.srcs[-1]) is Reg else i.srcs[-1])
        if more is None:
            return None
        off = (more ^ 1 << 31) - (1 << 31)
    x = i.srcs[0]
    off += m.offset
    if (
        n not in _SCALES
        or type(x) is not Reg
        or x.num == ZERO
        or x.flags
        or x.mod
        or not s.unchanged(i, x)
        or not OFFSET_MIN <= off < OFFSET_END
    ):
        return None
    return m._replace(base=x._replace(mod=_SCALES[n]), offset=off)


def _around_sum(s: Combiner, m: Mem, sum_: Inst, x: Operand, y: Operand, more: int) -> Mem | None:
    """[x + y + more], one of x and y perhaps another sum with a constant: where the sum of what is left is at hand
    already, the offset takes the constants."""
    if type(x) is not Reg or type(y) is not Reg or x.flags | y.flags or not s.unchanged(sum_, x, y):
        return None
    ways = [(x, y, more)] if more else []
    for t, b in ((x, y), (y, x)):
        inner = plus_constant(s, t)
        if inner is not None:
            ways.append((inner[0], b, more + inner[1]))
    for a, b, total in ways:
        got = s.earlier(a, b)
        off = (total & WORD ^ 1 << 31) - (1 << 31) + m.offset
        if got is not None and OFFSET_MIN <= off < OFFSET_END:
            return m._replace(base=got, offset=off)
    return None


def take_sign(s: Combiner, i: Inst) -> Inst | None:
    """-x and |x|, which lowering makes by adding -0, in readers that do it themselves. Its effect on a NaN
    cannot be observed after them. .XORSIGN reads the sign of what |x| is made of: not of another value."""
    if "XORSIGN" in i.mods:
        return None
    for n, o in enumerate(i.srcs):
        if type(o) is not Reg or o.file != "R" or o.num == ZERO or o.mod:
            continue
        if o.width == 1:
            m = s.made_by(o, "FADD")
            if m is None or m.mods or m.srcs[1] != _MINUS_ZERO:
                continue
            x = m.srcs[0]
        else:
            m = s.made_by(o, "DADD")
            if m is None or m.mods or m.srcs[0] != _MINUS_ZERO_64 or m.dsts[0] != o._replace(flags=0):
                continue
            x = m.srcs[1]
        if type(x) is not Reg or x.num == ZERO or not x.flags or x.flags & ~(NEG | ABS) or not s.unchanged(m, x):
            continue
        flags = o.flags if o.flags & ABS else x.flags ^ o.flags
        new = s.build(i, i.op, i.mods, i.dsts, (*i.srcs[:n], x._replace(flags=flags), *i.srcs[n + 1 :]))
        if new is not None:
            return new
    return None


def take_saturation(s: Combiner, i: Inst) -> Inst | None:
    """A result that is only read to be brought between 0 and 1: the instruction that makes it does that."""
    if i.mods != ("SAT",) or i.guard is not None:
        return None
    zero = next((n for n in (0, 1) if i.srcs[n] in (RZ, _MINUS_ZERO)), -1)
    x = i.srcs[1 - zero] if zero >= 0 else None
    if type(x) is not Reg or x.flags or x.mod or not s.one_use(x):
        return None
    for op in _SATURATING.get(i.op, ()):
        m = s.made_by(x, op)
        if m is not None and not m.mods and m.guard is None and s.unchanged(m, *m.srcs[:3]):
            return s.build(i, op, ("SAT",), i.dsts, m.srcs)
    return None


_ONE: Final = 0x3F800000


def saturate(s: Combiner, i: Inst) -> Inst | None:
    """The smaller of 1 and of the greater of 0 and a value: .SAT (a NaN becomes 0 either way)."""
    x = i.srcs[0]
    if i.mods or i.srcs[2] != PT or value_of(i.srcs[1]) != _ONE or type(x) is not Reg or x.flags or not s.one_use(x):
        return None
    m = s.made_by(x, "FMNMX")
    if m is None or m.mods or m.srcs[2] != NOT_PT or value_of(m.srcs[1]) != 0 or not s.unchanged(m, m.srcs[0]):
        return None
    return s.build(i, "FADD", ("SAT",), i.dsts[:1], (m.srcs[0], RZ))


# ------------------------------------------------------------------ logic


def fuse_lop3(s: Combiner, i: Inst) -> Inst | None:
    """f(g(a, b), c) of at most three different inputs: one LOP3."""
    if i.mods != ("LUT",) or i.dsts[0] != PT or type(i.srcs[3]) is not Imm:
        return None
    outer = i.srcs[3].value & 0xFF
    for n in range(3):
        x = i.srcs[n]
        if type(x) is not Reg or x.flags or not s.one_use(x):
            continue
        m = s.made_by(x, "LOP3")
        if m is None or m.mods != ("LUT",) or m.dsts[0] != PT or type(m.srcs[3]) is not Imm:
            continue
        ins: list[Operand] = []
        for o in (*m.srcs[:3], *(o for k, o in enumerate(i.srcs[:3]) if k != n)):
            if o != RZ and o not in ins:
                ins.append(o)
        if len(ins) > 3 or not s.unchanged(m, *ins[: len({o for o in m.srcs[:3] if o != RZ})]):
            continue
        ins.sort(key=lambda o: type(o) is not Reg)  # registers first; an immediate must be second
        if len(ins) == 3 and type(ins[2]) is not Reg:
            ins[1], ins[2] = ins[2], ins[1]
        inner = m.srcs[3].value & 0xFF
        lut = 0
        for row in range(8):
            bits = {o: row >> (2 - k) & 1 for k, o in enumerate(ins)}
            g = _row(m.srcs[:3], bits)
            mid = inner >> g & 1
            lut |= (outer >> _row(tuple(o if k != n else None for k, o in enumerate(i.srcs[:3])), bits, mid) & 1) << row
        new = s.build(i, "LOP3", ("LUT",), i.dsts, (*ins, *[RZ] * (3 - len(ins)), Imm("I", lut)))
        if new is not None:
            return new
    return None


#: LOP3's tables of a | b and a ^ b.
_EITHER: Final = (0xFC, 0x3C)


def funnel_shift(s: Combiner, i: Inst) -> Inst | None:
    """x << n joined with y >> 32 - n (a rotation where x is y): one shift of the pair, whose upper word it is."""
    if i.op == "LOP3":
        if i.mods != ("LUT",) or i.dsts[0] != PT or i.srcs[2] != RZ or value_of(i.srcs[3]) not in _EITHER:
            return None
    elif not plain_iadd3(i) or i.srcs[2] != RZ:
        return None
    for a, b in ((i.srcs[0], i.srcs[1]), (i.srcs[1], i.srcs[0])):
        if type(a) is not Reg or type(b) is not Reg or a.flags or b.flags or not s.one_use(a) or not s.one_use(b):
            continue
        m, n = s.made_by(a, "SHF"), s.made_by(b, "SHF")
        if m is None or n is None or m.mods != ("L", "U32") or n.mods != ("R", "U32", "HI"):
            continue
        left, right = s.constant(m.srcs[1]), s.constant(n.srcs[1])
        high, low = m.srcs[0], n.srcs[2]
        if left is None or right is None or not 0 < left < 32 or left + right != 32 or n.srcs[0] != RZ:
            continue
        if type(high) is Reg and type(low) is Reg and s.unchanged(m, high) and s.unchanged(n, low):
            return s.build(
                i, "SHF", ("L", "U64", "HI"), i.dsts[-1:] if i.op == "LOP3" else i.dsts[:1], (low, Imm("I", left), high)
            )
    return None


def _row(ops: tuple[Operand | None, ...], bits: dict[Operand, int], mid: int = 0) -> int:
    """The row of a truth table for given input bits; None means the inner result ``mid``, RZ means 0."""
    row = 0
    for o in ops:
        row = row << 1 | (mid if o is None else bits.get(o, 0))
    return row


def wide_constant(s: Combiner, i: Inst) -> Inst | None:
    """x * immediate + pair of constant-bank words: the factor goes to a register, which the addresses of several
    buffers share (as ptxas does)."""
    if (
        i.mods not in (("WIDE",), ("WIDE", "U32"))
        or type(i.srcs[1]) is not Imm
        or type(i.srcs[2]) is not Reg
        or i.srcs[2].width != 2
    ):
        return None
    base = s.copy_source(i.srcs[2])
    value = value_of(i.srcs[1])
    if type(base) is not Const or value is None:
        return None
    return s.build(i, "IMAD", i.mods, i.dsts, (i.srcs[0], s.in_register(value), base, *i.srcs[3:]))
