"""Assignment: give every group a base register, greedily, in order of priority. Where registers are taken is a bitset
over the registers for each point (:mod:`stages.regalloc.taken`), so that all bases are tried at once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from ir_format.target import REG_CEILING
from stages.regalloc.coalescing import Group, Grouping
from stages.regalloc.live_ranges import Seg
from stages.regalloc.taken import Taken

#: The longest live range, in points, that may move. Chosen by estimated cycles: above 16, the results of long runs of
#: loads take the registers of their addresses.
SHORT_LIFE: Final = 16


class Track:
    """The segments in which one stack slot is taken, as parallel sorted lists."""

    __slots__ = ("starts", "stops")

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.stops: list[int] = []

    def is_free(self, segs: Sequence[Seg]) -> bool:
        """Whether no segment overlaps a taken one."""
        starts, stops = self.starts, self.stops
        if not starts:
            return True
        count = len(starts)
        for start, stop in segs:
            at = bisect_right(starts, start)
            if at and stops[at - 1] > start:
                return False
            if at < count and starts[at] < stop:
                return False
        return True

    def take(self, segs: Iterable[Seg]) -> None:
        """Take the segments. They must be free (fixed registers may share: overlaps merge)."""
        starts, stops = self.starts, self.stops
        for start, stop in segs:
            at = bisect_left(starts, start)
            starts.insert(at, start)
            stops.insert(at, stop)


class Bank:
    """The physical registers of one file in preference order, for a function of so many points."""

    __slots__ = ("_runs", "_top", "_usable", "file", "order", "taken", "used")

    def __init__(self, file: str, order: Sequence[int], points: int) -> None:
        self.file = file
        self.taken = Taken(points)
        self.used = 0  # registers that groups have taken, as a bitset
        self._set_order(order)

    def _set_order(self, order: Sequence[int]) -> None:
        self.order = order
        self._runs: list[int] = []  # the registers as bitsets, each of a part of the order in which numbers ascend
        last = 1 << 60
        for number in order:
            if number < last:
                self._runs.append(0)
            self._runs[-1] |= 1 << number
            last = number
        self._usable = sum(self._runs)
        self._top = self._usable | ((1 << 256) - 1)  # a part of a group that is never alive may lie in these

    def free(self, group: Group) -> int:
        """The bases at which the group fits, as a bitset."""
        segs, banned, usable = group.segs, group.banned, self._usable
        found = usable
        for slot in range(group.width):
            if segs[slot]:
                taken = self.taken.within(segs[slot])
                if banned:
                    taken |= banned[slot]
                found &= (usable & ~taken) >> slot
            elif slot:
                found &= self._top >> slot
        return found & _bases(group.floor, group.align, group.residue)

    def first(self, found: int) -> int:
        """The first of the registers of a bitset, -1 if it is empty."""
        for run in self._runs:
            some = found & run
            if some:
                return (some & -some).bit_length() - 1
        return -1

    def put(self, group: Group, base: int) -> None:
        """Place the group."""
        group.base = base
        for slot in range(group.width):
            if group.segs[slot]:
                self.used |= 1 << base + slot
                self.taken.take(base + slot, group.segs[slot])

    def place(self, group: Group, hints: Iterable[int]) -> bool:
        """Place the group at one of ``hints`` or at the first base at which it fits."""
        free = self.free(group)
        for base in hints:
            if base >= 0 and free >> base & 1:
                break
        else:
            base = self.first(free)
            if base < 0:
                return False
        self.put(group, base)
        return True

    def spread(self, groups: Sequence[Group], all_below: bool) -> None:
        """Rotate short live ranges over the registers. A result then seldom has to wait for the readers of the previous
        value of its register, so the scheduler can reorder more. The bank holds all groups of its file, ``groups`` are
        those that may move. Only registers in use are taken (``all_below``: and those below them)."""
        used = self.used.bit_length() - 1 if all_below else -1
        self._set_order([r for r in self.order if self.used >> r & 1 or r <= used])
        order, taken = self.order, self.taken
        count = len(order)
        index = {r: n for n, r in enumerate(order)}
        turn = 0
        for group in sorted([g for g in groups if g.width <= 2 and not g.hints], key=lambda g: g.start):
            if max([segs[-1][1] for segs in group.segs if segs]) - group.start > SHORT_LIFE:
                continue
            old = group.base
            for slot in range(group.width):
                if group.segs[slot]:
                    taken.release(old + slot, group.segs[slot])
            base = self._first_from(turn, self.free(group))
            if base < 0:
                # Its old place is free, but begins with a register that nothing uses: the low half of the pair is never
                # written.
                self.put(group, old)
                continue
            self.put(group, base)
            turn = (index[base] + group.width) % count

    def _first_from(self, turn: int, found: int) -> int:
        """The first of the registers of a bitset in an order that begins with the register at ``turn``."""
        if not found:
            return -1
        number = self.order[turn]
        runs = self._runs
        at = next(n for n, run in enumerate(runs) if run >> number & 1)
        below = (1 << number) - 1
        for run in (runs[at] & ~below, *runs[at + 1 :], *runs[:at], runs[at] & below):
            some = found & run
            if some:
                return (some & -some).bit_length() - 1
        return -1


_found_bases: Final[dict[tuple[int, int, int], int]] = {}


def _bases(floor: int, align: int, residue: int) -> int:
    """The register numbers that may be a group's base, as a bitset."""
    found = _found_bases.get((floor, align, residue))
    if found is None:
        found = sum([1 << n for n in range(residue, REG_CEILING + 1, align) if n >= floor])
        _found_bases[floor, align, residue] = found
    return found


