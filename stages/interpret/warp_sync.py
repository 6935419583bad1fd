"""Threads of a warp that wait for each other: operations with a member mask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from stages.interpret.code import Action, Code, Step, get
from stages.interpret.machine import DONE, LEVEL, MAX_DEPTH, RUN, WAIT, InterpreterError, Machine
from stages.interpret.rows import U64, Arr

FULL: Final = 0xFFFFFFFF


def lanes_of(m: Machine, v: Arr) -> Arr:
    """A value for each active thread."""
    return np.broadcast_to(v, (len(m.idx),))


Warp = Callable[[Machine, Arr], None]


def _wait(m: Machine, masks: Arr, pc: int) -> Arr:
    """Threads arrive at a warp operation with their member masks; returns the threads that can continue."""
    idx = m.idx
    if len(idx) == int(np.count_nonzero(m.status != DONE)) and (masks == U64(FULL)).all():
        return idx
    m.status[idx] = WAIT
    m.key[idx] = (MAX_DEPTH - m.depth) * LEVEL + pc
    m.wanted[idx] = masks
    return _ready(m, np.unique(idx // 32), (MAX_DEPTH - m.depth) * LEVEL + pc)


def _ready(m: Machine, warps: Arr, key: int) -> Arr:
    """Waiting threads of some warps at an instruction, for which all threads of the mask have arrived."""
    lanes = warps[:, None] * 32 + np.arange(32)
    here = (m.status[lanes] == WAIT) & (m.key[lanes] == key)
    bits = np.uint64(1) << np.arange(32, dtype=U64)
    arrived = (here * bits).sum(1).astype(U64)
    live = ((m.status[lanes] != DONE) * bits).sum(1).astype(U64)
    missing = m.wanted[lanes] & live[:, None] & ~arrived[:, None]
    return np.asarray(lanes[here & (missing == 0)])


def warp_operation(code: Code, step: Step, pc: int, member: Any, run: Warp) -> Action:
    """An operation of the threads of a warp that a member mask names."""
    read = get(code, step.function, member) if member is not None else None

    def arrive(m: Machine) -> int | None:
        masks = lanes_of(m, read(m) & U64(FULL)) if read is not None else np.full(len(m.idx), FULL, U64)
        own = (masks >> (m.idx % 32).astype(U64)) & U64(1)
        if not own.all():
            raise InterpreterError(
                "undefined", "a thread that its own member mask does not name", step.inst.line, step.inst.opcode
            )
        ready = _wait(m, masks, pc)
        if len(ready) == len(m.idx) and m.status[m.idx[0]] == RUN:
            m.wanted[m.idx] = masks
            run(m, ready)
            return None
        _fire(m, ready, run, pc)
        return -1

    step.inst.row = step.inst.row  # the row stays as parsed
    PENDING[id(code), pc] = run
    return arrive


PENDING: dict[tuple[int, int], Warp] = {}


def _fire(m: Machine, ready: Arr, run: Warp, pc: int) -> None:
    """Execute a warp operation for threads that waited, and release them."""
    if not len(ready):
        return
    key = int(m.key[ready[0]])
    depth = MAX_DEPTH - key // LEVEL
    function = m.code.steps[pc].function
    saved = (m.idx, m.act, m.frame, m.regs, m.base, m.depth)
    m.frame = m.frames[depth, function]
    m.regs, m.base, m.depth = m.frame.regs, m.frame.base, depth
    m.idx = m.act = ready
    run(m, ready)
    m.status[ready] = RUN
    m.key[ready] = key + 1
    m.idx, m.act, m.frame, m.regs, m.base, m.depth = saved


def release_warps(m: Machine, ended: Arr) -> bool:
    """Threads have ended: release others that waited for them."""
    warps = np.unique(ended // 32)
    lanes = (warps[:, None] * 32 + np.arange(32)).ravel()
    waiting = lanes[m.status[lanes] == WAIT]
    fired = False
    for key in np.unique(m.key[waiting]):
        ready = _ready(m, np.unique(waiting[m.key[waiting] == key] // 32), int(key))
        if len(ready):
            pc = int(key) % LEVEL
            _fire(m, ready, PENDING[id(m.code), pc], pc)
            fired = True
    return fired


def spread(m: Machine, threads: Arr, v: Arr, together: bool = False, whole: bool = False) -> tuple[Arr, Arr, Arr]:
    """Values of the given threads as rows of 32 lanes, which lanes are present, and each thread's row. Threads of a
    warp with different member masks are separate rows, because each mask is an operation of its own. ``together``: one
    row per warp for any masks. ``whole``: the operation needs all 32 threads; the values of absent ones are
    undefined."""
    v = np.broadcast_to(v, threads.shape)
    group = threads // 32
    if not together:
        group = (group.astype(U64) << U64(32)) | m.wanted[threads]
    warps, where = np.unique(group, return_inverse=True)
    out = np.zeros((len(warps), 32), U64)
    if whole and len(threads) != out.size:
        out[:] = m.junk[(warps >> U64(32)).astype(np.int64)[:, None] * 32 + np.arange(32)]
    there = np.zeros((len(warps), 32), np.bool_)
    out[where, threads % 32] = v
    there[where, threads % 32] = True
    return out, there, where
