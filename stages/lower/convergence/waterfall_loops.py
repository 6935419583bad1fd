"""Simplification of waterfall loops: loops over the threads of a warp around operations that a warp executes once
(copies by the copy unit, products of tensor memory).

Lowering emits, for any operands: elect one thread, copy its values to uniform registers, execute, repeat until each
thread has been elected. Here it is known which registers hold one value in all threads of the group
(:mod:`stages.lower.convergence.shared_values`):

* operands that the threads share are copied to uniform registers before the loop;
* if a branch on an elected thread leads to the operation, the loop disappears, and if all operands are shared before
  that branch too, so does the branch: the operation gets a uniform guard (VOTEU.ANY). ptxas does so too, also for the
  operation that initializes an mbarrier, which any thread may execute.
"""

from __future__ import annotations

from ir_format import isa
from ir_format.diag import CompileError
from ir_format.flow import build_cfg, is_guarded, jump_targets, read_regs, written_regs
from ir_format.isa import facts
from ir_format.model import INV, PT, RZ, URZ, ZERO, Block, Function, Imm, Inst, Label, Mem, Reg
from stages.lower.convergence.divergence import Flow
from stages.lower.convergence.shared_values import SharedValues

_PURE = facts.having("pure") | {"COPY", "PCOPY", "UNDEF"}
_CONVERGENT = facts.having("convergent")
_FREE = facts.speculatable()


def has_waterfalls(fn: Function, sm: int) -> bool:
    """Whether there may be something to do."""
    return any(_is_waterfall(b) for b in fn.blocks) or any(_uniform_effect(i, sm) for b in fn.blocks for i in b.insts)


def _is_waterfall(b: Block) -> bool:
    """Whether a block is a waterfall loop."""
    if len(b.insts) < 3 or b.insts[0].op != "ELECT" or b.insts[0].guard is not None or b.insts[0].srcs[0] != PT:
        return False
    turn, last = b.insts[0].dsts[0], b.insts[-1]
    return (
        type(turn) is Reg
        and last.op == "BRA"
        and last.guard == turn._replace(flags=INV)
        and jump_targets(last) == (b.id,)
    )


def _uniform_effect(i: Inst, sm: int) -> bool:
    """Whether an instruction with an effect is executed once for a warp, under a uniform guard if any."""
    if i.op in _PURE or i.guard is not None or not _reads_uniform(i):
        return False
    try:
        plan = isa.target(sm).plan(i)
    except CompileError:
        return False
    return plan is not None and plan.form.guard == "UP"


def _reads_uniform(i: Inst) -> bool:
    return any(r.file == "UR" for r in read_regs(i))


def choose_constants(fn: Function) -> None:
    """A constant, and under a guard another one over it, are a choice: inline assembly hands an elected thread on as a
    word."""
    reaching: _Reaching | None = None
    for pos, b in enumerate(fn.blocks):
        written: set[int] = set()
        known: dict[int, Imm] = {}  # register -> the constant in it
        unread: dict[int, Inst] = {}  # register -> the COPY that put it there, as long as nothing has read it
        gone: set[int] = set()
        for i in b.insts:
            d, value = i.dsts[0] if i.dsts else None, i.srcs[0] if i.srcs else None
            if i.op == "COPY" and type(value) is Reg and value.file == "R" and not value.flags and value.width == 1:
                if value.num in written:
                    value = known.get(value.num)
                elif any(later.op == "COPY" and later.guard is not None for later in b.insts):
                    reaching = reaching or _Reaching(fn)
                    value = reaching.constant(value.num, pos)
            constant = i.op == "COPY" and type(d) is Reg and d.width == 1 and type(value) is Imm
            if constant and i.guard is not None and type(d) is Reg and type(value) is Imm:
                before = unread.get(d.num)
                if before is not None and known[d.num].value == 0:
                    gone.add(id(before))
                    i.op, i.srcs = "SEL", (RZ, value, i.guard._replace(flags=i.guard.flags ^ INV))
                    i.guard = None
            for r in read_regs(i):
                unread.pop(r.num, None)
            for r in written_regs(i):
                unread.pop(r.num, None)
                known.pop(r.num, None)
                written.add(r.num)
            if constant and i.op == "COPY" and i.guard is None and type(d) is Reg and type(value) is Imm:
                if fn.vregs[d.num].width == 1:
                    unread[d.num] = i
                    known[d.num] = value
        if gone:
            b.insts = [i for i in b.insts if id(i) not in gone]


