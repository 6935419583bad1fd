"""Convergence barriers: BSSY where threads may part, BSYNC where they meet, BREAK where some leave for good.

For every divergent branch X with meeting point J (:meth:`Flow.join`) a region (S, J) is found: S dominates every block that lies between it and J,
and no path comes back to S before J. S is X itself where that holds; for a branch inside a loop that J lies outside of, S is
a new block in front of the loop's header. On each edge from the region to J stands one BSYNC block. Where a thread can leave the region to a
place from which J can't be reached, it executes BREAK, so that nobody waits for it; EXIT does that by itself.
Two regions with one J where one S dominates the other are one region. A region with several entries (irreducible flow) gets no barrier: threads then
meet later or never, which is slower but right, since what needs all threads waits for them by WARPSYNC (:func:`wait_for_warp`).
"""

from __future__ import annotations

from ir_format.flow import build_cfg, falls_through, jump_targets
from ir_format.model import RZ, Block, Function, Imm, Inst, Label, Reg, Sym

from .divergence import Flow, find_divergence

_SHORT = 16  # instructions that groups of threads may run apart rather than meet (guessed; ptxas has no such meeting points)
_CLIMB = 8  # dominators of a branch that are tried as the start of its region


class Region:
    """One barrier. ``at``: block whose end gets the BSSY, or -1 with ``header``: the loop header that it stands in front of."""

    __slots__ = ("at", "bar", "breaks", "cycle", "header", "inside", "join", "node")

    def __init__(self, at: int, header: int, join: int, inside: set[int], cycle: set[int], breaks: set[tuple[int, int]]) -> None:
        self.at = at
        self.header = header
        self.join = join
        self.inside = inside
        self.cycle = cycle
        self.breaks = breaks
        self.bar: Reg | None = None
        self.node = -1  # id of the BSYNC block


def insert_convergence(fn: Function, sm: int) -> None:
    """Mark uniform vregs and insert the barriers."""
    _end_apart(fn)
    flow = Flow(fn)
    varying, parted = find_divergence(fn, flow)
    fn.vregs = [v if i in varying or v.file == "B" else v._replace(uniform=1) for i, v in enumerate(fn.vregs)]
    regions = _choose(flow, parted)
    if regions:
        _Rebuild(fn, flow, regions, sm).run()
    if parted or fn.kind != "entry" or any(i.op == "CALL" for b in fn.blocks for i in b.insts):
        wait_for_warp(fn, sm)


def _end_apart(fn: Function) -> None:
    """Blocks that go to a block that is only an EXIT end with one of their own, so that where two ways of a kernel end is no place where their threads meet."""
    alone = {b.id for b in fn.blocks if len(b.insts) == 1 and b.insts[0].op == "EXIT" and b.insts[0].guard is None}
    if not alone:
        return
    for b, after in zip(fn.blocks, [*fn.blocks[1:], None], strict=True):
        last = b.insts[-1] if b.insts else None
        if last is not None and last.op == "BRA" and last.guard is None and not last.uses and len(last.srcs) == 1 and type(last.srcs[0]) is Label:
            if last.srcs[0].block in alone:
                b.insts[-1] = Inst("EXIT", (), (), (), None, last.line, last.loc)
        elif after is not None and after.id in alone and falls_through(b) and (last is None or not jump_targets(last)):
            end = after.insts[0]
            b.insts.append(Inst("EXIT", (), (), (), None, end.line, end.loc))


def _spins(fn: Function, r: Region) -> bool:
    """Whether a loop waits for other threads: it swaps or exchanges in memory (ptxas yields in such loops, and in no others: measured)."""
    for v in r.cycle:
        for i in fn.blocks[v].insts:
            if i.op in ("ATOM", "ATOMG", "ATOMS") and ("CAS" in i.mods or "EXCH" in i.mods) and not (i.attrs and "retry" in i.attrs):
                return True
    return False


