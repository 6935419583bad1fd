"""Instruction combining and global value numbering (GVN), with copy propagation, constant folding and common
subexpression elimination (CSE), in one walk over the dominator tree.

Pre: a function at level `ori` whose operand forms are legal. Post: the same, with fewer or cheaper instructions; dead
ones are left to `dce`. The walk looks only through registers that are values (:mod:`stages.optimize.values`). Peephole
rules are tried until none applies:

* :mod:`stages.optimize.scalar.fold`: an instruction that is a constant, a copy, or has a simpler form;
* :mod:`stages.optimize.scalar.fuse`: two instructions that one can do (IMAD, LEA, IADD3, LOP3), addresses that fit
  [R+imm].
"""

from __future__ import annotations

from collections.abc import Callable

from ir_format import isa
from ir_format.diag import CompileError
from ir_format.flow import is_guarded, read_regs, written_regs
from ir_format.model import INV, NOT_PT, PT, RZ, ZERO, Const, Function, Imm, Inst, Mem, Operand, Reg, VReg
from ir_format.target import target as find_target
from ir_format.typed import Final
from stages.optimize.evaluate.operands import Answer, value_of
from stages.optimize.evaluate.table import evaluate
from stages.optimize.scalar.copies import Copies
from stages.optimize.scalar.predicates import turn_test
from stages.optimize.values import FREE, OPAQUE, Lane, Values, is_pure
from stages.plumbing.runner import Context

Rule = Callable[["Combiner", Inst], "Inst | None"]
#: Copies are looked through; two of them are not compared.
_NEVER_EQUAL: Final = frozenset(("COPY", "MOV", "UNDEF"))
#: How many instructions rules look back: a sum of sums of shifted words.
_DEPTH: Final = 3


