"""Floating-point arithmetic as the GPU does it, on numpy arrays: single rounding in every mode, flush to zero,
saturation.

Modes: ``RN`` nearest even, ``RZ`` toward zero, ``RM`` down, ``RP`` up, ``RNA`` nearest, ties away. A NaN result of a
32-bit or narrower operation is the canonical one (documented: 0x7fffffff); of a 64-bit operation, whatever the host
gives.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from stages.simulate import exact
from stages.simulate.exact import BF16, F16, F64, Format

Arr = NDArray[Any]

f32, f64, u32, u64, i32, i64 = np.float32, np.float64, np.uint32, np.uint64, np.int32, np.int64
NAN32: Final = np.uint32(0x7FFFFFFF)
NAN16: Final = np.uint16(0x7FFF)
_TIE_BITS: Final = u64(0x1FFFFFFF)
_TIE: Final = u64(0x10000000)
_SMALL: Final = 2.0**-125
_MIN32: Final = np.float32(2.0**-126)
count = np.count_nonzero


def canonical32(r: Arr) -> Arr:
    """Replace every NaN by the canonical one, in place."""
    bad = r != r
    if count(bad):
        r.view(u32)[bad] = NAN32
    return r


def ftz32(x: Arr) -> Arr:
    """Subnormals become zeros of the same sign."""
    small = np.abs(x) < _MIN32
    if not count(small):
        return x
    return np.where(small, np.copysign(f32(0), x), x)


def sat32(x: Arr) -> Arr:
    """Clamp to [0, 1]; NaN gives +0."""
    with np.errstate(invalid="ignore"):
        return np.where(x > 0, np.minimum(x, f32(1)), f32(0)).astype(f32)


def two_sum(a: Arr, b: Arr) -> tuple[Arr, Arr]:
    """The rounded sum and its exact error."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def to_odd(s: Arr, e: Arr) -> Arr:
    """``s + e`` rounded to odd: where ``e`` is not zero and ``s`` is even, step ``s`` toward ``e``."""
    bits = s.view(u64)
    move = (e != 0) & ((bits & u64(1)) == 0) & np.isfinite(s)
    if not count(move):
        return s
    outward = (e > 0) == (s > 0)
    stepped = np.where(outward, bits + u64(1), bits - u64(1)).view(f64)
    return np.where(move, stepped, s)


def add_odd(a: Arr, b: Arr) -> Arr:
    """The double sum rounded to odd: rounding it once more to 51 bits or fewer is right."""
    return to_odd(*two_sum(a, b))


def _narrow_rn(s: Arr, a: Arr, b: Arr) -> Arr:
    """float32 of the exact ``a + b`` where ``s`` is its double rounding."""
    r = s.astype(f32)
    tie = (s.view(u64) & _TIE_BITS) == _TIE
    small = np.abs(s) < _SMALL
    if count(tie) or (count(small) and count(s[small])):
        r = to_odd(s, two_sum(a, b)[1]).astype(f32)
    return canonical32(r)


def _narrow_directed(s: Arr, e: Arr, mode: str) -> Arr:
    """float32 of the exact ``s + e`` (``|e|`` at most half an ulp of the double ``s``) in a directed mode."""
    r = s.astype(f32)
    d = r.astype(f64) - s
    above = np.where(d != 0, d, -e)  # > 0 where r is above the exact value
    if mode == "RM":
        r = np.where(above > 0, np.nextafter(r, f32(-np.inf)), r)
    elif mode == "RP":
        r = np.where(above < 0, np.nextafter(r, f32(np.inf)), r)
    else:
        r = np.where(above * np.sign(s) > 0, np.nextafter(r, f32(0)), r)
    return canonical32(r)


def fma32(a: Arr, b: Arr, c: Arr, mode: str = "RN") -> Arr:
    """float32 ``a * b + c``, one rounding."""
    p = a.astype(f64)
    p *= b.astype(f64)
    c64 = c.astype(f64)
    s = p + c64
    if mode == "RN":
        return _narrow_rn(s, p, c64)
    r = _narrow_directed(s, two_sum(p, c64)[1], mode)
    if mode == "RM":
        r = np.where((s == 0) & (np.signbit(p) | np.signbit(c64)), f32(-0.0), r)
    return r


def add32(a: Arr, b: Arr, mode: str = "RN") -> Arr:
    """float32 ``a + b``."""
    if mode == "RN":
        return canonical32(a + b)
    return fma32(a, np.ones_like(a), b, mode)


def mul32(a: Arr, b: Arr, mode: str = "RN") -> Arr:
    """float32 ``a * b``."""
    if mode == "RN":
        return canonical32(a * b)
    p = a.astype(f64)
    p *= b.astype(f64)
    return _narrow_directed(p, np.zeros_like(p), mode)


# --- double ----------------------------------------------------------------------------------------------------

_SPLIT: Final = 134217729.0


def two_prod(a: Arr, b: Arr) -> tuple[Arr, Arr]:
    """The rounded product and its exact error, where nothing overflows or underflows."""
    p = a * b
    t = _SPLIT * a
    ah = t - (t - a)
    al = a - ah
    t = _SPLIT * b
    bh = t - (t - b)
    bl = b - bh
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def _safe(x: Arr, low: float, high: float) -> Arr:
    size = np.abs(x)
    return (size >= low) & (size <= high)


