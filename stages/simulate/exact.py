"""Exact floating-point arithmetic on one value at a time, by integers: the slow path and the reference of :mod:`fp`."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final, NamedTuple


class Format(NamedTuple):
    """A binary format: ``prec`` significand bits (with the hidden one), lowest normal exponent, largest finite value,
    whether overflow gives an infinity (else the largest finite value or NaN, as the operation says)."""

    prec: int
    emin: int
    top: float
    inf: bool


F64: Final = Format(53, -1022, 1.7976931348623157e308, True)
F32: Final = Format(24, -126, 3.4028234663852886e38, True)
TF32: Final = Format(11, -126, 3.4011621342146535e38, True)
BF16: Final = Format(8, -126, 3.3895313892515355e38, True)
F16: Final = Format(11, -14, 65504.0, True)
E5M2: Final = Format(3, -14, 57344.0, True)
E4M3: Final = Format(4, -6, 448.0, False)
E3M2: Final = Format(3, -2, 28.0, False)
E2M3: Final = Format(4, 0, 7.5, False)
E2M1: Final = Format(2, 0, 6.0, False)


def _round_fraction(value: Fraction, mode: str) -> int:
    """An integer from an exact value: ``RN`` ties to even, ``RNA`` ties away, ``RZ``, ``RM`` down, ``RP`` up."""
    low = math.floor(value)
    rest = value - low
    if rest == 0 or mode == "RM":
        return low
    if mode == "RP":
        return low + 1
    if mode == "RZ":
        return low if value > 0 else low + 1
    half = Fraction(1, 2)
    if rest != half:
        return low if rest < half else low + 1
    if mode == "RNA":
        return low + 1 if value > 0 else low
    return low if low % 2 == 0 else low + 1


def round_exact(value: Fraction, fmt: Format, mode: str) -> float:
    """The exact nonzero ``value`` rounded to ``fmt``; a zero result has the value's sign."""
    if value == 0:
        return 0.0
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    quantum = Fraction(2) ** (max(exponent, fmt.emin) - fmt.prec + 1)
    count = _round_fraction(value / quantum, mode)
    rounded = count * quantum
    sign = -1.0 if value < 0 else 1.0
    if abs(rounded) > Fraction(fmt.top):
        toward_zero = mode == "RZ" or (mode == "RM" and value > 0) or (mode == "RP" and value < 0)
        return sign * (fmt.top if toward_zero or not fmt.inf else math.inf)
    return float(rounded) if rounded != 0 else sign * 0.0


def fma_exact(a: float, b: float, c: float, fmt: Format, mode: str) -> float:
    """``a * b + c`` rounded once to ``fmt``."""
    if math.isnan(a) or math.isnan(b) or math.isnan(c):
        return math.nan
    if math.isinf(a) or math.isinf(b):
        if a == 0 or b == 0:
            return math.nan
        sign = math.copysign(1, a) * math.copysign(1, b)
        if math.isinf(c) and math.copysign(1, c) != sign:
            return math.nan
        return sign * math.inf
    if math.isinf(c):
        return c
    total = Fraction(a) * Fraction(b) + Fraction(c)
    if total != 0:
        return round_exact(total, fmt, mode)
    product_sign = math.copysign(1, a) * math.copysign(1, b)
    if product_sign == math.copysign(1, c) and (c == 0):
        return math.copysign(0.0, c)
    return -0.0 if mode == "RM" else 0.0


def mul_exact(a: float, b: float, fmt: Format, mode: str) -> float:
    """``a * b`` rounded once to ``fmt``."""
    if math.isnan(a) or math.isnan(b) or math.isinf(a) or math.isinf(b):
        return a * b
    total = Fraction(a) * Fraction(b)
    if total == 0:
        return math.copysign(1, a) * math.copysign(1, b) * 0.0
    return round_exact(total, fmt, mode)
