"""Counters of loops, and what is computed from them, on the uniform datapath.

A register is moved to a uniform one if all threads of the warp have the same value in it, each of its definitions can
be computed on the uniform datapath from constants and from registers that are moved too, and each reader takes a
uniform register in its place. ptxas does so from sm_90 on: the counters of loops and the addresses of tiles in shared
memory that they give are in uniform registers (UIADD3, ULEA, `LDS [UR4]`), which leaves general registers to other
values.

Diverged threads share the uniform registers: a definition must be in a block that the whole warp executes, and threads
must reconverge where their paths do (:func:`stages.optimize.late.uniform_promotion.paths_reconverge`). Calls destroy
uniform registers: a function with calls is left alone.

Pre: a function at level `ori`. Post: the same values.
"""

from __future__ import annotations

from ir_format.flow import build_cfg, is_guarded, loop_depths, read_regs, written_regs
from ir_format.model import ZERO, Function, Imm, Inst, Name, Operand, Reg, Unit
from ir_format.target import target as find_target
from ir_format.typed import Final
from stages.optimize.late.uniform_forms import UNIFORM_OPS, UniformForms, uniform_zero
from stages.optimize.late.uniform_promotion import convergent_blocks, paths_reconverge
from stages.plumbing.runner import Context

#: Words that may be in uniform registers at the same time (there are 63, and operands need some).
_MOST: Final = 16
_SHARED: Final = ("SR_CTAID", "SR_CgaCtaId")


def move_uniform_webs(unit: Unit, ctx: Context) -> bool:
    """The pass."""
    if find_target(ctx.header.target).alu_const:
        return False
    work = [_Webs(f, ctx) for f in unit.functions if len(f.blocks) > 1]
    if not any([w.find() for w in work]) or not all(map(paths_reconverge, unit.functions)):
        return False
    return any([w.run() for w in work])


