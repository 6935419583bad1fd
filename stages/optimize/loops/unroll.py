"""Unrolling: several iterations of an innermost loop in one block, so that their loads are in flight together and the
test executes once.

Pre: a function at level `ori`. Post: the same effects in the same order, for any iteration count (also if the counter
wraps). Candidates are loops of one block with a counter (:mod:`stages.optimize.loops.induction`), without `.pragma
"nounroll"`. Copies name the same registers; SSA construction splits them, the value passes fold the counters' steps
into addresses, list scheduling brings the loads together.

* Iteration count known and small enough for the size of the body: all iterations in a row, no branch (limits measured
on
  ptxas).
* Iteration count known: the remainder in a row, then a loop of as many copies as pay off.
* Iteration count known only when the loop is reached: if at least four iterations are left, a loop of four copies; then
  two copies if two are left; then the loop as it was, which ends after one iteration, or executes all iterations if the
  numbers are so unusual that nothing can be said in advance. ptxas does the same, for bodies of the same length.

If threads of a warp have different iteration counts, they reconverge after the four and after the two copies.
"""

from __future__ import annotations

from itertools import pairwise

from ir_format import isa
from ir_format.features import has
from ir_format.flow import Cfg, Loop, build_cfg
from ir_format.isa import facts
from ir_format.model import (
    NEG,
    NOT_PT,
    PSEUDO,
    PT,
    RZ,
    RZ2,
    AttrValue,
    Block,
    Function,
    Imm,
    Inst,
    Operand,
    Reg,
    label,
)
from ir_format.rename import duplicate
from ir_format.typed import Final
from stages.optimize.analyses import FLOW, NOTHING, Analyses
from stages.optimize.control.simplify_cfg import merge_blocks
from stages.optimize.evaluate.operands import value_of
from stages.optimize.loops.induction import Count, count_of, fold_steps, signed_word, start_of, trip_count
from stages.optimize.loops.licm import hoist_invariants
from stages.optimize.loops.natural import find_loops, has_loops
from stages.optimize.memory.redundancy import remove_redundant_loads
from stages.optimize.scalar.dce import remove_dead_code
from stages.optimize.scalar.fold import TURNED, inverted
from stages.plumbing.runner import Context

#: (instructions of the body except the counter and the test, most iterations that are unrolled completely): measured on
#: ptxas, in between by straight lines of their product.
_WHOLE: Final = (
    (1, 4000),
    (2, 2730),
    (3, 1492),
    (4, 919),
    (5, 642),
    (6, 472),
    (8, 285),
    (10, 192),
    (12, 138),
    (16, 76),
    (20, 53),
    (24, 38),
    (30, 25),
    (40, 13),
    (50, 9),
    (60, 7),
    (80, 4),
    (100, 3),
    (140, 2),
)
# instructions of a completely unrolled loop (ptxas: up to 5,460; beyond this the time to compile is not worth it)
_MOST: Final = 1200
_PART: Final = 350  # instructions of a loop unrolled in part, remainder included, and the longest body (measured)
_PART_BODY: Final = 72
_COPIES: Final = 16  # copies of a loop unrolled in part (ptxas: up to 171)
#: Most loads in flight in all copies: for more there are not enough registers. A loop with this many loads in an
#: iteration is not unrolled.
_UNDER_WAY: Final = 16
#: Longest body of a loop whose trip count is not known, in steps (:func:`steps`; measured): without and with loads.
_OPEN_BODY: Final = (18, 47)
_LATE: Final = facts.fetching()
_FREE: Final = ("COPY", "UNDEF", "PCOPY")
_AT_ONCE: Final = 4
_ITERATIONS: Final = 3  # of the pass: inner loops that disappear make the loop around them a candidate
#: Bodies with these are not unrolled: protocols, calls, fences (measured for MEMBAR), instructions that only
#: some threads of a warp may execute.
_NEVER: Final = facts.having("noduplicate")
#: Converged threads execute these, so threads must not leave the loop one by one.
_CONVERGENT: Final = facts.having("convergent")
#: A test and the counter's direction: the loop ends before the counter wraps round.
_TOWARDS: Final = frozenset((("LT", True), ("LE", True), ("GT", False), ("GE", False), ("NE", True), ("NE", False)))
_OR: Final = 0xFC  # a | b


def unroll_loops(f: Function, a: Analyses) -> None:
    """The pass."""
    given = f.attrs.get("nounroll", ())
    for _ in range(_ITERATIONS):
        if not has_loops(f) or not _Unroller(f, a.ctx, given).run():
            break
        a.keep(NOTHING)
        _clean(f, a)


