"""Operands of the copy unit, of tensor cores and of barrier objects computed on the uniform datapath.

Lowering copies each word of such an operand to a uniform register by R2UR. Pre: a function at level `ori`. Post: the
same values. A word that is a constant, or that is computed from words which are in uniform registers or reach them as
cheaply, is computed on the uniform datapath (UMOV, UIADD3, ULEA, USHF, ULOP3), as in ptxas's code; the instructions
that computed it in general registers disappear if nothing else reads them. A word that several blocks need, and that
the whole warp computes in one place, is copied to a uniform register once, after its definition. R2UR reads the value
of one active thread, always the same one, so that f(R2UR a, R2UR b) is R2UR f(a, b), whatever the other threads hold.
"""

from __future__ import annotations

from ir_format.flow import is_guarded, loop_depths, read_regs, written_regs
from ir_format.model import PT, UPT, URZ, ZERO, Function, Imm, Inst, Operand, Reg
from ir_format.typed import Final
from stages.optimize.analyses import Analyses
from stages.optimize.late.uniform_forms import UNIFORM_OPS, UniformForms, uniform_zero
from stages.optimize.late.uniform_promotion import convergent_blocks, paths_reconverge
from stages.optimize.scalar.dce import remove_dead_code
from stages.optimize.values import is_pure

_DEEPEST: Final = 6  # instructions in a row that are computed again
_MOST: Final = 14  # words that may live over several blocks

Word = tuple[int, int]  # register, word in it


def use_uniform_datapath(f: Function, a: Analyses) -> bool:
    """The pass."""
    if not any(_brings(i) for b in f.blocks for i in b.insts):
        return False
    work = _Datapath(f, a)
    work.drop_votes()
    work.hoist()
    for pos in range(len(f.blocks)):
        _Block(work, pos).run()
    remove_dead_code(f, a)
    return True


def _brings(i: Inst) -> bool:
    """Whether an instruction brings a word to a uniform register for all threads at hand."""
    return i.op == "R2UR" and not i.mods and i.guard is None and type(i.srcs[0]) is Reg and not i.srcs[0].flags


def _words(r: Reg) -> list[Word]:
    return [(r.num, r.sub + k) for k in range(r.width)]


