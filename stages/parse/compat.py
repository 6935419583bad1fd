"""Which operand kinds fit which instruction type.

Measured on ptxas 13.0 with every instruction type against every register type: an untyped `bN` agrees with all
types of its size; integers agree with integers of their size; floats with themselves and `bN`; `f16x2` registers
pass for any 32-bit integer.  Loads, stores and conversions ("relaxed") take wider integer and `bN` registers.
"""

from __future__ import annotations

from ir_format.ptx_types import TYPE_BITS
from ir_format.typed import Final

_SIZES: Final = (8, 16, 32, 64)
_INTS: Final[dict[int, frozenset[str]]] = {n: frozenset((f"b{n}", f"u{n}", f"s{n}")) for n in _SIZES}
_FLOATS: Final[dict[int, frozenset[str]]] = {
    8: frozenset(),
    16: frozenset(("f16",)),
    32: frozenset(("f32",)),
    64: frozenset(("f64",)),
}
_X2: Final = frozenset(("f16x2",))
_INT_LITERAL: Final = frozenset(("i",))

# What a literal of each kind fits, by instruction type: double "d", 0f "f"; 0d literals are kind "d" too.
_FLOAT_LITERALS: Final[dict[str, frozenset[str]]] = {
    "f32": frozenset("df"), "f64": frozenset("df"), "b32": frozenset("f"), "b64": frozenset("d"),
    "R32": frozenset("f"), "F64": frozenset("df"),
}  # fmt: skip


def _strict() -> dict[str, frozenset[str]]:
    out: dict[str, frozenset[str]] = {"pred": frozenset(("pred",)), "b128": frozenset(("b128",))}
    for n in _SIZES:
        out[f"b{n}"] = _INTS[n] | _FLOATS[n] | (_X2 if n == 32 else frozenset())
        for k in "us":
            out[f"{k}{n}"] = _INTS[n] | (_X2 if n == 32 else frozenset())
    for n in (16, 32, 64):
        out[f"f{n}"] = frozenset((f"f{n}", f"b{n}"))
    out["bf16"] = frozenset(("b16",))
    out["bf16i"] = frozenset(("b16", "u16", "s16"))  # beside f32
    out["bf16x2"] = frozenset(("b32",))
    for name in ("f16x2", "u16x2", "s16x2", "u8x4", "s8x4"):
        out[name] = frozenset(("b32", "f16x2"))
    out["f32x2"] = frozenset(("b64",))
    out["U"] = _INTS[32]
    for n in _SIZES:
        out[f"B{n}"] = frozenset((f"b{n}",))
    out["R32"] = out["b32"]
    out["F64"] = out["b64"]
    out["S"] = _INTS[32] | _INTS[64]
    out["A"] = _INTS[8] | _INTS[16] | _INTS[32] | _INTS[64]
    out["e4m3"] = out["e5m2"] = _INTS[8]
    for name in ("e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2", "ue8m0x2", "s2f6x2", "ue5m3x2"):
        out[name] = frozenset(("b16", "u16", "s16"))
    for name in ("e4m3x4", "e5m2x4", "e2m3x4", "e3m2x4", "e2m1p4x4", "ue8m0x4"):
        out[name] = frozenset(("b32",))
    out["e2m1x4"] = frozenset(("b16",))
    return out


def _relaxed(strict: dict[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    out: dict[str, frozenset[str]] = {}
    for n in _SIZES:
        wider = [m for m in _SIZES if m >= n]
        ints = frozenset(t for m in wider for t in _INTS[m]) | {"b128"} | (_X2 if n <= 32 else frozenset())
        out[f"u{n}"] = out[f"s{n}"] = ints
        out[f"b{n}"] = ints | frozenset(t for m in wider for t in _FLOATS[m])
        if n > 8:
            out[f"f{n}"] = frozenset(f"b{m}" for m in wider) | {"b128", f"f{n}"}
    out["f16x2"] = strict["f16x2"] | {"b64", "b128"}
    return {**strict, **out}


STRICT: Final = _strict()
RELAXED: Final = _relaxed(STRICT)
_NO_INT_LITERAL: Final = frozenset(
    (
        "B32", "R32", "F64", "f16", "f32", "f64", "bf16", "bf16i", "f16x2", "bf16x2", "f32x2", "u16x2", "s16x2", "u8x4",
        "s8x4", "e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2", "e2m1x2", "e2m1x4", "ue8m0x2",
    )
)  # fmt: skip


def literals(type_: str) -> frozenset[str]:
    """Literal kinds ("i", "d", "f") that fit a type."""
    found = _FLOAT_LITERALS.get(type_, frozenset())
    return found if type_ in _NO_INT_LITERAL else found | _INT_LITERAL


def wide(type_: str) -> str:
    """The integer type twice as wide."""
    return type_[0] + str(2 * int(type_[1:]))


#: Small floats count as 32 bits here: their operands have checks of their own.
_BITS: Final = {t: n for t, n in TYPE_BITS.items() if not t.startswith(("e", "ue", "bf8"))} | {"F64": 64, "grid": 64}


def bit_size(type_: str) -> int:
    """Bits of an instruction type (packed types too)."""
    return _BITS.get(type_, 32)
