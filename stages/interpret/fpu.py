"""Floating-point arithmetic and comparisons: see :mod:`stages.interpret.rows`.

Approximations are computed in float64 and rounded; :data:`BOUNDS` has the errors that the PTX manual allows.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from ir_format.ptx import PtxInst
from stages.interpret import floats
from stages.interpret.alu import INT, INTEGER
from stages.interpret.floats import F32, F64, FORMATS, Format, decode, flush, is_nan, narrow, one_of, relu, saturate
from stages.interpret.rows import (
    BITS,
    U64,
    Arr,
    Fn,
    Maker,
    Unsupported,
    elementwise,
    format_of,
    mask,
    packed,
    rounding,
    row,
    source_flush,
    typed,
    unsigned,
)


class Bound(NamedTuple):
    """The allowed error: relative, absolute, or units in the last place; one of them must be met. Source: the PTX
    manual, unless `source` says otherwise."""

    rel: float = 0.0
    abs: float = 0.0
    ulp: int = 0
    source: str = "documented"


BOUNDS: Final[dict[str, Bound]] = {
    "div.approx.f32": Bound(ulp=2),
    "div.full.f32": Bound(ulp=2),
    "rcp.approx.f32": Bound(ulp=1),
    "sqrt.approx.f32": Bound(rel=2.0**-22.9, ulp=1),
    "rsqrt.approx.f32": Bound(rel=2.0**-22.4, ulp=2),
    "sin.approx.f32": Bound(abs=2.0**-14.7, source="documented for |x| up to 100 pi; no bound beyond"),
    "cos.approx.f32": Bound(abs=2.0**-14.7, source="documented for |x| up to 100 pi; no bound beyond"),
    "lg2.approx.f32": Bound(rel=2.0**-22, abs=2.0**-22),
    "ex2.approx.f32": Bound(rel=2.0**-22, ulp=2),
    "tanh.approx.f32": Bound(rel=2.0**-10.9),
    "ex2.approx.f16": Bound(rel=2.0**-9.9, ulp=1),
    "ex2.approx.f16x2": Bound(rel=2.0**-9.9, ulp=1),
    "ex2.approx.ftz.bf16": Bound(rel=2.0**-7, ulp=1),
    "ex2.approx.ftz.bf16x2": Bound(rel=2.0**-7, ulp=1),
    "tanh.approx.f16": Bound(abs=2.0**-10.9),
    "tanh.approx.f16x2": Bound(abs=2.0**-10.9),
    "tanh.approx.bf16": Bound(rel=2.0**-8, ulp=1),
    "tanh.approx.bf16x2": Bound(rel=2.0**-8, ulp=1),
    "rcp.approx.ftz.f64": Bound(rel=2.0**-19, source="measured: the low word of the result is 0"),
    "rsqrt.approx.ftz.f64": Bound(rel=2.0**-19, source="measured: the low word of the result is 0"),
    "rsqrt.approx.f64": Bound(rel=2.0**-20, source="guessed"),
}


def bound_of(inst: PtxInst) -> Bound | None:
    """The bound of an approximate instruction; None for an exact one."""
    return BOUNDS.get(inst.opcode) or BOUNDS.get(inst.opcode.replace(".ftz", ""))


_DOUBLES: Final = frozenset(["add", "sub", "mul", "mad", "fma", "div", "min", "max", "rcp", "sqrt", "rsqrt", "cvt"])


def nans_left_open(inst: PtxInst) -> Format | None:
    """The format of a result whose NaNs may have any payload and sign by the manual: double precision (it does not say
    which operand's payload), and neg and abs in every format. Other results are the canonical NaN."""
    type_ = inst.types[0] if inst.types else ""
    if (inst.op in ("neg", "abs") or (type_ == "f64" and inst.op in _DOUBLES)) and type_.removesuffix("x2") in FORMATS:
        return format_of(type_)
    return None


def _finish(inst: PtxInst, f: Format) -> Fn:
    """Apply .ftz, .sat and .relu to a result."""
    ftz, sat, clip = inst.has("ftz"), inst.has("sat"), inst.has("relu")

    def finish(r: Arr) -> Arr:
        r = flush(r, f) if ftz else r
        r = saturate(r, f) if sat else r
        return relu(r, f) if clip else r

    return finish


def _arith(inst: PtxInst, make: Any) -> Fn:
    """`make(format, mode)` on operands of one type, with the usual modifiers; mixed forms widen their narrow
    sources."""
    type_, ftz, mode = inst.types[0], inst.has("ftz"), rounding(inst)
    if type_.endswith("x4"):
        return _four(inst, make)
    if len(inst.types) > 1:
        pairs = type_ == "f32x2"
        source = FORMATS[inst.types[1].removesuffix("x2")]
        core, finish = make(F32, mode), _finish(inst, F32)
        if pairs:

            def one_of_two(at: int, first: Arr, others: tuple[Arr, ...]) -> Arr:
                half = narrow(decode((first >> U64(at // 2)) & mask(16), source), F32)
                wide = [(a >> U64(at)) & mask(32) for a in others]
                return np.asarray(finish(core(half, *wide))) & mask(32)

            return lambda a, *b: one_of_two(0, a, b) | (one_of_two(32, a, b) << U64(32))

        def mixed(*args: Arr) -> Arr:
            wide = [narrow(decode(unsigned(a, 16), source), F32) for a in args[:-1]]
            return np.asarray(finish(core(*wide, unsigned(args[-1], 32))))

        return mixed

    def one(element: str) -> Fn:
        f = FORMATS[element]
        core, finish = make(f, mode), _finish(inst, f)
        return lambda *x: finish(core(*[source_flush(a, f, ftz) for a in x]))

    return elementwise(type_, one)


def _four(inst: PtxInst, make: Any) -> Fn:
    """Four sums or products of narrow numbers: the last operand, and those without a type, have the result's."""
    dest, own = inst.types[0], inst.types[1:]
    f = FORMATS[dest[:-2]]

    def part(x: Arr, type_: str, k: int) -> Arr:
        if type_ == "ue8m0x4":
            code = (x >> U64(8 * k)) & mask(8)
            return floats.u64(np.where(code == 255, np.nan, np.ldexp(1.0, code.astype(np.int32) - 127)))
        if type_ in ("e2m1x4", "e2m1p4x4"):
            return floats.u64(decode((x >> U64((4 if type_ == "e2m1x4" else 8) * k)) & mask(4), FORMATS["e2m1"]))
        g = FORMATS[type_[:-2]]
        return floats.u64(decode((x >> U64(8 * k)) & mask(g.bits), g))

    core = make(floats.F64, "rn")  # exact: such sums and products fit into 53 bits, but for factors far apart

    def four(*args: Arr) -> Arr:
        types = [*own, *[dest] * (len(args) - len(own))]
        out: Any = U64(0)
        for k in range(4):
            value = decode(core(*[part(x, t, k) for x, t in zip(args, types, strict=True)]), floats.F64)
            code = narrow(value, f, "rn", inst.has("satfinite"))
            if f.kind == "e4m3" and not inst.has("satfinite"):  # no infinity: an overflow is a NaN
                code = np.where(floats.past_top(value, f), U64(f.nan) | code & U64(f.sign), code)
            out = out | (code << U64(8 * k))
        return np.asarray(out)

    return four


def _negated(x: Arr, f: Format) -> Arr:
    return np.where(is_nan(x, f), x, x ^ U64(f.sign))


@row("add", "sub", "mul", "mad", "fma", "div", "neg", "abs", "min", "max", "rem")
def _choose(inst: PtxInst) -> Fn:
    if inst.types[0] in INTEGER:
        return INT[inst.op](inst)
    return FLOAT[inst.op](inst)


def _add(inst: PtxInst) -> Fn:
    return _arith(inst, lambda f, mode: lambda a, b: floats.add(a, b, f, mode))


def _sub(inst: PtxInst) -> Fn:
    if len(inst.types) == 2 and not inst.types[0].endswith("x4"):  # the narrow operand is the first
        return _arith(inst, lambda f, mode: lambda a, b: floats.add(a, _negated(b, f), f, mode))
    return _arith(inst, lambda f, mode: lambda a, b: floats.add(a, _negated(b, f), f, mode))


def _mul(inst: PtxInst) -> Fn:
    return _arith(inst, lambda f, mode: lambda a, b: floats.mul(a, b, f, mode))


def _fma(inst: PtxInst) -> Fn:
    plain = _arith(inst, lambda f, mode: lambda a, b, c: floats.fma(a, b, c, f, mode))
    if not inst.has("oob"):
        return plain
    type_ = inst.types[0]

    def oob(*x: Arr) -> Arr:
        hole = (x[0] == mask(16)) | (x[1] == mask(16))
        return np.where(hole, U64(0), plain(*x))

    if type_.endswith("x2"):
        single = PtxInst(inst.op, inst.mods, (type_[:-2],), inst.operands)
        inner = _arith(single, lambda f, mode: lambda a, b, c: floats.fma(a, b, c, f, mode))
        return packed(lambda *x: np.where((x[0] == mask(16)) | (x[1] == mask(16)), U64(0), inner(*x)), 2, 16)
    return oob


def _div(inst: PtxInst) -> Fn:
    if inst.has("approx"):
        plain = _arith(inst, lambda f, mode: lambda a, b: floats.div(a, b, f, mode))

        def approx(a: Arr, b: Arr) -> Arr:
            """Documented: for divisors of 2**126 and more a finite dividend gives 0, an infinite one NaN."""
            magnitude = unsigned(b, 32) & U64(F32.sign - 1)
            big = (magnitude > U64(253 << 23)) & (magnitude < U64(F32.inf))
            finite = (unsigned(a, 32) & U64(F32.sign - 1)) < U64(F32.inf)
            zero = (a ^ b) & U64(F32.sign)
            return np.where(big, np.where(finite, zero, U64(F32.nan)), plain(a, b))

        return approx
    return _arith(inst, lambda f, mode: lambda a, b: floats.div(a, b, f, mode))


@row("rcp")
def _rcp(inst: PtxInst) -> Fn:
    if inst.types[0] == "f64" and inst.has("approx"):
        return _high_word(lambda x: 1.0 / x)
    return _arith(inst, lambda f, mode: lambda a: floats.div(np.broadcast_to(one_of(f), a.shape), a, f, mode))


@row("sqrt")
def _sqrt(inst: PtxInst) -> Fn:
    return _arith(inst, lambda f, mode: lambda a: floats.sqrt(a, f, mode))


def _high_word(fn: Any) -> Fn:
    """An f64 approximation with subnormals flushed; the low words of source and result count as 0."""
    high = U64(0xFFFFFFFF00000000)

    def apply(a: Arr) -> Arr:
        r = narrow(fn(decode(flush(a & high, F64), F64)), F64)
        return flush(r & high, F64)

    return apply


@row("rsqrt")
def _rsqrt(inst: PtxInst) -> Fn:
    if inst.types[0] == "f64":
        return (
            _high_word(lambda x: 1.0 / np.sqrt(x))
            if inst.has("ftz")
            else lambda a: narrow(1.0 / np.sqrt(decode(a, F64)), F64)
        )
    return _approx(lambda x: 1.0 / np.sqrt(x), inst)


def _ex2(x: Arr) -> Arr:
    return np.asarray(np.exp2(np.clip(x, -1100, 1100)))


def _approx(fn: Any, inst: PtxInst) -> Fn:
    return _arith(inst, lambda f, mode: lambda a: narrow(fn(decode(a, f)), f))


def _turns(fn: Any, inst: PtxInst) -> Fn:
    """A function of an angle, which is in turns of a circle with `.2pi`."""
    return _approx((lambda x: fn(x * (2 * np.pi))) if inst.has("2pi") else fn, inst)


row("sin")(partial(_turns, np.sin))
row("cos")(partial(_turns, np.cos))
row("lg2")(partial(_approx, np.log2))
row("ex2")(partial(_approx, lambda x: np.where(np.isnan(x), np.nan, _ex2(x))))
row("tanh")(partial(_approx, np.tanh))


def _sign_op(inst: PtxInst) -> Fn:
    ftz, op = inst.has("ftz"), inst.op

    def one(element: str) -> Fn:
        f = FORMATS[element]

        def apply(a: Arr) -> Arr:
            x = source_flush(a, f, ftz)
            return x & U64(f.sign - 1) if op == "abs" else x ^ U64(f.sign)

        return apply

    return elementwise(inst.types[0], one)


def _order(x: Arr, f: Format) -> Arr:
    """Bits as integers in the order of the numbers, -0 below +0."""
    magnitude = (x & U64(f.sign - 1)).astype(np.int64)
    return np.where(x & U64(f.sign) != 0, -magnitude - 1, magnitude)


def _min(inst: PtxInst) -> Fn:
    ftz, nan, xorsign = inst.has("ftz"), inst.has("NaN"), inst.has("xorsign")
    absolute, least = inst.has("abs"), inst.op == "min"

    def one(element: str) -> Fn:
        f = FORMATS[element]

        def pick(a: Arr, b: Arr) -> Arr:
            first = (_order(a, f) <= _order(b, f)) if least else (_order(a, f) >= _order(b, f))
            r = np.where(first, a, b)
            na, nb = is_nan(a, f), is_nan(b, f)
            if nan:
                return np.where(na | nb, U64(f.nan), r)
            return np.where(na & nb, U64(f.nan), np.where(na, b, np.where(nb, a, r)))

        def apply(*args: Arr) -> Arr:
            x = [source_flush(a, f, ftz) for a in args]
            sign = (x[0] ^ x[-1]) & U64(f.sign)
            if absolute:
                x = [v & U64(f.sign - 1) for v in x]
            r = pick(x[0], x[1])
            if len(x) == 3:
                r = pick(r, x[2])
            return np.where(is_nan(r, f), r, r | sign) if xorsign else r

        return apply

    return elementwise(inst.types[0], one)


FLOAT: Final[dict[str, Maker]] = {
    "add": _add, "sub": _sub, "mul": _mul, "mad": _fma, "fma": _fma, "div": _div, "neg": _sign_op, "abs": _sign_op,
    "min": _min, "max": _min,
}  # fmt: skip


@row("copysign")
def _copysign(inst: PtxInst) -> Fn:
    f = FORMATS[inst.types[0]]
    return lambda a, b: (unsigned(b, f.bits) & U64(f.sign - 1)) | (a & U64(f.sign))


@row("testp")
def _testp(inst: PtxInst) -> Fn:
    f = FORMATS[inst.types[0]]
    what = inst.mods[0]

    def test(a: Arr) -> Arr:
        m = unsigned(a, f.bits) & U64(f.sign - 1)
        smallest, inf = U64(1 << f.prec - 1), U64(f.inf)
        answers = {
            "finite": m < inf,
            "infinite": m == inf,
            "number": m <= inf,
            "notanumber": m > inf,
            "normal": ((m >= smallest) & (m < inf)) | (m == 0),  # documented: zeros count as normal
            "subnormal": (m < smallest) & (m != 0),
        }
        return np.asarray(answers[what]).astype(U64)

    return test


# --------------------------------------------------------------------------- comparisons

_COMPARE: Final[dict[str, Any]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip
_BOOL: Final[dict[str, Any]] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def compare(what: str, type_: str, ftz: bool) -> Fn:
    """A comparison of two values of a type: a bool array."""
    if type_[0] in "usb" and type_ not in ("bf16",):
        fn = _COMPARE[what]
        return lambda a, b: fn(typed(a, type_), typed(b, type_))
    f = FORMATS[type_]

    def floating(a: Arr, b: Arr) -> Arr:
        x, y = decode(source_flush(a, f, ftz), f), decode(source_flush(b, f, ftz), f)
        nan = np.isnan(x) | np.isnan(y)
        if what == "num":
            return np.asarray(~nan)
        if what == "nan":
            return np.asarray(nan)
        if what.endswith("u"):
            return np.asarray(_COMPARE[what[:-1]](x, y) | nan)
        return np.asarray(_COMPARE[what](x, y) & ~nan)

    return floating


def _comparison(inst: PtxInst, source: str) -> tuple[Fn, Any, int]:
    """Compare function, the combining operation or None, elements."""
    what = inst.mods[0]
    combine = next((_BOOL[m] for m in inst.mods[1:] if m in _BOOL), None)
    element = source.removesuffix("x2")
    return compare(what, element, inst.has("ftz")), combine, 2 if source.endswith("x2") else 1


@row("setp")
def _setp(inst: PtxInst) -> Fn:
    test, combine, count = _comparison(inst, inst.types[0])

    def setp(a: Arr, b: Arr, *c: Arr) -> Any:
        def final(t: Arr) -> Arr:
            return (combine(t, c[0] != 0) if combine is not None else t).astype(U64)

        if count == 2:
            return tuple(final(test((a >> U64(k)) & mask(16), (b >> U64(k)) & mask(16))) for k in (0, 16))
        t = test(a, b)
        return final(t), final(~t)

    return setp


@row("set")
def _set(inst: PtxInst) -> Fn:
    if len(inst.types) == 1:  # packed integers
        element = inst.types[0][:-2]
        single = compare(inst.mods[0], element, False)
        bits = BITS[element]
        return packed(lambda a, b: np.where(single(a, b), mask(bits), U64(0)), 32 // bits, bits)
    dest, source = inst.types
    test, combine, count = _comparison(inst, source)
    element = dest.removesuffix("x2")
    width = BITS[element] if count == 1 else 16
    if element in FORMATS:
        true = one_of(format_of(element))
    else:
        true = mask(width)

    def set_(a: Arr, b: Arr, *c: Arr) -> Arr:
        out: Any = U64(0)
        for k in range(count):
            x, y = (a, b) if count == 1 else ((a >> U64(16 * k)) & mask(16), (b >> U64(16 * k)) & mask(16))
            t = test(x, y)
            if combine is not None:
                t = combine(t, c[0] != 0)
            out = out | (np.where(t, true, U64(0)) << U64(width * k))
        return np.asarray(out)

    return set_


__all__ = ["BOUNDS", "Bound", "Unsupported", "bound_of", "compare"]
