"""Induction variables of one-block loops: which register counts, by how much, and what the test at the end compares it
with.

A *counter* is a register whose value at the end of an iteration is its value at the start plus a constant, modulo
2**32. The test compares such a value, or one a constant more, with a loop invariant.
"""

from __future__ import annotations

from ir_format.flow import Cfg, is_guarded, written_regs
from ir_format.model import INV, NOT_PT, PT, RZ, ZERO, Block, Const, Function, Imm, Inst, Operand, Reg
from ir_format.record import NamedTuple
from ir_format.typed import Final
from stages.optimize.control.simplify_cfg import plain_jump
from stages.optimize.evaluate.operands import value_of
from stages.optimize.scalar.fold import OPPOSITE, TURNED, plain_iadd3, split_terms
from stages.optimize.ssa.webs import Webs
from stages.optimize.values import copied

Cell = tuple[int, int]
_WORD: Final = 0xFFFFFFFF
_SEARCH: Final = 64  # blocks looked at for the counter's start


class Count(NamedTuple):
    """The loop continues after an iteration while ``compare(x, bound)``, where x is ``counter + offset`` with the
    counter's value from the start of that round; the counter is then ``step`` further. ``on``: the predicate of the
    jump back. ``signed``: how x and ``bound`` are compared."""

    counter: Reg
    step: int
    offset: int
    compare: str
    signed: bool
    bound: Operand
    on: Reg

    @property
    def before(self) -> int:
        """What to add to the counter at the start of an iteration for the value of x in the previous one."""
        return (self.offset - self.step) & _WORD


def signed_word(value: int) -> int:
    """A 32-bit pattern as a signed number."""
    return (value & _WORD) - ((value & 1 << 31) << 1)


def _test_of(insts: list[Inst], on: Reg, writers: dict[Cell, list[int]]) -> tuple[int, Inst] | None:
    """The place of the comparison of words that makes the predicate ``on`` last, and the comparison."""
    made = writers.get((on.num, 0), [])
    if not made:
        return None
    at = made[-1]
    test = insts[at]
    if (
        test.op != "ISETP"
        or is_guarded(test)
        or test.dsts != (on._replace(flags=0), PT)
        or len(test.mods) not in (2, 3)
        or test.mods[-1] != "AND"
    ):
        return None
    if test.mods[1:-1] not in ((), ("U32",)) or test.mods[0] not in OPPOSITE or any(o != PT for o in test.srcs[2:]):
        return None
    return at, test


def count_of(block: Block) -> Count | None:
    """How a block that jumps to itself counts; None where that is not seen."""
    insts = block.insts
    last = insts[-1] if insts else None
    if last is None or plain_jump(last) != block.id or not is_guarded(last):
        return None
    on = last.guard
    if on is None or on.file != "P":
        return None
    writers: dict[Cell, list[int]] = {}
    for n, i in enumerate(insts):
        for r in written_regs(i):
            for c in range(r.sub, r.sub + r.width):
                writers.setdefault((r.num, c), []).append(n)
    found_test = _test_of(insts, on, writers)
    if found_test is None:
        return None
    at, test = found_test

    def linear(o: Operand, place: int) -> tuple[Cell, int] | None:
        """(cell, constant): the operand before instruction ``place`` is what the cell held when the iteration began,
        plus the constant."""
        total = 0
        for _ in range(len(insts) + 1):
            if type(o) is not Reg or o.num == ZERO or o.file != "R" or o.width != 1 or o.flags or o.mod:
                return None
            cell = (o.num, o.sub)
            found = [n for n in writers.get(cell, ()) if n < place]
            if not found:
                return cell, total
            place = found[-1]
            i = insts[place]
            if is_guarded(i):
                return None
            s = copied(i)
            if s is not None and type(i.dsts[0]) is Reg and i.dsts[0].width == 1:
                o = s
                continue
            if not plain_iadd3(i):
                return None
            regs, consts = split_terms(i.srcs[:3])
            if len(regs) != 1:
                return None
            total += sum(consts)
            o = regs[0]
        return None

    def fixed(o: Operand) -> bool:
        if type(o) is Reg:
            return o.num == ZERO or ((o.num, o.sub) not in writers and o.file == "R" and not o.flags and not o.mod)
        return value_of(o) is not None or (type(o) is Const and o.ireg is None and not o.flags)

    for n in (0, 1):
        tested, bound = test.srcs[n], test.srcs[1 - n]
        if not fixed(bound) or type(tested) is not Reg:
            continue
        start = linear(tested, at)
        if start is None:
            continue
        cell, offset = start
        end = linear(tested._replace(num=cell[0], sub=cell[1]), len(insts))
        if end is None or end[0] != cell or end[1] & _WORD == 0:
            continue
        step = signed_word(end[1])
        compare = test.mods[0] if n == 0 else TURNED[test.mods[0]]
        if on.flags & INV:
            compare = OPPOSITE[compare]
        return Count(
            tested._replace(num=cell[0], sub=cell[1]), step, offset & _WORD, compare, "U32" not in test.mods, bound, on
        )
    return None


