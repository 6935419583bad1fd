"""Tensor maps as a host program makes them, for launches of the simulator and of the PTX interpreter.

The driver's encoding is not documented. The fields that ``tensormap.replace`` writes are where ptxas's code puts
them; the fields of im2col, which it cannot write, have offsets of this project's own (docs/simulator.md).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Arr = NDArray[Any]
#: Names of types in the order of their numbers; tf32 is f32 (and its flushed form f32.ftz) with a bit of its own.
TYPES: Final = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f32.ftz", "f64", "bf16")
_ROUNDED: Final = {"tf32": "f32", "tf32.ftz": "f32.ftz"}
_OF: Final = {
    "uint8": "u8", "int8": "u8", "uint16": "u16", "int16": "u16", "uint32": "u32", "int32": "s32", "uint64": "u64",
    "int64": "s64", "float16": "f16", "float32": "f32", "float64": "f64", "bfloat16": "bf16",
}  # fmt: skip
SWIZZLES: Final = {0: 0, 32: 1, 64: 2, 128: 3}
MAP_BYTES: Final = 128


class MapError(ValueError):
    """A tensor map that is not valid; the text says why."""


def tensor_map(
    array: Arr,
    box: Sequence[int],
    *,
    type_: str = "",
    swizzle: int = 0,
    dims: Sequence[int] = (),
    strides: Sequence[int] = (),
    steps: Sequence[int] = (),
    nan: bool = False,
    corners: tuple[Sequence[int], Sequence[int]] | None = None,
    pixels: int = 0,
) -> tuple[bytes, dict[int, Arr]]:
    """An argument of a launch: a map over an array, whose last axis is the innermost dimension.

    All sequences are innermost first: ``box`` elements of a box (of im2col: the channels), ``dims`` and ``strides``
    (bytes, of all dimensions but the innermost) if they are not the array's, ``steps`` the element strides;
    ``nan``: elements out of bounds are NaN. ``corners``, ``pixels``: im2col's lower and upper corner and pixels of a
    column. Raises :class:`MapError`."""
    name = type_ or _OF.get(array.dtype.name, "")
    plain = _ROUNDED.get(name, name)
    if plain not in TYPES:
        raise MapError(f"no element type '{name or array.dtype.name}'")
    size = {"8": 1, "16": 2, "32": 4, "64": 8}[plain.split(".")[0].lstrip("bfus")]
    dims = [int(x) for x in (dims or array.shape[::-1])]
    rank = len(dims)
    strides = [int(x) for x in strides] or [int(np.prod(dims[:i])) * size for i in range(1, rank)]
    steps = [int(x) for x in steps] or [1] * rank
    box = [int(x) for x in box]
    _check(dims, strides, steps, box, swizzle, size, corners is not None)
    flags = (rank - 1) << 4 | TYPES.index(plain) << 7 | SWIZZLES[swizzle] << 13 | nan << 15 | (plain != name) << 16 | 1
    out = bytearray(MAP_BYTES)
    struct.pack_into("<I", out, 8, flags)
    high = 0
    for i, stride in enumerate(strides):
        struct.pack_into("<I", out, 12 + 4 * i, stride >> 4 & 0xFFFFFFFF)
        high |= (stride >> 36 & 15) << 4 * i
    struct.pack_into("<I", out, 28, high)
    for i in range(rank):
        struct.pack_into("<I", out, 32 + 4 * i, dims[i] - 1)
    word = sum((s - 1) << 3 * i for i, s in enumerate(steps))
    struct.pack_into("<I", out, 52, word | (box[0] - 1) << 24)
    struct.pack_into("<I", out, 56, sum((x - 1) << 8 * i for i, x in enumerate(box[1:])))
    if corners is not None:
        for i, (low, up) in enumerate(zip(*corners, strict=True)):
            struct.pack_into("<h", out, 0x40 + 2 * i, low)
            struct.pack_into("<h", out, 0x48 + 2 * i, up)
        struct.pack_into("<II", out, 0x58, box[0], pixels)
    return bytes(out), {0: array}


def _check(
    dims: Sequence[int], strides: Sequence[int], steps: Sequence[int], box: Sequence[int], swizzle: int, size: int,
    column: bool,
) -> None:  # fmt: skip
    """The rules of the driver's documentation."""
    rank = len(dims)
    if not 1 <= rank <= 5 or len(strides) != rank - 1 or len(steps) != rank or (len(box) != rank and not column):
        raise MapError("dimensions, strides, steps and box do not go together")
    if (
        any(not 1 <= x <= 1 << 32 for x in dims)
        or any(not 1 <= x <= 256 for x in box)
        or not all(1 <= x <= 8 for x in steps)
    ):
        raise MapError("a dimension, a box or a step is out of range")
    if any(x % 16 or x >= 1 << 40 for x in strides):
        raise MapError("strides are multiples of 16 bytes")
    if swizzle not in SWIZZLES:
        raise MapError("a swizzle is 0, 32, 64 or 128")
    inner = -(-box[0] // steps[0]) * size
    if inner % 16 or (swizzle and inner > swizzle):
        raise MapError(
            f"the inner dimension of a box has {inner} bytes: a multiple of 16, and no more than the swizzle"
        )


__all__ = ["MAP_BYTES", "SWIZZLES", "TYPES", "MapError", "tensor_map"]
