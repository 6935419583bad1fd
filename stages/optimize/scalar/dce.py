"""Dead code: pure instructions none of whose results reaches one with an effect go, loops of them too.

Pre: any function at level `ori`. Post: the same effects; every remaining pure instruction is of use to one that is not
pure. A guarded definition does not kill, so all definitions of a register's component live and die together; the two
words of a pair do not.
"""

from __future__ import annotations

from typing import Final

from ir_format.flow import Cells, read_regs
from ir_format.isa import facts, rowlang
from ir_format.model import ZERO, Function, Inst, Reg
from stages.analysis.dependences import ordered
from stages.optimize.analyses import Analyses
from stages.optimize.ssa.webs import has_ties
from stages.optimize.values import PURE, computes, is_pure

# Loads whose result nobody wants may go as well (a fault that they would have raised is no defined behaviour), unless
# ordered or volatile.
_LOADS: Final = facts.loads().keys() - facts.having("convergent")

#: Products of warp groups write their accumulators alone; where a group of them ends is settled later (ptxas drops
#: those that nobody reads too).
_PRODUCTS: Final = facts.having("warpgroup")


def is_removable(inst: Inst) -> bool:
    """Whether the instruction may go when its results are not read."""
    if inst.op == "PHI" or inst.op in _PRODUCTS:
        return True
    if inst.uses and has_ties(inst):
        return computes(inst) or _load(inst)
    return is_pure(inst) or (_load(inst) and not inst.uses)


def _load(inst: Inst) -> bool:
    return inst.op in _LOADS and "CONSTANT" not in inst.mods and not ordered(inst) and not inst.defs


def remove_dead_code(f: Function, a: Analyses) -> None:
    """The pass. Where values are known they are kept up to date."""
    ctx = a.ctx
    values = a.known_values
    cells = Cells(f)
    base = cells.base
    assert base is not None
    writer: list[Inst | None] = [None] * cells.count  # cell -> the first instruction that writes it and may go
    more: dict[int, list[Inst]] = {}  # the others
    alive: set[int] = set()  # identities of the instructions that stay
    work: list[Inst] = []
    for b in f.blocks:
        for i in b.insts:
            # the first test is quick, and true of most that stay
            if (i.op not in PURE or i.uses or i.defs or i.attrs) and not is_removable(i):
                alive.add(id(i))
                work.append(i)
                continue
            for r in i.dsts:
                if type(r) is Reg and r.num != ZERO:
                    cell = base[r.num] + r.sub
                    for c in (cell,) if r.width == 1 else range(cell, cell + r.width):
                        if writer[c] is None:
                            writer[c] = i
                        else:
                            more.setdefault(c, []).append(i)
    readers = bytearray(cells.count)
    while work:
        for r in read_regs(work.pop()):
            cell = base[r.num] + r.sub
            for c in (cell,) if r.width == 1 else range(cell, cell + r.width):
                if not readers[c]:
                    readers[c] = 1
                    made = writer[c]
                    if made is None:
                        continue
                    if id(made) not in alive:
                        alive.add(id(made))
                        work.append(made)
                    if c in more:
                        for i in more[c]:
                            if id(i) not in alive:
                                alive.add(id(i))
                                work.append(i)
    dead = 0
    for b in f.blocks:
        gone = [i for i in b.insts if id(i) not in alive and ctx.allow()]
        if gone:
            dead += len(gone)
            if values is not None:
                for i in gone:
                    values.remove(i)
            ids = set(map(id, gone))
            b.insts = [i for i in b.insts if id(i) not in ids]
    if dead:
        ctx.count("dead instructions", dead)
    # An unused predicate output of a live instruction becomes PT, so that it needs no register.
    for b in f.blocks:
        for i in b.insts:
            if i.op not in _PRED_OUT:
                continue
            for n, d in enumerate(i.dsts):
                if type(d) is Reg and d.num != ZERO and d.file in ("P", "UP") and not readers[base[d.num] + d.sub]:
                    i.dsts = (*i.dsts[:n], d._replace(num=ZERO, sub=0), *i.dsts[n + 1 :])
                    if values is not None:
                        values.defs.pop((d.num, d.sub), None)
                        values.rewritten.add(id(i))


_PRED_OUT: Final = rowlang.predicate_results()
