"""Convergence barriers: BSSY where threads may diverge, BSYNC where they reconverge, BREAK where some leave for good.

Every reconvergence point of groups of threads (:class:`stages.lower.convergence.divergence.Groups`) gets the region
that :mod:`stages.lower.convergence.regions` finds for it. Each edge from the region to its join has one BSYNC block.
Where a thread can leave the region to a place from which the join can't be reached, it executes BREAK, so that nothing
waits for it; EXIT does that by itself. No barrier is inserted for

* regions in which some threads may wait for the whole warp (BAR, WARPSYNC of all threads) while others already wait at
  the join: a deadlock. (ptxas drops the innermost one);
* reconvergence points from which the path to the next one is short: the path is cheaper than the barrier;
* regions with several entries (irreducible flow).

Diverged groups may execute the code after a dropped join. The regions there are made as elsewhere (ptxas does the
same), but no instruction there counts as executed by the whole warp.
"""

from __future__ import annotations

from ir_format.features import has
from ir_format.flow import build_cfg, falls_through, is_terminator, jump_targets
from ir_format.isa import facts
from ir_format.model import RZ, Block, Function, Imm, Inst, Label
from ir_format.typed import Final
from stages.analysis.abi import callee
from stages.analysis.divergence import gathers
from stages.lower.convergence.divergence import Divergence, Flow, Groups
from stages.lower.convergence.latches import add_latches, place_latches, retarget
from stages.lower.convergence.regions import Region, Regions
from stages.lower.convergence.shared_values import GroupDivergence
from stages.lower.convergence.waits import find_waits
from stages.lower.convergence.waterfall_loops import choose_constants, has_waterfalls, shorten_waterfalls

# how many instructions diverged groups may execute separately where reconverging before them would need BREAKs (what
# BREAKs cost)
_SHORT = 6
_FEW = 2  # the same where no BREAK is needed: what BSSY and BSYNC cost


_DIVERGING: Final = facts.with_value("ctl", "bssy", "bsync", "call") | {"BRX"}
_ENDING: Final = facts.with_value("ctl", "exit", "ret", "trap")


def insert_convergence(fn: Function, sm: int, exact: frozenset[str] = frozenset()) -> None:
    """Mark uniform vregs and insert the barriers. ``exact``: functions that save no barrier for their callers
    (:func:`stages.analysis.abi.without_saves`)."""
    _duplicate_exits(fn)
    grouped = has_waterfalls(fn, sm)
    if grouped:
        choose_constants(fn)
    flow = Flow(fn)
    found = Regions(flow)
    latches: dict[int, int] = {}
    if found.shared_latches:
        latches = add_latches(fn, found.shared_latches)
        flow = Flow(fn)
        found = Regions(flow)
    state = GroupDivergence(fn, flow, found) if grouped else Divergence(fn, flow, found)
    regions = _choose(flow, found, state, exact)
    if isinstance(state, GroupDivergence) and shorten_waterfalls(fn, sm, flow, state.shared):
        flow = Flow(fn)
        found = Regions(flow)
        state = GroupDivergence(fn, flow, found)
        regions = _choose(flow, found, state, exact)
    fn.vregs = [v if i in state.varying or v.file == "B" else v._replace(uniform=1) for i, v in enumerate(fn.vregs)]
    spins = find_waits(flow, found, state)
    for r in regions:
        r.plain = spins.plain(r)
    if regions or spins.heads:
        _Rebuild(fn, flow, regions, sm, spins.heads).run()
    if latches:
        place_latches(fn, latches)
    if state.divergent or fn.kind != "entry" or any(i.op == "CALL" for b in fn.blocks for i in b.insts):
        wait_for_warp(fn, sm)


