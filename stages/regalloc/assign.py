"""Assignment: give every group a base register, greedily, in order of priority. Each physical register is a list of
taken segments."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Final

from stages.regalloc.coalescing import Group, Grouping
from stages.regalloc.live_ranges import Seg

#: The longest live range, in points, that may move. Chosen by estimated cycles: above 16, the results of long runs of
#: loads take the registers of their addresses.
SHORT_LIFE: Final = 16


class Track:
    """The segments in which one physical register is taken, as parallel sorted lists."""

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

    def release(self, segs: Iterable[Seg]) -> None:
        """Undo :meth:`take` of segments that overlap no others."""
        starts, stops = self.starts, self.stops
        for start, _ in segs:
            at = bisect_left(starts, start)
            del starts[at], stops[at]

    def free_at(self, start: int, stop: int) -> bool:
        """Whether the register is free over [start, stop)."""
        return self.is_free(((start, stop),))


class Bank:
    """The physical registers of one file in preference order."""

    __slots__ = ("file", "order", "tracks", "usable")

    def __init__(self, file: str, order: Sequence[int]) -> None:
        self.file = file
        self.order = order
        self.usable: Container[int] = order if isinstance(order, range) else frozenset(order)
        self.tracks: dict[int, Track] = {}

    def track(self, number: int) -> Track:
        """The track of a register, created on demand."""
        got = self.tracks.get(number)
        if got is None:
            got = self.tracks[number] = Track()
        return got


class Memory(Bank):
    """File M: 4-byte stack slots without limit, lowest first."""

    __slots__ = ()

    def __init__(self, most: int) -> None:
        super().__init__("M", range(most))


def fits(bank: Bank, group: Group, base: int) -> bool:
    """Whether the group fits at ``base``."""
    if base < group.floor or base % group.align != group.residue:
        return False
    usable, banned, segs, tracks = bank.usable, group.banned, group.segs, bank.tracks
    for slot in range(group.width):
        number = base + slot
        if not segs[slot]:
            if number not in usable and group.width > 1 and number > 255:
                return False
            continue
        if number not in usable or (banned and banned[slot] >> number & 1):
            return False
        track = tracks.get(number)
        if track is not None and not track.is_free(segs[slot]):
            return False
    return True


def _first(bank: Bank, group: Group) -> int:
    """The first base in the bank's order where the group fits, or -1. Most groups are one register wide: for them
    :func:`fits` is inlined."""
    if group.width != 1 or not group.segs[0]:
        for base in bank.order:
            if fits(bank, group, base):
                return base
        return -1
    segs, tracks = group.segs[0], bank.tracks
    floor, align, residue = group.floor, group.align, group.residue
    banned = group.banned[0] if group.banned else 0
    for base in bank.order:
        if base < floor or base % align != residue or banned >> base & 1:
            continue
        track = tracks.get(base)
        if track is None:
            return base
        starts, stops = track.starts, track.stops
        count = len(starts)
        for start, stop in segs:
            at = bisect_right(starts, start)
            if (at and stops[at - 1] > start) or (at < count and starts[at] < stop):
                break
        else:
            return base
    return -1


def put(bank: Bank, group: Group, base: int) -> None:
    """Place the group."""
    group.base = base
    for slot in range(group.width):
        if group.segs[slot]:
            bank.track(base + slot).take(group.segs[slot])


def take_out(bank: Bank, group: Group) -> None:
    """Undo :func:`put`."""
    for slot in range(group.width):
        if group.segs[slot]:
            bank.track(group.base + slot).release(group.segs[slot])


def spread(bank: Bank, groups: Sequence[Group], all_below: bool) -> None:
    """Rotate short live ranges over the registers. A result then seldom has to wait for the readers of the previous
    value of its register, so the scheduler can reorder more. ``bank`` holds all groups of its file, and ``groups``
    those that may move. Only registers in use are taken (``all_below``: and those below them)."""
    used = max(bank.tracks, default=-1) if all_below else -1
    order = [r for r in bank.order if r in bank.tracks or r <= used]
    count = len(order)
    index = {r: n for n, r in enumerate(order)}
    twice = order * 2
    bank.usable = frozenset(order)
    turn = 0
    for group in sorted([g for g in groups if g.width <= 2 and not g.hints], key=lambda g: g.start):
        if max([segs[-1][1] for segs in group.segs if segs]) - group.start > SHORT_LIFE:
            continue
        old = group.base
        take_out(bank, group)
        bank.order = twice[turn : turn + 8]  # enough for most
        base = _first(bank, group)
        if base < 0:
            bank.order = twice[turn : turn + count]
            base = _first(bank, group)
        if base < 0:
            # Its old place is free, but begins with a register that nothing uses: the low half of the pair is never
            # written.
            put(bank, group, old)
            continue
        put(bank, group, base)
        turn = (index[base] + group.width) % count


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


def assign(grouping: Grouping, bank: Bank, groups: Sequence[Group]) -> list[Group]:
    """Place ``groups`` in the given order. Returns those that found no register; their base is -1."""
    failed: list[Group] = []
    for group in groups:
        group.base = -1
    for group in groups:
        base = -1
        for candidate in hinted(grouping, group) if group.hints else ():
            if candidate in bank.usable and fits(bank, group, candidate):
                base = candidate
                break
        else:
            base = _first(bank, group)
        if base < 0:
            failed.append(group)
        else:
            put(bank, group, base)
    return failed


def _by_start(group: Group) -> tuple[int, int, int]:
    return (group.start, -group.width, group.order)


def _by_width(group: Group) -> tuple[int, int, int]:
    return (-group.width, group.start, group.order)


def _by_length(group: Group) -> tuple[int, int, int, int]:
    return (-group.width, -sum(stop - start for segs in group.segs for start, stop in segs), group.start, group.order)


ORDERS: Final[tuple[Callable[[Group], tuple[int, ...]], ...]] = (_by_start, _by_width, _by_length)
