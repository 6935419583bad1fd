"""The segment tree used for spilling, against a list."""

from __future__ import annotations

import random

from stages.regalloc.load_tree import LoadTree


def test_range_updates_and_queries_match_a_list() -> None:
    draw = random.Random(1)
    for _ in range(60):
        values = [draw.randrange(-5, 9) for _ in range(draw.randrange(1, 70))]
        tree = LoadTree(values)
        for _ in range(40):
            start = draw.randrange(len(values))
            stop = draw.randrange(start + 1, len(values) + 1)
            if draw.random() < 0.5:
                amount = draw.randrange(-6, 7)
                tree.add(start, stop, amount)
                values[start:stop] = [v + amount for v in values[start:stop]]
            else:
                assert tree.most(start, stop) == max(values[start:stop])


def test_an_empty_range_changes_nothing() -> None:
    tree = LoadTree([3, 1])
    tree.add(1, 1, 5)
    assert tree.most(0, 2) == 3