def _step64(s: Arr, e: Arr, mode: str) -> Arr:
    """Move the nearest-rounded ``s`` to the directed rounding of ``s + e``."""
    if mode == "RN":
        return s
    fin = np.isfinite(e)
    if mode == "RM":
        return np.where(fin & (e < 0), np.nextafter(s, -np.inf), s)
    if mode == "RP":
        return np.where(fin & (e > 0), np.nextafter(s, np.inf), s)
    return np.where(fin & (e * np.sign(s) < 0), np.nextafter(s, 0.0), s)


def _patch(r: Arr, easy: Arr, mode: str, *args: Arr) -> Arr:
    """Redo the lanes that are not easy, one by one, exactly."""
    r = np.array(r)
    flat = [np.broadcast_to(x, r.shape).ravel() for x in args]
    out = r.ravel()
    for i in np.flatnonzero(~easy.ravel()):
        values = [float(x[i]) for x in flat]
        if len(values) == 3:
            out[i] = exact.fma_exact(values[0], values[1], values[2], F64, mode)
        else:
            out[i] = exact.mul_exact(values[0], values[1], F64, mode)
    return out.reshape(r.shape)


def fma64(a: Arr, b: Arr, c: Arr, mode: str = "RN") -> Arr:
    """double ``a * b + c``, one rounding (Boldo and Melquiond: the sum of the tails is rounded to odd)."""
    uh, ul = two_prod(a, b)
    th, tl = two_sum(c, ul)
    vh, vl = two_sum(uh, th)
    z = add_odd(tl, vl)
    s, e = two_sum(vh, z)
    r = _step64(s, e, mode)
    easy = (
        _safe(a, 2.0**-400, 2.0**400)
        & _safe(b, 2.0**-400, 2.0**400)
        & (_safe(c, 2.0**-800, 2.0**960) | (c == 0))
        & (s != 0)
    )
    if count(easy) == easy.size:
        return r
    finite = np.isfinite(a) & np.isfinite(b)
    plain = ~(finite & np.isfinite(c)) | (
        ((a == 0) | (b == 0)) & (c != 0)
    )  # the product is exact, or as good as nothing
    r = np.where(plain & ~easy, np.where(finite & ~np.isfinite(c), 0.0, a * b) + c, r)
    easy |= plain
    if count(easy) == easy.size:
        return r
    return _patch(r, easy, mode, a, b, c)


def mul64(a: Arr, b: Arr, mode: str = "RN") -> Arr:
    """double ``a * b``."""
    if mode == "RN":
        return np.asarray(a * b)
    s, e = two_prod(a, b)
    easy = _safe(a, 2.0**-400, 2.0**400) & _safe(b, 2.0**-400, 2.0**400)
    r = _step64(s, e, mode)
    return r if count(easy) == easy.size else _patch(r, easy, mode, a, b)


def add64(a: Arr, b: Arr, mode: str = "RN") -> Arr:
    """double ``a + b``."""
    if mode == "RN":
        return np.asarray(a + b)
    s, e = two_sum(a, b)
    easy = _safe(a, 0.0, 2.0**1000) & _safe(b, 0.0, 2.0**1000) & (s != 0)
    r = _step64(s, e, mode)
    return r if count(easy) == easy.size else _patch(r, easy, mode, a, np.ones_like(a), b)


# --- rounding to narrow formats --------------------------------------------------------------------------------


def _round_units(y: Arr, mode: str) -> Arr:
    if mode == "RN":
        return np.asarray(np.rint(y))
    if mode == "RZ":
        return np.asarray(np.trunc(y))
    if mode == "RM":
        return np.asarray(np.floor(y))
    if mode == "RP":
        return np.asarray(np.ceil(y))
    return np.asarray(np.trunc(y + np.copysign(0.5, y)))


def narrow(x: Arr, fmt: Format, mode: str = "RN", finite: bool = False) -> Arr:
    """Doubles rounded to the values of ``fmt``, as doubles. ``x`` is exact or rounded to odd. ``finite``: overflow
    clamps."""
    _, e = np.frexp(x)
    k = np.maximum(e - fmt.prec, fmt.emin - fmt.prec + 1)
    r = np.ldexp(_round_units(np.ldexp(x, -k), mode), k)
    over = np.abs(r) > fmt.top
    if count(over):
        if finite or not fmt.inf:
            limit = np.full_like(r, fmt.top)
        else:
            limit = np.full_like(r, np.inf)
            if mode == "RZ":
                limit[:] = fmt.top
            elif mode == "RM":
                limit = np.where(r > 0, fmt.top, np.inf)
            elif mode == "RP":
                limit = np.where(r < 0, fmt.top, np.inf)
            limit = np.where(np.isinf(x), np.inf, limit)
        r = np.where(over, np.copysign(limit, r), r)
    return np.asarray(r)


