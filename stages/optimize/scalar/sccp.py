"""Sparse conditional constant propagation (SCCP, Wegman and Zadeck): values that are constant on every path that can be
executed, through PHIs, loops and branches that never go the other way.

Pre: SSA form. Post: the same form; PHIs and instructions that give a constant are copies of it, and a branch that is
always or never taken is under PT or !PT, which `simplify-cfg` acts upon. Only *candidates* are looked at: instructions
all of whose operands come from constants, and PHIs one of whose operands does. Instruction combining folds what follows
from constants without PHIs, so they are sought from PHIs and branches backwards; other instructions are not visited.
"""

from __future__ import annotations

from collections.abc import Callable

from ir_format.flow import Cfg, is_guarded
from ir_format.model import NOT_PT, PT, ZERO, Block, Function, Imm, Inst, Reg
from ir_format.typed import Final
from stages.optimize.analyses import Analyses
from stages.optimize.control.simplify_cfg import plain_jump
from stages.optimize.evaluate.table import EVALUATORS, evaluate, results
from stages.optimize.scalar.fold import constant_operand
from stages.optimize.values import Lane, Values
from stages.plumbing.runner import Context

_DEPTH: Final = 32  # instructions from a PHI or branch back to constants


def propagate_constants(f: Function, a: Analyses) -> bool:
    """The pass; whether it changed anything."""
    work = _Sccp(f, a.values, a.cfg, a.ctx)
    if not work.find_candidates():
        return False
    work.solve()
    return work.rewrite()


