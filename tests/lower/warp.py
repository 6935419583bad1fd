"""A model of a warp on a control-flow graph: only BSSY, BSYNC, BREAK and EXIT.

Groups of threads diverge at branches and converge only at BSYNC. BSSY *sets* the barrier to the threads that execute
it, for each of them: separate groups may use one barrier, as in ptxas's code (and in the simulator). A seed determines
the order in which groups run.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from ir_format.flow import falls_through, jump_targets
from ir_format.model import INV, Function, Label, Reg


class Stuck(Exception):
    """Every thread waits."""


class Group:
    def __init__(self, threads: frozenset[int], pos: int, at: int = 0) -> None:
        self.threads = threads
        self.pos = pos
        self.at = at
        self.waits = -1


def run_warp(
    fn: Function, threads: int, decide: Callable[[int, int, int], int], seed: int, original: set[int], limit: int
) -> tuple[dict[int, list[int]], list[tuple[int, frozenset[int]]]]:
    """Run until all threads exit or have visited ``limit`` original blocks. ``decide(thread, block id, visit)``
    picks a successor of a branch, 0 where its predicate holds. Returns the path of every thread over ``original``
    block ids, and for each entry of a block the group that entered."""
    rng = random.Random(seed)
    index = {b.id: i for i, b in enumerate(fn.blocks)}
    groups = [Group(frozenset(range(threads)), 0)]
    barrier: dict[int, dict[int, set[int]]] = {}  # register -> thread -> the threads it waits for
    paths: dict[int, list[int]] = {t: [] for t in range(threads)}
    visits: dict[tuple[int, int], int] = {}
    log: list[tuple[int, frozenset[int]]] = []
    gone: set[int] = set()

    def enter(g: Group) -> None:
        block = fn.blocks[g.pos]
        if block.id in original:
            log.append((block.id, g.threads))
            for t in g.threads:
                paths[t].append(block.id)
                visits[(t, block.id)] = visits.get((t, block.id), 0) + 1

    def release(b: int) -> None:
        sets = barrier.get(b, {})
        waiting = [g for g in groups if g.waits == b]
        have = {t for g in waiting for t in g.threads}
        free = {t for t in have if sets.get(t, set()) <= have | gone}
        for place in sorted({(g.pos, g.at) for g in waiting}):
            merged = frozenset(t for g in waiting if (g.pos, g.at) == place for t in g.threads & free)
            if merged:
                for g in waiting:
                    if (g.pos, g.at) == place:
                        g.threads -= free
                        if not g.threads:
                            groups.remove(g)
                groups.append(Group(merged, place[0], place[1] + 1))

    enter(groups[0])
    while groups:
        ready = [g for g in groups if g.waits < 0]
        if not ready:
            raise Stuck(f"groups {[(sorted(g.threads), fn.blocks[g.pos].id) for g in groups]}, barriers {barrier}")
        g = rng.choice(ready)
        if any(len(paths[t]) > limit for t in g.threads):
            done = frozenset(t for t in g.threads if len(paths[t]) > limit)
            gone |= done
            g.threads -= done
            if not g.threads:
                groups.remove(g)
            for b in list(barrier):
                release(b)
            continue
        block = fn.blocks[g.pos]
        if g.at >= len(block.insts):
            g.pos += 1
            g.at = 0
            enter(g)
            continue
        inst = block.insts[g.at]
        reg = next((o.num for o in (*inst.dsts, *inst.srcs) if type(o) is Reg and o.file == "B"), -1)
        if inst.op == "BSSY":
            barrier.setdefault(reg, {}).update((t, set(g.threads)) for t in g.threads)
            g.at += 1
        elif inst.op == "BSYNC":
            g.waits = reg
            release(reg)
        elif inst.op == "BREAK":
            for members in barrier.get(reg, {}).values():
                members -= g.threads
            g.at += 1
            release(reg)
        elif inst.op == "EXIT":
            gone |= g.threads
            groups.remove(g)
            for b in list(barrier):
                release(b)
        elif inst.op in ("BRA", "BRX"):
            targets = [index[t] for t in jump_targets(inst)]
            if falls_through(block):
                targets.append(g.pos + 1)
            if inst.guard is not None and inst.guard.flags & INV:  # decisions are about the predicate
                targets.reverse()
            groups.remove(g)
            split: dict[int, set[int]] = {}
            for t in sorted(g.threads):
                n = len(targets)
                pick = 0 if n == 1 else decide(t, block.id, visits.get((t, block.id), 0)) % n
                split.setdefault(targets[pick], set()).add(t)
            for to in split:
                new = Group(frozenset(split[to]), to)
                groups.append(new)
                enter(new)
        else:
            g.at += 1
    return paths, log


def label(block: int) -> Label:
    return Label("L", block)
