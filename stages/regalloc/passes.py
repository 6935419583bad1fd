"""Passes of the regalloc stage."""

from __future__ import annotations

from typing import Final

from ir_format.model import Unit
from stages.runner import Context, Pass


def _allocate(unit: Unit, ctx: Context) -> None:
    from .allocate import allocate_unit

    options = dict(ctx.header.options)
    if ctx.flags.extra.get("allocator"):
        options["allocator"] = ctx.flags.extra["allocator"]
    allocate_unit(unit, ctx.header, options)
    for func in unit.functions:
        ctx.count("spill-store-bytes", func.spills[0])
        ctx.count("spill-load-bytes", func.spills[1])
        ctx.count("registers", func.regs.get("R", 0))


def _fill(unit: Unit, ctx: Context) -> None:
    from .slots import fill_slots

    fill_slots(unit, ctx.header.target)


PASSES: Final = (Pass("allocate", _allocate, required=True), Pass("fill-slots", _fill, required=True))
