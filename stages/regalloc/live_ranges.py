"""Live ranges of one function over a linear numbering of its instructions.

Instruction number ``i`` (layout order) has two points: ``2*i``, where it reads, and ``2*i + 1``, where it writes. A
live range is a list of half-open segments of points, with holes. The last use of a value and a definition by the same
instruction do not overlap.

File ``M`` is memory: a spilled register is a vreg of file M, one cell per 4-byte slot, and a load or a store is a COPY.
So live ranges, coalescing and assignment of stack slots use the same code as those of registers.
"""

from __future__ import annotations

from bisect import bisect_right

from ir_format.flow import Cells, Cfg, Liveness, build_cfg, is_guarded, liveness, loop_depths, read_regs, written_regs
from ir_format.isa import facts
from ir_format.model import ZERO, Function, Inst, Reg
from ir_format.typed import Final, TypeAlias

Seg: TypeAlias = "tuple[int, int]"

# Operands that are read after the first results are written: a result must not share their registers. Guessed
# (multi-pass tensor operations); the accumulator may be in the result's register.
LATE_READ: Final = facts.having("latesrc")

MAX_DEPTH: Final = 6
LOOP_WEIGHT: Final = 8  # assumed trip count of a loop


_NONE: frozenset[int] = frozenset()


class Ranges:
    """``insts``: all instructions in layout order; ``block_of``: block position of each; ``starts``: first instruction
    of each block, plus the end. Per cell: ``segs`` (ascending), ``defs`` (point, source cell of a plain copy or -1).
    ``touches``: vreg -> instruction numbers that name it. ``weight``: vreg -> estimated dynamic number of accesses.
    ``calls``: numbers of CALL instructions."""

    __slots__ = (
        "block_of",
        "calls",
        "cells",
        "cfg",
        "defs",
        "depth",
        "func",
        "insts",
        "live",
        "segs",
        "starts",
        "touches",
        "weight",
    )

    def __init__(self, func: Function) -> None:
        self.func = func
        self.cfg: Cfg = build_cfg(func)
        fixed = [v for v, reg in enumerate(func.vregs) if reg.fixed >= 0]
        cells = Cells(func)
        assert cells.base is not None
        entry = [cells.base[v] + c for v in fixed for c in range(func.vregs[v].width)] if func.kind != "entry" else []
        self.live: Liveness = liveness(func, self.cfg, entry_cells=entry)
        self.cells: Cells = self.live.cells
        self.depth = loop_depths(self.cfg)
        self.insts: list[Inst] = []
        self.block_of: list[int] = []
        self.starts: list[int] = []
        for pos, block in enumerate(func.blocks):
            self.starts.append(len(self.insts))
            self.insts.extend(block.insts)
            self.block_of.extend([pos] * len(block.insts))
        self.starts.append(len(self.insts))
        count = self.cells.count
        self.segs: list[list[Seg]] = [[] for _ in range(count)]
        self.defs: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        self.touches: list[list[int]] = [[] for _ in func.vregs]
        self.weight: list[float] = [0.0] * len(func.vregs)
        self.calls: list[int] = []
        self._build()

    def _build(self) -> None:
        base = self.cells.base
        assert base is not None
        segs, defs, touches, weight, live = self.segs, self.defs, self.touches, self.weight, self.live
        end: dict[int, int] = {}  # cell -> end of its segment, whose start is not reached yet
        after = 0  # cells live at the start of the next block, as bits
        for pos in range(len(self.func.blocks) - 1, -1, -1):
            low, high = self.starts[pos], self.starts[pos + 1]
            factor = float(LOOP_WEIGHT ** min(self.depth[pos], MAX_DEPTH))
            before, out = live.live_in[pos], live.live_out[pos]
            # cells that live through blocks cost nothing there: only what differs at their borders is looked at
            for c in live.members(after & ~out):
                stop = end.pop(c, 0)
                if stop:
                    _push(segs[c], 2 * high, stop)
            for c in live.members(out & ~after):
                end[c] = 2 * high
            touched: dict[int, int] = {}  # cell -> earliest point in this block that names it
            for i in range(high - 1, low - 1, -1):
                inst = self.insts[i]
                write = 2 * i + 1
                seen: dict[int, int] = {}  # vreg -> words of it that the instruction names
                written = written_regs(inst)
                if written:
                    kills = not is_guarded(inst)
                    sources = self._copy_sources(inst) if inst.op == "COPY" else None
                    real = inst.op != "UNDEF"
                    for reg in written:
                        _, num, part, width, _, _ = reg
                        seen[num] = seen.get(num, 0) + width
                        cell = base[num] + part
                        for c in (cell,) if width == 1 else range(cell, cell + width):
                            if real:
                                defs[c].append((write, sources.get(c, -1) if sources else -1))
                            if kills:
                                stop = end.pop(c, 0)
                                if stop or real:
                                    if segs[c]:
                                        _push(segs[c], write, stop or write + 1)
                                    else:
                                        segs[c].append((write, stop or write + 1))
                                touched.pop(c, None)
                            else:
                                if c not in end:
                                    end[c] = write + 1
                                touched[c] = write
                late = self._late_cells(inst) if inst.op in LATE_READ else _NONE
                for _, num, part, width, _, _ in read_regs(inst):
                    seen[num] = seen.get(num, 0) + width
                    cell = base[num] + part
                    for c in (cell,) if width == 1 else range(cell, cell + width):
                        if c not in end:
                            end[c] = write + 1 if c in late else write
                        touched[c] = 2 * i
                for number, words in seen.items():
                    touches[number].append(i)
                    weight[number] += factor if words < 4 else factor * (words // 2)  # memory moves 64 bits at a time
                if inst.op == "CALL":
                    self.calls.append(i)
            for c in (*live.members(out & ~before), *(c for c in touched if not live.holds(before, c))):
                stop = end.pop(c, 0)
                start = touched.get(c, 2 * high)
                if start < stop:
                    _push(segs[c], start, stop)
            after = before
        for c, stop in end.items():
            if stop:
                _push(segs[c], 0, stop)
        for seg in segs:
            seg.reverse()
        for d in self.defs:
            d.reverse()
        for t in self.touches:
            t.reverse()
        self.calls.reverse()

    def _late_cells(self, inst: Inst) -> frozenset[int]:
        """Cells that an instruction reads after it was issued."""
        first = self.cells.first
        regs = [o for o in inst.srcs[:2] if type(o) is Reg and o.num != ZERO]
        return frozenset(c for o in regs for c in range(first(o), first(o) + o.width))

    def _copy_sources(self, inst: Inst) -> dict[int, int] | None:
        """Destination cell -> source cell of a COPY, where it moves bits unchanged."""
        dst, src = inst.dsts[0], inst.srcs[0]
        if (
            type(dst) is not Reg
            or type(src) is not Reg
            or not is_plain(src)
            or src.file != dst.file
            or src.width != dst.width
        ):
            return None
        a, b = self.cells.first(dst), self.cells.first(src)
        return {a + i: b + i for i in range(dst.width)}


def is_plain(operand: object) -> bool:
    """Whether a copy's source is an unmodified register (no RZ, no negation, no selected half)."""
    return type(operand) is Reg and operand.num != ZERO and not operand.flags and not operand.mod


def _push(segs: list[Seg], start: int, stop: int) -> None:
    """Add a segment that lies before all others (lists are built backwards); adjacent segments are joined."""
    if segs and segs[-1][0] <= stop:
        segs[-1] = (start, max(stop, segs[-1][1]))
    else:
        segs.append((start, stop))


def covers(segs: list[Seg], point: int) -> bool:
    """Whether the range contains the point."""
    at = bisect_right(segs, (point, 1 << 60)) - 1
    return at >= 0 and segs[at][1] > point


def union(a: list[Seg], b: list[Seg]) -> list[Seg]:
    """Union of two ranges."""
    if not a:
        return b
    if not b:
        return a
    out: list[Seg] = []
    for start, stop in sorted(a + b):
        if out and out[-1][1] >= start:
            if stop > out[-1][1]:
                out[-1] = (out[-1][0], stop)
        else:
            out.append((start, stop))
    return out


def overlap(a: list[Seg], b: list[Seg]) -> bool:
    """Whether two ranges share a point; linear in their lengths."""
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i][1] <= b[j][0]:
            i += 1
        elif b[j][1] <= a[i][0]:
            j += 1
        else:
            return True
    return False
