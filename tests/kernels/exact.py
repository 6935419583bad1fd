"""Arithmetic as the PTX manual defines it, for the references: every result correctly rounded, no x87, no unwanted
fusion. Arrays in, arrays out; scalars work too."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def _round_to_odd(total: Array, error: Array) -> Array:
    """The float64 ``total + error`` rounded to odd: a later rounding to a shorter format is then a single one."""
    bits = total.view(np.int64)
    inexact = np.isfinite(total) & (error != 0) & np.isfinite(error) & ((bits & 1) == 0)
    away = (error > 0) == (total > 0)
    step = np.where(away, np.int64(1), np.int64(-1))
    return np.where(inexact, bits + step, bits).view(np.float64)


def fma(a: Any, b: Any, c: Any, dtype: Any = np.float32) -> Array:
    """fma.rn for float32 and float16: one rounding.

    The product of two such numbers is exact in float64; the sum's error is recovered by Knuth's two-sum and
    folded in by rounding to odd (Boldo and Melquiond 2008), which needs two more bits than the target has.
    """
    kind = np.dtype(dtype)
    if kind.itemsize > 4:
        raise ValueError("float64 needs fma64")
    with np.errstate(all="ignore"):
        product = np.asarray(np.asarray(a, kind).astype(np.float64) * np.asarray(b, kind).astype(np.float64))
        addend = np.asarray(c, kind).astype(np.float64)
        total = np.asarray(product + addend)
        back = total - product
        error = np.asarray((product - (total - back)) + (addend - back))
        return np.asarray(_round_to_odd(total, error).astype(kind))


def _fraction_to_f64(value: Fraction, negative_zero: bool) -> float:
    if value == 0:
        return -0.0 if negative_zero else 0.0
    try:
        # int / int in Python is correctly rounded, subnormals included.
        return value.numerator / value.denominator
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _fma64_one(a: float, b: float, c: float) -> float:
    if not (np.isfinite(a) and np.isfinite(b) and np.isfinite(c)):
        with np.errstate(all="ignore"):
            # A finite product that would overflow must not become an infinity added to an infinite addend.
            product = np.float64(a) * np.float64(b)
            if np.isfinite(a) and np.isfinite(b):
                product = np.float64(0.0)
            return float(product + np.float64(c))
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact != 0:
        return _fraction_to_f64(exact, negative_zero=exact < 0)
    # An exact zero: the sum of zeros of the same sign keeps it, everything else is +0 in round to nearest.
    product_sign = np.signbit(a) ^ np.signbit(b)
    product_zero = a == 0 or b == 0
    negative = bool(product_zero and product_sign and c == 0 and np.signbit(c))
    return -0.0 if negative else 0.0


def fma64(a: Any, b: Any, c: Any) -> Array:
    """fma.rn.f64, by exact rational arithmetic (slow: for test sizes)."""
    x, y, z = np.broadcast_arrays(*(np.asarray(v, np.float64) for v in (a, b, c)))
    flat = [_fma64_one(float(p), float(q), float(r)) for p, q, r in zip(x.ravel(), y.ravel(), z.ravel(), strict=True)]
    return np.array(flat, np.float64).reshape(x.shape)


def ftz(values: Any) -> Array:
    """Subnormal float32 to the zero of its sign."""
    x = np.asarray(values, np.float32)
    tiny = np.abs(x) < np.finfo(np.float32).tiny
    return np.where(tiny, np.copysign(np.float32(0), x), x).astype(np.float32)


def max_f32(a: Any, b: Any) -> Array:
    """max.f32: the other operand if one is NaN, and +0 above -0."""
    x, y = np.asarray(a, np.float32), np.asarray(b, np.float32)
    larger = np.where(x > y, x, np.where(y > x, y, np.where(np.signbit(x), y, x)))
    return np.where(np.isnan(x), y, np.where(np.isnan(y), x, larger)).astype(np.float32)


def min_f32(a: Any, b: Any) -> Array:
    """min.f32: the other operand if one is NaN, and -0 below +0."""
    return np.asarray(-max_f32(-np.asarray(a, np.float32), -np.asarray(b, np.float32)))


def trunc_div(a: Any, b: Any) -> Array:
    """C's quotient (towards zero) of signed integer arrays, wrapped to their width; b has no zeros."""
    x, y = np.asarray(a), np.asarray(b)
    flat = []
    for p, q in zip(x.ravel().tolist(), y.ravel().tolist(), strict=True):
        size = abs(p) // abs(q)
        flat.append(size if (p < 0) == (q < 0) else -size)
    return wrap(flat, x.dtype).reshape(x.shape)


def wrap(values: Any, dtype: Any) -> Array:
    """Python integers reduced to a fixed width."""
    kind = np.dtype(dtype)
    mask = (1 << (8 * kind.itemsize)) - 1
    unsigned = np.array([int(v) & mask for v in values], np.dtype(f"u{kind.itemsize}"))
    return unsigned.view(kind)


