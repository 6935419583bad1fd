"""Integer, bit and predicate instructions."""

from __future__ import annotations

from collections.abc import Callable

from ir_format.model import Imm
from ir_format.typed import Final
from stages.optimize.evaluate.operands import LONG, WORD, Answer, Reader, Unknown, signed

COMPARISONS: Final = ("F", "LT", "EQ", "LE", "GT", "NE", "GE", "T")
JOINS: Final = ("AND", "OR", "XOR")
#: Lanes of packed integers: bits, signed.
PACKED: Final[dict[str, tuple[int, bool]]] = {
    "U16x2": (16, False), "S16x2": (16, True), "16x2": (16, False), "U8x4": (8, False), "S8x4": (8, True),
}  # fmt: skip


def holds(comparison: str, order: int) -> bool:
    """Whether a comparison is true of two things the first of which is less (-1), equal (0) or greater (1)."""
    return comparison in ("T", *(("LT", "LE", "NE"), ("EQ", "LE", "GE"), ("GT", "GE", "NE"))[order + 1])


def joined(r: Reader, test: bool) -> Answer:
    """The results of a comparison: it, and its opposite, each joined with the predicate source."""
    how, p = r.pick(JOINS, "AND"), r.truth(0, True)
    both = [x and p if how == "AND" else x or p if how == "OR" else x != p for x in (test, not test)]
    return None, (both[0], both[1])


def iadd3(r: Reader) -> Answer:
    """A sum of three with two carries in and out."""
    s = sum([r.addend(n) for n in range(len(r.values))]) + r.carries()
    return s & WORD, (s >> 32 != 0, s >> 33 != 0)


def iadd(r: Reader) -> Answer:
    """A sum of two, of 32 or 64 bits, or of halves or bytes."""
    packed = r.pick(tuple(PACKED))
    if packed or r.has("ISAT"):
        return _packed_sum(r, packed)
    if not r.has("64"):
        s = r.addend(0) + r.addend(1) + r.carries()
        return s & WORD, (s >> 32 != 0,)
    if r.has("X") or any(o.flags for o in r.values if o[0] != "I"):  # type: ignore[union-attr]
        raise Unknown
    s = r.long(0) + r.long(1)
    return s & LONG, (s >> 64 != 0,)


def _packed_sum(r: Reader, packed: str) -> Answer:
    bits, is_signed = PACKED.get(packed, (32, r.has("S32")))
    if any(o[0] != "I" and o.flags for o in r.values[:2]):  # type: ignore[union-attr]
        raise Unknown
    x, y = r.word(0), r.word(1)
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)
    out = 0
    for at in range(0, 32, bits):
        a, b = (signed(v >> at, bits) if is_signed else v >> at & (1 << bits) - 1 for v in (x, y))
        s = min(max(a + b, low), high) if r.has("ISAT") else a + b
        out |= (s & (1 << bits) - 1) << at
    return out, ()


def imad(r: Reader) -> Answer:
    """A product and a sum: 32 bits, 64 (.WIDE), or the upper half of those (.HI)."""
    if not r.has("WIDE") and not r.has("HI"):
        s = (r.word(0) * r.word(1) & WORD) + r.addend(2) + r.carries()
        return s & WORD, (s >> 32 != 0,)
    is_signed = not r.has("U32")
    s = (r.number(0, is_signed) * r.number(1, is_signed) & LONG) + r.long(2, is_signed) + r.carries()
    carry = s >> 64 != 0
    return (s & LONG) >> 32 if r.has("HI") else s & LONG, (carry,)


def lea(r: Reader) -> Answer:
    """A shifted word plus another; .HI: the upper word of a shifted pair. A sign is that of the shifted word."""
    n = r.immediate(len(r.values) - 1) & 31
    o = r.values[0]
    flags = o.flags if o[0] != "I" else 0  # type: ignore[union-attr]
    x = r.raw(o)
    if r.has("HI"):
        top = signed(x, 32) >> 31 & WORD if r.has("SX32") else r.raw(r.values[2])
        x = ((x | top << 32) << n) >> 32
    else:
        x = x << n
    x &= WORD
    x = (1 << 32) - x if flags & 1 else ~x & WORD if flags & 4 else x
    if flags & ~5:
        raise Unknown
    s = x + r.addend(1) + r.carries()
    return s & WORD, (s >> 32 != 0,)


