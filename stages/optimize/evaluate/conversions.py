"""Conversions between integers and floating-point formats."""

from __future__ import annotations

from ir_format.typed import Final
from stages.optimize.evaluate.floating import finished
from stages.optimize.evaluate.floats import (
    BF16,
    F16,
    F32,
    F64,
    ROUNDINGS,
    Format,
    Value,
    decoded,
    encoded,
    flushed,
    is_nan,
    saturated,
    whole,
)
from stages.optimize.evaluate.integers import Evaluator
from stages.optimize.evaluate.operands import LONG, WORD, Answer, Reader, Unknown, signed

_INTEGERS: Final = ("U8", "S8", "U16", "S16", "U32", "S32", "U64", "S64")
_FORMATS: Final = {"F16": F16, "BF16": BF16, "F32": F32, "F64": F64}
_MODES: Final = {"FLOOR": "RM", "CEIL": "RP", "TRUNC": "RZ", "RM": "RM", "RP": "RP", "RZ": "RZ"}


def _mode(r: Reader) -> str:
    return _MODES.get(r.pick(tuple(_MODES)), "RN")


def _source(r: Reader, n: int, f: Format) -> int:
    """The bits of a source of a floating-point format."""
    if f is F64:
        return r.double(n)
    bits = r.single(n) if f is F32 else r.half(n, 0)
    if not r.has("FTZ"):
        return bits
    if f is not F32 and flushed(bits, f) != bits:
        raise Unknown
    return flushed(bits, f)


def i2f(r: Reader) -> Answer:
    """An integer as a float."""
    kind = r.pick(_INTEGERS, "S32")
    bits = int(kind[1:])
    if bits == 64:
        if r.values[0][0] == "I":
            raise Unknown
        x = r.long(0)
    else:
        x = r.part(0, bits)
    x = signed(x, bits) if kind[0] == "S" else x
    return encoded(Value(x < 0, abs(x), 0), _FORMATS[r.pick(tuple(_FORMATS), "F32")], _mode(r)), ()


def f2i(r: Reader) -> Answer:
    """A float as an integer, clamped."""
    kind = r.pick(_INTEGERS, "S32")
    f = _FORMATS[r.pick(tuple(_FORMATS), "F32")]
    v = decoded(_source(r, 0, f), f)
    bits = int(kind[1:])
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if kind[0] == "S" else (0, (1 << bits) - 1)
    n = (low if v.negative else high) if v.infinite else min(max(whole(v, _mode(r)), low), high)
    return n & (LONG if bits == 64 else WORD), ()


def f2f(r: Reader) -> Answer:
    """A float in another format; modifiers name the result's, then the source's."""
    kinds = [m for m in r.inst.mods if m in _FORMATS]
    if len(kinds) == 1 and kinds[0] in ("F16", "BF16"):
        kinds.append("F32")
    if len(kinds) != 2:
        raise Unknown
    to, of = (_FORMATS[k] for k in kinds)
    if r.has("FTZ") and (to.bits == 16 or of.bits == 16):
        raise Unknown
    bits = encoded(decoded(_source(r, 0, of), of), to, _mode(r), r.has("FTZ") and to is F32)
    return (saturated(bits, to) if r.has("SAT") else bits), ()


def f2fp(r: Reader) -> Answer:
    """Two f32 as a pair of halves, the first above."""
    if not r.has("PACK_AB") or len(r.values) != 2:
        raise Unknown
    f = BF16 if r.has("BF16") else F16
    high, low = (finished(r, decoded(r.single(n), F32), f, _mode(r)) for n in (0, 1))
    return high << 16 | low, ()


def frnd(r: Reader) -> Answer:
    """A float rounded to a whole number; zeros keep the sign."""
    f = _FORMATS[r.pick(tuple(_FORMATS), "F32")]
    bits = _source(r, 0, f)
    if is_nan(bits, f):
        raise Unknown
    v = decoded(bits, f)
    return (bits if v.infinite else encoded(Value(v.negative, abs(whole(v, _mode(r))), 0), f)), ()


_WHOLE: Final = ("FLOOR", "CEIL", "TRUNC")
TABLE: Final[dict[str, tuple[Evaluator, tuple[str, ...]]]] = {
    "I2F": (i2f, (*_INTEGERS, "F16", "BF16", "F64", *ROUNDINGS[1:])),
    "I2FP": (i2f, ("U32", "S32", "F32", "RZ")),
    "F2I": (f2i, (*_INTEGERS, *_FORMATS, *_WHOLE, "FTZ", "NTZ")),
    "F2F": (f2f, (*_FORMATS, *ROUNDINGS[1:], "FTZ", "SAT")),
    "F2FP": (f2fp, ("F16", "BF16", "F32", "PACK_AB", "RZ", "RELU")),
    "FRND": (frnd, (*_FORMATS, *_WHOLE, "FTZ")),
}
