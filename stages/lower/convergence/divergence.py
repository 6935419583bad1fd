"""Divergence analysis: which values and branches are the same for all threads of a warp, and where its threads may
have diverged.

A value is uniform when all its definitions have uniform sources, are under no divergent guard, and lie in no block
that a divergent group may execute while other threads do the same elsewhere. The functions are not in SSA form, so one
divergent definition makes the variable divergent everywhere. A load from a uniform address counts as uniform (ptxas
does so too: measured).

*Groups.* Every block has the label of the group of threads that executes it at the same time. Each successor of a
divergent branch gets a new label. A block that several labels reach, or that threads reach from different iterations of
a loop, is a *reconvergence point*. It gets the label of the start of its region of convergence
(:mod:`stages.lower.convergence.regions`) if the region reconverges all threads that began it, else a new label. So the
same threads execute all blocks with one label, and the whole warp executes the blocks with the entry's label.
"""

from __future__ import annotations

from ir_format.flow import Cfg, DominatorTree, build_cfg, dominators, is_guarded, is_terminator, read_regs, written_regs
from ir_format.isa import facts
from ir_format.isa.sregs import THREAD
from ir_format.model import RZ, Block, Function, Imm, Inst, Name
from ir_format.typed import Final
from stages.lower.convergence.regions import Region, Regions

#: Results that differ between threads even where the sources agree.
_VARYING: Final = facts.having("varies")
#: Results that are equal in all threads that execute the instruction at the same time, whatever their operands (ptxas
#: takes them for uniform too: no barrier around `while (__any_sync(...))`).
_AGREED: Final = facts.having("agrees")

#: Instructions in which a thread may wait for others.
_WAITING: Final = facts.having("waits")
_WHOLE_WARP: Final = 0x1F  # SHFL: no segments
_SOON = 16  # instructions of a block that ends a thread soon


class Flow:
    """CFG facts that the analysis and the barrier placement share. ``exit_only``, ``leaves``: blocks that only end the
    thread, that end it soon; ``idom``: immediate dominators; ``rank``: position in reverse post-order, -1 for
    unreachable blocks; ``dead_end``: blocks that dominate all that can follow them, so that threads there end without
    reconverging with others."""

    __slots__ = ("_tree", "cfg", "dead_end", "depth", "exit_only", "fn", "idom", "leaves", "rank")

    def __init__(self, fn: Function) -> None:
        self.fn = fn
        self.cfg: Cfg = build_cfg(fn)
        self.idom = dominators(self.cfg)
        count = len(fn.blocks)
        self.rank = [-1] * count
        self.depth = [0] * count
        for n, x in enumerate(self.cfg.rpo):
            self.rank[x] = n
            if n:
                self.depth[x] = self.depth[self.idom[x]] + 1
        self.exit_only = [_ends_thread(b) for b in fn.blocks]
        self.leaves = [_ends_soon(b) for b in fn.blocks]
        self._tree = DominatorTree(self.cfg, self.idom)
        self._find_dead_ends()

    def dominates(self, a: int, b: int) -> bool:
        """Whether every path to ``b`` passes ``a`` (a block dominates itself)."""
        return self._tree.dominates(a, b)

    def never_rejoins(self, p: int, s: int) -> bool:
        """Whether threads on this edge end without reconverging with those on other edges."""
        return self.dead_end[s] and all(q == p or self.rank[q] < 0 or self.dominates(s, q) for q in self.cfg.preds[s])

    def below(self, a: int) -> list[int]:
        """The blocks that ``a`` dominates."""
        return self._tree.below(a)

    def size_below(self, a: int) -> int:
        """How many blocks that is."""
        return self._tree.size(a)

    def common_dominator(self, a: int, b: int) -> int:
        """Nearest common dominator."""
        while a != b:
            if self.depth[a] < self.depth[b]:
                b = self.idom[b]
            else:
                a = self.idom[a]
        return a

    def _find_dead_ends(self) -> None:
        """A block is none if some edge leads from what it dominates to what it does not (an EXIT alone is copied to
        where it is needed, so it does not count)."""
        out = list(self.depth)  # per block: least depth of a block that what it dominates goes to
        count = len(out)
        for x in self.cfg.rpo:
            out[x] = count
            for s in self.cfg.succs[x]:
                if not self.exit_only[s]:
                    # the deepest dominator of x that s is dominated by too: it and what is above keep the edge inside
                    inside = self.depth[s] if self.dominates(s, x) else self.depth[self.idom[s]]
                    out[x] = min(out[x], inside)
        self.dead_end = [False] * count
        for x in reversed(self.cfg.rpo):
            self.dead_end[x] = out[x] >= self.depth[x]
            if x != self.cfg.rpo[0]:
                up = self.idom[x]
                out[up] = min(out[up], out[x])


def _ends_thread(b: Block) -> bool:
    """True for a block that does nothing but end the thread."""
    return len(b.insts) == 1 and b.insts[0].op in ("EXIT", "BPT") and not is_guarded(b.insts[0])