def wait_for_warp(fn: Function, sm: int) -> None:
    """WARPSYNC before instructions that need the whole warp (attrs ``warp``), wherever threads may have parted before.

    BSYNC alone does not promise it: a YIELD lets waiting threads go on. ptxas does the same (measured on sm_90 and sm_100). Divergent branches
    count too, as some have no barrier.
    """
    cfg = build_cfg(fn)
    entry = [False] * len(fn.blocks)
    entry[0] = fn.kind != "entry"  # part of a warp may call a function

    def parts(i: Inst) -> bool:
        if i.op in ("BSSY", "BSYNC", "CALL", "BRX"):
            return True
        return i.op == "BRA" and i.guard is not None and i.guard.file == "P" and not fn.vregs[i.guard.num].uniform

    def leave(pos: int) -> bool:
        apart = entry[pos]
        for i in fn.blocks[pos].insts:
            if parts(i):
                apart = True
            elif _gathers(i):
                apart = False
        return apart

    starts = [any(parts(i) for i in b.insts) for b in fn.blocks]
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
    full: tuple[Imm, ...] = () if sm >= 90 else (Imm("I", 0xFFFFFFFF),)
    mods = ("ALL",) if sm >= 90 else ()
    for pos in sorted(seen):
        apart = entry[pos]
        out: list[Inst] = []
        for i in fn.blocks[pos].insts:
            if apart and i.attrs and "warp" in i.attrs:
                out.append(Inst("WARPSYNC", mods, (), full, i.guard, i.line, i.loc))
            if parts(i):
                apart = True
            elif _gathers(i):
                apart = False
            out.append(i)
        fn.blocks[pos].insts = out


def _gathers(i: Inst) -> bool:
    """Whether the whole warp is at one place behind an instruction; a WARPSYNC of some threads says nothing of the others."""
    if i.op != "WARPSYNC":
        return bool(i.attrs and "warp" in i.attrs)
    return i.mods == ("ALL",) or (bool(i.srcs) and type(i.srcs[0]) is Imm and i.srcs[0].value & 0xFFFFFFFF == 0xFFFFFFFF)


Key = tuple[int, int, int]


def _choose(flow: Flow, parted: list[int]) -> list[Region]:
    """The regions that can all be had together.

    Where a branch's threads meet without a barrier they run apart: they may then pass one and the same inner region as separate groups, which would
    share its barrier register. So the regions that follow such a place, up to where an enclosing region brings the threads together, are given up too.
    """
    found: dict[Key, Region] = {}
    wanted: list[tuple[int, int, Key | None]] = []  # (branch, meeting point or -1, its region)
    for x in parted:
        j = flow.join(x)
        points = flow.meeting_points(x, j)
        if j < 0 and not points and flow.merges(x):
            wanted.append((x, -1, None))
        for t in points if j < 0 else [j, *points]:
            r = _find_region(flow, x, t, -1 if t == j else j)
            if r is not None and r.breaks and ((t != j and j >= 0 and _short(flow, t, j)) or _kept_elsewhere(flow, r)):
                r = None
            wanted.append((x, t, None if r is None else (r.at, r.header, r.join)))
            if r is not None:
                found.setdefault((r.at, r.header, r.join), r)
    while True:
        regions = _drop_nested(list(found.values()))
        gone = {(r.at, r.header, r.join) for r in _clashing(flow, regions)}
        for x, t, key in wanted:
            if key is not None and key in found and key not in gone:
                continue
            around = [r for k, r in found.items() if k not in gone and (x in r.inside or x == r.at) and t != r.join]
            for r in sorted(around, key=lambda r: (len(r.inside), r.join)):
                loose = flow.region(x, r.join) if t < 0 else flow.region(t, r.join) | {t}
                if not any(u in loose for u, _ in r.breaks):  # all of them come to its join
                    break
            else:
                loose = flow.region(x, -1) if t < 0 else flow.region(t, -1) | {t}
            gone |= {k for k, r in found.items() if (r.at if r.at >= 0 else r.header) in loose}
        if not gone & found.keys():
            joins = {r.join for r in regions}
            for r in regions:  # nobody waits long for threads that end soon, unless they wait for others on their way there
                r.breaks = {(u, v) for u, v in r.breaks if not flow.leaves[v] or v in joins}
            return regions
        for k in gone:
            found.pop(k, None)


