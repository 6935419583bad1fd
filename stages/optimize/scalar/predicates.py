"""Rules for predicates: tests of values that a predicate made, tests of bits, tests joined to others. Each returns the
new instruction or None.

Inline assembly passes predicates through registers (``selp 1, 0, p`` outside, ``setp.ne q, r, 0`` inside); compilers
keep masks of predicates in registers and test their bits. ptxas sees through both.
"""

from __future__ import annotations

from ir_format.model import INV, NOT_PT, PT, RZ, ZERO, Const, Imm, Inst, Operand, Reg
from ir_format.typed import TYPE_CHECKING, Final
from stages.optimize.scalar.fold import OPPOSITE, TURNED, copy_of, inverted, lut_of

if TYPE_CHECKING:
    from stages.optimize.scalar.combine import Combiner

# Of floats: the opposite of an ordered comparison is an unordered one.
_FLOAT_NOT: Final = {"LT": "GEU", "GEU": "LT", "LE": "GTU", "GTU": "LE", "GT": "LEU", "LEU": "GT", "GE": "LTU",
"LTU": "GE", "EQ": "NEU", "NEU": "EQ", "NE": "EQU",
                     "EQU": "NE", "NUM": "NAN", "NAN": "NUM"}  # fmt: skip
_NOT: Final = {"ISETP": OPPOSITE, "FSETP": _FLOAT_NOT, "DSETP": _FLOAT_NOT}
# Truth tables of PLOP3 (a at 0xf0, b at 0xcc) that a comparison does on its own.
_JOINS: Final = {0xC0: "AND", 0xFC: "OR", 0x3C: "XOR"}


def fold_choice(s: Combiner, i: Inst) -> Inst | None:
    """A constant that is in a register only because it comes first: the operands of the select are swapped."""
    a, b, p = i.srcs[:3]
    if i.mods or type(a) is not Reg or a.num == ZERO or type(p) is not Reg:
        return None
    value, other = s.constant(a), s.constant(b)
    if value is None or not (other == 0 or type(b) is Reg):
        return None
    return s.build(i, "SEL", (), i.dsts, (RZ if other == 0 else b, Imm("I", value), inverted(p), *i.srcs[3:]))


def _bare(o: Operand) -> bool:
    return type(o) is Reg and not o.flags and not o.mod


def _plain_test(i: Inst) -> bool:
    """An integer comparison of words that is joined with nothing."""
    return (
        "EX" not in i.mods
        and "U64" not in i.mods
        and "S64" not in i.mods
        and i.mods[-1] == "AND"
        and i.srcs[2] == PT
        and i.dsts[1] == PT
    )


def test_of_choice(s: Combiner, i: Inst) -> Inst | None:
    """A comparison of a choice between constants is the predicate that chose."""
    if not _plain_test(i):
        return None
    m = s.made_by(i.srcs[0], "SEL")
    c = s.constant(i.srcs[1])
    if m is None or m.mods or c is None or not _bare(i.srcs[0]):
        return None
    p = m.srcs[2]
    values = [s.constant(o) for o in m.srcs[:2]]
    if values[0] is None or values[1] is None or type(p) is not Reg or not s.unchanged(m, p):
        return None
    answers = [s.computed(i, (Imm("I", v or 0), Imm("I", c), *i.srcs[2:])) for v in values]
    if answers[0] is None or answers[1] is None:
        return None
    yes, no = answers[0][1][0], answers[1][1][0]
    if yes == no:
        return copy_of(i, i.dsts[0], PT if yes else NOT_PT)
    return copy_of(i, i.dsts[0], p if yes else inverted(p))


def test_of_bits(s: Combiner, i: Inst) -> Inst | None:
    """f(a, b, c) != 0 is the predicate that LOP3 makes; == 0 is its opposite."""
    if (
        not _plain_test(i)
        or i.mods[0] not in ("NE", "EQ")
        or s.constant(i.srcs[1]) != 0
        or not s.one_use(i.srcs[0])
        or not _bare(i.srcs[0])
    ):
        return None
    m = s.made_by(i.srcs[0], "LOP3")
    if m is None or m.mods != ("LUT",) or m.dsts[0] != PT or not s.unchanged(m, *m.srcs[:3]):
        return None
    if i.mods[0] == "NE":
        return s.build(i, "LOP3", ("LUT",), (i.dsts[0], RZ), (*m.srcs[:4], NOT_PT))
    test = s.build(i, "LOP3", ("LUT",), (PT, RZ), (*m.srcs[:4], NOT_PT))
    if test is None or i.guard is not None:
        return None
    return copy_of(i, i.dsts[0], inverted(s.before_it("P", test)))


def opposite(s: Combiner, i: Inst) -> Inst | None:
    """The opposite of a predicate is read as such: ``!p`` instead of a copy of it."""
    a = i.srcs[0]
    if (
        i.mods != ("LUT",)
        or i.dsts[1] != PT
        or i.srcs[1:3] != (PT, PT)
        or type(i.srcs[3]) is not Imm
        or type(a) is not Reg
    ):
        return None
    return copy_of(i, i.dsts[0], inverted(a)) if lut_of(i.srcs[3].value & 0xFF, (None, 1, 1)) == 0x0F else None


def join_tests(s: Combiner, i: Inst) -> Inst | None:
    """p and q, where q is a comparison: the comparison takes p along.

    Others may read q as well if it is made in the same block, so that what it compares lives no longer (rows and
    columns of a tile: every row's test is joined to every column's; ptxas repeats the comparison too)."""
    if i.mods != ("LUT",) or i.dsts[1] != PT or i.srcs[2] not in (PT, NOT_PT) or type(i.srcs[3]) is not Imm:
        return None
    how = _JOINS.get(lut_of(i.srcs[3].value & 0xFF, (None, None, int(i.srcs[2] == PT))))
    if how is None:
        return None
    for test, other in ((i.srcs[0], i.srcs[1]), (i.srcs[1], i.srcs[0])):
        if (
            type(test) is not Reg
            or type(other) is not Reg
            or test.num == ZERO
            or test.num == other.num
            or not (s.one_use(test) or s.in_block(test))
        ):
            continue
        for op, turn in _NOT.items():
            m = s.made_by(test, op)
            if (
                m is None
                or m.mods[-1] != "AND"
                or "EX" in m.mods
                or m.srcs[2] != PT
                or m.dsts[1] != PT
                or m.dsts[0] != test._replace(flags=0)
            ):
                continue
            if not s.unchanged(m, *m.srcs[:2]) or m.mods[0] not in turn:
                continue
            compare = turn[m.mods[0]] if test.flags & INV else m.mods[0]
            new = s.build(i, op, (compare, *m.mods[1:-1], how), i.dsts, (*m.srcs[:2], other, *m.srcs[3:]))
            if new is not None:
                return new
    return None


def turn_test(s: Combiner, i: Inst, new: Imm | Const) -> bool:
    """Read the immediate or constant ``new`` in the first place of a comparison by exchanging the operands; whether it
    was done. Changes ``i``."""
    if i.op not in ("ISETP", "FSETP") or "EX" in i.mods or type(i.srcs[1]) is not Reg or i.srcs[1].num == ZERO:
        return False
    compare = i.mods[0].removesuffix("U")
    unordered = "U" if i.mods[0].endswith("U") else ""
    return s.change(i, (TURNED.get(compare, compare) + unordered, *i.mods[1:]), (i.srcs[1], new, *i.srcs[2:]))