class _Webs:
    """One function. ``writers``, ``readers``: of the candidates, with the block of each writer."""

    def __init__(self, f: Function, ctx: Context) -> None:
        self.f = f
        self.ctx = ctx
        self.forms = UniformForms(ctx.header.target)
        self.writers: dict[int, list[tuple[int, Inst]]] = {}
        self.readers: dict[int, list[Inst]] = {}

    def find(self) -> bool:
        """Whether a loop counts in a register that all threads share: one that several instructions write, one of them
        from the register itself."""
        f = self.f
        if any(i.op == "CALL" for b in f.blocks for i in b.insts):
            return False
        vregs = f.vregs
        bad: set[int] = set()
        for pos, b in enumerate(f.blocks):
            for i in b.insts:
                for r in written_regs(i):
                    v = vregs[r.num]
                    if v.file != "R" or not v.uniform or v.width != 1 or v.fixed >= 0 or not _can_compute(i, r):
                        bad.add(r.num)
                    else:
                        self.writers.setdefault(r.num, []).append((pos, i))
        for num in bad:
            self.writers.pop(num, None)
        return any(len(w) > 1 and any(_reads(i, num) for _, i in w) for num, w in self.writers.items())

    def run(self) -> bool:
        """Move what can be moved; whether there was something."""
        f = self.f
        cfg = build_cfg(f)
        shared = convergent_blocks(f, cfg)
        self.writers = {num: w for num, w in self.writers.items() if all(pos in shared for pos, _ in w)}
        for b in f.blocks:
            for i in b.insts:
                for r in read_regs(i):
                    if r.num in self.writers:
                        self.readers.setdefault(r.num, []).append(i)
        self._shrink()
        self._keep_counting(loop_depths(cfg))
        if not self.writers or not self.ctx.allow():
            return False
        self.ctx.count("uniform webs", len(self.writers))
        self._move()
        return True

    def _shrink(self) -> None:
        """Remove candidates that can't be moved, until all others can."""
        work = sorted(self.writers)
        while work:
            num = work.pop()
            if num not in self.writers or self._can_move(num):
                continue
            for i in (*(i for _, i in self.writers.pop(num)), *self.readers.get(num, ())):
                work += [r.num for r in (*read_regs(i), *written_regs(i)) if r.num in self.writers]

    def _can_move(self, num: int) -> bool:
        readers = self.readers.get(num)
        if not readers:
            return False
        if any(self._computed(i, num) is None for _, i in self.writers[num]):
            return False
        for i in readers:
            if any(r.num in self.writers for r in written_regs(i)):
                continue  # it moves, or this one is looked at again
            others = [r.num for r in read_regs(i) if r.num in self.writers and r.num != num]
            if self.forms.reading(i, num) is None or (others and self._worth(num) <= max(map(self._worth, others))):
                return False
        return True

    def _worth(self, num: int) -> tuple[int, int, int]:
        """Of two candidates of an instruction that takes one uniform register, the greater one moves."""
        return len(self.writers[num]), -len(self.readers[num]), num

    def _keep_counting(self, depth: list[int]) -> None:
        """Keep the candidates that are connected to a counter of a loop, as far as there is room."""
        kept: set[int] = set()
        for num in sorted(self.writers, key=lambda n: (-max(depth[pos] for pos, _ in self.writers[n]), n)):
            if num in kept or len(self.writers[num]) < 2 or not any(_reads(i, num) for _, i in self.writers[num]):
                continue
            web = self._connected(num)
            if len(kept | web) <= _MOST:
                kept |= web
        self.writers = {num: w for num, w in self.writers.items() if num in kept}

    def _connected(self, num: int) -> set[int]:
        """Candidates that are computed from one another."""
        web: set[int] = set()
        work = [num]
        while work:
            n = work.pop()
            if n in web:
                continue
            web.add(n)
            for i in (*(i for _, i in self.writers[n]), *self.readers[n]):
                made = [r.num for r in written_regs(i) if r.num in self.writers]
                if made:
                    work += [*made, *(r.num for r in read_regs(i) if r.num in self.writers)]
        return web

    def _computed(self, i: Inst, num: int) -> Inst | None:
        """A definition on the uniform datapath, with the numbers of the general registers; None if that can't be."""
        to = Reg("UR", num)
        if i.op == "S2R":
            dsts, srcs = self.forms.target.complete("S2UR", i.mods, (to,), i.srcs)
            return Inst("S2UR", i.mods, dsts, srcs, None, i.line, i.loc)
        sources: list[Operand] = []
        for s in i.srcs:
            if type(s) is Imm:
                sources.append(s)
            elif type(s) is not Reg or s.mod:
                return None
            elif s.num == ZERO:
                sources.append(uniform_zero(s))
            elif s.file == "UR" or (s.num in self.writers and s.width == 1):
                sources.append(s._replace(file="UR"))
            else:
                return None
        return self.forms.computing(i, to, tuple(sources))

    def _move(self) -> None:
        """Rewrite definitions and readers."""
        vregs = self.f.vregs
        done: set[int] = set()
        for num, writers in self.writers.items():
            for _, i in writers:
                _replace(i, self._computed(i, num))
                done.add(id(i))
        for num in self.writers:
            for i in self.readers[num]:
                if id(i) not in done:
                    _replace(i, self.forms.reading(i, num))
            vregs[num] = vregs[num]._replace(file="UR")


def _replace(i: Inst, new: Inst | None) -> None:
    assert new is not None
    i.op, i.mods, i.dsts, i.srcs = new.op, new.mods, new.dsts, new.srcs


def _reads(i: Inst, num: int) -> bool:
    return any(r.num == num for r in read_regs(i))


def _can_compute(i: Inst, r: Reg) -> bool:
    """Whether an instruction may be one of the uniform datapath, as far as its operands do not matter."""
    if is_guarded(i) or i.uses or i.defs or r.width != 1 or r.sub or r.mod:
        return False
    if any(type(d) is not Reg or (d.num != ZERO and d != r) for d in i.dsts):
        return False
    if i.op == "S2R":
        o = i.srcs[0]
        return type(o) is Name and o.name.startswith(_SHARED)
    return i.op in UNIFORM_OPS or (i.op == "COPY" and not (type(i.srcs[0]) is Imm and i.srcs[0].sym))
