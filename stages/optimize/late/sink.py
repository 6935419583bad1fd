"""Sinking: an instruction far before its readers moves to the block that reads its result.

Loads from the constant bank: front ends load all parameters at the entry. Live across calls and loops they waste
registers, and threads that exit early do not need them; ptxas loads them where they are read. Loads near their readers
stay: their latency is hidden there, and a few registers less would gain nothing.

Cheap results under high register pressure: addresses that are computed before a wait, for loads after it, move after it
if their operands are live there already.

Pre: a function at level `ori`. Post: the same values.
"""

from __future__ import annotations

from collections.abc import Sequence

from ir_format.flow import (
    Cfg,
    Loop,
    is_guarded,
    is_terminator,
    loop_depths,
    loops,
    read_regs,
    written_regs,
)
from ir_format.isa import facts
from ir_format.model import ZERO, Const, Function, Inst, Reg
from ir_format.rename import duplicate
from ir_format.typed import Final
from stages.optimize.analyses import FLOW, Analyses
from stages.optimize.late.code_sinking import sink_past_branches
from stages.optimize.late.def_use import Place, insert, single_definitions
from stages.optimize.late.pressure import CHEAP
from stages.optimize.values import computes, is_pure

#: A load moves if at least as many instructions are between it and its first reader in the layout (guessed: its latency
#: is some 40 cycles).
_FAR: Final = 40
#: Steps up the dominator tree to the block that dominates all readers; loops of a function that are looked at.
_CLIMB: Final = 64
#: Most blocks that get a load of their own of one value (guessed).
_BLOCKS: Final = 3
#: Loads from the constant bank and of thread indices before the first test at which threads end: the pipe takes one in
#: four cycles, so that the results of more loads would come after the thread indices.
_HIDDEN: Final = 6
_UNIFORM: Final = frozenset(("ULDC", "LDCU"))
_CALLS: Final = facts.with_value("ctl", "call")
_LEADING: Final = facts.with_value("ctl", "bssy", "bsync") | {"WARPSYNC"}  # the first instructions of their blocks


def sink_values(f: Function, a: Analyses) -> bool:
    """The pass."""
    if len(f.blocks) < 2:
        return False
    changed = False
    for step in (_loads, _uniform_loads, sink_past_branches):
        if step(f, a):
            changed = True
            a.keep(FLOW)
    if sum(v.width for v in f.vregs if v.file == "R") > a.room:
        changed |= _cheap(f, a)
    return changed


def _loads(f: Function, a: Analyses) -> bool:
    ctx = a.ctx
    loads = single_definitions(f, ("LDC", "S2R"), _plain)
    if not loads:
        return False
    uses = a.reads
    starts = [0]
    for block in f.blocks:
        starts.append(starts[-1] + len(block.insts))
    depth = loop_depths(a.cfg)
    paths = _Paths(f, a)
    before: dict[Place, list[Inst]] = {}
    gone: set[int] = set()
    many: list[tuple[int, int, Inst]] = []  # of the first block, which threads that end there do not need
    for num, ((pos, at), inst) in loads.items():
        places = uses.get(num, [])
        blocks = {p for p, _ in places}
        if inst.op == "LDC" and pos not in blocks and paths.should_duplicate(num, pos, blocks, depth) and ctx.allow():
            ctx.count("loads sunk into several blocks")
            for to in sorted(blocks):
                reader = next(n for p, n in places if p == to)
                before.setdefault((to, _first(f.blocks[to].insts, reader)), []).append(duplicate(inst))
            gone.add(id(inst))
            continue
        to = paths.common_dominator(blocks)
        if to < 0 or to == pos or depth[to] > depth[pos] or not paths.tree.dominates(pos, to):
            continue
        reader = next((n for p, n in places if p == to), len(f.blocks[to].insts) - 1)
        far = len(blocks) == 1 and starts[to] + reader - starts[pos] - at >= _FAR
        if not (far and inst.op == "LDC" or paths.left(pos, to)) or not ctx.allow():
            if inst.op == "LDC" and pos == 0 and paths.exit[to] >= 0:
                many.append((to, reader, inst))
            continue
        ctx.count("loads sunk")
        before.setdefault((to, _first(f.blocks[to].insts, reader)), []).append(inst)
        gone.add(id(inst))
    stay = sum([i.op in ("LDC", "S2R") and id(i) not in gone for i in f.blocks[0].insts])
    many.sort(key=lambda m: m[:2])
    while many and stay > _HIDDEN and ctx.allow():
        to, reader, inst = many.pop()
        ctx.count("loads sunk")
        before.setdefault((to, _first(f.blocks[to].insts, reader)), []).append(inst)
        gone.add(id(inst))
        stay -= 1
    if gone:
        insert(f, before, gone)
    return bool(gone)