class _Reaching:
    """Constants that reach a block on every path."""

    def __init__(self, fn: Function) -> None:
        self.fn = fn
        self.cfg = build_cfg(fn)
        self.last: list[dict[int, Inst]] = []  # per block: register -> its last writer
        for b in fn.blocks:
            self.last.append({r.num: i for i in b.insts for r in written_regs(i)})

    def constant(self, num: int, block: int) -> Imm | None:
        """The constant in a register at the start of a block."""
        found: Imm | None = None
        seen: set[int] = set()
        work = [block]
        while work:
            preds = self.cfg.preds[work.pop()]
            if not preds:
                return None
            for p in preds:
                writer = self.last[p].get(num)
                if writer is None:
                    if p not in seen:
                        seen.add(p)
                        work.append(p)
                    continue
                value = writer.srcs[0] if writer.op == "COPY" and writer.guard is None else None
                if type(value) is not Imm or self.fn.vregs[num].width != 1 or found not in (None, value):
                    return None
                found = value
        return found


def shorten_waterfalls(fn: Function, sm: int, flow: Flow, shared: SharedValues) -> bool:
    """Shorten the loops; whether anything changed, so that the flow has to be looked at again."""
    work = _Turns(fn, sm, flow, shared)
    for pos in range(len(fn.blocks)):
        work.block(pos)
    return work.finish()


