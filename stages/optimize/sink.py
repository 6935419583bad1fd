"""Loads from the constant bank that stand far before their readers go to the block that reads them.

Front ends load all parameters at the entry. Kept over calls and loops they hold registers for nothing; ptxas loads them where they are read. Near their
readers they stay: the load's latency is hidden there, and a few registers less would bring nothing.

Pre: a function at level `ori`. Post: the same values.
"""

from __future__ import annotations

from typing import Final

from ir_format.flow import build_cfg, loop_depths
from ir_format.model import Const, Function, Inst, Unit
from stages.optimize.places import Place, insert, made_once, readers
from stages.runner import Context

#: Instructions in layout between the load and its first reader from which on it moves (guessed: some 40 cycles are its latency).
_FAR: Final = 40
_LEADING: Final = ("BSYNC", "WARPSYNC", "BSSY")  # they stand first in their blocks


def sink_loads(unit: Unit, ctx: Context) -> None:
    """The pass."""
    for f in unit.functions:
        if len(f.blocks) > 1:
            _function(f, ctx)


def _function(f: Function, ctx: Context) -> None:
    loads = made_once(f, _plain)
    if not loads:
        return
    uses = readers(f, loads)
    starts = [0]
    for block in f.blocks:
        starts.append(starts[-1] + len(block.insts))
    depth = loop_depths(build_cfg(f))
    before: dict[Place, list[Inst]] = {}
    gone: set[int] = set()
    for num, ((pos, at), inst) in loads.items():
        places = uses.get(num, [])
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
        insert(f, before, gone)


def _plain(i: Inst) -> bool:
    """A load from the constant bank without an index."""
    return i.op == "LDC" and type(i.srcs[0]) is Const and i.srcs[0].ireg is None


def _first(insts: list[Inst], reader: int) -> int:
    """Where in its block a load for the instruction ``reader`` goes: at the start, or behind the last call before it."""
    calls = [n for n in range(reader) if insts[n].op == "CALL"]
    if calls:
        return calls[-1] + 1
    first = 0
    while first < reader and insts[first].op in _LEADING:
        first += 1
    return first
