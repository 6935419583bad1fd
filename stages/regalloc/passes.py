"""Passes of the regalloc stage."""

from __future__ import annotations

from collections.abc import Callable

from ir_format.diag import CompileError
from ir_format.model import Unit
from ir_format.typed import Final
from stages.plumbing.runner import Context, Pass

ALLOCATORS: Final = ("greedy", "naive")
MAX_SHOWN: Final = 10


def _allocate(unit: Unit, ctx: Context) -> None:
    from stages.regalloc.allocate import allocate_unit
    from stages.regalloc.splitting import return_blocks

    options = dict(ctx.header.options)
    name = ctx.flags.extra.get("allocator", "greedy")
    if name not in ALLOCATORS:
        raise CompileError(f"Unknown allocator '{name}': {', '.join(ALLOCATORS)}")
    options["allocator"] = name
    from stages.analysis.warpgroups import PRODUCTS
    from stages.regalloc.divergent_blocks import divergent_blocks

    with_products = [f for f in unit.functions if any(i.op in PRODUCTS for b in f.blocks for i in b.insts)]
    ctx.kept["divergent"] = {f.name: divergent_blocks(f) for f in with_products}
    for f in unit.functions:
        return_blocks(f)
    before = None
    if ctx.flags.verify:
        from copy import deepcopy

        before = deepcopy(unit)
    allocate_unit(unit, ctx.header, options, say=_teller(ctx))
    if before is not None:
        _verify(before, unit)
    asked = unit.attrs.get("smem_spilling")
    if isinstance(asked, int) and any(any(func.spills) for func in unit.functions):
        unit.diags.append(
            (
                "warning",
                f"Pragma 'enable_smem_spilling' not supported by orias; registers of '{unit.name}' are spilled to "
                f"local memory",
                asked,
            )
        )
    for func in unit.functions:
        ctx.count("spill-store-bytes", func.spills[0])
        ctx.count("spill-load-bytes", func.spills[1])
        ctx.count("registers", func.regs.get("R", 0))
    if ctx.remarks is not None:
        _sum_up(unit, ctx)


def _teller(ctx: Context) -> Callable[[str, str, str, int, str, str], object] | None:
    """Who hears of spilled values."""
    if ctx.remarks is None:
        return None
    return lambda kind, name, *rest: ctx.remark(kind, "regalloc", name, *rest)


def _sum_up(unit: Unit, ctx: Context) -> None:
    from ir_format.target import target
    from stages.analysis.register_limits import register_limit

    limit = register_limit(unit, target(ctx.header.target).sm, ctx.header.options)
    for f in unit.functions:
        used = f"{f.regs.get('R', 0)} registers of at most {limit}"
        spilled = f"{f.spills[0]} bytes of spill stores, {f.spills[1]} of spill loads"
        message = f"{used}, {f.frame} bytes of stack, {spilled}"
        ctx.remark("analysis", "regalloc", "Resources", f.name, 0, message)


def _verify(before: Unit, after: Unit) -> None:
    from stages.regalloc.checker.checker import check_allocation

    findings = check_allocation(before, after)
    if findings:
        shown = "; ".join(f.render() for f in findings[:MAX_SHOWN])
        raise CompileError(f"Register allocation of '{after.name}' failed its check: {shown}", findings[0].line)


def _fill(unit: Unit, ctx: Context) -> None:
    from stages.regalloc.operand_slots import fill_slots

    fill_slots(unit, ctx.header.target)


def _order(unit: Unit, ctx: Context) -> None:
    from stages.regalloc.warpgroup import order_warpgroups

    divergent = ctx.kept.pop("divergent", None)
    added = order_warpgroups(
        unit, bool(ctx.header.options.get("compile-only")), divergent if isinstance(divergent, dict) else None
    )
    if added:
        ctx.count("warpgroup waits and arrivals", added)


def _counts(unit: Unit, ctx: Context) -> None:
    from ir_format.target import target
    from stages.analysis.register_limits import register_limit
    from stages.regalloc.register_counts import check_counts

    taken = check_counts(unit, register_limit(unit, target(ctx.header.target).sm, ctx.header.options))
    if taken:
        ctx.count("register count changes taken out", taken)


PASSES: Final = (
    Pass("allocate", _allocate, required=True),
    Pass("warpgroup", _order, required=True),
    Pass("counts", _counts, required=True),
    Pass("fill-slots", _fill, required=True),
)