class _Sccp:
    """The work on one function. A lane in ``at`` is a constant as far as is known, one in ``varies`` is none; a lane of
    a candidate that is in neither has not been computed yet. Lanes that no candidate makes vary."""

    def __init__(self, f: Function, values: Values, cfg: Cfg, ctx: Context) -> None:
        self.f = f
        self.values = values
        self.cfg = cfg
        self.ctx = ctx
        self.joins: dict[int, list[Inst]] = {}  # block position -> its candidates that are PHIs
        self.candidates: dict[int, list[Inst]] = {}  # ... and the others
        self.never: set[Lane] = set()  # lanes that come from something else
        self.made: set[Lane] = set()  # the lanes that candidates make
        self.users: dict[Lane, list[tuple[int, Inst]]] = {}  # lane -> the candidates that read it, with their blocks
        self.tested: dict[Lane, list[int]] = {}  # predicate -> blocks that end in a branch on it
        self.at: dict[Lane, int] = {}
        self.varies: set[Lane] = set()
        self.edges: set[tuple[int, int]] = set()  # that can be executed
        self.reached: set[int] = set()
        self.blocks: list[int] = []  # reached, to be looked at
        self.changed: list[Lane] = []

    # ------------------------------------------------------------------ candidates

    def find_candidates(self) -> bool:
        """Note the candidates, from PHIs and branches back to constants; whether any is a PHI. One that an instruction
        without an evaluator reaches is one only if some branch may be decided, so that its block may not be reached."""
        found = self._note_phis(self._plain)
        if found and self.tested:
            found = self._note_phis(self._any) or found
        return found

    def _note_phis(self, wanted: Callable[[Inst], bool]) -> bool:
        """Note the PHIs of a kind, and what leads to them and from them to branches."""
        value, blocks = self.values.value, self.f.blocks
        found: list[Inst] = []
        for pos in self.cfg.rpo:
            for i in blocks[pos].insts:
                if i.op != "PHI":
                    break
                d = i.dsts[0]
                if type(d) is Reg and value[d.num] and self._lane(d) not in self.made and wanted(i):
                    self._note(pos, i)
                    found.append(i)
        if not found:
            return False
        self.never.clear()  # some of that may come from a PHI that was found later
        for i in found:
            for lane in self._read(i):
                self._may(lane, _DEPTH)
        for pos in self.cfg.rpo:
            last = blocks[pos].insts[-1] if blocks[pos].insts else None
            if last is not None and last.guard is not None and last.guard.num != ZERO and self._decides(last):
                lane = self._lane(last.guard)
                if self._may(lane, _DEPTH) and pos not in self.tested.get(lane, ()):
                    self.tested.setdefault(lane, []).append(pos)
        return True

    def _any(self, i: Inst) -> bool:
        """Whether some operand of a PHI comes from constants."""
        return any([self._may(lane, _DEPTH) for lane in self._read(i)])

    def _plain(self, i: Inst) -> bool:
        """... and the others may."""
        defs = self.values.defs
        for lane in self._read(i):
            made = defs[lane]
            if made is not None and made.op == "COPY" and type(made.srcs[0]) is Reg and made.srcs[0].num != ZERO:
                made = defs[self._lane(made.srcs[0])]
            if made is None or (made.op != "PHI" and made.op not in EVALUATORS):
                return False
        return self._any(i)

    def _lane(self, r: Reg, lane: int = 0) -> Lane:
        return self.values.base[r.num] + r.sub + lane

    def _read(self, i: Inst) -> list[Lane]:
        """The lanes of the sources."""
        return [lane for o in i.srcs if type(o) is Reg and o.num != ZERO for lane in self.values.lanes(o)]

    def _may(self, lane: Lane, depth: int) -> bool:
        """Whether a lane comes from constants and candidates alone; what makes it is a candidate then."""
        if lane in self.made:
            return True
        if lane in self.never:
            return False
        i = self.values.defs[lane]
        if i is not None and depth and i.op in EVALUATORS and self._simple(i):
            for source in self._read(i):
                if not self._may(source, depth - 1):
                    break
            else:
                self._note(self.values.place[lane], i)
                return True
        self.never.add(lane)
        return False

    def _simple(self, i: Inst) -> bool:
        """Whether an instruction reads nothing but registers and numbers, and its results are values."""
        if i.uses or i.defs or i.attrs or (i.guard is not None and is_guarded(i)):
            return False
        for o in i.srcs:
            if type(o) is not Reg and (type(o) is not Imm or o.sym or o.fmt):
                return False
        return all([type(d) is Reg and (d.num == ZERO or bool(self.values.value[d.num])) for d in i.dsts])

    def _note(self, pos: int, i: Inst) -> None:
        (self.joins if i.op == "PHI" else self.candidates).setdefault(pos, []).append(i)
        for d in i.dsts:
            if type(d) is Reg and d.num != ZERO:
                self.made.update(self.values.lanes(d))
        for lane in self._read(i):
            self.users.setdefault(lane, []).append((pos, i))

    # ------------------------------------------------------------------ the fixed point

    def solve(self) -> None:
        """Assume that nothing varies and no block is reached but the first, until that holds."""
        self._reach(self.cfg.rpo[0])
        while self.blocks or self.changed:
            if self.blocks:
                pos = self.blocks.pop()
                for i in (*self.joins.get(pos, ()), *self.candidates.get(pos, ())):
                    self._compute(pos, i)
                self._leave(pos)
                continue
            lane = self.changed.pop()
            for pos, i in self.users.get(lane, ()):
                if pos in self.reached:
                    self._compute(pos, i)
            for pos in self.tested.get(lane, ()):
                if pos in self.reached:
                    self._leave(pos)

    def _reach(self, pos: int) -> None:
        if pos not in self.reached:
            self.reached.add(pos)
            self.blocks.append(pos)

    def _edge(self, pos: int, to: int) -> None:
        """An edge can be executed."""
        if (pos, to) in self.edges:
            return
        self.edges.add((pos, to))
        if to in self.reached:
            for i in self.joins.get(to, ()):
                self._compute(to, i)
        else:
            self._reach(to)

    def _decides(self, last: Inst) -> bool:
        """Whether a guard alone says where an instruction goes."""
        return last.op == "EXIT" or plain_jump(last) >= 0

    def _leave(self, pos: int) -> None:
        """What can be executed after a block."""
        insts = self.f.blocks[pos].insts
        last = insts[-1] if insts else None
        taken = self._taken(last) if last is not None else None
        for to in self.cfg.succs[pos]:
            if taken is None or last is None:
                self._edge(pos, to)
                continue
            target = plain_jump(last)
            jumps = target >= 0 and self.cfg.index[target] == to
            # both edges may lead to the next block
            if (taken and jumps) or (not taken and to == pos + 1):
                self._edge(pos, to)

    def _taken(self, last: Inst) -> bool | None:
        """Whether a branch is taken: True, False, or None if it may go both ways, also because its guard is not
        computed."""
        g = last.guard
        if g is None or g.num == ZERO or not self._decides(last):
            return None
        lane = self._lane(g)
        if lane not in self.made or lane in self.varies:
            return None
        got = self.at.get(lane)
        return None if got is None else bool(got) != bool(g.flags)

    def _known(self, r: Reg, lane: int) -> int | None:
        return self.at.get(self._lane(r, lane))

    def _compute(self, pos: int, i: Inst) -> None:
        """Compute the lanes that a candidate makes."""
        if i.op == "PHI":
            d = i.dsts[0]
            assert type(d) is Reg
            self._join(pos, i, self._lane(d))
            return
        waits = False
        for lane in self._read(i):
            if lane in self.varies:
                self._vary(i)
                return
            waits = waits or lane not in self.at
        if waits:
            return
        answer = evaluate(i, self._known)
        made = results(i, answer) if answer is not None else None
        if made is None:
            self._vary(i)
            return
        for r, value in made:
            self._set(self._lane(r), value)

    def _join(self, pos: int, i: Inst, to: Lane) -> None:
        if to in self.varies:
            return
        preds = i.attrs["preds"] if i.attrs else ()
        assert isinstance(preds, tuple)
        for o, block in zip(i.srcs, preds, strict=True):
            assert type(o) is Reg and isinstance(block, int)
            if (self.cfg.index[block], pos) not in self.edges:
                continue
            lane = self._lane(o)
            if o.num != ZERO and (lane in self.varies or lane not in self.made):
                self._vary(i)
                return
            value = 0 if o.num == ZERO else self.at.get(lane)
            if value is not None:
                self._set(to, value)

    def _set(self, lane: Lane, value: int) -> None:
        """A lane holds a value here; where it held another one it varies."""
        if lane in self.varies:
            return
        old = self.at.get(lane)
        if old is None:
            self.at[lane] = value
            self.changed.append(lane)
        elif old != value:
            del self.at[lane]
            self.varies.add(lane)
            self.changed.append(lane)

    def _vary(self, i: Inst) -> None:
        for d in i.dsts:
            if type(d) is Reg and d.num != ZERO:
                for lane in self.values.lanes(d):
                    if lane not in self.varies:
                        self.at.pop(lane, None)
                        self.varies.add(lane)
                        self.changed.append(lane)

    # ------------------------------------------------------------------ what follows

    def rewrite(self) -> bool:
        """Put copies of constants where they were computed, and PT or !PT over branches; whether there was one."""
        changed = False
        for pos in sorted(self.reached):
            b = self.f.blocks[pos]
            some = (*self.joins.get(pos, ()), *self.candidates.get(pos, ()))
            found = {id(i) for i in some if i.op not in ("COPY", "MOV") and self._constant(i)}
            if found:
                changed = self._replace(b, pos, found) or changed
            last = b.insts[-1] if b.insts else None
            taken = self._taken(last) if last is not None else None
            if last is not None and taken is not None and self.ctx.allow():
                self.values.adjust(last, -1)
                last.guard = PT if taken else NOT_PT
                self.values.adjust(last, +1)
                self.ctx.count("branches on propagated constants")
                changed = True
        return changed

    def _constant(self, i: Inst) -> bool:
        """Whether every lane that an instruction makes is a constant."""
        return all(
            [lane in self.at for d in i.dsts if type(d) is Reg and d.num != ZERO for lane in self.values.lanes(d)]
        )

    def _replace(self, b: Block, pos: int, found: set[int]) -> bool:
        out: list[Inst] = []
        late: list[Inst] = []  # copies instead of PHIs, after the others
        changed = False
        for i in b.insts:
            if i.op != "PHI" and late:
                out += late
                late = []
            if id(i) not in found or not self.ctx.allow():
                out.append(i)
                continue
            self.ctx.count("propagated constants")
            changed = True
            copies = late if i.op == "PHI" else out
            self.values.remove(i)
            for d in i.dsts:
                if type(d) is Reg and d.num != ZERO:
                    for k in range(d.width):
                        r = Reg(d.file, d.num, d.sub + k)
                        value = constant_operand(r, self.at[self._lane(r)])
                        made = Inst("COPY", (), (r,), (value,), None, i.line, i.loc)
                        copies.append(made)
                        self.values.add(made, pos)
        b.insts = out + late
        return changed