class _Turns:
    """One function. ``after``: blocks to insert after a position."""

    def __init__(self, fn: Function, sm: int, flow: Flow, shared: SharedValues) -> None:
        self.fn = fn
        self.sm = sm
        self.flow = flow
        self.shared = shared
        self.after: dict[int, Block] = {}
        self.changed = False
        self.next_id = max(b.id for b in fn.blocks) + 1
        self.made: dict[int, Inst | None] = {}  # predicate -> its only definition
        self.homes: dict[int, set[int]] = {}  # register -> blocks that write it
        for pos, b in enumerate(fn.blocks):
            for i in b.insts:
                for r in written_regs(i):
                    self.made[r.num] = None if r.num in self.made else i
                    self.homes.setdefault(r.num, set()).add(pos)

    def block(self, pos: int) -> None:
        """Look at a block."""
        b = self.fn.blocks[pos]
        if self.flow.rank[pos] < 0:
            return
        if _is_waterfall(b):
            turn = b.insts[0].dsts[0]
            assert type(turn) is Reg
            ready, effect = self._split(b.insts[1:-1], turn, pos)
            if effect is None:
                return
            self.changed = True
            fork = self._fork(pos)
            once = self._elected(pos)
            if once and fork >= 0 and self._without_branch(fork, pos, ready, effect):
                return
            if once:
                b.insts = [*ready, effect]
                return
            loop = Block(self.next_id, [b.insts[0], effect, b.insts[-1]], b.depth)
            self.next_id += 1
            b.insts = ready
            loop.insts[-1].srcs = (Label("L", loop.id),)
            self.after[pos] = loop
        elif b.insts and _is_setup(b.insts[-1]) and _uniform_effect(b.insts[-1], self.sm):
            fork = self._fork(pos)
            if fork >= 0 and self._without_branch(fork, pos, b.insts[:-1], b.insts[-1]):
                self.changed = True

    def _split(self, insts: list[Inst], turn: Reg, pos: int) -> tuple[list[Inst], Inst | None]:
        """(what brings the operands to uniform registers for all threads, the operation), if they share them."""
        ready: list[Inst] = []
        words: dict[int, Reg] = {}  # register with the word of a predicate -> the predicate
        own: set[int] = set()

        def known(i: Inst) -> bool:
            return all(r.file == "UR" or r.num in own or self.shared.same(r.num, pos) for r in read_regs(i))

        for i in insts[:-1]:
            d, source = i.dsts[-1] if i.dsts else None, i.srcs[0] if i.srcs else None
            if i.op not in _PURE or i.guard not in (None, turn) or type(d) is not Reg:
                return [], None
            if i.op == "UNDEF":
                continue
            if i.op == "SEL" and type(i.srcs[2]) is Reg:
                words[d.num] = i.srcs[2]
            elif i.op == "R2UR" and type(source) is Reg and source.num in words:
                words[d.num] = words[source.num]
            elif i.op == "UISETP" and type(source) is Reg and source.num in words:
                vote = Inst("VOTEU", ("ANY",), (URZ, i.dsts[0]), (words[source.num],), None, i.line, i.loc)
                vote.attrs = {"coop": 0}
                if not known(vote):
                    return [], None
                ready.append(vote)
            elif known(i) and i.guard is None:
                own.update(r.num for r in written_regs(i))
                ready.append(Inst(i.op, i.mods, i.dsts, i.srcs, None, i.line, i.loc))
            elif (
                i.guard == turn
                and i.op == "R2UR"
                and all(r == turn or r.num in own or self.shared.same(r.num, pos) for r in read_regs(i))
            ):
                ready.append(Inst("R2UR", i.mods, i.dsts, i.srcs, None, i.line, i.loc))
            else:
                return [], None
        last = insts[-1]
        return (ready, last) if last.op not in _PURE and last.guard is None else ([], None)

    def _fork(self, pos: int) -> int:
        """The position of the block that branches around this one and is its only predecessor; -1 if there is none."""
        blocks, at = self.fn.blocks, pos
        while True:
            before = [p for p in self.flow.cfg.preds[at] if p != pos]
            if before != [at - 1]:
                return -1
            at -= 1
            if blocks[at].insts:
                break
        last = blocks[at].insts[-1]
        if last.op != "BRA" or last.guard is None or "U" in last.mods or len(self.flow.cfg.succs[at]) != 2:
            return -1
        after = self.flow.cfg.index[jump_targets(last)[0]]
        return at if after > pos and not any(blocks[k].insts for k in range(pos + 1, after)) else -1

    def _elected(self, pos: int) -> bool:
        """Whether a branch before the block lets at most one thread of the warp reach it."""
        flow, at = self.flow, pos
        while flow.rank[at] > 0:
            up = flow.idom[at]
            last = self.fn.blocks[up].insts[-1] if self.fn.blocks[up].insts else None
            if last is not None and last.op == "BRA" and last.guard is not None and len(flow.cfg.succs[up]) == 2:
                jump = flow.cfg.index[jump_targets(last)[0]]
                ways = [s for s in flow.cfg.succs[up] if flow.dominates(s, pos) and len(flow.cfg.preds[s]) == 1]
                for way in ways:
                    taken = last.guard if way == jump else last.guard._replace(flags=last.guard.flags ^ INV)
                    if self._one(taken, 8):
                        return True
            at = up
        return False

    def _one(self, p: Reg, depth: int) -> bool:
        """Whether a predicate holds in one thread of the warp at most: it is that of an ELECT that the whole warp
        executes, or can only hold where such a one does."""
        made = self.made.get(p.num)
        if made is None or not depth or is_guarded(made):
            return False
        inverse = bool(p.flags & INV)
        first = type(made.dsts[0]) is Reg and made.dsts[0].num == p.num
        if made.op == "ELECT":
            gathered = bool(made.attrs and "warp" in made.attrs)
            return first and not inverse and (gathered or all(map(self.shared.is_converged, self.homes[p.num])))
        if made.op == "PCOPY" or (made.op == "COPY" and made.srcs[0][0] == "P"):
            source = made.srcs[0]
            return type(source) is Reg and self._one(source._replace(flags=source.flags ^ p.flags & INV), depth - 1)
        if made.op == "PLOP3" and first:
            lut = getattr(made.srcs[3], "value", 0) & 0xFF
            return self._needs(made, lut ^ 0xFF if inverse else lut, depth)
        if made.op == "ISETP" and first and made.mods[0] in ("EQ", "NE"):
            return self._chosen(made, (made.mods[0] == "EQ") == inverse, depth)
        return False

    def _needs(self, made: Inst, lut: int, depth: int) -> bool:
        """Whether one of three sources that a function of predicates asks for holds in one thread at most."""
        for k, bit in enumerate((4, 2, 1)):
            source = made.srcs[k]
            if type(source) is not Reg or source.num == ZERO:
                continue
            cases = [v for v in range(8) if lut >> v & 1]
            if all(v & bit for v in cases) and self._one(source, depth - 1):
                return True
            if not any(v & bit for v in cases) and self._one(source._replace(flags=source.flags ^ INV), depth - 1):
                return True
        return False

    def _chosen(self, test: Inst, other: bool, depth: int) -> bool:
        """The same for a test whether a word of 0 or 1 is 0, ``other``: is not, that such a predicate chose."""
        word = test.srcs[0]
        plain = test.mods[-1] == "AND" and test.srcs[1] in (RZ, Imm("I", 0)) and test.srcs[2] == PT
        made = self.made.get(word.num) if type(word) is Reg and not word.flags else None
        if not plain or made is None or made.op != "SEL" or is_guarded(made) or made.srcs[0] != RZ:
            return False
        p, value = made.srcs[2], made.srcs[1]
        if type(p) is not Reg or type(value) is not Imm or not value.value:
            return False
        return self._one(p._replace(flags=p.flags ^ (INV if other else 0)), depth - 1)

    def _without_branch(self, fork: int, pos: int, ready: list[Inst], effect: Inst) -> bool:
        """Let the whole group compute the operands before a branch, and guard the operation alone."""
        own: set[int] = set()
        for i in ready:
            if not self._for_all(i, own, fork):
                return False
            own.update(r.num for r in written_regs(i))
        if not _uniform_effect(effect, self.sm) or any(self.homes.get(n, {pos}) != {pos} for n in own):
            return False
        last = self.fn.blocks[fork].insts[-1]
        assert last.guard is not None
        up = self.fn.new_vreg("UP", 1, 0, -1, 1)
        wanted = last.guard._replace(flags=last.guard.flags ^ INV)
        vote = Inst("VOTEU", ("ANY",), (URZ, up), (wanted,), None, last.line, last.loc, attrs={"coop": 0})
        self.fn.blocks[fork].insts[-1] = vote
        effect.guard = up
        self.fn.blocks[pos].insts = [*ready, effect]
        return True

    def _for_all(self, i: Inst, own: set[int], at: int) -> bool:
        """Whether the whole group of a block may execute an instruction, with one result. ``own``: what the
        instructions before it make."""
        if i.op != "VOTEU":
            if i.guard is not None or (i.op not in _PURE and i.op not in _FREE):
                return False
            if i.op in _CONVERGENT and i.op != "R2UR":
                return False
        return all(r.num in own or r.file == "UR" or self.shared.same(r.num, at) for r in read_regs(i))

    def finish(self) -> bool:
        """Put the new blocks in their places."""
        if self.after:
            out: list[Block] = []
            for pos, b in enumerate(self.fn.blocks):
                out.append(b)
                if pos in self.after:
                    out.append(self.after[pos])
            self.fn.blocks = out
        return self.changed


def _is_setup(i: Inst) -> bool:
    """Whether an operation may be done by any thread, once: the one that sets up an mbarrier."""
    return (
        bool(i.attrs and i.attrs.get("mbarrier") == 0) and type(i.srcs[0]) is Mem and i.dsts[0] == URZ._replace(width=2)
    )
