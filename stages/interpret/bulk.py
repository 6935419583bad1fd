"""Bulk copies, and stores and reductions that arrive at a barrier object. All are done at once: the manual allows any
time before the wait."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ir_format.ptx import Addr, PtxInst
from stages.interpret.atomics import update
from stages.interpret.code import Action, Code, Step, address, get
from stages.interpret.loads import resolve, vector
from stages.interpret.machine import InterpreterError, Machine
from stages.interpret.mbarrier import State
from stages.interpret.memory import RANK_SHIFT, ranks
from stages.interpret.rows import BITS, U64, Arr, Unsupported, unsigned

_SPACE: Final = {"global": "global", "shared": "shared", "shared::cta": "shared", "shared::cluster": "cluster"}


def arrived(m: Machine, step: Step, where: Arr, counts: Arr, threads: Arr, space: str) -> None:
    """Bytes arrive at barrier objects."""
    off = np.zeros(len(threads), np.int64)
    for memory, offsets, which in resolve(m, space, where, 8, "mbarrier", threads):
        if memory is not m.shared:
            raise Unsupported("an mbarrier outside of shared memory")
        off[which] = offsets
    for at, count in zip(off, counts, strict=True):
        state: State | None = m.barriers.get(int(at))
        if state is None:
            raise InterpreterError(
                "undefined", "an mbarrier that was not initialised", step.inst.line, step.inst.opcode
            )
        state.tx -= int(count)
        state.advance()


def _bytes(m: Machine, space: str, a: int, size: int, thread: Arr, what: str) -> tuple[Any, slice]:
    """The memory and span of bytes of one thread's copy; both ends are checked."""
    memory, off, _ = resolve(m, space, np.array([a], U64), 16, what, thread)[0]
    resolve(m, space, np.array([a + size - 16], U64), 16, what, thread)
    return memory, slice(int(off[0]), int(off[0]) + size)


def copy(code: Code, step: Step, pc: int) -> Action:
    """cp.async.bulk and cp.reduce.async.bulk: between global memory and shared memory of a block or its cluster"""
    inst = step.inst
    spaces = [x for x in inst.mods if x in _SPACE][:2]
    to_space, from_space = _SPACE[spaces[0]], _SPACE[spaces[1]]
    operands = list(inst.operands)
    to, frm = operands[0], operands[1]
    if not (isinstance(to, Addr) and isinstance(frm, Addr)):
        raise Unsupported(inst.opcode)
    get_to, get_from = address(code, step.function, to), address(code, step.function, frm)
    size_of = get(code, step.function, operands[2])
    rest = operands[5 if inst.has("ignore_oob") else 3 :]  # counts of bytes that may lie outside: they are copied
    bar = rest.pop(0) if inst.has("mbarrier::complete_tx::bytes") else None
    barrier = address(code, step.function, bar) if isinstance(bar, Addr) else None
    several = any(x.startswith("multicast::cluster") for x in inst.mods)
    targets = get(code, step.function, rest.pop(0)) if several else None
    width = 32 if inst.has("multicast::cluster::32b") else 16
    if inst.has("L2::cache_hint"):
        rest.pop(0)
    lanes = get(code, step.function, rest.pop(0)) if inst.has("cp_mask") else None
    reduce = _reduction(inst)

    def run(m: Machine) -> int | None:
        threads = m.all[m.act]
        a, b, n = (np.broadcast_to(x(m), threads.shape) for x in (get_to, get_from, size_of))
        masks = np.broadcast_to(targets(m), threads.shape) if targets is not None else None
        chosen = np.broadcast_to(lanes(m), threads.shape) if lanes is not None else None
        bars = np.broadcast_to(barrier(m), threads.shape) if barrier is not None else None
        for k in range(len(threads)):
            size = int(n[k]) & 0xFFFFFFFF
            if size == 0 or size % 16:
                raise InterpreterError("undefined", f"a bulk copy of {size} bytes", inst.line, inst.opcode)
            one = threads[k : k + 1]
            source, span = _bytes(m, from_space, int(b[k]), size, one, "copy")
            data = source.data[span].copy()
            ends = [int(a[k])] if masks is None else [in_block(m, int(a[k]), r) for r in bits(int(masks[k]), width)]
            for j, end in enumerate(ends):
                dest, out = _bytes(m, to_space, end, size, one, "copy")
                if reduce is not None:
                    dest.data[out] = reduce(dest.data[out], data)
                elif chosen is not None:  # bytes of each 16 that the mask names
                    keep = np.resize(((int(chosen[k]) >> np.arange(16)) & 1).astype(np.bool_), size)
                    dest.data[out] = np.where(keep, data, dest.data[out])
                else:
                    dest.data[out] = data
                if m.track:
                    dest.mark(np.arange(out.start, out.stop), 1, pc)
                if bars is not None:
                    at = int(bars[k]) if masks is None else in_block(m, int(bars[k]), bits(int(masks[k]), width)[j])
                    arrived(
                        m,
                        step,
                        np.array([at], U64),
                        np.array([size]),
                        one,
                        "cluster" if to_space == "cluster" else "shared",
                    )
        return None

    return run


