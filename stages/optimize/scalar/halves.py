"""Rules for halves of registers: instructions on f16 and bf16 select the half of a source themselves (H0_H0, H1_H1)."""

from __future__ import annotations

from ir_format.isa import facts
from ir_format.model import RZ, ZERO, Inst, Operand, Reg
from ir_format.record import NamedTuple
from ir_format.typed import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from stages.optimize.scalar.combine import Combiner

_SELECTED: Final = {"H0_H0": 0, "H1_H1": 1}
_NAMES: Final = ("H0_H0", "H1_H1")
#: LOP3's table of a & b.
_AND: Final = 0xC0


def select_half(s: Combiner, i: Inst) -> Inst | None:
    """A source that both lanes read one half of, which was moved there from a half of another register: that half."""
    srcs = list(i.srcs)
    for n, o in enumerate(srcs):
        if type(o) is not Reg or o.num == ZERO or o.mod not in _SELECTED:
            continue
        found = _half(s, o)
        if found is not None:
            x, half = found
            srcs[n] = x._replace(flags=o.flags, mod=_NAMES[half])
    return s.build(i, i.op, i.mods, i.dsts, tuple(srcs)) if tuple(srcs) != i.srcs else None


def _half(s: Combiner, o: Reg) -> tuple[Reg, int] | None:
    """The register and its half that a half of another register was made of."""
    plain = o._replace(flags=0, mod="")
    which = _SELECTED[o.mod]
    m = s.made_by(plain, "PRMT")
    x: Operand
    if m is not None:
        sel = s.constant(m.srcs[1])
        if m.mods or sel is None:
            return None
        low, high = sel >> 8 * which & 15, sel >> 8 * which + 4 & 15
        if low & 1 or high != low + 1 or low > 7:
            return None
        x, half = m.srcs[0 if low < 4 else 2], low >> 1 & 1
    elif which == 0 and (m := s.made_by(plain, "SHF")) is not None:
        if m.mods not in (("R", "U32", "HI"), ("R", "S32", "HI")) or m.srcs[0] != RZ or s.constant(m.srcs[1]) != 16:
            return None
        x, half = m.srcs[2], 1
    elif which == 0 and (m := s.made_by(plain, "LOP3")) is not None:
        if m.mods != ("LUT",) or s.constant(m.srcs[1]) != 0xFFFF or s.constant(m.srcs[3]) != _AND:
            return None
        x, half = m.srcs[0], 0
    else:
        return None
    if type(x) is not Reg or x.num == ZERO or x.file != "R" or x.flags or x.mod or not s.unchanged(m, x):
        return None
    return x, half


#: Conversions of two words to halves: modifiers that say the same of both.
_BOTH: Final = frozenset(("F16", "BF16", "F32", "PACK_AB", "RELU", "RZ"))
_ARITHMETIC: Final = sorted(facts.with_class("half"))
#: Instructions under one pair of halves that are joined.
_DEEP: Final = 4
#: PRMT's selector of the low halves of two words.
_LOW_HALVES: Final = 0x5410


class _Pair(NamedTuple):
    """One instruction for two: its operands, some of which are pairs themselves."""

    of: Inst
    srcs: tuple[Operand | _Pair, ...]


def join_halves(s: Combiner, i: Inst) -> Inst | None:
    """Two halves in one register: one conversion of two words, or one instruction on both halves, for two that nothing
    else reads."""
    if i.mods or s.constant(i.srcs[1]) != _LOW_HALVES:
        return None
    a, b = i.srcs[0], i.srcs[2]
    if type(a) is not Reg or type(b) is not Reg or a.flags or b.flags or not (s.one_use(a) and s.one_use(b)):
        return None
    m, n = s.made_by(a, "F2FP"), s.made_by(b, "F2FP")
    if m is not None and n is not None:
        if m.mods != n.mods or not _BOTH.issuperset(m.mods) or m.srcs[0] != RZ or n.srcs[0] != RZ:
            return None
        if not s.unchanged(m, m.srcs[1]) or not s.unchanged(n, n.srcs[1]):
            return None
        return s.build(i, "F2FP", m.mods, i.dsts, (n.srcs[1], m.srcs[1]))
    pair = _pair(s, a, b, _DEEP)
    return None if pair is None else s.build(i, pair.of.op, pair.of.mods, i.dsts, _emit(s, pair))


def _pair(s: Combiner, a: Reg, b: Reg, deep: int) -> _Pair | None:
    """Two values that are read once, made by the same operation on halves: the operation on both."""
    for op in _ARITHMETIC if deep else ():
        m, n = s.made_by(a, op), s.made_by(b, op)
        if m is None or n is None or m.mods != n.mods or "F32" in m.mods or m is n:
            continue
        srcs: list[Operand | _Pair] = []
        for x, y in zip(m.srcs, n.srcs, strict=True):
            found = _operand(s, m, n, x, y, deep)
            if found is None:
                return None
            srcs.append(found)
        pair = _Pair(m, tuple(srcs))
        plain = tuple([RZ if isinstance(o, _Pair) else o for o in srcs])
        return pair if s.build(m, op, m.mods, m.dsts, plain) is not None else None
    return None


def _operand(s: Combiner, m: Inst, n: Inst, x: Operand, y: Operand, deep: int) -> Operand | _Pair | None:
    """The operand whose lanes are the low lanes of ``x`` and ``y``, which ``m`` and ``n`` read."""
    if type(x) is not Reg or type(y) is not Reg or x.num == ZERO:
        return x if x == y and (type(x) is not Reg or x.num == ZERO) else None
    if x.flags != y.flags or x.file != "R" or y.file != "R":
        return None
    if not s.unchanged(m, x) or not s.unchanged(n, y):
        return None
    if x == y and x.mod in _SELECTED:
        return x
    if x._replace(mod="") == y._replace(mod="") and (x.mod, y.mod) == _NAMES:
        return x._replace(mod="")
    if (x.mod, y.mod) == ("H0_H0", "H0_H0") and not x.flags:
        a, b = x._replace(mod=""), y._replace(mod="")
        if s.one_use(a) and s.one_use(b):
            return _pair(s, a, b, deep - 1)
    return None


def _emit(s: Combiner, pair: _Pair) -> tuple[Operand, ...]:
    """The operands of a pair, once the pairs among them are instructions in front of the current one."""
    out: list[Operand] = []
    for o in pair.srcs:
        if isinstance(o, _Pair):
            new = Inst(o.of.op, o.of.mods, o.of.dsts, _emit(s, o))
            out.append(s.before_it("R", new))
        else:
            out.append(o)
    return tuple(out)