class Combiner:
    """State of the walk over one function. Rules use ``values``, :meth:`made_by`, :meth:`legal`."""

    def __init__(
        self, func: Function, ctx: Context, rules: dict[str, tuple[Rule, ...]], values: Values | None = None
    ) -> None:
        self.func = func
        self.ctx = ctx
        self.target = isa.target(ctx.header.target)
        self.sm = self.target.sm
        self.alu_const = find_target(ctx.header.target).alu_const
        self.rules = rules
        self.values = Values(func) if values is None else values
        self.copies = Copies(self.values)
        self.table: dict[object, tuple[Operand, ...]] = {}
        self.here: tuple[list[Inst], int] = ([], 0)  # the block being walked and the index in it
        self.bits: dict[
            Lane, tuple[int, int]
        ] = {}  # a value's component -> bits known to be 0 and 1 (stages.optimize.scalar.known_bits)
        self.retired: set[int] = set()
        self.known_sum: tuple[Inst, object] | None = None  # the last answer of :func:`wide_sums.sum_at`
        self.at_block = 0  # its position
        self.before: list[tuple[int, Inst]] = []  # instructions to put into it, in order of their places
        self.fresh: list[object] = []  # keys that it has added to the table
        self.written: dict[
            int, int
        ] = {}  # web or register that is not free -> index of its last writer in the current block
        self.index: dict[int, int] = {}  # identity of an instruction of the current block -> its index
        self.again = False  # whether the function was combined before, so that only what changed since is looked at
        self.stale: set[int] = set()  # what changed since then (:class:`Values`)
        self.rewritten: set[int] = set()
        #: Whether nothing was changed yet: then no two values can have become equal, and instructions wait to be
        #: numbered, with the list of keys of their block.
        self.lazy = False
        self.pending: list[tuple[list[object], Inst]] = []
        self.near: dict[int, int] = {}  # register -> how many instructions further what changed may matter

    # ------------------------------------------------------------------ what rules may ask

    def made_by(self, o: Operand, op: str) -> Inst | None:
        """The unguarded instruction with mnemonic ``op`` that makes the one-word value ``o``; None if there is none."""
        if type(o) is not Reg or o.num == ZERO:
            return None
        i = self.values.def_of(o)
        return i if i is not None and i.op == op else None

    def one_use(self, o: Operand) -> bool:
        """Whether the value is read in one place only."""
        return type(o) is Reg and o.num != ZERO and self.values.use_count(o) == 1

    def in_block(self, r: Reg) -> bool:
        """Whether the value is computed in the current block."""
        return self.values.place[self.values.base[r.num] + r.sub] == self.at_block

    def is_free(self, o: Operand) -> bool:
        """Whether the operand may be read wherever its definition dominates (:meth:`Copies.is_free`)."""
        return self.copies.is_free(o)

    def unchanged(self, since: Inst, *ops: Operand) -> bool:
        """Whether operands that ``since`` reads have the same value at the current instruction: their registers do not
        change, or ``since`` precedes it in the same block (or is the current one) and nothing from it on writes
        them."""
        web = self.values.web
        loose = [web[o.num] for o in ops if type(o) is Reg and not self.is_free(o)]
        if not all(type(o) is Reg or self.is_free(o) for o in ops):
            return False
        if not loose:
            return True
        at = self.index.get(id(since))
        return at is not None and all(self.written.get(num, -1) < at for num in loose)

    def legal(self, i: Inst) -> bool:
        """Whether the target encodes the instruction as it is; pseudo instructions always are."""
        if i.op == "COPY":
            return True
        try:
            return self.target.match(i) is not None
        except CompileError:
            return False

    def build(
        self, i: Inst, op: str, mods: tuple[str, ...], dsts: tuple[Operand, ...], srcs: tuple[Operand, ...]
    ) -> Inst | None:
        """An instruction to put instead of ``i``, optional slots filled; None where the target has no such
        form."""
        try:
            dsts, srcs, fits = self.target.completed(op, mods, dsts, srcs)
        except CompileError:
            return None
        return Inst(op, mods, dsts, srcs, i.guard, i.line, i.loc) if fits else None

    def copy_source(self, o: Operand) -> Operand:
        """What an operand is a copy of, whether or not the current instruction could read that."""
        return self.copies.operand(o)

    def constant(self, o: Operand) -> int | None:
        """The 32-bit value of an operand, also of a register that holds a constant; None where it is not known."""
        got = value_of(o)
        return got if got is not None or type(o) is not Reg or o.flags or o.mod else value_of(self.copies.reg(o))

    def known_lane(self, r: Reg, lane: int) -> int | None:
        """What a lane of a register operand holds, or a predicate (0 or 1), flags ignored; None where it is not
        known."""
        got = self.copies.found.get(self.values.base[r.num] + r.sub + lane)
        if type(got) is Reg and got.num == ZERO and got.file in ("P", "UP"):
            return 0 if got.flags & INV else 1
        return value_of(got) if got is not None else None

    def computed(self, i: Inst, srcs: tuple[Operand, ...]) -> Answer | None:
        """What an instruction would compute from other, constant sources."""
        return evaluate(Inst(i.op, i.mods, i.dsts, srcs), self.known_lane)

    def in_register(self, value: int) -> Reg:
        """A register with a constant, for a place that takes no immediate; shared with what the current instruction
        dominates."""
        key = ("constant", value)
        got = self.table.get(key)
        if got is not None and type(got[0]) is Reg:
            return got[0]
        dsts, srcs = self.target.complete("MOV", (), (RZ,), (Imm("I", value),))
        r = self.before_it("R", Inst("MOV", (), dsts, srcs))
        self.table[key] = (r,)
        self.fresh.append(key)
        return r

    def before_it(self, file: str, i: Inst) -> Reg:
        """Insert an instruction before the current one; the fresh one-word register that it writes, instead of
        its first destination."""
        insts, at = self.here
        v = self.values
        r = Reg(file, len(self.func.vregs))
        self.func.vregs.append(VReg(file, 1))
        i.dsts = (r, *i.dsts[1:])
        i.line, i.loc = insts[at].line, insts[at].loc
        v.new_register()
        v.defs[v.base[r.num]] = i
        v.place[v.base[r.num]] = self.at_block
        v.adjust(i, +1)
        self.before.append((at, i))
        return r

    def define(self, p: Reg, value: Operand) -> None:
        """The current instruction is about to lose a result: a copy of ``value`` before it makes the value ``p``,
        and readers see through it."""
        i = Inst("COPY", (), (p,), (value,), None, *self._line())
        self.values.defs[self.values.base[p.num] + p.sub] = i
        self.before.append((self.here[1], i))
        self.copies.remember(i)

    def _line(self) -> tuple[int, int]:
        here = self.here[0][self.here[1]]
        return here.line, here.loc

    def rewrite(self, i: Inst, new: Inst) -> None:
        """Let the earlier instruction ``i`` make what it makes as ``new`` would."""
        self.values.adjust(i, -1)
        self.values.rewritten.add(id(i))
        self.values.stale.update([d.num for d in new.dsts if type(d) is Reg])
        i.op, i.mods, i.dsts, i.srcs = new.op, new.mods, new.dsts, new.srcs
        self.values.adjust(i, +1)

    def unread_between(self, first: Inst, last: Inst) -> bool:
        """Whether ``first`` shortly precedes ``last`` (the current instruction) and nothing between reads what it
        makes."""
        insts, at = self.here
        made = {(r.num, c) for r in written_regs(first) for c in range(r.sub, r.sub + r.width)}
        for n in range(at - 1, max(-1, at - 40), -1):
            if insts[n] is first:
                return True
            if any((r.num, c) in made for r in read_regs(insts[n]) for c in range(r.sub, r.sub + r.width)):
                return False
        return False

    def erase(self, i: Inst) -> None:
        """Take an instruction out: another one now makes what it made."""
        self.values.adjust(i, -1)
        self.retired.add(id(i))

    # ------------------------------------------------------------------ the walk

    def run(self) -> None:
        """Walk the dominator tree in preorder; the value table is undone on the way up."""
        v = self.values
        if not v.cfg.rpo:
            return
        self.again = self.lazy = v.combined
        marks: list[int] = []  # per open block, how many instructions were pending at its start
        self.stale, self.rewritten = v.stale, v.rewritten
        v.start_notes()
        undo: list[list[object]] = []
        todo: list[tuple[str, int]] = [("enter", v.cfg.rpo[0])]
        while todo:
            what, pos = todo.pop()
            if what == "leave":
                for key in undo.pop():
                    del self.table[key]
                if self.pending:
                    del self.pending[marks[-1] :]
                marks.pop()
                continue
            fresh: list[object] = []
            undo.append(fresh)
            marks.append(len(self.pending))
            self._block(pos, fresh)
            todo.append(("leave", pos))
            todo += [("enter", c) for c in reversed(v.tree.children[pos])]
        if self.retired:
            for b in self.func.blocks:
                b.insts = [i for i in b.insts if id(i) not in self.retired]

    def _block(self, pos: int, fresh: list[object]) -> None:
        block = self.func.blocks[pos]
        out = block.insts
        value, web = self.values.value, self.values.web
        written: dict[int, int] = {}
        self.at_block, self.fresh, self.before, self.written, self.index = pos, fresh, [], written, {}
        limit = self.ctx.flags.limit
        for n, i in enumerate(out):
            self.here = (out, n)
            if n:  # note what the one before writes, if that is no free value
                before = out[n - 1]
                if before.defs:
                    for r in written_regs(before):
                        if value[r.num] != FREE:
                            written[web[r.num]] = n - 1
                else:
                    for o in before.dsts:
                        if type(o) is Reg and o.num != ZERO and value[o.num] != FREE:
                            written[web[o.num]] = n - 1
            if i.op == "PHI" or (i.attrs and "frame" in i.attrs):  # an immediate that is not known yet
                continue
            if self.again and not self._due(i):
                self.index[id(i)] = n
                if i.op in _NEVER_EQUAL:
                    self.copies.remember(i)
                elif self.lazy:
                    self.pending.append((fresh, i))
                else:
                    out[n] = i = self._number(i, fresh)
                    self.index[id(i)] = n
                continue
            i = self._substitute(i)
            self.index[id(i)] = n
            for rule in self.rules.get(i.op, ()):
                if (
                    limit is not None and self.ctx.rewrites >= limit
                ):  # a rule may change more than the current instruction
                    self._insert(out)
                    return
                new = rule(self, i)
                if new is None:
                    continue
                self.lazy = False
                self.ctx.allow()
                self.ctx.count(f"rule {rule.__name__}")
                self._replace(i, new)
                self.index[id(new)] = n
                changed, i = new.op != i.op, new
                if changed:
                    break  # the other rules are of the old mnemonic
            if i.op in _NEVER_EQUAL:
                out[n] = i
                self.copies.remember(i)
            elif self.lazy:
                out[n] = i
                self.pending.append((fresh, i))
            else:
                if self.pending:
                    self._number_pending()
                new = self._number(i, fresh)
                out[n] = new
                if new is not i:
                    self.index[id(new)] = n
                    self.copies.remember(new)
        self._insert(out)

    def _due(self, i: Inst) -> bool:
        """Whether anything that rules look at has changed since the function was combined: the instruction, or one that
        makes an operand of it, or of that, this many times."""
        old, new, near = self.stale, self.values.stale, self.near
        best = _DEPTH if id(i) in self.rewritten else 0
        for r in read_regs(i):
            far = _DEPTH if r.num in old or r.num in new else near.get(r.num, 0)
            if far > best:
                best = far
        if best > 1:
            for r in written_regs(i):
                if near.get(r.num, 0) < best - 1:
                    near[r.num] = best - 1
        return best > 0

    def _insert(self, out: list[Inst]) -> None:
        """Put the instructions of ``before`` into the block."""
        if self.before:
            places: dict[int, list[Inst]] = {}
            for n, i in self.before:
                places.setdefault(n, []).append(i)
            out[:] = [x for n, i in enumerate(out) for x in (*places.get(n, ()), i)]

    def _replace(self, old: Inst, new: Inst) -> None:
        """Put ``new`` where ``old`` was: use counts, definitions and ties follow."""
        v = self.values
        if old.uses and not new.uses:
            new.uses = old.uses
        v.adjust(old, -1)
        v.adjust(new, +1)
        v.rewritten.add(id(new))
        for d in new.dsts:
            if type(d) is Reg and d.num != ZERO:
                v.stale.add(d.num)
                for lane in v.lanes(d):
                    if v.defs[lane] is not None:
                        v.defs[lane] = new

    # ------------------------------------------------------------------ copies

    def _substitute(self, i: Inst) -> Inst:
        """The instruction with copies read through where the result is legal; the same object, changed in place."""
        copies = self.copies.registers
        if not copies or i.op == "UNDEF":
            return i
        if i.op == "COPY" and self._within(i):
            return i
        for n in range(len(i.srcs)):
            o = i.srcs[n]  # read again each time: a swap moves operands
            if type(o) is Reg:
                if o.num not in copies:
                    continue
            elif type(o) is Imm:
                continue
            new = self.copies.operand(o)
            if new is o or new == o:
                continue
            if type(new) is Reg and type(o) is Reg and self._renamed(i, n, o, new):
                continue
            if self._try(i, srcs=(*i.srcs[:n], new, *i.srcs[n + 1 :])):
                continue
            if value_of(new) == 0 and type(new) is Imm and self._try(i, srcs=(*i.srcs[:n], RZ, *i.srcs[n + 1 :])):
                continue
            if n == 0 and (type(new) is Imm or type(new) is Const) and turn_test(self, i, new):
                continue
            if n == 0 and len(i.srcs) > 1 and self.target.fact(i, "comm").startswith("ab"):
                self._try(
                    i, srcs=(i.srcs[1], new, *i.srcs[2:])
                )  # an immediate or constant is only encoded in the second place
        if i.dsts and type(i.dsts[0]) is not Reg:
            for n, o in enumerate(i.dsts):
                if type(o) is Mem:
                    new = self.copies.operand(o)
                    if new != o:
                        self._try(i, dsts=(*i.dsts[:n], new, *i.dsts[n + 1 :]))
        g = i.guard
        if g is not None and g.num in copies:
            new = self.copies.reg(g)
            if new != g and type(new) is Reg and self.ctx.allow():
                self.values.adjust(i, -1)
                i.guard = new
                self.values.adjust(i, +1)
        return i

    def _renamed(self, i: Inst, n: int, old: Reg, new: Reg) -> bool:
        """Read ``new`` in source ``n`` where it differs from ``old`` in its number alone, which no form depends on;
        whether it was done."""
        if (
            new.num == ZERO
            or new.file != old.file
            or new.flags != old.flags
            or new.mod != old.mod
            or new.width != old.width
            or not self.ctx.allow()
        ):
            return False
        srcs = i.srcs
        i.srcs = (*srcs[:n], new, *srcs[n + 1 :])
        uses = self.values.uses
        self.values.stale.add(old.num)
        if self.again:
            self.values.stale.update([d.num for d in i.dsts if type(d) is Reg])
            self.lazy = False
        base = self.values.base
        first, second = base[old.num] + old.sub, base[new.num] + new.sub
        for c in range(old.width):
            uses[first + c] -= 1
            uses[second + c] += 1
        return True

    def _within(self, i: Inst) -> bool:
        """Whether a copy is between values of one web, so that it disappears."""
        d, s = i.dsts[0], i.srcs[0]
        if type(d) is not Reg or type(s) is not Reg or ZERO in (d.num, s.num):
            return False
        web = self.values.web
        return web[d.num] == web[s.num] and d.sub == s.sub

    def change(self, i: Inst, mods: tuple[str, ...], srcs: tuple[Operand, ...]) -> bool:
        """Change modifiers and sources if the target has the form; whether it did."""
        old, i.mods = i.mods, mods
        if self._try(i, srcs=srcs):
            return True
        i.mods = old
        return False

    def _try(self, i: Inst, srcs: tuple[Operand, ...] | None = None, dsts: tuple[Operand, ...] | None = None) -> bool:
        """Change operands if the target has the form; whether it did."""
        old_s, old_d = i.srcs, i.dsts
        i.srcs = old_s if srcs is None else srcs
        i.dsts = old_d if dsts is None else dsts
        if (i.op in ("COPY", "PCOPY") or self.legal(i)) and self.ctx.allow():
            self.values.exchange((*old_d, *old_s), (*i.dsts, *i.srcs))
            self.values.stale.update([d.num for d in i.dsts if type(d) is Reg])
            self.lazy = False
            return True
        i.srcs, i.dsts = old_s, old_d
        return False

    # ------------------------------------------------------------------ value numbering

    def _number(self, i: Inst, fresh: list[object]) -> Inst:
        """A copy of an earlier equal computation, or the instruction itself."""
        if i.uses or not is_pure(i) or (i.guard is not None and is_guarded(i)):
            return i
        dsts, value = i.dsts, self.values.value
        for d in dsts:
            if type(d) is not Reg or (d.num != ZERO and not value[d.num]):
                return i
        key = self.key(i.op, i.mods, dsts, i.srcs)
        if key is None:
            return i
        got = self.table.get(key)
        if got is None:
            if all(d.num == ZERO or value[d.num] == FREE for d in dsts):  # type: ignore[union-attr]
                self.table[key] = dsts
                fresh.append(key)
            return i
        real = [(d, s) for d, s in zip(dsts, got, strict=True) if d.num != ZERO]  # type: ignore[union-attr]
        if len(real) != 1 or not self.ctx.allow():
            return i
        new = Inst("COPY", (), (real[0][0],), (real[0][1],), None, i.line, i.loc)
        self.ctx.count("equal values")
        self._replace(i, new)
        return new

    def _number_pending(self) -> None:
        """Something changed: number what dominates the current instruction. What reads registers that are no values
        stays out."""
        value = self.values.value
        pending, self.pending = self.pending, []
        for fresh, i in pending:
            if (
                id(i) in self.retired
                or not is_pure(i)
                or is_guarded(i)
                or not all(type(d) is Reg and (d.num == ZERO or value[d.num] == FREE) for d in i.dsts)
                or any(type(o) is Reg and o.num != ZERO and value[o.num] == OPAQUE for o in i.srcs)
            ):
                continue
            key = self.key(i.op, i.mods, i.dsts, i.srcs)
            if key is not None and key not in self.table:
                self.table[key] = i.dsts
                fresh.append(key)

    def key(self, op: str, mods: tuple[str, ...], dsts: tuple[Operand, ...], srcs: tuple[Operand, ...]) -> object:
        """What equal computations have in common; None where that can't be said. A register that is no value is named
        with its last writer in the block: it is the same only there, and until it is written again. Names (special
        registers) do not change in a pure instruction."""
        stamps: tuple[tuple[int, int], ...] = ()
        value = self.values.value
        for o in srcs:
            if type(o) is Reg:
                if o.num != ZERO and value[o.num] == OPAQUE:
                    stamps = (*stamps, (self.at_block, self.written.get(o.num, -1)))
            elif type(o) is Imm:
                continue
            elif type(o) is Mem or (type(o) is Const and not self.is_free(o)):
                return None
        shape: object = tuple([d.width if d.num != ZERO else -d.width for d in dsts])  # type: ignore[union-attr]
        return (op, mods, srcs, shape, stamps)

    def earlier(self, a: Reg, b: Reg) -> Reg | None:
        """A value that is a + b already; None if there is none."""
        if self.pending:
            self._number_pending()
        for x, y in ((a, b), (b, a)):
            got = self.table.get(self.key("IADD3", (), (a, PT, PT), (x, y, RZ, NOT_PT, NOT_PT)))
            if got is not None and type(got[0]) is Reg:
                return got[0]
        return None
