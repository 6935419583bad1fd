"""List scheduling of one block after register allocation.

The priority is the length of the critical path from an instruction to the end of the block. One instruction issues per
cycle, and the pipes are resources. There is one heap of ready instructions per pipe, and a heap of instructions whose
operands are not there yet, so a block of n instructions costs O(n log n). Instructions of equal priority keep program
order.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping

from ir_format.hazards import Access, Hazards
from ir_format.model import Inst
from stages.analysis.dependences import Physical, ReadyList, build_graph


def list_schedule(insts: list[Inst], accesses: list[Access], hazards: Hazards, begun: Mapping[int, int]) -> list[int]:
    """The new order of a block, as indices into ``insts``. ``begun``: cells whose values are under way at its start,
    and the cycles until they are there."""
    count = len(insts)
    if count < 2:
        return list(range(count))
    graph = build_graph(insts, Physical(insts, accesses, hazards), begun)
    height = graph.critical_paths()
    ready_list = ReadyList(graph)
    earliest = ready_list.earliest
    ready: dict[str, list[tuple[int, int]]] = {}
    free_at: dict[str, int] = {}
    coming: list[tuple[int, int]] = [(earliest[n], n) for n in ready_list.first()]
    heapq.heapify(coming)
    out: list[int] = []
    now = 0
    while len(out) < count:
        while coming and coming[0][0] <= now:
            _, node = heapq.heappop(coming)
            heapq.heappush(ready.setdefault(accesses[node].pipe, []), (-height[node], node))
        best_pipe = ""
        best_key = (1, 0)
        soonest = coming[0][0] if coming else -1
        for pipe, heap in ready.items():
            if not heap:
                continue
            at = free_at.get(pipe, 0)
            if at > now:
                if soonest < 0 or at < soonest:
                    soonest = at
                continue
            if heap[0] < best_key:
                best_key = heap[0]
                best_pipe = pipe
        if not best_pipe:
            now = max(now + 1, soonest)
            continue
        node = heapq.heappop(ready[best_pipe])[1]
        out.append(node)
        free_at[best_pipe] = now + accesses[node].interval
        for later in ready_list.release(node, now):
            heapq.heappush(coming, (max(earliest[later], now + 1), later))
        now += 1
    return out