def _clean(f: Function, a: Analyses) -> None:
    """Part the copies' registers, fold what is known now."""
    from stages.optimize.scalar.rules import combine

    merge_blocks(f)
    a.enter_ssa()
    assert a.webs is not None
    remove_dead_code(f, a)  # the tests between the iterations
    for b in f.blocks:
        if fold_steps(b, a.webs):
            a.ctx.count("blocks with steps folded")
    combine(f, a)
    if remove_redundant_loads(f, a):
        a.keep(FLOW)
        combine(f, a)
    remove_dead_code(f, a)
    a.leave_ssa()
    hoist_invariants(f, a)  # out of what was the loop around
    a.keep(NOTHING)


def limit_whole(body: int) -> int:
    """Most iterations of a loop that are unrolled completely, by the length of its body."""
    if body < 1:
        return _WHOLE[0][1]
    for (k, n), (k2, n2) in pairwise(_WHOLE):
        if k <= body <= k2:
            made = n * k + (n2 * k2 - n * k) * (body - k) // (k2 - k)
            return min(made // body, _MOST // body)
    return 1


def factor(body: int, made: int) -> int:
    """Copies of a loop of ``made`` iterations: as many as, with the remainder, fit the size limit; 1 if that is not
    worth it."""
    if body > _PART_BODY:
        return 1
    return max((n for n in range(1, min(_COPIES, made) + 1) if (n + made % n) * body <= _PART), default=1)


def steps(block: Block) -> int:
    """Instructions as ptxas counts them for loops whose trip count is not known (measured): before two become one, and
    a 64-bit sum once."""
    total = 0
    for i in block.insts:
        if i.op in _FREE or "X" in i.mods:
            continue
        total += 1
        if (
            i.op == "LEA"
            or i.op in ("IADD3", "LOP3")
            and sum(type(o) is not Imm and o != RZ for o in i.srcs[:3]) == 3
            or i.op == "IMAD"
            and "WIDE" in i.mods
            and i.srcs[2] not in (RZ, RZ2)
        ):
            total += 1
    return total


class _Unroller:
    """One walk over the loops of a function."""

    def __init__(self, f: Function, ctx: Context, given: AttrValue = ()) -> None:
        """``given``: the blocks that the program itself marked."""
        self.f = f
        self.ctx = ctx
        self.given = given
        self.sm = isa.target(ctx.header.target).sm
        self.target = isa.target(ctx.header.target)
        marked = f.attrs.get("nounroll", ())
        self.marked: set[int] = {x for x in marked if type(x) is int} if isinstance(marked, tuple) else set()
        self.next_id = max((b.id for b in f.blocks), default=0) + 1
        self.line = self.loc = 0

    def run(self) -> bool:
        """Whether anything was unrolled."""
        f = self.f
        cfg = build_cfg(f)
        new: dict[int, list[Block]] = {}
        loops = find_loops(f, cfg)
        for loop in loops:
            if len(loop.body) != 1 or f.blocks[loop.header].id in self.marked:
                if self.ctx.remarks is not None:
                    self._passed_by(loop, loops)
                continue
            made = self._loop(loop.header, cfg)
            if made is not None:
                new[loop.header] = made
        if not new:
            return False
        f.blocks = [x for n, b in enumerate(f.blocks) for x in new.get(n, [b])]
        f.attrs["nounroll"] = tuple(sorted(self.marked))
        return True

    # ------------------------------------------------------------------ what is said of loops

    def _passed_by(self, loop: Loop, loops: list[Loop]) -> None:
        """Why the loop was not looked at."""
        block = self.f.blocks[loop.header]
        if isinstance(self.given, tuple) and block.id in self.given:
            self._missed(block, "NoUnrollPragma", 'it is marked .pragma "nounroll"')
        elif len(loop.body) != 1 and any(o.header in loop.body and o is not loop for o in loops):
            self._missed(block, "NotInnermost", "it holds another loop")
        elif len(loop.body) != 1:
            self._missed(block, "SeveralBlocks", f"its body has {len(loop.body)} blocks: branches stay in it")

    def _missed(self, block: Block, name: str, why: str, count: Count | None = None) -> None:
        if self.ctx.remarks is not None:
            self._say("missed", name, block, f"loop not unrolled because {why}", count)

    def _say(self, kind: str, name: str, block: Block, message: str, count: Count | None) -> None:
        value = self.f.vregs[count.counter.num].name if count is not None else ""
        line = block.insts[-1].line if block.insts else 0
        self.ctx.remark(kind, "unroll", name, self.f.name, line, message, value)

    # ------------------------------------------------------------------ one loop

    def _loop(self, pos: int, cfg: Cfg) -> list[Block] | None:
        """What takes the place of the loop of one block at ``pos``."""
        f = self.f
        block = f.blocks[pos]
        count = count_of(block)
        if count is None:
            self._missed(block, "NoCounter", "no register counts its iterations by a constant step up to one test")
            return None
        barred = self._barred(block, count)
        if barred:
            self._missed(block, "NotDuplicable", f"{barred} may not be copied", count)
            return None
        body = self._size(block, count)
        self.line, self.loc = block.insts[-1].line, block.insts[-1].loc
        start = start_of(f, cfg, pos, count.counter)
        made = trip_count(count, start) if start is not None else None
        if made is not None:
            return self._known(block, body, made, count)
        long = steps(block) - 3  # test, branch and counter apart
        late = sum(i.op in _LATE for i in block.insts)
        most = _OPEN_BODY[0 < late <= _UNDER_WAY // _AT_ONCE]
        if long <= most:
            return self._open(pos, block, count, start)
        why = f"its trip count is known only at run time, and a body of {long} steps is longer than {most}"
        self._missed(block, "UnknownRoundsLongBody", why, count)
        return None

    def _barred(self, block: Block, count: Count) -> str:
        """The instruction that may not be copied; '' where all may."""
        uniform = bool(self.f.vregs[count.on.num].uniform)
        for i in block.insts[:-1]:
            if i.op in _NEVER or (i.attrs is not None and "frame" in i.attrs):
                return i.op
            if not uniform and (i.op in _CONVERGENT or (i.attrs is not None and "warp" in i.attrs)):
                return f"{i.op}, to which all threads of a warp come together,"
            if any(type(o) is Reg and o.file == "B" for o in (*i.dsts, *i.srcs)):
                return i.op
        return ""

    def _size(self, block: Block, count: Count) -> int:
        """Instructions of an iteration except test, branch and counter."""
        free = sum(i.op in _FREE for i in block.insts)
        return max(1, len(block.insts) - free - 3)

    def _copies(self, block: Block, count: int) -> list[Inst]:
        """The instructions of this many iterations, without branches."""
        out: list[Inst] = []
        for _ in range(count):
            out += map(duplicate, block.insts[:-1])
        return out

    def _known(self, block: Block, body: int, made: int, count: Count) -> list[Block] | None:
        late = sum(i.op in _LATE for i in block.insts)
        if made == 1 or (made <= limit_whole(body) and late < _UNDER_WAY):
            if not self.ctx.allow():
                return None
            self.ctx.count("loops unrolled completely")
            if self.ctx.remarks is not None:
                message = f"completely unrolled loop with {made} iterations of {body} instructions"
                self._say("passed", "FullyUnrolled", block, message, count)
            return [Block(block.id, self._copies(block, made), block.depth)]
        copies = min(factor(body, made), max(1, _UNDER_WAY // max(1, late)))
        if copies < 2:
            why = f"{made} iterations of {body} instructions are too many, and"
            if body > _PART_BODY:
                self._missed(block, "LongBody", f"{why} a body longer than {_PART_BODY} is not copied", count)
            else:
                self._missed(block, "ManyLoads", f"{why} {late} loads of an iteration fill the registers", count)
        if copies < 2 or not self.ctx.allow():
            return None
        self.ctx.count("loops unrolled in part")
        if self.ctx.remarks is not None:
            message = f"unrolled loop by a factor of {copies}, {made} iterations of {body} instructions"
            self._say("passed", "PartialUnrolled", block, message, count)
        rest = made % copies
        main = self._new(self._copies(block, copies), block.depth)
        last = block.insts[-1]
        main.insts.append(
            Inst("BRA", last.mods, last.dsts, (*last.srcs[:-1], label(main.id)), last.guard, last.line, last.loc)
        )
        self.marked.add(main.id)
        # the block that is jumped to keeps its number
        return [Block(block.id, self._copies(block, rest), max(0, block.depth - 1)), main]

    # ------------------------------------------------------------------ iterations that are counted when the loop is
    # reached

    def _open(self, pos: int, block: Block, count: Count, start: int | None) -> list[Block] | None:
        """Four copies while four iterations are left, two, one."""
        if (count.compare, count.step > 0) not in _TOWARDS or abs(count.step) >= 1 << 24:
            why = f"its test ({count.compare}, step {count.step}) does not tell in advance how many iterations are left"
            self._missed(block, "UnknownRounds", why, count)
            return None
        if not self.ctx.allow():
            return None
        self.ctx.count("loops unrolled by four")
        if self.ctx.remarks is not None:
            self._say("passed", "RuntimeUnrolled", block, "unrolled loop by a factor of 4 with a run-time test", count)
        f = self.f
        uniform = f.vregs[count.on.num].uniform
        inner = max(0, block.depth - 1)
        front, go, main, middle, pair, behind, tail = (self._new([], inner + (n in (2, 6))) for n in range(7))
        front.id = block.id  # what others jump to
        odd = count.compare == "NE"
        bound = count.bound if value_of(count.bound) is not None else self._held(front, count.bound)
        # before the loop: are the four copies for it?
        enter, more, again, done, never = (
            f.new_vreg("P", uniform=uniform) for _ in range(5)
        )  # never: no round is made yet
        x = self._plus(count.counter, count.before, front)
        bar = self._meet(front, middle) if not uniform else None
        if odd:
            self._left(front, enter, count, bound, x, _AT_ONCE - 1, True)
        else:
            front.insts.append(self._inst("COPY", (), (never,), (PT,)))
            self._ahead(front, enter, count, bound, x, start)
            go.insts.append(self._inst("COPY", (), (never,), (NOT_PT,)))
            limit = self._limit(go, bound, (_AT_ONCE - 1) * count.step)
        self._branch(front, inverted(enter), middle.id)
        # four iterations, and again
        main.insts = self._copies(block, _AT_ONCE)
        x = self._plus(count.counter, count.before, main)
        if odd:
            self._left(main, again, count, bound, x, _AT_ONCE - 1, False)
        else:
            self._test(main, again, count, x, limit, PT)
        self._branch(main, again, main.id)
        # two iterations
        if bar is not None:
            middle.insts.append(self._inst("BSYNC", self._kind(), (), (bar,)))
        x = self._plus(count.counter, count.before, middle)
        bar = self._meet(middle, behind) if not uniform else None
        if odd:
            self._left(middle, more, count, bound, x, 1, False)
        else:
            self._test(
                middle, more, count, x, self._limit(middle, bound, count.step), self._room(middle, count, bound, 1)
            )
        self._branch(middle, inverted(more), behind.id)
        pair.insts = self._copies(block, 2)
        if not odd:
            pair.insts.append(self._inst("COPY", (), (never,), (NOT_PT,)))
        # the last
        if bar is not None:
            behind.insts.append(self._inst("BSYNC", self._kind(), (), (bar,)))
        x = self._plus(count.counter, count.before, behind)
        self._test(behind, done, count, x, bound, PT)
        if not odd:
            either = f.new_vreg("P", uniform=uniform)
            behind.insts.append(
                self._inst("PLOP3", ("LUT",), (either, PT), (done, never, PT, Imm("I", _OR), Imm("I", 0)))
            )
            done = either
        self._branch(behind, inverted(done), f.blocks[pos + 1].id)
        tail.insts = self._copies(block, 1)
        if not _exact(count, start):
            self._branch(tail, count.on, tail.id)
        self.marked |= {main.id, tail.id}
        return [front, go, main, middle, pair, behind, tail]

    def _new(self, insts: list[Inst], depth: int) -> Block:
        self.next_id += 1
        return Block(self.next_id - 1, insts, depth)

    def _inst(self, op: str, mods: tuple[str, ...], dsts: tuple[Operand, ...], srcs: tuple[Operand, ...]) -> Inst:
        if op not in PSEUDO:
            dsts, srcs = self.target.complete(op, mods, dsts, srcs)
        return Inst(op, mods, dsts, srcs, None, self.line, self.loc)

    def _branch(self, block: Block, on: Reg, to: int) -> None:
        block.insts.append(Inst("BRA", (), (), (PT, label(to)), on, self.line, self.loc))

    def _kind(self) -> tuple[str, ...]:
        return ("RECONVERGENT",) if has(self.sm, "bssy-kinds") else ()

    def _meet(self, block: Block, at: Block) -> Reg:
        """Threads that diverge after ``block`` reconverge at the start of ``at``."""
        bar = self.f.new_vreg("B")
        if not has(self.sm, "bssy-clears"):  # as lower does: old participants may be left in it
            block.insts += [self._inst("UNDEF", (), (bar,), ()), self._inst("BMOV", ("32", "CLEAR"), (RZ,), (bar,))]
        block.insts.append(self._inst("BSSY", self._kind(), (bar,), (label(at.id),)))
        return bar

    def _plus(self, r: Reg, by: int, block: Block) -> Reg:
        """``r`` + a constant."""
        if by == 0:
            return r
        d = self.f.new_vreg("R", uniform=self.f.vregs[r.num].uniform)
        block.insts.append(self._inst("IADD3", (), (d,), (r, Imm("I", by & 0xFFFFFFFF), RZ)))
        return d

    def _held(self, block: Block, o: Operand) -> Reg:
        """An operand in a register."""
        if type(o) is Reg:
            return o
        d = self.f.new_vreg("R", uniform=1)
        block.insts.append(self._inst("COPY", (), (d,), (o,)))
        return d

    def _limit(self, block: Block, bound: Operand, away: int) -> Operand:
        """The bound less what a few iterations add, modulo 2**32."""
        known = value_of(bound)
        if known is None:
            assert type(bound) is Reg
            return self._plus(bound, -away, block)
        return Imm("I", (known - away) & 0xFFFFFFFF)

    def _room(self, block: Block, count: Count, bound: Operand, ahead: int) -> Reg:
        """A predicate: :meth:`_limit` this many iterations ahead does not wrap."""
        away = ahead * count.step
        up = away > 0
        least, greatest = (-(1 << 31), (1 << 31) - 1) if count.signed else (0, 0xFFFFFFFF)
        edge = away + (least if up else greatest)
        known = value_of(bound)
        if known is not None:
            n = signed_word(known) if count.signed else known
            return PT if (n >= edge if up else n <= edge) else NOT_PT
        d = self.f.new_vreg("P", uniform=self.f.vregs[count.on.num].uniform)
        mods = ("GE" if up else "LE", *(() if count.signed else ("U32",)), "AND")
        block.insts.append(self._inst("ISETP", mods, (d, PT), (bound, Imm("I", edge & 0xFFFFFFFF), PT)))
        return d

    def _ahead(self, block: Block, d: Reg, count: Count, bound: Operand, x: Reg, start: int | None) -> None:
        """``d`` = the test is true for the next iterations too, x being of the iteration before the first."""
        ahead = _AT_ONCE - 1
        if start is not None and value_of(bound) is None:
            at = (start + count.before) & 0xFFFFFFFF
            last = (signed_word(at) if count.signed else at) + ahead * count.step
            least, greatest = (-(1 << 31), (1 << 31) - 1) if count.signed else (0, 0xFFFFFFFF)
            if least <= last <= greatest:
                self._test(block, d, count, bound, Imm("I", last & 0xFFFFFFFF), PT, turned=True)
                return
        self._test(
            block, d, count, x, self._limit(block, bound, ahead * count.step), self._room(block, count, bound, ahead)
        )

    def _test(
        self, block: Block, d: Reg, count: Count, x: Operand, limit: Operand, sure: Reg, turned: bool = False
    ) -> None:
        """``d`` = x compares with the limit (``turned``: that with x) as the counter with the bound, and ``sure``."""
        mods = (TURNED[count.compare] if turned else count.compare, *(() if count.signed else ("U32",)), "AND")
        block.insts.append(self._inst("ISETP", mods, (d, PT), (x, limit, sure)))

    def _left(self, block: Block, d: Reg, count: Count, bound: Operand, x: Reg, ahead: int, first: bool) -> None:
        """``d`` = x, from the previous iteration, does not reach the bound within the next ``ahead`` ones. What is left
        is 0 after the last iteration, and a complete wrap of the counter before the first: then it is reduced by
        one."""
        less = 1 if first else 0
        known = value_of(bound)
        far = ahead * abs(count.step)
        if known is not None:
            terms: tuple[Operand, ...] = (
                (x._replace(flags=NEG), Imm("I", (known - less) & 0xFFFFFFFF))
                if count.step > 0
                else (x, Imm("I", (-known - less) & 0xFFFFFFFF))
            )
            terms = (*terms, RZ)
        else:
            assert type(bound) is Reg
            up, down = (bound, x) if count.step > 0 else (x, bound)
            terms = (up, Imm("I", -less & 0xFFFFFFFF), down._replace(flags=NEG))
        left = self.f.new_vreg("R", uniform=self.f.vregs[count.on.num].uniform)
        block.insts.append(self._inst("IADD3", (), (left,), terms))
        block.insts.append(
            self._inst("ISETP", ("GE" if first else "GT", "U32", "AND"), (d, PT), (left, Imm("I", far), PT))
        )


def _exact(count: Count, start: int | None) -> bool:
    """Whether the loop surely ends after the single iteration: the counter does not wrap."""
    if count.compare == "NE":
        return abs(count.step) == 1
    if abs(count.step) != 1 or start is None or count.compare not in ("LT", "GT"):
        return False
    x = (start + count.before) & 0xFFFFFFFF
    if count.signed:
        return x != (0x7FFFFFFF if count.step > 0 else 0x80000000)
    return x != (0xFFFFFFFF if count.step > 0 else 0)
