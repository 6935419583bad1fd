"""Dead code: pure instructions none of whose results is read go, and so on for what only they read.

Pre: any function at level `ori`. Post: the same effects; every remaining pure instruction has a reader. A guarded definition does not
kill, so all definitions of a register's component live and die together; the two words of a pair do not.
"""

from __future__ import annotations

from collections.abc import Iterable

from ir_format.flow import read_regs, written_regs
from ir_format.model import ZERO, Function, Inst, Reg, Unit
from stages.optimize.values import Cell, is_pure
from stages.runner import Context

# Loads whose result nobody wants may go as well (a fault that they would have raised is no defined behaviour), unless ordered or volatile.
_LOADS = frozenset({"LDG", "LDS", "LDL", "LD"})


def is_removable(inst: Inst) -> bool:
    """Whether the instruction may go when its results are not read."""
    if is_pure(inst):
        return True
    return inst.op in _LOADS and not any(m in ("STRONG", "MMIO", "CONSTANT") for m in inst.mods) and not inst.uses and not inst.defs


def remove_dead_code(unit: Unit, ctx: Context) -> None:
    """The pass."""
    for f in unit.functions:
        _function(f, ctx)


def _cells(regs: Iterable[Reg]) -> list[Cell]:
    out: list[Cell] = []
    for r in regs:
        if r.width == 1:
            out.append((r.num, r.sub))
        else:
            out += [(r.num, c) for c in range(r.sub, r.sub + r.width)]
    return out


def _function(f: Function, ctx: Context) -> None:
    readers: dict[Cell, int] = {}
    writers: dict[Cell, list[Inst]] = {}
    for b in f.blocks:
        for i in b.insts:
            for cell in _cells(read_regs(i)):
                readers[cell] = readers.get(cell, 0) + 1
            for cell in _cells(written_regs(i)):
                if cell in writers:
                    writers[cell].append(i)
                else:
                    writers[cell] = [i]
    dead: set[int] = set()
    work = [cell for cell in writers if not readers.get(cell)]
    while work:
        for i in writers[work.pop()]:
            if id(i) in dead or not is_removable(i) or any(readers.get(cell) for cell in _cells(written_regs(i))):
                continue
            if not ctx.allow():
                work.clear()
                break
            dead.add(id(i))
            for cell in _cells(read_regs(i)):
                readers[cell] -= 1
                if not readers[cell] and cell in writers:
                    work.append(cell)
    if dead:
        ctx.count("dead instructions", len(dead))
        for b in f.blocks:
            b.insts = [i for i in b.insts if id(i) not in dead]
    # An unused predicate output of a live instruction becomes PT, so that it needs no register.
    for b in f.blocks:
        for i in b.insts:
            if i.op not in _PRED_OUT:
                continue
            for n, d in enumerate(i.dsts):
                if type(d) is Reg and d.num != ZERO and d.file in ("P", "UP") and not readers.get((d.num, d.sub)):
                    i.dsts = (*i.dsts[:n], d._replace(num=ZERO, sub=0), *i.dsts[n + 1 :])


_PRED_OUT = frozenset({"ISETP", "FSETP", "DSETP", "IADD3", "IMAD", "LEA", "LOP3", "PLOP3", "UISETP", "LDG", "LD", "FLO", "HSETP2", "SHFL"})