class _Datapath:
    """One function. ``made``: word -> place and instruction of its only definition, None where there are several;
    ``uses``: how many operands read a word; ``writes``: per block, where words are written."""

    def __init__(self, f: Function, a: Analyses) -> None:
        self.f = f
        self.a = a
        self.form = UniformForms(a.ctx.header.target)
        self.made: dict[Word, tuple[int, Inst] | None] = {}
        self.uses: dict[Word, int] = {}
        self.writes: list[dict[Word, list[int]]] = []
        self.count()

    def count(self) -> None:
        """Find definitions and uses."""
        self.made, self.uses, self.writes = {}, {}, []
        for pos, b in enumerate(self.f.blocks):
            written: dict[Word, list[int]] = {}
            for n, i in enumerate(b.insts):
                for r in read_regs(i):
                    for w in _words(r):
                        self.uses[w] = self.uses.get(w, 0) + 1
                for r in written_regs(i):
                    for w in _words(r):
                        self.made[w] = None if w in self.made or is_guarded(i) else (pos, i)
                        written.setdefault(w, []).append(n)
            self.writes.append(written)

    def drop_votes(self) -> None:
        """VOTEU.ANY of a condition that always holds is true."""
        always: dict[int, Inst] = {}
        for b in self.f.blocks:
            for i in b.insts:
                if i.op == "VOTEU" and i.mods == ("ANY",) and i.srcs == (PT,) and i.dsts[0] == URZ and i.guard is None:
                    p = i.dsts[1]
                    if type(p) is Reg and self.made.get((p.num, 0)) is not None:
                        always[p.num] = i
        if not always:
            return
        gone = set(map(id, always.values()))

        def seen(o: Operand) -> Operand:
            return UPT._replace(flags=o.flags) if type(o) is Reg and o.file == "UP" and o.num in always else o

        for b in self.f.blocks:
            b.insts = [i for i in b.insts if id(i) not in gone]
            for i in b.insts:
                if any(r.file == "UP" and r.num in always for r in read_regs(i)):
                    i.srcs = tuple(map(seen, i.srcs))
                    if i.guard is not None and i.guard.file == "UP" and i.guard.num in always:
                        i.guard = UPT._replace(flags=i.guard.flags) if i.guard.flags else None
        self.count()

    def hoist(self) -> None:
        """Copy words that several blocks or a loop need to uniform registers once, after their definitions."""
        f = self.f
        if any(i.op == "CALL" for b in f.blocks for i in b.insts) or not paths_reconverge(f):
            return
        wanted: dict[Word, list[tuple[int, Inst]]] = {}
        for pos, b in enumerate(f.blocks):
            for i in b.insts:
                if _brings(i):
                    source = i.srcs[0]
                    assert type(source) is Reg
                    if source.num != ZERO:
                        wanted.setdefault((source.num, source.sub), []).append((pos, i))
        depth = loop_depths(self.a.cfg)
        convergent = convergent_blocks(f, self.a.cfg)
        room = _MOST
        behind: dict[int, list[Inst]] = {}
        for word, readers in wanted.items():
            made = self.made.get(word)
            if made is None or not room or not f.vregs[word[0]].uniform or made[0] not in convergent:
                continue
            home, maker = made
            blocks = {pos for pos, _ in readers}
            if self.constant(maker) or (blocks == {home}) or (len(blocks) == 1 and depth[min(blocks)] <= depth[home]):
                continue
            room -= 1
            u = f.new_vreg("UR", 1, 1, -1, 1)
            source = Reg("R", word[0], word[1])
            dsts, srcs = self.form.target.complete("R2UR", (), (u,), (source,))
            behind.setdefault(id(maker), []).append(Inst("R2UR", (), dsts, srcs, None, maker.line, maker.loc))
            for _, i in readers:
                i.op, i.dsts, i.srcs = "COPY", (i.dsts[-1],), (u,)
        if behind:
            for b in f.blocks:
                out: list[Inst] = []
                for i in b.insts:
                    out.append(i)
                    out += behind.get(id(i), ())
                b.insts = out
            self.count()

    def constant(self, i: Inst) -> bool:
        """Whether an instruction moves an immediate."""
        return i.op in ("COPY", "MOV") and type(i.srcs[0]) is Imm