def _ends_soon(b: Block) -> bool:
    """True for a short block that ends the thread and waits for no other on the way: who waits for its threads waits no
    longer than that takes (ptxas has no BREAK before such blocks either)."""
    if not b.insts or len(b.insts) > _SOON or b.insts[-1].op != "EXIT" or is_guarded(b.insts[-1]):
        return False
    return not any(i.op in _WAITING or (i.attrs and "warp" in i.attrs) for i in b.insts)


def conditional(block: Block, succs: tuple[int, ...]) -> Inst | None:
    """The branch at the end of a block at which threads may diverge."""
    if len(succs) < 2 or not block.insts or not is_terminator(block.insts[-1]):
        return None
    return block.insts[-1]


class Groups:
    """Labels of the blocks for a set of divergent branches. ``dropped``: reconvergence points without a barrier.
    ``careful``: decide inner loops before outer ones."""

    def __init__(self, flow: Flow, regions: Regions) -> None:
        self.flow = flow
        self.regions = regions
        self.careful = False
        self.dropped: set[int] = set()
        self.diverging: set[int] = set()  # loops whose threads may leave them, or continue, in different iterations
        self.thinning: set[int] = set()  # loops that some threads leave for a dead end, the others stay converged
        self.late: dict[int, int] = {}  # dead end -> loop that threads leave for it in different iterations
        count = len(flow.fn.blocks)
        self.label = [-1] * count
        self.entering: dict[int, int] = {}  # loop -> label of the threads that enter it
        self._inner: dict[int, int] = {}  # loop -> label at its header in an iteration
        self.met: list[int] = []
        self.whole: set[int] = {0}
        self._edge: dict[tuple[int, int], int] = {}
        self._sources: dict[int, int] = {}  # label of an edge -> where it begins
        for x in flow.cfg.rpo:
            for s in flow.cfg.succs[x]:
                self._edge[x, s] = 1 + 2 * count + len(self._edge)
        self._loop0 = 1 + 2 * count + len(self._edge)

    def spread(self, divergent: dict[int, None]) -> None:
        """Find the labels, again after each loop that turns out to be divergent."""
        regions, flow = self.regions, self.flow
        for x in divergent:
            for s in flow.cfg.succs[x]:
                if regions.never_rejoins(x, s) and not flow.exit_only[s]:
                    for n in regions.left(x, s):
                        self.thinning.add(n)
                        self.late[s] = n
        while True:
            self._iterate(divergent)
            before = len(self.diverging)
            inner: list[set[int]] = []  # bodies of loops found now: the loops around them are asked again
            for n, loop in enumerate(regions.loops):
                if n in self.diverging or (self.careful and any(body <= loop.body for body in inner)):
                    continue
                if loop.header < 0:
                    diverges = any(x in divergent for x in loop.body)
                else:
                    diverges = any(self._out(u, loop.header, divergent) != self._inner[n] for u in loop.latches)
                if diverges:
                    self.diverging.add(n)
                    inner.append(loop.body)
            if len(self.diverging) == before:
                return

    def _iterate(self, divergent: dict[int, None]) -> None:
        flow, rank = self.flow, self.flow.rank
        self.met = []
        self.whole = {0}
        for v in flow.cfg.rpo:
            came: set[int] = set()
            iterations = False  # whether threads arrive from different iterations of a loop
            for p in flow.cfg.preds[v]:
                if 0 <= rank[p] < rank[v]:
                    came.add(self._out(p, v, divergent))
                    iterations = iterations or any(
                        n in self.diverging or (n in self.thinning and p in divergent) for n in self.regions.left(p, v)
                    )
            if rank[v] == 0:
                label = 0
            elif (len(came) > 1 or iterations or not came or v in self.regions.side_doors) and not flow.exit_only[v]:
                self.met.append(v)
                label = self._join(v)
                if flow.dead_end[v] and came <= self.whole:
                    self.whole.add(label)
            else:
                label = min(came, default=1 + v)
            for n in self.regions.headed.get(v, ()):  # the outermost first
                self.entering[n] = label
                if n in self.diverging or n in self.thinning:
                    inner = self._loop0 + n
                    if n not in self.diverging and label in self.whole:
                        self.whole.add(inner)
                    label = inner
                self._inner[n] = label
            self.label[v] = label

    def _out(self, p: int, v: int, divergent: dict[int, None]) -> int:
        """Label of the threads on an edge."""
        flow = self.flow
        label = self.label[p]
        if p in divergent:
            going = [s for s in flow.cfg.succs[p] if not flow.exit_only[s] and not self.regions.never_rejoins(p, s)]
            if going != [v]:
                made = self._edge[p, v]
                if len(going) < 2 and label in self.whole:
                    self.whole.add(made)
                return made
        for n in self.regions.left(p, v):
            if n not in self.diverging and label == self._inner.get(n):
                label = self.entering[n]
        return label

    def _join(self, v: int) -> int:
        region = self.regions.at(v)
        if region is None or region.leaks or v in self.dropped or v in self.regions.side_doors:
            return 1 + v
        return self.start(region)

    def parent(self, label: int) -> int:
        """The group that the threads of a label belonged to before: at a reconvergence point, that of its dominator."""
        count = len(self.label)
        if label >= self._loop0:
            return self.entering.get(label - self._loop0, -1)
        if label > 2 * count:
            if not self._sources:
                self._sources = {n: p for (p, _), n in self._edge.items()}
            return self.label[self._sources[label]]
        return self.label[self.flow.idom[label - 1]] if 0 < label <= count else -1

    def start(self, region: Region) -> int:
        """Label of the threads that begin a region."""
        return self.entering[region.loop] if region.loop >= 0 else self.label[region.at]


