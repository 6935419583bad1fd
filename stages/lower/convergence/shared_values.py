"""Which registers hold one value in all threads that execute a block together, also where only a part of the warp does.

:class:`stages.lower.convergence.divergence.Divergence` asks more: a register is uniform there if it has one value in
the whole warp. For operands in uniform registers it is enough that the threads of the group agree, as those of
`if (threadIdx.x < 32)` do about a counter that only they keep. A register has one value in a block if

* each definition makes it from such values, and its result does not depend on the thread;
* each definition is in a block of the same group of threads, or of one that this group is a part of: then all of
  them have executed the same definitions;
* a group that comes to its blocks again and again (a branch in a loop) brings no value of an earlier visit, when other
  threads may have come.
"""

from __future__ import annotations

from ir_format.flow import is_guarded, read_regs, written_regs
from ir_format.model import Function, Inst, Reg
from stages.lower.convergence.divergence import Divergence, Flow, Groups, agrees, conditional, varies
from stages.lower.convergence.regions import Regions


class SharedValues:
    """The answer for one function whose groups are known."""

    __slots__ = (
        "_chains",
        "_entries",
        "_exposed",
        "_flow",
        "_groups",
        "_label",
        "_late",
        "_made",
        "_reached",
        "differing",
    )

    def __init__(self, fn: Function, flow: Flow, groups: Groups) -> None:
        self._flow = flow
        self._groups = groups
        self._label = [0 if n in groups.whole else n for n in groups.label]
        self._made: dict[int, set[int]] = {}  # register -> groups that define it
        self._entries: dict[int, list[tuple[int, int]]] = {}  # group -> edges into it
        self._exposed: dict[tuple[int, int], bool] = {}
        self._reached: dict[int, set[int]] = {}
        self._chains: dict[int, set[int]] = {0: {0}}
        self._late: dict[int, set[int]] = {}  # block that threads come to in different rounds -> what the rounds make
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

    def together(self, block: int) -> bool:
        """Whether the whole warp executes a block."""
        return self._label[block] == 0

    def _find_groups(self) -> None:
        flow, label = self._flow, self._label
        for v in flow.cfg.rpo:
            for p in flow.cfg.preds[v]:
                if flow.rank[p] >= 0 and label[v] and label[v] not in self._around(label[p]):
                    self._entries.setdefault(label[v], []).append((p, v))

    def _around(self, label: int) -> set[int]:
        """The group and those that it is a part of."""
        known = self._chains.get(label)
        if known is None:
            self._chains[label] = {label, 0}  # ends a circle
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
        work += [num for num, groups in self._made.items() if any(self._comes_again(fn, num, g) for g in groups if g)]
        while work:
            num = work.pop()
            if num not in self.differing:
                self.differing.add(num)
                for defs in readers.get(num, ()):
                    work += defs

    def _comes_again(self, fn: Function, num: int, group: int) -> bool:
        """Whether a value of an earlier visit of the group may be read."""
        return any(p in self._from(v) and self._read_from(fn, num, v) for p, v in self._entries.get(group, ()))

    def _from(self, start: int) -> set[int]:
        """Blocks that are reached from a block."""
        known = self._reached.get(start)
        if known is None:
            known = self._reached[start] = set()
            work = [start]
            while work:
                for s in self._flow.cfg.succs[work.pop()]:
                    if s not in known:
                        known.add(s)
                        work.append(s)
        return known

    def _read_from(self, fn: Function, num: int, start: int) -> bool:
        """Whether a way from the start of a block comes to a reader of a register before its writer."""
        known = self._exposed.get((num, start))
        if known is None:
            seen = {start}
            work = [start]
            known = False
            every = range(fn.vregs[num].width)
            while work and not known:
                x = work.pop()
                written: set[int] = set()  # words, in this block
                for inst in fn.blocks[x].insts:
                    if any(r.num == num and not written.issuperset(_words(r)) for r in read_regs(inst)):
                        known = True
                        break
                    if not is_guarded(inst):
                        for r in written_regs(inst):
                            if r.num == num:
                                written.update(_words(r))
                        if written.issuperset(every):
                            break
                else:
                    new = [s for s in self._flow.cfg.succs[x] if s not in seen]
                    seen.update(new)
                    work += new
            self._exposed[num, start] = known
        return known


def _words(r: Reg) -> range:
    return range(r.sub, r.sub + r.width)


class GroupDivergence(Divergence):
    """Divergence by what the threads of a group share: a branch in a part of the warp whose threads agree does not part
    them (ptxas has no barrier there). Asked where uniform registers hold operands."""

    def __init__(self, fn: Function, flow: Flow, regions: Regions) -> None:
        super().__init__(fn, flow, regions)
        self.fn = fn
        self.parted.clear()
        self.groups.careful = True
        self.shared: SharedValues

    def propagate(self) -> None:
        """Follow divergence through branches and values until nothing changes."""
        flow, fn = self.flow, self.fn
        while True:
            self.groups.spread(self.parted)
            self.shared = shared = SharedValues(fn, flow, self.groups)
            new: list[int] = []
            for x in flow.cfg.rpo:
                branch = conditional(fn.blocks[x], flow.cfg.succs[x])
                if branch is None or x in self.parted or (branch.attrs and "uni" in branch.attrs):
                    continue
                if any(not shared.same(r.num, x) for r in read_regs(branch)):
                    new.append(x)
            if not new:
                break
            self.parted.update(dict.fromkeys(new))
        self.varying = set(shared.differing)
        for x in flow.cfg.rpo:
            for inst in fn.blocks[x].insts:
                self.varying.update(r.num for r in read_regs(inst) if not shared.same(r.num, x))
