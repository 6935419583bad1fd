"""Loop-invariant code motion (LICM): a computation that gives the same value in every iteration of a loop moves before
the loop.

Pre: a function at level `ori`. Post: the same effects. Only registers that are values (:mod:`stages.optimize.values`)
move: their one definition dominates all their uses, and the preheader dominates that definition. Pure instructions
cannot fault, so they may execute in vain. A load moves only if every path through the loop executes it and nothing in
the loop may write what it reads (measured on ptxas: no load leaves a loop with stores to its space, read-only ones
always do; shared loads pass stores to global memory, not barriers).

A register held around a loop is not free: values move only while those live in the loop stay below a limit.
"""

from __future__ import annotations

from ir_format.flow import ENDS, Liveness, bit_indices, build_cfg, is_guarded, liveness, read_regs, written_regs
from ir_format.hazards import hazards
from ir_format.hazards.load import late_results
from ir_format.isa import facts
from ir_format.model import Const, Function, Inst, Reg
from ir_format.typed import Final
from stages.analysis.register_limits import register_limit
from stages.optimize.analyses import Analyses
from stages.optimize.late.pressure import Alive
from stages.optimize.loops.natural import LOADS, Stores, find_loops, has_loops, make_preheaders, preheader, put_last
from stages.optimize.values import Lane, Values, is_pure
from stages.plumbing.runner import Context

#: Live words in a loop up to which values move: constants, one-cycle work, results that come late (guessed;
#: stages/optimize/late/list_schedule.py says why 28).
_CONSTANT, _CHEAP, _DEAR = 20, 28, 40
_SPARE: Final = 8  # registers left below a limit that directives or options set
_PREDICATES: Final = 4
_CALLING: Final = 12  # the limit where the loop calls: few registers survive a call
_LATE: Final = late_results(16)
#: Pure instructions that stay: those that ask which threads are here, and moves between predicates and registers, which
#: only lengthen lives.
_STAY: Final = facts.having("convergent") | facts.of_class("p2r", "r2p") | {"UNDEF"}


def hoist_invariants(f: Function, a: Analyses) -> None:
    """The pass."""
    if has_loops(f):
        header = a.ctx.header
        limit = register_limit(a.unit, hazards(header.target).sm, header.options) - _SPARE
        _Hoister(f, a.ctx, limit).run()


