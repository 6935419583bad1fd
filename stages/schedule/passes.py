"""The passes of the schedule stage.

-O0 and ``--option scheduler=naive`` use the serial control rule. Otherwise ``list-schedule`` (which may be skipped)
orders the blocks, ``control`` sets stalls and scoreboards, and ``reuse`` sets the reuse hints. ``--option
scheduler=inorder`` keeps the order and sets control words for it.
"""

from __future__ import annotations

from ir_format.model import Unit
from stages.plumbing.runner import Context, Pass


def _kind(ctx: Context) -> str:
    return "naive" if ctx.opt == 0 else ctx.flags.extra.get("scheduler", "list")


def _list_schedule(unit: Unit, ctx: Context) -> None:
    if _kind(ctx) == "list":
        from stages.schedule.schedule_unit import order_unit

        order_unit(unit, ctx)


def _zero_pairs(unit: Unit, ctx: Context) -> None:
    from stages.schedule.zero_pairs import pair_zero_moves

    pair_zero_moves(unit, ctx)


def _pipe_balance(unit: Unit, ctx: Context) -> None:
    from stages.schedule.pipe_balance import balance_pipes

    balance_pipes(unit, ctx)


def _control(unit: Unit, ctx: Context) -> None:
    if _kind(ctx) == "naive":
        from stages.schedule.naive import assign_serial_control

        assign_serial_control(unit, ctx.header.target)
    else:
        from stages.schedule.schedule_unit import control_unit

        control_unit(unit, ctx)


def _reuse(unit: Unit, ctx: Context) -> None:
    if _kind(ctx) == "list":
        from stages.schedule.reuse import set_reuse

        set_reuse(unit, ctx)


PASSES = (
    Pass("zero-pairs", _zero_pairs, min_opt=1),
    Pass("pipe-balance", _pipe_balance, min_opt=1),
    Pass("list-schedule", _list_schedule, min_opt=1),
    Pass("control", _control, required=True),
    Pass("reuse", _reuse, min_opt=1),
)