# --- inputs ----------------------------------------------------------------------------------------------------

F32_EDGES = np.array(
    [
        0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000, 0x80800000,
        0x3F800000, 0xBF800000, 0x3F7FFFFF, 0x3F800001, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000,
        0x7FC00000, 0xFFC00000, 0x7F800001, 0x33800000, 0x4B800000, 0x4F000000, 0xCF000000, 0x5F000000,
    ],
    np.uint32,
).view(np.float32)  # fmt: skip

F64_EDGES = np.array(
    [
        0x0000000000000000, 0x8000000000000000, 0x0000000000000001, 0x8000000000000001, 0x000FFFFFFFFFFFFF,
        0x800FFFFFFFFFFFFF, 0x0010000000000000, 0x8010000000000000, 0x3FF0000000000000, 0xBFF0000000000000,
        0x3FEFFFFFFFFFFFFF, 0x3FF0000000000001, 0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF, 0x7FF0000000000000,
        0xFFF0000000000000, 0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0x3CA0000000000000,
        0x4340000000000000, 0x43E0000000000000, 0xC3E0000000000000, 0x0018000000000000,
    ],
    np.uint64,
).view(np.float64)  # fmt: skip

F16_EDGES = np.array(
    [
        0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x83FF, 0x0400, 0x8400, 0x3C00, 0xBC00, 0x3BFF, 0x3C01,
        0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0xFE00, 0x7C01, 0x1400, 0x6400, 0x7800,
    ],
    np.uint16,
).view(np.float16)  # fmt: skip

S32_EDGES = np.array(
    [0, 1, -1, 2, -2, 7, -7, 10, -10, 31, 32, 255, 256, -256, 65535, 65536, -65536, 2**30, -(2**30), 2**31 - 1,
     -(2**31), -(2**31) + 1, 0x55555555, -0x55555556],
    np.int32,
)  # fmt: skip

U64_EDGES = np.array(
    [0, 1, 2, 3, 7, 10, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**53, 2**62, 2**63 - 1, 2**63, 2**63 + 1,
     2**64 - 1, 2**64 - 2, 2**64 - 2**32, 0xAAAAAAAAAAAAAAAA],
    np.uint64,
)  # fmt: skip


def _mixed(generator: np.random.Generator, count: int, random: Array, edges: Array) -> Array:
    """``random`` with a third of its places taken by edge values."""
    values = random.copy()
    if count:
        places = generator.random(count) < 0.34
        values[places] = generator.choice(edges.view(f"u{edges.dtype.itemsize}"), count).view(edges.dtype)[places]
    return values


def floats(generator: np.random.Generator, count: int, *, edges: bool = False, scale: float = 1.0) -> Array:
    """float32 values: normal deviates times ``scale``; with ``edges`` also any bit pattern and edge values."""
    values = (generator.standard_normal(count) * scale).astype(np.float32)
    if edges and count:
        bits = generator.integers(0, 2**32, count, dtype=np.uint32).view(np.float32)
        values = np.where(generator.random(count) < 0.3, bits, values).astype(np.float32)
        values = _mixed(generator, count, values, F32_EDGES)
    return values


def doubles(generator: np.random.Generator, count: int, *, edges: bool = False) -> Array:
    """float64 values, as :func:`floats`."""
    values = generator.standard_normal(count)
    if edges and count:
        bits = generator.integers(0, 2**64, count, dtype=np.uint64).view(np.float64)
        values = np.where(generator.random(count) < 0.3, bits, values)
        values = _mixed(generator, count, values, F64_EDGES)
    return values


def halves(generator: np.random.Generator, count: int, *, edges: bool = False) -> Array:
    """float16 values, as :func:`floats`."""
    values = generator.standard_normal(count).astype(np.float16)
    if edges and count:
        bits = generator.integers(0, 2**16, count, dtype=np.uint16).view(np.float16)
        values = np.where(generator.random(count) < 0.3, bits, values).astype(np.float16)
        values = _mixed(generator, count, values, F16_EDGES)
    return values


def ints(generator: np.random.Generator, count: int, *, edges: bool = False) -> Array:
    """int32 values over the whole range; with ``edges`` a third are edge values."""
    values = generator.integers(-(2**31), 2**31, count, dtype=np.int32)
    return _mixed(generator, count, values, S32_EDGES) if edges else values


def longs(generator: np.random.Generator, count: int) -> Array:
    """uint64 values of every magnitude, a third edge values."""
    values = generator.integers(0, 2**64, count, dtype=np.uint64)
    values = values >> generator.integers(0, 64, count, dtype=np.uint64)
    negative = generator.random(count) < 0.3
    values = np.where(negative, ~values, values)
    return _mixed(generator, count, values, U64_EDGES)