def _kept_elsewhere(flow: Flow, r: Region) -> bool:
    """Whether threads of the region call a function of the program: it may keep their barrier and give it back as it was, with those that left it meanwhile, for whom they
    would wait for ever. (ptxas has BREAK in front of the branch, under its predicate, so that nobody is in the call yet: measured.)"""
    calls = (i for u in r.inside for i in flow.fn.blocks[u].insts if i.op == "CALL")
    return any(not any(type(o) is Sym and o.name.startswith("__orias_") for o in i.srcs) for i in calls)


def _short(flow: Flow, t: int, j: int) -> bool:
    """Whether the way from ``t`` to ``j`` is so short that groups of threads may as well go it apart: BREAKs on the other ways would cost more."""
    between = flow.region(t, j) | {t}
    return sum(len(flow.fn.blocks[v].insts) for v in between) <= _SHORT and not any(t in flow.cfg.succs[v] or v in flow.region(v, j) for v in between)


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
    """Regions whose BSYNC would stand in two places: BSSY can name only one."""
    places: dict[int, set[tuple[int, tuple[Step, ...]]]] = {}
    for (_, v), chain in edge_steps(flow, regions).items():
        for k, (kind, i) in enumerate(chain):
            if kind == "Y":
                places.setdefault(i, set()).add((v, chain[k:]))
    return [regions[i] for i, p in sorted(places.items()) if len(p) > 1]


def _find_region(flow: Flow, x: int, j: int, end: int) -> Region | None:
    """The region of branch ``x`` whose threads meet at ``j``; threads that reach ``end`` (-1: nothing) meet there instead."""
    s = x
    climbed = 0
    for _ in range(len(flow.cfg.succs)):
        ahead = flow.region(s, j, end)
        cycle = _cycle(flow, s, ahead)
        if cycle:
            heads = {v for v in cycle if any(p not in cycle for p in flow.cfg.preds[v])}
            if len(heads) != 1 or flow.cfg.rpo[0] in cycle:
                return None
            head = heads.pop()
            region = Region(-1, head, j, _before(flow, -1, j, ahead | cycle, head, cycle), cycle, set())
            top = head
        else:
            region = Region(s, -1, j, _before(flow, s, j, ahead, -1, cycle), cycle, set())
            top = s
        d = top
        for v in region.inside:
            d = flow.common_dominator(d, v)
        if d == top:
            region.breaks = _breaks(flow, region)
            if not _comes_again(flow, region):
                return region
            # threads that don't pass x come to j too: a start above x may serve all of them
            d = flow.idom[top]
            climbed += 1
            if end >= 0 or d == top or climbed > _CLIMB:
                return None
        s = d
    return None


def _cycle(flow: Flow, s: int, ahead: set[int]) -> set[int]:
    """Blocks on cycles through ``s`` within ``ahead``."""
    if s not in ahead:
        return set()
    seen = {s}
    work = [s]
    while work:
        for p in flow.cfg.preds[work.pop()]:
            if p in ahead and p not in seen:
                seen.add(p)
                work.append(p)
    return seen


def _before(flow: Flow, s: int, j: int, ahead: set[int], head: int, cycle: set[int]) -> set[int]:
    """The blocks of ``ahead`` (without ``s``) from which ``j`` can be reached without a new start."""
    can: set[int] = set()
    work = [p for p in flow.cfg.preds[j] if p in ahead and p != s]
    while work:
        v = work.pop()
        if v in can:
            continue
        can.add(v)
        for p in flow.cfg.preds[v]:
            if p in ahead and p != s and not (v == head and p not in cycle):
                work.append(p)
    return can


def _breaks(flow: Flow, r: Region) -> set[tuple[int, int]]:
    """Edges on which a thread gives up meeting at the region's join."""
    out: set[tuple[int, int]] = set()
    for u in (*r.inside, *((r.at,) if r.at >= 0 else ())):
        for v in flow.cfg.succs[u]:
            again = (v == r.header and u not in r.cycle) or v == r.at
            if v != r.join and (v not in r.inside or again) and not flow.exit_only[v]:
                out.add((u, v))
    return out