class _Block:
    """The words of one block. ``known``: word -> uniform register (or immediate) that holds it since a place, as long
    as the word is not written again."""

    def __init__(self, work: _Datapath, pos: int) -> None:
        self.work = work
        self.pos = pos
        self.known: dict[Word, tuple[int, Operand]] = {}
        self.out: list[Inst] = []
        self.at = 0
        self.index: dict[int, int] = {}

    def run(self) -> None:
        """Go over the block."""
        b = self.work.f.blocks[self.pos]
        if not any(map(_brings, b.insts)):
            return
        self.index = {id(i): n for n, i in enumerate(b.insts)}
        for n, i in enumerate(b.insts):
            self.at = n
            if _brings(i):
                self._bring(i)
            else:
                self.out.append(i)
        b.insts = self.out

    def _bring(self, i: Inst) -> None:
        """One R2UR."""
        source, to = i.srcs[0], i.dsts[-1]
        assert type(source) is Reg and type(to) is Reg
        if source.num == ZERO:
            self.out.append(Inst("COPY", (), (to,), (Imm("I", 0),), None, i.line, i.loc))
            return
        word = (source.num, source.sub)
        name = self._name(word)
        held = self._held(name)
        if held is not None:
            self.out.append(Inst("COPY", (), (to,), (held,), None, i.line, i.loc))
            self._release(word)
        elif (got := self._compute(word, to, 0, True)) is not None:
            self.out += got[0]
            for new in got[0]:
                for r in read_regs(new):
                    for w in _words(r):
                        self.work.uses[w] = self.work.uses.get(w, 0) + 1
            self._release(word)
        else:
            self.out.append(i)
        if self._stays(to):
            self.known[name] = (self.at, to)

    def _name(self, word: Word) -> Word:
        """What a word is known by: words that hold the same number have one name, which no register has."""
        made = self.work.made.get(word)
        if made is not None and self.work.constant(made[1]):
            o = made[1].srcs[0]
            if type(o) is Imm and not o.sym:
                return (-2, o.value)
        return word

    def _stays(self, to: Reg) -> bool:
        """Whether a uniform register keeps its word: nothing else writes it."""
        return all(self.work.made.get(w) is not None for w in _words(to))

    def _held(self, word: Word) -> Operand | None:
        """Where a word is already."""
        got = self.known.get(word)
        if got is None or self._written(word, got[0], self.at):
            return None
        return got[1]

    def _written(self, word: Word, start: int, end: int) -> bool:
        return any(start <= n < end for n in self.work.writes[self.pos].get(word, ()))

    def _maker(self, word: Word) -> Inst | None:
        """The instruction of this block that makes a word, from words that still hold."""
        made = self.work.made.get(word)
        if made is None:
            return None
        pos, i = made
        if self.work.constant(i):
            return i
        if pos != self.pos or id(i) not in self.index or i.uses or i.defs or is_guarded(i):
            return None
        n = self.index[id(i)]
        if any(self._written(w, n + 1, self.at) for r in read_regs(i) for w in _words(r)):
            return None
        return i

    def _compute(self, word: Word, to: Reg, depth: int, last: bool) -> tuple[list[Inst], int] | None:
        """(instructions that compute a word in a uniform register, how many others go with them); None where R2UR is
        as good. ``last``: whether the general register dies with its R2UR, if nothing else reads it."""
        before = dict(self.known)
        got = self._try(word, to, depth, last)
        if got is None:
            self.known = before
        return got

    def _try(self, word: Word, to: Reg, depth: int, last: bool) -> tuple[list[Inst], int] | None:
        maker = self._maker(word)
        if maker is None or depth > _DEEPEST:
            return None
        if self.work.constant(maker):
            return [Inst("COPY", (), (to,), maker.srcs[:1], None, maker.line, maker.loc)], 0
        if maker.op not in UNIFORM_OPS and maker.op != "COPY":
            return None
        d = next((d for d in maker.dsts if type(d) is Reg and d.file == "R"), None)
        if d is None or d.width != 1 or (d.num, d.sub) != word:
            return None
        dies = last and self.work.uses.get(word, 0) <= 1
        out: list[Inst] = []
        saved, srcs = int(dies), []
        for s in maker.srcs:
            got = self._source(s, out, depth, dies)
            if got is None:
                return None
            srcs.append(got[0])
            saved += got[1]
        if len(out) > saved:
            return None
        new = self.work.form.computing(maker, to, tuple(srcs))
        return None if new is None else ([*out, new], saved)

    def _source(self, s: Operand, out: list[Inst], depth: int, dies: bool) -> tuple[Operand, int] | None:
        """(the operand on the uniform datapath, how many instructions go); what brings it there goes to ``out``."""
        if type(s) is Imm:
            return s, 0
        if type(s) is not Reg or s.mod:
            return None
        if s.num == ZERO:
            return uniform_zero(s), 0
        if s.file == "UR":
            return (s, 0) if self._stays(s) else None
        if s.file != "R" or s.width != 1:
            return None
        word = (s.num, s.sub)
        held = self._held(word)
        if type(held) is Reg:
            return held._replace(flags=s.flags), 0
        maker = self._maker(word)
        if maker is not None and self.work.constant(maker) and not s.flags:
            return maker.srcs[0], 0
        u = self.work.f.new_vreg("UR", 1, 1, -1, 1)
        got = self._compute(word, u, depth + 1, dies)
        if got is None:
            dsts, srcs = self.work.form.target.complete("R2UR", (), (u,), (Reg("R", word[0], word[1]),))
            got = [Inst("R2UR", (), dsts, srcs, None)], 0
        self.work.made[u.num, 0] = (self.pos, got[0][-1])
        out += got[0]
        self.known[word] = (self.at, u)
        return u._replace(flags=s.flags), got[1]

    def _release(self, word: Word) -> None:
        """A reader of a word is gone; so is what makes it, if that was the last."""
        uses = self.work.uses
        uses[word] = uses.get(word, 0) - 1
        made = self.work.made.get(word)
        if uses[word] <= 0 and made is not None and is_pure(made[1]):
            for r in read_regs(made[1]):
                for w in _words(r):
                    self._release(w)
