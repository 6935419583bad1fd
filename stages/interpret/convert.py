"""Conversions: see :mod:`stages.interpret.rows`.  Source: the PTX ISA manual, `cvt` and `cvt.pack`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ir_format.ptx import PtxInst
from stages.interpret import floats
from stages.interpret.floats import F32, F64, FORMATS, Format, decode, flush, narrow, relu, saturate
from stages.interpret.rows import BITS, U64, Arr, Fn, Unsupported, bits_of, mask, rounding, row, signed, typed, unsigned

_TO_INTEGER: Final[dict[str, Any]] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
_INT: Final = frozenset(["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"])


def _limits(type_: str) -> tuple[int, int]:
    bits = BITS[type_]
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if type_[0] == "s" else (0, (1 << bits) - 1)


def widen(x: Arr, type_: str) -> Arr:
    """A result extended to 64 bits by its signedness: a wider destination register takes as many bits as it has."""
    return bits_of(signed(x, BITS[type_]), 64) if type_[0] == "s" else x


def int_to_int(x: Arr, source: str, dest: str, sat: bool) -> Arr:
    """Truncate, extend or clamp."""
    v = typed(x, source)
    if not sat:
        return widen(bits_of(v, BITS[dest]), dest)
    low, high = _limits(dest)
    if v.dtype == U64:
        return np.minimum(v, U64(high))
    r = np.maximum(v, np.int64(max(low, -(1 << 63))))
    if high < 1 << 63:
        r = np.minimum(r, np.int64(high))
    return bits_of(r, 64)


def float_to_int(x: Arr, dest: str, mode: str, nan: int) -> Arr:
    """float64 values to integers, clamped; NaN as given."""
    low, high = _limits(dest)
    r = _TO_INTEGER[mode](x)
    top = float(high + 1)
    inside = np.where((r >= float(low)) & (r < top), r, 0.0)
    if dest == "u64":
        big = inside >= 2.0**63
        value = np.where(
            big,
            (inside - np.where(big, 2.0**63, 0.0)).astype(np.int64).view(U64) + U64(1 << 63),
            np.where(big, 0.0, inside).astype(np.int64).view(U64),
        )
    else:
        value = inside.astype(np.int64).view(U64)
    value = np.where(r >= top, U64(high), np.where(r < float(low), U64(low & (1 << 64) - 1), value))
    return np.where(np.isnan(x), U64(nan), value)


def int_to_float(x: Arr, source: str, f: Format, mode: str) -> Arr:
    """Integers to float bits, rounded once."""
    v = typed(x, source)
    negative = v < 0 if v.dtype == np.int64 else np.zeros(v.shape, np.bool_)
    m = np.where(negative, U64(0) - v.view(U64), v.view(U64)) if v.dtype == np.int64 else v
    big = m >> U64(53) != 0
    odd = (m >> U64(11)) | (m & U64(0x7FF) != 0).astype(U64)
    if f is F64:
        plain = np.where(big, U64(0), m).astype(np.float64).view(U64)
        top = np.asarray(odd << U64(2))
        # Up to 53 bits are exact; more are rounded here: 55 bits with two below the last place.
        return (
            np.where(big, _round_big(m, negative, mode), plain) | np.where(negative, U64(1 << 63), U64(0))
            if top.size
            else plain
        )
    value = np.where(big, np.ldexp(odd.astype(np.float64), 11), np.where(big, U64(0), m).astype(np.float64))
    return narrow(np.where(negative, -value, value), f, mode)


def _round_big(m: Arr, negative: Arr, mode: str) -> Arr:
    """Magnitudes of more than 53 bits to float64 bits."""
    shift = np.zeros(m.shape, np.int64)
    for k in range(1, 12):
        shift = np.where(m >> U64(52 + k) != 0, k, shift)
    s = shift.astype(U64)
    low = m >> s
    rest = m & ((U64(1) << s) - U64(1))
    half = (U64(1) << s) >> U64(1)
    low = low + floats._up(mode, negative, low, rest, half).astype(U64)
    return ((shift + 1023 + 52 - 1).astype(U64) << U64(52)) + low


def to_float(x: Arr, f: Format, inst: PtxInst, mode: str) -> Arr:
    """float64 values to bits with the modifiers of a conversion."""
    finite = inst.has("satfinite")
    if inst.has("ftz") and f is F32:  # by the value, not by its rounding (ptxas's code compares the f64)
        x = np.where(np.abs(x) < 2.0**-126, np.copysign(0.0, x), x)
    r = narrow(x, f, mode, finite)
    if f.name == "ue5m3" and not finite:  # no infinity: an overflow is a NaN
        r = np.where(floats.past_top(x, f, mode), U64(f.nan), r)
    if finite and f.kind != "ieee" and f.kind != "e4m3":
        r = np.where(np.isnan(x), U64(f.inf - 1), r)
    if inst.has("pzo"):
        r = np.where(r == U64(f.sign), U64(0), r)
    if inst.has("relu"):
        r = relu(r, f) if f.kind != "finite" else np.where((r & U64(f.sign) != 0), U64(0), r)
    return saturate(r, f) if inst.has("sat") else r


def _source(x: Arr, f: Format, ftz: bool) -> Arr:
    """A float source as float64; .ftz flushes f32 subnormals."""
    x = unsigned(x, f.bits)
    return decode(flush(x, f) if ftz and f is F32 else x, f)


@row("cvt")
def _cvt(inst: PtxInst) -> Fn:
    if inst.mods[0] == "pack":
        return _pack(inst)
    dest, source = inst.types
    if dest == "tf32":
        return _tf32(inst)
    if "x2" in dest or "x2" in source or "x4" in dest:
        return _packed(inst)
    ftz, sat = inst.has("ftz"), inst.has("sat")
    integral = next((m for m in inst.mods if m in _TO_INTEGER), None)
    if dest in _INT and source in _INT:
        return lambda a: int_to_int(a, source, dest, sat)
    if dest in _INT:
        f = FORMATS[source]
        nan = 1 << BITS[dest] - 1 if source == "f64" or dest in ("s64", "u64") else 0
        return lambda a: widen(float_to_int(_source(a, f, ftz), dest, integral or "rzi", nan), dest)
    g = FORMATS[dest]
    mode = rounding(inst)
    if source in _INT:

        def from_int(a: Arr) -> Arr:
            r = int_to_float(a, source, g, mode)
            return saturate(r, g) if sat else r

        return from_int
    f = FORMATS[source]
    if f is g and integral is None and not (ftz or sat):
        return lambda a: unsigned(a, f.bits)

    def convert(a: Arr) -> Arr:
        x = _source(a, f, ftz)
        if integral is not None:
            x = np.copysign(_TO_INTEGER[integral](x), x)
        return to_float(x, g, inst, mode)

    return convert


def _tf32(inst: PtxInst) -> Fn:
    mode = "rna" if inst.has("rna") else rounding(inst)
    f = FORMATS["tf32"]

    def convert(a: Arr) -> Arr:
        x = _source(a, F32, False)
        r = narrow(x, f, mode, inst.has("satfinite"))
        if inst.has("pzo"):
            r = np.where(r == U64(f.sign), U64(0), r)
        if inst.has("relu"):
            r = relu(r, f)
        return np.where(np.isnan(x), U64(0x7FFFFFFF), r << U64(13))

    return convert


def _ue8m0(x: Arr, mode: str, finite: bool) -> Arr:
    """float64 to an exponent-only byte (bias 127), magnitude only; NaN is 0xFF."""
    size = np.abs(x)
    fraction, exponent = np.frexp(np.where(np.isfinite(size) & (size > 0), size, 1.0))
    e = exponent - 1 + ((fraction != 0.5) if mode == "rp" else 0)
    e = np.where(size == 0, -127, e)
    code = np.clip(e, -127, 127) + 127
    over = np.isinf(size) | (e > 127)
    code = np.where(over, 254 if finite else 255, code)
    return np.where(np.isnan(x), 255, code).astype(U64)


def _packed(inst: PtxInst) -> Fn:
    dest, source = inst.types
    mode = rounding(inst)
    element = dest.removesuffix("x2")
    if inst.has("rs") or dest.endswith("x4"):
        raise Unsupported(inst.opcode)
    if element == "s2f6":
        raise Unsupported(inst.opcode)
    if source.removesuffix("x2") in ("s2f6", "e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "ue8m0", "ue5m3"):
        return _unpack(inst, source.removesuffix("x2"), FORMATS[element])
    f = FORMATS[source.removesuffix("x2")]
    width = 8 if element in ("e4m3", "e5m2", "e2m3", "e3m2", "ue8m0", "ue5m3") else 4 if element == "e2m1" else 16

    def one(x: Arr) -> Arr:
        if element == "ue8m0":
            return _ue8m0(x, mode, inst.has("satfinite"))
        return to_float(np.abs(x) if element == "ue5m3" else x, FORMATS[element], inst, mode)

    divided = inst.has("scaled::n1::ue8m0")

    def scaled(x: Arr, s: Arr) -> Arr:
        scale = s & U64(255)
        small = np.where(np.abs(x) < 2.0**-126, np.copysign(0.0, x), x)  # documented
        return small * np.where(scale == 255, np.nan, np.ldexp(1.0, 127 - scale.astype(np.int32)))

    def two(a: Arr, b: Arr, *s: Arr) -> Arr:
        x, y = _source(a, f, False), _source(b, f, False)
        if divided:
            x, y = scaled(x, s[0]), scaled(y, s[0])
        return (one(x) << U64(width)) | one(y)

    if source.endswith("x2"):
        return lambda a, *s: two(a >> U64(16), a, *s)
    return two


def _unpack(inst: PtxInst, element: str, g: Format) -> Fn:
    width = 4 if element == "e2m1" else 8

    def one(x: Arr, scale: Arr | None = None) -> Arr:
        if element == "s2f6":
            value = signed(x, 8) / 64.0
        elif element == "ue8m0":
            value = np.where(x == 255, np.nan, np.ldexp(1.0, x.astype(np.int32) - 127))
        else:
            f = FORMATS[element]
            value = decode(unsigned(x, f.bits), f)
        if scale is not None:
            value = value * np.where(scale == 255, np.nan, np.ldexp(1.0, scale.astype(np.int32) - 127))
        return to_float(value, g, inst, "rn")

    if inst.has("scaled::n2::ue8m0"):
        return lambda a, s: (
            (one((a >> U64(width)) & mask(width), (s >> U64(8)) & mask(8)) << U64(16))
            | one(a & mask(width), s & mask(8))
        )
    return lambda a: (one((a >> U64(width)) & mask(width)) << U64(16)) | one(a & mask(width))


def _pack(inst: PtxInst) -> Fn:
    element = inst.types[0]
    bits = int(element[1:])

    def part(x: Arr) -> Arr:
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if element[0] == "s" else (0, (1 << bits) - 1)
        return bits_of(np.clip(signed(x, 32), low, high), bits)

    def pack(a: Arr, b: Arr, *c: Arr) -> Arr:
        r = (part(a) << U64(bits)) | part(b)
        return unsigned(r | (c[0] << U64(2 * bits)), 32) if c else r

    return pack


__all__ = ["F64"]
