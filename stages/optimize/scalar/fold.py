"""Constant folding and peephole rules for one instruction: constants, identities, simpler forms. Each rule returns the
new instruction or None."""

from __future__ import annotations

from collections.abc import Iterable

from ir_format.flow import is_guarded
from ir_format.model import INV, NEG, NOT_PT, PT, RZ, ZERO, Const, Imm, Inst, Operand, Reg
from ir_format.typed import TYPE_CHECKING, Final
from stages.optimize.evaluate.operands import WORD, is_predicate, value_of
from stages.optimize.evaluate.table import evaluate, results

if TYPE_CHECKING:
    from stages.optimize.scalar.combine import Combiner

#: A comparison with its operands exchanged, and its opposite (of integers: a NaN has other rules).
TURNED: Final = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "EQ": "EQ", "NE": "NE"}
OPPOSITE: Final = {"LT": "GE", "GE": "LT", "LE": "GT", "GT": "LE", "EQ": "NE", "NE": "EQ"}


def flags_of(o: Operand) -> int:
    """Flags of an operand that may have some."""
    return o.flags if type(o) in (Reg, Imm, Const) else 0  # type: ignore[union-attr]


def is_bare(o: Operand) -> bool:
    """A register operand without flags or suffix."""
    return type(o) is Reg and not o.flags and not o.mod


def copy_of(i: Inst, d: Operand, s: Operand) -> Inst:
    """A COPY instead of ``i``."""
    return Inst("COPY", (), (d,), (s,), i.guard, i.line, i.loc)


def inverted(p: Reg) -> Reg:
    """The predicate operand or guard !p."""
    return p._replace(flags=p.flags ^ INV)


def is_pt(o: Operand) -> bool:
    """The predicate PT as an operand."""
    return o == PT


def plain_iadd3(i: Inst) -> bool:
    """An IADD3 without carry in or out."""
    return not i.mods and i.dsts[1:] == (PT, PT)


def split_terms(ops: Iterable[Operand]) -> tuple[list[Operand], list[int]]:
    """The terms of a sum that are no constants, and those that are; zeros left out."""
    rest: list[Operand] = []
    consts: list[int] = []
    for o in ops:
        if o != RZ:
            v = value_of(o)
            if v is None:
                rest.append(o)
            else:
                consts.append(v)
    return rest, consts


def plus_constant(s: Combiner, o: Operand) -> tuple[Reg, int] | None:
    """(register, constant) when the operand is their sum and the register still means the same."""
    i = s.made_by(o, "IADD3")
    if i is None or not plain_iadd3(i):
        return None
    rest, consts = split_terms(i.srcs[:3])
    if len(rest) != 1 or len(consts) != 1 or type(rest[0]) is not Reg or rest[0].flags or not s.unchanged(i, rest[0]):
        return None
    return rest[0], consts[0]


def constant_operand(r: Reg, value: int) -> Operand:
    """The operand that gives a register (or predicate) this value."""
    if is_predicate(r):
        return (PT if value else NOT_PT)._replace(file=r.file)
    return Imm("I", value) if value else RZ._replace(file=r.file)


def fold_constants(s: Combiner, i: Inst) -> Inst | None:
    """Constant folding: an instruction whose operands are all constants. Its last result is a copy instead of it, those
    before come from copies of their own."""
    known = s.copies.registers
    for o in i.srcs:
        if type(o) is Reg:
            if o.num != ZERO and o.num not in known:
                return None
        elif type(o) is not Imm:
            return None
    answer = evaluate(i, s.known_lane)
    made = results(i, answer) if answer is not None else None
    if not made:
        return None
    if len(made) > 1 and (is_guarded(i) or not all(s.values.value[r.num] for r, _ in made)):
        return None
    for r, value in made[:-1]:
        s.define(r, constant_operand(r, value))
    last, value = made[-1]
    return copy_of(i, last, constant_operand(last, value))


def fold_iadd3(s: Combiner, i: Inst) -> Inst | None:
    """x + 0 + 0, and sums with several constants."""
    if not plain_iadd3(i):
        return None
    total = 0
    consts = 0
    rest: list[Operand] = []
    for o in i.srcs[:3]:
        v = s.constant(o)
        if v is None:
            rest.append(o)
        else:
            total += v
            consts += v != 0 or type(o) is Imm
    total &= WORD
    if len(rest) == 1 and total == 0 and type(rest[0]) is Reg and not rest[0].flags:
        return copy_of(i, i.dsts[0], rest[0])
    if len(rest) == 1 and consts > 1:
        return s.build(i, "IADD3", (), i.dsts, (rest[0], Imm("I", total), RZ))
    return None


