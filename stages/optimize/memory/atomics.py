"""Atomic operations: unread results, and aggregation of a whole warp's sums into one word.

Pre: a function at level `ori`. Post: the same contents of memory and the same results, as far as the order among
threads is open. As ptxas does (measured on sm_75 to sm_120):

* an unread result is not requested: RED instead of ATOMG, RZ as the destination of the others; an increment in
  shared memory is ATOMS.POPC.INC.32;
* one value added by all threads to one place: the threads that are here together count themselves, the last of them
  adds for all, and each one's result is what that one got plus what the threads before it add; without results,
  other operations on a place that is the same for the warp go through REDUX.

Only relaxed and releasing operations (attribute ``relaxed``, from lowering): after an acquiring one the result must
have come. Votes go to general registers, not to uniform ones as in ptxas's code: a divergent group of the warp could
write those.
"""

from __future__ import annotations

from ir_format import isa
from ir_format.features import has
from ir_format.flow import Cfg, build_cfg, read_regs, written_regs
from ir_format.isa import facts
from ir_format.model import INV, NOT_PT, PT, RZ, URZ, ZERO, Function, Imm, Inst, Label, Mem, Name, Operand, Reg
from ir_format.typed import Final
from stages.analysis.dependences import WALLS
from stages.optimize.analyses import Analyses
from stages.optimize.evaluate.operands import value_of
from stages.optimize.scalar.fold import inverted
from stages.optimize.values import Cell
from stages.plumbing.runner import Context

_ATOMICS: Final = facts.having("waits").intersection(facts.atomics())
_QUIET: Final = facts.atomics().keys() - _ATOMICS
_ONLY_WITH_RESULT: Final = frozenset(("EXCH", "CAS", "CAST"))  # RED has no such operation
_REDUX: Final = {
    ("ADD",): ("SUM",),
    ("MIN",): ("MIN",),
    ("MIN", "S32"): ("MIN", "S32"),
    ("MAX",): ("MAX",),
    ("MAX", "S32"): ("MAX", "S32"),
    ("AND",): (),
    ("OR",): ("OR",),
    ("XOR",): ("XOR",),
}
_HOW: Final = frozenset(("E", "STRONG", "CTA", "SM", "GPU", "SYS", "VC"))  # modifiers that do not say which operation


def gather_atomics(f: Function, a: Analyses) -> bool:
    """The pass; it leaves SSA form where there is something to do."""
    if not any(_plain(i) for b in f.blocks for i in b.insts):
        return False
    a.leave_ssa()
    _Gatherer(f, a.ctx).run()
    return True


def _plain(i: Inst) -> bool:
    return (i.op in _ATOMICS or i.op in _QUIET) and i.attrs is not None and "relaxed" in i.attrs


