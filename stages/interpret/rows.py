"""What evaluates an instruction without side effects: a table from mnemonic to maker.

A maker looks at one instruction's modifiers and types and returns a function from source values to the result (or a tuple
of results for several destinations).  Values are uint64 arrays of bit patterns; sources come as they stand in the registers
(a wider register than the type is cut here), predicates are 0 or 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ir_format.ptx import PtxInst
from stages.interpret.floats import FORMATS, Format, flush

Arr = NDArray[Any]
U64 = np.uint64
Fn: TypeAlias = Callable[..., Any]
Maker: TypeAlias = Callable[[PtxInst], Fn]

PURE: Final[dict[str, Maker]] = {}


class Unsupported(Exception):
    """An instruction form that the interpreter does not evaluate."""


def row(*names: str) -> Callable[[Maker], Maker]:
    """Enter a maker for mnemonics."""

    def enter(maker: Maker) -> Maker:
        for name in names:
            PURE[name] = maker
        return maker

    return enter


BITS: Final[dict[str, int]] = {
    "pred": 1, "b8": 8, "u8": 8, "s8": 8, "b16": 16, "u16": 16, "s16": 16, "f16": 16, "bf16": 16, "b32": 32, "u32": 32, "s32": 32,
    "f32": 32, "f16x2": 32, "bf16x2": 32, "u16x2": 32, "s16x2": 32, "tf32": 32, "b64": 64, "u64": 64, "s64": 64, "f64": 64,
    "f32x2": 64, "b128": 128, "e4m3x2": 16, "e5m2x2": 16, "e2m3x2": 16, "e3m2x2": 16, "ue8m0x2": 16, "e2m1x2": 8, "e4m3x4": 32,
    "e5m2x4": 32, "e2m3x4": 32, "e3m2x4": 32, "e2m1x4": 16,
}  # fmt: skip
ROUNDINGS: Final = ("rn", "rz", "rm", "rp")


def mask(bits: int) -> U64:
    """The low `bits` bits."""
    return U64((1 << bits) - 1)


def unsigned(x: Arr, bits: int) -> Arr:
    """The low bits as uint64."""
    return x if bits == 64 else x & mask(bits)


def signed(x: Arr, bits: int) -> Arr:
    """The low bits, sign-extended, as int64."""
    k = 64 - bits
    return np.asarray(x << U64(k)).view(np.int64) >> np.int64(k)


def typed(x: Arr, type_: str) -> Arr:
    """The value by the signedness of the type: int64 or uint64."""
    return signed(x, BITS[type_]) if type_[0] == "s" else unsigned(x, BITS[type_])


def bits_of(x: Arr, bits: int) -> Arr:
    """An int64, uint64 or bool result as bits of a width."""
    x = np.asarray(x)
    return unsigned(x.view(U64) if x.dtype == np.int64 else x.astype(U64), bits)


def rounding(inst: PtxInst) -> str:
    """The rounding modifier, rn if there is none."""
    for m in inst.mods:
        if m in ROUNDINGS:
            return m
    return "rn"


def format_of(type_: str) -> Format:
    """The format of a float type, of its element for a packed one."""
    return FORMATS[type_.removesuffix("x2").removesuffix("x4")]


def source_flush(x: Arr, f: Format, ftz: bool) -> Arr:
    """A source of a float operation, cut to its width."""
    x = unsigned(x, f.bits)
    return flush(x, f) if ftz else x


def packed(one: Fn, count: int, width: int) -> Fn:
    """Apply a function of elements to each element of packed sources."""
    low = mask(width)

    def apply(*args: Arr) -> Arr:
        out: Any = U64(0)
        for k in range(count):
            at = U64(k * width)
            out = out | (one(*[(a >> at) & low for a in args]) << at)
        return np.asarray(out)

    return apply


def elementwise(type_: str, make: Callable[[str], Fn]) -> Fn:
    """`make` of the type, or of its element type applied to each element."""
    if type_.endswith("x2"):
        element = type_.removesuffix("x2")
        return packed(make(element), 2, BITS[element])
    return make(type_)
