"""Coalescing: two vregs that a copy connects share a register if they do not interfere.

A *group* is a set of vregs at fixed offsets of one block of ``width`` registers: `COPY v5[0] <- v3` puts v3 at the
offset of v5's low half. Members of a slot may be live together as long as they hold the same value. So a definition
interferes with another member that is live after it, unless it is a copy from the same slot: every live member of a
slot holds the slot's value, and a copy of it changes nothing.
"""

from __future__ import annotations

from collections.abc import Set

from ir_format.model import ZERO, Inst, Reg
from ir_format.typed import TypeAlias
from stages.analysis.register_limits import FIRST_PRODUCT_REG
from stages.analysis.warpgroups import PRODUCTS
from stages.regalloc.live_ranges import Ranges, Seg, covers, is_plain, union

MAX_SEGMENTS = 4000  # a group with more segments does not grow, so that coalescing stays linear


#: Rows of points, and the points of a live range in each as a bitset (:mod:`stages.regalloc.assign`).
Masks: TypeAlias = "list[tuple[int, int]]"


class Group:
    """Vregs that are allocated together. ``members`` holds (vreg, offset). Its first register satisfies ``base % align
    == residue`` and ``base >= floor``. Each slot has ``segs`` (live range), ``defs``, and ``banned`` (bit set of
    physical registers that a call inside the range destroys). ``hints`` holds (slot, other cell) of copies that were
    not coalesced; ``masks`` the live range once more, for assignment."""

    __slots__ = (
        "align",
        "banned",
        "base",
        "defs",
        "file",
        "fixed",
        "floor",
        "hints",
        "masks",
        "members",
        "residue",
        "segs",
        "start",
        "weight",
        "width",
    )

    def __init__(self, file: str, vreg: int, width: int, align: int, fixed: int, weight: float) -> None:
        self.file = file
        self.members: list[tuple[int, int]] = [(vreg, 0)]
        self.width = width
        self.align = align
        self.residue = 0
        self.floor = 0
        self.fixed = fixed
        self.weight = weight
        self.base = fixed
        self.segs: list[list[Seg]] = []
        self.defs: list[list[tuple[int, int]]] = []
        self.banned: list[int] = []
        self.masks: list[Masks] = []
        self.hints: list[tuple[int, int]] = []
        self.start = 0

    @property
    def order(self) -> int:
        """Lowest member: a stable name."""
        return self.members[0][0]


class Grouping:
    """Groups of a function; ``of``: vreg -> (group, offset)."""

    __slots__ = ("_owner", "groups", "of", "ranges")

    def __init__(self, ranges: Ranges) -> None:
        self.ranges = ranges
        self._owner = ranges.cells.owner
        self.of: list[tuple[Group, int]] = []
        base = ranges.cells.base
        assert base is not None
        absent = (Group("", -1, 1, 1, -1, 0.0), 0)  # for registers that no instruction names
        touches = ranges.touches
        for number, vreg in enumerate(ranges.func.vregs):
            if not touches[number]:
                self.of.append(absent)
                continue
            group = Group(vreg.file, number, vreg.width, vreg.align, vreg.fixed, ranges.weight[number])
            cell = base[number]
            group.segs = [ranges.segs[cell + i] for i in range(vreg.width)]
            group.defs = [ranges.defs[cell + i] for i in range(vreg.width)]
            self.of.append((group, 0))
        self.groups: list[Group] = []  # filled by :meth:`finish`
        for inst in ranges.insts:
            if inst.op in PRODUCTS:
                for operand in (*inst.dsts, *inst.srcs):
                    if type(operand) is Reg and operand.file == "R" and operand.num != ZERO:
                        self.of[operand.num][0].floor = FIRST_PRODUCT_REG

    def place(self, cell: int) -> tuple[Group, int]:
        """(group, slot) of a cell."""
        vreg, part = self._owner[cell]
        group, offset = self.of[vreg]
        return group, offset + part

    def finish(self) -> None:
        """Drop merged and unused groups and fill in the first point of each."""
        alive: dict[int, Group] = {}
        for group, _ in self.of:
            if id(group) not in alive and any(group.segs):
                group.start = min(s[0][0] for s in group.segs if s)
                alive[id(group)] = group
        self.groups = list(alive.values())


