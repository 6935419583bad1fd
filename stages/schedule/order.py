"""List scheduling of one block: the longest chain of latencies first, one instruction a cycle, pipes as resources.

The walk keeps one heap of ready instructions per pipe and a heap of those whose operands are still under way, so a
block of n instructions costs n log n. Long latencies come first because their chains are long; their users come last
because they are not ready. Ties keep program order.
"""

from __future__ import annotations

import heapq

from ir_format.hazards import Access, Hazards
from ir_format.model import Inst
from stages.analysis.dependences import Front, Physical, build_graph


def order_block(insts: list[Inst], accesses: list[Access], hazards: Hazards) -> list[int]:
    """The new order, as indices into ``insts``."""
    count = len(insts)
    if count < 2:
        return list(range(count))
    graph = build_graph(insts, Physical(insts, accesses, hazards))
    height = graph.heights()
    front = Front(graph)
    earliest = front.earliest
    ready: dict[str, list[tuple[int, int]]] = {}
    free_at: dict[str, int] = {}
    coming: list[tuple[int, int]] = [(0, n) for n in front.first()]
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
        for later in front.release(node, now):
            heapq.heappush(coming, (max(earliest[later], now + 1), later))
        now += 1
    return out
