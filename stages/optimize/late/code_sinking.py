"""Code sinking past branches (partial dead code elimination): a value that is read after only one
exit of a block is computed there.

Front ends and loop passes compute values before the test that decides whether they are needed: threads that end at the
test, or skip a loop, compute them for nothing, and instructions that wait for a load delay the branch. ptxas computes
such values after the test, too.

In a loop only instructions that wait for a load of the block move: the others fill the cycles until the branch has its
predicate. An instruction moves if it writes at least as many registers as must live longer for it, or if few registers
are live there, and if its latency is short.

Pre: a function at level `ori`. Post: the same values; no path through the function executes more.
"""

from __future__ import annotations

from ir_format.diag import CompileError
from ir_format.flow import is_guarded, loop_depths, read_regs, written_regs
from ir_format.hazards import hazards
from ir_format.hazards.load import pipes
from ir_format.isa import facts
from ir_format.model import Function, Inst, Reg
from ir_format.typed import Final
from stages.optimize.analyses import Analyses
from stages.optimize.values import is_pure

#: Instructions before a branch that are looked at.
_WINDOW: Final = 160
#: So many registers may be live where instructions move to, without a question (below the steps of the register file).
_FEW: Final = 20
#: Results at least so late stay where they are: they are waited for less the earlier they begin.
_LATE: Final = 16
_LOADS: Final = facts.loads().keys()
#: They are first in their blocks.
_LEADING: Final = facts.with_value("ctl", "bssy", "bsync") | {"WARPSYNC"}


def sink_past_branches(f: Function, a: Analyses) -> bool:
    """Move what only one successor of a block reads there."""
    cfg = a.cfg
    preds = cfg.preds
    depth: list[int] = []
    sinking: _Sinking | None = None
    changed = False
    for pos in cfg.rpo:
        insts = f.blocks[pos].insts
        if len(insts) < 2 or insts[-1].op not in ("BRA", "EXIT") or not is_guarded(insts[-1]):
            continue
        to = [s for s in cfg.succs[pos] if preds[s] == (pos,) and s != pos]
        if not to:
            continue
        depth = depth or loop_depths(cfg)
        if depth[pos] and not any([i.op in _LOADS for i in insts[-_WINDOW:]]):
            continue
        sinking = sinking or _Sinking(f, a)
        changed |= sinking.block(pos, [s for s in to if depth[s] <= depth[pos]], depth[pos] > 0)
    return changed


class _Sinking:
    """``more``: cells that moved instructions read in a block, beside those that are live at its start; ``count``: the
    words of file R that are live there once the instructions have moved."""

    __slots__ = ("a", "count", "f", "first", "more", "tables")

    def __init__(self, f: Function, a: Analyses) -> None:
        self.f = f
        self.a = a
        self.first = a.live.cells.first
        self.more: dict[int, set[int]] = {}
        self.count: dict[int, int] = {}
        self.tables = hazards(a.ctx.header.target)

    def block(self, pos: int, to: list[int], waiting: bool) -> bool:
        """Move instructions of a block into the successors ``to``; ``waiting``: only those that wait for a load."""
        insts = self.f.blocks[pos].insts
        start = max(0, len(insts) - _WINDOW)
        held = self._held(insts, start) if waiting else None
        read: set[int] = set()  # by what stays, after the instruction looked at
        written: set[int] = set()
        moved: dict[int, list[Inst]] = {}
        gone: set[int] = set()
        for n in range(len(insts) - 1, start - 1, -1):
            inst = insts[n]
            reads, writes = self._cells(read_regs(inst)), self._cells(written_regs(inst))
            if (
                (held is None or n in held)
                and is_pure(inst)
                and not is_guarded(inst)
                and writes
                and read.isdisjoint(writes)
                and written.isdisjoint(writes)
                and written.isdisjoint(reads)
            ):
                target = self._target(pos, to, inst, reads, writes)
                if target >= 0 and self.a.ctx.allow():
                    moved.setdefault(target, []).append(inst)
                    self.more.setdefault(target, set()).update(reads)
                    gone.add(n)
                    continue
            read.update(reads)
            written.update(writes)
        if not gone:
            return False
        self.a.ctx.count("values sunk past branches", len(gone))
        self.f.blocks[pos].insts = [i for n, i in enumerate(insts) if n not in gone]
        for target, found in moved.items():
            after = self.f.blocks[target].insts
            at = next((n for n, i in enumerate(after) if i.op not in _LEADING), len(after))
            self.f.blocks[target].insts = after[:at] + found[::-1] + after[at:]
        return True

    def _cells(self, regs: list[Reg]) -> list[int]:
        first = self.first
        if len(regs) == 1 and regs[0].width == 1:
            return [first(regs[0])]
        return [c for r in regs for c in range(first(r), first(r) + r.width)]

    def _held(self, insts: list[Inst], start: int) -> set[int]:
        """The instructions that wait for a load of the block."""
        found: set[int] = set()
        late: set[int] = set()
        for n in range(start, len(insts)):
            writes = self._cells(written_regs(insts[n]))
            if insts[n].op in _LOADS:
                late.update(writes)
            elif not late.isdisjoint(self._cells(read_regs(insts[n]))):
                found.add(n)
                late.update(writes)
            else:
                late.difference_update(writes)
        return found

    def _target(self, pos: int, to: list[int], inst: Inst, reads: list[int], writes: list[int]) -> int:
        """The successor of a block that an instruction moves to, or -1."""
        target = -1
        for s in self.a.cfg.succs[pos]:
            if any([self._live(s, c) for c in writes]):
                if target >= 0:
                    return -1
                target = s
        if target not in to:
            return -1
        files = self.a.live.cells.files
        if any([files[c] not in ("R", "P") for c in writes]):
            return -1
        count = self.count.get(target)
        if count is None:
            count = sum([files[c] == "R" for c in self.a.live.in_cells(target)])
        now = count + sum([files[c] == "R" and not self._live(target, c) for c in set(reads)])
        now -= sum([files[c] == "R" for c in writes])
        if now > max(count, _FEW):
            return -1
        try:
            if pipes()[self.tables.klass(inst)].latency >= _LATE:
                return -1
        except CompileError:  # a copy, which is to disappear
            return -1
        self.count[target] = now
        return target

    def _live(self, pos: int, cell: int) -> bool:
        """Whether a cell is live at the start of a block."""
        live = self.a.live
        bit = live.bit.get(cell, -1)
        return (bit >= 0 and live.live_in[pos] >> bit & 1 == 1) or cell in self.more.get(pos, ())
