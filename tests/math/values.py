"""Operands for tests: special values, halfway and nearly halfway cases, random bit patterns."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from .exact import Format

Array = Any


def specials(f: Format) -> list[int]:
    """Zeros, ones, extremes of every class, powers of two, near-powers; both signs; NaNs quiet and signalling."""
    one = f.bias << (f.p - 1)
    top = (1 << (f.p - 1)) - 1
    pos = [
        0, 1, 2, 3, top >> 1, top - 1, top, top + 1, top + 2, 2 * (top + 1), 2 * (top + 1) - 1, 3 * (top + 1),
        one, one + 1, one - 1, one + top, one + top - 1, one + (1 << (f.p - 1)), one - (1 << (f.p - 1)),
        one + (1 << (f.p - 2)),
        f.inf, f.inf - 1, f.inf - 2, f.inf - top - 1, f.inf + 1, f.inf + (1 << (f.p - 2)), f.sign - 1,
    ]  # fmt: skip
    pos += [e << (f.p - 1) for e in (1, 2, f.p, f.bias - f.p, f.bias + f.p, 2 * f.bias - 1)]
    return [*pos, *(x | f.sign for x in pos)]


def pairs(f: Format) -> tuple[Array, Array]:
    """All pairs of specials."""
    a, b = zip(*product(specials(f), repeat=2), strict=True)
    return np.array(a, np.uint64), np.array(b, np.uint64)


def random_bits(f: Format, rng: np.random.Generator, n: int) -> Array:
    """Random patterns: uniform bits, few-bit significands, subnormals, exponents near one."""
    width = f.p + f.ebits
    x = (
        rng.integers(0, 1 << width, n, dtype=np.uint64)
        if width < 64
        else rng.integers(0, 2**64 - 1, n, dtype=np.uint64, endpoint=True)
    )
    kind = rng.integers(0, 5, n)
    frac = np.uint64((1 << (f.p - 1)) - 1)
    sparse = np.uint64(1) << rng.integers(0, f.p - 1, n).astype(np.uint64)
    x = np.where(kind == 1, (x & ~frac) | (frac & ~(sparse - np.uint64(1))), x)
    x = np.where(kind == 2, x & np.uint64(f.sign | ((1 << (f.p - 1)) - 1)), x)
    near = (np.uint64(f.bias - 4) + (x >> np.uint64(f.p - 1)) % np.uint64(9)) << np.uint64(f.p - 1)
    return np.where(kind >= 3, (x & (frac | np.uint64(f.sign))) | near, x)


def near_midpoint_quotients(f: Format, rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Normal a, b with a/b within a few parts in 2**(2p) of a floating-point number or of a midpoint of two.

    For odd b and a small k, ``a * 2**(p+1) = m*b + k`` is solved for the quotient m (p+1 bits) modulo 2**(p+1).
    """
    one = f.bias << (f.p - 1)
    hidden = 1 << (f.p - 1)
    out_a, out_b = [], []
    mod = 1 << (f.p + 1)
    while len(out_a) < n:
        b = int(rng.integers(0, hidden, dtype=np.uint64)) | hidden | 1
        k = int(rng.integers(-6, 7))
        m = -k * pow(b, -1, mod) % mod
        for m2 in (m | mod >> 1, m | mod):  # quotients whose last p bits are m's
            num = m2 * b + k
            if num % mod:
                continue
            a = num // mod
            while 0 < a < hidden:
                a *= 2
            if hidden <= a < 2 * hidden:
                out_a.append(one | (a - hidden))
                out_b.append(one | (b - hidden))
    return np.array(out_a[:n], np.uint64), np.array(out_b[:n], np.uint64)
