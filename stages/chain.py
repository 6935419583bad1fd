"""The chain: its seven stages as one list.

`parse` makes a stream from text and `elf` makes a cubin from a stream (:mod:`stages.ends`); the five between them turn one level of the
stream into the next and are rows here. Code of a stage is imported when the stage runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ir_format.model import Header, Module, Unit
from stages.runner import Context, Pass, Stage


def _lower_begin() -> Callable[[Any, Context], Unit]:
    from stages.lower.lower import lower_unit
    from stages.lower.rules import usual

    usual()  # the table imports most rule modules: done here, so that a process has it before its stream is there
    return lambda source, ctx: lower_unit(source, ctx.module, ctx.header)


def _lower_module() -> Callable[[Any, Header], Module]:
    from stages.lower.lower import lower_module

    return lower_module


def _optimize_passes() -> Sequence[Pass]:
    import stages.optimize.rules  # noqa: F401 - warm
    from stages.optimize.passes import PASSES

    return PASSES


def _regalloc_passes() -> Sequence[Pass]:
    import stages.regalloc.allocate
    import stages.regalloc.slots  # noqa: F401 - warm
    from stages.regalloc.passes import PASSES

    return PASSES


def _schedule_passes() -> Sequence[Pass]:
    from stages.schedule.passes import PASSES

    return PASSES


def _encode_passes() -> Sequence[Pass]:
    import stages.encode.encode  # noqa: F401 - warm
    from stages.encode.passes import PASSES

    return PASSES


LOWER = Stage("lower", "ptx", "ori", tuple, _lower_begin, _lower_module)
OPTIMIZE = Stage("optimize", "ori", "ori", _optimize_passes)
REGALLOC = Stage("regalloc", "ori", "allocated", _regalloc_passes)
SCHEDULE = Stage("schedule", "allocated", "scheduled", _schedule_passes)
ENCODE = Stage("encode", "scheduled", "encoded", _encode_passes)

MIDDLE = (LOWER, OPTIMIZE, REGALLOC, SCHEDULE, ENCODE)
NAMES = ("parse", *(s.name for s in MIDDLE), "elf")


def next_stage(header: Header) -> int:
    """The place in NAMES of the stage that reads a stream: behind the last that wrote it; by its level where that is no stage of ours."""
    last = header.producers[-1][0] if header.producers else ""
    if last in NAMES[:-1]:
        return NAMES.index(last) + 1
    return next((n for n, s in enumerate(MIDDLE, 1) if s.reads == header.level), len(NAMES) - 1)


def stage(name: str) -> Stage:
    """The row of a middle stage."""
    return next(s for s in MIDDLE if s.name == name)
