"""Rules for 64-bit sums: one IMAD.WIDE for a product or an extended word, LEA for a shifted pair, IADD.64 where the SM
has it, three terms at once.

A sum of two pairs is `IADD3 lo, p = a, b` and `IADD3.X hi = a', b', p`. The rules start at the upper half; the lower
one becomes part of what they make.
"""

from __future__ import annotations

from ir_format.features import has
from ir_format.flow import is_guarded, read_regs, written_regs
from ir_format.model import INV, NEG, NOT_PT, PT, RZ, RZ2, ZERO, Const, Imm, Inst, Operand, Reg, VReg
from ir_format.record import NamedTuple
from ir_format.typed import TYPE_CHECKING, Final
from stages.optimize.evaluate.operands import value_of
from stages.optimize.scalar.fold import flags_of, is_bare

if TYPE_CHECKING:
    from stages.optimize.scalar.combine import Combiner

_WINDOW: Final = 40  # how far apart the halves of a sum may be
_OFFSET: Final = 1 << 23  # what fits the offset of an address


class Term(NamedTuple):
    """A 64-bit term: its words, and the operand that names both where there is one (a pair, a pair of constant-bank
    words, a 64-bit Imm)."""

    lo: Operand
    hi: Operand
    whole: Operand | None


class Sum(NamedTuple):
    """The pair ``d`` = ``a`` + ``b``; ``low`` makes the lower half."""

    d: Reg
    low: Inst
    a: Term
    b: Term


def pair_of(lo: Operand, hi: Operand) -> Operand | None:
    """The 64-bit operand made of two words; of a subtrahend (-lo, ~hi) with the flag NEG."""
    if type(lo) is Reg and type(hi) is Reg:
        flags = 0
        if lo.flags | hi.flags:
            if (lo.flags, hi.flags) != (NEG, INV):
                return None
            flags = NEG
        if lo.num == hi.num == ZERO:
            return RZ2 if not flags else None
        return (
            lo._replace(width=2, flags=flags) if lo.num == hi.num and hi.sub == lo.sub + 1 and lo.sub % 2 == 0 else None
        )
    if type(lo) is Const:
        plain = lo.ireg is None and not lo.sym and not lo.flags and lo.offset % 8 == 0
        return lo._replace(width=2) if plain and hi == lo._replace(offset=lo.offset + 4) else None
    x, y = value_of(lo), value_of(hi)
    if x is not None and y is not None:
        return Imm("I", y << 32 | x)
    return None


def _terms(lo: Inst, hi: Inst) -> tuple[Term, Term] | None:
    """The two terms that two halves add up; a pair or words of registers first."""
    if lo.srcs[2] != RZ or hi.srcs[2] != RZ or lo.srcs[3:] != (NOT_PT, NOT_PT) or hi.srcs[4] != NOT_PT:
        return None
    a, b = (Term(lo.srcs[n], hi.srcs[n], pair_of(lo.srcs[n], hi.srcs[n])) for n in (0, 1))
    return (a, b) if is_bare(a.lo) and a.lo != RZ else (b, a)


def _free(t: Term) -> bool:
    """Whether nothing is negated."""
    return not flags_of(t.lo) | flags_of(t.hi)


def split_sum(s: Combiner, base: Reg) -> tuple[Term, Term] | None:
    """(a, b) when the pair ``base`` is a 64-bit sum whose terms still mean the same; None else."""
    if base.width != 2 or base.num == ZERO or not s.values.value[base.num]:
        return None
    lo = s.values.def_of(base._replace(width=1))
    hi = s.values.def_of(base._replace(sub=base.sub + 1, width=1))
    if lo is None or hi is None:
        return None
    if lo is hi:
        return _split_pair(s, base, lo)
    if (
        lo.op != "IADD3"
        or hi.op != "IADD3"
        or lo.mods
        or hi.mods != ("X",)
        or lo.dsts[2] != PT
        or hi.dsts[1:] != (PT, PT)
    ):
        return None
    if hi.srcs[3] != lo.dsts[1] or lo.dsts[1] == PT:
        return None
    terms = _terms(lo, hi)
    if terms is None or not all(_free(t) and s.unchanged(lo, t.lo) and s.unchanged(hi, t.hi) for t in terms):
        return None
    return terms


