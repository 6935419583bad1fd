"""The two passes over a unit: list scheduling of its blocks, and control words (scoreboards and stall counts)."""

from __future__ import annotations

from ir_format.flow import build_cfg
from ir_format.hazards import Access, Hazards, hazards
from ir_format.model import Function, Inst, Label, Unit, label
from stages.analysis.dependences import UNDER_WAY, UNDER_WAY_TAIL, as_allowed, under_way
from stages.plumbing.runner import Context
from stages.schedule.control import assign_gaps, emit
from stages.schedule.list_scheduling import list_schedule
from stages.schedule.scoreboards import ScoreboardedBlock, assign


def order_unit(unit: Unit, ctx: Context) -> None:
    """Schedule every block. The facts of the tables about each instruction are kept for :func:`control_unit`."""
    tables = hazards(ctx.header.target)
    known: dict[int, Access] = {}  # by identity: both passes see the same instructions
    ctx.kept["accesses"] = known
    for function in unit.functions:
        under_way_after: list[dict[int, int]] = []
        for block in function.blocks:
            accesses = [tables.access(i) for i in block.insts]
            known.update(zip(map(id, block.insts), accesses))
            under_way_after.append(_under_way(accesses))
        preds = build_cfg(function).preds if any(under_way_after) else []
        for pos, block in enumerate(function.blocks):
            if len(block.insts) > 1:
                begun: dict[int, int] = {}
                for pred in preds[pos] if preds else ():
                    begun.update(under_way_after[pred])
                accesses = [known[id(i)] for i in block.insts]
                new = as_allowed(list_schedule(block.insts, accesses, tables, begun), ctx.allow)
                block.insts = [block.insts[i] for i in new]


def _under_way(accesses: list[Access]) -> dict[int, int]:
    """The cells that are under way at the end of a block (:func:`under_way`)."""
    last = accesses[-UNDER_WAY_TAIL:]
    if not any([a.board_w and a.latency >= UNDER_WAY for a in last]):
        return {}
    reads, writes = [[c for c, _, _ in a.reads] for a in last], [[c for c, _, _ in a.writes] for a in last]
    return under_way(reads, writes, [a.latency if a.board_w else 0 for a in last])


def control_unit(unit: Unit, ctx: Context) -> None:
    """Give every instruction its control word. The order stays."""
    tables = hazards(ctx.header.target)
    explain = ctx.flags.extra.get("why", "") not in ("", "0") or "pictures" in str(ctx.header.options.get("observe"))
    records: list[tuple[str, ...]] = []
    known: dict[int, Access] = ctx.kept.pop("accesses", {})
    for function in unit.functions:
        _control(function, tables, known, explain, records)
    if explain:
        unit.sections["why"] = tuple(records)


def _drop_empty_blocks(function: Function) -> None:
    """Redirect jumps from an empty block to the block after it. An empty last block gets a NOP, because control must
    not fall off the end."""
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
    scoreboarded = [
        ScoreboardedBlock(b.insts, [known.get(id(i)) or tables.access(i) for i in b.insts]) for b in function.blocks
    ]
    assign(scoreboarded, cfg)
    timed = assign_gaps(scoreboarded, cfg, tables, explain)
    for block, timed_block in zip(function.blocks, timed):
        records.extend((function.name, str(block.id), *why) for why in timed_block.why)
        block.insts = emit(timed_block)