def _duplicate_exits(fn: Function) -> None:
    """Give every block that continues to a block with only an EXIT an EXIT of its own, so that two paths that end the
    kernel have no reconvergence point."""
    alone = {b.id for b in fn.blocks if len(b.insts) == 1 and b.insts[0].op == "EXIT" and b.insts[0].guard is None}
    if not alone:
        return
    for b, after in zip(fn.blocks, [*fn.blocks[1:], None], strict=True):
        last = b.insts[-1] if b.insts else None
        if (
            last is not None
            and last.op == "BRA"
            and last.guard is None
            and not last.uses
            and len(last.srcs) == 1
            and type(last.srcs[0]) is Label
        ):
            if last.srcs[0].block in alone:
                b.insts[-1] = Inst("EXIT", (), (), (), None, last.line, last.loc)
        elif after is not None and after.id in alone and falls_through(b) and (last is None or not jump_targets(last)):
            end = after.insts[0]
            b.insts.append(Inst("EXIT", (), (), (), None, end.line, end.loc))


def wait_for_warp(fn: Function, sm: int) -> None:
    """WARPSYNC before instructions that need the whole warp (attrs ``warp``), wherever threads may have diverged
    before.

    BSYNC alone does not promise it: a YIELD lets waiting threads continue. ptxas does the same (measured on sm_90 and
    sm_100). Divergent branches count too, as some have no barrier.
    """
    cfg = build_cfg(fn)
    entry = [False] * len(fn.blocks)
    entry[0] = fn.kind != "entry"  # a divergent group may call a function

    def diverges(i: Inst) -> bool:
        if i.op in _DIVERGING:
            return True
        return i.op == "BRA" and i.guard is not None and i.guard.file == "P" and not fn.vregs[i.guard.num].uniform

    def leave(pos: int) -> bool:
        diverged = entry[pos]
        for i in fn.blocks[pos].insts:
            if diverges(i):
                diverged = True
            elif _gathers(i):
                diverged = False
        return diverged

    starts = [any(diverges(i) for i in b.insts) for b in fn.blocks]
    work = [p for p in cfg.rpo if starts[p] or entry[p]]
    seen = set(work)
    while work:
        pos = work.pop()
        if not leave(pos):
            continue
        for s in cfg.succs[pos]:
            if not entry[s]:
                entry[s] = True
                work.append(s)
                seen.add(s)
    full: tuple[Imm, ...] = () if has(sm, "warpsync-all") else (Imm("I", 0xFFFFFFFF),)
    mods = ("ALL",) if has(sm, "warpsync-all") else ()
    for pos in sorted(seen):
        diverged = entry[pos]
        out: list[Inst] = []
        for i in fn.blocks[pos].insts:
            if diverged and i.attrs and "warp" in i.attrs:
                out.append(Inst("WARPSYNC", mods, (), full, i.guard, i.line, i.loc))
            if diverges(i):
                diverged = True
            elif _gathers(i):
                diverged = False
            out.append(i)
        fn.blocks[pos].insts = out


def _gathers(i: Inst) -> bool:
    """Whether the whole warp is at one place after an instruction; a WARPSYNC of some threads says nothing of the
    others."""
    if i.op != "WARPSYNC":
        return bool(i.attrs and "warp" in i.attrs)
    return gathers(i)


def _choose(flow: Flow, found: Regions, state: Divergence, exact: frozenset[str]) -> list[Region]:
    """The regions that are possible at the same time. When one is dropped, its groups stay diverged, which may make
    more values and branches divergent; so the groups are found again."""
    groups = state.groups
    whole = [n for n, b in enumerate(flow.fn.blocks) if any(_needs_warp(i) for i in b.insts)]
    while True:
        state.propagate()
        gone: set[int] = set()
        regions: list[Region] = []
        for j in groups.met:
            r = found.at(j)
            if r is None or j in groups.dropped:
                continue
            if _can_deadlock(whole, groups, r) or (
                any(not flow.leaves[v] for _, v in r.leaving) and _kept_elsewhere(flow, r, exact)
            ):
                gone.add(j)
            else:
                regions.append(r)
        if not gone:
            regions = _worth(flow, regions)
            crossing = _crossing(regions) if found.side_doors else []  # only irreducible flow has them
            gone = {r.join for r in crossing or _clashing(flow, regions)}
        if not gone:
            joins = {r.join for r in regions}
            for (
                r
                # nothing waits long for threads that end soon, unless they wait for others on their path to the end
            ) in regions:
                r.breaks = {(u, v) for u, v in r.leaving if not flow.leaves[v] or v in joins}
            kept = {r.join for r in regions if not r.leaks}
            short = {
                j
                for j in groups.met
                if j not in kept and j not in groups.dropped and (r := found.at(j)) is not None and not r.leaks
            }
            if not short:
                return regions
            gone = short
        groups.dropped |= gone


