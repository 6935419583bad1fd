"""Arithmetic of halves by exact fractions: one rounding of the exact result."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from tests.edges.formats import PARTS, flushed, is_nan, number, saturated, to_half


def exact(op: str, xs: list[int], t: str, mode: str = "") -> int:
    if t == "f16" and ".ftz" in mode:
        xs = [flushed(x, t) for x in xs]
    v = [number(x, t) for x in xs]
    if any(math.isnan(x) for x in v):
        r = 0x7FFF
    elif any(math.isinf(x) for x in v):
        with np.errstate(all="ignore"):
            y = {
                "add": lambda: v[0] + v[1],
                "sub": lambda: v[0] - v[1],
                "mul": lambda: v[0] * v[1],
                "fma": lambda: v[0] * v[1] + v[2],
            }[op]()
        r = 0x7FFF if math.isnan(y) else to_half(y, "rn") if t == "f16" else (0x7F80 | (0x8000 if y < 0 else 0))
    else:
        f = [Fraction(x) for x in v]
        y2 = {
            "add": lambda: f[0] + f[1],
            "sub": lambda: f[0] - f[1],
            "mul": lambda: f[0] * f[1],
            "fma": lambda: f[0] * f[1] + f[2],
        }[op]()
        r = rounded(y2, t)
        if not y2:  # a zero's sign as the host's double has it
            y3 = {
                "add": lambda: v[0] + v[1],
                "sub": lambda: v[0] - v[1],
                "mul": lambda: v[0] * v[1],
                "fma": lambda: v[0] * v[1] + v[2],
            }[op]()
            r = 0x8000 if math.copysign(1.0, y3) < 0 else 0
    if ".ftz" in mode:
        r = flushed(r, t)
    if ".relu" in mode:
        r = relu16(r, t)
    return saturated(r, t) if ".sat" in mode else r


def by_halves(f: Callable[[list[int]], int], t: str) -> Callable[..., int]:
    if not t.endswith("x2"):
        return lambda *xs: f(list(xs))
    return lambda *xs: f([x & 65535 for x in xs]) | f([x >> 16 for x in xs]) << 16


def relu16(r: int, t: str) -> int:
    return 0 if r & 0x8000 and not is_nan(r, t) else r


def rounded(f: Fraction, t: str) -> int:
    """An exact value as f16 or bf16, to nearest."""
    if t == "f16":
        return to_half(f, "rn")
    sign, f = (0x8000 if f < 0 else 0), abs(f)
    exponent = -126
    while f >= Fraction(2) ** (exponent + 1):
        exponent += 1
    step = Fraction(2) ** (exponent - 7)
    q = f / step
    whole = math.floor(q)
    whole += q - whole > Fraction(1, 2) or (q - whole == Fraction(1, 2) and whole % 2 == 1)
    if whole * step >= Fraction(2) ** 128:
        return sign | 0x7F80
    return sign | int(np.array(float(whole * step), np.float32).view(np.uint32)) >> 16


def least(a: int, b: int, t: str, mods: str, greatest: bool) -> int:
    """min and max: of a number and a NaN the number (.NaN: the NaN); -0 below +0; .xorsign: sign of the product; .abs:
    of magnitudes."""
    _, sign, canonical = PARTS[t]
    if ".ftz" in mods:
        a, b = flushed(a, t), flushed(b, t)
    flip = (a ^ b) & sign if ".xorsign" in mods else 0
    if ".abs" in mods:
        a, b = a & ~sign, b & ~sign
    if is_nan(a, t) and is_nan(b, t) or ".NaN" in mods and (is_nan(a, t) or is_nan(b, t)):
        return canonical
    if is_nan(a, t) or is_nan(b, t):
        r = b if is_nan(a, t) else a
    else:
        key = [(number(x, t), not x & sign) for x in (a, b)]
        r = (a if key[0] >= key[1] else b) if greatest else (a if key[0] <= key[1] else b)
    return r & ~sign | flip if ".xorsign" in mods else r