def copy_pairs(inst: Inst) -> list[tuple[Reg, Reg]]:
    """(destination, source) registers of a COPY or PCOPY that move bits unchanged inside one file."""
    if inst.op not in ("COPY", "PCOPY"):
        return []
    found: list[tuple[Reg, Reg]] = []
    for dst, src in zip(inst.dsts, inst.srcs):
        if (
            type(dst) is Reg
            and type(src) is Reg
            and is_plain(dst)
            and is_plain(src)
            and dst.file == src.file
            and dst.width == src.width
        ):
            found.append((dst, src))
    return found


def coalesce(grouping: Grouping, files: frozenset[str], apart: Set[int] = frozenset()) -> int:
    """Coalesce groups along copies, the most frequent copies first. A copy that can't be coalesced becomes a hint, and
    so does a copy between registers of ``apart``, which were one value. Returns the number of coalesced copies."""
    ranges = grouping.ranges
    ordered = sorted(
        ((-ranges.depth[ranges.block_of[i]], i) for i, inst in enumerate(ranges.insts) if inst.op in ("COPY", "PCOPY")),
    )
    merged = 0
    for _, i in ordered:
        for dst, src in copy_pairs(ranges.insts[i]):
            split = dst.num in apart and src.num in apart
            if dst.file in files and not split and _try_merge(grouping, dst, src):
                merged += 1
            else:
                add_hint(grouping, dst, src)
    return merged


def hints_only(grouping: Grouping) -> None:
    """Record every copy as a hint and coalesce nothing."""
    for inst in grouping.ranges.insts:
        for dst, src in copy_pairs(inst):
            add_hint(grouping, dst, src)


def add_hint(grouping: Grouping, dst: Reg, src: Reg) -> None:
    """Prefer the same register for the source and the destination of a copy."""
    first = grouping.ranges.cells.first
    a, slot_a = grouping.place(first(dst))
    b, slot_b = grouping.place(first(src))
    if a is not b:
        a.hints.append((slot_a, first(src)))
        b.hints.append((slot_b, first(dst)))


def _try_merge(grouping: Grouping, dst: Reg, src: Reg) -> bool:
    a, a_offset = grouping.of[dst.num]
    b, b_offset = grouping.of[src.num]
    shift = (a_offset + dst.sub) - (b_offset + src.sub)  # offset of b inside a
    if a is b:
        return shift == 0
    if a.fixed >= 0 or b.fixed >= 0:
        return False
    low, high = min(0, shift), max(a.width, shift + b.width)
    if high - low > max(a.width, b.width):
        return False
    if sum(map(len, a.segs)) + sum(map(len, b.segs)) > MAX_SEGMENTS:
        return False
    # The base of a is x; the merged base is x + low. Both alignments must agree.
    small, large = ((a.residue, a.align), ((b.residue - shift) % b.align, b.align))
    if small[1] > large[1]:
        small, large = large, small
    if large[0] % small[1] != small[0] % small[1]:
        return False
    for slot in range(max(0, shift), min(a.width, shift + b.width)):
        if _interferes(grouping, a, slot, b, slot - shift) or _interferes(grouping, b, slot - shift, a, slot):
            return False
    segs: list[list[Seg]] = []
    defs: list[list[tuple[int, int]]] = []
    for slot in range(low, high):
        mine = a.segs[slot] if 0 <= slot < a.width else []
        other = b.segs[slot - shift] if 0 <= slot - shift < b.width else []
        segs.append(union(mine, other))
        my_defs = a.defs[slot] if 0 <= slot < a.width else []
        other_defs = b.defs[slot - shift] if 0 <= slot - shift < b.width else []
        defs.append(sorted(my_defs + other_defs) if my_defs and other_defs else my_defs or other_defs)
    a.segs, a.defs = segs, defs
    a.width = high - low
    a.floor = max(0, max(a.floor, b.floor - shift) + low)
    a.align = large[1]
    a.residue = (large[0] + low) % a.align
    a.members = sorted([(v, o - low) for v, o in a.members] + [(v, o + shift - low) for v, o in b.members])
    a.weight += b.weight
    a.hints = [(s - low, c) for s, c in a.hints] + [(s + shift - low, c) for s, c in b.hints]
    for v, o in a.members:
        grouping.of[v] = (a, o)
    return True


def _interferes(grouping: Grouping, a: Group, slot_a: int, b: Group, slot_b: int) -> bool:
    """Interference: whether a definition in the slot of ``a`` destroys a different value that is live in the slot of
    ``b``."""
    segs = b.segs[slot_b]
    if not segs:
        return False
    for point, source in a.defs[slot_a]:
        if covers(segs, point):
            if source >= 0:
                group, slot = grouping.place(source)
                if group is b and slot == slot_b:
                    continue
            return True
    return False
