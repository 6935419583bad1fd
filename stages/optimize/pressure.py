"""How many registers are alive inside a block."""

from __future__ import annotations

from ir_format.flow import Liveness, is_guarded, read_regs, written_regs
from ir_format.model import Function, Inst


class Alive:
    """What is alive while a block is walked from its end to its start. ``now``: cells; ``count``: how many of each register file."""

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
