"""The scheduler: order of each block, scoreboards, stall counts."""

from __future__ import annotations

from ir_format.flow import build_cfg
from ir_format.hazards import Access, Hazards, hazards
from ir_format.model import Function, Inst, Label, Unit, label
from stages.plumbing.runner import Context
from stages.schedule.boards import Boarded, assign
from stages.schedule.control import assign_gaps, emit
from stages.schedule.order import order_block


def order_unit(unit: Unit, ctx: Context) -> None:
    """Reorder the instructions of every block. What the tables say of an instruction is kept for
    :func:`control_unit`."""
    tables = hazards(ctx.header.target)
    known: dict[int, Access] = {}  # by identity: no instruction goes between the two passes
    ctx.kept["accesses"] = known
    for function in unit.functions:
        for block in function.blocks:
            if len(block.insts) > 1 and ctx.allow():
                accesses = [tables.access(i) for i in block.insts]
                known.update(zip(map(id, block.insts), accesses))
                new = order_block(block.insts, accesses, tables)
                block.insts = [block.insts[i] for i in new]


def control_unit(unit: Unit, ctx: Context) -> None:
    """Give every instruction its control word, in the order as it stands."""
    tables = hazards(ctx.header.target)
    explain = ctx.flags.extra.get("why", "") not in ("", "0")
    records: list[tuple[str, ...]] = []
    known: dict[int, Access] = ctx.kept.pop("accesses", {})
    for function in unit.functions:
        _control(function, tables, known, explain, records)
    if explain:
        unit.sections["why"] = tuple(records)


def _drop_empty_blocks(function: Function) -> None:
    """Send jumps to an empty block to the one behind it. An empty last block gets a NOP: control could fall off the
    end."""
    if function.blocks and not function.blocks[-1].insts:
        function.blocks[-1].insts.append(Inst("NOP"))
    moved: dict[int, int] = {}
    following = -1
    for block in reversed(function.blocks):
        if block.insts:
            following = block.id
        else:
            moved[block.id] = following
    if not moved:
        return
    function.blocks = [b for b in function.blocks if b.insts]
    for block in function.blocks:
        for inst in block.insts:
            for name in ("dsts", "srcs", "uses"):
                operands = getattr(inst, name)
                if any(type(o) is Label and o.block in moved for o in operands):
                    setattr(
                        inst,
                        name,
                        tuple(label(moved[o.block]) if type(o) is Label and o.block in moved else o for o in operands),
                    )


def _control(
    function: Function, tables: Hazards, known: dict[int, Access], explain: bool, records: list[tuple[str, ...]]
) -> None:
    _drop_empty_blocks(function)
    if not function.blocks:
        return
    cfg = build_cfg(function)
    boarded = [Boarded(b.insts, [known.get(id(i)) or tables.access(i) for i in b.insts]) for b in function.blocks]
    assign(boarded, cfg)
    timed = assign_gaps(boarded, cfg, tables, explain)
    for block, one in zip(function.blocks, timed):
        records.extend((function.name, str(block.id), *why) for why in one.why)
        block.insts = emit(one)
