"""Exact IEEE arithmetic on bit patterns with Python integers: the reference of every test in this folder.

A finite number is ``sign * mant * 2**exp`` with an integer ``mant``; results are rounded once, from an exact ratio or
root. It is independent of how the project computes. Modes: ``rn`` nearest even, ``rz`` towards zero, ``rm`` down,
``rp`` up, ``rna`` nearest, ties away.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

MODES = ("rn", "rz", "rm", "rp")


@dataclass(frozen=True, slots=True)
class Format:
    """A binary format: ``p`` significand bits with the hidden one, ``ebits`` exponent bits; ``nan`` the bits of a
    generated NaN."""

    name: str
    p: int
    ebits: int
    nan: int

    @property
    def bias(self) -> int:
        return (1 << (self.ebits - 1)) - 1

    @property
    def inf(self) -> int:
        return ((1 << self.ebits) - 1) << (self.p - 1)

    @property
    def sign(self) -> int:
        return 1 << (self.p - 1 + self.ebits)

    def is_nan(self, x: int) -> bool:
        return (x & (self.sign - 1)) > self.inf

    def is_inf(self, x: int) -> bool:
        return (x & (self.sign - 1)) == self.inf

    def is_zero(self, x: int) -> bool:
        return x & (self.sign - 1) == 0

    def flush(self, x: int) -> int:
        """A subnormal becomes a zero of its sign."""
        return x & self.sign if (x & (self.sign - 1)) >> (self.p - 1) == 0 else x

    def split(self, x: int) -> tuple[int, int, int]:
        """(sign bit, mant, exp) of a finite number: value = (-1)**s * mant * 2**exp."""
        s = 1 if x & self.sign else 0
        e = (x & (self.sign - 1)) >> (self.p - 1)
        m = x & ((1 << (self.p - 1)) - 1)
        if e:
            return s, m | 1 << (self.p - 1), e - self.bias - (self.p - 1)
        return s, m, 1 - self.bias - (self.p - 1)

    def pack(self, s: int, num: int, exp: int, sticky: bool, mode: str, ftz: bool = False) -> int:
        """Round ``num * 2**exp`` (plus a little if ``sticky``; then ``num`` has at least p+2 bits) to the format.

        Tininess for ``ftz`` is judged after rounding to p bits, as if the exponent had no bound.
        """
        sb = self.sign if s else 0
        if num == 0 and not sticky:
            return sb
        emin = 1 - self.bias - (self.p - 1)  # exponent of the last place of subnormals
        top = num.bit_length() - self.p + exp  # exponent of the last place at full precision
        if ftz:
            m, e = _round(s, num, exp, sticky, top, mode)
            if m.bit_length() - 1 + e < 1 - self.bias:
                return sb
        m, e = _round(s, num, exp, sticky, max(top, emin), mode)
        if m.bit_length() > self.p:
            m >>= 1
            e += 1
        if m == 0:
            return sb
        if m.bit_length() - 1 + e > self.bias:
            away = mode in ("rn", "rna") or (mode == "rp" and not s) or (mode == "rm" and s)
            return sb | (self.inf if away else self.inf - 1)
        if m.bit_length() < self.p:
            return sb | m
        return sb | ((e - emin + 1) << (self.p - 1)) | (m & ((1 << (self.p - 1)) - 1))


def _round(s: int, num: int, exp: int, sticky: bool, last: int, mode: str) -> tuple[int, int]:
    """``num * 2**exp`` as a multiple of ``2**last``: (integer, last)."""
    shift = last - exp
    if shift <= 0:
        assert not sticky
        return num << -shift, last
    m = num >> shift
    rest = num & ((1 << shift) - 1)
    half = 1 << (shift - 1)
    if not rest and not sticky:
        return m, last
    if mode == "rn":
        up = rest > half or (rest == half and (sticky or m & 1))
    elif mode == "rna":
        up = rest >= half
    else:
        up = (mode == "rp" and not s) or (mode == "rm" and bool(s))
    return m + (1 if up else 0), last


F16 = Format("f16", 11, 5, 0x7FFF)
BF16 = Format("bf16", 8, 8, 0x7FFF)
F32 = Format("f32", 24, 8, 0x7FFFFFFF)
F64 = Format("f64", 53, 11, 0xFFF8000000000000)


def div(f: Format, a: int, b: int, mode: str, ftz: bool = False) -> int | None:
    """a / b; None means any NaN."""
    if ftz:
        a, b = f.flush(a), f.flush(b)
    s = (a ^ b) & f.sign
    if f.is_nan(a) or f.is_nan(b) or (f.is_inf(a) and f.is_inf(b)) or (f.is_zero(a) and f.is_zero(b)):
        return None
    if f.is_inf(a) or f.is_zero(b):
        return s | f.inf
    if f.is_inf(b) or f.is_zero(a):
        return s
    _, ma, ea = f.split(a)
    _, mb, eb = f.split(b)
    k = 2 * f.p + 4
    q, r = divmod(ma << k, mb)
    return f.pack(1 if s else 0, q, ea - eb - k, r != 0, mode, ftz)


def sqrt(f: Format, a: int, mode: str, ftz: bool = False) -> int | None:
    """The square root; None means any NaN."""
    if ftz:
        a = f.flush(a)
    if f.is_nan(a):
        return None
    if f.is_zero(a):
        return a
    if a & f.sign:
        return None
    if f.is_inf(a):
        return a
    _, m, e = f.split(a)
    k = 2 * f.p + 4
    k += (e - k) & 1
    n = m << k
    r = isqrt(n)
    return f.pack(0, r, (e - k) // 2, r * r != n, mode, ftz)


def fma(f: Format, a: int, b: int, c: int, mode: str = "rn", ftz: bool = False) -> int | None:
    """a*b + c with one rounding; None means any NaN."""
    if ftz:
        a, b, c = f.flush(a), f.flush(b), f.flush(c)
    if f.is_nan(a) or f.is_nan(b) or f.is_nan(c):
        return None
    s = (a ^ b) & f.sign
    if f.is_inf(a) or f.is_inf(b):
        if f.is_zero(a) or f.is_zero(b) or (f.is_inf(c) and (c & f.sign) != s):
            return None
        return s | f.inf
    if f.is_inf(c):
        return c
    sa, ma, ea = f.split(a)
    sb, mb, eb = f.split(b)
    sc, mc, ec = f.split(c)
    e = min(ea + eb, ec)
    x = (ma * mb << (ea + eb - e)) * (-1 if sa ^ sb else 1) + (mc << (ec - e)) * (-1 if sc else 1)
    if x == 0:
        if ma * mb == 0 and mc == 0 and (sa ^ sb) == sc:
            return f.sign if sc else 0
        if (ma * mb == 0 and mc == 0) or mc or ma * mb:
            return f.sign if mode == "rm" else 0
    return f.pack(1 if x < 0 else 0, abs(x), e, False, mode, ftz)
