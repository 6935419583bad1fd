"""Packed half and bfloat16 arithmetic: two values per register, or one if a swizzle repeats it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ir_format.model import ABS, NEG, Imm, Operand, Reg
from stages.simulate import exact, fp
from stages.simulate.build import Arr, Build, Builder, InstFn, View, flags_of, put
from stages.simulate.exact import BF16, F16, Format
from stages.simulate.halves import half_source, pack, swizzle
from stages.simulate.ops_compare import BOP
from stages.simulate.ops_float import FCMP, best, fcmp_of
from stages.simulate.state import P_SINK

u16, u32, f32, f64 = np.uint16, np.uint32, np.float32, np.float64
_BF16: Final = ("BF16_V2", "BF16", "BF")


def format_of(b: Build) -> Format:
    """F16, or BF16 if the modifiers say so."""
    return BF16 if "BF16_V2" in b.mods or "BF16" in b.mods else F16


def _finish(b: Build, fmt: Format) -> Callable[[Arr], Arr]:
    """Round doubles (rounded to odd) to half bits, with .SAT, .RELU and .FTZ.

    A sum with a float32 operand is rounded toward zero (measured: that is how cvt.rz.f16.f32 is made on sm_75).
    """
    mode = "RZ" if any(getattr(o, "mod", "") == "F32" for o in b.s) else "RN"
    ftz, sat, relu = "FTZ" in b.mods, "SAT" in b.mods, "RELU" in b.mods

    def run(x: Arr) -> Arr:
        bits = fp.encode_half(x, fmt, mode)
        if not (ftz or sat or relu):
            return bits
        y = fp.decode_half(bits, fmt)
        if ftz:
            y = np.where(np.abs(y) < 2.0**fmt.emin, np.copysign(0.0, y), y)
        if sat:
            y = np.where(y > 0, np.minimum(y, 1.0), 0.0)
        if relu:
            y = np.where(y != y, y, np.where(y > 0, y, 0.0))
        return fp.encode_half(y, fmt)

    return run


def _arith(b: Build, fn: Callable[..., Arr], n: int) -> InstFn:
    fmt = format_of(b)
    ftz = "FTZ" in b.mods
    gets = [half_source(b, o, fmt, ftz) for o in b.s[:n]]
    done = _finish(b, fmt)
    d = b.dst()

    def run(v: View, m: Arr | None) -> None:
        sources = [g(v) for g in gets]
        low = done(fn(*[s[0] for s in sources]))
        high = done(fn(*[s[1] for s in sources]))
        put(v.U[d], pack(low, high), m)

    return run


def hadd2(b: Build) -> InstFn:
    """a + b; with .F32 the float32 sum of the first halves."""
    b.only(*_BF16, "F32", "FTZ", "SAT")
    return _first_halves(b, fp.add_odd) if "F32" in b.mods else _arith(b, fp.add_odd, 2)


def _first_halves(b: Build, operation: Callable[[Arr, Arr], Arr]) -> InstFn:
    """The float32 result of an operation on the first halves, rounded once."""
    fmt = format_of(b)
    x, y = (half_source(b, o, fmt, "FTZ" in b.mods) for o in b.s[:2])
    sat = "SAT" in b.mods

    def total(v: View) -> Arr:
        r = fp.round_f32(operation(x(v)[0], y(v)[0]))
        return fp.sat32(r) if sat else r

    return b.emit_f(lambda r: r, [total])


def fhfma(b: Build) -> InstFn:
    """FHADD and FHFMA: a half (two for FHFMA) and a float32, one rounding to float32."""
    b.only("BF16", "RM", "RP", "RZ", "RN", "SAT")
    fmt = format_of(b)
    halves = [half_source(b, o, fmt) for o in b.s[:-1]]
    wide = b.f(b.s[-1])
    mode, sat = b.pick("RM", "RP", "RZ", default="RN"), "SAT" in b.mods

    def total(v: View) -> Arr:
        first = halves[0](v)[0].astype(f32)
        second = halves[1](v)[0].astype(f32) if len(halves) > 1 else np.ones_like(first)
        r = fp.fma32(first, second, wide(v), mode)
        return fp.sat32(r) if sat else r

    return b.emit_f(lambda r: r, [total])


def fhfma2(b: Build) -> InstFn:
    """FHADD2 and FHFMA2: a pair of halves and pairs of float32, each sum or product rounded once to float32."""
    b.only("F32x2", "F16x2", "BF16x2", "RM", "RP", "RZ", "RN")
    fmt = BF16 if "BF16x2" in b.mods else F16
    first = half_source(b, b.s[0], fmt)
    mode = b.pick("RM", "RP", "RZ", default="RN")
    if any(not isinstance(o, Reg) or o.mod != "F32x2.HI_LO" for o in b.s[1:]):
        raise b.refuse("such operands")
    wide = [[b.f(o, part) for o in b.s[1:]] for part in (0, 1)]
    d0, d1 = b.dst(0), b.dst(1)

    def run(v: View, m: Arr | None) -> None:
        halves = first(v)
        out = []
        for x, others in zip(halves[:2], wide, strict=True):
            values = [g(v) for g in others]
            factor = values[0] if len(values) > 1 else np.ones_like(values[0])
            out.append(fp.fma32(x.astype(f32), factor, values[-1], mode))
        put(v.F[d0], out[0], m)
        put(v.F[d1], out[1], m)

    return run


#: Four narrow numbers: bits of each, and their distance in the register, by the suffix that names the parts.
_PARTS: dict[str, tuple[int, int]] = {"B3210": (8, 8), "N3210": (4, 4), "N6420": (4, 8)}
_FOURS = {
    "E4M3x4": exact.E4M3, "E5M2x4": exact.E5M2, "E2M3x4": exact.E2M3, "E3M2x4": exact.E3M2, "E2M1x4": exact.E2M1,
}  # fmt: skip


def four(b: Build) -> InstFn:
    """QADD4, QMUL4, QFMA4: four sums or products, each rounded once to the format of the result (documented)."""
    b.only(*_FOURS, "E8x4", "SATFINITE")
    names = [m for m in b.inst.mods if m != "SATFINITE"]
    kinds = [*names[1:], names[0]][: len(b.s)]
    fmt, finite = _FOURS[names[0]], "SATFINITE" in b.mods
    sources = [_four_source(b, o, kind) for o, kind in zip(b.s, kinds, strict=True)]

    def run(v: View) -> Arr:
        values = [get(v) for get in sources]
        word = np.zeros(values[0][0].shape, u32)
        for k in range(4):
            x = [part[k] for part in values]
            with np.errstate(invalid="ignore"):  # products of two such numbers and their sums with a third are exact
                y = x[0] * x[1] if b.inst.op != "QADD4" else x[0] + x[1]
                y = fp.add_odd(y, x[2]) if len(x) > 2 else y
            code = fp.encode_small(y, fmt).astype(u32)
            if not finite:  # E5M2 has an infinity, E4M3 a NaN
                over = np.abs(y) >= 61440.0 if fmt is exact.E5M2 else fp.past_top(y, fmt)
                limit = u32(0x7C if fmt is exact.E5M2 else 0x7F) | np.signbit(y).astype(u32) << u32(7)
                code = np.where(over, limit, code)
            word |= code << u32(8 * k)
        return word

    return b.emit(lambda x: x, [run])


def _four_source(b: Build, o: Operand, kind: str) -> Callable[[View], list[Arr]]:
    """The four numbers of an operand as doubles."""
    part = getattr(o, "mod", "")
    if part not in _PARTS:
        raise b.refuse(f"operand suffix {part}")
    bits, apart = _PARTS[part]
    get, flags = b.raw(o), flags_of(o)

    def numbers(v: View) -> list[Arr]:
        word, out = get(v), []
        for k in range(4):
            code = word >> u32(apart * k) & u32((1 << bits) - 1)
            if kind == "E8x4":
                x = np.where(code == 255, np.nan, np.ldexp(1.0, code.astype(np.int32) - 127))
            else:
                x = fp.decode_small(code.astype(np.uint8), _FOURS[kind])
            x = np.abs(x) if flags & ABS else x
            out.append(-x if flags & NEG else x)
        return out

    return numbers


def hmul2(b: Build) -> InstFn:
    """a * b; with .F32 (sm_75, where ptxas contracts mul.f16 and cvt) the float32 product of the first halves."""
    b.only(*_BF16, "F32", "FTZ", "SAT", "RELU")
    return _first_halves(b, lambda x, y: x * y) if "F32" in b.mods else _arith(b, lambda x, y: x * y, 2)


def hfma2(b: Build) -> InstFn:
    """a * b + c with one rounding."""
    b.only(*_BF16, "FTZ", "SAT", "RELU", "MMA", "OOB")
    if "OOB" in b.mods:
        return _without_holes(b, _arith(b, lambda x, y, z: fp.add_odd(x * y, z), 3))
    if isinstance(b.s[2], Imm) and all(isinstance(o, Reg) and o.num == -1 for o in b.s[:2]) and flags_of(b.s[0]) & NEG:
        value = b.s[2].value
        plain = all((value >> k) & 0x7C00 != 0x7C00 for k in (0, 16))
        if plain and "FTZ" not in b.mods and "SAT" not in b.mods and "RELU" not in b.mods:
            return b.emit(lambda x: x, [b.raw(b.s[2])])  # -0 * 0 + c is c
    return _arith(b, lambda x, y, z: fp.add_odd(x * y, z), 3)


def _without_holes(b: Build, plain: InstFn) -> InstFn:
    """.OOB: in the product's operands a half of all ones marks an element out of bounds; the result there is 0
    (documented)."""
    parts = [(b.raw(o), swizzle(o)) for o in b.s[:2]]
    d = b.dst()

    def run(v: View, m: Arr | None) -> None:
        holes = [np.zeros(len(v.U[d]), np.bool_), np.zeros(len(v.U[d]), np.bool_)]
        for get, lanes in parts:
            bits = np.broadcast_to(get(v), v.U[d].shape)
            for k in (0, 1):
                holes[k] = holes[k] | ((bits >> u32(16 * lanes[k])) & u32(0xFFFF) == u32(0xFFFF))
        plain(v, m)
        keep = np.where(holes[0], u32(0), u32(0xFFFF)) | np.where(holes[1], u32(0), u32(0xFFFF0000))
        put(v.U[d], v.U[d] & keep, m)

    return run


def hmnmx2(b: Build) -> InstFn:
    """Minimum where the predicate is true, maximum where false."""
    b.only(*_BF16, "FTZ", "NAN", "XORSIGN", "RELU")
    fmt = format_of(b)
    x, y = (half_source(b, o, fmt, "FTZ" in b.mods) for o in b.s[:2])
    nan, sign, relu = "NAN" in b.mods, "XORSIGN" in b.mods, "RELU" in b.mods
    pp = b.psrc(0, True)
    d = b.dst()

    raw = [b.raw(o) for o in b.s[:2]]

    def one(low: bool, p: Arr, q: Arr) -> Arr:
        return best(low, nan, p, q)

    def run(v: View, m: Arr | None) -> None:
        left, right, lower = x(v), y(v), pp(v)
        out = []
        for i, (p, q) in enumerate(zip(left, right, strict=True)):
            r = np.where(lower, one(True, p, q), one(False, p, q))
            if sign:  # of the operands before their |x|
                flip = (raw[0](v) ^ raw[1](v)) >> u32(15 + 16 * i) & u32(1)
                r = np.where(r == r, np.copysign(r, np.where(flip != 0, -1.0, 1.0)), r)
            if relu:
                r = np.where(r != r, r, np.where(r > 0, r, 0.0))
            out.append(fp.encode_half(r, fmt))
        put(v.U[d], pack(out[0], out[1]), m)

    return run


def hsetp2(b: Build) -> InstFn:
    """Comparison: Pu of the low halves, Pv of the high ones; .H_AND: Pu of both, Pv its inverse."""
    b.only(*_BF16, *FCMP, *BOP, "FTZ", "H_AND")
    fmt = format_of(b)
    cmp = fcmp_of(b)
    x, y = (half_source(b, o, fmt, "FTZ" in b.mods) for o in b.s[:2])
    join: Any = BOP[b.pick(*BOP, default="AND")]
    pp = b.psrc(0, True)
    both = "H_AND" in b.mods
    pu, pv = b.pdst(0), b.pdst(1)

    def run(v: View, m: Arr | None) -> None:
        left, right, third = x(v), y(v), pp(v)
        low, high = cmp(left[0], right[0]), cmp(left[1], right[1])
        if both:
            low = low & high
            high = ~low
        first, second = join(low, third), join(high, third)
        put(v.P[pu], first, m)
        if pv != P_SINK:
            put(v.P[pv], second, m)

    return run


def hset2(b: Build) -> InstFn:
    """Comparison into halves: all ones, or 1.0 with .BF."""
    fmt = BF16 if "BF16_V2" in b.mods else F16
    b.only("BF16_V2", *FCMP, *BOP, "FTZ", "BF")
    cmp = fcmp_of(b)
    x, y = (half_source(b, o, fmt, "FTZ" in b.mods) for o in b.s[:2])
    join: Any = BOP[b.pick(*BOP, default="AND")]
    pp = b.psrc(0, True)
    d = b.dst()
    true = u16((0x3F80 if fmt is BF16 else 0x3C00) if "BF" in b.mods else 0xFFFF)

    def run(v: View, m: Arr | None) -> None:
        left, right, third = x(v), y(v), pp(v)
        low, high = (np.where(join(cmp(p, q), third), true, u16(0)) for p, q in zip(left, right, strict=True))
        put(v.U[d], pack(low, high), m)

    return run


OPS: Final[dict[str, Builder]] = {
    "HADD2": hadd2, "HMUL2": hmul2, "HFMA2": hfma2, "HMNMX2": hmnmx2, "HSETP2": hsetp2, "HSET2": hset2,
    "FHADD": fhfma, "FHFMA": fhfma, "FHADD2": fhfma2, "FHFMA2": fhfma2, "QADD4": four, "QMUL4": four, "QFMA4": four,
}  # fmt: skip
