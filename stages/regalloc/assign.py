"""Assignment: give every group a base register, greedily, in order of priority. Where a register is taken is a bitset
over the points of the function, as a live range is."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from functools import reduce
from operator import and_

from ir_format.typed import Final
from stages.regalloc.coalescing import Group, Grouping, Masks
from stages.regalloc.live_ranges import Seg

#: The longest live range, in points, that may move. Chosen by estimated cycles: above 16, the results of long runs of
#: loads take the registers of their addresses.
SHORT_LIFE: Final = 16
#: Points of a row, and registers of a file, with room for what begins in the last one.
_ROW_BITS: Final = 12
_ROW: Final = 1 << _ROW_BITS
_REGISTERS: Final = 512
NO_LIMIT: Final = 1 << 30
#: Stack slots that are refused together, by the points at which all of them are taken.
_CHUNK: Final = 32


def masks_of(segs: Sequence[Seg]) -> Masks:
    """The points of a live range as bitsets, by row of points."""
    found: dict[int, int] = {}
    for start, stop in segs:
        row = start >> _ROW_BITS
        while stop > (row + 1) << _ROW_BITS:  # on into the next row
            found[row] = found.get(row, 0) | (1 << _ROW) - (1 << (start & _ROW - 1))
            row += 1
            start = row << _ROW_BITS
        found[row] = found.get(row, 0) | (1 << stop - (row << _ROW_BITS)) - (1 << (start & _ROW - 1))
    return list(found.items())


class Bank:
    """The physical registers of one file in preference order. What is taken of each is a bitset over the points, in
    rows of so many that a function of usual length has one: then a live range is compared with a register at once. File
    M (4-byte stack slots, lowest first) is a bank without an end."""

    __slots__ = ("_common", "_order", "_rows", "_usable", "file", "used")

    def __init__(self, file: str, order: Sequence[int], points: int) -> None:
        self.file = file
        self._order = order
        self._usable: Container[int] = order if isinstance(order, range) else frozenset(order)
        size = 0 if file == "M" else _REGISTERS
        self._rows = [[0] * size for _ in range((points >> _ROW_BITS) + 1)]
        self._common: dict[int, dict[int, int]] = {}  # of a chunk of slots, by row: where all of them are taken
        self.used: set[int] = set()  # registers that groups have taken

    def is_free(self, number: int, masks: Masks) -> bool:
        """Whether nothing takes the register in a live range."""
        rows = self._rows
        return not any([rows[row][number] & mask for row, mask in masks])

    def _fits(self, group: Group, base: int) -> bool:
        if base < group.floor or base % group.align != group.residue:
            return False
        banned, usable = group.banned, self._usable
        for slot, masks in enumerate(group.masks):
            number = base + slot
            if not masks:
                if number not in usable and group.width > 1 and number > 255:
                    return False
                continue
            if number not in usable or (banned and banned[slot] >> number & 1) or not self.is_free(number, masks):
                return False
        return True

    def _first(self, group: Group, order: Sequence[int]) -> int:
        """The first base in an order where the group fits, or -1. Most groups are one register wide and lie in one row:
        for them :meth:`_fits` is inlined."""
        if group.width != 1 or len(group.masks[0]) != 1:
            for base in order:
                if self._fits(group, base):
                    return base
            return -1
        row, mask = group.masks[0][0]
        taken = self._rows[row]
        banned = group.banned[0] if group.banned else 0
        if not banned and not group.floor and group.align == 1:
            for base in order:
                if not taken[base] & mask:
                    return base
            return -1
        floor, align, residue = group.floor, group.align, group.residue
        for base in order:
            if not taken[base] & mask and base >= floor and base % align == residue and not banned >> base & 1:
                return base
        return -1

    def _first_slot(self, group: Group) -> int:
        """The first stack slot where the group fits, or -1. Hundreds of values that live at once would otherwise be
        compared in pairs."""
        count = len(self._rows[0]) - group.width + 1
        lead = group.masks[0]
        if count <= 2 * _CHUNK:
            return self._first(group, range(count))
        for start in range(0, count, _CHUNK):
            common = self._common.setdefault(start // _CHUNK, {})
            for row, mask in lead:
                both = common.get(row)
                if both is None:
                    both = common[row] = reduce(and_, self._rows[row][start : start + _CHUNK])
                if both & mask:
                    break
            else:
                base = self._first(group, range(start, min(start + _CHUNK, count)))
                if base >= 0:
                    return base
        return -1

    def take(self, number: int, masks: Masks) -> None:
        """Take a register in a live range."""
        self.used.add(number)
        self._common.pop(number // _CHUNK, None)
        rows = self._rows
        for row, mask in masks:
            rows[row][number] |= mask

    def put(self, group: Group, base: int) -> None:
        """Place the group."""
        group.base = base
        if self.file == "M":
            self._grow(base + group.width)
        for slot, masks in enumerate(group.masks):
            if masks:
                self.take(base + slot, masks)

    def _grow(self, count: int) -> None:
        self._common.pop(len(self._rows[0]) // _CHUNK, None)
        for row in self._rows:
            row += [0] * (count - len(row))

    def place(self, group: Group, hints: Iterable[int], top: int) -> bool:
        """Place the group at one of ``hints`` or at the first base at which it fits; False where there is none or it
        would end after register ``top``."""
        if self.file == "M":  # after what is taken there is room for it at any alignment
            self._grow(max([len(self._rows[0]), *[h + group.width for h in hints]]) + group.align + group.width)
        for base in hints:
            if base >= 0 and self._fits(group, base):
                break
        else:
            base = self._first(group, self._order) if self.file != "M" else self._first_slot(group)
        if base < 0 or base + group.width > top:
            return False
        self.put(group, base)
        return True

    def spread(self, groups: Sequence[Group], all_below: bool) -> None:
        """Rotate short live ranges over the registers. A result then seldom has to wait for the readers of the previous
        value of its register, so the scheduler can reorder more. The bank holds all groups of its file, ``groups`` are
        those that may move. Only registers in use are taken (``all_below``: and those below them; all of the file for
        predicates, which cost no occupancy)."""
        used = max(self._order if self.file == "P" else self.used, default=-1) if all_below else -1
        order = [r for r in self._order if r in self.used or r <= used]
        self._usable = frozenset(order)
        count = len(order)
        index = {r: n for n, r in enumerate(order)}
        twice = order * 2
        rows = self._rows
        turn = 0
        for group in sorted([g for g in groups if g.width <= 2 and not g.hints], key=lambda g: g.start):
            if max([segs[-1][1] for segs in group.segs if segs]) - group.start > SHORT_LIFE:
                continue
            old = group.base
            for slot, masks in enumerate(group.masks):
                for row, mask in masks:
                    rows[row][old + slot] ^= mask
            base = self._first(group, twice[turn : turn + 8])  # enough for most
            if base < 0:
                base = self._first(group, twice[turn : turn + count])
            if base < 0:
                # Its old place is free, but begins with a register that nothing uses: the low half of the pair is never
                # written.
                self.put(group, old)
                continue
            self.put(group, base)
            turn = (index[base] + group.width) % count


def hinted(grouping: Grouping, group: Group) -> list[int]:
    """The bases at which copies would disappear, in the order of the copies."""
    found: list[int] = []
    for slot, cell in group.hints:
        other, other_slot = grouping.place(cell)
        if other.base >= 0 and other is not group:
            base = other.base + other_slot - slot
            if base not in found:
                found.append(base)
    return found


def assign(grouping: Grouping, bank: Bank, groups: Sequence[Group], below: int = 0) -> list[Group]:
    """Place ``groups`` in the given order. Returns those that found no register; their base is -1. With ``below``, it
    ends at the first group that needs so many registers."""
    for group in groups:
        group.base = -1
        if not group.masks:
            group.masks = [masks_of(segs) for segs in group.segs]
    if not below:
        return [g for g in groups if not bank.place(g, hinted(grouping, g) if g.hints else (), NO_LIMIT)]
    for group in groups:
        if not bank.place(group, hinted(grouping, group) if group.hints else (), below - 1):
            return [group]
    return []


def _by_start(group: Group) -> tuple[int, int, int]:
    return (group.start, -group.width, group.order)


def _by_width(group: Group) -> tuple[int, int, int]:
    return (-group.width, group.start, group.order)


def _by_length(group: Group) -> tuple[int, int, int, int]:
    return (-group.width, -sum(stop - start for segs in group.segs for start, stop in segs), group.start, group.order)


ORDERS: Final[tuple[Callable[[Group], tuple[int, ...]], ...]] = (_by_start, _by_width, _by_length)
