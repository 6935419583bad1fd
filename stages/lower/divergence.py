"""Divergence analysis: which values and branches are the same for all threads of a warp.

A value is uniform when all its definitions have uniform sources, stand under no divergent guard, and lie in no block that depends on a
divergent branch. The functions are not in SSA form, so one divergent definition makes the variable divergent everywhere.
A load from a uniform address counts as uniform (ptxas does so too: measured).
"""

from __future__ import annotations

from typing import Final

from ir_format.flow import Cfg, build_cfg, dominators, is_guarded, is_terminator, read_regs, written_regs
from ir_format.isa import facts
from ir_format.isa.sregs import THREAD
from ir_format.model import Block, Function, Inst, Name

#: Results that differ between threads even where the sources agree.
_VARYING: Final = facts.having("varies")
#: Instructions in which a thread may wait for others.
_WAITING: Final = facts.having("waits")
_SOON = 16  # instructions of a block that ends a thread soon


class Flow:
    """CFG facts that the analysis and the barrier placement share. ``join[x]``: block where the paths of branch ``x`` meet again, -1 if nowhere;
    ``exit_only``, ``leaves``: blocks that only end the thread, that end it soon; ``idom``; ``reach``: per block, bitset of the blocks that can follow it."""

    __slots__ = ("_main", "_pdom_depth", "_reach", "_rounds", "cfg", "depth", "exit_only", "fn", "idom", "ipdom", "leaves")

    def __init__(self, fn: Function) -> None:
        self.fn = fn
        self.cfg: Cfg = build_cfg(fn)
        self.idom = dominators(self.cfg)
        self.depth = [0] * len(fn.blocks)
        for x in self.cfg.rpo[1:]:
            self.depth[x] = self.depth[self.idom[x]] + 1
        self.ipdom, self._pdom_depth = _post_dominators(self.cfg, [x for x, s in enumerate(self.cfg.succs) if not s])
        self._main: list[int] | None = None
        self._rounds: list[int] | None = None
        self.exit_only = [_ends_thread(b) for b in fn.blocks]
        self.leaves = [_ends_soon(b) for b in fn.blocks]
        self._reach: list[int] | None = None

    def common_dominator(self, a: int, b: int) -> int:
        """Nearest common dominator."""
        while a != b:
            if self.depth[a] < self.depth[b]:
                b = self.idom[b]
            else:
                a = self.idom[a]
        return a

    def rounds(self) -> list[int]:
        """Strongly connected component of every block (Tarjan, iterative)."""
        if self._rounds is None:
            self._rounds = _components(self.cfg)
        return self._rounds

    def main_ipdom(self) -> list[int]:
        """Post-dominators that count only the ways to the main end: the one that the most blocks can reach."""
        if self._main is None:
            ends = [x for x in self.cfg.rpo if not self.cfg.succs[x]]
            reach = self.reach()
            best = max(ends, key=lambda e: (sum(r >> e & 1 for r in reach), e), default=-1)
            self._main = _post_dominators(self.cfg, [best])[0] if len(ends) > 1 else self.ipdom
        return self._main

    def common_post_dominator(self, a: int, b: int) -> int:
        """Nearest common post-dominator, -1 for the end of the function."""
        while a != b:
            if a < 0 or b < 0:
                return -1
            if self._pdom_depth[a] < self._pdom_depth[b]:
                b = self.ipdom[b]
            else:
                a = self.ipdom[a]
        return a

    def reach(self) -> list[int]:
        """Per block, bitset of blocks reachable from it (itself included)."""
        if self._reach is None:
            n = len(self.cfg.succs)
            got = [1 << i for i in range(n)]
            changed = True
            while changed:
                changed = False
                for x in reversed(self.cfg.rpo):
                    new = got[x]
                    for s in self.cfg.succs[x]:
                        new |= got[s]
                    if new != got[x]:
                        got[x] = new
                        changed = True
            self._reach = got
        return self._reach

    def join(self, x: int) -> int:
        """Where threads that part at ``x`` meet: the post-dominator, or, when some paths end the thread first, the block where all
        other paths meet. -1: nowhere, or only to exit."""
        ways = self.cfg.succs[x]
        if len({s for s in ways if not (self.exit_only[s] or (self.leaves[s] and all(p == x for p in self.cfg.preds[s])))}) < 2:
            return -1
        j = self.ipdom[x]
        if j >= 0 and not self.exit_only[j]:
            return j
        j = self.main_ipdom()[x]
        if j >= 0 and not self.exit_only[j]:
            return j
        reach = self.reach()
        succs = self.cfg.succs[x]
        common = 0
        for i, a in enumerate(succs):
            for b in succs[i + 1 :]:
                common |= reach[a] & reach[b]
        if not common:
            return -1
        j = -2
        seen = set(succs)
        work = list(succs)
        while work:
            v = work.pop()
            if common >> v & 1:
                if not self.exit_only[v]:
                    j = v if j == -2 else self.common_post_dominator(j, v)
                continue
            for s in self.cfg.succs[v]:
                if s not in seen:
                    seen.add(s)
                    work.append(s)
        return j if j >= 0 and not self.exit_only[j] else -1

    def meeting_points(self, x: int, j: int) -> list[int]:
        """Blocks before ``j`` where threads that parted at ``x`` arrive by different ways, or, when ``x`` is in a loop, in different rounds."""
        ahead = self.region(x, j)
        order = [v for v in self.cfg.rpo if v in ahead]
        succs, preds = self.cfg.succs[x], self.cfg.preds
        met: set[int] = set()
        while True:
            # label of a block: the successor of x, or the last meeting point, that its threads come from
            label = {v: v for v in (*succs, *met)}
            before = len(met)
            for v in order:
                come = {v if p == x else label[p] for p in preds[v] if p == x or p in label}
                if v in label:
                    if v not in met and come - {v}:
                        met.add(v)
                elif len(come) > 1:
                    met.add(v)
                    label[v] = v
                elif come:
                    label[v] = come.pop()
            for v in order:  # back edges: a block whose way round carries another label than its own
                come = {v if p == x else label[p] for p in preds[v] if p == x or p in label}
                if v not in met and (come - {label[v]} if v in label else len(come) > 1):
                    met.add(v)
            if len(met) == before:
                break
        if x in ahead:
            met |= {v for v in succs if v in ahead and x not in self.region(v, j)}
        return [v for v in order if v in met and not self.exit_only[v]]

    def merges(self, x: int) -> bool:
        """Whether paths of branch ``x`` meet in something else than an exit."""
        reach = self.reach()
        live = 0
        for i, gone in enumerate(self.exit_only):
            live |= 0 if gone else 1 << i
        succs = self.cfg.succs[x]
        return any(reach[a] & reach[b] & live for i, a in enumerate(succs) for b in succs[i + 1 :])

    def region(self, start: int, stop: int, other: int = -1) -> set[int]:
        """Blocks that can follow ``start`` before ``stop`` and ``other``; holds ``start`` only when it lies on a cycle that avoids them."""
        seen: set[int] = set()
        if other >= 0:
            seen.add(other)
        work = [s for s in self.cfg.succs[start] if s != stop]
        while work:
            v = work.pop()
            if v in seen:
                continue
            seen.add(v)
            work.extend(s for s in self.cfg.succs[v] if s != stop and s not in seen)
        seen.discard(other)
        return seen