def _split_pair(s: Combiner, base: Reg, i: Inst) -> tuple[Term, Term] | None:
    """As :func:`split_sum`, of an IADD.64."""
    if i.op != "IADD" or i.mods != ("64",) or i.dsts != (base, PT) or i.srcs[2] != NOT_PT:
        return None
    terms = []
    for o in i.srcs[:2]:
        if type(o) is Imm:
            word = value_of(o)
            if word is None:
                return None
            o = Imm("I", word | 0xFFFFFFFF << 32 if word >> 31 else word)
        elif type(o) is not Reg or o.flags or not s.unchanged(i, o):
            return None
        terms.append(Term(word_of(o, 0), word_of(o, 1), o))
    return terms[0], terms[1]


def sum_at(s: Combiner, i: Inst) -> Sum | None:
    """:func:`_sum_at`, asked once for all rules that are tried on an instruction."""
    if i.mods != ("X",):
        return None
    known = s.known_sum
    if known is None or known[0] is not i:
        known = s.known_sum = i, _sum_at(s, i)
    got = known[1]
    return got if type(got) is Sum else None


def _sum_at(s: Combiner, i: Inst) -> Sum | None:
    """The sum whose upper half is this instruction, if its halves can be made at once here: nothing between them reads
    the lower one, writes either, or writes a term."""
    d, p = i.dsts[0], i.srcs[3]
    if (
        i.mods != ("X",)
        or i.dsts[1:] != (PT, PT)
        or type(d) is not Reg
        or d.num == ZERO
        or d.sub % 2 != 1
        or is_guarded(i)
    ):
        return None
    low = s.made_by(p, "IADD3")
    if low is None or not is_bare(p) or low.mods or low.dsts != (d._replace(sub=d.sub - 1), p, PT) or not s.one_use(p):
        return None
    terms = _terms(low, i)
    if terms is None:
        return None
    pair = d._replace(sub=d.sub - 1, width=2)
    web = s.values.web
    loose = {web[o.num] for t in terms for o in (t.lo, t.hi) if type(o) is Reg and o.num != ZERO and not s.is_free(o)}
    loose.add(web[d.num])
    insts, at = s.here
    for n in range(at - 1, max(-1, at - _WINDOW), -1):
        x = insts[n]
        if x is low:
            return Sum(pair, low, *terms)
        if id(x) in s.retired:
            continue
        for r in written_regs(x):
            if web[r.num] in loose:
                return None
        for r in read_regs(x):
            if r.num == d.num and r.sub <= pair.sub < r.sub + r.width:
                return None
    return None


def _factor(s: Combiner, t: Term) -> tuple[tuple[str, ...], Operand, Operand] | None:
    """(modifiers of IMAD.WIDE, x, y) when the term is a product of words x * y: also an extended word, shifted or
    not."""
    if (
        type(t.lo) is not Reg
        or type(t.hi) is not Reg
        or not _free(t)
        or t.lo.num == ZERO
        or not s.is_free(t.lo)
        or not s.is_free(t.hi)
    ):
        return None
    lo, hi = s.values.def_of(t.lo), s.values.def_of(t.hi) if t.hi != RZ else None
    if lo is None:
        return None
    if lo.op == "IMAD":
        if lo is not hi or lo.mods not in (("WIDE",), ("WIDE", "U32")) or lo.srcs[2] != RZ2 or lo.dsts[0] != t.whole:
            return None
        return (lo.mods, lo.srcs[0], lo.srcs[1]) if s.unchanged(lo, *lo.srcs[:2]) else None
    if (
        lo.op == "SHF"
        and hi is not None
        and hi.op == "SHF"
        and lo.mods == ("L", "U32")
        and hi.mods == ("L", "U64", "HI")
    ):
        amount = s.constant(lo.srcs[1])
        x, top = lo.srcs[0], hi.srcs[2]
        if (
            lo.srcs[2] != RZ
            or amount is None
            or not 0 < amount < 31
            or s.constant(hi.srcs[1]) != amount
            or hi.srcs[0] != x
            or not is_bare(x)
            or not is_bare(top)
        ):
            return None
        assert type(x) is Reg and type(top) is Reg
        return _extended(s, x, top, amount)
    return _extended(s, t.lo, t.hi, 0)


