"""f32 arithmetic on numpy arrays, correctly rounded in all modes: a product is exact in double, a sum is rounded to odd
there before it is rounded to f32."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any


def to_f32(t: Array, mode: str) -> Array:
    """Round doubles (exact, or rounded to odd) to f32."""
    r = t.astype(np.float32)
    if mode == "rn":
        return r
    back = r.astype(np.float64)
    if mode == "rz":
        wrong = np.abs(back) > np.abs(t)
        return np.where(wrong, np.nextafter(r, np.float32(0)), r)
    if mode == "rm":
        return np.where(back > t, np.nextafter(r, np.float32(-np.inf)), r)
    return np.where(back < t, np.nextafter(r, np.float32(np.inf)), r)


def fma(a: Array, b: Array, c: Array, mode: str = "rn") -> Array:
    """a*b + c, one rounding (no overflow, no subnormals in the double)."""
    p = a.astype(np.float64) * b.astype(np.float64)
    c = np.asarray(c, np.float64)
    s = p + c
    z = s - p
    err = (p - (s - z)) + (c - z)  # two-sum: s + err is exact
    bits = s.view(np.int64)
    toward = np.where((err > 0) == (s > 0), 1, -1)
    odd = np.where((err != 0) & (bits & 1 == 0), bits + toward, bits)
    return to_f32(odd.view(np.float64), mode)


def ulps(x: Array, d: int) -> Array:
    """The f32 ``d`` places further from zero."""
    return (x.view(np.int32) + np.int32(d)).view(np.float32)