def lut_of(lut: int, values: tuple[int | None, int | None, int | None]) -> int:
    """The truth table with inputs that are all zeros (0) or all ones (1) put in."""
    out = 0
    for row in range(8):
        at = row
        for n, v in enumerate(values):
            bit = 4 >> n
            if v is not None:
                at = at & ~bit | (bit if v else 0)
        out |= (lut >> at & 1) << row
    return out


def fold_lop3(s: Combiner, i: Inst) -> Inst | None:
    """Bitwise functions that are one of their inputs, or constant."""
    if i.mods != ("LUT",) or i.dsts[0] != PT:
        return None
    lut_op = i.srcs[3]
    if type(lut_op) is not Imm:
        return None
    lut = lut_op.value & 0xFF
    vals = [s.constant(o) for o in i.srcs[:3]]
    d = i.dsts[1]
    fixed = tuple({0: 0, WORD: 1}.get(v) if v is not None else None for v in vals)
    small = lut_of(lut, fixed)  # type: ignore[arg-type]
    for n, same in enumerate((0xF0, 0xCC, 0xAA)):
        o = i.srcs[n]
        if small == same and type(o) is Reg and not o.flags:
            return copy_of(i, d, o)
    if small in (0, 0xFF):
        return copy_of(i, d, RZ if small == 0 else Imm("I", WORD))
    if any(f is not None and type(o) is Imm for f, o in zip(fixed, i.srcs[:3], strict=True)):
        srcs = tuple(RZ if f is not None else o for f, o in zip(fixed, i.srcs[:3], strict=True))
        return s.build(i, "LOP3", ("LUT",), i.dsts, (*srcs, Imm("I", small), *i.srcs[4:]))
    return None


def fold_shift(s: Combiner, i: Inst) -> Inst | None:
    """Shifts by a constant: by 0, by all bits, and words of a double-word shift that only one word gets into."""
    n = s.constant(i.srcs[1])
    if n is None:
        return None
    if i.mods in _WIDE_SHIFTS:
        return _wide_shift(s, i, n)
    low, high = i.srcs[0], i.srcs[2]
    d = i.dsts[0]
    if i.mods in _PLAIN_SHIFTS and n >= 32 and (high if i.mods[0] == "L" else low) == RZ:
        if "S32" not in i.mods:
            return copy_of(i, d, RZ)
        return s.build(i, "SHF", i.mods, i.dsts, (RZ, Imm("I", 31), high)) if i.srcs[1] != Imm("I", 31) else None
    if i.mods == ("L", "U32") and high == RZ and n < 32:
        return copy_of(i, d, low) if n == 0 and type(low) is Reg and not low.flags else None
    if i.mods in (("R", "U32", "HI"), ("R", "S32", "HI")) and low == RZ and n < 32:
        return copy_of(i, d, high) if n == 0 and type(high) is Reg and not high.flags else None
    return None


_PLAIN_SHIFTS = (("L", "U32"), ("R", "U32", "HI"), ("R", "S32", "HI"))
#: Word of a double-word shift -> the shift of the one word that is left of it when the amount is 32 or more.
_WIDE_SHIFTS = {("R", "U64"): ("R", "U32", "HI"), ("R", "S64"): ("R", "S32", "HI"), ("L", "U64", "HI"): ("L", "U32")}


def _wide_shift(s: Combiner, i: Inst, n: int) -> Inst | None:
    """The low word of a right shift, the high word of a left shift; operands are low word, amount, high word."""
    low, high = i.srcs[0], i.srcs[2]
    left = i.mods[0] == "L"
    if n >= 64:
        return None
    if n in (0, 32):
        o = high if left == (n == 0) else low
        return copy_of(i, i.dsts[0], o) if type(o) is Reg and not o.flags else None
    if n < 32:
        return None
    amount = Imm("I", n - 32)
    return s.build(i, "SHF", _WIDE_SHIFTS[i.mods], i.dsts, (low, amount, RZ) if left else (RZ, amount, high))


def plain_imad(i: Inst) -> bool:
    """An IMAD of three words without carry in or out."""
    return i.mods in ((), ("U32",)) and i.dsts[1:] in ((), (PT,)) and i.srcs[3:] in ((), (NOT_PT,))