class _Hoister:
    """The work on one function. Loops are numbered inner before outer; sets of loops are bitsets."""

    def __init__(self, f: Function, ctx: Context, limit: int) -> None:
        self.f = f
        self.ctx = ctx
        self.limit = limit
        self.pressure: dict[int, dict[str, int]] = {}  # loop -> most words of a file live in it
        self.live: Liveness | None = None
        self.peaks: dict[int, dict[str, int]] = {}  # the same by block
        self.stores: dict[int, Stores] = {}
        self.left: dict[Lane, int] = {}  # reads that have not moved
        self.preheaders: dict[int, int | None] = {}  # as `preheader` gives them

    def run(self) -> None:
        f = self.f
        cfg = build_cfg(f)
        self.found = found = find_loops(f, cfg)
        if not found:
            return
        self.inside = inside = [0] * len(f.blocks)
        for n, x in enumerate(found):
            for pos in x.body:
                inside[pos] |= 1 << n
        self.made = made = [0] * len(f.vregs)  # register -> loops that write it
        words = [0] * len(f.vregs)  # how many words of it are written anywhere
        for pos, b in enumerate(f.blocks):
            for i in b.insts:
                for r in written_regs(i):
                    made[r.num] |= inside[pos]
                    words[r.num] += r.width
        once = bytearray(n <= v.width for n, v in zip(words, f.vregs, strict=True))
        if not any(self._some(i, inside[pos], once) for pos in cfg.rpo if inside[pos] for i in f.blocks[pos].insts):
            return  # quickly seen
        self.values = v = Values(f)
        moved: dict[int, list[Inst]] = {}
        gone: set[int] = set()
        for pos in v.cfg.rpo:
            if inside[pos]:
                for i in f.blocks[pos].insts:
                    to = self._leaves(i, pos)
                    if to >= 0:
                        moved.setdefault(to, []).append(i)
                        gone.add(id(i))
        if not gone:
            return
        for b in f.blocks:
            b.insts = [i for i in b.insts if id(i) not in gone]
        homes = {n: self.preheaders[n] for n in moved}
        old = {n: f.blocks[at] for n, at in homes.items() if at is not None and at >= 0}
        new = make_preheaders(f, v.cfg, [found[n] for n in sorted(homes) if homes[n] == -1])
        for n in sorted(moved):
            put_last(old[n] if n in old else new[found[n].header], moved[n])
        self.ctx.count("invariants moved out of loops", len(gone))

    def _may(self, i: Inst) -> bool:
        """Whether an instruction is of a kind that may move; copies of registers would only lengthen two lives."""
        if not i.dsts or is_guarded(i) or i.op in _STAY or (i.op in ("COPY", "MOV") and type(i.srcs[0]) is Reg):
            return False
        return i.op in LOADS or is_pure(i)

    def _some(self, i: Inst, inside: int, once: bytearray) -> bool:
        """Whether the instruction might leave the innermost of the loops that it is in."""
        return (
            self._may(i)
            and not self._held(i) & inside & -inside
            and all(once[r.num] and r.file in ("R", "P") for r in written_regs(i))
        )

    def _held(self, i: Inst) -> int:
        """The loops that write what the instruction reads."""
        held = 0
        for r in read_regs(i):
            held |= self.made[r.num]
        return held

    def _leaves(self, i: Inst, pos: int) -> int:
        """The number of the outermost loop that the instruction may go before; -1 where it stays."""
        if not self._may(i):
            return -1
        written = written_regs(i)
        if not written or any(not self.values.value[r.num] or r.file not in ("R", "P") for r in written):
            return -1
        reads = read_regs(i)
        held = self._held(i)
        load = i.op in LOADS or any(
            type(o) is Const and o.ireg is not None for o in i.srcs
        )  # beyond the bank's end: a fault
        best = -1
        need = {file: sum(r.width for r in written if r.file == file) for file in ("R", "P")}
        inside = self.inside[pos]
        while inside:
            n = (inside & -inside).bit_length() - 1
            if (
                held >> n & 1
                or self._front(n) is None
                or (load and not self._always(i, pos, n))
                or not self._room(n, i, need, reads)
            ):
                break
            best = n
            inside &= inside - 1
        if best < 0 or not self.ctx.allow():
            return -1
        left = self.inside[pos] & ((2 << best) - 1)
        for r in written:
            self.made[r.num] &= ~left
        for n in bit_indices(left):
            alive = self.pressure[n]
            for file, count in need.items():
                alive[file] += count
        for r in reads:
            if self.values.value[r.num] and r.file in ("R", "P"):
                for lane in self.values.lanes(r):
                    self.left[lane] = self._left(lane) - 1
                    if not self.left[lane]:  # nothing reads it in the loop now
                        for n in bit_indices(left & ~self.made[r.num]):
                            self.pressure[n][r.file] -= 1
        return best

    def _left(self, lane: Lane) -> int:
        """How many operands read the lane that have not moved."""
        return self.left.get(lane, self.values.uses[lane])

    def _front(self, n: int) -> int | None:
        if n not in self.preheaders:
            self.preheaders[n] = preheader(self.f, self.values.cfg, self.found[n])
        return self.preheaders[n]

    def _always(self, load: Inst, pos: int, n: int) -> bool:
        """Whether every path through the loop executes the load, and it reads the same value in every iteration."""
        loop, v = self.found[n], self.values
        if n not in self.stores:
            self.stores[n] = Stores([self.f.blocks[p] for p in loop.body])
        if load.op in LOADS and self.stores[n].may_change(load):
            return False
        body = set(loop.body)
        leaving = [
            p
            for p in loop.body
            if loop.header in v.cfg.succs[p]
            or any(s not in body for s in v.cfg.succs[p])
            or not v.cfg.succs[p]
            or self._ends(p)
        ]
        return all(v.dominates(pos, p) for p in leaving)

    def _ends(self, pos: int) -> bool:
        insts = self.f.blocks[pos].insts
        return bool(insts) and insts[-1].op in ENDS

    def _room(self, n: int, i: Inst, need: dict[str, int], reads: list[Reg]) -> bool:
        """Whether the loop has registers to hold the result; what only this instruction reads dies in exchange."""
        if n not in self.pressure:
            self.pressure[n] = self._peak(n)
            if n not in self.stores:
                self.stores[n] = Stores([self.f.blocks[p] for p in self.found[n].body])
        alive = self.pressure[n]
        if need["P"] and alive["P"] + need["P"] > _PREDICATES:
            return False
        late = i.op in _LATE
        most = _CONSTANT if not reads and not late else _DEAR if late else _CHEAP
        if self.stores[n].calls:
            most = _CALLING
        freed = sum(
            self._left(self.values.base[r.num] + c) == 1
            for r in reads
            if r.file == "R" and self.values.value[r.num]
            for c in range(r.sub, r.sub + r.width)
        )
        return need["R"] <= freed or alive["R"] + need["R"] - freed <= min(most, self.limit)

    def _peak(self, n: int) -> dict[str, int]:
        """Most live words in a loop, by file."""
        f = self.f
        if self.live is None:
            self.live = liveness(f, self.values.cfg)
        most = {"R": 0, "P": 0}
        for pos in self.found[n].body:
            for name, count in self._block_peak(pos, self.live).items():
                most[name] = max(most[name], count)
        return most

    def _block_peak(self, pos: int, live: Liveness) -> dict[str, int]:
        """Most live words in a block, by file."""
        got = self.peaks.get(pos)
        if got is None:
            got = self.peaks[pos] = {"R": 0, "P": 0}
            alive = Alive(self.f, live, pos)
            for i in reversed(self.f.blocks[pos].insts):
                for name in got:
                    got[name] = max(got[name], alive.count[name])
                alive.step(i)
            for name in got:
                got[name] = max(got[name], alive.count[name])
        return got
