"""Register pressure inside a block."""

from __future__ import annotations

from collections.abc import Sequence

from ir_format.flow import Liveness, is_guarded, read_regs, written_regs
from ir_format.isa import facts
from ir_format.model import ZERO, Function, Inst, Reg
from ir_format.typed import Final

#: Registers that stay free: vectors need room to be aligned, list scheduling needs some for results in flight
#: (guessed).
SHORT: Final = 20
#: Instructions that may be done again or later for a register, and what each costs.
CHEAP: Final = facts.costs("remat")
#: Registers that a block may need beyond those live at its ends: list scheduling, which follows, handles more.
_INNER: Final = 80


class Alive:
    """What is live while a block is walked from its end to its start. ``now``: cells; ``count``: how many of each
    register file."""

    __slots__ = ("_first", "count", "now")

    def __init__(self, f: Function, live: Liveness, pos: int) -> None:
        files = live.cells.files
        self._first = live.cells.first
        self.now = live.out_cells(pos)
        self.count = {"R": 0, "P": 0, "UR": 0, "UP": 0, "B": 0}
        for c in self.now:
            self.count[files[c]] += 1

    def step(self, inst: Inst) -> None:
        """From after the instruction to before it."""
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


def room_for(count: int) -> int:
    """Live values up to which code fits into so many registers."""
    return count - min(SHORT, count // 4)


def shortages(f: Function, live: Liveness, rooms: Sequence[int]) -> dict[int, int]:
    """Block position -> words of file R too many, where each block of a function has room for this many."""
    words = 0
    files = live.cells.files
    for cell, bit in live.bit.items():
        if files[cell] == "R":
            words |= 1 << bit
    wide = bytearray(v.width > _INNER for v in f.vregs)
    need: dict[int, int] = {}
    for pos, block in enumerate(f.blocks):
        ends = max((live.live_in[pos] & words).bit_count(), (live.live_out[pos] & words).bit_count())
        made = 0
        inner = _INNER
        for i in block.insts:
            for r in i.dsts if not i.defs else written_regs(i):
                if type(r) is Reg and r.num != ZERO and r.file == "R":
                    made += r.width
                    if wide[r.num] and f.vregs[r.num].width > inner:
                        inner = f.vregs[r.num].width  # an operand is live as a whole
        room = rooms[pos]
        if ends + min(made, inner) <= room:
            continue
        over = ends + min(max(_peak(live, f, pos) - ends, 0), inner) - room
        if over > 0:
            need[pos] = over
    return need


def _peak(live: Liveness, f: Function, pos: int) -> int:
    """How many of the cells are words of file R where most cells of a block are live (after some instruction; the
    last such place)."""
    now = live.out_cells(pos)
    files, base = live.cells.files, live.cells.base
    assert base is not None
    count = sum([files[c] == "R" for c in now])
    best = peak = 0
    for inst in reversed(f.blocks[pos].insts):
        if len(now) > best:
            best, peak = len(now), count
        if not is_guarded(inst):
            for r in written_regs(inst):
                cell = base[r.num] + r.sub
                for c in (cell,) if r.width == 1 else range(cell, cell + r.width):
                    if c in now:
                        now.discard(c)
                        count -= r.file == "R"
        for r in read_regs(inst):
            cell = base[r.num] + r.sub
            for c in (cell,) if r.width == 1 else range(cell, cell + r.width):
                if c not in now:
                    now.add(c)
                    count += r.file == "R"
    return peak