class Memory:
    """File M: 4-byte stack slots, lowest first. There may be very many, most of them taken all the time: each has a
    list of segments of its own."""

    __slots__ = ("most", "tracks")

    def __init__(self, most: int) -> None:
        self.most = most
        self.tracks: list[Track] = []

    def _fits(self, group: Group, base: int) -> bool:
        if base < group.floor or base % group.align != group.residue or base + group.width > self.most:
            return False
        tracks = self.tracks[base : base + group.width]
        return all([not segs or track.is_free(segs) for track, segs in zip(tracks, group.segs, strict=False)])

    def place(self, group: Group, hints: Iterable[int]) -> bool:
        """Place the group at one of ``hints`` or at the first base at which it fits."""
        for base in hints:
            if base >= 0 and self._fits(group, base):
                break
        else:
            base = group.residue
            while not self._fits(group, base):
                base += group.align
                if base + group.width > self.most:
                    return False
        group.base = base
        while len(self.tracks) < base + group.width:
            self.tracks.append(Track())
        for slot, segs in enumerate(group.segs):
            if segs:
                self.tracks[base + slot].take(segs)
        return True


def hinted(grouping: Grouping, group: Group) -> list[int]:
    """The bases at which copies would vanish, in the order of the copies."""
    found: list[int] = []
    for slot, cell in group.hints:
        other, other_slot = grouping.place(cell)
        if other.base >= 0 and other is not group:
            base = other.base + other_slot - slot
            if base not in found:
                found.append(base)
    return found


def assign(grouping: Grouping, bank: Bank | Memory, groups: Sequence[Group]) -> list[Group]:
    """Place ``groups`` in the given order. Returns those that found no register; their base is -1."""
    for group in groups:
        group.base = -1
    return [g for g in groups if not bank.place(g, hinted(grouping, g) if g.hints else ())]


def _by_start(group: Group) -> tuple[int, int, int]:
    return (group.start, -group.width, group.order)


def _by_width(group: Group) -> tuple[int, int, int]:
    return (-group.width, group.start, group.order)


def _by_length(group: Group) -> tuple[int, int, int, int]:
    return (-group.width, -sum(stop - start for segs in group.segs for start, stop in segs), group.start, group.order)


ORDERS: Final[tuple[Callable[[Group], tuple[int, ...]], ...]] = (_by_start, _by_width, _by_length)
