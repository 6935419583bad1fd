"""SSA construction (Cytron et al.): every write defines a separate value, with PHIs where values join.

Pre: a function at level `ori`. Post: registers that were written more than once are values: one definition for every
32-bit lane, which dominates all reads. The lanes of a pair or quad that are written one by one keep one register
number. Left alone are convergence barriers, fixed registers, and registers whose one definition does not dominate all
reads.

* PHI d <- s.. is at the start of a block, ``attrs["preds"]`` names the blocks that control comes from. PHIs are
  placed only where the register is live.
* A guarded write reads the old value: an operand of ``uses`` with the suffix ``tied``.
* Where the lanes of an operand come from different values, COPYs before the reader bring them into one; they
  disappear when the form is left.
"""

from __future__ import annotations

from ir_format.flow import Cfg, DominatorTree, is_guarded, is_terminator, read_regs, solve, written_regs
from ir_format.model import ZERO, Const, Function, Inst, Mem, Operand, Reg
from ir_format.rename import Change, rename_reads, rename_writes
from stages.optimize.ssa.webs import TIED, Webs
from stages.optimize.values import is_pure
from stages.plumbing.runner import Context

Place = tuple[int, int, int]  # register, first lane, width of an operand
Touch = tuple[
    Inst, list[Reg], list[Reg], bool
]  # an instruction, what it reads and writes of the registers that are renamed, whether it is guarded


class _Phi:
    """A PHI to be, of lane ``sub`` of register ``v``, made as ``made``; ``args``: block position -> value. Lanes have
    PHIs of their own, since one may be dead."""

    __slots__ = ("args", "made", "sub", "v")

    def __init__(self, v: int, sub: int) -> None:
        self.v = v
        self.sub = sub
        self.made = -1
        self.args: dict[int, Reg] = {}


def enter(f: Function, cfg: Cfg, idom: list[int], tree: DominatorTree, many: bytearray, ctx: Context) -> Webs:
    """Bring a function into SSA form. ``many``: :func:`written_again`; a register too much in it does no harm."""
    if not any(many):
        return Webs(list(range(len(f.vregs))), len(f.vregs))
    return _Builder(f, cfg, idom, tree, many, ctx).run()


def written_again(f: Function) -> bytearray:
    """1 for every register some lane of which is written in more than one place. One more byte, 0, stands for RZ and
    PT."""
    count = len(f.vregs)
    lanes = [0] * count
    many = bytearray(count + 1)
    for b in f.blocks:
        for i in b.insts:
            for r in i.dsts:
                if type(r) is Reg:
                    _, num, sub, width, _, _ = r
                    if num != ZERO:
                        bits = (1 << width) - 1 << sub
                        old = lanes[num]
                        if old & bits:
                            many[num] = 1
                        lanes[num] = old | bits
            if i.defs:
                for r in i.defs:
                    if type(r) is Reg and r.num != ZERO:
                        bits = (1 << r.width) - 1 << r.sub
                        if lanes[r.num] & bits:
                            many[r.num] = 1
                        lanes[r.num] |= bits
    n = many.find(1)
    while n >= 0:
        v = f.vregs[n]
        if v.fixed >= 0 or v.file == "B":
            many[n] = 0
        n = many.find(1, n + 1)
    return many


def _touches(i: Inst, many: bytearray) -> bool:
    """Whether an instruction names one of the registers; quick."""
    for o in i.srcs:
        if type(o) is Reg:
            if many[o.num]:
                return True
        elif type(o) is Mem or type(o) is Const:
            return True
    for o in i.dsts:
        if type(o) is Reg:
            if many[o.num]:
                return True
        elif type(o) is Mem:
            return True
    return bool(i.uses or i.defs) or (i.guard is not None and bool(many[i.guard.num]))


