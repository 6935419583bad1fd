"""Control flow of a decoded section."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ir_format.isa import facts
from stages.analysis.life_ranges import Life, Piece, life_ranges, pieces
from stages.disasm.cubin import WORD, CodeSection
from stages.disasm.labels import Names
from stages.disasm.listing import Decoded

BRANCHES: Final = facts.with_value("ctl", "branch")
LEAVE: Final = facts.with_value("ctl", "exit", "ret", "trap")
CALLS: Final = facts.with_value("ctl", "call")


def targets(items: Sequence[Decoded], section: CodeSection, names: Names) -> dict[int, list[int]]:
    """Number of a branch -> the numbers of the instructions that it may lead to. A CALL is no branch."""
    out: dict[int, list[int]] = {}
    for n, item in enumerate(items):
        if item.target >= 0 and item.inst is not None and item.inst.op in BRANCHES:
            out[n] = [item.target // WORD]
        jumps = names.indirect.get((section.number, item.pc))
        if jumps:
            out[n] = [t // WORD for t in jumps]
    return out


def blocks(items: Sequence[Decoded], section: CodeSection, names: Names) -> list[Piece]:
    """The basic blocks."""
    return pieces([i.inst for i in items], targets(items, section, names), [at // WORD for at, *_ in section.symbols])


def lives(items: Sequence[Decoded], section: CodeSection, names: Names) -> list[Life]:
    """The registers at each instruction."""
    starts = {at // WORD for at, *_ in section.symbols}
    calls = {
        n: i.target // WORD
        for n, i in enumerate(items)
        if i.inst is not None and i.inst.op in CALLS and i.target // WORD in starts
    }
    return life_ranges([i.inst for i in items], blocks(items, section, names), calls)


def without_padding(items: list[Decoded]) -> list[Decoded]:
    """The instructions without the NOPs after the last one."""
    end = len(items)
    while end > 1 and (inst := items[end - 1].inst) is not None and inst.op == "NOP":
        end -= 1
    return items[:end]
