"""Floating-point helpers against exact rational arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from stages.simulate import exact, fp

MODES = ("RN", "RZ", "RM", "RP")
SPECIAL64 = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    5e-324,
    -5e-324,
    2.2250738585072014e-308,
    1.7976931348623157e308,
    math.inf,
    -math.inf,
    math.nan,
    1 + 2**-52,
)
SPECIAL32 = tuple(
    np.float32(x)
    for x in (0, -0.0, 1, -1, 1e-45, -1e-45, 1.1754944e-38, 3.4028235e38, math.inf, -math.inf, math.nan, 1 + 2**-23)
)


def same(a: float, b: float) -> bool:
    """Equal bits; all NaNs are equal."""
    return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))


def samples32(n: int, seed: int) -> np.ndarray:
    """Floats of every magnitude, with ties likely, and the special ones."""
    g = np.random.default_rng(seed)
    wild = g.integers(0, 2**32, n, dtype=np.uint32).view(np.float32)
    near = (g.integers(-64, 64, n) * 2.0 ** g.integers(-30, 30, n)).astype(np.float32)
    return np.where(g.random(n) < 0.5, wild, near).astype(np.float32)


@pytest.mark.parametrize("mode", MODES)
def test_fma32(mode: str) -> None:
    a, b, c = (
        np.concatenate([samples32(1500, s), np.tile(np.roll(SPECIAL32, s), 12)]).astype(np.float32) for s in (1, 2, 3)
    )
    with np.errstate(all="ignore"):
        c[:300] = (-(a[:300].astype(np.float64) * b[:300])).astype(np.float32)
    with np.errstate(all="ignore"):
        got = fp.fma32(a, b, c, mode)
    for x, y, z, r in zip(a, b, c, got, strict=True):
        want = exact.fma_exact(float(x), float(y), float(z), exact.F32, mode)
        assert same(want, float(r)), (x, y, z, want, r)
    assert set(got.view(np.uint32)[np.isnan(got)]) <= {0x7FFFFFFF}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("op", ["add", "mul", "fma"])
def test_double_arithmetic_is_exact(op: str, mode: str) -> None:
    g = np.random.default_rng(9)
    parts = []
    for s in range(3):
        wild = g.integers(0, 2**64, 400, dtype=np.uint64).view(np.float64)
        near = np.ldexp(g.integers(-(2**53), 2**53, 800).astype(np.float64), g.integers(-60, 10, 800))
        parts.append(np.concatenate([wild, near, np.roll(SPECIAL64, s), np.roll(SPECIAL64, 2 * s + 1)]))
    a, b, c = parts
    c[400:600] = -(a[400:600] * b[400:600])
    with np.errstate(all="ignore"):
        got = {
            "add": lambda: fp.add64(a, b, mode),
            "mul": lambda: fp.mul64(a, b, mode),
            "fma": lambda: fp.fma64(a, b, c, mode),
        }[op]()
    for x, y, z, r in zip(a.tolist(), b.tolist(), c.tolist(), got.tolist(), strict=True):
        if op == "mul":
            want = exact.mul_exact(x, y, exact.F64, mode)
        else:
            want = (
                exact.fma_exact(x, y, z, exact.F64, mode)
                if op == "fma"
                else exact.fma_exact(x, 1.0, y, exact.F64, mode)
            )
        assert same(want, r), (x, y, z, want, r)


def test_the_reference() -> None:
    """The exact arithmetic itself, against rational numbers (whose conversion to a float rounds to nearest
    even)."""
    g = np.random.default_rng(11)
    wild = g.integers(0, 2**64, 3 * 500, dtype=np.uint64).view(np.float64)
    near = np.ldexp(g.integers(-(2**53), 2**53, 3 * 500).astype(np.float64), g.integers(-1100, -400, 3 * 500))
    for x, y, z in [
        *wild.reshape(-1, 3).tolist(),
        *near.reshape(-1, 3).tolist(),
        (1.5, 2.0, -3.0),
        (5e-324, 0.5, 5e-324),
        (5e-324, 1.5, 0.0),
    ]:
        if not np.isfinite([x, y, z]).all():
            continue
        total = Fraction(x) * Fraction(y) + Fraction(z)
        if abs(total) < Fraction(1.7976931348623157e308):
            assert exact.fma_exact(x, y, z, exact.F64, "RN") == float(total), (x, y, z)


@pytest.mark.parametrize("fmt", [exact.F16, exact.BF16, exact.TF32, exact.E5M2, exact.E4M3])
@pytest.mark.parametrize("mode", [*MODES, "RNA"])
def test_narrow_rounding_is_exact(fmt: exact.Format, mode: str) -> None:
    with np.errstate(all="ignore"):
        x = np.concatenate([samples32(1500, 5).astype(np.float64), np.random.default_rng(6).normal(size=1500)])
    x = x[np.isfinite(x)]
    got = fp.narrow(x, fmt, mode)
    for value, r in zip(x.tolist(), got.tolist(), strict=True):
        want = exact.round_exact(Fraction(value), fmt, mode) if value else value
        assert same(want, r), (value, want, r)


@pytest.mark.parametrize("fmt", [exact.E4M3, exact.E5M2, exact.E3M2, exact.E2M3, exact.E2M1])
def test_small_formats_round_trip(fmt: exact.Format) -> None:
    bits = {exact.E2M1: 4, exact.E3M2: 6, exact.E2M3: 6}.get(fmt, 8)
    codes = np.arange(1 << bits).astype(np.uint8)
    values = fp.decode_small(codes, fmt)
    finite = np.isfinite(values)
    assert (fp.encode_small(values[finite], fmt) == codes[finite]).all()
    assert (np.abs(values[finite]).max()) == fmt.top


def test_to_odd_avoids_double_rounding() -> None:
    # 1 + 2**-24 + 2**-80: a double holds 1 + 2**-24, a tie for float32; the exact value is above it.
    r = fp.fma32(np.array([2.0**-40], np.float32), np.array([2.0**-40], np.float32), np.array([1 + 2**-23], np.float32))
    assert r[0] == np.float32(1 + 2**-23)
    a = np.array([1.0000001], np.float32)
    b = np.array([1.0000001], np.float32)
    assert float(fp.fma32(a, b, np.array([-1], np.float32))[0]) == exact.fma_exact(
        float(a[0]), float(b[0]), -1.0, exact.F32, "RN"
    )
