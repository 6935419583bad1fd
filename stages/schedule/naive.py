"""The serial control rule: right for every program, fast for none.

It is the rule that ptxas follows at -O0 (measured C5: 11 targets, every opcode tabulated): every instruction stalls 15 cycles and waits for
scoreboards 0 and 1; an instruction with a late result sets scoreboard 0, one that reads its sources late sets scoreboard 1. Which ones do is the
fact ``sb`` of the instruction's row. It stays in the tree as the reference that the list scheduler is compared with.
"""

from __future__ import annotations

from ir_format import isa
from ir_format.model import Ctl, Unit

_SERIAL = {
    "": Ctl(15, 0, 7, 7, 0b000011),
    "W": Ctl(15, 0, 0, 7, 0b000011),
    "R": Ctl(15, 0, 7, 1, 0b000011),
    "WR": Ctl(15, 0, 0, 1, 0b000011),
}


def assign_serial_control(unit: Unit, target: str) -> None:
    """Give every instruction of the unit its control word; keeps their order."""
    spec = isa.target(target)
    for f in unit.functions:
        for b in f.blocks:
            for i in b.insts:
                i.ctl = _SERIAL[spec.fact(i, "sb")]
