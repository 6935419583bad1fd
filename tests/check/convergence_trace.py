"""Which data the two sides of a block barrier access, from a run of the sound cubin: the reason why some barriers are
unnecessary.

Written independently of the race detector: accesses are listed with the number of barriers that their block has passed,
and compared afterwards.
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
    """Replaces the race detector in a launch. ``accesses``: by phase, arrays of (instruction, warp, 4-byte word with
    its memory, write, atomic)."""

    taken: list[Trace]

    def __init__(self, place: Callable[[int], str], who: Callable[[int], str]) -> None:
        super().__init__(place, who)
        self.accesses: dict[Phase, list[Arr]] = {}
        self.passed: dict[tuple[int, int], int] = {}
        self.closed: dict[
            Phase, set[int]
        ] = {}  # the instructions at which threads waited when passing from a phase to the next
        self.view: View | None = None
        self.events: dict[
            tuple[int, int], list[Event]
        ] = {}  # by set and block: the fences and related actions of its threads, in order
        self.step = 0
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
        self.step += 1
        told = (
            "tell" if self.publishes and strong else "write" if what == "write" else "read",
            "hear" if strong else "",
        )
        for lane, block in zip(lanes, blocks, strict=True):
            for what_ in told if space == 0 else ():
                self.event(int(block), what_, self.lo_of() + int(lane), self.pc)
        for block in np.unique(blocks):
            mine = blocks == block
            key = (self.sets, int(block), self.passed.get((self.sets, int(block)), 0))
            warps = ((self.lo_of() + lanes[mine]) >> 5).repeat(width)
            w = words[mine.repeat(width)]
            self.accesses.setdefault(key, []).append(
                np.stack(
                    [
                        np.full(len(w), self.pc),
                        warps,
                        w,
                        np.full(len(w), what != "read"),
                        np.full(len(w), strong),
                        np.full(len(w), self.step),
                    ],
                    1,
                )
            )

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

    def arrived(self, arrival: Any, view: View, mask: Arr, pc: int) -> None:
        self.blocks[id(arrival)] = int(view.wide("block")[mask][0])
        self.event(self.blocks[id(arrival)], "meet", -1, pc)

    def released(self, arrival: Any, ended: Arr) -> None:
        block = self.blocks.get(id(arrival), 0)
        number = self.passed.get((self.sets, block), 0)
        waited = {pc - 1 for _, _, pc in arrival.groups}
        self.closed[self.sets, block, number] = waited if not getattr(arrival, "expected", 1) else {-1}
        self.passed[self.sets, block] = number + 1

    def watch(self, inst: Any, pc: int, wrap: Any, run: Any) -> Any:
        self.fence_pc = pc
        return super().watch(inst, pc, wrap, run)

    def _fence(self, publishes: bool, acquires: bool, wrap: Any) -> Any:
        pc = self.fence_pc

        def act(v: View, m: Arr | None) -> None:
            for lane in np.arange(v.n) if m is None else np.flatnonzero(m):
                self.event(int(v.wide("block")[lane]), "fence" if publishes else "drop", v.lo + int(lane), pc)

        return wrap(act)

    # --- questions ---

    def of(self, phase: Phase, pc: int = -1) -> Arr:
        """Accesses of a phase (or of one instruction in it)."""
        parts = self.accesses.get(phase)
        every = np.concatenate(parts) if parts else np.zeros((0, 6), np.int64)
        return every if pc < 0 else every[every[:, 0] == pc]

    def crosses(self, barrier: int) -> bool:
        """Whether data cross a barrier from one warp to another, if all places that only it separates are taken
        together; True if that cannot be decided."""
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

    def writes(self, barrier: int) -> bool:
        """Whether any thread writes global memory before a barrier and after the previous one: a fence after it could
        publish that."""
        phases = [key for key, waited in self.closed.items() if barrier in waited]
        return any(((a := self.of(key))[:, 3] * (1 - a[:, 2] % 2)).any() for key in phases)

    def passes(self, barrier: int, access: int, later: bool) -> bool:
        """Whether an access touches what other warps touch on the side of a barrier to which it is moved."""
        for (s, block, number), waited in self.closed.items():
            if barrier not in waited:
                continue
            own, others = (number + 1, number) if later else (number, number + 1)
            if conflict(self.of((s, block, own), access), self.of((s, block, others))):
                return True
        return False

    def alone(self, access: int, later: bool) -> bool:
        """Whether, later (or earlier) in the run, no other warp of any block touches what an access touches, with one
        of them writing."""
        every = np.concatenate([a for parts in self.accesses.values() for a in parts])
        blocks = np.concatenate(
            [np.full(len(a), key[0] << 10 | key[1]) for key, parts in self.accesses.items() for a in parts]
        )
        every[:, 1] |= blocks << 20
        mine = every[every[:, 0] == access]
        for row in np.unique(mine[:, 2]):
            own = mine[mine[:, 2] == row]
            others = every[(every[:, 2] == row) & ((every[:, 3] | own[0, 3]) == 1)]
            at = own[:, 5]
            others = others[(others[:, 5] < at.max()) if later else (others[:, 5] > at.min())]
            if any((others[:, 1] != w).any() for w in np.unique(own[:, 1])):
                return False
        return True

    def event(self, block: int, what: str, lane: int, pc: int) -> None:
        """Record an action of a thread."""
        if what:
            self.events.setdefault((self.sets, block), []).append((what, lane, pc))

    def unused(self, fence: int, publishes: bool) -> bool:
        """Whether nothing depends on a fence. A MEMBAR: each time no thread of the block has accesses after its last
        MEMBAR, or none writes strongly before its own next one (any thread, after a barrier of the block). A
        CCTL.IVALL: each time its thread (any thread, after a barrier of the block) has heard nothing since its last
        one, or loads nothing before its next one."""
        for events in self.events.values():
            open_: set[int] = set()
            heard: set[int] = set()
            for k, (what, lane, pc) in enumerate(events):
                if what in ("read", "write"):
                    open_.add(lane)
                elif what == "hear":
                    heard.add(lane)
                elif what == "meet" and heard:
                    heard.add(-1)
                elif what in ("fence", "drop"):
                    counts = bool(open_) if publishes else lane in heard or -1 in heard
                    if (
                        pc == fence
                        and counts
                        and _used(events[k + 1 :], lane, what, ("tell",) if publishes else ("read",))
                    ):
                        return False
                    (open_ if what == "fence" else heard).discard(lane)
        return True


#: The action, the lane (-1: a barrier of the block), the instruction.
Event = tuple[str, int, int]


def _used(events: list[Event], lane: int, end: str, wanted: tuple[str, ...]) -> bool:
    """Whether a wanted event comes before the lane's next fence of the kind; events of other lanes count after a
    barrier of the block."""
    met = False
    for what, who, _ in events:
        met = met or what == "meet"
        if what in wanted and (met or who == lane):
            return True
        if what == end and who == lane:
            return False
    return False


def conflict(first: Arr, second: Arr) -> bool:
    """Whether two warps touch a word, one from each list, one of them writing, not both by atomics."""
    if not len(first) or not len(second):
        return False
    common = np.intersect1d(first[:, 2], second[:, 2])
    if not len(common):
        return False
    a, b = first[np.isin(first[:, 2], common)], second[np.isin(second[:, 2], common)]
    by_word: dict[int, set[tuple[int, int, int]]] = {}
    for row in b:
        by_word.setdefault(int(row[2]), set()).add((int(row[1]), int(row[3]), int(row[4])))
    for row in np.unique(a[:, 1:5], axis=0):
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
