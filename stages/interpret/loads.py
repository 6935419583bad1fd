"""Loads and stores, and the memory that an access refers to."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ir_format.ptx import Addr, Reg, Vec
from stages.interpret.code import Action, Code, Step, address, get, put, space_of
from stages.interpret.machine import Machine
from stages.interpret.memory import RANK_SHIFT, WINDOWS
from stages.interpret.rows import BITS, U64, Arr, Unsupported, signed

FULL: Final = 0xFFFFFFFF


def resolve(m: Machine, space: str, a: Arr, size: int, what: str, threads: Arr) -> list[tuple[Any, Arr, Any]]:
    """The target of an access: (memory, checked byte offsets, which of the threads or all)."""
    a = np.broadcast_to(a, threads.shape)
    if space == "global":
        return [(m.heap, m.heap.offsets(a, size, what), slice(None))]
    if space in ("shared", "cluster"):
        return [(m.shared, _shared(m, a & U64(FULL), size, what, threads), slice(None))]
    if space == "local":
        return [(m.local, m.local.offsets(a & U64(FULL), size, what, threads), slice(None))]
    if space in ("const", "kparam"):
        return [
            (
                getattr(m, space),
                getattr(m, space).offsets(a & U64(FULL), size, what, np.zeros(a.shape, np.int64)),
                slice(None),
            )
        ]
    high = a >> U64(32)
    if high.size and (high == U64(0x7F00)).all():
        return [(m.heap, m.heap.offsets(a, size, what), slice(None))]
    out = []
    rest = np.ones(a.shape, np.bool_)
    for name, window in WINDOWS.items():
        here = high == U64(window)
        if here.any():
            rest &= ~here
            k = np.flatnonzero(here)
            memory, off, _ = resolve(m, name, a[k] & U64(FULL), size, what, threads[k])[0]
            out.append((memory, off, k))
    if rest.any():
        k = np.flatnonzero(rest)
        out.append((m.heap, m.heap.offsets(a[k], size, what), k))
    return out


def _shared(m: Machine, a: Arr, size: int, what: str, threads: Arr) -> Arr:
    block = m.block_of[threads]
    rank = (a >> U64(RANK_SHIFT)).astype(np.int64)
    if rank.any():
        per = m.geometry.cluster[0] * m.geometry.cluster[1] * m.geometry.cluster[2]
        block = np.where(rank > 0, block // per * per + rank - 1, block)
        if (rank > per).any():
            raise Unsupported("an address outside of the cluster")
    return m.shared.offsets(a & U64((1 << RANK_SHIFT) - 1), size, what, block)


def vector(x: Any) -> list[Any]:
    """The elements of an operand that may be a vector."""
    return list(x.elems) if isinstance(x, Vec) else [x]


def load(code: Code, step: Step, pc: int) -> Action:
    """ld, ldu"""
    inst = step.inst
    f = code.functions[step.function]
    dests = vector(inst.operands[0])
    at = inst.operands[1]
    if not isinstance(at, Addr):
        raise Unsupported(inst.opcode)
    where = address(code, step.function, at)
    space = space_of(code, step.function, at, inst)
    type_ = inst.types[-1]
    size = BITS[type_] // 8
    wide = size == 16
    unit = 8 if wide else size
    outs = [put(f, d) for d in dests]
    total = size * len(dests)
    is_signed = type_[0] == "s" and size < 8

    def run(m: Machine) -> int | None:
        threads = m.all[m.act]
        places = resolve(m, space, where(m), total, "load", threads)
        for k, out in enumerate(outs):
            if wide:
                value: Arr = np.zeros((len(threads), 2), U64)
                for memory, off, which in places:
                    value[which, 0] = memory.load(off + k * 16, 8)
                    value[which, 1] = memory.load(off + k * 16 + 8, 8)
            elif len(places) == 1:
                value = places[0][0].load(places[0][1] + k * unit, unit)
            else:
                value = np.zeros(len(threads), U64)
                for memory, off, which in places:
                    value[which] = memory.load(off + k * unit, unit)
            out(m, signed(value, 8 * size).view(U64) if is_signed else value)
        return None

    return run


def store(code: Code, step: Step, pc: int) -> Action:
    """st"""
    inst = step.inst
    at = inst.operands[0]
    if not isinstance(at, Addr):
        raise Unsupported(inst.opcode)
    sources = vector(inst.operands[1])
    where = address(code, step.function, at)
    space = space_of(code, step.function, at, inst)
    size = BITS[inst.types[-1]] // 8
    total = size * len(sources)
    reads: list[Any] = [read_wide(s) if size == 16 else get(code, step.function, s) for s in sources]

    def run(m: Machine) -> int | None:
        threads = m.all[m.act]
        for memory, off, which in resolve(m, space, where(m), total, "store", threads):
            for k, read in enumerate(reads):
                if size == 16:
                    v = np.asarray(read(m))[which]
                    memory.store(off + k * 16, 8, v[:, 0])
                    memory.store(off + k * 16 + 8, 8, v[:, 1])
                else:
                    memory.store(off + k * size, size, np.broadcast_to(read(m), threads.shape)[which])
            if m.track:
                memory.mark(off, total, pc)
        return None

    return run


def read_wide(x: Any) -> Any:
    """A reader for a 128-bit register."""
    if not isinstance(x, Reg):
        raise Unsupported("a 128-bit constant")
    i = x.index
    return lambda m: m.regs[i][m.act]
