"""Floating-point instructions: sums, products, minima, comparisons, in f32, f64, halves and pairs.

MUFU and FCHK are approximations whose bits only the hardware knows, and are not here. What meets a NaN is not folded,
except comparisons and minima that ignore it.
"""

from __future__ import annotations

from collections.abc import Callable

from ir_format.typed import Final
from stages.optimize.evaluate.floats import (
    BF16,
    F16,
    F32,
    F64,
    ONE,
    ROUNDINGS,
    Format,
    Value,
    decoded,
    encoded,
    flushed,
    is_nan,
    order,
    product,
    saturated,
    total,
)
from stages.optimize.evaluate.integers import Evaluator, holds, joined
from stages.optimize.evaluate.operands import Answer, Reader, Unknown, float_signs

COMPARISONS: Final = (
    "F", "LT", "EQ", "LE", "GT", "NE", "GE", "NUM", "NAN", "LTU", "EQU", "LEU", "GTU", "NEU", "GEU", "T",
)  # fmt: skip
_ROUNDINGS: Final = ROUNDINGS[1:]

#: The exact value from those of the operands, in a rounding mode (which decides the sign of a zero).
Exact = Callable[[list[Value], str], Value]


def add(x: list[Value], mode: str) -> Value:
    """a + b."""
    return total(x[0], x[1], mode)


def multiply(x: list[Value], mode: str) -> Value:
    """a * b."""
    return product(x[0], x[1])


def fuse(x: list[Value], mode: str) -> Value:
    """a * b + c."""
    return total(product(x[0], x[1]), x[2], mode)


def finished(r: Reader, v: Value, f: Format, mode: str) -> int:
    """A value rounded, flushed, clamped as the modifiers say."""
    bits = encoded(v, f, mode, r.has("FTZ"))
    if r.has("SAT"):
        bits = saturated(bits, f)
    return 0 if r.has("RELU") and bits & f.sign else bits


def single(exact: Exact, count: int) -> Evaluator:
    """Arithmetic in f32."""

    def run(r: Reader) -> Answer:
        mode = r.pick(_ROUNDINGS, "RN")
        ops = [decoded(r.single(n), F32, r.has("FTZ")) for n in range(count)]
        return finished(r, exact(ops, mode), F32, mode), ()

    return run


#: What a product is multiplied by before it is rounded, as a power of two.
_SCALES: Final = {"D2": -1, "D4": -2, "D8": -3, "M2": 1, "M4": 2, "M8": 3}


def fmul(r: Reader) -> Answer:
    """A product in f32, perhaps scaled."""
    mode = r.pick(_ROUNDINGS, "RN")
    a, b = (decoded(r.single(n), F32, r.has("FTZ")) for n in (0, 1))
    p = product(a, b)
    return finished(r, p._replace(scale=p.scale + _SCALES.get(r.pick(tuple(_SCALES)), 0)), F32, mode), ()


def double(exact: Exact, count: int) -> Evaluator:
    """Arithmetic in f64."""

    def run(r: Reader) -> Answer:
        mode = r.pick(_ROUNDINGS, "RN")
        return encoded(exact([decoded(r.double(n), F64) for n in range(count)], mode), F64, mode), ()

    return run


#: Which register of a pair each half of an operation on two floats reads.
_PAIRS: Final = {"": (0, 1), "F32x2.HI_LO": (0, 1), "F32x2.LO_HI": (1, 0), "F32": (0, 0)}


def pair(exact: Exact, count: int) -> Evaluator:
    """Arithmetic on two f32 at once; an immediate is both."""

    def run(r: Reader) -> Answer:
        mode = r.pick(_ROUNDINGS, "RN")
        out = 0
        for half in (0, 1):
            ops = []
            for n in range(count):
                o = r.values[n]
                suffix = o.mod if o[0] != "I" else "F32"  # type: ignore[union-attr]
                at = _PAIRS.get(suffix)
                if at is None:
                    raise Unknown
                bits = float_signs(r.raw(o, at[half]), o.flags, F32.sign)  # type: ignore[union-attr]
                ops.append(decoded(bits, F32, r.has("FTZ")))
            out |= finished(r, exact(ops, mode), F32, mode) << 32 * half
        return out, ()

    return run


def _half_format(r: Reader) -> Format:
    return BF16 if r.has("BF16_V2") or r.has("BF16") else F16


def halves(exact: Exact, count: int) -> Evaluator:
    """Arithmetic on two halves or bfloat16 at once; HADD2.F32: the f32 sum of the lower ones."""

    def run(r: Reader) -> Answer:
        f = _half_format(r)
        if r.has("F32"):
            ops = [decoded(r.half(n, 0), f, r.has("FTZ")) for n in range(count)]
            return finished(r, exact(ops, "RN"), F32, "RN"), ()
        if r.has("RELU") and not r.truth(0, True):
            raise Unknown
        out = 0
        for upper in (0, 1):
            ops = [decoded(r.half(n, upper), f, r.has("FTZ")) for n in range(count)]
            out |= finished(r, exact(ops, "RN"), f, "RN") << 16 * upper
        return out, ()

    return run


def mixed(r: Reader) -> Answer:
    """FHADD, FHFMA: one or two halves and an f32, rounded to f32."""
    f, mode = _half_format(r), r.pick(_ROUNDINGS, "RN")
    ops = [decoded(r.half(n, 0), f) for n in range(len(r.values) - 1)]
    last = decoded(r.single(len(r.values) - 1), F32)
    x = ops[0] if len(ops) == 1 else product(ops[0], ops[1])
    return finished(r, total(x, last, mode), F32, mode), ()