def _can_deadlock(whole: list[int], groups: Groups, r: Region) -> bool:
    """Whether threads in the region may wait for the whole warp (in one of the blocks ``whole``) while others wait at
    the join: true if such a block is not executed by all threads that began the region."""
    start = groups.start(r)
    return any(x in r.inside and groups.label[x] != start for x in whole)


def _needs_warp(i: Inst) -> bool:
    return bool(i.attrs and "warp" in i.attrs) or (i.op == "WARPSYNC" and _gathers(i))


def _worth(flow: Flow, regions: list[Region]) -> list[Region]:
    """Drop joins from which a short path leads to the join of a region around them. Joins are visited from the last to
    the first, so that those which a path may reach are decided already."""
    regions = _one_of_many(flow, _one_end(flow, regions))
    kept: dict[int, Region] = {}
    for r in sorted(regions, key=lambda r: -flow.rank[r.join]):
        leaves = any(not flow.leaves[v] for _, v in r.leaving)
        if not _short(flow, r.join, kept, _SHORT if leaves else _FEW):
            kept[r.join] = r
    return [r for r in regions if r.join in kept]


def _one_end(flow: Flow, regions: list[Region]) -> list[Region]:
    """Of the short ends of the kernel that threads from one start reach, keep only the longest as a join: threads that
    wait at two ends would wait for each other. (ptxas keeps one, too.)"""
    best: dict[tuple[int, int], int] = {}
    size = [len(b.insts) for b in flow.fn.blocks]
    for r in regions:
        if flow.leaves[r.join]:
            old = best.get((r.at, r.header))
            if old is None or size[r.join] >= size[old]:
                best[r.at, r.header] = r.join
    return [r for r in regions if not flow.leaves[r.join] or best[r.at, r.header] == r.join]


def _one_of_many(flow: Flow, regions: list[Region]) -> list[Region]:
    """Of the joins that threads from one start reach or leave by a BREAK, keep the last one: each other join would
    need a BREAK on every path to it. (ptxas keeps the same one, beside the join of all threads.)"""
    starts = {r.join: r.at if r.at >= 0 else r.header for r in regions}

    def breaks(r: Region, v: int) -> bool:
        return not flow.leaves[v] or (v in starts and starts[v] not in r.inside)

    left = [r for r in regions if any(breaks(r, v) for v in r.beyond)]
    last: dict[tuple[int, int], int] = {}
    for r in left:
        last[r.at, r.header] = max(last.get((r.at, r.header), 0), flow.rank[r.join])
    gone = {r.join for r in left if last[r.at, r.header] != flow.rank[r.join]}
    return [r for r in regions if r.join not in gone]


def _short(flow: Flow, j: int, kept: dict[int, Region], most: int) -> bool:
    """Whether every path from ``j`` reaches, without a loop and within ``most`` instructions, a join that waits for the
    threads at ``j``."""
    seen = {j}
    work = [j]
    count = 0
    while work:
        x = work.pop()
        count += len(flow.fn.blocks[x].insts)
        if count > most or not flow.cfg.succs[x]:
            return False
        for s in flow.cfg.succs[x]:
            around = kept.get(s)
            if around is not None and (j in around.inside or j == around.at) and s != j:
                continue
            if flow.rank[s] <= flow.rank[x]:
                return False
            if s not in seen and not flow.exit_only[s]:
                seen.add(s)
                work.append(s)
    return True


