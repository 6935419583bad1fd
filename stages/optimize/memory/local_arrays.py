"""Local memory to registers (SROA, mem2reg; also arrays that are indexed at run time): where a function's frame is
small and all that is done with its address is to load and store whole words, each word becomes a register.

Pre: a function in SSA form whose addresses of local memory are combined. Post: outside of SSA form, no frame. An access
at a known place is a copy. A load at an unknown place is a tree of SEL over the bits of its offset; a store at an
unknown place is a copy to each word it may mean, under a predicate that compares the offset. What a word holds before
it is stored is undefined, in the frame as well.

Addresses need no arithmetic of their own: the frame's base, R1, is replaced by zero where addresses begin, so that all
that is made of it is an offset. Limits measured on ptxas, which compares the offset with that of every word.
"""

from __future__ import annotations

from ir_format import isa
from ir_format.flow import read_regs, written_regs
from ir_format.isa import facts
from ir_format.model import NOT_PT, PT, RZ, ZERO, Function, Imm, Inst, Mem, Operand, Reg
from ir_format.typed import Final
from stages.optimize.analyses import Analyses
from stages.optimize.loops.natural import find_loops
from stages.optimize.memory.redundancy import Access, access_of
from stages.optimize.scalar.combine import Combiner
from stages.optimize.scalar.known_bits import known_bits
from stages.optimize.values import OPAQUE, Cell, Values
from stages.plumbing.runner import Context

#: Words of a frame up to which it may be kept in registers (ptxas keeps 64, not 100).
_WORDS: Final = 64
#: (places that an access may mean, accesses at unknown places up to which the frame goes into registers), a store
#: counts twice: outside of loops, in loops (measured on ptxas by arrays of 2 to 200 words; in between guessed).
_ACCESSES: Final = ((4, 64), (7, 24), (8, 12), (10, 5), (16, 4), (32, 3), (64, 2))
_IN_LOOPS: Final = ((5, 32), (7, 8), (8, 3), (10, 2), (16, 1))
_CALLS: Final = facts.with_value("ctl", "call")
_LOCAL: Final = facts.reading("local") | facts.writing("local")
_NEAR: Final = 40  # instructions to look back for what makes a stored value (guessed)
_UNKNOWN: Final = -1  # an offset that is known at run time only


def promote_local_arrays(f: Function, a: Analyses) -> bool:
    """The pass."""
    if not 0 < f.frame <= 4 * _WORDS or any(i.op in _CALLS for b in f.blocks for i in b.insts):
        return False
    stack = {n for n, v in enumerate(f.vregs) if v.fixed == 1 and v.file == "R"}
    if _reads_callers_frame(f, stack):
        return False
    frame = _Frame(f, a.values, stack)
    if not frame.closed():
        return False
    frame.limit_places(a.ctx)
    if not frame.few(a) or not a.ctx.allow():
        return False
    frame.from_zero()
    a.leave_ssa()
    _Words(f, a.ctx, frame).run()
    f.frame = 0
    return True


def _reads_callers_frame(f: Function, stack: set[int]) -> bool:
    """Whether R1 is read where it is not the address of this function's frame: before the instruction that makes the
    frame (arguments that come in on the stack) or after one that gives it back."""
    for pos, b in enumerate(f.blocks):
        own = pos > 0
        for i in b.insts:
            if i.attrs and "frame" in i.attrs:
                own = not own
            elif not own and any(r.num in stack for r in read_regs(i)):
                return True
    return False