def _components(cfg: Cfg) -> list[int]:
    n = len(cfg.succs)
    index, low, comp = [-1] * n, [0] * n, [-1] * n
    stack: list[int] = []
    count = 0
    for root in cfg.rpo:
        if index[root] >= 0:
            continue
        work = [(root, iter(cfg.succs[root]))]
        index[root] = low[root] = count
        count += 1
        stack.append(root)
        while work:
            v, rest = work[-1]
            for w in rest:
                if index[w] < 0:
                    index[w] = low[w] = count
                    count += 1
                    stack.append(w)
                    work.append((w, iter(cfg.succs[w])))
                    break
                if comp[w] < 0:
                    low[v] = min(low[v], index[w])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[v])
                if low[v] == index[v]:
                    while True:
                        w = stack.pop()
                        comp[w] = v
                        if w == v:
                            break
    return comp


def _ends_thread(b: Block) -> bool:
    """True for a block that does nothing but end the thread."""
    return len(b.insts) == 1 and b.insts[0].op in ("EXIT", "BPT") and not is_guarded(b.insts[0])


def _ends_soon(b: Block) -> bool:
    """True for a short block that ends the thread and waits for no other on the way: who waits for its threads waits no longer than that takes (ptxas has no
    BREAK in front of such blocks either)."""
    if not b.insts or len(b.insts) > _SOON or b.insts[-1].op != "EXIT" or is_guarded(b.insts[-1]):
        return False
    return not any(i.op in _WAITING or (i.attrs and "warp" in i.attrs) for i in b.insts)


