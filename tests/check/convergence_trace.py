"""Which data the two sides of a barrier of the block touch, from a run of the sound cubin: the reason why some barriers can be missed.

Written apart from the race detector: accesses are listed with the number of barriers that their block has passed, and compared afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

from stages.simulate.arr import Arr
from stages.simulate.build import View
from stages.simulate.races import Races

#: (set of blocks, block, barriers passed)
Phase = tuple[int, int, int]


class Trace(Races):
    """Takes the race detector's place in a launch. ``accesses``: by phase, arrays of (instruction, warp, 4-byte word with its memory, write, atomic)."""

    taken: list[Trace]

    def __init__(self, place: Callable[[int], str], who: Callable[[int], str]) -> None:
        super().__init__(place, who)
        self.accesses: dict[Phase, list[Arr]] = {}
        self.passed: dict[tuple[int, int], int] = {}
        self.closed: dict[Phase, set[int]] = {}  # the instructions at which the threads waited that passed from a phase to the next one
        self.view: View | None = None
        self.blocks: dict[int, int] = {}
        Trace.taken.append(self)

    def group(self, v: View, m: Arr | None) -> None:
        self.view = v

    def access(self, memory: Any, at: Arr, size: int, act: Arr | None, what: str) -> None:
        if self.view is None or not len(at):
            return
        lanes = np.arange(len(at)) if act is None else act
        blocks = self.view.wide("block")[lanes]
        space = 0 if type(memory).__name__ == "WatchedHeap" else 1
        words = (at[:, None] // 4 + np.arange(max(size // 4, 1))).reshape(-1) * 2 + space
        width = max(size // 4, 1)
        strong = self.strong or self.object
        for block in np.unique(blocks):
            mine = blocks == block
            key = (self.sets, int(block), self.passed.get((self.sets, int(block)), 0))
            warps = ((self.lo_of() + lanes[mine]) >> 5).repeat(width)
            w = words[mine.repeat(width)]
            self.accesses.setdefault(key, []).append(np.stack([np.full(len(w), self.pc), warps, w, np.full(len(w), what != "read"), np.full(len(w), strong)], 1))

    def lo_of(self) -> int:
        """First lane of the view."""
        return self.view.lo if self.view is not None else 0

    def stored(self, memory: Any, same: Arr) -> None:
        pass

    def flush(self) -> None:
        pass

    def begin(self, lanes: int) -> None:
        self.sets += 1

    def parted(self, view: View, mask: Arr) -> None:
        pass

    def met(self, view: View, mask: Arr) -> None:
        pass

    def arrived(self, arrival: Any, view: View, mask: Arr) -> None:
        self.blocks[id(arrival)] = int(view.wide("block")[mask][0])

    def released(self, arrival: Any, ended: Arr) -> None:
        block = self.blocks.get(id(arrival), 0)
        number = self.passed.get((self.sets, block), 0)
        waited = {pc - 1 for _, _, pc in arrival.groups}
        self.closed[self.sets, block, number] = waited if not getattr(arrival, "expected", 1) else {-1}
        self.passed[self.sets, block] = number + 1

    def _fence(self, publishes: bool, acquires: bool, wrap: Any) -> Any:
        return lambda v, m: None

    # --- questions ---

    def of(self, phase: Phase, pc: int = -1) -> Arr:
        """Accesses of a phase (of one instruction)."""
        parts = self.accesses.get(phase)
        every = np.concatenate(parts) if parts else np.zeros((0, 5), np.int64)
        return every if pc < 0 else every[every[:, 0] == pc]

    def crosses(self, barrier: int) -> bool:
        """Whether data go from one warp to another over a barrier, if all places that it alone divides are taken together; True where that can't be said."""
        for (s, block, number), waited in self.closed.items():
            if barrier not in waited:
                continue
            if waited != {barrier}:
                return True
            first = number
            while self.closed.get((s, block, first - 1)) == {barrier}:
                first -= 1
            before = np.concatenate([self.of((s, block, k)) for k in range(first, number + 1)])
            if conflict(before, self.of((s, block, number + 1))):
                return True
        return False

    def passes(self, barrier: int, access: int, later: bool) -> bool:
        """Whether an access touches what other warps touch on the side of a barrier to which it is moved."""
        for (s, block, number), waited in self.closed.items():
            if barrier not in waited:
                continue
            own, others = (number + 1, number) if later else (number, number + 1)
            if conflict(self.of((s, block, own), access), self.of((s, block, others))):
                return True
        return False


def conflict(first: Arr, second: Arr) -> bool:
    """Whether two warps touch a word, one of them writing, one from each list, not both by atomics."""
    if not len(first) or not len(second):
        return False
    common = np.intersect1d(first[:, 2], second[:, 2])
    if not len(common):
        return False
    a, b = first[np.isin(first[:, 2], common)], second[np.isin(second[:, 2], common)]
    by_word: dict[int, set[tuple[int, int, int]]] = {}
    for row in b:
        by_word.setdefault(int(row[2]), set()).add((int(row[1]), int(row[3]), int(row[4])))
    for row in np.unique(a[:, 1:], axis=0):
        for warp, write, strong in by_word[int(row[1])]:
            if warp != row[0] and (write or row[2]) and not (strong and row[3]):
                return True
    return False


def traced(run: Callable[..., Any], device: Any) -> Trace:
    """The trace of a launch."""
    Trace.taken = []
    with mock.patch("stages.simulate.device.Races", Trace):
        run(device, races=True)
    return Trace.taken[-1]
