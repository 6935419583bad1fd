"""Regions of convergence: where a convergence barrier begins to wait for the threads that will reach a block.

A region belongs to a *join*, the block where its threads reconverge. It starts at the nearest place that dominates
every path to the join and that no thread passes twice before the join: the immediate dominator of the join, or, if that
is in a loop that does not contain the join, the edges into the outermost such loop. (ptxas: the same places.) It is
found by a walk back from the join, so its cost is its own size.

Loops are natural loops. A header may have several latches. A latch whose own natural loop contains no other latch and
has one exit block belongs to an inner loop, after which its threads reconverge (`while (a) while (b);`). The other
latches end iterations of one loop (`continue`), and the threads reconverge before the next iteration, in a block that
:mod:`stages.lower.convergence.latches` adds. (ptxas: the same.) A cycle with several entries counts as a loop after
their common dominator; the blocks at which it is entered are *side doors*, and no joins.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from ir_format.flow import post_dominators
from ir_format.typed import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ir_format.model import Reg
    from stages.lower.convergence.divergence import Flow


_LARGE: Final = 200  # blocks
_MANY: Final = 16  # latches of one header among which inner loops are looked for


class Loop:
    """``header``: block that every path into the loop passes, or -1; ``before``: for a loop without a header, the block
    that dominates the entries; ``latches``: blocks that end its own iterations."""

    __slots__ = ("before", "body", "header", "latches")

    def __init__(self, header: int, before: int, body: set[int], latches: list[int]) -> None:
        self.header = header
        self.before = before
        self.body = body
        self.latches = latches


class Region:
    """One barrier. ``at``: block whose end gets the BSSY, or -1 with ``header``: the loop header before which the BSSY
    is. ``leaving``: edges after which the join can't be reached; ``beyond``: blocks to which they lead and that other
    threads reach too; ``leaks``: whether there are any."""

    __slots__ = (
        "at",
        "bar",
        "beyond",
        "breaks",
        "cycle",
        "header",
        "inside",
        "join",
        "leaks",
        "leaving",
        "loop",
        "node",
        "plain",
    )

    def __init__(
        self, at: int, header: int, loop: int, join: int, inside: AbstractSet[int], cycle: AbstractSet[int]
    ) -> None:
        self.at = at
        self.header = header
        self.loop = loop
        self.join = join
        self.inside = inside
        self.cycle = cycle
        self.leaving: set[tuple[int, int]] = set()
        self.breaks: set[tuple[int, int]] = set()
        self.beyond: set[int] = set()
        self.leaks = False
        self.plain = False
        self.bar: Reg | None = None
        self.node = -1  # id of the BSYNC block


class _Between(AbstractSet[int]):
    """The blocks between a block and its immediate post-dominator, which it dominates. A nest of conditions has as many
    regions as blocks, so that their members are not listed."""

    def __init__(self, flow: Flow, at: int, join: int) -> None:
        self._flow = flow
        self._at = at
        self._join = join
        self._size = flow.size_below(at) - flow.size_below(join) - 1

    def __contains__(self, x: object) -> bool:
        flow = self._flow
        return type(x) is int and x != self._at and flow.dominates(self._at, x) and not flow.dominates(self._join, x)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[int]:
        return (x for x in self._flow.below(self._at) if x in self)


class Regions:
    """The loops of a function, and the region of any block; each region is found once. ``headed``: header -> its loops,
    the outermost first; ``shared_latches``: header -> latches that end one loop."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.loops: list[Loop] = []
        self.headed: dict[int, list[int]] = {}
        self.shared_latches: dict[int, list[int]] = {}
        self.side_doors: set[int] = set()
        self._around: list[list[int]] = [[] for _ in flow.rank]  # per block: its loops, the innermost first
        self._found: dict[int, Region | None] = {}
        self._exits: list[set[int]] = []  # per loop: the blocks after it
        self._ends: list[int] | None = None  # immediate post-dominators
        self._find_loops()

    def _find_loops(self) -> None:
        flow = self.flow
        latches: dict[int, list[int]] = {}
        for x in flow.cfg.rpo:
            for s in flow.cfg.succs[x]:
                if flow.dominates(s, x):
                    latches.setdefault(s, []).append(x)
                elif flow.rank[s] <= flow.rank[x]:
                    self.side_doors.add(s)
                    top = flow.common_dominator(s, x)
                    self.loops.append(Loop(-1, top, self._reaching([x], {top}), [x]))
        for head, ends in latches.items():
            self.loops += self._nest(head, ends)
        self.loops.sort(key=lambda loop: len(loop.body))
        for n, loop in enumerate(self.loops):
            self._exits.append(
                {s for x in loop.body for s in flow.cfg.succs[x] if s not in loop.body and not flow.exit_only[s]}
            )
            for x in loop.body:
                self._around[x].append(n)
            if loop.header >= 0:
                self.headed.setdefault(loop.header, []).insert(0, n)

    def _reaching(self, ends: list[int], stops: set[int]) -> set[int]:
        """Blocks from which ``ends`` can be reached without ``stops``."""
        preds = self.flow.cfg.preds
        got: set[int] = set()
        work = [x for x in ends if x not in stops]
        while work:
            x = work.pop()
            if x not in got:
                got.add(x)
                work += [p for p in preds[x] if p not in got and p not in stops and self.flow.rank[p] >= 0]
        return got

    def _nest(self, head: int, ends: list[int]) -> list[Loop]:
        """The loops of a header, the innermost first. Latches that share a loop are recorded."""
        made: list[Loop] = []
        inner = {head}  # body of the last one
        ends = list(ends)
        while 1 < len(ends) <= _MANY:
            for end in ends:
                body = self._reaching([end], inner) | inner
                if all(other == end or other not in body for other in ends) and self._goes_on(body):
                    made.append(Loop(head, -1, body, [end]))
                    inner = body
                    ends.remove(end)
                    break
            else:
                break
        made.append(Loop(head, -1, self._reaching(ends, inner) | inner, ends))
        if len(ends) > 1:
            self.shared_latches[head] = ends
        return made

    def _goes_on(self, body: set[int]) -> bool:
        """Whether all exits of a loop lead to one block; exits that only end the thread do not count."""
        flow = self.flow
        exits = {s for x in body for s in flow.cfg.succs[x] if s not in body and not flow.exit_only[s]}
        return len({self._landing(s, body) for s in exits}) == 1

    def _landing(self, x: int, body: set[int]) -> int:
        """The first block from ``x`` on that holds an instruction."""
        flow = self.flow
        while not flow.fn.blocks[x].insts and flow.cfg.succs[x][0] not in body:
            x = flow.cfg.succs[x][0]
        return x

    def left(self, p: int, v: int) -> list[int]:
        """The loops that the edge from ``p`` to ``v`` leaves."""
        out = []
        for n in self._around[p]:
            loop = self.loops[n]
            if v in loop.body:
                break
            out.append(n)
        return out

    def never_rejoins(self, p: int, s: int) -> bool:
        """Whether threads on this edge go to a dead end that no other thread reaches. The only exit of a loop is not
        such an edge: all threads of the loop take it."""
        if not self.flow.never_rejoins(p, s):
            return False
        left = self.left(p, s)
        return not left or self._exits[left[-1]] != {s}

    def at(self, join: int) -> Region | None:
        """The region whose threads reconverge at ``join``; None if that is impossible."""
        if join not in self._found:
            self._found[join] = self._find(join)
        return self._found[join]

    def _find(self, join: int) -> Region | None:
        flow = self.flow
        if flow.rank[join] <= 0 or join in self.side_doors:
            return None
        at, loop = flow.idom[join], -1
        while True:
            outer = -1
            for n in self._around[at]:
                if join in self.loops[n].body:
                    break
                outer = n
            if outer < 0:
                break
            if self.loops[outer].header >= 0:
                loop = outer
                break
            at = self.loops[outer].before
        if any(self.loops[n].header < 0 and at not in self.loops[n].body for n in self._around[join]):
            return None  # threads could pass the join again without a new start
        preds = flow.cfg.preds[join]
        ends = [p for p in preds if flow.rank[p] >= 0 and not flow.dominates(join, p)]
        if loop >= 0:
            header, cycle = self.loops[loop].header, self.loops[loop].body
            inside = self._inside(join, ends, -1, header, cycle)
            region = Region(-1, header, loop, join, inside, cycle)
        else:
            if self._closed(at, join):
                return Region(at, -1, -1, join, _Between(flow, at, join), set())
            region = Region(at, -1, -1, join, self._inside(join, ends, at, -1, set()), set())
        self._edges(region)
        return region

    def _closed(self, at: int, join: int) -> bool:
        """Whether the region is all that ``at`` dominates and the join does not: every path from ``at`` leads to the
        join, none back to ``at``. Asked only in large functions."""
        flow = self.flow
        if len(flow.rank) < _LARGE or flow.idom[join] != at or self.side_doors:
            return False
        if self._ends is None:
            self._ends = post_dominators(flow.cfg)
            if any(self._ends[x] < 0 for x in flow.cfg.rpo):  # loops without an end
                self._ends = [-1] * len(flow.rank)
        return self._ends[at] == join and not any(
            flow.dominates(at, x) and not flow.dominates(join, x)
            for n in self._around[at]
            for x in self.loops[n].latches
        )

    def _inside(self, join: int, ends: list[int], at: int, header: int, cycle: set[int]) -> set[int]:
        """Blocks from which the join is reached without a new start."""
        flow = self.flow
        got: set[int] = set()
        work = [p for p in ends if p != at]
        while work:
            x = work.pop()
            if x in got:
                continue
            got.add(x)
            for p in flow.cfg.preds[x]:
                if (
                    p not in got
                    and p != at
                    and flow.rank[p] >= 0
                    and (x != header or p in cycle)
                    and not flow.dominates(join, p)
                ):
                    work.append(p)
        return got

    def _edges(self, r: Region) -> None:
        flow = self.flow
        for u in (*r.inside, *((r.at,) if r.at >= 0 else ())):
            for v in flow.cfg.succs[u]:
                again = v == r.at or (v == r.header and u not in r.cycle)
                if v == r.join or (v in r.inside and not again) or flow.exit_only[v]:
                    continue
                r.leaving.add((u, v))
                if not self.never_rejoins(u, v):
                    r.beyond.add(v)
                    r.leaks = True