def fold_imad(s: Combiner, i: Inst) -> Inst | None:
    """x * 0 + c, x * 1 + c."""
    if not plain_imad(i):
        return None
    a, b, c = i.srcs[:3]
    for x, y in ((a, b), (b, a)):
        v = s.constant(x)
        if v == 0:
            return _sum(s, i, RZ, c)
        if v == 1:
            return _sum(s, i, y, c)
    va, vb = s.constant(a), s.constant(b)
    if va is not None and vb is not None:
        return _sum(s, i, Imm("I", va * vb & WORD), c)
    return None


def narrow_imad(s: Combiner, i: Inst) -> Inst | None:
    """A 64-bit product or sum whose upper word nothing reads."""
    d = i.dsts[0]
    if (
        i.mods not in (("WIDE",), ("WIDE", "U32"))
        or type(d) is not Reg
        or d.width != 2
        or i.dsts[1:] != (PT,)
        or i.srcs[3:] not in ((), (NOT_PT,))
    ):
        return None
    if s.values.uses[s.values.base[d.num] + d.sub + 1]:
        return None
    a, b, c = i.srcs[:3]
    if type(c) is Reg:
        c = RZ if c.num == ZERO else c._replace(width=1)
    elif type(c) is Const:
        c = c._replace(width=1)
    else:
        return None
    new = s.build(i, "IMAD", (), (d._replace(width=1),), (a, b, c))
    if new is not None:
        s.values.defs[s.values.base[d.num] + d.sub + 1] = None
    return new


def _sum(s: Combiner, i: Inst, x: Operand, y: Operand) -> Inst | None:
    if x == RZ and not getattr(y, "flags", 0):
        return copy_of(i, i.dsts[0], y)
    if y == RZ and not getattr(x, "flags", 0):
        return copy_of(i, i.dsts[0], x)
    if type(x) is Imm:
        x, y = y, x
    return s.build(i, "IADD3", (), (i.dsts[0],), (x, y, RZ))


def fold_sel(s: Combiner, i: Inst) -> Inst | None:
    """A choice between equal things, or by a constant."""
    a, b, p = i.srcs[:3]
    if i.mods:
        return None
    same = a == b or (s.constant(a) is not None and s.constant(a) == s.constant(b))
    pick = a if is_pt(p) or same else b if p == NOT_PT else None
    if pick is None or (type(pick) is Reg and pick.flags):
        return None
    return copy_of(i, i.dsts[0], pick)


def scaled_choice(s: Combiner, i: Inst) -> Inst | None:
    """A choice between constants, shifted or multiplied by another one: a choice between other constants."""
    if i.op == "IMAD":
        x, y, z = i.srcs[:3]
        if not plain_imad(i) or z != RZ:
            return None
        if value_of(x) is not None:
            x, y = y, x
        n = value_of(y)
    else:
        x, n = i.srcs[0], value_of(i.srcs[1])
        if i.mods != ("L", "U32") or i.srcs[2] != RZ or n is None or n > 31:
            return None
        n = 1 << n
    m = s.made_by(x, "SEL")
    if n is None or m is None or m.mods or not s.one_use(x) or flags_of(x) or not s.unchanged(m, m.srcs[2]):
        return None
    a, b = s.constant(m.srcs[0]), s.constant(m.srcs[1])
    if a is None or b is None or (a and b):
        return None
    p, v = m.srcs[2], (a or b) * n & WORD
    if type(p) is not Reg:
        return None
    return s.build(i, "SEL", (), i.dsts[:1], (RZ, Imm("I", v), inverted(p) if a else p))


def fold_prmt(s: Combiner, i: Inst) -> Inst | None:
    """Byte permutations that are one of their inputs."""
    sel = s.constant(i.srcs[1])
    if i.mods or sel is None:
        return None
    a, c = i.srcs[0], i.srcs[2]
    if sel & 0xFFFF == 0x3210 and type(a) is Reg and not a.flags:
        return copy_of(i, i.dsts[0], a)
    if sel & 0xFFFF == 0x7654 and type(c) is Reg and not c.flags:
        return copy_of(i, i.dsts[0], c)
    return None


def negated(o: Operand) -> Operand | None:
    """The operand -o of an integer addition."""
    if type(o) is Imm and not o.sym:
        return Imm("I", -o.value & WORD)
    if type(o) is Reg and not o.flags & ~NEG and o.file == "R":
        return o if o.num == ZERO else o._replace(flags=o.flags ^ NEG)
    return None
