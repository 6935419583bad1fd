"""Remarks on spilled values: where each goes, and why."""

from __future__ import annotations

from collections.abc import Callable

from ir_format.typed import Final, TypeAlias
from stages.regalloc.live_ranges import Ranges
from stages.regalloc.spill import HOME, SpillState, cells_of, pressure, remat_source

#: Hears of a value: kind of the remark, its name, function, PTX line, message, PTX register.
Say: TypeAlias = Callable[[str, str, str, int, str, str], object]
_FILES: Final = {"R": "general", "UR": "uniform", "P": "predicate", "UP": "uniform predicate", "B": "barrier"}


def explain(ranges: Ranges, state: SpillState, victims: set[int], say: Say) -> None:
    """Tell of each value that is about to be spilled where it goes, and why."""
    func = ranges.func
    for vreg in sorted(victims):
        reg = func.vregs[vreg]
        touches = ranges.touches[vreg]
        if vreg in state.temps or not touches:
            continue
        load = pressure(ranges, reg.file)
        alive = [p for c in cells_of(ranges, vreg) for start, stop in ranges.segs[c] for p in range(start, stop)]
        worst = max(alive, key=lambda p: (load[p], -p), default=0)
        at = ranges.insts[min(worst >> 1, len(ranges.insts) - 1)].line
        wanted = f"{load[worst]} {_FILES.get(reg.file, reg.file)} registers are wanted"
        why = f"{wanted} at PTX line {at} and {state.room} are there; {len(touches)} instructions name it"
        line, name = ranges.insts[touches[0]].line, reg.name or "?"
        if remat_source(ranges, vreg) >= 0:
            say("passed", "Rematerialized", func.name, line, f"value made again where it is read: {why}", name)
        elif reg.file == "R":
            say("missed", "Spilled", func.name, line, f"value spilled to local memory: {why}", name)
        else:
            home = f"a {_FILES[HOME[reg.file]]} register"
            say("missed", "SpilledToFile", func.name, line, f"value kept in {home}: {why}", name)