def start_of(f: Function, cfg: Cfg, loop: int, counter: Reg) -> int | None:
    """The constant that a counter holds whenever control comes into the loop of the one block at ``loop``; None where
    it is not one. Looks backwards for all definitions that reach the loop from outside."""
    found: int | None = None
    seen = {loop}
    work = [p for p in cfg.preds[loop] if p != loop]
    cell = (counter.num, counter.sub)
    while work:
        pos = work.pop()
        if pos == loop or len(seen) > _SEARCH:
            return None  # another run of the loop may leave it
        if pos in seen:
            continue
        seen.add(pos)
        value = None
        for i in reversed(f.blocks[pos].insts):
            if any(r.num == cell[0] and r.sub <= cell[1] < r.sub + r.width for r in written_regs(i)):
                s = copied(i)
                d = i.dsts[0] if i.dsts else None
                value = value_of(s) if s is not None and type(d) is Reg and d.width == 1 else None
                if value is None or (type(s) is Imm and s.sym):
                    return None
                break
        if value is None:
            if not cfg.preds[pos]:
                return None
            work += cfg.preds[pos]
            continue
        if found not in (None, value):
            return None
        found = value
    return found


def trip_count(count: Count, start: int) -> int | None:
    """The trip count if the counter starts at ``start``; None if the bound is no constant, the
    counter wraps round or the loop has no end."""
    bound = value_of(count.bound)
    if bound is None:
        return None
    step = count.step
    x = (start + count.before) & _WORD
    if count.compare == "NE":
        away = (bound - x if step > 0 else x - bound) & _WORD or 1 << 32
        return away // abs(step) if away % abs(step) == 0 else None
    if count.compare == "EQ":
        return 1 if (x + step) & _WORD != bound else None
    low, high = (-(1 << 31), (1 << 31) - 1) if count.signed else (0, _WORD)
    n = signed_word(bound) if count.signed else bound
    x = signed_word(x) if count.signed else x
    if step < 0:
        step, x, n, low, high = -step, -x, -n, -high, -low
        if count.compare not in ("GT", "GE"):
            return None
        strict = count.compare == "GT"
    else:
        if count.compare not in ("LT", "LE"):
            return None
        strict = count.compare == "LT"
    made = max(1, -((x - n) // step) if strict else (n - x) // step + 1)
    return made if low <= x and x + made * step <= high else None


class _Form(NamedTuple):
    """A register (pair) is ``base`` + ``total`` while the words of the base have these versions."""

    base: Reg
    total: int
    low: int
    high: int


def _plain(o: Operand) -> bool:
    return type(o) is Reg and o.num != ZERO and o.file == "R" and o.width == 1 and not o.flags and not o.mod


class _Carry(NamedTuple):
    """The lower half of a 64-bit sum with a constant, by the predicate that takes its carry. ``form``: what it adds to;
    ``made``, ``upper``: versions of the predicate and of the upper word."""

    low: Inst
    form: _Form
    constant: int
    made: int
    upper: int


class _Steps:
    """The work of :func:`fold_steps`. ``words``, ``pairs``: cell -> what the register (pair) that begins there is a sum
    of. Versions are counted by web: a value is read only as long as no other of its web is made."""

    def __init__(self, webs: Webs) -> None:
        self.of = webs.of
        self.versions: dict[Cell, int] = {}
        self.words: dict[Cell, _Form] = {}
        self.pairs: dict[Cell, _Form] = {}
        self.carries: dict[int, _Carry] = {}
        self.changed = 0

    def run(self, insts: list[Inst]) -> int:
        """Change the instructions of a block; returns how many changed."""
        for i in insts:
            fresh: tuple[dict[Cell, _Form], Cell, _Form] | None = None
            d = i.dsts[0] if i.dsts else None
            if type(d) is Reg and d.num != ZERO and not is_guarded(i):
                if i.op == "IADD3" and _plain(i.srcs[0]) and i.srcs[2] == RZ:
                    fresh = self._three(i, d)
                elif i.op == "IADD" and i.mods == ("64",) and i.dsts[1] == PT and i.srcs[2] == NOT_PT:
                    fresh = self._pair(i, d)
            for r in written_regs(i):
                for n in range(r.sub, r.sub + r.width):
                    web = self.of(r.num), n
                    self.versions[web] = self.versions.get(web, 0) + 1
                    self.words.pop((r.num, n), None)
                    self.pairs.pop((r.num, n), None)
                    self.pairs.pop((r.num, n - 1), None)
            if fresh is not None:
                fresh[0][fresh[1]] = fresh[2]
        return self.changed

    def _version(self, num: int, sub: int) -> int:
        """How often the word of a register's web has been written."""
        return self.versions.get((self.of(num), sub), 0)

    def _form(self, known: dict[Cell, _Form], o: Reg) -> _Form:
        """What the operand is a sum of, itself if nothing else."""
        got = known.get((o.num, o.sub))
        if got is not None:
            b = got.base
            if self._version(b.num, b.sub) == got.low and (b.width == 1 or self._version(b.num, b.sub + 1) == got.high):
                return got
        return _Form(o, 0, self._version(o.num, o.sub), self._version(o.num, o.sub + 1))

    def _three(self, i: Inst, d: Reg) -> tuple[dict[Cell, _Form], Cell, _Form] | None:
        """An IADD3 of a register and a constant: a sum of words, or half of a sum of pairs."""
        a, step = i.srcs[0], value_of(i.srcs[1])
        if step is None or type(a) is not Reg:
            return None
        if plain_iadd3(i):
            f = self._form(self.words, a)
            total = (f.total + step) & _WORD
            if f.base != a and total:
                i.srcs = (f.base, Imm("I", total), *i.srcs[2:])
                self.changed += 1
            return self.words, (d.num, d.sub), f._replace(total=total)
        c = i.dsts[1]
        if (
            not i.mods
            and type(c) is Reg
            and c.file == "P"
            and c.num != ZERO
            and i.dsts[2] == PT
            and a.sub % 2 == 0 == d.sub % 2
        ):
            pair = self._form(self.pairs, a._replace(width=2))
            self.carries[c.num] = _Carry(i, pair, step, self._version(c.num, 0) + 1, self._version(a.num, a.sub + 1))
            return None
        return self._upper(i, d, a, step) if i.mods == ("X",) else None

    def _upper(self, i: Inst, d: Reg, a: Reg, step: int) -> tuple[dict[Cell, _Form], Cell, _Form] | None:
        """The upper half of a sum of pairs."""
        c = i.srcs[3]
        if type(c) is not Reg or c.num not in self.carries or c.flags or i.dsts[1:] != (PT, PT):
            return None
        low, f, first, made, upper = self.carries[c.num]
        e, b = low.dsts[0], low.srcs[0]
        if type(e) is not Reg or type(b) is not Reg or (e.num, e.sub + 1) != (d.num, d.sub):
            return None
        same = made == self._version(c.num, 0)
        untouched = f.high == self._version(f.base.num, f.base.sub + 1) and upper == self._version(a.num, a.sub)
        # the upper word that is read must be the one that belongs to the lower word read before
        if not same or not untouched or (b.num, b.sub + 1) != (a.num, a.sub):
            return None
        total = (f.total + (step << 32 | first)) & (1 << 64) - 1
        if f.base.num != a.num or f.base.sub != a.sub - 1:
            low.srcs = (f.base._replace(width=1), Imm("I", total & _WORD), *low.srcs[2:])
            i.srcs = (f.base._replace(width=1, sub=f.base.sub + 1), Imm("I", total >> 32), *i.srcs[2:])
            self.changed += 1
        return self.pairs, (d.num, d.sub - 1), f._replace(total=total)

    def _pair(self, i: Inst, d: Reg) -> tuple[dict[Cell, _Form], Cell, _Form] | None:
        """An IADD.64 of a pair and a constant."""
        a, step = i.srcs[0], value_of(i.srcs[1])
        if step is None or type(a) is not Reg or a.num == ZERO or a.file != "R" or a.flags:
            return None
        f = self._form(self.pairs, a)
        total = f.total + signed_word(step) & (1 << 64) - 1
        # the field is extended by its sign (measured)
        if f.base != a and (total + (1 << 31)) & (1 << 64) - 1 < 1 << 32:
            i.srcs = (f.base, Imm("I", total & _WORD), *i.srcs[2:])
            self.changed += 1
        return self.pairs, (d.num, d.sub), f._replace(total=total)


def fold_steps(block: Block, webs: Webs) -> int:
    """Sums of sums with constants, as unrolled counters and addresses are, become sums of what the first began with; 32
    and 64 bits. Returns how many changed."""
    return _Steps(webs).run(block.insts)
