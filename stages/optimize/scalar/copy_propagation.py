"""Copy propagation within blocks: readers of a copy read its source instead.

Lowering brings operands into vectors and results out of them by COPYs, which are half of what it makes. They go here,
before all expensive passes: SSA construction, value numbering, combining. Pre: a function at level `ori`. Post: the
same values; copies that nothing reads any more are left to `dce`.

Looked through are copies from registers every lane of which is written in one place, as long as neither side is written
again in the block. Registers of fixed place live no longer than they did, and what an instruction reads and writes in
place stays in its register. Other copies (over blocks, of constants, from registers that become values by SSA
construction) are the business of :mod:`stages.optimize.scalar.combine`.
"""

from __future__ import annotations

from ir_format.flow import is_guarded, written_regs
from ir_format.model import ZERO, Block, Const, Function, Imm, Inst, Mem, Operand, Reg
from stages.optimize.analyses import Analyses


def propagate_copies(f: Function, a: Analyses) -> bool:
    """The pass."""
    work = _Propagation(f, a)
    for b in f.blocks:
        work.block(b)
    return work.changed


def _names(m: Mem, now: dict[int, dict[int, Reg]]) -> bool:
    """Whether an address reads a register of which something is known."""
    base, ubase, desc = m.base, m.ubase, m.desc
    return (
        (base is not None and base.num in now)
        or (ubase is not None and ubase.num in now)
        or (desc is not None and desc.num in now)
    )


