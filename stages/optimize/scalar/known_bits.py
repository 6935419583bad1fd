"""Rules that know bits of a value: masks that change nothing, sums and shifts that are zero, tests of shifted bits,
carries that can't be.

What is known of a register is found by looking a few instructions back through values (:mod:`stages.optimize.values`)
and kept.
"""

from __future__ import annotations

from ir_format.model import INV, NOT_PT, PT, RZ, ZERO, Const, Imm, Inst, Name, Operand, Reg
from ir_format.typed import TYPE_CHECKING, Final, Protocol
from stages.optimize.evaluate.operands import WORD, value_of
from stages.optimize.scalar.fold import copy_of, flags_of, is_bare, is_pt
from stages.optimize.values import Lane, Values

if TYPE_CHECKING:
    from stages.optimize.scalar.combine import Combiner

_DEPTH: Final = 8  # instructions to look back through
# Special registers: bits that may be set. The limits are those of blocks and grids in the PTX manual (documented).
_SPECIAL: Final = {
    "SR_TID.X": 0x3FF, "SR_TID.Y": 0x3FF, "SR_TID.Z": 0x3F, "SR_CTAID.X": 0x7FFFFFFF, "SR_CTAID.Y": 0xFFFF,
    "SR_CTAID.Z": 0xFFFF, "SR_LANEID": 0x1F,
}  # fmt: skip
_NARROW_LOADS: Final = {"U8": 0xFF, "U16": 0xFFFF}


class Facts(Protocol):
    """What is known of a function. ``bits``: a lane of a value -> bits known to be 0 and to be 1, as far as they were
    asked for."""

    values: Values
    bits: dict[Lane, tuple[int, int]]

    def constant(self, o: Operand) -> int | None:
        """The 32-bit value of an operand that is a constant."""


def known_bits(s: Facts, o: Operand, depth: int = _DEPTH) -> tuple[int, int]:
    """(bits known to be 0, bits known to be 1) of a 32-bit operand."""
    v = s.constant(o)
    if v is not None:
        return ~v & WORD, v
    if type(o) is not Reg or o.file != "R" or o.flags or o.mod or o.num == ZERO or not depth:
        return 0, 0
    lane = s.values.base[o.num] + o.sub
    got = s.bits.get(lane)
    if got is None:
        i = s.values.def_of(o)
        rule = _KNOW.get(i.op) if i is not None else None
        got = s.bits[lane] = rule(s, i, o, depth - 1) if rule is not None and i is not None else (0, 0)
    return got


def _below(n: int) -> int:
    """The lowest bits that hold every number up to ``n``."""
    return (1 << n.bit_length()) - 1


def _know_lop3(s: Facts, i: Inst, o: Reg, depth: int) -> tuple[int, int]:
    if i.mods != ("LUT",) or type(i.srcs[3]) is not Imm:
        return 0, 0
    zero, one = _looked_up(i.srcs[3].value, _rows(s, i, depth))
    return zero, one & ~zero


def _looked_up(lut: int, rows: list[int]) -> tuple[int, int]:
    """(bits where no row that may be looked up holds 1, bits where none holds 0)."""
    zero = one = WORD
    for row, bits in enumerate(rows):
        if lut >> row & 1:
            zero &= ~bits
        else:
            one &= ~bits
    return zero, one


def _rows(s: Facts, i: Inst, depth: int) -> list[int]:
    """Per row of a LOP3's truth table the bits in which the row may be looked up."""
    known = [known_bits(s, x, depth) for x in i.srcs[:3]]
    rows = []
    for row in range(8):
        bits = WORD
        for n, (zero, one) in enumerate(known):
            bits &= ~(zero if row & 4 >> n else one)
        rows.append(bits)
    return rows


def _know_shift(s: Facts, i: Inst, o: Reg, depth: int) -> tuple[int, int]:
    n = s.constant(i.srcs[1])
    if n is None or n > 31:
        return 0, 0
    if i.mods == ("L", "U32") and i.srcs[2] == RZ:
        zero, one = known_bits(s, i.srcs[0], depth)
        return (zero << n | (1 << n) - 1) & WORD, one << n & WORD
    if i.mods in (("R", "U32", "HI"), ("R", "S32", "HI")) and i.srcs[0] == RZ:
        zero, one = known_bits(s, i.srcs[2], depth)
        top = WORD & ~(WORD >> n)
        if "U32" in i.mods or zero >> 31:
            return zero >> n | top, one >> n
        return zero >> n, one >> n | (top if one >> 31 else 0)
    return 0, 0