def _extended(s: Combiner, x: Reg, upper: Reg, n: int) -> tuple[tuple[str, ...], Operand, Operand] | None:
    """As :func:`_factor`, for the word ``x`` extended by ``upper`` and shifted left by ``n``."""
    base = s.copy_source(x)  # the lower word is often a copy
    source = base if type(base) is Reg and base.file == "R" and is_bare(base) and base.num != ZERO else x
    if not s.is_free(source):
        return None
    if s.constant(upper) == 0:
        return ("WIDE", "U32"), source, Imm("I", 1 << n)
    sign = s.made_by(upper, "SHF")
    if (
        sign is None
        or sign.mods != ("R", "S32", "HI")
        or s.constant(sign.srcs[1]) != 31
        or sign.srcs[2] not in (x, source)
    ):
        return None
    return ("WIDE",), source, Imm("I", 1 << n)


def fuse_wide(s: Combiner, i: Inst) -> Inst | None:
    """The 64-bit sum `x * y + b`, done by one IMAD.WIDE; however many read the product: one instruction replaces
    two."""
    got = sum_at(s, i)
    if got is None:
        return None
    for t, other in ((got.a, got.b), (got.b, got.a)):
        b = other.whole
        made = _factor(s, t) if b is not None and type(b) is not Imm and not flags_of(b) else None
        if made is None or b is None:
            continue
        mods, x, y = made
        factor = value_of(y)
        if type(b) is Const and factor is not None:
            y = s.in_register(factor)  # one operand is not a register
        new = s.build(i, "IMAD", mods, (got.d,), (x, y, b))
        if new is not None:
            s.erase(got.low)
            return new
    return None


def fuse_pair(s: Combiner, i: Inst) -> Inst | None:
    """IADD.64, where the SM has it."""
    if not has(s.sm, "add-64"):
        return None
    got = sum_at(s, i)
    if got is None or got.a.whole is None or got.b.whole is None:
        return None
    b = got.b.whole
    if type(b) is Imm:
        if not -(1 << 31) <= (b.value ^ 1 << 63) - (1 << 63) < 1 << 31:  # the field is extended by its sign (measured)
            return None
        b = Imm("I", b.value & 0xFFFFFFFF)
    new = s.build(i, "IADD", ("64",), (got.d,), (got.a.whole, b))
    if new is not None:
        s.erase(got.low)
    return new


def fuse_three(s: Combiner, i: Inst) -> Inst | None:
    """(c + d) + b with two carries, where nothing else reads c + d."""
    if has(s.sm, "add-64"):
        return None  # two IADD.64 are as short
    got = sum_at(s, i)
    if got is None or not _free(got.a) or not _free(got.b):
        return None
    b = got.b.whole
    if type(b) is Imm and (b.value + _OFFSET) & (1 << 64) - 1 < 2 * _OFFSET:
        return None  # it may fit an address
    for t, other in ((got.a, got.b), (got.b, got.a)):
        if type(t.whole) is not Reg or t.whole.num == ZERO or not (s.one_use(t.lo) and s.one_use(t.hi)):
            continue
        inner = split_sum(s, t.whole)
        if inner is None:
            continue
        terms = sorted((*inner, other), key=lambda x: type(x.lo) is not Reg)
        if type(terms[1].lo) is not Reg:
            continue
        terms[1], terms[2] = terms[2], terms[1]  # an operand that is no register comes second
        v = s.values
        second = Reg("P", len(s.func.vregs))
        low = s.build(got.low, "IADD3", (), (got.low.dsts[0], got.low.dsts[1], second), tuple(x.lo for x in terms))
        high = s.build(i, "IADD3", ("X",), i.dsts, (*(x.hi for x in terms), i.srcs[3], second))
        if low is None or high is None:
            continue
        s.func.vregs.append(VReg("P", 1))
        v.new_register()
        s.rewrite(got.low, low)
        v.defs[v.base[second.num]] = got.low
        v.place[v.base[second.num]] = s.at_block
        return high
    return None


