"""Memories of the interpreter: global, shared, local, const and kernel parameters, every access checked.

Addresses of a space are offsets in it, except that global addresses are generic. A generic address whose upper word is
in :data:`WINDOWS` refers to that space.
"""

from __future__ import annotations

import bisect
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Arr = NDArray[Any]
U64 = np.uint64

GLOBAL_BASE: Final = 0x7F00_0000_0000
WINDOWS: Final[dict[str, int]] = {"shared": 0x7F40, "local": 0x7F41, "const": 0x7F44, "kparam": 0x7F45}
GUARD: Final = 256
#: Most bytes of one memory of a launch.
MOST: Final = 1 << 29
#: Shared addresses of other blocks of the cluster: rank + 1 from this bit up.
RANK_SHIFT: Final = 24

_VIEWS: Final[dict[int, Any]] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


class MemoryFault(Exception):
    """An access outside every object, or a misaligned one; `thread` is the index among the accessing threads."""

    def __init__(self, message: str, thread: int) -> None:
        super().__init__(message)
        self.message = message
        self.thread = thread


class TooMuch(Exception):
    """A launch asks for more memory than :data:`MOST`."""


def bounded(total: int, name: str) -> int:
    """The size, if it is within bounds. Raises TooMuch."""
    if total > MOST:
        raise TooMuch(f"the launch needs {total} bytes of {name} memory, more than {MOST}")
    return total


class Filler:
    """Undefined contents, by the seed modulo 8: random bits (0, 2); floats near one, of any width (1); NaNs of any
    width, which no sum or product absorbs (3); zeros (4); integers below 32 of two, four or eight bytes (5, 6, 7), for
    which comparisons with data of that size go either way."""

    __slots__ = ("rng", "seed")

    def __init__(self, seed: int, rng: np.random.Generator) -> None:
        self.seed = seed
        self.rng = rng

    def bytes(self, count: int) -> Arr:
        """This many bytes."""
        kind = self.seed % 8
        if kind == 1:
            return self.rng.integers(0x38, 0x40, count, dtype=np.uint8)
        if kind in (3, 4):
            return np.full(count, 0xFF if kind == 3 else 0, np.uint8)
        if kind > 4:
            out = self.rng.integers(0, 32, count, dtype=np.uint8)
            out[np.arange(count) % (1 << kind - 4) != 0] = 0
            return out
        return self.rng.integers(0, 256, count, dtype=np.uint8)


class Bytes:
    """Flat bytes with typed views."""

    __slots__ = ("backward", "data", "views", "writer")

    def __init__(self, data: Arr) -> None:
        self.backward = False  # of threads that store to one address at once, the first wins, not the last
        pad = -len(data) % 32 + 32
        self.data: Arr = np.concatenate([data, np.zeros(pad, np.uint8)])
        self.views: dict[int, Arr] = {size: self.data.view(kind) for size, kind in _VIEWS.items()}
        self.writer: Arr | None = None  # for each byte, the code index of the last store plus one, if asked for

    def load(self, at: Arr, size: int) -> Arr:
        """Values of 1, 2, 4 or 8 bytes at byte offsets (int64)."""
        return np.asarray(self.views[size][at // size]).astype(U64)

    def store(self, at: Arr, size: int, values: Arr) -> None:
        """Store the low bytes of uint64 values."""
        if self.backward and np.ndim(values):
            at, values = at[::-1], values[::-1]
        self.views[size][at // size] = np.asarray(values).astype(_VIEWS[size])

    def mark(self, at: Arr, size: int, pc: int) -> None:
        """Record who wrote the bytes."""
        if self.writer is None:
            self.writer = np.zeros(len(self.data), np.int32)
        for k in range(size):
            self.writer[at + k] = pc + 1


class Heap(Bytes):
    """Global memory: named objects with gaps between them."""

    __slots__ = ("ends", "names", "starts")

    def __init__(self, objects: list[tuple[str, int]]) -> None:
        self.names = [name for name, _ in objects]
        self.starts: list[int] = []
        self.ends: list[int] = []
        at = GUARD
        for _, size in objects:
            at = -(-at // 256) * 256
            self.starts.append(at)
            self.ends.append(at + size)
            at += size + GUARD
        super().__init__(np.full(bounded(at, "global"), 0xA5, np.uint8))

    def slot(self, k: int) -> Arr:
        """The bytes of an object."""
        return self.data[self.starts[k] : self.ends[k]]

    def address(self, k: int) -> int:
        """The generic address of an object."""
        return GLOBAL_BASE + self.starts[k]

    def offsets(self, address: Arr, size: int, what: str) -> Arr:
        """Checked byte offsets of addresses."""
        off = (address - U64(GLOBAL_BASE)).view(np.int64)
        if off.size:
            low = int(off.min())
            k = bisect.bisect_right(self.starts, low) - 1
            if k < 0 or int(off.max()) + size > self.ends[k]:
                starts, ends = np.array(self.starts, np.int64), np.array(self.ends, np.int64)
                which = np.searchsorted(starts, off, "right") - 1
                bad = (which < 0) | (off + size > ends[np.maximum(which, 0)])
                if bad.any():
                    first = int(bad.argmax())
                    raise MemoryFault(
                        f"{what} of {size} bytes outside of global memory at {int(address.ravel()[first]):#x}", first
                    )
        aligned(off, size, what)
        return off


class Window(Bytes):
    """Shared or local memory (a part for each block or thread), or const and parameter memory (one part)."""

    __slots__ = ("name", "size", "stride")

    def __init__(self, name: str, size: int, count: int, fill: Filler | None) -> None:
        self.name = name
        self.size = size
        self.stride = -(-size // 32) * 32
        total = bounded(self.stride * count, name)
        super().__init__(fill.bytes(total) if fill is not None else np.zeros(total, np.uint8))

    def offsets(self, address: Arr, size: int, what: str, part: Arr) -> Arr:
        """Checked byte offsets; `part` is the number of each thread's part."""
        off = address.astype(np.int64) if address.dtype != np.int64 else address
        bad = (off < 0) | (off + size > self.size)
        if bad.any():
            first = int(bad.argmax())
            raise MemoryFault(
                (
                    f"{what} of {size} bytes outside of {self.name} memory ({self.size} bytes) at "
                    f"{int(address.ravel()[first]):#x}"
                ),
                first,
            )
        aligned(off, size, what)
        return np.asarray(off + part * self.stride)


def aligned(off: Arr, size: int, what: str) -> None:
    """Refuse misaligned accesses."""
    odd = off & (size - 1)
    if odd.any():
        raise MemoryFault(f"misaligned {what} of {size} bytes", int((odd != 0).argmax()))


def ranks(index: Arr) -> list[Arr]:
    """Positions grouped so that no group has an index twice; equal indices stay in order."""
    order = np.argsort(index, kind="stable")
    sorted_index = index[order]
    first = np.ones(len(index), np.bool_)
    first[1:] = sorted_index[1:] != sorted_index[:-1]
    starts = np.flatnonzero(first)
    rank = np.arange(len(index)) - np.repeat(starts, np.diff(np.append(starts, len(index))))
    if len(rank) and rank.max() == 0:
        return [np.arange(len(index))]
    by = np.argsort(rank, kind="stable")
    bounds = np.searchsorted(rank[by], np.arange(int(rank.max(initial=-1)) + 2))
    return [order[by[bounds[k] : bounds[k + 1]]] for k in range(len(bounds) - 1)]