def _comes_again(flow: Flow, r: Region) -> bool:
    """Whether a thread can pass the join twice without a new start: the barrier would be stale."""
    seen: set[int] = set()
    work = [r.join]
    round_ = flow.rounds()
    while work:
        u = work.pop()
        for v in flow.cfg.succs[u]:
            if round_[v] != round_[r.join]:
                continue
            if v == r.at or (v == r.header and u not in r.cycle):
                continue
            if v == r.join:
                return True
            if v not in seen:
                seen.add(v)
                work.append(v)
    return r.join == r.at


def _drop_nested(regions: list[Region]) -> list[Region]:
    """Leave out a region whose threads meet at the same place by an outer one."""
    by_join: dict[int, list[Region]] = {}
    for r in regions:
        by_join.setdefault(r.join, []).append(r)
    out: list[Region] = []
    for r in regions:
        start = r.at if r.at >= 0 else r.header
        if not any(o is not r and start in o.inside and (o.at != r.at or o.header != r.header) for o in by_join[r.join]):
            out.append(r)
    return out


class _Rebuild:
    """Edits the function: every edge gets its chain of inserted blocks, then the layout is made again."""

    def __init__(self, fn: Function, flow: Flow, regions: list[Region], sm: int) -> None:
        self.fn = fn
        self.flow = flow
        self.regions = regions
        self.next_id = max(b.id for b in fn.blocks) + 1
        self.nodes: dict[tuple[int, tuple[tuple[str, int], ...]], Block] = {}
        self.before: dict[int, list[Block]] = {}
        self.fall: dict[int, int] = {}  # block id -> id it falls through to
        self.suffix = ".RECONVERGENT" if sm >= 100 else ""
        self.reliable = ".RELIABLE" if sm >= 100 else ""
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
                _retarget(b.insts[-1], moved)
        for i, r in enumerate(self.regions):
            for (_, chain), node in self.nodes.items():
                if chain[0] == ("Y", i):
                    r.node = node.id
        for (_, chain), node in self.nodes.items():
            node.insts += self._inserted(chain[0])
        for head in sorted({r.header for r in self.regions if r.header >= 0 and _spins(fn, r)}):
            first = blocks[head].insts
            first.insert(0, Inst("YIELD", (), (), (), None, first[0].line if first else 0))
        for r in sorted((r for r in self.regions if r.at >= 0), key=lambda r: -len(r.inside)):
            b = blocks[r.at]
            if b.insts:
                b.insts[-1:] = [*self._bssy(r, b.insts[-1]), b.insts[-1]]
            else:
                b.insts = self._bssy(r, None)
        self._layout(blocks)

    def _node(self, v: int, chain: tuple[tuple[str, int], ...]) -> int:
        """Id of the first block of a chain in front of position ``v``."""
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
        if self.sm < 100:
            return ()
        return ("RELIABLE",) if r.breaks else ("RECONVERGENT",)

    def _bssy(self, r: Region, where: Inst | None) -> list[Inst]:
        assert r.bar is not None
        line = where.line if where is not None else 0
        start = Inst("BSSY", self._kind(r), (r.bar,), (Label("L", r.node),), None, line)
        if self.sm >= 80:
            return [start]
        # ptxas clears the barrier before BSSY on sm_75, and only there (measured): old participants may be left in it
        return [Inst("UNDEF", (), (r.bar,), (), None, line), Inst("BMOV", ("32", "CLEAR"), (RZ,), (r.bar,), None, line), start]

    def _layout(self, blocks: list[Block]) -> None:
        order: list[Block] = []
        for pos, b in enumerate(blocks):
            # chains in front of a block: longer ones first, so that they fall into one another
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
                if b.insts and b.insts[-1].op in ("EXIT", "RET", "BPT"):
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


def _retarget(inst: Inst, moved: dict[int, int]) -> None:
    """Replace block ids in a jump."""
    inst.srcs = tuple(Label("L", moved.get(o.block, o.block)) if type(o) is Label else o for o in inst.srcs)
    inst.uses = tuple(Label("L", moved.get(o.block, o.block)) if type(o) is Label else o for o in inst.uses)