class _Frame:
    """What a function does with the address of its frame. ``offsets``: cells that hold the frame's address plus a known
    or unknown number; ``accesses``: identity of a load or store -> what it accesses; ``places``: the words that one at
    an unknown place may mean; ``single``: stores of values that nothing else reads; ``roots``: what reads R1."""

    def __init__(self, f: Function, values: Values, stack: set[int]) -> None:
        self.f = f
        self.values = values
        self.stack = stack
        self.words = (f.frame + 3) // 4
        self.offsets: dict[Cell, int] = dict.fromkeys(((n, 0) for n in stack), 0)
        self.accesses: dict[int, tuple[Access, int]] = {}
        self.places: dict[int, list[int]] = {}
        self.single: set[int] = set()
        self.roots: list[Inst] = []

    def closed(self) -> bool:
        """Whether every reader of an address of the frame is an access of whole words or makes such an address."""
        blocks, rpo = self.f.blocks, self.values.cfg.rpo
        changed = True
        while changed:
            changed = False
            for pos in rpo:
                for i in blocks[pos].insts:
                    if self._reads(i):
                        if i.attrs and "frame" in i.attrs:
                            continue
                        got = self._derive(i)
                        if got is None:
                            return False
                        for cell, offset in got:
                            if self.offsets.get(cell) != offset:
                                # a second answer, around a loop, is an unknown one
                                self.offsets[cell] = offset if cell not in self.offsets else _UNKNOWN
                                changed = True
                    elif i.op in _LOCAL:
                        return False
        return all(self._is_consistent(i) for pos in rpo for i in blocks[pos].insts)

    def _reads(self, i: Inst) -> bool:
        offsets = self.offsets
        return any((r.num, c) in offsets for r in read_regs(i) for c in range(r.sub, r.sub + r.width))

    def _derive(self, i: Inst) -> list[tuple[Cell, int]] | None:
        """The cells of addresses that an instruction makes of addresses; None where it does anything else with one."""
        if i.op in _LOCAL:
            return [] if self._access(i) else None
        d = i.dsts[0] if i.dsts else None
        if type(d) is not Reg or i.guard not in (None, PT) or i.uses or i.defs or self.values.value[d.num] == OPAQUE:
            return None
        if any(type(x) is Reg and x.num != ZERO for x in i.dsts[1:]):
            return None
        if i.op in ("COPY", "MOV"):
            s = i.srcs[0]
            if type(s) is not Reg or s.width != d.width or s.flags or s.mod or len(i.srcs) > 1 and s.width > 1:
                return None
            return [
                ((d.num, d.sub + n), self.offsets[s.num, s.sub + n])
                for n in range(d.width)
                if (s.num, s.sub + n) in self.offsets
            ]
        if d.width != 1:
            return None
        at = [n for n, s in enumerate(i.srcs) if type(s) is Reg and (s.num, s.sub) in self.offsets]
        if any(s.flags or s.mod or s.width != 1 for n in at if type(s := i.srcs[n]) is Reg):
            return None
        if i.op == "PHI":  # around a loop a source may not be known yet: see _is_consistent
            return [((d.num, d.sub), self._common([i.srcs[n] for n in at]))]
        if i.op == "SEL" and at == [0, 1]:
            return [((d.num, d.sub), self._common([i.srcs[n] for n in at]))]
        if i.op == "IADD3" and not i.mods and len(at) == 1 and at[0] < 3:
            return [((d.num, d.sub), self._sum(i, at[0]))]
        if (i.op == "IMAD" and i.mods in ((), ("U32",)) and at == [2]) or (
            i.op == "LEA" and not i.mods and at == [1] and self._plain(i, 1)
        ):
            return [((d.num, d.sub), _UNKNOWN)]
        return None

    def _plain(self, i: Inst, at: int) -> bool:
        """Whether nothing but the operands before the predicates are registers: no carry comes in."""
        return all(type(s) is not Reg or s.num == ZERO for s in i.srcs[at + 1 :])

    def _common(self, sources: list[Operand]) -> int:
        known = {self.offsets[s.num, s.sub] for s in sources if type(s) is Reg}
        return known.pop() if len(known) == 1 else _UNKNOWN

    def _sum(self, i: Inst, at: int) -> int:
        s = i.srcs[at]
        assert type(s) is Reg
        total = self.offsets[s.num, s.sub]
        for n, o in enumerate(i.srcs[:3]):
            if n == at:
                continue
            if type(o) is Imm and not o.sym and total != _UNKNOWN:
                total = total + o.value & 0xFFFFFFFF
            elif not (type(o) is Reg and o.num == ZERO):
                return _UNKNOWN
        return total if total < 1 << 31 else _UNKNOWN

    def _is_consistent(self, i: Inst) -> bool:
        """Whether a PHI of addresses has only such, and nothing else writes what an address is in."""
        made = any((r.num, c) in self.offsets for r in written_regs(i) for c in range(r.sub, r.sub + r.width))
        if not made or (i.attrs and "frame" in i.attrs):
            return True
        if i.op == "PHI":
            return all(type(s) is Reg and (s.num, s.sub) in self.offsets for s in i.srcs)
        return self._reads(i) or all(r.num in self.stack for r in written_regs(i))

    def _access(self, i: Inst) -> bool:
        """Note a load or store; whether it accesses whole words inside the frame."""
        x = access_of(i)
        if x is None or not x.words or x.base[0] != "local" or type(x.data) is not Reg:
            return False
        where = next(o for o in (*i.dsts, *i.srcs) if type(o) is Mem)
        base = where.base
        if base is None or where.ubase is not None or where.sym or base.mod or (base.num, base.sub) not in self.offsets:
            return False
        if not x.load and any((x.data.num, x.data.sub + n) in self.offsets for n in range(x.words)):
            return False  # an address is stored
        offset = self.offsets[base.num, base.sub]
        if offset != _UNKNOWN:
            offset += where.offset
            if offset < 0 or offset + x.size > 4 * self.words or offset % 4:
                return False
        self.accesses[id(i)] = x, offset
        return True

    def few(self, a: Analyses) -> bool:
        """Whether there are few enough accesses at unknown places, and room for the words."""
        if self.words > a.room // 2:
            return False
        inside = {pos for loop in find_loops(self.f, a.cfg, a.idom) for pos in loop.body}
        count = looped = most = 0
        for pos, b in enumerate(self.f.blocks):
            for i in b.insts:
                places = self.places.get(id(i))
                if places is not None:
                    x = self.accesses[id(i)][0]
                    most = max(most, len(places))
                    count += x.words if x.load else 2
                    looped += pos in inside
        table = _IN_LOOPS if looped else _ACCESSES
        return count == 0 or count <= next((n for places, n in table if most <= places), 0)

    def limit_places(self, ctx: Context) -> None:
        """Which words each access at an unknown place may mean, by the known bits of its offset; which stored values
        nothing else reads."""
        facts_ = _Offsets(self, Combiner(self.f, ctx, {}, self.values))
        for pos in self.values.cfg.rpo:
            for i in self.f.blocks[pos].insts:
                if i.attrs is None or "frame" not in i.attrs:
                    if any(r.num in self.stack for r in read_regs(i)):
                        self.roots.append(i)
                x, offset = self.accesses.get(id(i), (None, 0))
                if x is None or type(x.data) is not Reg:
                    continue
                if not x.load and x.data.num != ZERO and self.values.use_count(x.data) == 1:
                    self.single.add(id(i))
                if offset == _UNKNOWN:
                    where = next(o for o in (*i.dsts, *i.srcs) if type(o) is Mem)
                    zero, one = 0, 0
                    if where.base is not None and not where.offset:
                        zero, one = known_bits(facts_, where.base)
                    self.places[id(i)] = [
                        at
                        for at in range(0, self.words - x.words + 1, x.words)
                        if not 4 * at & one ^ one and not 4 * at & zero
                    ]

    def from_zero(self) -> None:
        """Addresses become offsets: the instructions that read R1 read zero."""
        for i in self.roots:
            i.srcs = tuple(RZ if type(o) is Reg and o.num in self.stack else o for o in i.srcs)


