"""Backward dataflow of the convergence checker: which convergence barriers' BSYNC can be reached from a place.

*live*: the B registers whose BSYNC comes before another BSSY of theirs. *bare*: pairs (k, j), as bit 16 k + j: the
BSYNC of k is reached on a path without a barrier of the whole block and without the BSYNC of j, as far as j was open at
the start of the path; (k, k): on any path without a barrier of the block. Threads that are apart inside the region of j
come together at its BSYNC, so that from there on no part of them can wait at the BSYNC of k before the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from stages.check.convergence_path import Node, Open

_ALL: Final = 0xFFFF
_EACH: Final = sum(1 << 16 * k for k in range(16))  # (k, 0)
_ANY: Final = sum(1 << 17 * k for k in range(16))  # (k, k)


class Ahead:
    """The answers for one function. ``at``: (live, bare) at the start of each block; ``live`` and ``bare``: after each
    instruction that matters."""

    def __init__(
        self,
        blocks: Mapping[int, list[int]],
        succs: list[tuple[int, ...]],
        nodes: Mapping[int, Node],
        whole_block: Callable[[int], bool],
    ) -> None:
        self._succs = succs
        self._nodes = nodes
        self._whole_block = whole_block
        self.at: dict[int, tuple[int, int]] = dict.fromkeys(blocks, (0, 0))
        self.live: dict[int, int] = {}
        self.bare: dict[int, int] = {}
        preds: dict[int, list[int]] = {b: [] for b in blocks}
        for b, run in blocks.items():
            for s in succs[run[-1]]:
                if s in preds:
                    preds[s].append(b)
        work = sorted(blocks)
        queued = set(work)
        while work:
            b = work.pop()
            queued.discard(b)
            live, bare = self._after(blocks[b][-1])
            for n in reversed(blocks[b]):
                live, bare = self._before(n, live, bare)
            if (live, bare) != self.at[b]:
                self.at[b] = live, bare
                for p in preds[b]:
                    if p not in queued:
                        queued.add(p)
                        work.append(p)
        for run in blocks.values():
            live, bare = self._after(run[-1])
            for n in reversed(run):
                if n in nodes:
                    self.live[n], self.bare[n] = live, bare
                live, bare = self._before(n, live, bare)

    def reached(self, block: int) -> int:
        """B registers whose BSYNC can be reached from the start of a block."""
        return self.at.get(block, (0, 0))[0]

    def waiting(self, blocks: Iterable[int], barriers: tuple[Open, ...]) -> set[int]:
        """Of barriers, in the order in which they were opened, those at whose BSYNC threads from the start of these
        blocks may wait without having passed a barrier of the block or met their own threads before."""
        bare = 0
        for b in blocks:
            bare |= self.at.get(b, (0, 0))[1]
        found = set()
        for n, o in enumerate(barriers):
            inner = [x.k for x in barriers[n:]]
            if all(bare >> 16 * o.k + j & 1 for j in inner):
                found.add(o.k)
        return found

    def left(self, meeting: int, barriers: tuple[Open, ...]) -> set[int]:
        """The same for threads that stay in a region which others leave by BREAK: from its BSYNC on."""
        bare = self.bare.get(meeting, 0)
        return {o.k for o in barriers if bare >> 17 * o.k & 1}

    def _after(self, n: int) -> tuple[int, int]:
        """The union over the successors of a block's last instruction."""
        live = bare = 0
        for s in self._succs[n]:
            a, b = self.at.get(s, (0, 0))
            live |= a
            bare |= b
        return live, bare

    def _before(self, n: int, live: int, bare: int) -> tuple[int, int]:
        """The state before an instruction, from the state after it."""
        node = self._nodes.get(n)
        if node is None:
            return live, bare
        k = node.b
        if node.op == "BSYNC" and k >= 0:
            if not node.tests:
                bare &= ~(_EACH << k)  # what is ahead is reached through this one
            return live | 1 << k, bare | _ALL << 16 * k
        if node.op == "BSSY" and k >= 0 and not node.tests:
            reachable = bare & _ANY  # a BSYNC of k that is ahead belongs to the region that begins here
            for i in range(16):
                if reachable >> 17 * i & 1:
                    bare |= 1 << 16 * i + k
            return live & ~(1 << k), bare & ~(_ALL << 16 * k)
        if self._whole_block(n) and not node.tests:
            bare = 0
        return live, bare
