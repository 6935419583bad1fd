"""Exact floating-point arithmetic, one value at a time, in integers: the slow path and the reference of :mod:`fp`."""

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
UE5M3: Final = Format(4, -14, 114688.0, False)  # no sign
E3M2: Final = Format(3, -2, 28.0, False)
E2M3: Final = Format(4, 0, 7.5, False)
E2M1: Final = Format(2, 0, 6.0, False)


def _round_quotient(count: int, shift: int, mode: str) -> int:
    """The integer next to ``count / 2**shift``: ``RN`` ties to even, ``RNA`` ties away, ``RZ``, ``RM`` down, ``RP``
    up."""
    if shift <= 0:
        return count << -shift
    low = count >> shift
    rest = count - (low << shift)
    if rest == 0 or mode == "RM":
        return low
    if mode == "RP":
        return low + 1
    if mode == "RZ":
        return low if count > 0 else low + 1
    half = 1 << shift - 1
    if rest != half:
        return low if rest < half else low + 1
    if mode == "RNA":
        return low + 1 if count > 0 else low
    return low if low % 2 == 0 else low + 1


def round_dyadic(count: int, scale: int, fmt: Format, mode: str) -> float:
    """The exact nonzero ``count * 2**scale`` rounded to ``fmt``; a zero result has the value's sign."""
    size = abs(count)
    quantum = max(size.bit_length() - 1 + scale, fmt.emin) - fmt.prec + 1
    rounded = _round_quotient(count, quantum - scale, mode)
    sign = -1.0 if count < 0 else 1.0
    top = int(fmt.top)  # (every such value is a whole number)
    if abs(rounded) << max(quantum, 0) > top << max(-quantum, 0):
        toward_zero = mode == "RZ" or (mode == "RM" and count > 0) or (mode == "RP" and count < 0)
        return sign * (fmt.top if toward_zero or not fmt.inf else math.inf)
    return math.ldexp(rounded, quantum) if rounded else sign * 0.0


def _dyadic(value: float) -> tuple[int, int]:
    """A finite number as an integer times a power of two."""
    count, divisor = value.as_integer_ratio()
    return count, 1 - divisor.bit_length()


def round_exact(value: Fraction, fmt: Format, mode: str) -> float:
    """The exact ``value``, an integer over a power of two, rounded to ``fmt``; a zero result has the value's sign."""
    return round_dyadic(value.numerator, 1 - value.denominator.bit_length(), fmt, mode) if value else 0.0


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
    (na, ka), (nb, kb), (nc, kc) = _dyadic(a), _dyadic(b), _dyadic(c)
    scale = min(ka + kb, kc)
    total = (na * nb << ka + kb - scale) + (nc << kc - scale)
    if total:
        return round_dyadic(total, scale, fmt, mode)
    product_sign = math.copysign(1, a) * math.copysign(1, b)
    if product_sign == math.copysign(1, c) and (c == 0):
        return math.copysign(0.0, c)
    return -0.0 if mode == "RM" else 0.0


def mul_exact(a: float, b: float, fmt: Format, mode: str) -> float:
    """``a * b`` rounded once to ``fmt``."""
    if math.isnan(a) or math.isnan(b) or math.isinf(a) or math.isinf(b):
        return a * b
    (na, ka), (nb, kb) = _dyadic(a), _dyadic(b)
    if na * nb == 0:
        return math.copysign(1, a) * math.copysign(1, b) * 0.0
    return round_dyadic(na * nb, ka + kb, fmt, mode)
