"""The passes of the schedule stage."""

from __future__ import annotations

from ir_format.model import Unit
from stages.runner import Context, Pass


def _naive(unit: Unit, ctx: Context) -> None:
    from stages.schedule.naive import assign_serial_control

    assign_serial_control(unit, ctx.header.target)


PASSES = (Pass("naive-control", _naive, required=True),)
