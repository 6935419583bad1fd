"""Loop rotation: a loop that tests at its start is changed to test at its end, with a copy of the test before it, as
ptxas does (measured).

Pre: a function at level `ori`. Post: the same effects; one branch less per iteration, and loops of a body and a test
become loops of one block, from which `licm` moves loads and which `unroll` unrolls. The test must be short, and its
results must be read nowhere else, so that the two copies remain separate values.
"""

from __future__ import annotations

from ir_format.flow import Cfg, Loop, build_cfg, falls_through, is_guarded, read_regs, written_regs
from ir_format.model import Block, Function, Inst, Reg, label
from ir_format.rename import duplicate, fresh_names, rename
from ir_format.typed import Final
from stages.optimize.analyses import Analyses
from stages.optimize.control.simplify_cfg import merge_blocks, plain_jump
from stages.optimize.loops.natural import LOADS, find_loops, has_loops
from stages.optimize.scalar.fold import inverted
from stages.optimize.values import is_pure
from stages.plumbing.runner import Context

_MOST: Final = 8  # instructions of a test that are worth a second copy (guessed)


def rotate_loops(f: Function, a: Analyses) -> bool:
    """The pass; it leaves SSA form where there is something to do."""
    if not has_loops(f):
        return False
    if a.webs is not None:
        if not _candidates(f, find_loops(f, a.cfg, a.idom)):
            return False
        a.leave_ssa()
    if not _Rotator(f, a.ctx).run():
        return False
    merge_blocks(f)
    return True


def _candidates(f: Function, found: list[Loop]) -> bool:
    """Whether a loop of several blocks starts with a short test, in SSA form."""
    for loop in found:
        insts = f.blocks[loop.header].insts
        if len(loop.body) > 1 and insts and is_guarded(insts[-1]) and plain_jump(insts[-1]) >= 0:
            if sum(i.op != "PHI" for i in insts) <= _MOST + 1:
                return True
    return False


class _Rotator:
    """One walk over the loops of a function."""

    def __init__(self, f: Function, ctx: Context) -> None:
        self.f = f
        self.ctx = ctx
        self.readers: dict[int, set[int]] = {}  # register -> blocks that read it

    def run(self) -> bool:
        """Whether a loop was rotated."""
        f = self.f
        cfg = build_cfg(f)
        found = find_loops(f, cfg)
        if not found:
            return False
        for pos, b in enumerate(f.blocks):
            for i in b.insts:
                for r in read_regs(i):
                    self.readers.setdefault(r.num, set()).add(pos)
        behind: dict[int, Block] = {}  # blocks to put after others, by position
        touched: set[int] = set()
        changed = False
        for loop in found:
            if not touched.isdisjoint(loop.body):
                continue
            if self._rotate(loop, cfg, behind):
                touched.update(loop.body)
                changed = True
        if behind:
            f.blocks = [x for n, b in enumerate(f.blocks) for x in ((b, behind[n]) if n in behind else (b,))]
        return changed

    def _rotate(self, loop: Loop, cfg: Cfg, behind: dict[int, Block]) -> bool:
        f = self.f
        blocks = f.blocks
        head = loop.header
        h = blocks[head]
        if (
            len(loop.body) < 2
            or not h.insts
            or len(cfg.succs[head]) != 2
            or plain_jump(h.insts[-1]) < 0
            or not is_guarded(h.insts[-1])
        ):
            return False
        body = set(loop.body)
        stay = [s for s in cfg.succs[head] if s in body and s != head]
        leave = [s for s in cfg.succs[head] if s not in body]
        if len(stay) != 1 or len(leave) != 1 or cfg.preds[stay[0]] != (head,) or not self._plain(head):
            return False
        latches = [p for p in cfg.preds[head] if p in body]
        outside = [p for p in cfg.preds[head] if p not in body]
        if len(latches) != 1 or not outside:
            return False
        (latch,), (first,), (out,) = latches, stay, leave
        if (
            latch == head - 1
            and falls_through(blocks[latch])
            and cfg.succs[latch] == (head,)
            and (not blocks[latch].insts or plain_jump(blocks[latch].insts[-1]) < 0)
        ):
            # the test is at the end already: what comes from outside jumps there
            if len(outside) != 1 or cfg.succs[outside[0]] != (head,) or outside[0] != first - 1:
                return False
            front = blocks[outside[0]]
            if (
                not front.insts
                or plain_jump(front.insts[-1]) != h.id
                or is_guarded(front.insts[-1])
                or not self.ctx.allow()
            ):
                return False
            front.insts.pop()
            front.insts += self._copy(h, out)
        else:
            last = blocks[latch].insts[-1] if blocks[latch].insts else None
            if last is None or plain_jump(last) != h.id or is_guarded(last) or latch in behind or not self.ctx.allow():
                return False
            blocks[latch].insts.pop()
            blocks[latch].insts += self._copy(h, first)
            if out != latch + 1:
                behind[latch] = Block(
                    max([b.id for b in blocks] + [b.id for b in behind.values()]) + 1,
                    [Inst("BRA", (), (), (*last.srcs[:-1], label(blocks[out].id)), None, last.line, last.loc)],
                    0,
                )
        self.ctx.count("loops rotated")
        marked = f.attrs.get("nounroll")
        if isinstance(marked, tuple) and h.id in marked:
            f.attrs["nounroll"] = (*marked, blocks[first].id)
        return True

    def _plain(self, head: int) -> bool:
        """Whether a header may be copied: short, without effects, nothing else reads what it computes."""
        insts = self.f.blocks[head].insts
        if len(insts) > _MOST + 1:
            return False
        read: set[int] = set()
        for i in insts[:-1]:
            read.update(r.num for r in read_regs(i))
            load = i.op in LOADS and not i.uses and not i.defs
            if not (load or is_pure(i)) or i.op in ("R2UR", "UNDEF") or is_guarded(i):
                return False
            for r in written_regs(i):
                if (
                    r.file not in ("R", "P")
                    or self.f.vregs[r.num].fixed >= 0
                    or r.num in read
                    or self.readers.get(r.num, set()) - {head}
                ):
                    return False
        return True

    def _copy(self, h: Block, to: int) -> list[Inst]:
        """The header's instructions with registers of their own, and its jump turned to the successor at position
        ``to``."""
        f = self.f
        names = fresh_names(f, h.insts[:-1])

        def change(r: Reg) -> Reg:
            return r._replace(num=names.get(r.num, r.num))

        out = []
        for i in h.insts:
            new = duplicate(i)
            rename(new, change)
            out.append(new)
        jump = out[-1]
        assert jump.guard is not None
        target = f.blocks[to].id
        if plain_jump(jump) != target:
            jump.guard = inverted(jump.guard)
            jump.srcs = (*jump.srcs[:-1], label(target))
        return out
