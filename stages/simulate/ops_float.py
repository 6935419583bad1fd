"""float32 and double arithmetic, comparisons, and the special function unit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ir_format.model import Reg
from stages.simulate import fp
from stages.simulate.build import Arr, Build, Builder, Get, InstFn, View, count, put
from stages.simulate.exact import BF16, F16
from stages.simulate.halves import half_source, pack
from stages.simulate.ops_compare import BOP, compare

u32, u64, f32, f64 = np.uint32, np.uint64, np.float32, np.float64
MODES: Final = ("RM", "RP", "RZ")
_SCALES: Final = {"D2": 0.5, "D4": 0.25, "D8": 0.125, "M8": 8.0, "M4": 4.0, "M2": 2.0}


def ftz_in(b: Build, gets: list[Get]) -> list[Get]:
    """The sources, with subnormals flushed if the instruction says .FTZ."""
    if "FTZ" not in b.mods:
        return gets
    return [_flushed(g) for g in gets]


def _flushed(g: Get) -> Get:
    return lambda v: fp.ftz32(g(v))


def finish32(b: Build, fn: Callable[..., Arr]) -> Callable[..., Arr]:
    """Flush and saturate the result as the modifiers say."""
    ftz, sat = "FTZ" in b.mods, "SAT" in b.mods
    if not ftz and not sat:
        return fn

    def run(*args: Arr) -> Arr:
        r = fn(*args)
        if ftz:
            r = fp.ftz32(r)
        return fp.sat32(r) if sat else r

    return run


def fadd(b: Build) -> InstFn:
    """a + b."""
    b.only("FTZ", "SAT", *MODES)
    mode = b.pick(*MODES, default="RN")
    return b.emit_f(finish32(b, lambda x, y: fp.add32(x, y, mode)), ftz_in(b, [b.f(o) for o in b.s[:2]]))


def fmul(b: Build) -> InstFn:
    """a * b, scaled by a power of two before the rounding."""
    b.only("FTZ", "SAT", *_SCALES, *MODES)
    mode = b.pick(*MODES, default="RN")
    scale = b.pick(*_SCALES)
    gets = ftz_in(b, [b.f(o) for o in b.s[:2]])
    if not scale:
        return b.emit_f(finish32(b, lambda x, y: fp.mul32(x, y, mode)), gets)
    factor = _SCALES[scale]
    return b.emit_f(finish32(b, lambda x, y: fp.round_f32(x.astype(f64) * y.astype(f64) * factor, mode)), gets)


def ffma(b: Build) -> InstFn:
    """a * b + c with one rounding."""
    b.only("FTZ", "SAT", *MODES)
    mode = b.pick(*MODES, default="RN")
    return b.emit_f(finish32(b, lambda x, y, z: fp.fma32(x, y, z, mode)), ftz_in(b, [b.f(o) for o in b.s[:3]]))


#: Which 32-bit register of a pair each half of a packed operation takes.
_HALVES: Final = {"F32x2.HI_LO": (0, 1), "F32x2.LO_HI": (1, 0), "F32": (0, 0), "": (0, 1)}


def packed(fn: Callable[..., Arr], sources: int) -> Builder:
    """An operation on two floats at once. Operands are pairs, swapped pairs, or one number for both halves (as every
    immediate is)."""

    def build(b: Build) -> InstFn:
        b.only("FTZ", *MODES)
        mode = b.pick(*MODES, default="RN")
        halves: list[list[Get]] = [[], []]
        for op in b.s[:sources]:
            mod = op.mod if isinstance(op, Reg) else "F32"
            if mod not in _HALVES:
                raise b.refuse(f"operand {mod}")
            for half, part in zip(halves, _HALVES[mod], strict=True):
                half.append(b.f(op, part))
        finish = finish32(b, lambda *args: fn(*args, mode))
        low, high = (ftz_in(b, half) for half in halves)
        d0, d1 = b.dst(0), b.dst(1)

        def run(v: View, m: Arr | None) -> None:
            x, y = finish(*[g(v) for g in low]), finish(*[g(v) for g in high])
            put(v.F[d0], x, m)
            put(v.F[d1], y, m)

        return run

    return build


def best(low: bool, nan: bool, x: Arr, y: Arr) -> Arr:
    """Minimum (or maximum) with -0 < +0. A NaN operand is ignored; with ``nan`` it is the result."""
    first = (x < y) | ((x == y) & np.signbit(x)) if low else (x > y) | ((x == y) & ~np.signbit(x))
    r = np.where(first, x, y)
    xn, yn = x != x, y != y
    if count(xn) or count(yn):
        r = np.where(xn, y, np.where(yn, x, r))
        if nan:
            r = np.where(xn | yn, x.dtype.type(np.nan), r)
    return r


def _mnmx(b: Build, index: int) -> Callable[[View, Arr, Arr], Arr]:
    nan = "NAN" in b.mods

    def signed(low: bool, x: Arr, y: Arr) -> Arr:
        return best(low, nan, x, y)

    fixed = b.pconst(index) if index < len(b.ps) else None
    if fixed is not None:
        return lambda v, x, y: signed(fixed, x, y)
    pp = b.psrc(index, True)
    return lambda v, x, y: np.where(pp(v), signed(True, x, y), signed(False, x, y))


def fmnmx(b: Build) -> InstFn:
    """Minimum where the predicate is true, maximum where false; of two or three values."""
    b.only("FTZ", "NAN", "XORSIGN")
    values = [o for o in b.s]
    gets = ftz_in(b, [b.f(o) for o in values])
    pick = _mnmx(b, 0)
    d = b.dst()
    # .XORSIGN: the sign is that of the product of the operands before their |x| (PTX manual, min.xorsign.abs).
    signs = [b.raw(o) for o in values] if "XORSIGN" in b.mods else []

    def run(v: View, m: Arr | None) -> None:
        r = gets[0](v)
        for g in gets[1:]:
            r = pick(v, r, g(v))
        if signs:
            flip = signs[0](v)
            for s in signs[1:]:
                flip = flip ^ s(v)
            r = np.where(r == r, np.copysign(r, np.where(flip >> u32(31) != 0, f32(-1), f32(1))), r)
        put(v.F[d], fp.canonical32(np.array(r, f32)), m)

    return run


def fsel(b: Build) -> InstFn:
    """a where the predicate is true, else b; bits pass unchanged but for .FTZ."""
    b.only("FTZ")
    x, y = ftz_in(b, [b.f(o) for o in b.s[:2]])
    pp = b.psrc(0, True)
    return b.emit(lambda p, q, r: np.where(p, q.view(u32), r.view(u32)), [pp, x, y])


def _or_nan(fn: Callable[[Arr, Arr], Arr]) -> Callable[[Arr, Arr], Arr]:
    return lambda a, b: fn(a, b) | (a != a) | (b != b)


FCMP: Final[dict[str, Callable[[Arr, Arr], Arr]]] = {
    "F": lambda a, b: np.zeros(a.shape, np.bool_),
    "LT": np.less,
    "EQ": np.equal,
    "LE": np.less_equal,
    "GT": np.greater,
    "NE": lambda a, b: (a != b) & (a == a) & (b == b),
    "GE": np.greater_equal,
    "NUM": lambda a, b: (a == a) & (b == b),
    "NAN": lambda a, b: (a != a) | (b != b),
    "LTU": _or_nan(np.less),
    "EQU": _or_nan(np.equal),
    "LEU": _or_nan(np.less_equal),
    "GTU": _or_nan(np.greater),
    "NEU": np.not_equal,
    "GEU": _or_nan(np.greater_equal),
    "T": lambda a, b: np.ones(a.shape, np.bool_),
}


def fcmp_of(b: Build) -> Callable[[Arr, Arr], Arr]:
    """The comparison that the modifiers name."""
    name = next((m for m in b.inst.mods if m in FCMP), "")
    if not name:
        raise b.refuse("no comparison")
    return FCMP[name]


def fsetp(b: Build) -> InstFn:
    """float32 comparison into predicates."""
    b.only(*FCMP, *BOP, "FTZ")
    cmp = fcmp_of(b)
    x, y = ftz_in(b, [b.f(o) for o in b.s[:2]])
    return compare(b, lambda v: cmp(x(v), y(v)))


def fset(b: Build) -> InstFn:
    """float32 comparison into a register: all ones, or 1.0 with .BF."""
    b.only(*FCMP, *BOP, "FTZ", "BF")
    cmp = fcmp_of(b)
    x, y = ftz_in(b, [b.f(o) for o in b.s[:2]])
    join: Any = BOP[b.pick(*BOP, default="AND")]
    true = u32(0x3F800000 if "BF" in b.mods else 0xFFFFFFFF)
    return b.emit(lambda p, q, pp: np.where(join(cmp(p, q), pp), true, u32(0)), [x, y, b.psrc(0, True)])


def fchk(b: Build) -> InstFn:
    """Does a / b need the slow path? True for anything whose fast path could overflow, underflow or meet a special
    value.

    The exact condition of the hardware is unknown; a wider one is harmless because the slow path is complete (guessed).
    """
    b.only("DIVIDE", "FTZ")

    def run(x: Arr, y: Arr) -> tuple[Arr, Arr]:
        ex = ((x.view(u32) >> u32(23)) & u32(0xFF)).astype(np.int32)
        ey = ((y.view(u32) >> u32(23)) & u32(0xFF)).astype(np.int32)
        gap = ex - ey
        easy = (ex > 24) & (ex < 254) & (ey > 0) & (ey < 252) & (gap > -125) & (gap < 126)
        return ~easy, easy

    return b.emit_p(run, [b.f(o) for o in b.s[:2]])


# --- special functions -----------------------------------------------------------------------------------------


def _sin(x: Arr) -> Arr:
    return np.where(x == 0, x, np.sin(2 * np.pi * (x - np.rint(x))))  # zeros keep their sign (the PTX manual's table)


def _cos(x: Arr) -> Arr:
    return np.cos(2 * np.pi * (x - np.rint(x)))


#: Function of the double of the float32 operand. The unit's own error is not modelled: results are correctly rounded
#: (documented bounds of the CUDA guide are at least half an ulp). SIN and COS take turns: the code multiplies by 1/2pi
#: first (measured).
_MUFU: Final[dict[str, Callable[[Arr], Arr]]] = {
    "COS": _cos,
    "SIN": _sin,
    "EX2": np.exp2,
    "LG2": np.log2,
    "RCP": lambda x: 1.0 / x,
    "RSQ": lambda x: 1.0 / np.sqrt(x),
    "SQRT": np.sqrt,
    "TANH": np.tanh,
}
_HIGH: Final[dict[str, Callable[[Arr], Arr]]] = {"RCP64H": lambda x: 1.0 / x, "RSQ64H": lambda x: 1.0 / np.sqrt(x)}


def mufu(b: Build) -> InstFn:
    """One special function; subnormal operands and results are flushed."""
    b.only(*_MUFU, *_HIGH, "F16", "F16_V2", "BF16", "BF16_V2", "PACKED")
    name = b.pick(*_HIGH, *_MUFU)
    if name in _HIGH:
        high = _HIGH[name]

        def run64(x: Arr) -> Arr:
            value = (x.astype(u64) << u64(32)).view(f64)
            tiny = np.abs(value) < 2.0**-1022
            r = np.asarray(high(np.where(tiny, np.copysign(0.0, value), value)))
            r = np.where(np.abs(r) < 2.0**-1022, np.copysign(0.0, r), r)
            return (r.view(u64) >> u64(32)).astype(u32)

        return b.emit(run64, [b.high64(b.s[0])])
    fn = _MUFU[name]
    halves = b.pick("F16", "F16_V2", "BF16", "BF16_V2")
    if halves:
        return _mufu_half(b, fn, halves, name == "EX2" and halves.startswith("BF16"))
    if name == "TANH":  # documented of tanh.approx.f32: subnormals are their own results

        def tanh(x: Arr) -> Arr:
            return fp.canonical32(np.asarray(fn(x.astype(f64))).astype(f32))

        return b.emit_f(tanh, [b.f(b.s[0])])

    def run(x: Arr) -> Arr:
        return fp.ftz32(fp.canonical32(np.asarray(fn(fp.ftz32(x).astype(f64))).astype(f32)))

    return b.emit_f(run, [b.f(b.s[0])])


def _mufu_half(b: Build, fn: Callable[[Arr], Arr], kind: str, flush: bool) -> InstFn:
    """``flush``: subnormals become zeros (documented of ex2.ftz.bf16, which has no other form)."""

    def tiny(x: Arr) -> Arr:
        return np.where(np.abs(x) < 2.0**-126, np.copysign(0.0, x), x) if flush else x

    fmt = BF16 if kind.startswith("BF16") else F16
    x = half_source(b, b.s[0], fmt)
    d = b.dst()

    def run(v: View, m: Arr | None) -> None:
        low, high = (fp.encode_half(tiny(np.asarray(fn(tiny(h)))), fmt) for h in x(v))
        put(v.U[d], pack(low, high) if kind.endswith("_V2") else low.astype(u32), m)

    return run


# --- double ----------------------------------------------------------------------------------------------------


def dadd(b: Build) -> InstFn:
    """a + b."""
    b.only(*MODES)
    mode = b.pick(*MODES, default="RN")
    return b.emit_q(lambda x, y: fp.add64(x, y, mode), [b.f64(o) for o in b.s[:2]])


def dmul(b: Build) -> InstFn:
    """a * b."""
    b.only(*MODES)
    mode = b.pick(*MODES, default="RN")
    return b.emit_q(lambda x, y: fp.mul64(x, y, mode), [b.f64(o) for o in b.s[:2]])


def dfma(b: Build) -> InstFn:
    """a * b + c with one rounding."""
    b.only(*MODES)
    mode = b.pick(*MODES, default="RN")
    return b.emit_q(lambda x, y, z: fp.fma64(x, y, z, mode), [b.f64(o) for o in b.s[:3]])


def dsetp(b: Build) -> InstFn:
    """Double comparison. MIN and MAX: Pu says that a is the answer, Pv that both are NaN (the code of min.f64 then
    makes b a quiet NaN then)."""
    x, y = (b.f64(o) for o in b.s[:2])
    if "MIN" in b.mods or "MAX" in b.mods:
        low = "MIN" in b.mods
        b.only("MIN", "MAX", "AND")

        def run(p: Arr, q: Arr) -> tuple[Arr, Arr]:
            nan = (p != p) | (q != q)
            first = (p < q) | ((p == q) & np.signbit(p)) if low else (p > q) | ((p == q) & ~np.signbit(p))
            return np.where(nan, q != q, first), (p != p) & (q != q)

        return b.emit_p(run, [x, y])
    b.only(*FCMP, *BOP)
    cmp = fcmp_of(b)
    return compare(b, lambda v: cmp(x(v), y(v)))


def frnd(b: Build) -> InstFn:
    """Round to an integral value."""
    b.only("FTZ", "FLOOR", "CEIL", "TRUNC", "F64", "F32", "F16", "BF16")
    fn: Any = {"FLOOR": np.floor, "CEIL": np.ceil, "TRUNC": np.trunc, "": np.rint}[b.pick("FLOOR", "CEIL", "TRUNC")]
    if "F64" in b.mods:
        return b.emit_q(fn, [b.f64(b.s[0])])
    if "F16" in b.mods:
        halves = half_source(b, b.s[0], F16)
        return b.emit(lambda x: fp.to_f16(fn(x)).astype(u32), [lambda v: halves(v)[0]])
    if "BF16" in b.mods:
        brains = half_source(b, b.s[0], BF16)
        return b.emit(lambda x: fp.encode_half(fn(x), BF16).astype(u32), [lambda v: brains(v)[0]])
    (x,) = ftz_in(b, [b.f(b.s[0])])
    return b.emit_f(lambda p: fp.canonical32(np.asarray(fn(p))), [x])


OPS: Final[dict[str, Builder]] = {
    "FADD": fadd, "UFADD": fadd, "FMUL": fmul, "UFMUL": fmul, "FFMA": ffma, "UFFMA": ffma, "FADD32I": fadd,
    "FFMA32I": ffma, "FMUL32I": fmul,
    "FADD2": packed(fp.add32, 2), "FMUL2": packed(fp.mul32, 2), "FFMA2": packed(fp.fma32, 3),
    "FMNMX": fmnmx, "UFMNMX": fmnmx, "FMNMX3": fmnmx, "UFMNMX3": fmnmx, "FSEL": fsel, "UFSEL": fsel, "FSETP": fsetp,
    "UFSETP": fsetp,
    "FSET": fset, "UFSET": fset, "FCHK": fchk, "MUFU": mufu, "FRND": frnd, "UFRND": frnd,
    "DADD": dadd, "DMUL": dmul, "DFMA": dfma, "DSETP": dsetp,
}  # fmt: skip
