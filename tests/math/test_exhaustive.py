"""The f32 sequences of :mod:`stages.lower.math.ieee` for every significand, with every seed that MUFU may return.

Results are judged in integers. With the default size only every 61st block of significands is tried;
``--math-size 100000`` tries all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from . import vector32 as v
from .exact import F64, MODES, sqrt
from .sasseval import EXACT_SEEDS, Evaluator, one_op

Array = Any
ONE = np.float32(1)
HALF = np.float32(0.5)


def blocks(low: int, high: int, size: int) -> Iterator[Array]:
    """Integers of [low, high) in blocks; all of them in a thorough run. The last block is always included."""
    step = 1 << 16
    starts = range(low, high, step) if size >= 100_000 else [*range(low, high - step, 61 * step), high - step]
    for s in starts:
        yield np.arange(s, s + step, dtype=np.int64)


def significand(x: Array) -> Array:
    """Integer of [2**23, 2**25) as an f32 of [1, 4)."""
    return x.astype(np.float32) * np.float32(2.0**-23)


@pytest.mark.parametrize("mode", MODES)
def test_reciprocal(mode: str, size: int) -> None:
    for x in blocks(1 << 23, 1 << 24, size):
        f = significand(x)
        r0 = (1 / f.astype(np.float64)).astype(np.float32)
        for d in (-1, 0, 1):
            use = np.isin(x & 0x7FFFFF, EXACT_SEEDS[:1], invert=True) | (d == 0)
            r = v.ulps(r0, d)
            for _ in range(2):
                r = v.fma(r, v.fma(-f, r, ONE), r)
            if mode != "rn":
                r = v.fma(r, v.fma(-f, r, ONE), r, mode)
            m = np.rint(r.astype(np.float64) * 2.0**24).astype(np.int64)  # 1/f = 2**47 / x in units of 2**-24
            rest = (np.int64(1) << 47) - x * m
            if mode == "rn":
                ok = 2 * np.abs(rest) < x
            elif mode == "rp":
                ok = (rest <= 0) & (rest > -x)
            else:
                ok = (rest >= 0) & (rest < x)
            one = x == 1 << 23  # exactly 1: the last place is twice as wide there
            assert (ok | one | ~use).all(), (mode, d, x[~ok & ~one & use][:4])
            assert (r[one] == 1).all()


# Significands (with the exponent's parity) whose reciprocal square root must not be one unit high: the plain chain
# misrounds.
SQRT_EXACT = (0xFC114A, 0x1DD26E4)


@pytest.mark.parametrize("mode", MODES)
def test_square_root(mode: str, size: int) -> None:
    for i in blocks(0, 1 << 24, size):
        x = np.where(i < 1 << 23, i + (1 << 23), 2 * i)  # in units of 2**-23: [1, 2), then [2, 4)
        f = significand(x)
        y0 = (1 / np.sqrt(f.astype(np.float64))).astype(np.float32)
        for d in (-2, -1, 0, 1, 2):
            y = v.ulps(y0, d)
            # PTX manual: relative error at most 2**-22.9
            use = np.abs(y.astype(np.float64) * np.sqrt(f.astype(np.float64)) - 1) <= 2.0**-22.9
            if mode == "rn":
                use &= np.isin(x, SQRT_EXACT, invert=True) | (d == 0)
            s, h = v.fma(f, y, 0), v.fma(y, HALF, 0)
            if mode != "rn":
                e = v.fma(-s, h, HALF)
                s, h = v.fma(s, e, s), v.fma(h, e, h)
                s = v.fma(v.fma(-s, s, f), h, s)
            s = v.fma(v.fma(-s, s, f), h, s, mode)
            m = np.rint(s.astype(np.float64) * 2.0**23).astype(np.int64)
            n = x << 23  # the square of the root in units of 2**-23
            if mode == "rn":
                ok = (m * m - m < n) & (n <= m * m + m)
            elif mode == "rp":
                ok = ((m - 1) * (m - 1) < n) & (n <= m * m)
            else:
                ok = (m * m <= n) & (n < (m + 1) * (m + 1))
            assert (ok | ~use).all(), (mode, d, [hex(k) for k in x[~ok & use][:4].tolist()])


def divisors(size: int) -> Iterator[tuple[int, Array]]:
    """Blocks of odd integers b, and t, so that b << t covers the divisors of 24 bits with at most three factors of
    two."""
    for t in range(4):
        for b in blocks(1 << (23 - t), 1 << (24 - t), size):
            yield t, b[b & 1 == 1]


def dividends(b: Array, t: int, scale: int, k: int) -> Array:
    """The least a >= 0 with a * 2**scale = m * (b << t) + k for an integer m; k is a multiple of 2**t."""
    a = (k >> t) % b
    for _ in range(scale - t):
        a = np.where(a & 1 == 1, a + b, a) >> 1  # halved modulo b
    return a


@pytest.mark.parametrize("mode", ["rn", "rz"])
def test_division_near_midpoints(mode: str, size: int) -> None:
    """Every quotient within 12/b of a 25-bit number: only there can a sequence fail."""
    tried = 0
    for t, odd in divisors(size):
        b = odd << t
        f = significand(b)
        r0 = (1 / f.astype(np.float64)).astype(np.float32)
        seeds = []
        for d in (-1, 0, 1):
            r = v.ulps(r0, d)
            for _ in range(1 if mode == "rn" else 2):
                r = v.fma(r, v.fma(-f, r, ONE), r)
            ok = np.isin(b & 0x7FFFFF, EXACT_SEEDS if mode == "rn" else EXACT_SEEDS[:1], invert=True) | (d == 0)
            seeds.append((r, ok))
        for scale in (24, 25):  # quotients of [1, 2) and of (1/2, 1)
            for k in range(-12, 13):
                if k == 0 or k & ((1 << t) - 1):
                    continue
                a0 = dividends(odd, t, scale, k)
                for j in range(1 << t + 1):
                    a = a0 + j * odd
                    here = (a >= (b if scale == 24 else 1 << 23)) & (a < (1 << 24 if scale == 24 else b))
                    if not here.any():
                        continue
                    tried += int(here.sum())
                    check_quotients(mode, a[here], b[here], f[here], [(r[here], ok[here]) for r, ok in seeds])
    assert tried > 10_000


def check_quotients(mode: str, a: Array, b: Array, f: Array, seeds: list[tuple[Array, Array]]) -> None:
    n = significand(a)
    for r, use in seeds:
        q = v.fma(n, r, 0)
        q = v.fma(r, v.fma(-f, q, n), q)
        if mode != "rn":
            q = v.fma(r, v.fma(-f, q, n), q, mode)
        # q = m * 2**-24 (or -23 from 1 on); a/b against it in integers
        place = np.where(q >= 1, 23, 24)
        m = np.rint(np.ldexp(q.astype(np.float64), place)).astype(np.int64)
        rest = (a << place) - m * b
        if mode == "rn":
            ok = 2 * np.abs(rest) < b
        elif mode == "rp":
            ok = (rest <= 0) & (rest > -b)
        else:
            ok = (rest >= 0) & (rest < b)
        assert (ok | ~use).all(), (
            mode,
            [(hex(x), hex(y)) for x, y in zip(a[~ok & use][:4].tolist(), b[~ok & use][:4].tolist(), strict=True)],
        )


def near_midpoint_squares(limit: int) -> list[int]:
    """f64 radicands whose root is closest to a midpoint: m*m = x * 2**s - j for odd m of 54 bits and small j, by
    lifting roots modulo 2**s."""
    out = []
    for s in (54, 55):
        for j in range(-limit, limit):
            if (-j) % 8 != 1:  # an odd square is 1 modulo 8
                continue
            roots = [1, 3, 5, 7]
            for bits in range(4, s + 1):
                step = 1 << (bits - 1)
                roots = [r + e for r in roots for e in (0, step >> 1) if ((r + e) ** 2 + j) % (1 << bits) == 0]
                roots = sorted({r % step for r in roots})
            for r in roots:
                for m in {r + i * (1 << s - 2) for i in range(8)}:
                    if 1 << 53 <= m < 1 << 54 and (m * m + j) % (1 << s) == 0:
                        x = (m * m + j) >> s
                        if 1 << 52 <= x < 1 << 53:
                            exponent = 1023 if s == 54 else 1024
                            out.append((exponent << 52) | (x - (1 << 52)))
    return out


@pytest.mark.parametrize("mode", MODES)
def test_hardest_square_roots_f64(mode: str, size: int) -> None:
    hard = near_midpoint_squares(256 if size < 100_000 else 4096)
    assert len(hard) > 80
    ev = Evaluator(one_op(f"sqrt.{mode}.f64 $d, $0", "f64", ["f64"], "sm_90"), 2)
    for x in hard:
        for _ in range(3):
            assert ev.run(x) == sqrt(F64, x, mode), hex(x)
    assert ev.calls == 0
