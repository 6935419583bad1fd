"""Memories of a launch: global (buffers with guard zones), shared, local. Every access is checked for bounds and
alignment.

Addresses: global memory starts at :data:`image.GLOBAL_BASE`. A generic address whose upper word is :data:`SHARED_HI` or
:data:`LOCAL_HI` lies in the window of the thread's shared or local memory; with :data:`CONST_HI` or :data:`PARAM_HI` it
lies in the window of the module's constants or of the kernel's parameters, which are read-only.
"""

from __future__ import annotations

import bisect
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from stages.simulate.image import GLOBAL_BASE
from stages.simulate.machine import Fault

Arr = NDArray[Any]
u8, u16, u32, u64, i64 = np.uint8, np.uint16, np.uint32, np.uint64, np.int64

SHARED_HI: Final = 0x7F40
LOCAL_HI: Final = 0x7F41
CONST_HI: Final = 0x7F43
PARAM_HI: Final = 0x7F44
GUARD: Final = 256
MAX_HEAP: Final = 1 << 31
_TYPES: Final = {1: u8, 2: u16, 4: u32, 8: u64}
_SHIFT: Final = {1: 0, 2: 1, 4: 2, 8: 3, 16: 4, 32: 5}


class Bytes:
    """A flat memory with typed views."""

    __slots__ = ("data", "octs", "quads", "views")

    def __init__(self, data: Arr) -> None:
        self.data = data
        whole = data[: len(data) // 32 * 32]
        self.views: dict[int, Arr] = {size: whole.view(kind) for size, kind in _TYPES.items()}
        self.quads: Arr = whole.view(u32).reshape(-1, 4)
        self.octs: Arr = whole.view(u32).reshape(-1, 8)

    def load(self, at: Arr, size: int) -> Arr:
        """Values at byte offsets (multiples of ``size``); 16 and 32 bytes: rows of uint32."""
        index = at >> _SHIFT[size]
        if size == 16:
            return np.asarray(self.quads[index])
        if size == 32:
            return np.asarray(self.octs[index])
        return np.asarray(self.views[size].take(index))

    def store(self, at: Arr, size: int, values: Arr) -> None:
        """Write values at byte offsets; of several writes to one address the highest lane's stays."""
        index = at >> _SHIFT[size]
        if size == 16:
            self.quads[index] = values
        elif size == 32:
            self.octs[index] = values
        else:
            self.views[size][index] = values


class Heap(Bytes):
    """Global memory: named allocations between guard zones."""

    __slots__ = ("ends", "names", "starts")

    def __init__(self, allocations: list[tuple[str, int]]) -> None:
        """``allocations``: (name, bytes), laid out in order."""
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.names: list[str] = []
        at = GUARD
        for name, size in allocations:
            at = -(-at // 256) * 256
            self.starts.append(GLOBAL_BASE + at)
            self.ends.append(GLOBAL_BASE + at + size)
            self.names.append(name)
            at += size + GUARD
        if at > MAX_HEAP:
            raise Fault(f"the launch needs {at} bytes of global memory, more than {MAX_HEAP}")
        super().__init__(np.full(-(-at // 32) * 32 + 32, 0xA5, u8))

    def slot(self, index: int) -> Arr:
        """The bytes of an allocation."""
        return self.data[self.starts[index] - GLOBAL_BASE : self.ends[index] - GLOBAL_BASE]

    def offsets(self, address: Arr, size: int, act: Arr | None, what: str) -> Arr:
        """Byte offsets of 64-bit addresses, all checked."""
        if not len(address):
            return address.view(i64)
        low, high = int(address.min()), int(address.max())
        k = bisect.bisect_right(self.starts, low) - 1
        if k < 0 or high + size > self.ends[k]:
            self._each(address, size, act, what)
        aligned(address, size, act, what, "global")
        return (address - u64(GLOBAL_BASE)).view(i64)

    def _each(self, address: Arr, size: int, act: Arr | None, what: str) -> None:
        starts, ends = np.array(self.starts, u64), np.array(self.ends, u64)
        k = np.searchsorted(starts, address, "right").astype(i64) - 1
        at = np.maximum(k, 0)
        bad = (k < 0) | (address + u64(size) > ends[at]) | (address + u64(size) < address)
        if bad.any():
            first = int(bad.argmax())
            raise Fault(
                f"out-of-bounds global {what} of {size} bytes at {self.name_of(int(address[first]))}",
                lane_of(act, first),
            )

    def name_of(self, address: int) -> str:
        """An address in words: relative to the nearest buffer."""
        k = bisect.bisect_right(self.starts, address) - 1
        if k >= 0 and address - self.ends[k] < 1 << 20:
            size = self.ends[k] - self.starts[k]
            return f"{address:#x} ({address - self.starts[k]} bytes into '{self.names[k]}' of {size} bytes)"
        if k + 1 < len(self.starts) and self.starts[k + 1] - address < 1 << 20:
            return f"{address:#x} ({self.starts[k + 1] - address} bytes before '{self.names[k + 1]}')"
        return f"{address:#x} (no buffer near it)"


def lane_of(act: Arr | None, index: int) -> int:
    """The lane of the index-th active one."""
    return index if act is None else int(act[index])


def aligned(address: Arr, size: int, act: Arr | None, what: str, space: str) -> None:
    """Fault on an address that is not a multiple of the access size."""
    if size == 1:
        return
    odd = address & address.dtype.type(size - 1)
    if np.count_nonzero(odd):
        first = int((odd != 0).argmax())
        raise Fault(f"misaligned {space} {what} of {size} bytes at {int(address[first]):#x}", lane_of(act, first))


class Window(Bytes):
    """Shared or local memory: ``stride`` bytes per block or thread; ``base`` (a name in the view): the offset of each
    lane's part."""

    __slots__ = ("lane_key", "name", "size", "stride")

    def __init__(self, name: str, size: int, count: int, lane_key: str, seed: int) -> None:
        self.name = name
        self.size = size
        self.stride = -(-size // 32) * 32
        self.lane_key = lane_key
        if self.stride * count > MAX_HEAP:
            raise Fault(f"the launch needs {self.stride * count} bytes of {name} memory, more than {MAX_HEAP}")
        generator = np.random.default_rng(seed)
        super().__init__(generator.integers(0, 256, self.stride * count + 32, dtype=u8))

    def offsets(self, address: Arr, size: int, act: Arr | None, what: str, base: Arr) -> Arr:
        """Byte offsets of 32-bit addresses of lanes whose parts begin at ``base``."""
        if not len(address):
            return address.astype(i64)
        if int(address.max()) + size > self.size:
            first = int(address.argmax())
            raise Fault(
                (
                    f"out-of-bounds {self.name} {what} of {size} bytes at {int(address[first]):#x} (window of "
                    f"{self.size:#x} bytes)"
                ),
                lane_of(act, first),
            )
        aligned(address, size, act, what, self.name)
        return base + address


class Memory:
    """The memories of a set of resident blocks."""

    __slots__ = ("heap", "local", "shared")

    def __init__(self, heap: Heap, shared: Window, local: Window) -> None:
        self.heap = heap
        self.shared = shared
        self.local = local


def rank(index: Arr) -> tuple[Arr, Arr, int]:
    """(order, rank in that order, highest rank): lanes sorted by address, and each lane's place among those with its
    address."""
    order = np.argsort(index, kind="stable")
    sorted_index = index[order]
    first = np.empty(len(index), np.bool_)
    first[0] = True
    np.not_equal(sorted_index[1:], sorted_index[:-1], out=first[1:])
    starts = np.flatnonzero(first)
    ranks = np.arange(len(index)) - np.repeat(starts, np.diff(np.append(starts, len(index))))
    return order, ranks, int(ranks.max())


def atomic(view: Arr, index: Arr, fn: Any, values: Arr, want_old: bool, additive: bool = False) -> Arr:
    """Read-modify-write of ``view[index]`` by ``fn(old, lane numbers) -> new``, lane by lane if addresses collide;
    returns the old values.

    ``additive``: fn is a wrapping integer addition of ``values``, done in one step.
    """
    lanes = np.arange(len(index))
    if additive and not want_old:
        np.add.at(view, index, values)
        return values
    order, ranks, top = rank(index)
    if top == 0:
        old = np.asarray(view[index])
        view[index] = fn(old, lanes)
        return old
    if additive:
        sorted_values = values[order]
        total = np.cumsum(sorted_values, dtype=values.dtype)
        before = total - sorted_values
        starts = np.flatnonzero(ranks == 0)
        sizes = np.diff(np.append(starts, len(index)))
        before = before - np.repeat(before[starts], sizes)
        old = np.empty_like(values)
        old[order] = view[index[order]] + before
        np.add.at(view, index, values)
        return old
    old = np.empty((len(index), *view.shape[1:]), view.dtype)
    by_rank = np.argsort(ranks, kind="stable")
    bounds = np.searchsorted(ranks[by_rank], np.arange(top + 2))
    for r in range(top + 1):
        chosen = order[by_rank[bounds[r] : bounds[r + 1]]]
        here = index[chosen]
        got = np.asarray(view[here])
        old[chosen] = got
        view[here] = fn(got, chosen)
    return old