def bits(mask: int, width: int = 16) -> list[int]:
    """The blocks that a mask of this many bits names."""
    return [r for r in range(width) if mask >> r & 1]


def in_block(m: Machine, a: int, rank: int) -> int:
    """The same offset in shared memory of another block of the cluster."""
    return (a & (1 << RANK_SHIFT) - 1) | (rank + 1) << RANK_SHIFT


def _reduction(inst: PtxInst) -> Any:
    """A function from the bytes of destination and source to bytes of the result, for a reducing copy."""
    if not inst.has("reduce"):
        return None
    fn, type_ = update(inst)
    view = {2: np.uint16, 4: np.uint32, 8: np.uint64}[BITS[type_] // 8]

    def reduce(old: Arr, new: Arr) -> Arr:
        a, b = (np.ascontiguousarray(x).view(view).astype(U64) for x in (old, new))
        return np.asarray(np.asarray(fn(a, b)).astype(view).view(np.uint8))

    return reduce


def remote(code: Code, step: Step, pc: int) -> Action:
    """st.async and red.async: to shared memory of the cluster, with bytes that arrive at a barrier object there; or to
    global memory"""
    inst = step.inst
    operands = list(inst.operands)
    to = operands[0]
    assert isinstance(to, Addr)
    where = address(code, step.function, to)
    values = [get(code, step.function, x) for x in vector(operands[1])]
    barrier = address(code, step.function, operands[2]) if len(operands) > 2 and isinstance(operands[2], Addr) else None
    size = BITS[inst.types[-1]] // 8
    fn = update(inst)[0] if inst.op == "red" else None
    space = "cluster" if barrier is not None else "global"

    def run(m: Machine) -> int | None:
        threads = m.all[m.act]
        total = size * len(values)
        for memory, off, which in resolve(m, space, where(m), total, "store", threads):
            for k, read in enumerate(values):
                v = unsigned(np.broadcast_to(read(m), threads.shape)[which], 8 * size)
                here = off + k * size
                for group in ranks(here):
                    new = v[group] if fn is None else fn(memory.load(here[group], size), v[group])
                    memory.store(here[group], size, new)
            if m.track:
                memory.mark(off, total, pc)
        if barrier is not None:
            arrived(
                m, step, np.broadcast_to(barrier(m), threads.shape), np.full(len(threads), total), threads, "cluster"
            )
        return None

    return run


def zeros(code: Code, step: Step, pc: int) -> Action:
    """st.bulk: set bytes of shared memory to zero"""
    inst = step.inst
    to = inst.operands[0]
    assert isinstance(to, Addr)
    where, size_of = address(code, step.function, to), get(code, step.function, inst.operands[1])

    def run(m: Machine) -> int | None:
        threads = m.all[m.act]
        a, n = (np.broadcast_to(x(m), threads.shape) for x in (where, size_of))
        for k in range(len(threads)):
            size = int(n[k])
            if size % 8:
                raise InterpreterError("undefined", f"st.bulk of {size} bytes", inst.line, inst.opcode)
            if not size:
                continue
            memory, off, _ = resolve(
                m,
                "shared" if any(x.startswith("shared") for x in inst.mods) else "generic",
                a[k : k + 1],
                8,
                "store",
                threads[k : k + 1],
            )[0]
            resolve(
                m,
                "generic" if not any(x.startswith("shared") for x in inst.mods) else "shared",
                a[k : k + 1] + U64(size - 8),
                8,
                "store",
                threads[k : k + 1],
            )
            memory.data[int(off[0]) : int(off[0]) + size] = 0
            if m.track:
                memory.mark(np.arange(int(off[0]), int(off[0]) + size), 1, pc)
        return None

    return run