class _Builder:
    """The work on one function. A *cell* is a lane of a register that is renamed; ``now``: cell -> the value in it at
    the place of the walk."""

    def __init__(
        self, f: Function, cfg: Cfg, idom: list[int], tree: DominatorTree, many: bytearray, ctx: Context
    ) -> None:
        self.f = f
        self.cfg = cfg
        self.idom = idom
        self.tree = tree
        self.many = many
        self.ctx = ctx
        self.base: dict[int, int] = {}  # register -> its first cell
        cells = 0
        for n, v in enumerate(f.vregs):
            if many[n]:
                self.base[n] = cells
                cells += v.width
        self.cells = cells
        self.owner = list(range(len(f.vregs)))  # value -> the register it came from
        self.up = list(range(len(f.vregs)))  # disjoint sets of values: the webs
        self.taken = bytearray(len(f.vregs))  # registers whose own number is a value's already
        self.unset: dict[int, int] = {}  # register -> the value that nothing makes
        self.now: list[int] = [-1] * cells
        self.work: list[list[Touch]] = []
        self.phis: dict[int, list[_Phi]] = {}
        self.open: dict[
            int, tuple[int, int]
        ] = {}  # register -> the last value made of it in the current block, and its lanes

    def run(self) -> Webs:
        """The steps."""
        self._collect()
        self._place()
        self._walk()
        self._put_phis()
        return self._webs()

    # ------------------------------------------------------------------ where PHIs go

    def _collect(self) -> None:
        many = self.many
        for b in self.f.blocks:
            work: list[Touch] = []
            for i in b.insts:
                if not _touches(i, many):
                    continue
                reads = [r for r in read_regs(i) if many[r.num]]
                writes = [r for r in written_regs(i) if many[r.num]]
                if reads or writes:
                    work.append((i, reads, writes, is_guarded(i)))
            self.work.append(work)

    def _place(self) -> None:
        """Iterated dominance frontiers of the blocks that write a register, where it is live."""
        cfg, base = self.cfg, self.base
        count = len(self.work)
        exposed: list[set[int]] = []
        killed: list[set[int]] = []
        writers: dict[int, list[int]] = {}  # register -> blocks that write it
        for pos, work in enumerate(self.work):
            use: set[int] = set()
            kill: set[int] = set()
            for _, reads, writes, guarded in work:
                for r in reads:
                    first = base[r.num] + r.sub
                    for c in range(first, first + r.width):
                        if c not in kill:
                            use.add(c)
                for r in writes:
                    first = base[r.num] + r.sub
                    for c in range(first, first + r.width):
                        if not guarded:
                            kill.add(c)
                        elif c not in kill:
                            use.add(c)
                    blocks = writers.setdefault(r.num, [])
                    if not blocks or blocks[-1] != pos:
                        blocks.append(pos)
            exposed.append(use)
            killed.append(kill)
        names = sorted(set().union(*exposed))
        if not names or len(cfg.rpo) < 2:
            return
        bit = {c: n for n, c in enumerate(names)}
        gen = [sum(1 << bit[c] for c in s) for s in exposed]
        kills = [sum(1 << bit[c] for c in s if c in bit) for s in killed]
        live = solve(cfg.rpo[::-1], cfg.succs, cfg.preds, gen, kills)[1]
        frontier = self._frontiers()
        rank = [-1] * count
        for n, pos in enumerate(cfg.rpo):
            rank[pos] = n
        for v, blocks in writers.items():
            first = base[v]
            lanes = [bit.get(c, -1) for c in range(first, first + self.f.vregs[v].width)]
            mask = sum(1 << n for n in lanes if n >= 0)
            if not mask:
                continue
            seen: set[int] = set()
            todo = [p for p in blocks if rank[p] >= 0]
            while todo:
                for at in frontier.get(todo.pop(), ()):
                    if at not in seen and live[at] & mask:
                        seen.add(at)
                        todo.append(at)
            for at in sorted(seen):
                self.phis.setdefault(at, []).extend(
                    [_Phi(v, lane) for lane, n in enumerate(lanes) if n >= 0 and live[at] >> n & 1]
                )

    def _frontiers(self) -> dict[int, list[int]]:
        """Dominance frontiers (Cooper, Harvey, Kennedy)."""
        cfg, idom = self.cfg, self.idom
        out: dict[int, list[int]] = {}
        for pos in cfg.rpo:
            preds = cfg.preds[pos]
            if len(preds) < 2 and pos != cfg.rpo[0]:
                continue
            stop = idom[pos] if pos != cfg.rpo[0] else -1
            for p in preds:
                at = p
                while idom[at] >= 0 and at != stop:
                    found = out.setdefault(at, [])
                    if found and found[-1] == pos:
                        break
                    found.append(pos)
                    if at == idom[at]:
                        break
                    at = idom[at]
        return out

    # ------------------------------------------------------------------ renaming

    def _new(self, v: int) -> int:
        """A new value of a register; the first keeps its number."""
        if not self.taken[v]:
            self.taken[v] = 1
            return v
        n = len(self.f.vregs)
        self.f.vregs.append(self.f.vregs[v])
        self.owner.append(v)
        self.up.append(n)
        return n

    def _find(self, x: int) -> int:
        up = self.up
        while up[x] != x:
            up[x] = up[up[x]]
            x = up[x]
        return x

    def _join(self, x: int, y: int) -> None:
        x, y = self._find(x), self._find(y)
        if x != y:
            self.up[max(x, y)] = min(x, y)

    def _walk(self) -> None:
        """The dominator tree in preorder; what a block wrote is undone on the way up."""
        cfg, now = self.cfg, self.now
        if not cfg.rpo:
            return
        children = self.tree.children
        undo: list[list[tuple[int, int]]] = []
        todo = [cfg.rpo[0]]
        while todo:
            pos = todo.pop()
            if pos < 0:
                for c, old in reversed(undo.pop()):
                    now[c] = old
                continue
            log: list[tuple[int, int]] = []
            undo.append(log)
            self._block(pos, log)
            todo.append(-1)
            todo += reversed(children[pos])

    def _set(self, r: Reg, value: int, log: list[tuple[int, int]]) -> None:
        now = self.now
        first = self.base[r.num] + r.sub
        for c in range(first, first + r.width):
            log.append((c, now[c]))
            now[c] = value

    def _block(self, pos: int, log: list[tuple[int, int]]) -> None:
        block = self.f.blocks[pos]
        self.open = {}
        for phi in self.phis.get(pos, ()):
            r = Reg(self.f.vregs[phi.v].file, phi.v, phi.sub)
            phi.made = self._value_for(r)
            self._set(r, phi.made, log)
        merges: dict[int, list[Inst]] = {}  # identity of an instruction -> what goes before it
        for touch in self.work[pos]:
            self._inst(touch, merges, log)
        for s in self.cfg.succs[pos]:
            for phi in self.phis.get(s, ()):
                made: list[Inst] = []
                r = Reg(self.f.vregs[phi.v].file, phi.v, phi.sub)
                value = self._read(r, made, log, block.insts[-1] if block.insts else None)
                phi.args[pos] = r._replace(num=value)
                if made:
                    at = len(block.insts) - (bool(block.insts) and is_terminator(block.insts[-1]))
                    block.insts[at:at] = made
        if merges:
            block.insts = [x for i in block.insts for x in (*merges.get(id(i), ()), i)]

    def _inst(self, touch: Touch, merges: dict[int, list[Inst]], log: list[tuple[int, int]]) -> None:
        i, reads, writes, guarded = touch
        to: dict[Place, int] = {}
        front: list[Inst] = []
        for r in reads:
            key = (r.num, r.sub, r.width)
            if key not in to:
                to[key] = self._read(r, front, log, i)
        if front:
            merges[id(i)] = front
        in_place = [] if not reads or not writes or is_pure(i) else reads
        ties: list[Operand] = []
        made: dict[Place, int] = {}
        for r in writes:
            key = (r.num, r.sub, r.width)
            if key in made:
                continue
            first = self.base[r.num] + r.sub
            old = [self.now[c] for c in range(first, first + r.width)]
            new = made[key] = self._value_for(r)
            if guarded:
                for n, value in enumerate(old):
                    if value >= 0:
                        self._join(new, value)
                        if n and ties and value == old[n - 1]:
                            last = ties[-1]
                            assert type(last) is Reg
                            ties[-1] = last._replace(width=last.width + 1)
                        else:
                            ties.append(Reg(r.file, value, r.sub + n, 1, 0, TIED))
            for x in in_place:
                if x.num == r.num:
                    self._join(new, to[(x.num, x.sub, x.width)])
        for r in writes:
            self._set(r, made[(r.num, r.sub, r.width)], log)
        if reads and any(value != key[0] for key, value in to.items()):
            rename_reads(i, _change(to))
        if any(value != key[0] for key, value in made.items()):
            rename_writes(i, _change(made))
        if ties:
            i.uses = (*i.uses, *ties)

    def _value_for(self, r: Reg) -> int:
        """The value that a write makes: the last one of the block where that lacks these lanes still."""
        bits = (1 << r.width) - 1 << r.sub
        got = self.open.get(r.num)
        if got is not None and not got[1] & bits:
            self.open[r.num] = got[0], got[1] | bits
            return got[0]
        new = self._new(r.num)
        self.open[r.num] = new, bits
        return new

    def _read(self, r: Reg, front: list[Inst], log: list[tuple[int, int]], at: Inst | None) -> int:
        """The value that holds all lanes of an operand; COPYs to ``front`` make it where there is none."""
        first = self.base[r.num] + r.sub
        value = self.now[first]
        if r.width > 1:
            lanes = self.now[first : first + r.width]
            if any(x != value for x in lanes):
                return self._merge(r, lanes, front, log, at)
        return value if value >= 0 else self._nothing(r.num)

    def _merge(self, r: Reg, lanes: list[int], front: list[Inst], log: list[tuple[int, int]], at: Inst | None) -> int:
        self.open.pop(r.num, None)
        new = self._value_for(r)
        line, loc = (at.line, at.loc) if at is not None else (0, -1)
        for n, value in enumerate(lanes):
            if value >= 0:
                self._join(new, value)
                d = Reg(r.file, new, r.sub + n)
                front.append(Inst("COPY", (), (d,), (d._replace(num=value),), None, line, loc))
                self._set(Reg(r.file, r.num, r.sub + n), new, log)
        return new

    # ------------------------------------------------------------------ the end

    def _put_phis(self) -> None:
        f = self.f
        for pos, phis in self.phis.items():
            preds = self.cfg.preds[pos]
            ids = tuple(f.blocks[p].id for p in preds)
            out: list[Inst] = []
            for phi in phis:
                file = f.vregs[phi.v].file
                d = Reg(file, phi.made, phi.sub)
                srcs = []
                for p in preds:
                    got = phi.args.get(p)
                    if got is None:  # from where nothing comes
                        got = d._replace(num=self._nothing(phi.v))
                    self._join(phi.made, got.num)
                    srcs.append(got)
                line = f.blocks[pos].insts[0].line if f.blocks[pos].insts else 0
                out.append(Inst("PHI", (), (d,), tuple(srcs), None, line, -1, attrs={"preds": ids}))
            f.blocks[pos].insts[:0] = out

    def _nothing(self, v: int) -> int:
        """The value of a register that nothing makes."""
        got = self.unset.get(v)
        if got is None:
            got = self.unset[v] = len(self.f.vregs)
            self.f.vregs.append(self.f.vregs[v])
            self.owner.append(v)
            self.up.append(got)
        return got

    def _webs(self) -> Webs:
        """The webs; each but the first of a register is a rewrite (:meth:`Context.allow`)."""
        first: dict[int, int] = {}
        unset = set(self.unset.values())
        many = self.many
        ours = [n for n, v in enumerate(self.owner) if many[v]]
        tops = [n for n in ours if self._find(n) == n]
        for n in tops:
            v = self.owner[n]
            if n in unset:  # read, never written: any register will do
                self._join(first.get(v, v), n)
                continue
            if v not in first:
                first[v] = n
            elif self.ctx.allow():
                self.ctx.count("webs split")
            else:
                self._join(first[v], n)
        top = list(range(len(self.up)))
        for n in ours:
            top[n] = self._find(n)
        return Webs(top, len(self.many) - 1)


def _change(to: dict[Place, int]) -> Change:
    def change(r: Reg) -> Reg:
        value = to.get((r.num, r.sub, r.width))
        return r if value is None or value == r.num else Reg(r.file, value, r.sub, r.width, r.flags, r.mod)

    return change
