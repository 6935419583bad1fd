"""Dominators against the definition: removing the dominating block cuts every path to the other one."""

from __future__ import annotations

import random
import time

from ir_format.flow import Cfg, DominatorTree, dominators, loops


def _reverse_postorder(succs: list[tuple[int, ...]]) -> list[int]:
    seen: set[int] = set()
    order: list[int] = []
    work = [(0, 0)]
    seen.add(0)
    while work:
        pos, at = work.pop()
        if at < len(succs[pos]):
            work.append((pos, at + 1))
            to = succs[pos][at]
            if to not in seen:
                seen.add(to)
                work.append((to, 0))
        else:
            order.append(pos)
    return order[::-1]


def _graph(succs: list[tuple[int, ...]]) -> Cfg:
    preds: list[list[int]] = [[] for _ in succs]
    for pos, after in enumerate(succs):
        for to in after:
            preds[to].append(pos)
    return Cfg({}, succs, [tuple(p) for p in preds], _reverse_postorder(succs))


def _reached(succs: list[tuple[int, ...]], without: int) -> set[int]:
    seen: set[int] = set()
    work = [0] if without else []
    while work:
        pos = work.pop()
        if pos not in seen and pos != without:
            seen.add(pos)
            work.extend(succs[pos])
    return seen


def test_the_tree_agrees_with_the_definition() -> None:
    draw = random.Random(3)
    for _ in range(60):
        count = draw.randrange(1, 14)
        succs = [tuple(sorted({draw.randrange(count) for _ in range(draw.randrange(3))})) for _ in range(count)]
        graph = _graph(succs)
        tree = DominatorTree(graph, dominators(graph))
        reached = _reached(succs, -1)
        for upper in reached:
            cut = reached - _reached(succs, upper)
            assert {p for p in reached if tree.dominates(upper, p)} == cut
            assert set(tree.below(upper)) == cut and tree.below(upper)[0] == upper
        for lost in set(range(count)) - reached:
            assert not any(tree.dominates(lost, p) for p in reached)


def test_loops_of_a_long_chain_are_found_in_linear_time() -> None:
    """Each of 12,000 blocks is a loop: walking up the tree for each took 72 million steps."""
    count = 12_000
    cfg = _graph([(n, n + 1) if n + 1 < count else () for n in range(count)])
    began = time.process_time()
    assert len(loops(cfg)) == count - 1
    assert time.process_time() - began < 3