def _post_dominators(cfg: Cfg, roots: list[int]) -> tuple[list[int], list[int]]:
    """Immediate post-dominators (-1: none) counting the ways to ``roots`` only, and depths in that tree."""
    n = len(cfg.succs)
    order: list[int] = []
    seen = bytearray(n)
    for root in roots:
        if seen[root]:
            continue
        seen[root] = 1
        stack = [(root, iter(cfg.preds[root]))]
        while stack:
            node, rest = stack[-1]
            for p in rest:
                if not seen[p]:
                    seen[p] = 1
                    stack.append((p, iter(cfg.preds[p])))
                    break
            else:
                order.append(node)
                stack.pop()
    order.reverse()
    rank = {x: i + 1 for i, x in enumerate(order)}
    rank[-1] = 0
    ipdom: dict[int, int] = {-1: -1}
    changed = True
    while changed:
        changed = False
        for x in order:
            new: int | None = None if cfg.succs[x] else -1
            for s in cfg.succs[x]:
                if s not in ipdom:
                    continue
                if new is None:
                    new = s
                    continue
                a, b = new, s
                while a != b:
                    while rank[a] > rank[b]:
                        a = ipdom[a]
                    while rank[b] > rank[a]:
                        b = ipdom[b]
                new = a
            if new is not None and ipdom.get(x, -2) != new:
                ipdom[x] = new
                changed = True
    depth = [0] * n
    for x in order:
        depth[x] = 1 if ipdom[x] < 0 else 0
    for x in order:
        chain = []
        y = x
        while y >= 0 and not depth[y]:
            chain.append(y)
            y = ipdom[y]
        d = 0 if y < 0 else depth[y]
        for y in reversed(chain):
            d += 1
            depth[y] = d
    return [ipdom.get(x, -1) for x in range(n)], depth


def conditional(block: Block, succs: tuple[int, ...]) -> Inst | None:
    """The branch that may part the threads at the end of a block."""
    if len(succs) < 2 or not block.insts or not is_terminator(block.insts[-1]):
        return None
    return block.insts[-1]


def find_divergence(fn: Function, flow: Flow) -> tuple[set[int], list[int]]:
    """Divergent vregs, and the blocks that end in a divergent branch in reverse post-order."""
    cfg = flow.cfg
    varying: set[int] = set()
    controlled: set[int] = set()
    parted: dict[int, None] = {}
    # Per block: what each instruction writes and reads that may still turn out to vary (instructions that vary whatever they read are done at once).
    pending: list[list[tuple[list[int], list[int]]]] = [[] for _ in fn.blocks]
    for x in cfg.rpo:
        for inst in fn.blocks[x].insts:
            defs = [r.num for r in written_regs(inst)]
            if defs:
                if _varies(inst):
                    varying.update(defs)
                else:
                    pending[x].append((defs, [] if inst.op in ("CS2R", "S2R") else [r.num for r in read_regs(inst)]))
    changed = True
    while changed:
        before = (len(varying), len(controlled), len(parted))
        for x in cfg.rpo:
            if x in controlled:
                for defs, _ in pending[x]:
                    varying.update(defs)
                pending[x] = []
            elif pending[x]:
                left = []
                for row in pending[x]:
                    if varying.isdisjoint(row[1]):
                        left.append(row)
                    else:
                        varying.update(row[0])
                pending[x] = left
            branch = conditional(fn.blocks[x], cfg.succs[x])
            if branch is None or x in parted or (branch.attrs and "uni" in branch.attrs):
                continue
            if any(r.num in varying for r in read_regs(branch)):
                parted[x] = None
                j = flow.join(x)
                if j >= 0 or flow.merges(x):
                    controlled |= flow.region(x, j)
        changed = before != (len(varying), len(controlled), len(parted))
    rank = {x: i for i, x in enumerate(cfg.rpo)}
    return varying, sorted(parted, key=lambda x: rank[x])


def _varies(inst: Inst) -> bool:
    """Whether the results differ between threads whatever the instruction reads."""
    if inst.op in _VARYING:
        return not (inst.op == "CS2R" and _plain(inst))
    if inst.op == "S2R":
        name = inst.srcs[0]
        return isinstance(name, Name) and name.name.startswith(THREAD)
    return False


def _plain(inst: Inst) -> bool:
    """CS2R of the zero register: a move."""
    return isinstance(inst.srcs[0], Name) and inst.srcs[0].name == "SRZ"
