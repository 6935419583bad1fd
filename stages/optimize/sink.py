"""Loads from the constant bank that stand far before their readers go to the block that reads them.

Front ends load all parameters at the entry. Kept over calls and loops they hold registers for nothing; ptxas loads them where they are read. Near their
readers they stay: the load's latency is hidden there, and a few registers less would bring nothing.

Pre: a function at level `ori`. Post: the same values.
"""

from __future__ import annotations

from typing import Final

from ir_format.flow import build_cfg, is_guarded, loop_depths, read_regs, written_regs
from ir_format.model import ZERO, Const, Function, Inst, Reg, Unit
from stages.runner import Context

#: Instructions in layout between the load and its first reader from which on it moves (guessed: some 40 cycles are its latency).
_FAR: Final = 40
_LEADING: Final = ("BSYNC", "WARPSYNC", "BSSY")  # they stand first in their blocks

Place = tuple[int, int]  # block position, index


def sink_loads(unit: Unit, ctx: Context) -> None:
    """The pass."""
    for f in unit.functions:
        if len(f.blocks) > 1:
            _function(f, ctx)


def _function(f: Function, ctx: Context) -> None:
    loads: dict[int, tuple[Place, Inst]] = {}
    writers: dict[int, int] = {}
    for pos, block in enumerate(f.blocks):
        for n, inst in enumerate(block.insts):
            for r in written_regs(inst):
                writers[r.num] = writers.get(r.num, 0) + 1
            if inst.op == "LDC" and not is_guarded(inst) and type(inst.srcs[0]) is Const and inst.srcs[0].ireg is None:
                d = inst.dsts[0]
                if type(d) is Reg and d.num != ZERO and f.vregs[d.num].fixed < 0 and d.width == f.vregs[d.num].width:
                    loads[d.num] = (pos, n), inst
    loads = {num: x for num, x in loads.items() if writers[num] == 1}
    if not loads:
        return
    readers: dict[int, list[Place]] = {}
    for pos, block in enumerate(f.blocks):
        for n, inst in enumerate(block.insts):
            for num in {r.num for r in read_regs(inst)} & loads.keys():
                readers.setdefault(num, []).append((pos, n))
    starts = [0]
    for block in f.blocks:
        starts.append(starts[-1] + len(block.insts))
    depth = loop_depths(build_cfg(f))
    before: dict[Place, list[Inst]] = {}
    gone: set[int] = set()
    for num, ((pos, at), inst) in loads.items():
        places = readers.get(num, [])
        blocks = {p for p, _ in places}
        if len(blocks) != 1 or pos in blocks:
            continue
        to = places[0][0]
        if depth[to] > depth[pos] or starts[to] + places[0][1] - starts[pos] - at < _FAR or not ctx.allow():
            continue
        ctx.count("loads sunk")
        before.setdefault((to, _first(f.blocks[to].insts, places[0][1])), []).append(inst)
        gone.add(id(inst))
    if gone:
        for pos, block in enumerate(f.blocks):
            kept: list[Inst] = []
            for n, inst in enumerate(block.insts):
                kept += before.get((pos, n), ())
                if id(inst) not in gone:
                    kept.append(inst)
            block.insts = kept


def _first(insts: list[Inst], reader: int) -> int:
    """Where in its block a load for the instruction ``reader`` goes: at the start, or behind the last call before it."""
    calls = [n for n in range(reader) if insts[n].op == "CALL"]
    if calls:
        return calls[-1] + 1
    first = 0
    while first < reader and insts[first].op in _LEADING:
        first += 1
    return first
