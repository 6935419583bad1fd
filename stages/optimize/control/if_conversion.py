"""If-conversion: a short block after a branch becomes instructions under the branch's predicate.

`@P BRA J; T; J:` (triangle) and `@P BRA F; T; BRA J; F; J:` (diamond). Instructions of an arm that only compute
temporaries of the arm may execute in vain, so they stay unguarded; loads, stores and values that are read after J get
the guard. A barrier that only the branch needed is removed. Then the blocks are merged. Pre: a function at level `ori`.
Post: the same effects; guarded temporaries are preceded by UNDEF.

Limits measured on ptxas: instructions of an arm, by divergence of the branch and shape; no atomics, no instruction that
synchronizes threads.
"""

from __future__ import annotations

from ir_format.flow import Cells, Cfg, build_cfg, falls_through, is_guarded, liveness, read_regs, written_regs
from ir_format.isa import facts
from ir_format.model import Block, Const, Function, Inst, Reg
from ir_format.typed import Final
from stages.optimize.analyses import Analyses
from stages.optimize.control.simplify_cfg import (
    barrier_users,
    drop_barrier,
    may_merge,
    merge_blocks,
    named_blocks,
    plain_jump,
    simple_barrier,
)
from stages.optimize.loops.natural import find_loops
from stages.optimize.scalar.fold import inverted
from stages.optimize.values import is_pure
from stages.plumbing.runner import Context

#: (divergent?, diamond?) -> most instructions of an arm (measured, optimizer notes on predication).
_MOST: Final = {(True, False): 8, (False, False): 6, (True, True): 7, (False, True): 5}
#: The same for arms with loads from global memory whose latency other such loads share (measured: ptxas takes 19
#: instructions of a triangle, 14 to 18 of a diamond's arm). Without them an arm that waits for its own load stays.
_LOADING: Final = {False: 19, True: 17}
_WAITED: Final = frozenset(op for op, space in facts.loads().items() if space in ("global", "generic"))
_GUARDED: Final = (facts.loads().keys() | facts.stores().keys() | {"LDC"}) - facts.having("convergent")


def convert_ifs(f: Function, a: Analyses) -> bool:
    """The pass; it leaves SSA form where there is something to do."""
    if len(f.blocks) < 3:
        return False
    work = _Converter(f, a.ctx)
    if work.shapes():
        a.leave_ssa()
        work.run()
    elif not may_merge(f):
        return False
    else:
        a.leave_ssa()
    merge_blocks(f)
    return True


def _loads(insts: list[Inst]) -> bool:
    """Whether there is a load whose result comes late."""
    return any(i.op in _WAITED for i in insts)


def _waits(insts: list[Inst]) -> bool:
    """Whether an instruction of an arm waits for such a load of the same arm."""
    late: set[int] = set()
    for i in insts:
        if late and any(r.num in late for r in read_regs(i)):
            return True
        if i.op in _WAITED:
            late.update([r.num for r in written_regs(i)])
    return False


def _overlaps_branch(insts: list[Inst]) -> bool:
    """Whether a block that ends in a branch has such a load that the branch does not wait for."""
    guard = insts[-1].guard
    need = {guard.num} if guard is not None else set()
    for i in reversed(insts[:-1]):
        if any(r.num in need for r in written_regs(i)):
            need.update([r.num for r in read_regs(i)])
        elif i.op in _WAITED:
            return True
    return False


