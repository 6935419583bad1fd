"""Rules for minima and maxima of three, and for sums with a condition. Each returns the new instruction or None."""

from __future__ import annotations

from ir_format.model import NOT_PT, PT, RZ, ZERO, Inst, Operand, Reg
from ir_format.typed import TYPE_CHECKING, Final
from stages.optimize.evaluate.operands import value_of
from stages.optimize.scalar.fold import inverted, plain_iadd3

if TYPE_CHECKING:
    from stages.optimize.scalar.combine import Combiner

#: Comparison -> whether the first operand is then the greater one.
_GREATER: Final = {"GT": True, "GE": True, "LT": False, "LE": False}


def fuse_min_max(s: Combiner, i: Inst) -> Inst | None:
    """The smaller or greater of a + b and c -> VIADDMNMX; of two such of one kind -> VIMNMX3; on the SMs that have
    them."""
    which = i.srcs[2] if len(i.srcs) > 2 else None
    if i.mods not in ((), ("U32",)) or which not in (PT, NOT_PT) or any(d != PT for d in i.dsts[1:]):
        return None
    assert which is not None
    for x, z in ((i.srcs[0], i.srcs[1]), (i.srcs[1], i.srcs[0])):
        if type(x) is not Reg or x.flags or x.mod or not s.one_use(x):
            continue
        new = _take_sum(s, i, x, z, which) or _take_min_max(s, i, x, z, which)
        if new is not None:
            return new
    return None


def _take_sum(s: Combiner, i: Inst, x: Reg, z: Operand, which: Operand) -> Inst | None:
    m = s.made_by(x, "IADD3")
    if m is None or not plain_iadd3(m):
        return None
    terms = [o for o in m.srcs[:3] if o != RZ]
    if len(terms) != 2 or not s.unchanged(m, *terms):
        return None
    if type(terms[0]) is not Reg or terms[0].flags:
        terms.reverse()
    if type(terms[0]) is not Reg or terms[0].flags:
        return None
    return s.build(i, "VIADDMNMX", i.mods, i.dsts[:1], (terms[0], terms[1], z, which))


def _take_min_max(s: Combiner, i: Inst, x: Reg, z: Operand, which: Operand) -> Inst | None:
    m = s.made_by(x, "VIMNMX")
    if m is None or m.mods != i.mods or m.srcs[2] != which or any(d != PT for d in m.dsts[1:]):
        return None
    if not s.unchanged(m, *m.srcs[:2]):
        return None
    a, b = m.srcs[:2]
    if type(z) is not Reg:
        a, b, z = (a, z, b) if type(b) is Reg else (a, b, z)
    return s.build(i, "VIMNMX3", i.mods, i.dsts[:1], (a, b, z, which))


def add_condition(s: Combiner, i: Inst) -> Inst | None:
    """x + (p ? 1 : 0) -> a sum with p as the carry that comes in."""
    if not plain_iadd3(i):
        return None
    terms = [o for o in i.srcs[:3] if o != RZ]
    if len(terms) not in (2, 3):
        return None
    for n, x in enumerate(terms):
        if type(x) is not Reg or x.flags or x.mod or not s.one_use(x):
            continue
        m = s.made_by(x, "SEL")
        if m is None or m.mods or type(m.srcs[2]) is not Reg or m.srcs[2].num == ZERO:
            continue
        values = value_of(m.srcs[0]), value_of(m.srcs[1])
        if sorted(values, key=str) != [0, 1] or not s.unchanged(m, m.srcs[2]):
            continue
        p = m.srcs[2] if values[0] == 1 else inverted(m.srcs[2])
        rest = [*terms[:n], *terms[n + 1 :], RZ]
        return s.build(i, "IADD3", ("X",), i.dsts[:1], (rest[0], rest[1], RZ, p, NOT_PT))
    return None


def choose_min_max(s: Combiner, i: Inst) -> Inst | None:
    """The choice between two integers by the comparison of them: their smaller or greater one."""
    p = i.srcs[2]
    if i.mods or type(p) is not Reg or p.num == ZERO:
        return None
    m = s.made_by(p._replace(flags=0), "ISETP")
    if m is None or m.mods[-1] != "AND" or m.srcs[2] != PT or m.mods[0] not in _GREATER or len(m.mods) > 3:
        return None
    x, y, made = m.srcs[0], m.srcs[1], m.dsts[0]
    if type(x) is not Reg or x.flags or type(made) is not Reg or p not in (made, inverted(made)):
        return None
    if not s.unchanged(m, x, y):
        return None
    if i.srcs[:2] == (x, y):
        greater = _GREATER[m.mods[0]]
    elif i.srcs[:2] == (y, x):
        greater = not _GREATER[m.mods[0]]
    else:
        return None
    which = NOT_PT if greater != bool(p.flags) else PT
    unsigned = ("U32",) if "U32" in m.mods else ()
    for mods in (unsigned or ("S32",), unsigned):  # sm_107 and sm_120 name the signed type
        new = s.build(i, "VIMNMX", mods, i.dsts[:1], (x, y, which))
        if new is not None:
            return new
    return s.build(i, "IMNMX", unsigned, i.dsts[:1], (x, y, which))


def not_negative(s: Combiner, i: Inst) -> Inst | None:
    """The greater of 0 and a signed minimum or maximum, where the instruction does that itself (.RELU)."""
    if i.mods not in ((), ("S32",)) or i.srcs[2] != NOT_PT or any(d != PT for d in i.dsts[1:]):
        return None
    x = i.srcs[0]
    if type(x) is not Reg or x.flags or x.mod or value_of(i.srcs[1]) != 0 or not s.one_use(x):
        return None
    m = s.made_by(x, "VIMNMX")
    if m is None or m.mods != i.mods or any(d != PT for d in m.dsts[1:]) or not s.unchanged(m, *m.srcs[:2]):
        return None
    return s.build(i, "VIMNMX", (*i.mods, "RELU"), i.dsts[:1], m.srcs[:3])