def word_of(o: Operand, n: int) -> Operand:
    """Word ``n`` of a 64-bit operand."""
    if type(o) is Imm:
        word = o.value >> 32 * n & 0xFFFFFFFF
        return Imm("I", word) if word else RZ
    if type(o) is Const:
        return o._replace(width=1, offset=o.offset + 4 * n)
    assert type(o) is Reg
    return o._replace(width=1, sub=o.sub + n) if o.num != ZERO else RZ


def fuse_shifted(s: Combiner, i: Inst) -> Inst | None:
    """(pair << n) + b: LEA and LEA.HI.X; the extension of a word's sign + b: LEA.HI.X.SX32."""
    p = i.srcs[3]
    if (
        i.mods != ("X",)
        or i.dsts[1:] != (PT, PT)
        or i.srcs[2] != RZ
        or i.srcs[4] != NOT_PT
        or type(p) is not Reg
        or p.flags
        or p == PT
        or p.num == ZERO
    ):
        return None
    for at in (0, 1):
        top, b = i.srcs[at], i.srcs[1 - at]
        m = s.made_by(top, "SHF")
        if m is None or not is_bare(top):
            continue  # however many read the shift: LEA costs no more than a sum
        if (
            m.mods == ("R", "S32", "HI")
            and s.constant(m.srcs[1]) == 31
            and s.unchanged(m, m.srcs[2])
            and type(m.srcs[2]) is Reg
            and not m.srcs[2].flags
        ):
            new = s.build(i, "LEA", ("HI", "X", "SX32"), (i.dsts[0],), (m.srcs[2], b, Imm("I", 1), p))
        elif m.mods == ("L", "U64", "HI"):
            new = _shifted_pair(s, i, m, b, p)
        else:
            new = None
        if new is not None:
            return new
    return None


def _shifted_pair(s: Combiner, i: Inst, m: Inst, b: Operand, p: Reg) -> Inst | None:
    """The upper half of (pair << n) + b; the lower one is remade."""
    low, n = s.made_by(p, "IADD3"), s.constant(m.srcs[1])
    x, top = m.srcs[0], m.srcs[2]
    if (
        low is None
        or low.mods
        or low.dsts[1] != p
        or low.dsts[2] != PT
        or low.srcs[2] != RZ
        or low.srcs[3:] != (NOT_PT, NOT_PT)
        or n is None
        or not 0 < n < 32
    ):
        return None
    if type(x) is not Reg or x.flags or flags_of(top) or not s.unchanged(m, x, top):
        return None
    for at in (0, 1):
        shift, other = s.made_by(low.srcs[at], "SHF"), low.srcs[1 - at]
        if (
            shift is None
            or not is_bare(low.srcs[at])
            or shift.mods != ("L", "U32")
            or shift.srcs[2] != RZ
            or shift.srcs[0] != x
            or s.constant(shift.srcs[1]) != n
            or not s.unchanged(shift, x)
        ):
            continue
        lower = s.build(low, "LEA", (), (low.dsts[0], p), (x, other, Imm("I", n)))
        upper = s.build(i, "LEA", ("HI", "X"), (i.dsts[0],), (x, b, top, Imm("I", n), p))
        if lower is not None and upper is not None:
            s.rewrite(low, lower)
            return upper
    return None