class _Gatherer:
    """One function."""

    def __init__(self, f: Function, ctx: Context) -> None:
        self.f = f
        self.ctx = ctx
        self.target = isa.target(ctx.header.target)
        self.sm = self.target.sm
        self.read: set[Cell] = set()
        self.elections: dict[Reg | None, tuple[Reg, Reg, Reg]] = {}
        self.lone = False
        self.made: dict[int, Inst | None] = {}  # register -> its only writer
        for b in f.blocks:
            for i in b.insts:
                self.read.update((r.num, c) for r in read_regs(i) for c in range(r.sub, r.sub + r.width))
                for r in written_regs(i):
                    self.made[r.num] = None if r.num in self.made else i

    def run(self) -> None:
        """Walk the function."""
        cfg = build_cfg(self.f)
        for pos, b in enumerate(self.f.blocks):
            if not any(map(_plain, b.insts)):
                continue
            self.elections = {}
            self.lone = self._for_one_thread(cfg, pos)
            out: list[Inst] = []
            for i in b.insts:
                if _plain(i):
                    out += self._gathered(i)
                    continue
                if i.op in WALLS or i.op == "BAR" or (i.attrs and "warp" in i.attrs):
                    self.elections = {}  # more threads may be here from now on
                out.append(i)
            b.insts = out

    def _for_one_thread(self, cfg: Cfg, pos: int) -> bool:
        """Whether only one thread of a warp comes to the block: a branch before it compares the thread's number
        with a constant."""
        preds = cfg.preds[pos]
        if len(preds) != 1 or not self.f.blocks[preds[0]].insts:
            return False
        last = self.f.blocks[preds[0]].insts[-1]
        if last.op not in ("BRA", "EXIT") or last.guard is None or len(cfg.succs[preds[0]]) != 1 + (last.op == "BRA"):
            return False
        taken = any(type(o) is Label and cfg.index[o.block] == pos for o in last.srcs)
        return self._of_one_thread(last.guard if taken else inverted(last.guard))

    def _of_one_thread(self, p: Reg) -> bool:
        """Whether a predicate is that of a thread's number being a constant."""
        i = self.made.get(p.num)
        if (
            i is None
            or i.op != "ISETP"
            or i.guard is not None
            or i.mods[0] not in ("EQ", "NE")
            or (i.mods[0] == "EQ") == bool(p.flags & INV)
            or i.dsts[0] != p._replace(flags=0)
            or i.srcs[2] != PT
        ):
            return False
        x = i.srcs[0]
        if type(x) is not Reg or self._constant(i.srcs[1]) is None:
            return False
        made = self.made.get(x.num)
        while (
            made is not None and made.op in ("COPY", "MOV") and type(made.srcs[0]) is Reg and made.srcs[0].num != ZERO
        ):
            made = self.made.get(made.srcs[0].num)
        return (
            made is not None
            and made.op == "S2R"
            and type(made.srcs[0]) is Name
            and made.srcs[0].name in ("SR_TID.X", "SR_LANEID")
        )

    def _gathered(self, i: Inst) -> list[Inst]:
        d = i.dsts[-1] if i.op in _ATOMICS else None
        kind = tuple(m for m in i.mods if m not in _HOW)
        if (
            type(d) is Reg
            and d.num != ZERO
            and not any((d.num, c) in self.read for c in range(d.sub, d.sub + d.width))
            and self.ctx.allow()
        ):
            self._quiet(i, d, kind)
            if i.attrs is None:
                return [i]
        value = i.srcs[1]
        where = i.srcs[0]
        if self.lone or (i.guard is not None and self._of_one_thread(i.guard)):
            return [i]
        if (
            kind not in _REDUX
            or type(value) is not Reg
            or value.width != 1
            or type(where) is not Mem
            or not self._uniform(where.base)
            or not self._uniform(where.ubase)
        ):
            return [i]
        wanted = i.op in _ATOMICS and i.dsts[-1] != RZ._replace(width=i.dsts[-1].width)  # type: ignore[union-attr]
        if kind == ("ADD",) and self._uniform(value):
            return self._counted(i, value, where, wanted) if self.ctx.allow() else [i]
        if wanted or not has(self.sm, "redux") or i.guard is not None or not self.ctx.allow():
            return [i]
        return self._reduced(i, value, where, kind)

    def _quiet(self, i: Inst, d: Reg, kind: tuple[str, ...]) -> None:
        """Take the result away."""
        self.ctx.count("atomic results dropped")
        if i.op == "ATOMG" and kind[0] not in _ONLY_WITH_RESULT:
            i.op = "REDG" if has(self.sm, "red-named-redg") else "RED"
            i.dsts, i.srcs = self.target.complete(i.op, i.mods, (), i.srcs[:2])
            return
        i.dsts = (*i.dsts[:-1], RZ._replace(width=d.width))
        where = i.srcs[0]
        if (
            i.op == "ATOMS"
            and kind == ("ADD",)
            and has(self.sm, "atomic-count")
            and type(where) is Mem
            and not where.sym
            and self._constant(i.srcs[1]) == 1
        ):
            i.mods = ("POPC", "INC", "32")
            i.dsts, i.srcs = self.target.complete(
                "ATOMS", i.mods, (RZ,), (where._replace(base=where.base if where.base is not None else RZ, ubase=URZ),)
            )
            i.attrs = None
            if self.target.match(i) is None:
                raise AssertionError("ATOMS.POPC.INC.32 has this form from sm_80 on")

    def _constant(self, o: Operand) -> int | None:
        """The value of an operand, also of a register that only one move of a constant writes."""
        if type(o) is Reg and o.num != ZERO:
            i = self.made.get(o.num)
            if (
                i is None
                or i.op not in ("MOV", "COPY")
                or i.guard is not None
                or o.flags
                or self.f.vregs[o.num].width != 1
            ):
                return None
            o = i.srcs[0]
        return value_of(o)

    def _uniform(self, r: Operand | None) -> bool:
        if type(r) is not Reg or r.num == ZERO or r.file == "UR":
            return True
        return bool(self.f.vregs[r.num].uniform) or self._constant(r) is not None

    # ------------------------------------------------------------------ what is put in their place

    def _inst(
        self, like: Inst, op: str, dsts: tuple[Operand, ...], srcs: tuple[Operand, ...], guard: Reg | None = None
    ) -> Inst:
        name, *mods = op.split(".")
        dsts, srcs = self.target.complete(name, tuple(mods), dsts, srcs)
        return Inst(name, tuple(mods), dsts, srcs, guard, like.line, like.loc)

    def _elected(self, i: Inst) -> tuple[list[Inst], Reg, Reg, Reg]:
        """(instructions, mask of the threads that are here, the last of them, whether this is it); the same for all
        operations of a block between meetings."""
        known = self.elections.get(i.guard)
        if known is not None and (i.guard is None or self.made.get(i.guard.num) is not None):
            return [], *known
        mask, last, lane, one = self.f.new_vreg("R"), self.f.new_vreg("R"), self.f.new_vreg("R"), self.f.new_vreg("P")
        self.elections[i.guard] = mask, last, one
        out = [
            self._inst(i, "VOTE.ANY", (mask, PT), (i.guard if i.guard is not None else PT,)),
            self._inst(i, "FLO.U32", (last,), (mask,)),
            self._inst(i, "S2R", (lane,), (Name("N", "SR_LANEID"),)),
            self._inst(i, "ISETP.EQ.U32.AND", (one, PT), (lane, last, PT)),
        ]
        return out, mask, last, one

    def _times(self, i: Inst, count: Reg, value: Reg, plus: Reg, d: Reg, guard: Reg | None = None) -> Inst:
        """d = count * value + plus."""
        if self._constant(value) == 1:
            return self._inst(i, "IADD3", (d, PT, PT), (count, plus, RZ, NOT_PT, NOT_PT), guard)
        return self._inst(i, "IMAD", (d,), (count, value, plus), guard)

    def _counted(self, i: Inst, value: Reg, where: Mem, wanted: bool) -> list[Inst]:
        """The same value from all threads: one of them adds it as often as there are threads."""
        out, mask, last, one = self._elected(i)
        count, total = self.f.new_vreg("R"), self.f.new_vreg("R")
        out += [self._inst(i, "POPC", (count,), (mask,)), self._times(i, count, value, RZ, total)]
        guard = i.guard
        d = i.dsts[-1] if wanted else RZ
        assert type(d) is Reg
        got = self.f.new_vreg("R") if wanted else RZ
        i.dsts = (*i.dsts[:-1], got) if i.op in _ATOMICS else ()
        i.srcs = (where, total, *i.srcs[2:])
        i.guard = one
        i.attrs = None
        if wanted:
            undef = Inst("UNDEF", (), (got,), (), None, i.line, i.loc)
            first, below, before, front = (self.f.new_vreg("R") for _ in range(4))
            out += [
                undef, i,
                self._inst(i, "SHFL.IDX", (PT, first), (got, last, Imm("I", 31))),
                self._inst(i, "S2R", (below,), (Name("N", "SR_LTMASK"),)),
                self._inst(i, "LOP3.LUT", (PT, before), (below, mask, RZ, Imm("I", 0xC0), NOT_PT)),
                self._inst(i, "POPC", (front,), (before,)),
                self._times(i, front, value, first, d, guard),
            ]  # fmt: skip
        else:
            out.append(i)
        self.ctx.count("atomics counted")
        return out

    def _reduced(self, i: Inst, value: Reg, where: Mem, kind: tuple[str, ...]) -> list[Inst]:
        """Different values, no results: the warp's values in one, which one thread brings to memory."""
        out, _, _, one = self._elected(i)
        both, total = self.f.new_vreg("UR"), self.f.new_vreg("R")
        out += [
            self._inst(i, ".".join(("REDUX", *_REDUX[kind])), (both,), (value,)),
            Inst("COPY", (), (total,), (both,), None, i.line, i.loc),
            i,
        ]
        i.srcs = (where, total, *i.srcs[2:])
        i.guard = one
        i.attrs = None
        self.ctx.count("atomics reduced")
        return out
