"""Exact floating point: values are integers times powers of two, rounded once.

A NaN raises :class:`Unknown`: which NaN an instruction gives is the hardware's to say. So does a result that is below
the normal numbers and is rounded up to the least of them where subnormals are flushed: it depends on when the hardware
looks.
"""

from __future__ import annotations

from ir_format.record import NamedTuple
from ir_format.typed import Final
from stages.optimize.evaluate.operands import Unknown

ROUNDINGS: Final = ("RN", "RZ", "RM", "RP")


class Format(NamedTuple):
    """A binary format: all bits, those of the significand with the hidden one, the least exponent of a normal
    number."""

    bits: int
    precision: int
    least: int

    @property
    def infinity(self) -> int:
        """The bits of infinity."""
        return (1 << self.bits - 1) - (1 << self.precision - 1)

    @property
    def sign(self) -> int:
        """The sign bit."""
        return 1 << self.bits - 1


F16: Final = Format(16, 11, -14)
BF16: Final = Format(16, 8, -126)
F32: Final = Format(32, 24, -126)
F64: Final = Format(64, 53, -1022)


class Value(NamedTuple):
    """``size * 2**scale``, negative or not; infinite if ``size`` is negative. Zeros have a sign."""

    negative: bool
    size: int
    scale: int

    @property
    def infinite(self) -> bool:
        """Whether it is an infinity."""
        return self.size < 0

    def count(self, scale: int) -> int:
        """It as a multiple of a smaller power of two."""
        n = self.size << self.scale - scale
        return -n if self.negative else n


ONE: Final = Value(False, 1, 0)


def is_nan(bits: int, f: Format) -> bool:
    """Whether bits are a NaN's."""
    return bits & ~f.sign > f.infinity


def decoded(bits: int, f: Format, flush: bool = False) -> Value:
    """The value of bits; subnormals as zeros if ``flush``."""
    size = bits & f.sign - 1
    negative = bool(bits & f.sign)
    if size > f.infinity:
        raise Unknown
    if size == f.infinity:
        return Value(negative, -1, 0)
    low = f.precision - 1
    exponent, fraction = size >> low, size & (1 << low) - 1
    if exponent:
        return Value(negative, fraction | 1 << low, f.least + exponent - 1 - low)
    return Value(negative, 0 if flush else fraction, f.least - low)


def rounded_count(size: int, shift: int, negative: bool, mode: str) -> int:
    """``size / 2**shift``, the magnitude of a number of that sign, as an integer in a rounding mode."""
    if shift <= 0:
        return size << -shift
    whole, rest, half = size >> shift, size & (1 << shift) - 1, 1 << shift - 1
    if mode == "RN":
        return whole + (rest > half or (rest == half and bool(whole & 1)))
    return whole + (rest > 0 and mode == ("RM" if negative else "RP"))


def encoded(v: Value, f: Format, mode: str = "RN", flush: bool = False) -> int:
    """The bits of a value rounded to a format."""
    sign = f.sign if v.negative else 0
    if v.infinite:
        return sign | f.infinity
    if not v.size:
        return sign
    lead = v.size.bit_length() - 1 + v.scale
    quantum = max(lead, f.least) - f.precision + 1
    bits = rounded_count(v.size, quantum - v.scale, v.negative, mode)
    bits += quantum - (f.least - f.precision + 1) << f.precision - 1  # the hidden bit makes the exponent one more
    if bits >= f.infinity:
        bits = f.infinity - (mode == "RZ" or mode == ("RP" if v.negative else "RM"))
    if flush and lead < f.least:
        if bits >> f.precision - 1:
            raise Unknown
        bits = 0
    return sign | bits


def total(a: Value, b: Value, mode: str = "RN") -> Value:
    """The exact a + b; the sign of an exact zero depends on the rounding mode."""
    if a.infinite or b.infinite:
        if a.infinite and b.infinite and a.negative != b.negative:
            raise Unknown
        return a if a.infinite else b
    scale = min(a.scale, b.scale)
    n = a.count(scale) + b.count(scale)
    if n:
        return Value(n < 0, abs(n), scale)
    same = a.negative if a.negative == b.negative and not a.size and not b.size else mode == "RM"
    return Value(same, 0, 0)


def product(a: Value, b: Value) -> Value:
    """The exact a * b."""
    negative = a.negative != b.negative
    if a.infinite or b.infinite:
        if not a.size or not b.size:
            raise Unknown
        return Value(negative, -1, 0)
    return Value(negative, a.size * b.size, a.scale + b.scale)


def order(a: Value, b: Value) -> int:
    """-1, 0 or 1 as a is less than, equal to or greater than b; zeros are equal."""
    if a.infinite or b.infinite:
        x, y = ((-1 if v.negative else 1) * v.infinite for v in (a, b))
        return (x > y) - (x < y)
    scale = min(a.scale, b.scale)
    x, y = a.count(scale), b.count(scale)
    return (x > y) - (x < y)


def saturated(bits: int, f: Format) -> int:
    """Bits of a number clamped to [0, 1]."""
    if bits & f.sign:
        return 0
    return min(bits, encoded(ONE, f))


def flushed(bits: int, f: Format) -> int:
    """A subnormal as a zero of its sign."""
    return bits & f.sign if not (bits & f.sign - 1) >> f.precision - 1 else bits


def whole(v: Value, mode: str) -> int:
    """A finite value rounded to an integer."""
    n = rounded_count(v.size, -v.scale, v.negative, mode)
    return -n if v.negative else n
