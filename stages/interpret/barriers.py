"""Barriers of a block and of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from stages.interpret.code import Action, Code, Step, get, put
from stages.interpret.machine import BARRIER, DONE, LEVEL, MAX_DEPTH, RUN, WAIT, Machine
from stages.interpret.rows import U64, Arr, Unsupported
from stages.interpret.warp_sync import Warp, lanes_of, release_warps, warp_operation


def barrier(code: Code, step: Step, pc: int) -> Action:
    """bar, barrier: sync, arrive, red; bar.warp.sync; barrier.cluster"""
    inst = step.inst
    mods = inst.mods
    if mods and mods[0] == "warp":
        return warp_operation(code, step, pc, inst.operands[0], lambda m, threads: None)
    if mods and mods[0] == "cluster":
        return _cluster_barrier(step, pc)
    arrive_only = "arrive" in mods
    red = next((x for x in mods if x in ("popc", "and", "or")), None)
    operands = list(inst.operands)
    dest = put(code.functions[step.function], operands.pop(0)) if red else None
    value = get(code, step.function, operands.pop()) if red else None
    number = get(code, step.function, operands[0])
    count = get(code, step.function, operands[1]) if len(operands) > 1 else None

    def run(m: Machine) -> int | None:
        idx = m.idx
        m.bar_id[idx] = lanes_of(m, number(m)).astype(np.int64)
        m.bar_count[idx] = lanes_of(m, count(m)).astype(np.int64) if count is not None else 0
        if value is not None:
            m.bar_value[idx] = lanes_of(m, value(m))
        blocks = np.unique(m.block_of[idx])
        if arrive_only:
            for b in blocks:
                mine = idx[m.block_of[idx] == b]
                k = int(m.bar_id[mine[0]])
                m.arrived[int(b), k] = m.arrived.get((int(b), k), 0) + 32 * len(np.unique(mine // 32))
            m.bar_id[idx] = -1
            release_blocks(m, blocks)
            return None
        m.status[idx] = BARRIER
        m.key[idx] = (MAX_DEPTH - m.depth) * LEVEL + pc
        release_blocks(m, blocks)
        if (m.status[idx] == RUN).all() and (m.key[idx] == m.key[idx[0]]).all():
            return None
        return -1

    def finish(m: Machine, threads: Arr) -> None:
        if dest is None:
            return
        v = m.bar_value[threads] != 0
        r = {"popc": int(v.sum()), "and": int(v.all()), "or": int(v.any())}[red or "and"]
        dest(m, np.full(len(threads), r, U64))

    FINISH[id(code), pc] = finish
    return run


FINISH: dict[tuple[int, int], Warp] = {}


def release_blocks(m: Machine, blocks: Arr) -> bool:
    """Open every barrier that is complete."""
    per = m.warps * 32
    opened = False
    for b in blocks:
        lanes = slice(int(b) * per, int(b) * per + per)
        status = m.status[lanes]
        waiting = np.flatnonzero(status == BARRIER)
        if not len(waiting):
            continue
        waiting = waiting + lanes.start
        for k in np.unique(m.bar_id[waiting]):
            here = waiting[m.bar_id[waiting] == k]
            count = int(m.bar_count[here].max())
            extra = m.arrived.get((int(b), int(k)), 0)
            if k == CLUSTER:
                continue
            if count == 0:
                live = int(np.count_nonzero(status != DONE))
                full = len(here) + extra >= live
            else:
                full = 32 * len(np.unique(here // 32)) + extra >= count and _whole_warps(m, here)
            if full:
                m.arrived.pop((int(b), int(k)), None)
                _open(m, here)
                opened = True
    return opened


def _whole_warps(m: Machine, threads: Arr) -> bool:
    """Whether all live threads of the warps have arrived."""
    lanes = (np.unique(threads // 32)[:, None] * 32 + np.arange(32)).ravel()
    return int(np.count_nonzero(m.status[lanes] != DONE)) == len(threads)


def _open(m: Machine, threads: Arr) -> None:
    """Release threads from a barrier."""
    saved = (m.idx, m.act, m.frame, m.regs, m.base, m.depth)
    keys = m.key[threads].copy()
    values = m.bar_value[threads]
    everyone = threads
    for key in np.unique(keys):
        group = everyone[keys == key]
        pc = int(key) % LEVEL
        depth = MAX_DEPTH - int(key) // LEVEL
        m.frame = m.frames[depth, m.code.steps[pc].function]
        m.regs, m.base, m.depth = m.frame.regs, m.frame.base, depth
        m.idx = m.act = group
        finish = FINISH.get((id(m.code), pc))
        if finish is not None and len(group) == len(everyone):
            finish(m, group)
        elif finish is not None:
            v = values != 0
            kept = m.bar_value[group].copy()
            m.bar_value[group] = v.all()
            finish(m, group)
            m.bar_value[group] = kept
        m.key[group] = key + 1
    m.status[threads] = RUN
    m.bar_id[threads] = -1
    m.idx, m.act, m.frame, m.regs, m.base, m.depth = saved


CLUSTER: Final = 1 << 20


def _cluster_barrier(step: Step, pc: int) -> Action:
    """barrier.cluster.arrive counts; wait blocks until all threads of the cluster have arrived"""
    arrive = step.inst.has("arrive")

    def group_of(m: Machine, block: int) -> Arr:
        g = m.geometry
        size = g.cluster[0] * g.cluster[1] * g.cluster[2]
        if g.cluster[1] == 1 and g.cluster[2] == 1:
            first = block // size * size
            return np.arange(first, first + size)
        raise Unsupported("clusters of more than one dimension")

    def run(m: Machine) -> int | None:
        for b in np.unique(m.block_of[m.idx]):
            members = group_of(m, int(b))
            key = (int(members[0]), CLUSTER)
            mine = m.idx[np.isin(m.block_of[m.idx], [b])]
            if arrive:
                m.arrived[key] = m.arrived.get(key, 0) + len(mine)
                m.wanted[mine] = U64(m.arrived.get((int(members[0]), CLUSTER + 1), 0))
            else:
                m.status[mine] = BARRIER
                m.bar_id[mine] = CLUSTER
                m.key[mine] = (MAX_DEPTH - m.depth) * LEVEL + pc
            live = int(np.count_nonzero(m.status[np.isin(m.block_of, members)] != DONE))
            if m.arrived.get(key, 0) >= live:
                m.arrived[key] = 0
                phase = (int(members[0]), CLUSTER + 1)
                m.arrived[phase] = m.arrived.get(phase, 0) + 1
            now = m.arrived.get((int(members[0]), CLUSTER + 1), 0)
            waiting = np.flatnonzero((m.status == BARRIER) & (m.bar_id == CLUSTER) & np.isin(m.block_of, members))
            free = waiting[m.wanted[waiting] < U64(now)]
            if len(free):
                m.status[free] = RUN
                m.bar_id[free] = -1
                m.key[free] += 1
        return None if arrive else -1

    return run


def release_all(m: Machine) -> bool:
    """When nothing runs: release whatever can run."""
    waiting = np.flatnonzero(m.status == WAIT)
    fired = bool(len(waiting)) and release_warps(m, waiting)
    blocks = np.unique(m.block_of[m.status == BARRIER])
    return (bool(len(blocks)) and release_blocks(m, blocks)) or fired


ACTIONS: Final[dict[str, Callable[[Code, Step, int], Action]]] = {"bar": barrier, "barrier": barrier}
