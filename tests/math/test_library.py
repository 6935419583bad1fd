"""The library functions against exact integer arithmetic, in every rounding mode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages.lower.math import functions, library

from . import exact, parsed_library, ptxeval, values
from .exact import F32, F64, MODES, Format
from .test_hard_f64 import DIVISORS, number, quotients

Array = Any
ONE = F64.bias << 52


def test_the_parsed_functions_are_those_of_the_text() -> None:
    """`python -m tests.math.parsed_library` rewrites the file."""
    kept = Path(library.__file__).with_name(functions.PARSED).read_bytes()
    assert parsed_library.parsed() == kept == parsed_library.parsed("compute_120a")


def machine(name: str, seed: int = 1, ulps: int = 1, units: int = 0) -> ptxeval.Machine:
    return ptxeval.Machine(ptxeval.parse(library.function_text(name)), np.random.default_rng(seed), ulps, units)


def check(f: Format, got: Array, want: list[int | None], *operands: Array) -> None:
    bad = [
        (hex(int(g)), w if w is None else hex(w), *(hex(int(o[i])) for o in operands))
        for i, (g, w) in enumerate(zip(got.tolist(), want, strict=True))
        if (not f.is_nan(g) if w is None else g != w)
    ]
    assert not bad, f"{len(bad)} of {len(want)} wrong (got, want, operands): {bad[:5]}"


def operands(f: Format, rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    a, b = values.pairs(f)
    c, d = values.near_midpoint_quotients(f, rng, n // 4)
    # the same significands at exponents that put the quotient near and below the smallest normal number
    low = rng.integers(1, f.bias + f.p, c.size).astype(np.uint64) << np.uint64(f.p - 1)
    e = (c & np.uint64((1 << (f.p - 1)) - 1)) | low
    return (
        np.concatenate([a, c, e, values.random_bits(f, rng, n)]),
        np.concatenate(
            [
                b,
                d,
                (d & np.uint64((1 << (f.p - 1)) - 1)) | np.uint64((f.bias + 1) << (f.p - 1)),
                values.random_bits(f, rng, n),
            ]
        ),
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ftz", [False, True])
def test_div_f32(mode: str, ftz: bool, size: int) -> None:
    a, b = operands(F32, np.random.default_rng(7), size)
    (got,) = machine(f"__orias_div_f32_{mode}{'_ftz' * ftz}").run(a, b)
    check(F32, got, [exact.div(F32, x, y, mode, ftz) for x, y in zip(a.tolist(), b.tolist(), strict=True)], a, b)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ftz", [False, True])
def test_rcp_f32(mode: str, ftz: bool, size: int) -> None:
    """Also divisors whose reciprocals are nearest to ties: those next to powers of two."""
    a, b = operands(F32, np.random.default_rng(9), size // 8)
    near = np.arange(1 << 23, (1 << 23) + 64, dtype=np.uint64)
    powers = np.arange(1, 255, dtype=np.uint64) << np.uint64(23)
    steps = np.array([0, 1, 2, (1 << 23) - 1, (1 << 23) - 2], np.uint64)
    v = np.concatenate([a, b, near, (powers[:, None] | steps).ravel()])
    (got,) = machine(f"__orias_rcp_f32_{mode}{'_ftz' * ftz}").run(v)
    one = F32.bias << (F32.p - 1)
    check(F32, got, [exact.div(F32, one, x, mode, ftz) for x in v.tolist()], v)


@pytest.mark.parametrize("mode", MODES)
def test_div_f64(mode: str, size: int) -> None:
    a, b = operands(F64, np.random.default_rng(8), size)
    (got,) = machine(f"__orias_div_f64_{mode}", units=2).run(a, b)
    check(F64, got, [exact.div(F64, x, y, mode) for x, y in zip(a.tolist(), b.tolist(), strict=True)], a, b)


@pytest.mark.parametrize("mode", MODES)
def test_hard_quotients_f64(mode: str) -> None:
    """The divisors whose reciprocals are closest to ties, with quotients closest to ties, at exponents where the result
    is normal and where it loses one and two bits."""
    pairs = [(number(x), number(b)) for b in DIVISORS if b & 63 for x in quotients(b)]
    a, b = (np.array(side, np.uint64) for side in zip(*pairs, strict=True))
    up = [(0, 0), (600, -500), (-500, 522), (-500, 523), (-1000, -400)]
    a, b = (np.concatenate([x + np.uint64((e[k] << 52) % 2**64) for e in up]) for k, x in enumerate((a, b)))
    (got,) = machine(f"__orias_div_f64_{mode}", units=2).run(a, b)
    check(F64, got, [exact.div(F64, x, y, mode) for x, y in zip(a.tolist(), b.tolist(), strict=True)], a, b)


@pytest.mark.parametrize("mode", MODES)
def test_ties_below_the_normal_range_f64(mode: str, size: int) -> None:
    """Quotients exactly between two subnormal numbers, for divisors whose reciprocals are not finite, and their
    neighbours."""
    rng = np.random.default_rng(14)
    dividends: list[int] = []
    divisors: list[int] = []
    for _ in range(size // 4):
        k = int(rng.integers(2, 52))
        v = int(rng.integers(1 << (k - 1), 1 << k)) | 1
        m = int(rng.integers(1, 1 << (53 - k))) | 1
        e = int(rng.integers(60, 900))
        u = (F64.pack(0, v * m, e - 1075, False, "rn") + int(rng.integers(-1, 2))) % F64.sign
        dividends.append(u | F64.sign * int(rng.integers(0, 2)))
        divisors.append(F64.pack(0, v, e, False, "rn") | F64.sign * int(rng.integers(0, 2)))
    a, b = np.array(dividends, np.uint64), np.array(divisors, np.uint64)
    (got,) = machine(f"__orias_div_f64_{mode}", units=2).run(a, b)
    check(F64, got, [exact.div(F64, x, y, mode) for x, y in zip(dividends, divisors, strict=True)], a, b)


@pytest.mark.parametrize("mode", MODES)
def test_rcp_f64(mode: str, size: int) -> None:
    """The operands that the guard of rcp sends here: biased exponents 0 and 2045 to 2047. Other operands are scaled to
    these."""
    rng = np.random.default_rng(13)
    a = np.concatenate(
        [np.array(values.specials(F64), np.uint64), *(values.random_bits(F64, rng, size) for _ in range(2))]
    )
    sign, rest = a & np.uint64(F64.sign), a & np.uint64(F64.sign - 1)
    low = rest % np.uint64(1 << 52) >> np.arange(a.size).astype(np.uint64) % np.uint64(52)
    high = rest % np.uint64(1 << 53) + np.uint64(2045 << 52)
    near = np.array(
        [(2045 << 52) + d for d in range(40)]
        + [(2047 << 52) + d for d in range(-40, 2)]
        + [(1 << 50) + d for d in range(-3, 4)],
        np.uint64,
    )
    a = np.concatenate(
        [
            a[rest - np.uint64(1 << 52) >= np.uint64(2044 << 52)],
            sign | low,
            sign | high,
            near,
            near | np.uint64(F64.sign),
        ]
    )
    (got,) = machine(f"__orias_rcp_f64_{mode}", units=2).run(a)
    check(F64, got, [exact.div(F64, ONE, x, mode) for x in a.tolist()], a)


def radicands(f: Format, rng: np.random.Generator, n: int) -> Array:
    """Specials, random numbers, exact squares and their neighbours, squares of midpoints rounded either way."""
    root = rng.integers(1 << (f.p - 1), 1 << f.p, n, dtype=np.uint64).tolist()
    out = values.specials(f)
    for r in root:
        n2 = (2 * r + int(rng.integers(0, 2))) ** 2 >> (f.p + 2)
        n2 >>= max(0, n2.bit_length() - f.p)
        e = f.bias + int(rng.integers(-f.bias + 1, f.bias + 1))
        out += [((e << (f.p - 1)) + (n2 - (1 << (f.p - 1))) + d) % f.sign for d in (-1, 0, 1)]
    short = rng.integers(1, 1 << (f.p // 2), n // 4, dtype=np.uint64).tolist()
    out += [exact.fma(f, x, x, 0) or 0 for x in (f.pack(0, r, 0, False, "rn") for r in short)]
    return np.concatenate([np.array(out, np.uint64), values.random_bits(f, rng, n)])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ftz", [False, True])
def test_sqrt_f32(mode: str, ftz: bool, size: int) -> None:
    a = radicands(F32, np.random.default_rng(9), size // 4)
    (got,) = machine(f"__orias_sqrt_f32_{mode}{'_ftz' * ftz}").run(a)
    check(F32, got, [exact.sqrt(F32, x, mode, ftz) for x in a.tolist()], a)


@pytest.mark.parametrize("mode", MODES)
def test_sqrt_f64(mode: str, size: int) -> None:
    """The operands that the guard of sqrt sends here: all but 2**-969 to the largest number. Other operands are scaled
    to these."""
    a = radicands(F64, np.random.default_rng(10), size // 4)
    high = a - np.uint64(54 << 52) < np.uint64((2047 - 54) << 52)
    a = np.where(high, a % np.uint64(54 << 52), a)
    subnormal = np.random.default_rng(11).integers(1, 1 << 52, size // 4, dtype=np.uint64) >> np.arange(
        size // 4
    ).astype(np.uint64) % np.uint64(52)
    a = np.concatenate([a, subnormal])
    (got,) = machine(f"__orias_sqrt_f64_{mode}").run(a)
    check(F64, got, [exact.sqrt(F64, x, mode) for x in a.tolist()], a)


def integers64(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Pairs with every combination of bit lengths, edges, and dividends next to multiples of the divisor."""
    edge = [
        0,
        1,
        2,
        3,
        2**31 - 1,
        2**31,
        2**32 - 1,
        2**32,
        2**32 + 1,
        2**33,
        2**63 - 1,
        2**63,
        2**63 + 1,
        2**64 - 2,
        2**64 - 1,
        2**53,
        2**24 + 1,
    ]
    edge += [2**64 // k + d for k in (3, 5, 7, 2**20 + 7) for d in (-1, 0, 1)] + [1 << k for k in range(0, 64, 5)]
    ea, eb = np.meshgrid(np.array(edge, np.uint64), np.array(edge, np.uint64))
    wide = rng.integers(0, 2**64 - 1, (2, n), dtype=np.uint64, endpoint=True)
    a, b = wide >> rng.integers(0, 64, (2, n)).astype(np.uint64)
    near = (wide[0] // np.maximum(b, np.uint64(1))) * b + rng.integers(-2, 3, n).astype(np.int64).view(np.uint64)
    return np.concatenate([ea.ravel(), a, near, wide[0]]), np.concatenate([eb.ravel(), b, b, wide[1]])


def divided(kind: str, ulps: int, a: Array, b: Array) -> tuple[Array, Array]:
    """Quotients and remainders, which the functions for only one of them must give too."""
    q, r = machine(f"__orias_divmod_{kind}", ulps=ulps).run(a, b)
    assert np.array_equal(machine(f"__orias_div_{kind}", 2, ulps).run(a, b)[0], q)
    assert np.array_equal(machine(f"__orias_rem_{kind}", 3, ulps).run(a, b)[0], r)
    return q, r


@pytest.mark.parametrize("ulps", [0, 1])
def test_divmod_u64(ulps: int, size: int) -> None:
    a, b = integers64(np.random.default_rng(11), 4 * size)
    q, r = divided("u64", ulps, a, b)
    safe = np.where(b == 0, np.uint64(1), b)
    assert np.array_equal(q, np.where(b == 0, np.uint64(2**64 - 1), a // safe))
    assert np.array_equal(r, np.where(b == 0, np.uint64(2**64 - 1), a % safe))


def test_divmod_s64(size: int) -> None:
    a, b = integers64(np.random.default_rng(12), size)
    q, r = divided("s64", 1, a, b)
    for x, y, u, v in zip(a.view(np.int64).tolist(), b.view(np.int64).tolist(), q.tolist(), r.tolist(), strict=True):
        if y == 0:
            assert u == v == 2**64 - 1
            continue
        want = abs(x) // abs(y) * (-1 if (x < 0) != (y < 0) else 1)
        assert u == want % 2**64 and v == (x - want * y) % 2**64, (x, y)
