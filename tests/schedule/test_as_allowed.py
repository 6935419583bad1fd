"""An order that --limit truncates: every prefix of its rewrites keeps the dependences."""

from __future__ import annotations

import random
from itertools import pairwise

from stages.analysis.dependences import Graph, ReadyList, as_allowed


def limited(order: list[int], limit: int) -> tuple[list[int], int]:
    """The order after this many rewrites, and how many were requested."""
    asked = 0

    def allow() -> bool:
        nonlocal asked
        asked += 1
        return asked <= limit

    return as_allowed(order, allow), asked


def test_every_limit_keeps_the_dependences_and_they_grow_to_the_order() -> None:
    rng = random.Random(3)
    for _ in range(20):
        count = 12
        graph = Graph(count)
        edges = [(a, b) for b in range(count) for a in range(b) if rng.random() < 0.15]
        for a, b in edges:
            graph.add(a, b, 1)
        ready, order = ReadyList(graph), []
        free = ready.first()
        while free:
            node = free.pop(rng.randrange(len(free)))
            order.append(node)
            free += ready.release(node, 0)
        whole, rewrites = limited(order, count)
        assert whole == order and limited(order, 0)[0] == list(range(count))
        seen = []
        for limit in range(rewrites + 1):
            got, _ = limited(order, limit)
            assert sorted(got) == list(range(count)) and all(got.index(a) < got.index(b) for a, b in edges)
            seen.append(got)
        assert all(a != b for a, b in pairwise(seen)) and seen[-1] == order
