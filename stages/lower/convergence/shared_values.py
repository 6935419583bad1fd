"""Which registers hold one value in all threads that execute a block at the same time, also where these are only some
threads of the warp.

:class:`stages.lower.convergence.divergence.Divergence` is stricter: a register is uniform there if it has one value in
the whole warp. Operands in uniform registers only need one value in the threads of the group, such as a counter that
only the threads of `if (threadIdx.x < 32)` have. A register has one value in a block if

* each definition computes it from such values, and its result does not depend on the thread;
* each definition is in a block of the same group of threads, or of a group that includes this one: then all of them
  have executed the same definitions;
* a group that executes its blocks repeatedly (a branch in a loop) reads no value of an earlier visit, when other
  threads may have been in it.
"""

from __future__ import annotations

from ir_format.flow import liveness, read_regs, written_regs
from ir_format.model import Function, Inst
from stages.lower.convergence.divergence import Divergence, Flow, Groups, agrees, conditional, varies
from stages.lower.convergence.regions import Regions


class SharedValues:
    """The answer for one function whose groups are known."""

    __slots__ = (
        "_chains",
        "_entries",
        "_flow",
        "_groups",
        "_label",
        "_late",
        "_live",
        "_made",
        "differing",
    )

    def __init__(self, fn: Function, flow: Flow, groups: Groups, live: _Live) -> None:
        self._flow = flow
        self._groups = groups
        self._label = [0 if n in groups.whole else n for n in groups.label]
        self._made: dict[int, set[int]] = {}  # register -> groups that define it
        self._entries: dict[int, list[tuple[int, int]]] = {}  # group -> edges into it
        self._live = live
        self._chains: dict[int, set[int]] = {0: {0}}
        self._late: dict[int, set[int]] = {}  # block reached from different iterations -> what the loop writes
        self.differing: set[int] = set()
        self._find_groups()
        for v, n in groups.late.items():
            body = groups.regions.loops[n].body
            made = {r.num for x in body for i in fn.blocks[x].insts for r in written_regs(i)}
            for x in flow.below(v):
                self._late.setdefault(x, set()).update(made)
        self._follow(fn)

    def same(self, num: int, block: int) -> bool:
        """Whether the threads that execute the block have one value in a register."""
        return num not in self.differing and self._comes_shared(num, block)

    def _comes_shared(self, num: int, block: int) -> bool:
        """Whether the threads of a block have executed the same definitions of a register."""
        return self._made.get(num, set()) <= self._around(self._label[block]) and num not in self._late.get(block, ())

    def is_converged(self, block: int) -> bool:
        """Whether the whole warp executes a block."""
        return self._label[block] == 0

    def _find_groups(self) -> None:
        flow, label = self._flow, self._label
        for v in flow.cfg.rpo:
            for p in flow.cfg.preds[v]:
                if flow.rank[p] >= 0 and label[v] and label[v] not in self._around(label[p]):
                    self._entries.setdefault(label[v], []).append((p, v))

    def _around(self, label: int) -> set[int]:
        """The group and those that include it."""
        known = self._chains.get(label)
        if known is None:
            self._chains[label] = {label, 0}  # ends a cycle
            outer = self._groups.parent(label)
            if outer in self._groups.whole:
                outer = 0
            known = {label} | (self._around(outer) if outer >= 0 else {0})
            self._chains[label] = known
        return known

    def _follow(self, fn: Function) -> None:
        """Find the registers that differ."""
        readers: dict[int, list[list[int]]] = {}
        reads: list[tuple[int, Inst, list[int]]] = []
        work: list[int] = []
        for x in self._flow.cfg.rpo:
            for inst in fn.blocks[x].insts:
                defs = [r.num for r in written_regs(inst)]
                if not defs:
                    continue
                for d in defs:
                    self._made.setdefault(d, set()).add(self._label[x])
                defs = [d for d in defs if fn.vregs[d].file in ("R", "P")]  # the others are the warp's
                if varies(inst):
                    work += defs
                elif defs:
                    reads.append((x, inst, defs))
        for x, inst, defs in reads:
            if agrees(inst):
                continue
            for r in read_regs(inst):
                if self._comes_shared(r.num, x):
                    readers.setdefault(r.num, []).append(defs)
                else:
                    work += defs
        work += [num for num, groups in self._made.items() if any(self._comes_again(num, g) for g in groups if g)]
        while work:
            num = work.pop()
            if num not in self.differing:
                self.differing.add(num)
                for defs in readers.get(num, ()):
                    work += defs

    def _comes_again(self, num: int, group: int) -> bool:
        """Whether a value of an earlier visit of the group may be read."""
        return any(p in self._live.reachable(v) and self._live.enters(num, v) for p, v in self._entries.get(group, ()))


class _Live:
    """Which registers are live at the start of a block; which blocks are reachable from a block."""

    def __init__(self, fn: Function, flow: Flow) -> None:
        self.known = liveness(fn, flow.cfg, clip=False)
        self.succs = flow.cfg.succs
        self.reached: dict[int, set[int]] = {}
        self.words = [v.width for v in fn.vregs]

    def enters(self, num: int, block: int) -> bool:
        """Whether the value of a register at the start of a block has a reader."""
        base = self.known.cells.base
        assert base is not None
        first = base[num]
        bits = (self.known.bit.get(c) for c in range(first, first + self.words[num]))
        return any(b is not None and self.known.live_in[block] >> b & 1 for b in bits)

    def reachable(self, start: int) -> set[int]:
        """Blocks that can be reached from a block."""
        known = self.reached.get(start)
        if known is None:
            known = self.reached[start] = set()
            work = [start]
            while work:
                for s in self.succs[work.pop()]:
                    if s not in known:
                        known.add(s)
                        work.append(s)
        return known


class GroupDivergence(Divergence):
    """Divergence by what the threads of a group share: a branch on such a value does not make the group diverge (ptxas
    has no barrier there). Used where uniform registers hold operands."""

    def __init__(self, fn: Function, flow: Flow, regions: Regions) -> None:
        super().__init__(fn, flow, regions)
        self.fn = fn
        self.divergent.clear()
        self.groups.careful = True
        self.live = _Live(fn, flow)
        self.shared: SharedValues

    def propagate(self) -> None:
        """Follow divergence through branches and values until nothing changes."""
        flow, fn = self.flow, self.fn
        while True:
            self.groups.spread(self.divergent)
            self.shared = shared = SharedValues(fn, flow, self.groups, self.live)
            new: list[int] = []
            for x in flow.cfg.rpo:
                branch = conditional(fn.blocks[x], flow.cfg.succs[x])
                if branch is None or x in self.divergent or (branch.attrs and "uni" in branch.attrs):
                    continue
                if any(not shared.same(r.num, x) for r in read_regs(branch)):
                    new.append(x)
            if not new:
                break
            self.divergent.update(dict.fromkeys(new))
        self.varying = set(shared.differing)
        for x in flow.cfg.rpo:
            for inst in fn.blocks[x].insts:
                self.varying.update(r.num for r in read_regs(inst) if not shared.same(r.num, x))