def _uniform_loads(f: Function, a: Analyses) -> bool:
    """Uniform loads from the constant bank that nothing reads before the first test at which threads end move after it,
    as in ptxas's code. They stay in blocks in which the remaining threads are converged: a diverged group must not
    overwrite a uniform register that another one still reads."""
    loads = single_definitions(f, _UNIFORM, _plain)
    if not loads or any(i.op in _CALLS for b in f.blocks for i in b.insts):
        return False
    uses = a.reads
    together: list[int] = [a.cfg.rpo[0]]
    while True:
        last = f.blocks[together[-1]].insts[-1:]
        after = a.cfg.succs[together[-1]]
        if len(after) != 1 or after[0] != together[-1] + 1 or a.cfg.preds[after[0]] != (together[-1],):
            break
        if last and is_terminator(last[0]) and last[0].op != "EXIT":
            break
        together.append(after[0])
    before: dict[Place, list[Inst]] = {}
    gone: set[int] = set()
    for num, ((pos, _), inst) in loads.items():
        if pos != together[0]:
            continue
        places = uses.get(num, [])
        to = next((p for p in together if any(at == p for at, _ in places)), together[-1])
        if to == pos or not places or not a.ctx.allow():
            continue
        reader = next((n for p, n in places if p == to), len(f.blocks[to].insts) - 1)
        before.setdefault((to, _first(f.blocks[to].insts, reader)), []).append(inst)
        gone.add(id(inst))
    if gone:
        a.ctx.count("uniform loads sunk", len(gone))
        insert(f, before, gone)
    return bool(gone)


class _Paths:
    """Blocks where values are read, and whether threads end before they reach them."""

    def __init__(self, f: Function, a: Analyses) -> None:
        self.f = f
        self.a = a
        self.loops: list[Loop] | None = None
        self.idom = a.idom
        self.tree = a.tree
        self.level = [0] * len(f.blocks)
        self.exit = [-1] * len(f.blocks)  # level of the nearest strict dominator after which threads may end
        for pos in a.cfg.rpo[1:]:
            above = a.idom[pos]
            self.level[pos] = self.level[above] + 1
            last = f.blocks[above].insts[-1:]
            self.exit[pos] = self.level[above] if last and last[0].op == "EXIT" else self.exit[above]
        self.reached = set(a.cfg.rpo)

    def common_dominator(self, blocks: set[int]) -> int:
        """The nearest block that dominates all these; -1 if one of them is unreachable or it is far away."""
        if not blocks or not blocks <= self.reached:
            return -1
        left = _CLIMB
        idom, level = self.idom, self.level
        work = list(blocks)
        one = work.pop()
        for other in work:
            while one != other:
                if level[one] < level[other]:
                    one, other = other, one
                one = idom[one]
                left -= 1
                if not left:
                    return -1
        return one

    def should_duplicate(self, num: int, pos: int, blocks: set[int], depth: list[int]) -> bool:
        """Whether each of these blocks should have its own load of the value: the value is live through a loop that
        does not read it, and none of the blocks is in a deeper loop than the load."""
        if not blocks or len(blocks) > _BLOCKS or any([depth[b] > depth[pos] for b in blocks]):
            return False
        if not all([b in self.reached and self.tree.dominates(pos, b) for b in blocks]):
            return False
        if self.loops is None:
            self.loops = loops(self.a.cfg, self.idom)
        if len(self.loops) > _CLIMB:
            return False
        live = self.a.live
        bit = live.bit.get(live.cells.first(Reg("R", num)), -1)
        return bit >= 0 and any(
            [live.live_in[x.header] >> bit & 1 and pos not in x.body and blocks.isdisjoint(x.body) for x in self.loops]
        )

    def left(self, pos: int, to: int) -> bool:
        """Whether threads may end between ``pos`` and ``to`` after another block than ``pos``: in the block after the
        first test the load's latency would show, while before the test that of thread and block indices covers it."""
        return self.exit[to] > self.level[pos]