class _Propagation:
    """The state of the walk. ``now``: register -> lane -> the register that it is a copy of here; ``sources``: register
    -> the lanes that are copies of it."""

    def __init__(self, f: Function, a: Analyses) -> None:
        self.ctx = a.ctx
        self.changed = False
        self.now: dict[int, dict[int, Reg]] = {}
        self.sources: dict[int, list[tuple[int, int]]] = {}
        self.many = a.written_again
        self.held = bytearray([v.fixed >= 0 or v.file == "B" for v in f.vregs])

    def block(self, b: Block) -> None:
        """Walk a block; nothing is known at its start."""
        now: dict[int, dict[int, Reg]] = {}
        sources: dict[int, list[tuple[int, int]]] = {}
        self.now, self.sources = now, sources
        for i in b.insts:
            if now:
                for o in i.srcs:
                    if type(o) is Reg:
                        if o.num in now:
                            if i.op == "COPY" and o.width == 1 and i.guard is None:  # most of them
                                self._rewrite_copy(i, o)
                            else:
                                self._rewrite(i)
                            break
                    elif type(o) is Mem:
                        if _names(o, now):
                            self._rewrite(i)
                            break
                    elif type(o) is Const and o.ireg is not None:
                        self._rewrite(i)
                        break
                else:
                    d = i.dsts[0] if i.dsts else None
                    if (i.guard is not None and i.guard.num in now) or (type(d) is Mem and _names(d, now)):
                        self._rewrite(i)
                for o in i.dsts:
                    if type(o) is Reg:
                        num = o.num
                        if num in now or num in sources:
                            self._forget(o)
                if i.defs:
                    for o in i.defs:
                        if type(o) is Reg and (o.num in now or o.num in sources):
                            self._forget(o)
            if i.op == "COPY":
                self._note(i)

    def _note(self, i: Inst) -> None:
        """Remember what a copy says."""
        d, s = i.dsts[0], i.srcs[0]
        if type(d) is not Reg or type(s) is not Reg:
            return
        file, num, sub, width, flags, mod = s
        to, first = d.num, d.sub
        if (
            flags
            or ZERO in (num, to)
            or file != d.file
            or mod
            or width != d.width
            or self.many[num]
            or self.held[num]
            or self.held[to]
            or num == to
            or i.uses
            or (i.guard is not None and is_guarded(i))
        ):
            return
        lanes = self.now.get(to)
        if lanes is None:
            lanes = self.now[to] = {}
        found = self.sources.get(num)
        if found is None:
            found = self.sources[num] = []
        if width == 1:
            lanes[first] = s
            found.append((to, first))
            return
        for c in range(width):
            lanes[first + c] = Reg(file, num, sub + c)
            found.append((to, first + c))

    def _forget(self, r: Reg) -> None:
        """A register is written: its lanes hold something else, and so do copies of it no longer hold what it holds."""
        lanes = self.now.get(r.num)
        if lanes is not None:
            for c in range(r.sub, r.sub + r.width):
                lanes.pop(c, None)
        for num, lane in self.sources.pop(r.num, ()):
            lanes = self.now.get(num)
            if lanes is not None:
                got = lanes.get(lane)
                if got is not None and got.num == r.num:
                    del lanes[lane]

    def _rewrite_copy(self, i: Inst, o: Reg) -> None:
        """Let a copy of one word read what that is a copy of."""
        first = self.now[o.num].get(o.sub)
        d = i.dsts[0]
        if first is not None and type(d) is Reg and d.num != o.num and d.num != first.num and self._allow():
            i.srcs = (Reg(o.file, first.num, first.sub, 1, o.flags, o.mod),)

    def _rewrite(self, i: Inst) -> None:
        """Let an instruction read what was copied. What it also writes stays in place."""
        d = i.dsts[0] if len(i.dsts) == 1 and not i.defs else None
        written = [d.num] if type(d) is Reg else [] if d is not None else [r.num for r in written_regs(i)]
        now = self.now
        out: list[Operand] | None = None
        for n, o in enumerate(i.srcs):
            if type(o) is Reg:
                if o.num not in now:
                    continue
                new: Operand = self._reg(o, written)
            elif type(o) is Imm:
                continue
            else:
                new = self._operand(o, written)
            if new is not o and self._allow():
                if out is None:
                    out = list(i.srcs)
                out[n] = new
        if out is not None:
            i.srcs = tuple(out)
        for n, o in enumerate(i.dsts):
            if type(o) is Mem:
                new = self._operand(o, written)
                if new is not o and self._allow():
                    i.dsts = (*i.dsts[:n], new, *i.dsts[n + 1 :])
        if i.guard is not None and i.guard.num != ZERO:
            guard = self._reg(i.guard, written)
            if guard is not i.guard and self._allow():
                i.guard = guard

    def _allow(self) -> bool:
        if not self.ctx.allow():
            return False
        self.changed = True
        return True

    def _operand(self, o: Operand, written: list[int]) -> Operand:
        """What to read instead of an address or constant; itself if that is nothing else."""
        if type(o) is Mem:
            base, ubase, desc = o.base, o.ubase, o.desc
            if base is not None and base.num in self.now:
                base = self._reg(base, written)
            if ubase is not None and ubase.num in self.now:
                ubase = self._reg(ubase, written)
            if desc is not None and desc.num in self.now:
                desc = self._reg(desc, written)
            if base is not o.base or ubase is not o.ubase or desc is not o.desc:
                return o._replace(base=base, ubase=ubase, desc=desc)
        elif type(o) is Const and o.ireg is not None and o.ireg.num in self.now:
            ireg = self._reg(o.ireg, written)
            if ireg is not o.ireg:
                return o._replace(ireg=ireg)
        return o

    def _reg(self, r: Reg, written: list[int]) -> Reg:
        lanes = self.now.get(r.num)
        if not lanes or r.num in written:
            return r
        first = lanes.get(r.sub)
        if first is None or first.num in written:
            return r
        if r.width > 1:
            if first.sub % min(4, r.width if r.width != 3 else 4):
                return r
            for c in range(1, r.width):
                got = lanes.get(r.sub + c)
                if got is None or got.num != first.num or got.sub != first.sub + c:
                    return r
        return Reg(r.file, first.num, first.sub, r.width, r.flags, r.mod)