class Divergence:
    """``varying``: vregs that may differ between threads; ``divergent``: blocks that end in a divergent branch."""

    def __init__(self, fn: Function, flow: Flow, regions: Regions) -> None:
        self.flow = flow
        self.groups = Groups(flow, regions)
        self.varying: set[int] = set()
        self.divergent: dict[int, None] = {}
        self._made: list[list[int]] = [[] for _ in fn.blocks]  # per block: what it defines
        self._readers: dict[int, list[list[int]]] = {}  # vreg -> what is made of it
        self._branches: dict[int, list[int]] = {}  # vreg -> blocks whose branch reads it
        self._all: set[int] = set()
        self._late: set[tuple[int, int]] = set()
        first: list[int] = []
        for x in flow.cfg.rpo:
            for inst in fn.blocks[x].insts:
                defs = [r.num for r in written_regs(inst)]
                if not defs:
                    continue
                self._made[x] += defs
                if varies(inst):
                    first += defs
                elif inst.op not in ("CS2R", "S2R") and not (agrees(inst) and inst.attrs and "warp" in inst.attrs):
                    for r in read_regs(inst):
                        self._readers.setdefault(r.num, []).append(defs)
            branch = conditional(fn.blocks[x], flow.cfg.succs[x])
            if branch is not None and not (branch.attrs and "uni" in branch.attrs):
                for r in read_regs(branch):
                    self._branches.setdefault(r.num, []).append(x)
        self._vary(first)

    def _vary(self, work: list[int]) -> None:
        while work:
            v = work.pop()
            if v in self.varying:
                continue
            self.varying.add(v)
            for x in self._branches.get(v, ()):
                self.divergent[x] = None
            for defs in self._readers.get(v, ()):
                work += defs

    def propagate(self) -> None:
        """Follow divergence through branches and values until nothing changes."""
        while True:
            self.groups.spread(self.divergent)
            before = len(self.divergent)
            for x in self.flow.cfg.rpo:
                if x not in self._all and self.groups.label[x] not in self.groups.whole:
                    self._all.add(x)
                    self._vary(self._made[x])
            for v, n in self.groups.late.items():
                self._come_late(v, n)
            if len(self.divergent) == before:
                return

    def _come_late(self, v: int, n: int) -> None:
        """In a dead end that threads reach in different iterations of a loop, what the loop defines is not the same for
        all of them."""
        if (v, n) in self._late:
            return
        self._late.add((v, n))
        flow = self.flow
        made = {d for x in self.groups.regions.loops[n].body for d in self._made[x]}
        for x in flow.below(v):
            for inst in flow.fn.blocks[x].insts:
                if any(r.num in made for r in read_regs(inst)):
                    self._vary([r.num for r in written_regs(inst)])
                    if inst is conditional(flow.fn.blocks[x], flow.cfg.succs[x]):
                        self.divergent[x] = None


def agrees(inst: Inst) -> bool:
    """Whether all threads that execute an instruction at the same time get one result, whatever their operands."""
    return inst.op in _AGREED


def varies(inst: Inst) -> bool:
    """Whether the results differ between threads whatever the instruction reads."""
    if inst.op in _VARYING:
        return not (inst.op == "CS2R" and _plain(inst)) and not _from_one_lane(inst)
    if inst.op == "S2R":
        name = inst.srcs[0]
        return isinstance(name, Name) and name.name.startswith(THREAD)
    return False


def _from_one_lane(inst: Inst) -> bool:
    """SHFL.IDX of one lane of the whole warp: what CUTLASS and Triton make the number of a warp with, so that it counts
    as the same in all threads (in ptxas's code too: it goes on by R2UR and uniform branches)."""
    _, lane, clamp = inst.srcs if len(inst.srcs) == 3 else (None, None, None)
    return (
        inst.op == "SHFL"
        and inst.mods[0] == "IDX"
        and (type(lane) is Imm or lane == RZ)
        and type(clamp) is Imm
        and clamp.value == _WHOLE_WARP
    )


def _plain(inst: Inst) -> bool:
    """CS2R of the zero register: a move."""
    return isinstance(inst.srcs[0], Name) and inst.srcs[0].name == "SRZ"
