"""The serial control rule: correct for every program, fast for none.

ptxas follows this rule at -O0 (measured C5: 11 targets, every opcode tabulated). Every instruction stalls 15 cycles and
waits for scoreboards 0 and 1. An instruction with a late result raises scoreboard 0; one that reads its sources late
raises scoreboard 1. ERRBAR, and an instruction whose result takes more than 15 cycles without a scoreboard (tensor
instructions), drain the pipe: stall 0. List scheduling is compared with this rule.
"""

from __future__ import annotations

from ir_format.hazards import file_of, hazards
from ir_format.hazards.model import Hazards
from ir_format.model import Ctl, Inst, Reg, Unit

_SERIAL = {"": (7, 7), "W": (0, 7), "R": (7, 1), "WR": (0, 1)}

# These either read or write general registers, and have no tag for the other: BMOV to or from B registers, LDCU.
_ONE_SIDED = frozenset({"BMOV", "LDCU"})


def assign_serial_control(unit: Unit, target: str) -> None:
    """Give every instruction of the unit its control word. The order stays."""
    tables = hazards(target)
    for f in unit.functions:
        for b in f.blocks:
            for i in b.insts:
                wr, rd = _SERIAL[tables.scoreboards(i)]
                if i.op == "CCTL" and not i.srcs:
                    wr, rd = 7, 7  # nvdisasm refuses tags of an instruction without operands (measured)
                elif i.op in _ONE_SIDED:  # nvdisasm refuses the other tag (measured)
                    wr, rd = (7, 1) if any(isinstance(o, Reg) and o.file == "B" for o in i.dsts) else (0, 7)
                takes_no_waits = i.op == "WARPGROUP" and "DEPBAR" in i.mods
                i.ctl = Ctl(0 if _drains(tables, i) else 15, 0, wr, rd, 0 if takes_no_waits else 0b000011)


def _drains(tables: Hazards, inst: Inst) -> bool:
    if tables.least_stall(inst) == 0:
        return True
    a = tables.access(inst)
    if a.board_w:
        return False
    return any(tables.longest("w", file_of(cell), column) > 15 for cell, column, _ in a.writes)
