"""Loops that wait for what other threads do: a lock, a flag, a ticket.

Such a loop begins with YIELD, and the regions that hold it or lie in it have plain barriers: a thread that waits at one
of them is let go when others can't continue without it (a thread that took a lock and left the loop waits for those
that spin on the lock). From sm_100 on `.RECONVERGENT` and `.RELIABLE` barriers hold on. Measured on ptxas: YIELD is
where a divergent exit depends on the result of an atomic, or on a volatile, relaxed or acquire load, in the loop;
regions with NANOSLEEP or BAR in them are plain as well.
"""

from __future__ import annotations

from ir_format.flow import read_regs, written_regs
from ir_format.isa import facts
from ir_format.model import Inst
from ir_format.typed import Final
from stages.lower.convergence.divergence import Divergence, Flow
from stages.lower.convergence.regions import Loop, Region, Regions

_ATOMICS: Final = facts.having("atomic")
_SLEEPS: Final = frozenset(("NANOSLEEP", "BAR"))


class Waits:
    """``heads``: first blocks of the loops that wait."""

    def __init__(self) -> None:
        self.heads: set[int] = set()
        self._places: set[int] = set()  # blocks that make the regions around them plain
        self._loops: list[Loop] = []

    def add(self, loop: Loop) -> None:
        """A loop that waits."""
        self.heads.add(loop.header)
        self._places.add(loop.header)
        self._loops.append(loop)

    def sleep(self, block: int) -> None:
        """A block in which threads wait."""
        self._places.add(block)

    def plain(self, r: Region) -> bool:
        """Whether a thread that waits at the region's join may have to be let go."""
        if any(x in r.inside for x in self._places):
            return True
        return any(r.join in loop.body for loop in self._loops)


def find_waits(flow: Flow, regions: Regions, state: Divergence) -> Waits:
    """The loops of a function that wait."""
    out = Waits()
    blocks = flow.fn.blocks
    asks = {x for x in flow.cfg.rpo if any(_reads_other_threads(i) for i in blocks[x].insts)}
    for x in flow.cfg.rpo:
        if any(i.op in _SLEEPS for i in blocks[x].insts):
            out.sleep(x)
    if asks:
        for loop in regions.loops:
            if loop.header >= 0 and not asks.isdisjoint(loop.body) and _depends(flow, loop, state):
                out.add(loop)
    return out


def _reads_other_threads(i: Inst) -> bool:
    """Whether an instruction brings what another thread may have changed."""
    if i.op in _ATOMICS:
        return not (
            i.attrs and "retry" in i.attrs
        )  # a swap of ours, for an atomic that the SM lacks: some thread always gets on
    return bool(i.dsts) and ("STRONG" in i.mods or "MMIO" in i.mods or bool(i.attrs and "strong" in i.attrs))


def _depends(flow: Flow, loop: Loop, state: Divergence) -> bool:
    """Whether a divergent exit of the loop depends on such an instruction in it, directly or through what is done under
    a branch that does."""
    order = sorted(loop.body, key=lambda x: flow.rank[x])
    leaves = [x for x in order if x in state.divergent and any(s not in loop.body for s in flow.cfg.succs[x])]
    if not leaves:
        return False
    asked: set[int] = set()
    under: set[int] = set()  # blocks that a branch on an answer leads to
    while True:
        before = len(asked) + len(under)
        for x in order:
            for i in flow.fn.blocks[x].insts:
                if _reads_other_threads(i) or x in under or any(r.num in asked for r in read_regs(i)):
                    asked.update(r.num for r in written_regs(i))
            if x in state.divergent and any(r.num in asked for r in read_regs(flow.fn.blocks[x].insts[-1])):
                if x in leaves:
                    return True
                under |= {s for s in flow.cfg.succs[x] if flow.idom[s] == x and s in loop.body}
            if x in under:
                under |= {s for s in flow.cfg.succs[x] if flow.idom[s] == x and s in loop.body}
        if len(asked) + len(under) == before:
            return False
