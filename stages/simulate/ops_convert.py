"""Conversions between integers and floating-point formats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ir_format.model import ABS, NEG, Imm, Operand, Reg
from stages.simulate import exact, fp
from stages.simulate.build import Arr, Build, Builder, Get, InstFn, View, flags_of, join64
from stages.simulate.exact import BF16, F16, Format
from stages.simulate.halves import half_source, pack

u8, u16, u32, u64, i32, i64, f32, f64 = (
    np.uint8,
    np.uint16,
    np.uint32,
    np.uint64,
    np.int32,
    np.int64,
    np.float32,
    np.float64,
)
_INTS: Final = ("U8", "S8", "U16", "S16", "U32", "S32", "U64", "S64")
_FLOATS: Final = ("F16", "F32", "F64", "BF16", "TF32")
_ROUND: Final = {"FLOOR": "RM", "CEIL": "RP", "TRUNC": "RZ", "RM": "RM", "RP": "RP", "RZ": "RZ", "RN": "RN"}
_SMALL: Final[dict[str, Format]] = {
    "E4M3": exact.E4M3,
    "E5M2": exact.E5M2,
    "UE5M3": exact.UE5M3,
    "E3M2": exact.E3M2,
    "E2M3": exact.E2M3,
    "E2M1": exact.E2M1,
}
_TYPES: Final[dict[str, Any]] = {
    "U8": u8, "S8": np.int8, "U16": u16, "S16": np.int16, "U32": u32, "S32": i32, "U64": u64, "S64": i64,
}  # fmt: skip


def _mode(b: Build) -> str:
    return _ROUND[b.pick(*_ROUND, default="RN")]


def _part(op: Operand) -> int:
    """Byte offset of a selected byte or half word of the source register."""
    mod = getattr(op, "mod", "")
    return {"": 0, "B0": 0, "B1": 1, "B2": 2, "B3": 3, "H0": 0, "H0_H0": 0, "H1": 2, "H1_H1": 2}.get(mod, 0)


def int_source(b: Build, op: Operand, kind: str) -> Get:
    """A source integer of type ``kind`` as int64 (U64: as uint64)."""
    if kind in ("U64", "S64"):
        if isinstance(op, Imm):  # the field holds the upper half (measured: ptxas writes 0x40000000 for 1 << 62)
            low, high = b.ctx.lanes.constant(0), b.ctx.lanes.constant(op.value)
            return lambda v: join64(v.U[low], v.U[high]).view(_TYPES[kind])
        wide = b.q(op)
        return wide if kind == "U64" else (lambda v: wide(v).view(i64))
    get, shift, numpy_type = b.raw(op), u32(8 * _part(op)), _TYPES[kind]
    flags = flags_of(op)

    def run(v: Any) -> Arr:
        x = (get(v) >> shift).astype(numpy_type).astype(i64)
        if flags & ABS:
            x = np.abs(x)
        return -x if flags & NEG else x

    return run


def float_source(b: Build, op: Operand, kind: str) -> Get:
    """A source float as a double (exact)."""
    if kind == "F64":
        return b.f64(op)
    if kind == "F32":
        get = b.f(op)
        ftz = "FTZ" in b.mods
        return lambda v: (fp.ftz32(get(v)) if ftz else get(v)).astype(f64)
    halves = half_source(b, op, BF16 if kind == "BF16" else F16)
    return lambda v: halves(v)[0]


def from_int(x: Arr, prec: int) -> Arr:
    """64-bit integers as doubles, rounded to odd if they do not fit (a later rounding to 51 bits or fewer is then
    right)."""
    s = x.astype(f64)
    if x.dtype == u64:
        over = s >= 2.0**64
        back = np.where(over, u64(0), np.where(over, 0.0, s).astype(u64))
        e = np.where(over, -(u64(0) - x).astype(f64), (x - back).view(i64).astype(f64))
    else:
        over = s >= 2.0**63
        back64 = np.where(over, 0.0, s).astype(i64)
        e = np.where(over, (x.view(u64) - u64(1 << 63)).view(i64).astype(f64), (x - back64).astype(f64))
    return fp.to_odd(s, e)


def _int_to_f64(x: Arr, mode: str) -> Arr:
    s = x.astype(f64)
    if mode == "RN":
        return s
    out = [_round_int(int(value), exact.F64, mode) for value in x]
    return np.array(out, f64)


def _round_int(value: int, fmt: Format, mode: str) -> float:
    from fractions import Fraction

    return exact.round_exact(Fraction(value), fmt, mode)


def i2f(b: Build) -> InstFn:
    """Integer to float."""
    b.only(*_INTS, *_FLOATS, *_ROUND)
    kind = b.pick(*_INTS, default="S32")
    to = b.pick(*_FLOATS, default="F32")
    mode = _mode(b)
    get = int_source(b, b.s[0], kind)
    if to == "F64":
        return b.emit_q(lambda x: _int_to_f64(x, mode), [get])
    if to == "F32":
        return b.emit_f(lambda x: fp.round_f32(from_int(x, 24), mode), [get])
    fmt = BF16 if to == "BF16" else F16
    return b.emit(lambda x: fp.encode_half(from_int(x, 11), fmt, mode).astype(u32), [get])


_UNITS: Final[dict[str, Callable[[Arr], Arr]]] = {"RN": np.rint, "RM": np.floor, "RP": np.ceil, "RZ": np.trunc}


def _to_int(x: Arr, kind: str, mode: str, nan_zero: bool) -> Arr:
    """Doubles as integers, clamped to the range of ``kind``; NaN gives 0 or the top bit."""
    info = np.iinfo(_TYPES[kind])
    y = _UNITS[mode](x)
    low, high = float(info.min), float(info.max)
    inside = (y > low) & (y < high)
    small = np.where(inside, y, 0.0)
    r = small.astype(u64) if kind == "U64" else small.astype(i64)
    r = np.where(y >= high, r.dtype.type(info.max), r)
    r = np.where(y <= low, r.dtype.type(info.min), r)
    nan = 0 if nan_zero else 1 << (info.bits - 1)
    bits: Arr = r.view(u64)
    bits = np.where(x != x, u64(nan), bits)
    return bits & u64((1 << max(info.bits, 32)) - 1)


def f2i(b: Build) -> InstFn:
    """Float to integer. NaN gives 0 with .NTZ, else a result with only the top bit set (documented for cvt)."""
    b.only(*_INTS, *_FLOATS, *_ROUND, "FTZ", "NTZ", "SAT")
    kind = b.pick(*_INTS, default="S32")
    mode = _mode(b)
    get = float_source(b, b.s[0], b.pick(*_FLOATS, default="F32"))
    ntz = "NTZ" in b.mods
    if kind in ("U64", "S64"):
        return b.emit_q(lambda x: _to_int(x, kind, mode, ntz), [get])
    return b.emit(lambda x: _to_int(x, kind, mode, ntz).astype(u32), [get])


def f2ip(b: Build) -> InstFn:
    """Two floats as clamped bytes, below bytes of c; the second source is the lowest byte (as I2IP; measured: a single
    float has zeros above it)."""
    b.only("U8", "S8", "F32", *_ROUND, "FTZ", "NTZ")
    kind = b.pick("U8", "S8", default="U8")
    mode = _mode(b)
    x, y = (float_source(b, o, "F32") for o in b.s[:2])
    above = b.raw(b.s[2])
    ntz = "NTZ" in b.mods

    def run(p: Arr, q: Arr, c: Arr) -> Arr:
        high, low = (_to_int(z, kind, mode, ntz).astype(u32) & u32(0xFF) for z in (p, q))
        return np.asarray((c << u32(16)) | (high << u32(8)) | low)

    return b.emit(run, [x, y, above])


def f2f(b: Build) -> InstFn:
    """Float to float: modifiers name the result, then the source."""
    b.only(*_FLOATS, *_ROUND, "FTZ", "SAT")
    kinds = [m for m in b.inst.mods if m in _FLOATS]
    if "BF16" in kinds and len(kinds) == 1:
        kinds.append("F32")
    to, source = [*kinds, "F32", "F32"][:2] if kinds else ("F32", "F32")
    mode = _mode(b)
    get = float_source(b, b.s[0], source)
    sat, ftz = "SAT" in b.mods, "FTZ" in b.mods
    if to == "F64":
        return b.emit_q(lambda x: x, [get])
    if to == "F32":

        def run(x: Arr) -> Arr:
            r = fp.round_f32(x, mode)
            r = fp.ftz32(r) if ftz else r
            return fp.sat32(r) if sat else r

        return b.emit_f(run, [get])
    if to == "TF32":
        return b.emit_f(lambda x: fp.canonical32(fp.narrow(x, exact.TF32, "RNA").astype(f32)), [get])
    fmt = BF16 if to == "BF16" else F16
    return b.emit(lambda x: fp.encode_half(x, fmt, mode).astype(u32), [get])


def _relu(x: Arr) -> Arr:
    return np.where(x != x, x, np.where(x > 0, x, 0.0))


def f2fp(b: Build) -> InstFn:
    """Pack two floats (a above b) into halves, or narrow formats to bytes, or unpack them."""
    mods = b.mods
    small = b.pick(*_SMALL)
    mode = b.pick("RZ", "RNA", "RP", "RM", default="RN")
    relu = "RELU" in mods
    if "TF32" in mods:
        b.only("TF32", "F32", "PACK_B", "RZ", "RNA", "RELU", "SATFINITE", "PACK_AB", "RN", "PZO")
        get = b.f(b.s[-1])
        how = (
            "RZ" if "RZ" in mods else "RNA" if "RNA" in mods else "RN"
        )  # rounding to nearest even prints no modifier (measured: cvt.rn.tf32)
        finite = "SATFINITE" in mods

        def tf32(x: Arr) -> Arr:
            y = (_relu(x) if relu else x).astype(f64)
            if finite:
                y = np.where(np.isinf(y), np.copysign(exact.TF32.top, y), y)
            r = fp.canonical32(fp.narrow(y, exact.TF32, how, finite).astype(f32))
            return np.where(r == 0, f32(0), r) if "PZO" in mods else r

        return b.emit_f(tf32, [get])
    if "E8" in mods:
        return _f2fp_exponents(b, mode)
    if "UNPACK_B" in mods and len(b.s) == 2:
        return _f2fp_scaled(b)
    if small:
        return _f2fp_small(b, _SMALL[small], small, relu)
    b.only("F16", "BF16", "F32", "PACK_AB", "PACK_B", "MERGE_C", "RZ", "RELU", "SATFINITE", "RN", "FTZ", "PZO")
    positive = "PZO" in mods
    fmt = BF16 if "BF16" in mods else F16
    finite = "SATFINITE" in mods

    def one(x: Arr) -> Arr:
        y = (_relu(x) if relu else x).astype(f64)
        if finite:
            y = np.where(np.isfinite(y), fp.narrow(y, fmt, mode, True), np.where(y != y, y, np.copysign(fmt.top, y)))
        bits = fp.encode_half(y, fmt, mode)
        return np.where(bits == 0x8000, bits.dtype.type(0), bits) if positive else bits

    if "PACK_B" in mods:
        return b.emit(lambda y: one(y).astype(u32), [b.f(b.s[-1])])
    if "MERGE_C" in mods:  # above the result: the half of c that its suffix names
        kept, shift = b.raw(b.s[1]), u32(8 * _part(b.s[1]))
        return b.emit(lambda x, c: one(x).astype(u32) | ((c >> shift) << u32(16)), [b.f(b.s[0]), kept])
    return b.emit(lambda x, y: pack(one(y), one(x)), [b.f(b.s[0]), b.f(b.s[1])])


def _f2fp_small(b: Build, fmt: Format, name: str, relu: bool) -> InstFn:
    mods = list(b.inst.mods)
    bits = {"E2M1": 4}.get(name, 8)
    if "UNPACK_B" in b.mods:  # two codes to two halves
        b.only("F16", "BF16", name, "UNPACK_B", "RELU", "UNPACK_B_MERGE_C")
        part = u32(8 * _part(b.s[-1]))
        get = b.raw(b.s[-1])

        def unpack(x: Arr) -> Arr:
            y = x >> part
            values = [fp.decode_small(((y >> u32(bits * i)) & u32((1 << bits) - 1)).astype(u8), fmt) for i in (0, 1)]
            halves = [fp.encode_half(_relu(z) if relu else z, F16) for z in values]
            return pack(halves[0], halves[1])

        return b.emit(unpack, [get])
    if mods.index(name) != next(i for i, m in enumerate(mods) if m in (*_SMALL, "F32", "F16", "BF16")):
        raise b.refuse()
    b.only(
        name,
        "F32",
        "F16",
        "BF16",
        "SATFINITE",
        "RELU",
        "PACK_AB_MERGE_C",
        "PACK_AB",
        "PACK_B_MERGE_C",
        "UNPACK_B_MERGE_C",
        "MERGE_C",
        "PACK_B",
        "RN",
        "RZ",
        "RP",
        "PZO",
        "SCALE_BY_C",
    )
    mode, positive, scaled = b.pick("RZ", "RP", default="RN"), "PZO" in b.mods, "SCALE_BY_C" in b.mods
    finite = "SATFINITE" in b.mods or name != "UE5M3"

    def code(x: Arr, power: Arr | None = None) -> Arr:
        y = x.astype(f64)
        if name == "UE5M3":  # without a sign (documented for .ue8m0, whose results have none either)
            y = np.abs(y)
        if power is not None:  # subnormals become zero (documented), then the division is exact
            y = np.where(np.abs(y) < 2.0**-126, np.copysign(0.0, y), y)
            y = y * np.where(power == 255, np.nan, np.ldexp(1.0, 127 - power.astype(np.int32)))
        y = _relu(y) if relu else y
        if positive:
            y = np.where(fp.narrow(y, fmt, mode, True) == 0, 0.0, y)
        bits = fp.encode_small(y, fmt, mode)
        if not finite:
            bits = np.where(fp.past_top(y, fmt, mode), 255, bits)
        return np.asarray(bits.astype(u32))

    unpacks = "UNPACK_B_MERGE_C" in b.mods  # one register with two halves
    merge = (
        [o for o in b.s[1:2]] if unpacks else [o for o in b.s[2:3]] if any(m.endswith("MERGE_C") for m in mods) else []
    )
    kept = b.raw(merge[0]) if merge else None
    half_register = bits * 2
    if "F32" not in b.mods:
        source = BF16 if "BF16" in b.mods else F16
        halves = half_source(b, b.s[0] if unpacks else b.s[-2] if merge else b.s[-1], source)
        parts: Callable[[View], tuple[Arr, Arr]] = lambda v: halves(v)[:2]  # noqa: E731
    else:
        gx, gy = b.f(b.s[0]), b.f(b.s[1])
        parts = lambda v: (gy(v), gx(v))  # noqa: E731
    if scaled and kept is not None:
        scale = kept
        divided: Get = lambda v: (  # noqa: E731
            code(parts(v)[0], scale(v) >> u32(24)) | code(parts(v)[1], scale(v) >> u32(24)) << u32(bits)
        )
        return b.emit(lambda x: x, [divided])
    pair: Get = lambda v: code(parts(v)[0]) | (code(parts(v)[1]) << u32(bits))  # noqa: E731
    if kept is None:
        return b.emit(lambda x: x, [pair])
    mask = u32((1 << half_register) - 1)
    return b.emit(lambda x, c: (x & mask) | (c & ~mask if bits == 4 else (c << u32(16))), [pair, kept])


def _f2fp_scaled(b: Build) -> InstFn:
    """Two codes of a narrow format, each times the power of two in a byte of the second source, as two bfloat16
    values."""
    name = b.pick(*_SMALL, "S2_6")
    b.only("BF16", name, "UNPACK_B", "RELU", "SATFINITE")
    bits = 4 if name == "E2M1" else 8
    relu, finite = "RELU" in b.mods, "SATFINITE" in b.mods
    code, scale = b.raw(b.s[0]), b.raw(b.s[1])
    at, of = u32(8 * _part(b.s[0])), u32(8 * _part(b.s[1]))

    def one(x: Arr, power: Arr) -> Arr:
        x = x & u32((1 << bits) - 1)
        y = x.astype(u8).view(np.int8) / 64.0 if name == "S2_6" else fp.decode_small(x.astype(u8), _SMALL[name])
        y = y * np.where(power == 255, np.nan, np.ldexp(1.0, power.astype(np.int32) - 127))
        y = _relu(y) if relu else y
        return fp.encode_half(fp.narrow(y, BF16, "RN", True) if finite else y, BF16)

    def run(x: Arr, s: Arr) -> Arr:
        x, s = x >> at, s >> of
        return pack(one(x, s & u32(255)), one(x >> u32(bits), s >> u32(8) & u32(255)))

    return b.emit(run, [code, scale])


def _f2fp_exponents(b: Build, mode: str) -> InstFn:
    """Bytes that are only an exponent (E8, bias 127, 255 is NaN): from two floats or two bfloat16, or to two
    bfloat16."""
    b.only("E8", "F32", "BF16", "SATFINITE", "UNPACK_B", "UNPACK_B_MERGE_C", "PACK_AB", "PACK_AB_MERGE_C", "RZ", "RP")
    if "UNPACK_B" in b.mods:
        get = b.raw(b.s[-1])
        part = u32(8 * _part(b.s[-1]))

        def unpack(x: Arr) -> Arr:
            codes = [((x >> part) >> u32(8 * i)) & u32(0xFF) for i in (0, 1)]
            halves = [
                fp.encode_half(np.where(c == 255, np.nan, np.ldexp(1.0, c.astype(np.int32) - 127)), BF16) for c in codes
            ]
            return pack(halves[0], halves[1])

        return b.emit(unpack, [get])
    finite = "SATFINITE" in b.mods

    def code(x: Arr) -> Arr:
        size = np.abs(x.astype(f64))
        fraction, exponent = np.frexp(np.where(np.isfinite(size) & (size > 0), size, 1.0))
        e = np.where(size == 0, -127, exponent - 1 + ((fraction != 0.5) if mode == "RP" else 0))
        c = np.where(np.isinf(size) | (e > 127), 254 if finite else 255, np.clip(e, -127, 127) + 127)
        return np.where(x != x, 255, c).astype(u32)

    if "UNPACK_B_MERGE_C" in b.mods:
        brains = half_source(b, b.s[0], BF16)
        kept = b.raw(b.s[1])
        return b.emit(
            lambda x, c: x | (c << u32(16)), [lambda v: code(brains(v)[0]) | (code(brains(v)[1]) << u32(8)), kept]
        )
    gx, gy = b.f(b.s[0]), b.f(b.s[1])
    above = [b.raw(o) for o in b.s[2:3]] or [lambda v: np.zeros(v.n, u32)]
    return b.emit(lambda x, c: x | (c << u32(16)), [lambda v: code(gy(v)) | (code(gx(v)) << u32(8)), above[0]])


def i2i(b: Build) -> InstFn:
    """Integer to narrower integer with saturation."""
    b.only(*_INTS, "SAT")
    kinds = [m for m in b.inst.mods if m in _INTS]
    if not kinds or "SAT" not in b.mods:
        raise b.refuse()
    to, source = kinds[0], kinds[1] if len(kinds) > 1 else "S32"
    info = np.iinfo(_TYPES[to])
    get = int_source(b, b.s[0], source)
    return b.emit(lambda x: np.clip(x, info.min, info.max).astype(i64).astype(u32), [get])


def i2ip(b: Build) -> InstFn:
    """Two saturated bytes or nibbles, below bits of c."""
    b.only(*_INTS, "SAT", "U4", "S4", "U2", "S2")
    kinds = [m for m in b.inst.mods if m in (*_INTS, "U4", "S4", "U2", "S2")]
    if not kinds or len(b.s) < 3 or not all(isinstance(o, Reg) or o[0] in ("I", "C") for o in b.s[:3]):
        raise b.refuse()
    upper = getattr(b.s[2], "mod", "") == "H1"  # the upper half of c (ptxas writes it for a constant of equal halves)
    to = kinds[0]
    bits = int(to[1:])
    low, high = (0, (1 << bits) - 1) if to[0] == "U" else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    source = kinds[1] if len(kinds) > 1 else "S32"
    x, y, c = int_source(b, b.s[0], source), int_source(b, b.s[1], source), b.raw(b.s[2])
    mask = u32((1 << bits) - 1)

    def run(p: Arr, q: Arr, r: Arr) -> Arr:
        first, second = (np.clip(z, low, high).astype(i64).astype(u32) & mask for z in (q, p))
        above = r >> u32(16) if upper else r
        return np.asarray((above << u32(2 * bits)) | (second << u32(bits)) | first)

    return b.emit(run, [x, y, c])


OPS: Final[dict[str, Builder]] = {
    "I2F": i2f, "UI2F": i2f, "I2FP": i2f, "UI2FP": i2f, "F2I": f2i, "UF2I": f2i, "F2IP": f2ip, "F2F": f2f, "UF2F": f2f,
    "F2FP": f2fp, "UF2FP": f2fp, "I2I": i2i, "UI2I": i2i,
    "I2IP": i2ip, "UI2IP": i2ip,
}  # fmt: skip