def _know_choice(s: Facts, i: Inst, o: Reg, depth: int) -> tuple[int, int]:
    if i.mods:
        return 0, 0
    (z1, o1), (z2, o2) = known_bits(s, i.srcs[0], depth), known_bits(s, i.srcs[1], depth)
    return z1 & z2, o1 & o2


def _know_sum(s: Facts, i: Inst, o: Reg, depth: int) -> tuple[int, int]:
    """Low bits that are 0 in every term, and high bits that the largest sum does not reach."""
    if i.mods or i.dsts[0] != o._replace(flags=0):
        return 0, 0
    low, total, negative = WORD, 0, False
    for t in i.srcs[:3]:
        minus = type(t) is Reg and bool(t.flags)
        zero, _ = known_bits(s, t._replace(flags=0) if type(t) is Reg and t.num != ZERO else t, depth)
        low &= zero
        total += ~zero & WORD
        negative |= minus
    trailing = (low ^ (low + 1)) >> 1 if low != WORD else WORD
    high = 0 if negative or total > WORD else WORD & ~_below(total)
    return trailing & WORD | high, 0


def _low_zeros(bits: int) -> int:
    """How many of the lowest bits are known to be 0."""
    return ((bits ^ (bits + 1)) >> 1).bit_length()


def _know_lea(s: Facts, i: Inst, o: Reg, depth: int) -> tuple[int, int]:
    """(x << n) + y: the lowest bits that are 0 in both."""
    n = s.constant(i.srcs[3]) if not i.mods and len(i.srcs) > 3 else None
    if n is None or n > 31 or i.dsts[0] != o._replace(flags=0) or any(type(t) is Reg and t.flags for t in i.srcs[:2]):
        return 0, 0
    low = min(_low_zeros(known_bits(s, i.srcs[0], depth)[0]) + n, _low_zeros(known_bits(s, i.srcs[1], depth)[0]), 32)
    return (1 << low) - 1, 0


def _know_product(s: Facts, i: Inst, o: Reg, depth: int) -> tuple[int, int]:
    """x * y + z of words: the lowest bits that are 0 in the product and in z, the high ones that the largest sum leaves
    free."""
    if i.mods not in ((), ("U32",)) or any(type(t) is Reg and t.flags for t in i.srcs[:3]) or len(i.dsts) > 1:
        return 0, 0
    zeros = [known_bits(s, t, depth)[0] for t in i.srcs[:3]]
    x, y, z = (_low_zeros(bits) for bits in zeros)
    a, b, c = (~bits & WORD for bits in zeros)
    high = WORD & ~_below(a * b + c) if a * b + c <= WORD else 0
    return (1 << min(x + y, z, 32)) - 1 | high, 0


def _know_special(s: Facts, i: Inst, o: Reg, depth: int) -> tuple[int, int]:
    name = i.srcs[0]
    return (WORD & ~_SPECIAL.get(name.name, WORD), 0) if type(name) is Name else (0, 0)


def _know_load(s: Facts, i: Inst, o: Reg, depth: int) -> tuple[int, int]:
    for m in i.mods:
        if m in _NARROW_LOADS:
            return WORD & ~_NARROW_LOADS[m], 0
    return 0, 0


def _know_field(s: Facts, i: Inst, o: Reg, depth: int) -> tuple[int, int]:
    n = s.constant(i.srcs[1])
    if i.mods != ("U32",) or n is None or n > 31:
        return 0, 0
    zero, one = known_bits(s, i.srcs[0], depth)
    mask = (1 << n) - 1
    return zero | WORD & ~mask, one & mask


def _know_bytes(s: Facts, i: Inst, o: Reg, depth: int) -> tuple[int, int]:
    sel = s.constant(i.srcs[1])
    if i.mods or sel is None:
        return 0, 0
    parts = [known_bits(s, i.srcs[0], depth), known_bits(s, i.srcs[2], depth)]
    zero = one = 0
    for n in range(4):
        k = sel >> 4 * n & 15
        z, w = (x >> 8 * (k & 3) & 0xFF for x in parts[k >> 2 & 1])
        if k & 8:  # the byte's sign, eight times
            z, w = (0xFF if x & 0x80 else 0 for x in (z, w))
        zero |= z << 8 * n
        one |= w << 8 * n
    return zero, one


def _know_count(s: Facts, i: Inst, o: Reg, depth: int) -> tuple[int, int]:
    return WORD & ~0x3F, 0


