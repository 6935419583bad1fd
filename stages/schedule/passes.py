"""The passes of the schedule stage.

``zeros`` first. The serial rule at -O0 and with ``--option scheduler=naive``; otherwise ``order`` (which may be
skipped), ``control`` and ``reuse``. ``--option scheduler=inorder`` keeps the order and gives fitting control words.
"""

from __future__ import annotations

from ir_format.model import Unit
from stages.plumbing.runner import Context, Pass


def _kind(ctx: Context) -> str:
    return "naive" if ctx.opt == 0 else ctx.flags.extra.get("scheduler", "list")


def _order(unit: Unit, ctx: Context) -> None:
    if _kind(ctx) == "list":
        from stages.schedule.list_schedule import order_unit

        order_unit(unit, ctx)


def _zeros(unit: Unit, ctx: Context) -> None:
    from stages.schedule.zeros import pair_zeros

    pair_zeros(unit, ctx)


def _control(unit: Unit, ctx: Context) -> None:
    if _kind(ctx) == "naive":
        from stages.schedule.naive import assign_serial_control

        assign_serial_control(unit, ctx.header.target)
    else:
        from stages.schedule.list_schedule import control_unit

        control_unit(unit, ctx)


def _reuse(unit: Unit, ctx: Context) -> None:
    if _kind(ctx) == "list":
        from stages.schedule.reuse import set_reuse

        set_reuse(unit, ctx)


PASSES = (
    Pass("zeros", _zeros, min_opt=1),
    Pass("order", _order, min_opt=1),
    Pass("control", _control, required=True),
    Pass("reuse", _reuse, min_opt=1),
)
