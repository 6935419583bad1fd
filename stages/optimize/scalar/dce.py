"""Dead code: pure instructions none of whose results reaches one with an effect go, loops of them too.

Pre: any function at level `ori`. Post: the same effects; every remaining pure instruction is of use to one that is not
pure. A guarded definition does not kill, so all definitions of a register's component live and die together; the two
words of a pair do not.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from ir_format.flow import Cells, read_regs, written_regs
from ir_format.isa import facts, rowlang
from ir_format.model import ZERO, Function, Inst, Reg
from ir_format.typed import Final
from stages.analysis.dependences import ordered
from stages.analysis.warpgroups import PRODUCTS, empty_product, end_at_last, ends_group, is_empty
from stages.optimize.analyses import Analyses
from stages.optimize.ssa.webs import has_ties
from stages.optimize.values import PURE, Values, computes, is_pure

# Loads whose result nothing wants may go as well (a fault that they would have raised is no defined behaviour), unless
# ordered or volatile.
_LOADS: Final = facts.loads().keys() - facts.having("convergent")


def is_removable(inst: Inst) -> bool:
    """Whether the instruction may go when its results are not read."""
    if inst.op == "PHI":
        return True
    if inst.op in PRODUCTS:  # they write their accumulators alone (ptxas drops those that nothing reads too)
        return not ends_group(inst)
    if inst.uses and has_ties(inst):
        return computes(inst) or _load(inst)
    return is_pure(inst) or (_load(inst) and not inst.uses)


def _load(inst: Inst) -> bool:
    return inst.op in _LOADS and "CONSTANT" not in inst.mods and not ordered(inst) and not inst.defs


def sweep(f: Function, a: Analyses) -> bool:
    """The pass; it does nothing where nothing has changed since it last ran."""
    if a.swept:
        return False
    remove_dead_code(f, a)
    a.swept = True
    return True


def remove_dead_code(f: Function, a: Analyses) -> None:
    """Remove dead code. Where values are known they are kept up to date."""
    ctx = a.ctx
    values = a.known_values
    cells = Cells(f)
    base = cells.base
    assert base is not None
    insts = [i for b in f.blocks for i in b.insts]
    ends = {n: i for n, i in enumerate(insts) if i.op in PRODUCTS and ends_group(i) and not is_empty(i)}
    alive, readers = _mark(insts, base, cells.count, ends)
    dead = at = 0
    some = 0 in alive
    for b in f.blocks:
        kept: list[Inst] = []
        for i in b.insts:
            if not alive[at] and ctx.allow():
                if at in ends and not end_at_last(kept):  # waits count groups, empty ones too
                    kept.append(empty_product(i.line))
                dead += 1
                if values is not None:
                    values.remove(i)
            else:
                kept.append(i)
                if i.op in _PRED_OUT:
                    _drop_predicates(i, base, readers, values)
            at += 1
        if some:
            b.insts = kept
    if dead:
        ctx.count("dead instructions", dead)


def _drop_predicates(i: Inst, base: list[int], readers: bytearray, values: Values | None) -> None:
    """An unused predicate output of a live instruction becomes PT, so that it needs no register."""
    for n, d in enumerate(i.dsts):
        if type(d) is Reg and d.num != ZERO and d.file in ("P", "UP") and not readers[base[d.num] + d.sub]:
            i.dsts = (*i.dsts[:n], d._replace(num=ZERO, sub=0), *i.dsts[n + 1 :])
            if values is not None:
                values.defs[values.base[d.num] + d.sub] = None
                values.rewritten.add(id(i))


def _mark(insts: list[Inst], base: list[int], cells: int, ends: Container[int]) -> tuple[bytearray, bytearray]:
    """Which instructions are of use, and which cells they read. ``base``: the first cell of each register; ``ends``:
    products that may go although they end a group."""
    writer = [-1] * cells  # cell -> the first instruction that writes it and may go
    more: dict[int, list[int]] = {}  # the others
    alive = bytearray(len(insts))
    work: list[int] = []
    for n, i in enumerate(insts):
        # the first test is quick, and true of most that stay
        if (i.op not in PURE or i.uses or i.defs or i.attrs) and not is_removable(i) and n not in ends:
            alive[n] = 1
            work.append(n)
            continue
        for r in i.dsts:
            if type(r) is Reg:
                _, num, sub, width, _, _ = r
                if num != ZERO:
                    cell = base[num] + sub
                    for c in (cell,) if width == 1 else range(cell, cell + width):
                        if writer[c] < 0:
                            writer[c] = n
                        else:
                            more.setdefault(c, []).append(n)
    readers = bytearray(cells)
    while work:
        for r in read_regs(insts[work.pop()]):
            _, num, sub, width, _, _ = r
            cell = base[num] + sub
            for c in (cell,) if width == 1 else range(cell, cell + width):
                if not readers[c]:
                    readers[c] = 1
                    n = writer[c]
                    if n < 0:
                        continue
                    if not alive[n]:
                        alive[n] = 1
                        work.append(n)
                    if c in more:
                        for n in more[c]:
                            if not alive[n]:
                                alive[n] = 1
                                work.append(n)
    return alive, readers


def remove_unread(f: Function, a: Analyses, values: Values, roots: Iterable[Inst]) -> None:
    """Remove those of ``roots`` whose results nothing reads, and what only they read. ``values`` are kept up to date;
    they say what reads."""
    gone: set[int] = set()
    work = list(roots)
    while work:
        i = work.pop()
        if id(i) in gone or not is_removable(i):
            continue
        if any([values.uses[lane] for r in written_regs(i) for lane in values.lanes(r)]):
            continue
        if not a.ctx.allow():
            break
        gone.add(id(i))
        values.remove(i)
        for r in read_regs(i):
            for lane in values.lanes(r):
                made = values.defs[lane]
                if made is not None:
                    work.append(made)
    if gone:
        a.ctx.count("dead instructions", len(gone))
        for b in f.blocks:
            b.insts = [i for i in b.insts if id(i) not in gone]


_PRED_OUT: Final = rowlang.predicate_results()
