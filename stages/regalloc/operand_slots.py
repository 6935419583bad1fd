"""Fill the optional operand slots of instructions that allocation inserted (moves, spill code); `isa.complete` has the
defaults."""

from __future__ import annotations

from ir_format import isa
from ir_format.model import Unit


def fill_slots(unit: Unit, target: str) -> None:
    """Complete every instruction that has fewer operands than its row; whether they have an encoding is not asked."""
    spec = isa.target(target)
    for func in unit.functions:
        for block in func.blocks:
            for inst in block.insts:
                if not spec.has_slots(inst):
                    inst.dsts, inst.srcs = spec.complete(inst.op, inst.mods, inst.dsts, inst.srcs)