_KNOW: Final = {
    "LOP3": _know_lop3, "SHF": _know_shift, "SEL": _know_choice, "IADD3": _know_sum, "S2R": _know_special,
    "LDG": _know_load, "LDS": _know_load, "LDL": _know_load,
    "LD": _know_load, "LDC": _know_load, "SGXT": _know_field, "LEA": _know_lea, "IMAD": _know_product,
    "PRMT": _know_bytes, "POPC": _know_count,
}  # fmt: skip


# ------------------------------------------------------------------ rules


def mask_of_known(s: Combiner, i: Inst) -> Inst | None:
    """A bitwise function that, in the bits that can differ, is one of its inputs or a constant."""
    if i.mods != ("LUT",) or i.dsts[0] != PT or type(i.srcs[3]) is not Imm:
        return None
    rows = _rows(s, i, _DEPTH)
    lut = i.srcs[3].value
    zero, one = _looked_up(lut, rows)
    if zero | one == WORD:
        return copy_of(i, i.dsts[1], Imm("I", one & ~zero) if one & ~zero else RZ)
    for n, o in enumerate(i.srcs[:3]):
        if (
            type(o) is Reg
            and o.num != ZERO
            and not o.flags
            and all(not bits or lut >> row & 1 == (row >> 2 - n & 1) for row, bits in enumerate(rows))
        ):
            return copy_of(i, i.dsts[1], o)
    return None


def bytes_of_known(s: Combiner, i: Inst) -> Inst | None:
    """A permutation of bytes that is a constant, or leaves one of its inputs as it is: signs of what is not negative,
    zeros that are there."""
    sel = s.constant(i.srcs[1])
    if i.mods or sel is None or len(i.dsts) != 1:
        return None
    made = _know_bytes(s, i, RZ, _DEPTH)
    if made[0] | made[1] == WORD:
        return copy_of(i, i.dsts[0], Imm("I", made[1]) if made[1] else RZ)
    for first, o in ((0, i.srcs[0]), (4, i.srcs[2])):
        if type(o) is not Reg or o.num == ZERO or o.flags or o.mod:
            continue
        there = known_bits(s, o)
        same = 0
        for n in range(4):
            bits = 0xFF << 8 * n
            if sel >> 4 * n & 15 == first + n:
                same |= bits
        if all((m ^ t) & WORD & ~same == 0 for m, t in zip(made, there)) and (made[0] | made[1] | same) == WORD:
            return copy_of(i, i.dsts[0], o)
    return None


def shift_of_known(s: Combiner, i: Inst) -> Inst | None:
    """A shift whose result has no bit that can be set, or a signed one of what is not negative."""
    if i.mods not in (("R", "U32", "HI"), ("R", "S32", "HI"), ("L", "U32")):
        return None
    zero, one = _know_shift(s, i, RZ, _DEPTH)
    if zero | one != WORD:
        return None
    return copy_of(i, i.dsts[0], Imm("I", one) if one else RZ)


def test_of_known(s: Combiner, i: Inst) -> Inst | None:
    """A comparison that the known bits decide."""
    if (
        i.mods[-1] != "AND"
        or "EX" in i.mods
        or "U64" in i.mods
        or "S64" in i.mods
        or i.srcs[2] != PT
        or i.dsts[1] != PT
    ):
        return None
    ranges = []
    for o in i.srcs[:2]:
        zero, one = known_bits(s, o)
        if "U32" not in i.mods and not (zero | one) >> 31:
            return None
        low, high = one, WORD & ~zero
        if "U32" not in i.mods and one >> 31:
            low, high = low - (1 << 32), high - (1 << 32)
        ranges.append((low, high, zero, one))
    (al, ah, az, ao), (bl, bh, bz, bo) = ranges
    sure = {
        "LT": (ah < bl, al >= bh), "LE": (ah <= bl, al > bh), "GT": (al > bh, ah <= bl), "GE": (al >= bh, ah < bl),
        "EQ": (al == ah == bl == bh, bool(ao & bz | az & bo)), "NE": (bool(ao & bz | az & bo), al == ah == bl == bh),
    }.get(i.mods[0], (False, False))  # fmt: skip
    if not any(sure):
        return None
    return copy_of(i, i.dsts[0], PT if sure[0] else NOT_PT)


def _unshifted(s: Combiner, o: Operand) -> tuple[Reg, int, bool] | None:
    """(x, n, left) of an operand that is x shifted by n without sign."""
    m = s.made_by(o, "SHF")
    n = s.constant(m.srcs[1]) if m is not None else None
    if m is None or n is None or n > 31 or not is_bare(o):
        return None
    if m.mods == ("L", "U32") and m.srcs[2] == RZ:
        x, left = m.srcs[0], True
    elif m.mods == ("R", "U32", "HI") and m.srcs[0] == RZ:
        x, left = m.srcs[2], False
    else:
        return None
    return (x, n, left) if type(x) is Reg and not x.flags and s.unchanged(m, x) else None