def to_f16(x: Arr) -> Arr:
    """Bits (uint16) of doubles or floats rounded to nearest half; NaN is canonical."""
    r = x.astype(np.float16)
    bits = r.view(np.uint16)
    bad = r != r
    if count(bad):
        bits[bad] = NAN16
    return bits


def from_f16(bits: Arr) -> Arr:
    """Doubles of half bits (uint16)."""
    return bits.view(np.float16).astype(f64)


def from_bf16(bits: Arr) -> Arr:
    """Doubles of bfloat16 bits (uint16)."""
    return (bits.astype(u32) << u32(16)).view(f32).astype(f64)


def bits_bf16(x: Arr) -> Arr:
    """Bits (uint16) of doubles that are bfloat16 values; NaN is canonical."""
    r = x.astype(f32)
    bits = (r.view(u32) >> u32(16)).astype(np.uint16)
    bad = x != x
    if count(bad):
        bits[bad] = NAN16
    return bits


def encode_half(x: Arr, fmt: Format, mode: str = "RN") -> Arr:
    """Bits of doubles (exact or rounded to odd) rounded to F16 or BF16."""
    if fmt is F16:
        return to_f16(x if mode == "RN" else narrow(x, F16, mode))
    return bits_bf16(narrow(x, BF16, mode))


def decode_half(bits: Arr, fmt: Format) -> Arr:
    """Doubles of F16 or BF16 bits (uint16)."""
    return from_f16(bits) if fmt is F16 else from_bf16(bits)


_SMALL_FORMATS: Final[dict[Format, tuple[int, int, int]]] = {
    # format: (exponent bits, mantissa bits, bias)
    exact.E5M2: (5, 2, 15),
    exact.E4M3: (4, 3, 7),
    exact.UE5M3: (5, 3, 15),
    exact.E3M2: (3, 2, 3),
    exact.E2M3: (2, 3, 1),
    exact.E2M1: (2, 1, 1),
}


def decode_small(bits: Arr, fmt: Format) -> Arr:
    """Doubles of the 8-, 6- or 4-bit codes of ``fmt`` (uint8)."""
    ebits, mbits, bias = _SMALL_FORMATS[fmt]
    code = np.arange(1 << (1 + ebits + mbits))
    mant = code & ((1 << mbits) - 1)
    expo = (code >> mbits) & ((1 << ebits) - 1)
    value = np.where(
        expo == 0, mant * 2.0 ** (1 - bias - mbits), (mant + (1 << mbits)) * 2.0 ** (expo.astype(f64) - bias - mbits)
    )
    if fmt is exact.E5M2:
        value = np.where(expo == 31, np.where(mant == 0, np.inf, np.nan), value)
    elif fmt is exact.E4M3:
        value = np.where((expo == 15) & (mant == 7), np.nan, value)
    elif fmt is exact.UE5M3:  # eight bits without a sign: the codes above are those of the eighth bit
        value = np.where((expo == 31) & (mant == 7), np.nan, value)
    value = np.where(code >> (ebits + mbits) == 1, -value, value)
    return np.asarray(value[bits & (len(code) - 1)])


def encode_small(x: Arr, fmt: Format, mode: str = "RN") -> Arr:
    """Codes (uint8) of doubles rounded to ``fmt``, overflow to the largest finite value (PTX .satfinite); NaN is the
    format's NaN or the largest positive value where it has none."""
    ebits, mbits, bias = _SMALL_FORMATS[fmt]
    r = narrow(x, fmt, mode, finite=True)
    r = np.where(np.isinf(x), np.copysign(fmt.top, x), r)
    size = np.abs(r)
    _, e = np.frexp(size)
    expo = np.where(size < 2.0**fmt.emin, 0, e - 1 + bias)
    unit = 2.0 ** (np.maximum(expo, 1) - bias - mbits)
    with np.errstate(invalid="ignore"):
        mant = (np.nan_to_num(size / unit)).astype(i64) - np.where(expo > 0, 1 << mbits, 0)
    code = (np.signbit(r).astype(i64) << (ebits + mbits)) | (expo.astype(i64) << mbits) | mant
    nan = {exact.E5M2: 0x7F, exact.E4M3: 0x7F, exact.UE5M3: 0xFF, exact.E3M2: 0x1F, exact.E2M3: 0x1F, exact.E2M1: 0x7}[
        fmt
    ]
    return np.where(np.isnan(x), nan, code).astype(np.uint8)


#: How far above a format's largest number a value may be that a rounding still makes that number (three bits of
#: mantissa, of which the largest number has 110).
_REACH: Final = {"RN": 29 / 28, "RP": 1.0, "RZ": np.inf}


def past_top(x: Arr, fmt: Format, mode: str = "RN") -> Arr:
    """Where doubles overflow a format without infinities, whose result is then a NaN."""
    return np.asarray(np.isinf(x) | (np.abs(x) > fmt.top * _REACH[mode]))


def round_f32(x: Arr, mode: str = "RN") -> Arr:
    """Doubles (exact or rounded to odd) as float32 in a mode; NaN canonical."""
    if mode == "RN":
        return canonical32(x.astype(f32))
    return _narrow_directed(x, np.zeros_like(x), mode)
