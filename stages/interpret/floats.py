"""Floating-point values as bit patterns in uint64 arrays; every result is rounded once, from an exact value.

Narrow formats go through float64: a product of two floats of at most 26 bits is exact there, a sum is made exact by
Knuth's two-sum, and an inexact value is rounded to odd (Boldo and Melquiond 2008); one more rounding to 51 bits or
fewer, in any mode, is then correct. Binary64 itself goes through Python's integers, element by element, in cases where
numpy does not round as asked.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Arr = NDArray[Any]
U64 = np.uint64
ONE: Final = U64(1)


class Format(NamedTuple):
    """A binary format. `prec` counts the hidden bit; `kind` is ieee, e4m3 (no infinity, one NaN) or finite
    (neither)."""

    name: str
    bits: int
    prec: int
    emin: int
    nan: int
    kind: str = "ieee"

    @property
    def inf(self) -> int:
        """Bits of the infinity (of the first pattern past the largest finite value)."""
        if self.kind == "ieee":
            return ((1 << self.bits - self.prec) - 1) << self.prec - 1
        return (1 << self.bits - 1) - (1 if self.kind == "e4m3" else 0)

    @property
    def sign(self) -> int:
        """The sign bit."""
        return 1 << self.bits - 1


FORMATS: Final = {
    f.name: f
    for f in (
        Format("f64", 64, 53, -1022, 0x7FF8000000000000),
        Format("f32", 32, 24, -126, 0x7FFFFFFF),
        Format("f16", 16, 11, -14, 0x7FFF),
        Format("bf16", 16, 8, -126, 0x7FFF),
        Format("tf32", 19, 11, -126, 0x3FFFF),
        Format("e5m2", 8, 3, -14, 0x7F),
        Format("e4m3", 8, 4, -6, 0x7F, "e4m3"),
        Format("ue5m3", 9, 4, -14, 0xFF, "e4m3"),  # eight bits below a sign that is never set
        Format("e3m2", 6, 3, -2, 0x1F, "finite"),
        Format("e2m3", 6, 4, 0, 0x1F, "finite"),
        Format("e2m1", 4, 2, 0, 0x7, "finite"),
    )
}
F32: Final = FORMATS["f32"]
F64: Final = FORMATS["f64"]


def u64(x: Arr) -> Arr:
    """The bits of int64 or float64 values."""
    return np.ascontiguousarray(x).view(U64)


def decode(x: Arr, f: Format) -> Arr:
    """The values, as float64 (exact for every format)."""
    if f is F64:
        return np.ascontiguousarray(x, U64).view(np.float64)
    if f is F32:
        return x.astype(np.uint32).view(np.float32).astype(np.float64)
    magnitude = x & U64(f.sign - 1)
    field = (magnitude >> U64(f.prec - 1)).astype(np.int64)
    man = (magnitude & U64((1 << f.prec - 1) - 1)).astype(np.int64)
    normal = field > 0
    man = np.where(normal, man | (1 << f.prec - 1), man)
    value = np.ldexp(man.astype(np.float64), (np.maximum(field, 1) - 1 + f.emin - (f.prec - 1)).astype(np.int32))
    if f.kind == "ieee":
        value = np.where(magnitude > U64(f.inf), np.nan, np.where(magnitude == U64(f.inf), np.inf, value))
    elif f.kind == "e4m3":
        value = np.where(magnitude == U64(0x7F), np.nan, value)
    return np.where(x & U64(f.sign) != 0, -value, value)


def _up(mode: str, negative: Arr, low: Arr, rest: Arr, half: Arr) -> Arr:
    """Whether to round to the next magnitude."""
    if mode == "rn":
        return np.asarray((rest > half) | ((rest == half) & (low & ONE != 0)))
    if mode == "rna":
        return np.asarray((rest >= half) & (rest != 0))
    if mode == "rz":
        return np.zeros(rest.shape, np.bool_)
    return np.asarray((rest != 0) & (negative if mode == "rm" else ~negative))


def narrow(x: Arr, f: Format, mode: str = "rn", satfinite: bool = False) -> Arr:
    """float64 values (rounded to odd if inexact) as bits of a narrower format."""
    if f is F64:
        return np.where(np.isnan(x), U64(f.nan), u64(x))
    bits = u64(x)
    negative = bits >> U64(63) != 0
    magnitude = bits & U64((1 << 63) - 1)
    field = (magnitude >> U64(52)).astype(np.int64)
    man = (magnitude & U64((1 << 52) - 1)) | np.where(field > 0, U64(1 << 52), U64(0))
    exp = np.maximum(field, 1) - 1023
    lowest = np.maximum(exp, f.emin)
    shift = np.minimum(52 + lowest - (f.prec - 1) - exp, 63).astype(U64)
    low = man >> shift
    rest = man & ((ONE << shift) - ONE)
    r = low + _up(mode, negative, low, rest, ONE << (shift - ONE)).astype(U64)
    out = ((lowest - f.emin).astype(U64) << U64(f.prec - 1)) + r
    over = out >= U64(f.inf)
    infinite = field == 2047
    to_max = np.full(x.shape, satfinite or f.kind != "ieee")
    if mode == "rz":
        to_max |= ~infinite
    elif mode in ("rm", "rp"):
        to_max |= (negative if mode == "rp" else ~negative) & ~infinite
    out = np.where(over, np.where(to_max, U64(f.inf - 1), U64(f.inf)), out)
    out = out | np.where(negative, U64(f.sign), U64(0))
    return np.where(np.isnan(x), U64(f.nan), out)


_REACH: Final = {"rn": 29 / 28, "rp": 1.0, "rz": np.inf}


def past_top(x: Arr, f: Format, mode: str = "rn") -> Arr:
    """Where float64 values overflow a format of three mantissa bits that has no infinity: more than half a unit above
    the largest number, which is even, or above it at all if rounded up."""
    top = decode(np.asarray([f.inf - 1], U64), f)[0]
    return np.asarray(np.isinf(x) | (np.abs(x) > top * _REACH[mode]))


def flush(x: Arr, f: Format) -> Arr:
    """Subnormals become zeros of their sign."""
    small = (x & U64(f.sign - 1)) >> U64(f.prec - 1) == 0
    return np.where(small, x & U64(f.sign), x)


def saturate(x: Arr, f: Format) -> Arr:
    """Clamp to [0, 1]; NaN becomes +0."""
    magnitude = x & U64(f.sign - 1)
    zero = (x & U64(f.sign) != 0) | (magnitude > U64(f.inf))
    return np.where(zero, U64(0), np.minimum(magnitude, one_of(f)))


def one_of(f: Format) -> U64:
    """The bits of 1.0."""
    return U64((1 - f.emin) << f.prec - 1)


def relu(x: Arr, f: Format) -> Arr:
    """Negative values become +0; NaN stays, in canonical form."""
    nan = is_nan(x, f)
    return np.where(nan, U64(f.nan), np.where(x & U64(f.sign) != 0, U64(0), x))


def is_nan(x: Arr, f: Format) -> Arr:
    """True where the bits are a NaN."""
    return (x & U64(f.sign - 1)) > U64(f.inf)


def odd_sum(a: Arr, b: Arr) -> Arr:
    """The float64 sum rounded to odd."""
    s = a + b
    t = s - a
    e = (a - (s - t)) + (b - t)
    bits = u64(s)
    move = (e != 0) & (bits & ONE == 0) & np.isfinite(s) & np.isfinite(e)
    away = (e > 0) == (s > 0)
    return np.where(move, np.where(away, bits + ONE, bits - ONE), bits).view(np.float64)


def _signed_zero(s: Arr, a: Arr, b: Arr, mode: str) -> Arr:
    """A zero sum of zeros of opposite sign or of opposite numbers is -0 when rounding down."""
    if mode != "rm":
        return s
    return np.where((s == 0) & (np.signbit(a) | np.signbit(b)), -0.0, s)


def add(a: Arr, b: Arr, f: Format, mode: str = "rn") -> Arr:
    """a + b."""
    x, y = decode(a, f), decode(b, f)
    if f is F64:
        if mode == "rn":
            return narrow(x + y, f)
        return fma(a, np.broadcast_to(one_of(f), a.shape), b, f, mode)
    return narrow(_signed_zero(odd_sum(x, y), x, y, mode), f, mode)


def mul(a: Arr, b: Arr, f: Format, mode: str = "rn") -> Arr:
    """a * b."""
    if f is F64:
        x, y = decode(a, f), decode(b, f)
        return narrow(x * y, f) if mode == "rn" else _each(_mul64, mode, a, b)
    return narrow(decode(a, f) * decode(b, f), f, mode)


def fma(a: Arr, b: Arr, c: Arr, f: Format, mode: str = "rn") -> Arr:
    """a * b + c with one rounding."""
    if f is F64:
        return _each(_fma64, mode, a, b, c)
    p, z = decode(a, f) * decode(b, f), decode(c, f)
    return narrow(_signed_zero(odd_sum(p, z), p, z, mode), f, mode)


def _parts(x: Arr, f: Format) -> tuple[Arr, Arr]:
    """Normalised significands (with `prec` bits) and exponents of the last place of finite nonzero numbers."""
    value = np.where(np.isfinite(x) & (x != 0), np.abs(x), 1.0)
    fraction, exponent = np.frexp(value)
    return (fraction * float(1 << f.prec)).astype(U64), exponent.astype(np.int64) - f.prec


def div(a: Arr, b: Arr, f: Format, mode: str = "rn") -> Arr:
    """a / b."""
    x, y = decode(a, f), decode(b, f)
    if f is F64:
        return narrow(x / y, f) if mode == "rn" else _each(_div64, mode, a, b)
    plain = x / y
    mx, ex = _parts(x, f)
    my, ey = _parts(y, f)
    wide = mx << U64(38)
    q = wide // my
    odd = (q << ONE) | (q * my != wide).astype(U64)
    exact = np.ldexp(odd.astype(np.float64), (ex - ey - 39).astype(np.int32))
    special = ~np.isfinite(x) | ~np.isfinite(y) | (x == 0) | (y == 0)
    return narrow(np.where(special, plain, np.copysign(exact, plain)), f, mode)


def sqrt(a: Arr, f: Format, mode: str = "rn") -> Arr:
    """The square root."""
    x = decode(a, f)
    if f is F64:
        return narrow(np.sqrt(x), f) if mode == "rn" else _each(_sqrt64, mode, a)
    m, e = _parts(x, f)
    k = (52 - f.prec) + ((e - (52 - f.prec)) & 1)
    n = m << k.astype(U64)
    r = np.sqrt(n.astype(np.float64)).astype(U64)
    r = np.where(r * r > n, r - ONE, r)
    odd = (r << ONE) | (r * r != n).astype(U64)
    exact = np.ldexp(odd.astype(np.float64), ((e - k) // 2 - 1).astype(np.int32))
    return narrow(np.where((x > 0) & np.isfinite(x), exact, np.sqrt(x)), f, mode)


# --------------------------------------------------------------------------- binary64, one element at a time


def _split(x: int) -> tuple[int, int, int]:
    """Sign, significand and exponent of a finite number."""
    field = x >> 52 & 2047
    man = x & (1 << 52) - 1
    return x >> 63, man | (1 << 52 if field else 0), max(field, 1) - 1075


def pack64(negative: int, man: int, exp: int, sticky: bool, mode: str) -> int:
    """The binary64 nearest to ``man * 2**exp`` (plus a little if `sticky`) in a rounding mode."""
    sign = negative << 63
    if man == 0 and not sticky:
        return sign
    man, exp = (man << 2 | sticky), exp - 2
    last = max(man.bit_length() - 53 + exp, -1074)
    shift = last - exp
    if shift <= 0:
        low, rest, half = man << -shift, 0, 1
    else:
        low, rest, half = man >> shift, man & (1 << shift) - 1, 1 << shift - 1
    if mode == "rn":
        up = rest > half or (rest == half and low & 1 == 1)
    else:
        up = rest != 0 and mode != "rz" and (mode == "rm") == bool(negative)
    low += up
    bits = (last + 1074 << 52) + low
    if bits >= 2047 << 52:
        to_max = mode == "rz" or (mode == "rm" and not negative) or (mode == "rp" and bool(negative))
        bits = (2047 << 52) - (1 if to_max else 0)
    return sign | bits


def _special(x: int) -> bool:
    return x >> 52 & 2047 == 2047


def _host(bits: int) -> np.float64:
    return np.uint64(bits).view(np.float64)


def _fma64(mode: str, a: int, b: int, c: int) -> int:
    if _special(a) or _special(b) or _special(c):
        if _special(c) and not (_special(a) or _special(b)):
            return int((_host(c) + np.float64(0)).view(U64))
        return int((_host(a) * _host(b) + (_host(c) if _special(c) else np.float64(0))).view(U64))
    sa, ma, ea = _split(a)
    sb, mb, eb = _split(b)
    sc, mc, ec = _split(c)
    sp, mp, ep = sa ^ sb, ma * mb, ea + eb
    if mp == 0 and mc == 0:
        return (sp << 63) if sp == sc else (1 << 63 if mode == "rm" else 0)
    low = min(ep, ec)
    total = (-mp if sp else mp) * (1 << ep - low) + (-mc if sc else mc) * (1 << ec - low)
    if total == 0:
        return 1 << 63 if mode == "rm" else 0
    return pack64(int(total < 0), abs(total), low, False, mode)


def _mul64(mode: str, a: int, b: int) -> int:
    if _special(a) or _special(b):
        return int((_host(a) * _host(b)).view(U64))
    sa, ma, ea = _split(a)
    sb, mb, eb = _split(b)
    return pack64(sa ^ sb, ma * mb, ea + eb, False, mode)


def _div64(mode: str, a: int, b: int) -> int:
    sa, ma, ea = _split(a)
    sb, mb, eb = _split(b)
    if _special(a) or _special(b) or mb == 0:
        return int((_host(a) / _host(b)).view(U64))
    q, r = divmod(ma << 120, mb)
    return pack64(sa ^ sb, q, ea - eb - 120, r != 0, mode)


def _sqrt64(mode: str, a: int) -> int:
    s, m, e = _split(a)
    if s or _special(a) or m == 0:
        return int(np.sqrt(_host(a)).view(U64))
    k = 130 + (e & 1)
    n = m << k
    r = isqrt(n)
    return pack64(0, r, (e - k) // 2, r * r != n, mode)


def _each(one: Callable[..., int], mode: str, *args: Arr) -> Arr:
    """Apply a function of integers to every element; NaN results become the canonical NaN."""
    arrays = np.broadcast_arrays(*args)
    flat = [one(mode, *map(int, row)) for row in zip(*[x.ravel() for x in arrays], strict=True)]
    out = np.array(flat, U64).reshape(arrays[0].shape)
    return np.where(is_nan(out, F64), U64(F64.nan), out)
