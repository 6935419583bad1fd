"""How many registers are alive inside a block."""

from __future__ import annotations

from typing import Final

from ir_format.flow import Liveness, is_guarded, read_regs, written_regs
from ir_format.isa import facts
from ir_format.model import Function, Inst

#: Registers that stay free: vectors need room to be aligned, order needs some for what is under way (guessed).
SHORT: Final = 20
#: Instructions that may be done again or later for a register, and what each costs.
CHEAP: Final = facts.costs("remat")
#: What a block may need beyond what is alive at its ends: more of it is order's business, which follows.
_INNER: Final = 80


class Alive:
    """What is alive while a block is walked from its end to its start. ``now``: cells; ``count``: how many of each
    register file."""

    __slots__ = ("_first", "count", "now")

    def __init__(self, f: Function, live: Liveness, pos: int) -> None:
        owner, vregs = live.cells.owner, f.vregs
        self._first = live.cells.first
        self.now = live.out_cells(pos)
        self.count = {"R": 0, "P": 0, "UR": 0, "UP": 0, "B": 0}
        for c in self.now:
            self.count[vregs[owner[c][0]].file] += 1

    def step(self, inst: Inst) -> None:
        """From behind the instruction to in front of it."""
        now, count, first = self.now, self.count, self._first
        if not is_guarded(inst):
            for r in written_regs(inst):
                cell = first(r)
                for c in range(cell, cell + r.width):
                    if c in now:
                        now.discard(c)
                        count[r.file] -= 1
        for r in read_regs(inst):
            cell = first(r)
            for c in range(cell, cell + r.width):
                if c not in now:
                    now.add(c)
                    count[r.file] += 1


def shortages(f: Function, live: Liveness, room: int) -> dict[int, int]:
    """Block position -> words of file R too many, where the blocks of a function have ``room`` for so many."""
    words = 0
    owner = live.cells.owner
    for cell, bit in live.bit.items():
        if f.vregs[owner[cell][0]].file == "R":
            words |= 1 << bit
    need: dict[int, int] = {}
    for pos, block in enumerate(f.blocks):
        ends = max((live.live_in[pos] & words).bit_count(), (live.live_out[pos] & words).bit_count())
        made = 0
        inner = _INNER
        for i in block.insts:
            for r in written_regs(i):
                if r.file == "R":
                    made += r.width
                    if f.vregs[r.num].width > inner:
                        inner = f.vregs[r.num].width  # an operand is alive as a whole
        if ends + min(made, inner) <= room:
            continue
        over = ends + min(max(_peak(live, f, pos) - ends, 0), inner) - room
        if over > 0:
            need[pos] = over
    return need


def _peak(live: Liveness, f: Function, pos: int) -> int:
    """How many of the cells are words of file R where most cells of a block are alive (behind some instruction; the
    last such place)."""
    alive = Alive(f, live, pos)
    best = peak = 0
    for inst in reversed(f.blocks[pos].insts):
        if len(alive.now) > best:
            best, peak = len(alive.now), alive.count["R"]
        alive.step(inst)
    return peak