def _crossing(regions: list[Region]) -> list[Region]:
    """Regions that form a cycle, each with the join of the next inside: their threads could wait for each other."""
    joins = {r.join: r for r in regions}
    holds = {
        j: [o for o in joins if o in r.inside] if len(r.inside) > len(joins) else [o for o in r.inside if o in joins]
        for j, r in joins.items()
    }
    done: dict[int, int] = {}  # 1: on the current path, 2: finished
    for root in joins:
        if root in done:
            continue
        done[root] = 1
        work = [(root, iter(holds[root]))]
        while work:
            j, rest = work[-1]
            for o in rest:
                if o not in done:
                    done[o] = 1
                    work.append((o, iter(holds[o])))
                    break
                if done[o] == 1 and o != j:
                    path = [x for x, _ in work]
                    cycle = [joins[x] for x in path[path.index(o) :]]
                    return [min(cycle, key=lambda r: (len(r.inside), r.join))]
            else:
                done[j] = 2
                work.pop()
    return []


def _kept_elsewhere(flow: Flow, r: Region, exact: frozenset[str]) -> bool:
    """Whether threads of the region call a function that may save their barrier and restore it with threads that have
    left it meanwhile, for which they would wait forever. Functions of the unit that follow no convention use other
    barriers. (ptxas puts BREAK before the branch, under its predicate, when no thread is in the call yet: measured.)"""
    return any(i.op == "CALL" and callee(i) not in exact for u in r.inside for i in flow.fn.blocks[u].insts)


Step = tuple[str, int]


def edge_steps(flow: Flow, regions: list[Region]) -> dict[tuple[int, int], tuple[Step, ...]]:
    """Per edge (positions), the inserted steps in order: K = BREAK, Y = BSYNC, S = BSSY; with the region's index."""
    steps: dict[tuple[int, int], list[Step]] = {}
    for i, r in enumerate(regions):
        for e in sorted(r.breaks):
            steps.setdefault(e, []).append(("K", i))
    for i, r in enumerate(regions):
        for u in flow.cfg.preds[r.join]:
            if u in r.inside or u == r.at:
                steps.setdefault((u, r.join), []).append(("Y", i))
    for i, r in sorted(enumerate(regions), key=lambda ir: -len(ir[1].inside)):
        if r.header >= 0:
            for u in flow.cfg.preds[r.header]:
                if u not in r.cycle:
                    steps.setdefault((u, r.header), []).append(("S", i))
    return {e: tuple(s) for e, s in steps.items()}


def _clashing(flow: Flow, regions: list[Region]) -> list[Region]:
    """Regions whose BSYNC would be in two places: BSSY can name only one."""
    places: dict[int, set[tuple[int, tuple[Step, ...]]]] = {}
    for (_, v), chain in edge_steps(flow, regions).items():
        for k, (kind, i) in enumerate(chain):
            if kind == "Y":
                places.setdefault(i, set()).add((v, chain[k:]))
    return [regions[i] for i, p in sorted(places.items()) if len(p) > 1]


