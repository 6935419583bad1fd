"""Compares the memory contents of two sides: which bytes count as equal."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from stages.check.executors import Outcome

Arr = NDArray[Any]
#: Relative and absolute error allowed for floats of kernels that use approximations (their bounds, 2**-20 or less,
#: times some steps of arithmetic).
APPROXIMATE: Final = (2.0**-16, 2.0**-19)
KINDS: Final[dict[str, Any]] = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


def unequal(a: Arr, b: Arr, type_: str, loose: bool, slack: Arr | None = None) -> Arr:
    """Bytes that differ. Elements of float buffers count as equal if both are NaN or, if `loose`, close. `slack`:
    further distance allowed per element."""
    differ = a != b
    kind = KINDS.get(type_)
    if kind is None or not differ.any() or len(a) % np.dtype(kind).itemsize:
        return np.asarray(differ)
    size = np.dtype(kind).itemsize
    x, y = a.view(kind), b.view(kind)
    with np.errstate(all="ignore"):
        fine = np.isnan(x) & np.isnan(y)
        if loose:
            u, v = x.astype(np.float64), y.astype(np.float64)
            near = np.maximum(
                max(APPROXIMATE[0], float(np.finfo(kind).eps)) * np.maximum(np.abs(u), np.abs(v)), APPROXIMATE[1]
            )
            fine |= np.abs(u - v) <= (near if slack is None else near + slack)
            if slack is not None:
                fine |= np.isinf(slack)
            fine |= u == v
    return np.asarray(differ & ~np.repeat(fine, size))


def memory_of(outcome: Outcome) -> dict[Any, Arr]:
    """Buffers by argument and variables by name."""
    return {**outcome.buffers, **outcome.variables}


def by_elements(bytes_: Arr, type_: str) -> Arr:
    """Mark the whole element if any of its bytes is marked."""
    size = size_of(type_)
    if len(bytes_) % size:
        return bytes_
    return np.repeat(bytes_.reshape(-1, size).any(1), size)


#: Infinities by the size of a float: a greater value without its sign is a NaN. bfloat16 first: all its
#: NaNs are NaNs of f16.
_INFINITIES: Final = ((8, 0x7FF0 << 48), (4, 0x7F80 << 16), (2, 0x7F80), (2, 0x7C00))


def nans(data: Arr, size: int, infinity: int) -> Arr:
    """For each element of a size, whether it is a NaN."""
    word = data[: len(data) // size * size].view(f"u{size}")
    return np.asarray((word & word.dtype.type((1 << 8 * size - 1) - 1)) > word.dtype.type(infinity))


def nans_in_both(a: Arr, b: Arr) -> list[tuple[int, int, Arr]]:
    """Elements that differ between two contents of a memory and are NaNs in both: size, infinity of the format, which
    elements. The widest format counts."""
    out = []
    rest = a != b
    for size, infinity in _INFINITIES:
        whole = len(a) // size * size
        found = nans(a, size, infinity) & nans(b, size, infinity) & rest[:whole].reshape(-1, size).any(1)
        if found.any():
            out.append((size, infinity, found))
            rest[:whole] &= ~np.repeat(found, size)
    return out


def size_of(type_: str) -> int:
    """Bytes of an element of a buffer."""
    digits = "".join(c for c in type_ if c.isdigit())
    return int(digits) // 8 if digits in ("8", "16", "32", "64") else 4
