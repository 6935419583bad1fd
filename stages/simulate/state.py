"""Register state of the resident warps: one row per register, one column per thread ("lane").

Rows of 32-bit words (``View.U``; ``F`` and ``I`` are the same memory as float32 and int32): R0..R254, RZ (zeros), a
sink for writes to RZ, UR0..UR254, then constants and special registers as code asks for them. A uniform register is
a row too, equal in the 32 lanes of a warp, so vector instructions read it like any register.

Rows of booleans (``View.P``): P0..P6, PT, UP0..UP6, a sink, "waits at convergence barrier k" for k = 0..16, and "has
exited". Rows of convergence barriers (``View.B``): B0..B15, one for WARPSYNC, and the lanes that code has declared
exited (MEXITED). A row holds, for each lane, the 32-bit set of lanes of its warp that it must meet, or need not. Each
lane has its own set because groups of a warp may be in the same code at different depths (recursion): ptxas saves and
restores B registers around calls as if they belonged to the thread.

A :class:`View` is a range of warps (a power of two, aligned): an instruction runs over the smallest view that covers
its lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Arr = NDArray[Any]

RZ_ROW: Final = 255
SINK: Final = 256
UR0: Final = 257
FIXED_ROWS: Final = UR0 + 256

PT_ROW: Final = 7
UP0: Final = 8
P_SINK: Final = 15
B_WARPSYNC: Final = 16
B_EXITED: Final = 17
WAIT0: Final = 16
EXITED: Final = WAIT0 + 17
P_ROWS: Final = EXITED + 1

RowMaker = Callable[["Lanes"], Arr]


class View:
    """Lanes ``lo`` to ``hi`` (multiples of 32). ``um``: lanes of the active warps, None = all (set before each
    run)."""

    __slots__ = ("B", "F", "I", "P", "U", "extra", "hi", "lanes", "lo", "n", "um")

    def __init__(self, lanes: Lanes, lo: int, hi: int) -> None:
        self.lanes = lanes
        self.lo, self.hi, self.n = lo, hi, hi - lo
        self.U: list[Arr] = [row[lo:hi] for row in lanes.rows]
        self.F: list[Arr] = [row.view(np.float32) for row in self.U]
        self.I: list[Arr] = [row.view(np.int32) for row in self.U]
        self.P: list[Arr] = [row[lo:hi] for row in lanes.preds]
        self.B: list[Arr] = [row[lo:hi] for row in lanes.barriers]
        self.um: Arr | None = None
        self.extra: dict[str, Arr] = {}

    def grow(self, row: Arr) -> None:
        """Add a row that was added to the lanes."""
        part = row[self.lo : self.hi]
        self.U.append(part)
        self.F.append(part.view(np.float32))
        self.I.append(part.view(np.int32))

    def wide(self, name: str) -> Arr:
        """A per-lane int64 array of the lanes (``shared_at``, ``local_at``, ``block``) cut to this view."""
        got = self.extra.get(name)
        if got is None:
            got = self.extra[name] = self.lanes.wide[name][self.lo : self.hi]
        return got


class Lanes:
    """The registers of ``warps`` warps."""

    __slots__ = ("barriers", "index", "keep", "n", "preds", "rows", "specs", "views", "warps", "wide")

    def __init__(self, warps: int, seed: int) -> None:
        self.warps = warps
        self.n = warps * 32
        generator = np.random.default_rng(seed)
        # Uninitialised registers hold arbitrary values, the same for equal seeds.
        words = generator.integers(0, 2**32, (FIXED_ROWS, self.n), dtype=np.uint32)
        words[RZ_ROW] = 0
        uniform = words[UR0:, ::32].repeat(32, axis=1)
        words[UR0:] = uniform
        self.rows: list[Arr] = list(words)
        preds = generator.integers(0, 2, (P_ROWS, self.n), dtype=np.uint8).astype(np.bool_)
        preds[UP0:P_SINK] = preds[UP0:P_SINK, ::32].repeat(32, axis=1)
        preds[PT_ROW] = True
        preds[WAIT0:] = False
        self.preds = preds
        self.specs: list[RowMaker] = []
        self.index: dict[object, int] = {}
        self.views: dict[tuple[int, int], View] = {}
        self.wide: dict[str, Arr] = {}
        self.keep = (words,)
        self.barriers = np.zeros((18, self.n), np.uint32)

    def row(self, key: object, maker: RowMaker) -> int:
        """The row of a constant or special register, made on first request and kept across block sets."""
        at = self.index.get(key)
        if at is None:
            at = self.index[key] = len(self.rows)
            self.specs.append(maker)
            row = maker(self)
            self.rows.append(row)
            for view in self.views.values():
                view.grow(row)
        return at

    def constant(self, value: int) -> int:
        """The row that holds a 32-bit constant."""
        value &= 0xFFFFFFFF
        if value == 0:
            return RZ_ROW
        return self.row(value, lambda lanes: np.full(lanes.n, value, np.uint32))

    def refresh(self) -> None:
        """Recompute the special-register rows in place, for the next set of blocks."""
        for i, maker in enumerate(self.specs):
            self.rows[FIXED_ROWS + i][:] = maker(self)
        self.preds[WAIT0:] = False
        self.barriers[:] = 0

    def view(self, warps: int) -> View:
        """The smallest view that covers a nonempty bit set of warps."""
        low = (warps & -warps).bit_length() - 1
        high = warps.bit_length() - 1
        k = 0
        while low >> k != high >> k:
            k += 1
        first = (low >> k) << k
        key = (first, k)
        got = self.views.get(key)
        if got is None:
            got = self.views[key] = View(self, first * 32, min(first + (1 << k), self.warps) * 32)
        return got


def warp_bits(mask: Arr, first_warp: int) -> int:
    """The warps (bit set) with any lane in ``mask``, whose first lane belongs to warp ``first_warp``."""
    some = np.logical_or.reduce(mask.reshape(-1, 32), axis=1)
    return int.from_bytes(np.packbits(some, bitorder="little").tobytes(), "little") << first_warp


def warp_any(mask: Arr) -> Arr:
    """For every lane: is any lane of its warp in ``mask``?"""
    return np.asarray(np.logical_or.reduce(mask.reshape(-1, 32), axis=1).repeat(32))


def ballot(mask: Arr) -> Arr:
    """For every warp: the 32-bit word of its lanes in ``mask``."""
    return np.packbits(mask.reshape(-1, 32), axis=1, bitorder="little").view(np.uint32).ravel()


def spread(words: Arr) -> Arr:
    """The inverse of :func:`ballot`: one boolean per lane from one word per warp."""
    return np.unpackbits(words.astype("<u4").view(np.uint8), bitorder="little").astype(np.bool_)
