"""For stages and passes of one's own in Python: what stays as it is from release to release.

:func:`stage` makes a program that reads a stream and writes one; the rest is what such a program wants: the model,
facts about instructions, the dependence graph of a block, and our control words. docs/own-stage.md has an example that
a test runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NoReturn

from ir_format.diag import CompileError
from ir_format.hazards import Access, hazards
from ir_format.model import Block, Const, Ctl, Function, Header, Imm, Inst, Label, Mem, Name, Reg, Unit
from ir_format.text import parse_inst, parse_unit, print_inst, print_unit
from stages.analysis.dependences import Graph, Physical, build_graph
from stages.plumbing.runner import Context, Flags, Pass, Stage, run_stage

__all__ = [
    "Access",
    "Block",
    "CompileError",
    "Const",
    "Context",
    "Ctl",
    "Function",
    "Graph",
    "Header",
    "Imm",
    "Inst",
    "Label",
    "Mem",
    "Name",
    "Reg",
    "Unit",
    "access",
    "control_words",
    "dependences",
    "facts",
    "parse_inst",
    "parse_unit",
    "print_inst",
    "print_unit",
    "stage",
]


def stage(name: str, reads: str, writes: str, work: Callable[[Unit, Context], object]) -> NoReturn:
    """Run as a stage: every unit of the stream at standard input, which is at level ``reads``, is worked on in place
    and written at level ``writes``. ``work`` may raise CompileError."""
    row = Stage(name, reads, writes, lambda: (Pass(name, work, required=True),))
    sys.exit(run_stage(row, sys.stdin.buffer, sys.stdout.buffer, Flags()))


def access(inst: Inst, target: str) -> Access:
    """What an instruction with physical registers reads and writes, in which pipe, and which scoreboards it needs."""
    return hazards(target).access(inst)


def facts(inst: Inst, target: str) -> dict[str, object]:
    """The same as plain values, as `orias-facts --annotate` writes them."""
    from stages.facts.annotate import facts_of

    return dict(facts_of(inst, hazards(target), physical=True))


def dependences(insts: list[Inst], target: str) -> Graph:
    """The dependence graph of a block with physical registers: ``succs[i]`` holds (later instruction, cycles),
    ``waits[i]`` how many edges lead into ``i``."""
    tables = hazards(target)
    return build_graph(insts, Physical(insts, [tables.access(i) for i in insts], tables))


def control_words(unit: Unit, ctx: Context) -> None:
    """Give every instruction of a unit its control word, in the given order: ours, by the tables."""
    from stages.schedule.schedule_unit import control_unit

    control_unit(unit, ctx)