class _Offsets:
    """What :func:`known_bits` asks for, with addresses of the frame taken as offsets."""

    def __init__(self, frame: _Frame, all_: Combiner) -> None:
        self.frame = frame
        self.values = frame.values
        self.bits: dict[int, tuple[int, int]] = {}
        self.all = all_

    def constant(self, o: Operand) -> int | None:
        """The value of a constant, the offset of an address that is known."""
        if type(o) is Reg:
            known = self.frame.offsets.get((o.num, o.sub))
            if known is not None:
                return known if known != _UNKNOWN else None
        return self.all.constant(o)


class _Words:
    """Accesses become copies and choices."""

    def __init__(self, f: Function, ctx: Context, frame: _Frame) -> None:
        self.f = f
        self.ctx = ctx
        self.frame = frame
        self.target = isa.target(ctx.header.target)
        self.word = [f.new_vreg("R") for _ in range(frame.words)]
        self.out: list[Inst] = []

    def run(self) -> None:
        """The words are undefined at the start of the function."""
        for b in self.f.blocks:
            self.out = []
            for i in b.insts:
                x, offset = self.frame.accesses.get(id(i), (None, 0))
                if x is None:
                    self.out.append(i)
                elif offset != _UNKNOWN:
                    self._known(i, x, offset // 4)
                else:
                    self._unknown(i, x)
            b.insts = self.out
        first = self.f.blocks[0]
        at = next((n for n, i in enumerate(first.insts) if i.attrs and "frame" in i.attrs), -1) + 1
        line = first.insts[0].line if first.insts else 0
        first.insts[at:at] = [Inst("UNDEF", (), (w,), (), None, line) for w in self.word]
        self.ctx.count("local words in registers", len(self.word))

    def _emit(self, i: Inst, op: str, mods: tuple[str, ...], d: tuple[Operand, ...], s: tuple[Operand, ...]) -> None:
        if op != "COPY":
            d, s = self.target.complete(op, mods, d, s)
        self.out.append(Inst(op, mods, d, s, None, i.line, i.loc))

    def _data(self, i: Inst) -> Reg:
        """The register that an access loads to or stores from, by the name that it has by now."""
        r = next(o for o in (*i.dsts, *i.srcs) if type(o) is Reg and o.file == "R")
        return r

    def _known(self, i: Inst, x: Access, at: int) -> None:
        data = self._data(i)
        for n in range(x.words):
            part: Operand = RZ if data.num == ZERO else data._replace(sub=data.sub + n, width=1)
            word = self.word[at + n]
            d, s = (part, word) if x.load else (word, part)
            if not x.load and i.guard is None and id(i) in self.frame.single and self._made_in(part, word):
                continue
            if d != RZ:
                self.out.append(Inst("COPY", (), (d,), (s,), i.guard, i.line, i.loc))

    def _made_in(self, part: Operand, word: Reg) -> bool:
        """Let the instruction of this block that makes a value, which only the store reads, write the word itself: a
        copy under the guard of an arm would stay."""
        for n in range(len(self.out) - 1, max(-1, len(self.out) - _NEAR), -1):
            i = self.out[n]
            if part in i.dsts and not i.uses and not i.defs and i.op != "UNDEF":
                if i.guard is None and word not in read_regs(i):
                    i.dsts = tuple(word if d == part else d for d in i.dsts)
                    return True
                return False
            if part in written_regs(i) or word in read_regs(i) or word in written_regs(i):
                return False
        return False

    def _offset(self, i: Inst) -> Operand:
        where = next(o for o in (*i.dsts, *i.srcs) if type(o) is Mem)
        base: Operand = where.base if where.base is not None else RZ
        if not where.offset:
            return base
        r = self.f.new_vreg("R")
        self._emit(i, "IADD3", (), (r,), (base, Imm("I", where.offset & 0xFFFFFFFF), RZ))
        return r

    def _unknown(self, i: Inst, x: Access) -> None:
        places = self.frame.places[id(i)]
        offset = self._offset(i)
        if not x.load:
            self._store(i, x, offset, places)
            return
        data = self._data(i)
        tests: dict[int, Reg] = {}
        for n in range(x.words):
            got = self._choose(i, offset, [at + n for at in places], x.words.bit_length() + 5, tests, n)
            part = data._replace(sub=data.sub + n, width=1)
            self.out.append(Inst("COPY", (), (part,), (got,), i.guard, i.line, i.loc))

    def _choose(
        self, i: Inst, offset: Operand, words: list[int], bit: int, tests: dict[int, Reg], lane: int
    ) -> Operand:
        """The one of ``words`` that the bits of the offset up to ``bit`` name."""
        if len(words) <= 1:
            return self.word[words[0]] if words else RZ
        low = [w for w in words if not 4 * (w - lane) >> bit & 1]
        high = [w for w in words if 4 * (w - lane) >> bit & 1]
        if not low or not high:
            return self._choose(i, offset, words, bit - 1, tests, lane)
        a = self._choose(i, offset, low, bit - 1, tests, lane)
        b = self._choose(i, offset, high, bit - 1, tests, lane)
        p = tests.get(bit)
        if p is None:
            p = tests[bit] = self.f.new_vreg("P")
            self._emit(i, "LOP3", ("LUT",), (p, RZ), (offset, Imm("I", 1 << bit), RZ, Imm("I", 0xC0), NOT_PT))
        r = self.f.new_vreg("R")
        self._emit(i, "SEL", (), (r,), (b, a, p))
        return r

    def _store(self, i: Inst, x: Access, offset: Operand, places: list[int]) -> None:
        data = self._data(i)
        guard = i.guard if i.guard is not None else PT
        for at in places:
            p = self.f.new_vreg("P")
            self._emit(i, "ISETP", ("EQ", "AND"), (p,), (offset, Imm("I", 4 * at), guard))
            for n in range(x.words):
                part: Operand = RZ if data.num == ZERO else data._replace(sub=data.sub + n, width=1)
                self.out.append(Inst("COPY", (), (self.word[at + n],), (part,), p, i.line, i.loc))