def _better(r: Reader, a: int, b: int, f: Format, low: bool) -> int:
    """The bits of the minimum or maximum; -0 is less than +0, and a NaN is ignored."""
    if is_nan(a, f) or is_nan(b, f):
        if r.has("NAN") or is_nan(a, f) and is_nan(b, f):
            raise Unknown
        return b if is_nan(a, f) else a
    o = order(decoded(a, f), decoded(b, f))
    if not o:
        o = (not a & f.sign) - (not b & f.sign)
    return a if (o < 0) == low else b


def minmax(r: Reader) -> Answer:
    """The minimum or maximum of two or three f32."""
    bits = [flushed(r.single(n), F32) if r.has("FTZ") else r.single(n) for n in range(len(r.values))]
    best = bits[0]
    for other in bits[1:]:
        best = _better(r, best, other, F32, r.truth(0, True))
    if is_nan(best, F32):
        raise Unknown
    return best, ()


def half_minmax(r: Reader) -> Answer:
    """The minimum or maximum of each half."""
    f, out = _half_format(r), 0
    for upper in (0, 1):
        a, b = (flushed(r.half(n, upper), f) if r.has("FTZ") else r.half(n, upper) for n in (0, 1))
        best = _better(r, a, b, f, r.truth(0, True))
        out |= (0 if r.has("RELU") and best & f.sign else best) << 16 * upper
    return out, ()


def fsel(r: Reader) -> Answer:
    """One of two words."""
    return r.single(0 if r.truth(0, True) else 1), ()


def compared(name: str, a: int, b: int, f: Format, flush: bool) -> bool:
    """A comparison of the bits of two floats; those that end in U are true of a NaN."""
    if name in ("F", "T"):
        return name == "T"
    if is_nan(a, f) or is_nan(b, f):
        return name == "NAN" or name.endswith("U")
    if name in ("NUM", "NAN"):
        return name == "NUM"
    return holds(name.removesuffix("U"), order(decoded(a, f, flush), decoded(b, f, flush)))


def fsetp(r: Reader) -> Answer:
    """A comparison of f32."""
    return joined(r, compared(r.pick(COMPARISONS), r.single(0), r.single(1), F32, r.has("FTZ")))


def dsetp(r: Reader) -> Answer:
    """A comparison of f64."""
    name = r.pick(COMPARISONS)
    if not name:  # MIN and MAX choose for a minimum
        raise Unknown
    return joined(r, compared(name, r.double(0), r.double(1), F64, False))


def fset(r: Reader) -> Answer:
    """A comparison of f32 whose result is a word: all ones, or (.BF) 1.0."""
    test = compared(r.pick(COMPARISONS), r.single(0), r.single(1), F32, r.has("FTZ"))
    return ((0x3F800000 if r.has("BF") else 0xFFFFFFFF) if joined(r, test)[1][0] else 0), ()


def _half_tests(r: Reader) -> list[bool]:
    f, name = _half_format(r), r.pick(COMPARISONS)
    return [compared(name, r.half(0, k), r.half(1, k), f, r.has("FTZ")) for k in (0, 1)]


def hsetp2(r: Reader) -> Answer:
    """A comparison of each half; .H_AND: of both, and its opposite."""
    low, high = _half_tests(r)
    if r.has("H_AND"):
        low = low and high
        high = not low
    return None, (joined(r, low)[1][0], joined(r, high)[1][0])


def hset2(r: Reader) -> Answer:
    """A comparison of each half whose result is a half: all ones, or (.BF) 1.0."""
    f = _half_format(r)
    true = encoded(ONE, f) if r.has("BF") else 0xFFFF
    low, high = (true if joined(r, x)[1][0] else 0 for x in _half_tests(r))
    return low | high << 16, ()


_F: Final = ("FTZ", "SAT", *_ROUNDINGS)
_H: Final = ("BF16_V2", "FTZ", "SAT", "RELU")
_SETP: Final = (*COMPARISONS, "AND", "OR", "XOR", "FTZ")
TABLE: Final[dict[str, tuple[Evaluator, tuple[str, ...]]]] = {
    "FADD": (single(add, 2), _F),
    "FMUL": (fmul, (*_F, *_SCALES)),
    "FFMA": (single(fuse, 3), _F),
    "FADD2": (pair(add, 2), _F),
    "FMUL2": (pair(multiply, 2), _F),
    "FFMA2": (pair(fuse, 3), _F),
    "DADD": (double(add, 2), _ROUNDINGS),
    "DMUL": (double(multiply, 2), _ROUNDINGS),
    "DFMA": (double(fuse, 3), _ROUNDINGS),
    "HADD2": (halves(add, 2), (*_H, "F32")),
    "HMUL2": (halves(multiply, 2), _H),
    "HFMA2": (halves(fuse, 3), (*_H, "MMA")),
    "FHADD": (mixed, ("BF16", "SAT", *_ROUNDINGS)),
    "FHFMA": (mixed, ("BF16", "SAT", *_ROUNDINGS)),
    "FMNMX": (minmax, ("FTZ", "NAN")),
    "FMNMX3": (minmax, ("FTZ", "NAN")),
    "HMNMX2": (half_minmax, ("BF16_V2", "FTZ", "NAN", "RELU")),
    "FSEL": (fsel, ()),
    "FSETP": (fsetp, _SETP),
    "FSET": (fset, (*_SETP, "BF")),
    "DSETP": (dsetp, _SETP),
    "HSETP2": (hsetp2, (*_SETP, "BF16_V2", "H_AND")),
    "HSET2": (hset2, (*_SETP, "BF16_V2", "BF")),
}
