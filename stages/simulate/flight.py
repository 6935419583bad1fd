"""Operations in flight in the strict machine, other than register results: warpgroup products, bulk copies.

Each takes effect as late as it may: a product when a wait for its group asks for it, a copy to shared memory when the
program has tested its barrier object once in vain, a copy from shared memory when a wait for its group asks for it. A
program that does not wait sees the old values; one that changes a source still in use changes the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stages.simulate.arr import Arr
from stages.simulate.state import View


class _Operation:
    """A product in flight: for each warp (by its number in the launch) its operands at issue and its group."""

    __slots__ = ("made", "pc", "warps")

    def __init__(self, made: Any, pc: int) -> None:
        self.made, self.pc = made, pc
        self.warps: dict[int, tuple[Arr, int]] = {}


class Flight:
    """Products in flight. Until a wait, no instruction may touch a register that they read or write; one that does is
    reported."""

    def __init__(self, note: Callable[[str, int, int, int], None]) -> None:
        """``note(what, product, instruction, register)``: a register was touched while a product that uses it was in
        flight."""
        self.note = note
        self.under_way: list[_Operation] = []
        self.groups: dict[int, int] = {}  # groups that a warp has committed
        # by warp: registers written since its last ARRIVE, and by which instruction
        self.fresh: dict[int, dict[int, int]] = {}
        self.seen = False  # there was a product: from here on every use of a register is followed

    def start(self, v: View, warps: Arr, issued: Arr, made: Any, pc: int) -> None:
        """Products are issued."""
        op = _Operation(made, pc)
        first = v.lo // 32
        busy = {*made.fragment, *made.added, *made.into}
        for i, warp in enumerate(warps):
            number = first + int(warp)
            for row, writer in self.fresh.get(number, {}).items():
                if row in busy:
                    self.note("not handed over to", writer, pc, row)
            op.warps[number] = issued[i], self.groups.get(number, 0)
            if made.ends:
                self.groups[number] = self.groups.get(number, 0) + 1
        self.under_way.append(op)
        self.seen = True

    def arrive(self, v: View, warps: Arr) -> None:
        """ARRIVE: the tensor cores may read what the warps wrote."""
        for warp in warps:
            self.fresh.pop(v.lo // 32 + int(warp), None)

    def finish(self, v: View, warps: Arr, left: int) -> None:
        """The warps wait until only their ``left`` youngest groups may be in flight."""
        first = v.lo // 32
        numbers = {first + int(w) for w in warps}
        for op in self.under_way:
            done = sorted(
                w for w, (_, group) in op.warps.items() if w in numbers and group < self.groups.get(w, 0) - left
            )
            if done:
                op.made.apply(v, np.array(done) - first, np.stack([op.warps.pop(w)[0] for w in done]))
        self.under_way = [op for op in self.under_way if op.warps]

    def touches(self, v: View, m: Arr | None, reads: list[int], writes: list[int], pc: int) -> None:
        """An instruction that is no product reads and writes vector registers."""
        first = v.lo // 32
        some = range(v.n // 32) if m is None else np.flatnonzero(m.reshape(-1, 32).any(axis=1))
        numbers = {first + int(w) for w in some}
        for op in self.under_way:
            if numbers.isdisjoint(op.warps):
                continue
            for row in reads:
                if row in op.made.into:
                    self.note("in flight, read by", op.pc, pc, row)
            for row in writes:
                if row in op.made.into or row in op.made.fragment or row in op.made.added:
                    self.note("in flight, written by", op.pc, pc, row)
        for row in writes:
            for number in numbers:
                self.fresh.setdefault(number, {})[row] = pc


class Copies:
    """Bulk copies in flight: to shared memory, by the barrier object at which they arrive; from shared
    memory, by the warp that started them, in groups."""

    def __init__(self) -> None:
        self.arriving: dict[int, list[Callable[[], None]]] = {}
        self.asked: set[int] = set()
        self.leaving: dict[int, list[tuple[int, Callable[[], None]]]] = {}
        self.groups: dict[int, int] = {}

    def arrive(self, barrier: int, deliver: Callable[[], None]) -> None:
        """A copy whose bytes arrive at the barrier object at this address of shared memory."""
        self.arriving.setdefault(barrier, []).append(deliver)

    def ask(self, barriers: Arr) -> None:
        """The program tests these objects: what they wait for arrives in time for the second test."""
        for at in np.unique(barriers) if self.arriving else ():
            if at in self.asked:
                self.asked.discard(int(at))
                for deliver in self.arriving.pop(int(at), ()):
                    deliver()
            elif at in self.arriving:
                self.asked.add(int(at))

    def leave(self, warp: int, act: Callable[[], None]) -> None:
        """A copy from shared memory by a warp."""
        self.leaving.setdefault(warp, []).append((self.groups.get(warp, 0), act))

    def commit(self, warps: Arr) -> None:
        """The warps commit a group."""
        for warp in warps:
            self.groups[int(warp)] = self.groups.get(int(warp), 0) + 1

    def finish(self, warps: Arr, left: int) -> None:
        """The warps wait until only their ``left`` youngest groups are in flight."""
        for warp in warps:
            held = self.leaving.get(int(warp))
            if held:
                last = self.groups.get(int(warp), 0) - left
                self.leaving[int(warp)] = [x for x in held if x[0] >= last]
                for group, act in held:
                    if group < last:
                        act()

    def end(self) -> None:
        """The launch ends: the remaining copies from shared memory are made."""
        for held in self.leaving.values():
            for _, act in held:
                act()
        self.leaving.clear()