def test_of_shifted(s: Combiner, i: Inst) -> Inst | None:
    """LOP3's predicate of (x << n) & mask: of x & (mask >> n)."""
    if (
        i.mods != ("LUT",)
        or i.dsts[0] == PT
        or i.dsts[1] != RZ
        or type(i.srcs[1]) is not Imm
        or i.srcs[2] != RZ
        or i.srcs[3] != Imm("I", 0xC0)
    ):
        return None
    shift, mask = _unshifted(s, i.srcs[0]), value_of(i.srcs[1])
    if shift is None or mask is None:
        return None
    x, n, left = shift
    mask = mask >> n if left else mask << n & WORD
    return s.build(i, "LOP3", i.mods, i.dsts, (x, Imm("I", mask), RZ, *i.srcs[3:]))


def zero_test(s: Combiner, i: Inst) -> Inst | None:
    """x == 0 of an unsigned shift that loses no bit that can be set: of what is shifted."""
    if (
        i.mods[0] not in ("EQ", "NE")
        or "EX" in i.mods
        or "U64" in i.mods
        or "S64" in i.mods
        or s.constant(i.srcs[1]) != 0
    ):
        return None
    shift = _unshifted(s, i.srcs[0])
    if shift is None:
        return None
    x, n, left = shift
    lost = WORD & ~(WORD >> n) if left else (1 << n) - 1
    if lost & ~known_bits(s, x)[0]:
        return None
    return s.build(i, "ISETP", i.mods, i.dsts, (x, *i.srcs[1:]))


def fold_field(s: Combiner, i: Inst) -> Inst | None:
    """SGXT of what fits."""
    n = s.constant(i.srcs[1])
    if "W" in i.mods or n is None or type(i.srcs[0]) is not Reg or i.srcs[0].flags:
        return None
    zero, _ = known_bits(s, i.srcs[0])
    if (
        n > 31
        or ("U32" in i.mods and zero | (1 << n) - 1 == WORD)
        or (n > 0 and "U32" not in i.mods and zero | (1 << n - 1) - 1 == WORD)
    ):
        return copy_of(i, i.dsts[0], i.srcs[0])
    return None


def bound_carry(s: Combiner, i: Inst) -> Inst | None:
    """A sum whose terms are too small for a carry."""
    if (
        i.mods
        or i.dsts[2] != PT
        or i.srcs[3:] != (NOT_PT, NOT_PT)
        or type(i.dsts[1]) is not Reg
        or i.dsts[1] == PT
        or i.guard is not None
    ):
        return None
    if not s.values.value[i.dsts[1].num]:
        return None
    total = 0
    for o in i.srcs[:3]:
        if type(o) is Reg and o.flags or type(o) is Const and o.flags:
            return None
        total += WORD & ~known_bits(s, o)[0]
    if total > WORD:
        return None
    new = s.build(i, "IADD3", (), (i.dsts[0], PT, PT), i.srcs)
    if new is not None:
        s.define(i.dsts[1], NOT_PT)
    return new


def drop_carry(s: Combiner, i: Inst) -> Inst | None:
    """IADD3.X with a carry that is known and a complement among its terms: an ordinary sum."""
    if (
        i.mods != ("X",)
        or not is_pt(i.dsts[1])
        or not is_pt(i.dsts[2])
        or i.srcs[4] != NOT_PT
        or i.srcs[3] not in (PT, NOT_PT)
    ):
        return None
    srcs = list(i.srcs[:3])
    carry = int(i.srcs[3] == PT)
    for n, o in enumerate(srcs):
        if flags_of(o) & INV:  # ~x is -x - 1
            if type(o) is not Reg:
                return None
            srcs[n] = RZ if o.num == ZERO else o._replace(flags=1)
            carry -= 1
    if carry:
        at = next((n for n in (2, 1, 0) if s.constant(srcs[n]) is not None), -1)
        if at < 0:
            return None
        v = ((s.constant(srcs[at]) or 0) + carry) & WORD
        srcs[at] = Imm("I", v) if v else RZ
        if v and at != 1:
            srcs[1], srcs[at] = srcs[at], srcs[1]
    return s.build(i, "IADD3", (), (i.dsts[0],), tuple(srcs))
