"""The serial control rule: right for every program, fast for none.

It is the rule that ptxas follows at -O0 (measured C5: 11 targets, every opcode tabulated): every instruction stalls 15
cycles and waits for scoreboards 0 and 1; an instruction with a late result sets scoreboard 0, one that reads its
sources late sets scoreboard 1. A result that takes longer than 15 cycles without a scoreboard (tensor instructions) and
ERRBAR drain the pipe: stall 0. It stays in the tree as the reference that the list scheduler is compared with.
"""

from __future__ import annotations

from ir_format.hazards import file_of, hazards
from ir_format.hazards.model import Hazards
from ir_format.model import Ctl, Inst, Reg, Unit

_SERIAL = {"": (7, 7), "W": (0, 7), "R": (7, 1), "WR": (0, 1)}

# These read GPRs or write them, never both, and have no tag for the other side: BMOV to or from B registers, LDCU.
_ONE_SIDED = frozenset({"BMOV", "LDCU"})


def assign_serial_control(unit: Unit, target: str) -> None:
    """Give every instruction of the unit its control word; keeps their order."""
    tables = hazards(target)
    for f in unit.functions:
        for b in f.blocks:
            for i in b.insts:
                wr, rd = _SERIAL[tables.boards(i)]
                if i.op == "CCTL" and not i.srcs:
                    wr, rd = 7, 7  # nvdisasm refuses tags of an instruction without operands (measured)
                elif i.op in _ONE_SIDED:  # nvdisasm refuses the other tag (measured)
                    wr, rd = (7, 1) if any(isinstance(o, Reg) and o.file == "B" for o in i.dsts) else (0, 7)
                i.ctl = Ctl(
                    0 if _drains(tables, i) else 15,
                    0,
                    wr,
                    rd,
                    0 if i.op == "WARPGROUP" and "DEPBAR" in i.mods else 0b000011,
                )  # it takes no waits


def _drains(tables: Hazards, inst: Inst) -> bool:
    if tables.least_stall(inst) == 0:
        return True
    a = tables.access(inst)
    if a.board_w:
        return False
    return any(tables.longest("w", file_of(cell), column) > 15 for cell, column, _ in a.writes)
