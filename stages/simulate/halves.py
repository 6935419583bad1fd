"""Operands that hold two halves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ir_format.model import ABS, NEG, Operand
from stages.simulate import fp
from stages.simulate.build import Arr, Build, View, flags_of
from stages.simulate.exact import Format

u16, u32, f64 = np.uint16, np.uint32, np.float64
Halves = Callable[[View], tuple[Arr, Arr]]


def pack(low: Arr, high: Arr) -> Arr:
    """uint32 of two uint16."""
    return low.astype(u32) | (high.astype(u32) << u32(16))


def swizzle(op: Operand) -> tuple[int, int]:
    """Which half each half of an operand reads; KeyError for an unknown suffix."""
    mod = getattr(op, "mod", "")
    pairs = {
        "": (0, 1),
        "H1_H0": (0, 1),
        "H0_H0": (0, 0),
        "H1_H1": (1, 1),
        "H0_NH1": (0, 1),
        "H0": (0, 0),
        "H1": (1, 1),
    }
    if mod not in pairs:
        raise KeyError(mod)
    return pairs[mod]


def half_source(b: Build, op: Operand, fmt: Format, ftz: bool = False) -> Halves:
    """(low, high) halves of a source as doubles, swizzled, with absolute value and negation. A ``.F32`` operand is one
    float."""
    get = b.raw(op)
    flags = flags_of(op)
    mod = getattr(op, "mod", "")
    if mod == "F32":  # one float32 for both halves
        single = b.f(op)

        def wide(v: View) -> tuple[Arr, Arr]:
            x = single(v)
            y = (fp.ftz32(x) if ftz else x).astype(f64)
            return y, y

        return wide
    try:
        first, second = swizzle(op)
    except KeyError:
        raise b.refuse(f"operand suffix {mod}") from None

    def half(bits: Arr) -> Arr:
        x = fp.decode_half(bits, fmt)
        if ftz:
            x = np.where(np.abs(x) < 2.0**fmt.emin, np.copysign(0.0, x), x)
        if flags & ABS:
            x = np.abs(x)
        return -x if flags & NEG else x

    def run(v: View) -> tuple[Arr, Arr]:
        pairs = np.ascontiguousarray(get(v)).view(u16).reshape(-1, 2)
        low = half(np.ascontiguousarray(pairs[:, first]))
        return (low, low) if first == second else (low, half(np.ascontiguousarray(pairs[:, second])))

    return run