class _Converter:
    """State of the walk over one function."""

    def __init__(self, f: Function, ctx: Context) -> None:
        self.f = f
        self.ctx = ctx
        self.why = ("", "")  # why an arm can't be predicated: name and words

    def shapes(self) -> bool:
        """Whether there is a triangle or diamond."""
        return any(self._shape(n) for n in range(len(self.f.blocks) - 2))

    def run(self) -> None:
        """Blocks from the last to the first, so that inner branches go before outer ones."""
        f = self.f
        cfg = build_cfg(f)
        live = liveness(f, cfg)
        self.cells: Cells = live.cells
        self.live_bits = dict(zip([b.id for b in f.blocks], live.live_in, strict=True))
        self.live = live
        self.preds = {b.id: len(cfg.preds[n]) for n, b in enumerate(f.blocks)}
        self.users = barrier_users(f)
        self.bars: dict[int, set[int]] = {}  # block id -> the barriers that it names
        for bar, users in self.users.items():
            for where, _ in users:
                self.bars.setdefault(where.id, set()).add(bar)
        self.named = named_blocks(f)
        self.batched = self._batched(cfg)
        for n in range(len(f.blocks) - 3, -1, -1):
            if n < len(f.blocks) - 2:
                self._try(n)

    def _shape(self, n: int) -> bool:
        """Whether the block at ``n`` may be the head of a triangle or diamond."""
        blocks = self.f.blocks
        b = blocks[n]
        if not b.insts or not is_guarded(b.insts[-1]):
            return False
        to = plain_jump(b.insts[-1])
        guard = b.insts[-1].guard
        if to < 0 or guard is None or guard.file != "P" or not blocks[n + 1].insts:
            return False
        return blocks[n + 2].id == to

    def _batched(self, cfg: Cfg) -> set[int]:
        """Ids of the blocks whose branch separates loads from global memory that could be in flight at the same time:
        those of an arm and those of the next iteration, of the other arm, before the branch or after the arms."""
        blocks = self.f.blocks
        found: dict[int, int] = {}  # id of a head -> id of the block where its arms join
        out: set[int] = set()
        for n in range(len(blocks) - 2):
            if self._shape(n):
                arms = [blocks[n + 1].insts]
                meet = blocks[n + 2]
                last = plain_jump(arms[0][-1])
                if last >= 0 and n + 3 < len(blocks) and blocks[n + 3].id == last:
                    arms.append(meet.insts)
                    meet = blocks[n + 3]
                loading = [_loads(arm) for arm in arms]
                if any(loading):
                    found[blocks[n].id] = meet.id
                    if (all(loading) and len(arms) > 1) or _loads(meet.insts) or _overlaps_branch(blocks[n].insts):
                        out.add(blocks[n].id)
        if not found:
            return out
        inside = {blocks[p].id for loop in find_loops(self.f, cfg) for p in loop.body}
        for head, meet_id in found.items():
            if head in inside:
                out.add(head)
            if meet_id in found:
                out.update((head, meet_id))
        return out

    def _try(self, n: int) -> None:
        if not self._shape(n):
            return
        blocks = self.f.blocks
        head, then, third = blocks[n : n + 3]
        last = head.insts[-1]
        assert last.guard is not None
        out = plain_jump(then.insts[-1])
        if self.preds[then.id] != 1 or self.named.get(then.id):
            self._missed(head, "ArmEnteredElsewhere", "its arm is also reached from elsewhere")
            return
        if out < 0 and falls_through(then) and not is_guarded(then.insts[-1]):
            arms = [(then, then.insts, inverted(last.guard))]
            join = third
        elif out >= 0 and not is_guarded(then.insts[-1]) and n + 3 < len(blocks) and blocks[n + 3].id == out:
            if (
                self.preds[third.id] != 1
                or self.named.get(third.id, 0) != 1
                or not falls_through(third)
                or (third.insts and plain_jump(third.insts[-1]) >= 0)
            ):
                self._missed(head, "ArmEnteredElsewhere", "its other arm is also reached from elsewhere")
                return
            arms = [(then, then.insts[:-1], inverted(last.guard)), (third, third.insts, last.guard)]
            join = blocks[n + 3]
        else:
            self._missed(head, "ArmsDoNotMeet", "its arms do not join at once")
            return
        bar = self._barrier(head, join)
        divergent = not self.f.vregs[last.guard.num].uniform
        most = _LOADING[len(arms) > 1] if head.id in self.batched else _MOST[divergent, len(arms) > 1]
        if head.id not in self.batched and any(_waits(insts) for _, insts, _ in arms):
            self._missed(head, "LoneLoad", "all threads would wait for a load whose latency no other load shares")
            return
        made: list[Inst] = []
        for arm, insts, guard in arms:
            bits = self.live_bits[join.id]
            if arm is not arms[-1][0]:
                bits |= self.live_bits[third.id]
            wanted = set(self.live.members(bits))
            got = self._arm(insts, guard, wanted, most)
            if got is None:
                self._missed(head, *self.why)
                return
            made += got
        if not self.ctx.allow():
            return
        if self.ctx.remarks is not None:
            message = f"branch replaced by predicates on {len(made)} instructions"
            self._say("passed", "Predicated", head, message)
        self.ctx.count("arms predicated", len(arms))
        head.insts.pop()
        head.insts += made
        if bar is not None:
            drop_barrier(self.users.pop(bar))
        del blocks[n + 1 : n + 1 + len(arms)]
        self.preds[join.id] -= len(arms)
        self.named[join.id] = self.named.get(join.id, 0) - 1 - (bar is not None)
        if len(arms) > 1:
            self.preds[join.id] += 1
        if self.preds[join.id] == 1 and not self.named[join.id]:
            head.insts += join.insts
            del blocks[n + 1]
            self._moved(join, head)

    def _moved(self, join: Block, head: Block) -> None:
        """The instructions of ``join`` are in ``head`` now."""
        bars = self.bars.pop(join.id, set())
        for bar in bars & self.users.keys():
            self.users[bar] = [(head if where is join else where, inst) for where, inst in self.users[bar]]
        self.bars.setdefault(head.id, set()).update(bars)

    def _missed(self, head: Block, name: str, why: str) -> None:
        if self.ctx.remarks is not None:
            self._say("missed", name, head, f"branch not predicated because {why}")

    def _say(self, kind: str, name: str, head: Block, message: str) -> None:
        last = head.insts[-1]
        value = self.f.vregs[last.guard.num].name if last.guard is not None else ""
        self.ctx.remark(kind, "if-conversion", name, self.f.name, last.line, message, value)

    def _barrier(self, head: Block, join: Block) -> int | None:
        """The B register that is set in ``head`` and waited for at ``join`` and nowhere else; None if there is none."""
        first = join.insts[0] if join.insts else None
        if first is None or first.op != "BSYNC" or self.preds[join.id] != 2:
            return None
        bar = first.srcs[-1]
        if type(bar) is not Reg or not simple_barrier(self.users.get(bar.num, [])):
            return None
        return bar.num if all(b is head or i is first for b, i in self.users[bar.num]) else None

    def _arm(self, insts: list[Inst], guard: Reg, wanted: set[int], most: int) -> list[Inst] | None:
        """The arm's instructions under ``guard``; None where it can't be. ``wanted``: cells whose values from before
        something else may read."""
        long = sum(i.op != "UNDEF" for i in insts)
        if long > most + any(i.op == "LDL" for i in insts):  # seen in ptxas's sine and cosine
            self.why = "LongArm", f"an arm of {long} instructions is longer than {most}"
            return None
        first = self.cells.first
        loose: set[int] = set()  # cells that hold their value under the guard only
        out: list[Inst] = []
        for i in insts:
            written = written_regs(i)
            cells = [c for r in written for c in range(first(r), first(r) + r.width)]
            if i.op == "UNDEF":
                if any(c in wanted for c in cells):
                    self.why = "ValueLost", "a value from before the branch would be lost"
                    return None
                out.append(i)
                continue
            if is_guarded(i) or i.uses or i.defs or i.attrs or "STRONG" in i.mods or "MMIO" in i.mods:
                self.why = "NoGuard", f"{i.op} of PTX line {i.line} takes no further predicate"
                return None
            if any(r.num == guard.num or self.f.vregs[r.num].fixed >= 0 for r in written):
                self.why = "WritesPredicate", f"{i.op} of PTX line {i.line} writes the predicate or a fixed register"
                return None
            # R2UR: which lane it asks would change; a constant bank may end before the index that the branch keeps away
            pure = is_pure(i) and i.op != "R2UR" and not any(type(o) is Const and o.ireg is not None for o in i.srcs)
            if not pure and i.op not in _GUARDED:
                self.why = "SideEffects", f"{i.op} of PTX line {i.line} has effects that need a branch"
                return None
            free = pure and not any(c in wanted for c in cells)
            if free and loose:
                free = not any(c in loose for r in read_regs(i) for c in range(first(r), first(r) + r.width))
            if free:
                out.append(i)
                loose.difference_update(cells)
                continue
            if any(r.file not in ("R", "P") for r in written):
                self.why = "WritesUniform", f"{i.op} of PTX line {i.line} writes a register of the whole warp"
                return None  # no guard of one thread for the warp's registers
            out += self._undefined(i, written, wanted, loose)
            loose.update(cells)
            out.append(Inst(i.op, i.mods, i.dsts, i.srcs, guard, i.line, i.loc))
        return out

    def _undefined(self, i: Inst, written: list[Reg], wanted: set[int], loose: set[int]) -> list[Inst]:
        """UNDEF of what ``i``, which gets a guard, writes if nothing needs the old value. ``i`` itself may need it:
        `x[0] = x[0] ^ y` reads the half that it writes, whoever else asks for that half afterwards. Where only parts of
        an operand are wanted, the others are undefined one by one."""
        first = self.cells.first
        own = {c for r in read_regs(i) for c in range(first(r), first(r) + r.width)}
        out: list[Inst] = []
        for r in written:
            at = first(r)
            parts = [n for n in range(r.width) if at + n not in wanted and at + n not in loose and at + n not in own]
            regs = [r] if len(parts) == r.width else [Reg(r.file, r.num, r.sub + n) for n in parts]
            out += [Inst("UNDEF", (), (x,), (), None, i.line, i.loc) for x in regs]
        return out