def _looked_up(table: int, a: int, b: int, c: int) -> int:
    """A function of three words, bit by bit."""
    out = 0
    for row in range(8):
        if table >> row & 1:
            out |= (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
    return out & WORD


def lop3(r: Reader) -> Answer:
    """Any function of three words; the predicate says that it is not zero, or (.PAND: and) another one."""
    x = _looked_up(r.immediate(3), r.word(0), r.word(1), r.word(2))
    p = r.truth(0, False)
    return x, ((x != 0 and p) if r.has("PAND") else (x != 0 or p),)


def plop3(r: Reader) -> Answer:
    """Two functions of three predicates."""
    if len(r.predicates) != 3:
        raise Unknown
    row = sum([r.truth(n, True) << 2 - n for n in range(3)])
    return None, (bool(r.immediate(0) >> row & 1), bool(r.immediate(1) >> row & 1))


def shf(r: Reader) -> Answer:
    """A funnel shift of a pair of words; amounts are clamped, or (.W) wrap, at 32 or 64."""
    width = 64 if r.has("S64") or r.has("U64") else 32
    n = r.word(1)
    n = n & width - 1 if r.has("W") else min(n, width)
    x = r.word(0) | r.word(2) << 32
    if r.has("L"):
        x = x << n & LONG
    else:
        x = (signed(x, 64) if r.has("S64") or r.has("S32") else x) >> n & LONG
    return (x >> 32 if r.has("HI") else x) & WORD, ()


def prmt(r: Reader) -> Answer:
    """Bytes of two words, or the sign of one eight times."""
    selector, x = r.word(1), r.word(0) | r.word(2) << 32
    out = 0
    for n in range(4):
        k = selector >> 4 * n & 15
        byte = x >> 8 * (k & 7) & 0xFF
        if k & 8:
            byte = 0xFF if byte & 0x80 else 0
        out |= byte << 8 * n
    return out, ()


def sgxt(r: Reader) -> Answer:
    """The low bits of a word, extended by their sign or (.U32) zeros."""
    n = r.word(1)
    n = n & 31 if r.has("W") else min(n, 32)
    if not n:
        return 0, ()
    x = r.word(0) & (1 << n) - 1
    return (x if r.has("U32") else signed(x, n) & WORD), ()


def bmsk(r: Reader) -> Answer:
    """Ones from a bit up."""
    first, n = r.word(0), r.word(1)
    first, n = (first & 31, n & 31) if r.has("W") else (min(first, 32), min(n, 32))
    return ((1 << n) - 1 << first) & WORD, ()


def iabs(r: Reader) -> Answer:
    """|x|."""
    return abs(r.number(0, True)) & WORD, ()


def popc(r: Reader) -> Answer:
    """How many bits are 1."""
    return r.word(0).bit_count(), ()


def flo(r: Reader) -> Answer:
    """The place of the leading bit, counted from below or (.SH) from above; all ones if there is none."""
    x = r.word(0)
    if not r.has("U32") and x >> 31:
        x = ~x & WORD
    if not x:
        return WORD, (False,)
    at = x.bit_length() - 1
    return (31 - at if r.has("SH") else at), (True,)


def brev(r: Reader) -> Answer:
    """The bits in reverse order."""
    return int(f"{r.word(0):032b}"[::-1], 2), ()


def mov(r: Reader) -> Answer:
    """A copy."""
    if len(r.values) > 1 and r.immediate(1) != 15:
        raise Unknown
    o = r.inst.srcs[0]
    if r.has("64"):
        return (o.value & LONG if type(o) is Imm and not o.sym and not o.fmt else r.long(0)), ()
    if r.predicates:
        return None, (r.truth(0, True),)
    d = r.inst.dsts[0]
    width = d.width if d[0] == "R" or d[0] == "UR" else 0  # type: ignore[union-attr]
    if not width:
        raise Unknown
    return (r.word(0) if width == 1 else sum([r.raw(o, k) << 32 * k for k in range(width)])), ()


def sel(r: Reader) -> Answer:
    """One of two words."""
    n = 0 if r.truth(0, True) else 1
    return r.word(n), ()


def isetp(r: Reader) -> Answer:
    """A comparison; .EX: of upper words, after that of the lower ones, whose result comes in."""
    name = r.pick(COMPARISONS)
    if r.has("U64") or r.has("S64"):
        a, b = r.long(0), r.long(1)
        if r.has("S64"):
            a, b = signed(a, 64), signed(b, 64)
    else:
        a, b = (r.number(n, not r.has("U32")) for n in (0, 1))
    order = (a > b) - (a < b)
    if r.has("EX"):
        lower = r.truth(1, True)
        if name in ("F", "T"):
            raise Unknown
        if name == "NE":
            return joined(r, order != 0 or lower)
        return joined(r, lower if order == 0 else holds(name, order))
    return joined(r, holds(name, order))


def _least(r: Reader, a: int, b: int, n: int) -> int:
    """The minimum or maximum, as predicate source ``n`` says, or the first if there is no such one."""
    return min(a, b) if r.truth(min(n, len(r.predicates) - 1), True) else max(a, b)


def minmax(r: Reader) -> Answer:
    """A minimum or maximum of two or three words, or of halves or bytes of two."""
    packed = r.pick(tuple(PACKED))
    if any(p.num >= 0 for p in r.inst.dsts if p[0] == "P" or p[0] == "UP"):  # type: ignore[union-attr]
        raise Unknown
    if packed:
        if len(r.values) > 2:
            raise Unknown
        return _packed_minmax(r, *PACKED[packed])
    is_signed = not r.has("U32")
    best = _least(r, r.number(0, is_signed), r.number(1, is_signed), 0)
    if len(r.values) > 2:
        best = _least(r, best, r.number(2, is_signed), 1)
    return (max(best, 0) if r.has("RELU") else best) & WORD, ()


def _packed_minmax(r: Reader, bits: int, is_signed: bool) -> Answer:
    if len(r.predicates) > 1:
        raise Unknown
    x, y = r.word(0), r.word(1)
    out = 0
    for at in range(0, 32, bits):
        a, b = (signed(v >> at, bits) if is_signed else v >> at & (1 << bits) - 1 for v in (x, y))
        best = _least(r, a, b, 0)
        out |= ((max(best, 0) if r.has("RELU") else best) & (1 << bits) - 1) << at
    return out, ()


def viaddmnmx(r: Reader) -> Answer:
    """The minimum or maximum of a sum and a word."""
    is_signed = not r.has("U32")
    s = r.word(0) + r.word(1) & WORD
    best = _least(r, signed(s, 32) if is_signed else s, r.number(2, is_signed), 0)
    return (max(best, 0) if r.has("RELU") else best) & WORD, ()


def vabsdiff(r: Reader) -> Answer:
    """|a - b| + c."""
    is_signed = not r.has("U32")
    return abs(r.number(0, is_signed) - r.number(1, is_signed)) + r.word(2) & WORD, ()


def idp(r: Reader) -> Answer:
    """Products of four bytes, or of two halves and bytes, summed."""
    kinds = [m for m in r.inst.mods if m in ("U8", "S8", "U16", "S16")]
    if len(kinds) != 2:
        raise Unknown
    x, y = r.word(0), r.word(1)
    bits, count = (8, 4) if r.has("4A") else (16, 2)
    at = 16 if r.has("HI") else 0
    s = r.word(2)
    for n in range(count):
        a, b = x >> bits * n & (1 << bits) - 1, y >> at + 8 * n & 0xFF
        s += (signed(a, bits) if kinds[0][0] == "S" else a) * (signed(b, 8) if kinds[1][0] == "S" else b)
    return s & WORD, ()


def i2i(r: Reader) -> Answer:
    """A word clamped to fewer bits."""
    kind = r.pick(("U8", "S8", "U16", "S16"))
    if not kind or not r.has("SAT"):
        raise Unknown
    bits = int(kind[1:])
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if kind[0] == "S" else (0, (1 << bits) - 1)
    return min(max(r.number(0, True), low), high) & WORD, ()


Evaluator = Callable[[Reader], Answer]
_P: Final = (*COMPARISONS, *JOINS)
_MINMAX: Final = ("U32", "S32", "RELU", *PACKED)
#: Mnemonic -> its evaluator, and the modifiers that it knows.
TABLE: Final[dict[str, tuple[Evaluator, tuple[str, ...]]]] = {
    "IADD3": (iadd3, ("X",)),
    "IADD": (iadd, ("X", "64")),
    "VIADD": (iadd, ("32", "S32", "U32", "ISAT", *PACKED)),
    "IMAD": (imad, ("X", "U32", "WIDE", "HI", "MOV", "SHL", "IADD")),
    "LEA": (lea, ("HI", "X", "SX32")),
    "LOP3": (lop3, ("LUT", "PAND")),
    "PLOP3": (plop3, ("LUT",)),
    "SHF": (shf, ("L", "R", "W", "HI", "S64", "U64", "S32", "U32")),
    "PRMT": (prmt, ()),
    "SGXT": (sgxt, ("W", "U32")),
    "BMSK": (bmsk, ("W",)),
    "IABS": (iabs, ()),
    "POPC": (popc, ()),
    "FLO": (flo, ("U32", "SH")),
    "BREV": (brev, ()),
    "MOV": (mov, ("64",)),
    "COPY": (mov, ()),
    "SEL": (sel, ()),
    "ISETP": (isetp, (*_P, "U32", "EX", "U64", "S64")),
    "IMNMX": (minmax, _MINMAX),
    "VIMNMX": (minmax, _MINMAX),
    "VIMNMX3": (minmax, _MINMAX),
    "VIADDMNMX": (viaddmnmx, ("U32", "S32", "RELU")),
    "VABSDIFF": (vabsdiff, ("U32",)),
    "IDP": (idp, ("4A", "2A", "LO", "HI", "U8", "S8", "U16", "S16")),
    "I2I": (i2i, ("U8", "S8", "U16", "S16", "S32", "SAT")),
}