class _Rebuild:
    """Edits the function: every edge gets its chain of inserted blocks, then the layout is recomputed."""

    def __init__(self, fn: Function, flow: Flow, regions: list[Region], sm: int, spins: set[int]) -> None:
        self.fn = fn
        self.flow = flow
        self.regions = regions
        self.next_id = max(b.id for b in fn.blocks) + 1
        self.nodes: dict[tuple[int, tuple[tuple[str, int], ...]], Block] = {}
        self.before: dict[int, list[Block]] = {}
        self.fall: dict[int, int] = {}  # block id -> id it falls through to
        self.spins = spins
        self.sm = sm

    def run(self) -> None:
        fn, flow = self.fn, self.flow
        chains = edge_steps(flow, self.regions)
        blocks = list(fn.blocks)
        for r in self.regions:
            r.bar = fn.new_vreg("B")
        for pos, b in enumerate(blocks):
            falls = pos + 1 < len(blocks) and falls_through(b)
            targets = [flow.cfg.index[t] for t in jump_targets(b.insts[-1])] if b.insts else []
            moved: dict[int, int] = {}
            for v in {*targets, *((pos + 1,) if falls else ())}:
                chain = chains.get((pos, v), ())
                moved[blocks[v].id] = self._node(v, chain)
            if falls:
                self.fall[b.id] = moved[blocks[pos + 1].id]
            if targets:
                retarget(b.insts[-1], moved)
        for (_, chain), node in self.nodes.items():
            if chain[0][0] == "Y":
                self.regions[chain[0][1]].node = node.id
        for (_, chain), node in self.nodes.items():
            node.insts += self._inserted(chain[0])
        for head in sorted(self.spins):
            first = blocks[head].insts
            first.insert(0, Inst("YIELD", (), (), (), None, first[0].line if first else 0))
        for r in sorted((r for r in self.regions if r.at >= 0), key=lambda r: -len(r.inside)):
            b = blocks[r.at]
            if b.insts and is_terminator(b.insts[-1]):
                b.insts[-1:] = [*self._bssy(r, b.insts[-1]), b.insts[-1]]
            else:
                b.insts += self._bssy(r, None)
        self._layout(blocks)

    def _node(self, v: int, chain: tuple[tuple[str, int], ...]) -> int:
        """Id of the first block of a chain before position ``v``."""
        if not chain:
            return self.fn.blocks[v].id
        got = self.nodes.get((v, chain))
        if got is None:
            after = self._node(v, chain[1:])
            got = Block(self.next_id)
            self.next_id += 1
            self.nodes[(v, chain)] = got
            self.fall[got.id] = after
            self.before.setdefault(v, []).append(got)
        return got.id

    def _inserted(self, step: tuple[str, int]) -> list[Inst]:
        kind, i = step
        r = self.regions[i]
        assert r.bar is not None
        line = self.fn.blocks[r.join].insts[0].line if self.fn.blocks[r.join].insts else 0
        if kind == "Y":
            return [Inst("BSYNC", self._kind(r), (), (r.bar,), None, line)]
        if kind == "K":
            return [Inst("BREAK", self._kind(r), (), (r.bar,), None, line)]
        return self._bssy(r, None)

    def _kind(self, r: Region) -> tuple[str, ...]:
        if not has(self.sm, "bssy-kinds") or r.plain:
            return ()
        return ("RELIABLE",) if r.breaks else ("RECONVERGENT",)

    def _bssy(self, r: Region, where: Inst | None) -> list[Inst]:
        assert r.bar is not None
        line = where.line if where is not None else 0
        start = Inst("BSSY", self._kind(r), (r.bar,), (Label("L", r.node),), None, line)
        if has(self.sm, "bssy-clears"):
            return [start]
        # ptxas clears the barrier before BSSY on sm_75, and only there (measured): old participants may be left in it
        return [
            Inst("UNDEF", (), (r.bar,), (), None, line),
            Inst("BMOV", ("32", "CLEAR"), (RZ,), (r.bar,), None, line),
            start,
        ]

    def _layout(self, blocks: list[Block]) -> None:
        order: list[Block] = []
        for pos, b in enumerate(blocks):
            # chains before a block: longer ones first, so that they fall into one another
            order += sorted(self.before.get(pos, ()), key=lambda n: -self._distance(n, b))
            order.append(b)
        out: list[Block] = []
        for i, b in enumerate(order):
            out.append(b)
            to = self.fall.get(b.id)
            if to is None:
                continue
            nxt = order[i + 1].id if i + 1 < len(order) else -1
            if to == nxt:
                continue
            line = b.insts[-1].line if b.insts else 0
            jump = Inst("BRA", (), (), (Label("L", to),), None, line)
            if b.insts and jump_targets(b.insts[-1]):
                out.append(Block(self.next_id, [jump]))
                self.next_id += 1
            else:
                if b.insts and b.insts[-1].op in _ENDING:
                    out.append(Block(self.next_id, [jump]))
                    self.next_id += 1
                else:
                    b.insts.append(jump)
        self.fn.blocks = out

    def _distance(self, node: Block, b: Block) -> int:
        n, at = 0, node.id
        while at != b.id:
            at = self.fall[at]
            n += 1
        return n
