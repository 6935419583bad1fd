"""Vector clocks of the resident threads: what each thread knows of the others. Kept small.

Each thread ("lane") has its own clock, which advances whenever other threads may learn of what it did. What a lane
knows of all others is a row of clocks; lanes that met at a barrier share one row. What lanes of one warp know of each
other is kept in a separate matrix, because they diverge and converge far more often. The last column of a row covers
all lanes of earlier sets of blocks, by the number of the set.

Edges of happens-before: threads that synchronize at a convergence barrier, WARPSYNC or a barrier of the block know all
that the others knew. An instruction that a group executes together comes after all that the group did. A fence followed
by a strong write or an atomic publishes, at the address written, what the thread knew at the fence and what other
threads that it knows of had fenced. A thread that reads this address with a strong read or an atomic has *heard* it; it
knows it once it has invalidated L1 (CCTL.IVALL), or within a block from its next fence on. Barrier objects publish and
tell at once.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

import numpy as np

from stages.simulate.arr import Arr

u32, i64 = np.uint32, np.int64
#: Number of addresses whose knowledge is kept. Beyond it the oldest are forgotten; one common row then represents
#: all of them.
PLACES: Final = 4096


class Clocks:
    """The knowledge of ``lanes`` resident threads."""

    def __init__(self, lanes: int) -> None:
        self.n = lanes
        self.table: Arr = np.zeros((64, lanes + 1), u32)
        self.used = 1  # row 0: nothing is known
        self.knows: Arr = np.zeros(lanes, i64)  # row of each lane
        self.heard: Arr = np.zeros(lanes, i64)  # row of what it was told and has not fenced; 0: nothing
        self.fenced_row: Arr = np.zeros(lanes, i64)  # its row at its last fence
        self.fenced: Arr = np.zeros(lanes, u32)  # its clock then; 0: no fence yet
        self.fenced_near: Arr = np.zeros((lanes, 32), u32)
        self.own: Arr = np.ones(lanes, u32)
        self.in_warp: Arr = np.zeros((lanes // 32, 32, 32), u32)  # [warp, lane, other lane]
        self.executing: Arr = np.zeros(lanes + 1, np.bool_)  # lanes of the groups that execute now
        self.places: dict[Hashable, Arr] = {}
        self.forgotten: Arr | None = None
        self.fences = False

    # --- rows ---

    def row(self, values: Arr) -> int:
        """A new row."""
        if self.used == len(self.table):
            self._compact()
        self.table[self.used] = values
        self.used += 1
        return self.used - 1

    def _compact(self) -> None:
        columns = (self.knows, self.heard, self.fenced_row)
        live = np.unique(np.concatenate([[0], *columns]))
        if 2 * len(live) > len(self.table):
            grown = np.zeros((2 * len(self.table), self.n + 1), u32)
            grown[: len(live)] = self.table[live]
            self.table = grown
        else:
            self.table[: len(live)] = self.table[live]
        for column in columns:
            column[:] = np.searchsorted(live, column)
        self.used = len(live)

    def union(self, column: Arr, lanes: Arr) -> Arr:
        """The union of the rows that these lanes have in a column."""
        ids = np.unique(column[lanes])
        return np.asarray(self.table[ids[0]] if len(ids) == 1 else self.table[ids].max(axis=0))

    # --- order ---

    def before(self, lanes: Arr, clocks: Arr, now: Arr) -> tuple[Arr, Arr]:
        """Whether the accesses of ``lanes`` at ``clocks`` come before those of ``now``; and whether they would if what
        was heard without a fence counted."""
        warp, mine = lanes >> 5, now >> 5
        near = warp == mine
        known = (lanes == now) | (near & self.executing[lanes])
        known |= near & (self.in_warp[mine, now & 31, lanes & 31] >= clocks)
        known |= self.table[self.knows[now], lanes] >= clocks
        return known, known | (self.table[self.heard[now], lanes] >= clocks)

    # --- events; ``lanes``: numbers ---

    def part(self, lo: int, mask: Arr) -> None:
        """A group diverges: up to here each lane has seen what the others did."""
        warps = slice(lo // 32, lo // 32 + len(mask) // 32)
        some = mask.reshape(-1, 32)
        own = self.own[lo : lo + len(mask)]
        near = self.in_warp[warps]
        np.copyto(near, np.broadcast_to(own.reshape(-1, 1, 32), near.shape), where=some[:, :, None] & some[:, None, :])
        own[mask] += u32(1)

    def meet(self, lo: int, mask: Arr) -> None:
        """Lanes of each warp continue as one group."""
        some = mask.reshape(-1, 32)
        for w in np.flatnonzero(some.any(axis=1)):
            warp = lo // 32 + int(w)
            lanes = 32 * warp + np.flatnonzero(some[w])
            near = self.in_warp[warp]
            near[some[w]] = near[some[w]].max(axis=0)
            self.share(lanes)

    def share(self, lanes: Arr) -> None:
        """From here on each of these lanes knows what the others did."""
        for column in (self.knows, self.heard):
            ids = column[lanes]
            if (ids != ids[0]).any():
                column[lanes] = self.row(self.union(column, lanes))

    def gather(self, known: tuple[Arr, Arr] | None, lanes: Arr) -> tuple[Arr, Arr]:
        """What the lanes that arrive at a barrier know, joined with what earlier arrivals knew."""
        fresh = self.union(self.knows, lanes).copy()
        for warp in np.unique(lanes >> 5):
            mine = lanes[lanes >> 5 == warp]
            part = fresh[32 * warp : 32 * warp + 32]
            np.maximum(part, self.in_warp[warp, mine & 31].max(axis=0), out=part)
        fresh[lanes] = np.maximum(fresh[lanes], self.own[lanes])
        self.own[lanes] += u32(1)
        heard = self.union(self.heard, lanes)
        if known is None:
            return fresh, heard.copy()
        return np.maximum(known[0], fresh), np.maximum(known[1], heard)

    def learn(self, known: tuple[Arr, Arr], lanes: Arr) -> None:
        """Lanes released from a barrier learn what the arrivals knew."""
        self.knows[lanes] = self.row(known[0])
        self.heard[lanes] = self.row(known[1]) if known[1].any() else 0

    def ended(self, known: tuple[Arr, Arr], lanes: Arr) -> None:
        """Threads that have ended count as having arrived."""
        known[0][lanes] = np.maximum(known[0][lanes], self.own[lanes])

    def groups(self, lanes: Arr) -> list[Arr]:
        """The groups that execute now in the warps of these lanes."""
        return [32 * w + np.flatnonzero(self.executing[32 * w : 32 * w + 32]) for w in np.unique(lanes >> 5)]

    def fence(self, lanes: Arr, publishes: bool, acquires: bool) -> None:
        """A fence of these lanes. ``acquires``: they know from here on what they heard; ``publishes``: what they know
        can be published."""
        if acquires and self.heard[lanes].any():
            for group in self.groups(lanes):
                if self.heard[group].any():
                    self.knows[group] = self.row(
                        np.maximum(self.union(self.knows, group), self.union(self.heard, group))
                    )
                    self.heard[group] = 0
        if publishes:
            self.fences = True
            self.fenced_row[lanes] = self.knows[lanes]
            self.fenced_near[lanes] = self.present(lanes)
            self.fenced[lanes] = self.own[lanes]
            self.own[lanes] += u32(1)

    def present(self, lanes: Arr) -> Arr:
        """What lanes know of their warps now: a row of 32 for each."""
        warp = lanes >> 5
        out = self.in_warp[warp, lanes & 31]
        own, here = self.own.reshape(-1, 32)[warp], self.executing[: self.n].reshape(-1, 32)[warp]
        return np.asarray(np.where(here, np.maximum(out, own), out))

    def publish(self, key: Hashable, lane: int, whole: bool) -> None:
        """A lane writes an address from which others learn. ``whole``: no fence is needed (barrier objects)."""
        if not whole and not self.fences:
            return
        near = slice(32 * (lane >> 5), 32 * (lane >> 5) + 32)
        now = self.table[self.knows[lane]].copy()
        np.maximum(now[near], self.present(np.array([lane]))[0], out=now[near])
        now[lane] = self.own[lane]
        if not whole:
            now[:-1] = np.minimum(now[:-1], self.fenced)  # of others, what they fenced themselves
            if self.fenced[lane]:
                np.maximum(now, self.table[self.fenced_row[lane]], out=now)
                np.maximum(now[near], self.fenced_near[lane], out=now[near])
        self.own[lane] += u32(1)
        there = self.places.get(key)
        if there is None:
            if len(self.places) >= PLACES:
                oldest = self.places.pop(next(iter(self.places)))
                self.forgotten = oldest if self.forgotten is None else np.maximum(self.forgotten, oldest)
            self.places[key] = now
        else:
            np.maximum(there, now, out=there)

    def hear(self, key: Hashable, lanes: Arr, at_once: bool) -> None:
        """Lanes read an address; ``at_once``: they know without a fence."""
        row = self.places.get(key, self.forgotten)
        if row is None:
            return
        column = self.knows if at_once else self.heard
        for group in self.groups(lanes):
            if len(group):
                have = self.union(column, group)
                if not (have >= row).all():
                    column[group] = self.row(np.maximum(have, row))

    def next_set(self, number: int, lanes: int) -> Clocks:
        """The clocks of the next set of blocks; the addresses remember that set ``number`` wrote them."""
        fresh = Clocks(lanes)
        for key, row in self.places.items():
            if isinstance(key, tuple) and key[0] == "global":
                fresh.places[key] = old = np.zeros(lanes + 1, u32)
                old[-1] = number if row[:-1].any() else row[-1]
        return fresh


Known = Any
