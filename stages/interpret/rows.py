"""Evaluation of instructions without side effects: a table from mnemonic to maker.

A maker looks at one instruction's modifiers and types and returns a function from source values to the result (or to a
tuple of results for several destinations). Values are uint64 arrays of bit patterns. Sources come as they are in the
registers (a register wider than the type is cut here); predicates are 0 or 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ir_format.ptx import PtxInst
from ir_format.ptx_types import TYPE_BITS
from stages.interpret.floats import FORMATS, Format, flush

Arr = NDArray[Any]
U64 = np.uint64
Fn: TypeAlias = Callable[..., Any]
Maker: TypeAlias = Callable[[PtxInst], Fn]

PURE: Final[dict[str, Maker]] = {}


class Unsupported(Exception):
    """An instruction form that the interpreter does not evaluate."""


def row(*names: str) -> Callable[[Maker], Maker]:
    """Register a maker for mnemonics."""

    def enter(maker: Maker) -> Maker:
        for name in names:
            PURE[name] = maker
        return maker

    return enter


BITS: Final = TYPE_BITS
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
    """The format of a float type, or of the element of a packed type."""
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
    if type_.endswith(("x2", "x4")):
        element, count = type_[:-2], int(type_[-1])
        return packed(make(element), count, BITS[element])
    return make(type_)