def _plain(i: Inst) -> bool:
    """A load from the constant bank without an index, or of a thread index."""
    return computes(i) if i.op == "S2R" else type(i.srcs[0]) is Const and i.srcs[0].ireg is None


def _first(insts: list[Inst], reader: int) -> int:
    """Where in its block a load for the instruction ``reader`` goes: at the start, or after the last call before
    it."""
    calls = [n for n in range(reader) if insts[n].op == "CALL"]
    if calls:
        return calls[-1] + 1
    first = 0
    while first < reader and insts[first].op in _LEADING:
        first += 1
    return first


def _cheap(f: Function, a: Analyses) -> bool:
    """Move cheap results to the one later block that reads them, if their operands are live there."""
    short = a.short
    if not short:
        return False
    ctx, live = a.ctx, a.live
    first, bit = live.cells.first, live.bit

    def fits(i: Inst) -> bool:
        d = i.dsts[0]
        return type(d) is Reg and d.num != ZERO and first(d) in bit and _is_cheap(i)

    made = single_definitions(f, CHEAP, fits)
    uses = a.reads
    cfg, idom = a.cfg, a.idom
    inside: list[set[int]] = [set() for _ in f.blocks]
    for n, loop in enumerate(loops(cfg, idom)):
        for pos in loop.body:
            inside[pos].add(n)
    tree = a.tree
    between = _Between(f, cfg)
    before: dict[Place, list[Inst]] = {}
    gone: set[int] = set()
    for num, ((pos, at), inst) in made.items():
        places = uses.get(num, [])
        to = places[0][0] if places else pos
        if (
            to == pos
            or places[-1][0] != to
            or (pos not in short and to not in short)
            or not inside[to] <= inside[pos]
            or not tree.dominates(pos, to)
        ):
            continue
        reads = read_regs(inst)
        cells = [bit.get(c, -1) for r in reads for c in range(first(r), first(r) + r.width)]
        if (
            any(b < 0 or not live.live_in[to] >> b & 1 for b in cells)
            or between.changed({r.num for r in reads}, (pos, at), places[0])
            or not ctx.allow()
        ):
            continue
        ctx.count("cheap values sunk")
        before.setdefault(places[0], []).append(inst)
        gone.add(id(inst))
    if gone:
        insert(f, before, gone)
    return bool(gone)


def _is_cheap(i: Inst) -> bool:
    """A cheap instruction that reads general registers and makes one."""
    if not is_pure(i) or is_guarded(i) or not read_regs(i):
        return False
    made = written_regs(i)
    return len(made) == 1 and made[0].file == "R" and all(r.file == "R" for r in read_regs(i))


class _Between:
    """What may be written between a place and a later one that it dominates."""

    def __init__(self, f: Function, cfg: Cfg) -> None:
        self.f = f
        self.cfg = cfg
        self.ways: dict[tuple[int, int], set[int]] = {}  # (from, to) -> blocks in between
        self.written: dict[int, set[int]] = {}  # block -> registers

    def changed(self, nums: set[int], start: Place, end: Place) -> bool:
        """Whether any of the registers may be written after ``start`` and before ``end``."""
        if any(not nums.isdisjoint(self._writes(pos)) for pos in self._way(start[0], end[0])):
            return True
        blocks = self.f.blocks
        rest = (*blocks[start[0]].insts[start[1] + 1 :], *blocks[end[0]].insts[: end[1]])
        return any(r.num in nums for i in rest for r in written_regs(i))

    def _way(self, start: int, end: int) -> set[int]:
        found = self.ways.get((start, end))
        if found is None:
            found = self.ways[start, end] = _reach(self.cfg.succs, start, start) & _reach(self.cfg.preds, end, start)
        return found

    def _writes(self, pos: int) -> set[int]:
        found = self.written.get(pos)
        if found is None:
            found = self.written[pos] = {r.num for i in self.f.blocks[pos].insts for r in written_regs(i)}
        return found


def _reach(next_to: Sequence[Sequence[int]], start: int, stop: int) -> set[int]:
    """Blocks that can be reached from ``start`` by one jump or more without passing ``stop``."""
    found: set[int] = set()
    work = [start]
    while work:
        for n in next_to[work.pop()]:
            if n not in found and n != stop:
                found.add(n)
                work.append(n)
    return found
