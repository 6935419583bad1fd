"""Atomics and reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ir_format.ptx import Addr, PtxInst
from stages.interpret.code import Action, Code, Step, address, get, put, space_of
from stages.interpret.floats import F64, FORMATS
from stages.interpret.fpu import FLOAT
from stages.interpret.loads import read_wide, resolve, vector
from stages.interpret.machine import Machine
from stages.interpret.memory import ranks
from stages.interpret.rows import BITS, U64, Arr, Unsupported, typed, unsigned


def update(inst: PtxInst) -> tuple[Any, str]:
    """(old, operands) -> new, and the element type, of an atomic or a reducing copy."""
    type_ = inst.types[-1]
    op = next(x for x in inst.mods if x in ("add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"))
    bits = BITS[type_]
    if op == "exch":
        return (lambda old, b: b), type_
    if op == "cas":
        return (lambda old, b, c: np.where(old == unsigned(b, bits), c, old)), type_
    if op in ("and", "or", "xor"):
        fn: Any = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[op]
        return fn, type_
    if op == "inc":
        return (lambda old, b: np.where(old >= unsigned(b, 32), U64(0), old + U64(1))), type_
    if op == "dec":
        return (lambda old, b: np.where((old == 0) | (old > unsigned(b, 32)), b, old - U64(1))), type_
    element = type_.removesuffix("x2")
    if element in FORMATS:
        mods = tuple(x for x in inst.mods if x in ("rn", "noftz", type_))
        return FLOAT[op](PtxInst(op, mods, (type_,), ())), type_
    if op == "add":
        return (lambda old, b: unsigned(old + b, bits)), type_
    pick: Any = np.minimum if op == "min" else np.maximum

    def extreme(old: Arr, b: Arr) -> Arr:
        r = pick(typed(old, type_), typed(b, type_))
        return unsigned(np.asarray(r).view(U64), bits)

    return extreme, type_


def atomic(code: Code, step: Step, pc: int) -> Action:
    """atom and red: one thread at a time if addresses collide"""
    inst = step.inst
    f = code.functions[step.function]
    operands = list(inst.operands)
    outs = [put(f, d) for d in vector(operands.pop(0))] if inst.op == "atom" else []
    at = operands.pop(0)
    if not isinstance(at, Addr):
        raise Unsupported(inst.opcode)
    where = address(code, step.function, at)
    space = space_of(code, step.function, at, inst)
    fn, type_ = update(inst)
    size = BITS[type_] // 8
    if inst.has("L2::cache_hint"):
        operands.pop()
    if size == 16:
        return _atomic128(code, step, operands, where, space, outs, inst.has("cas"))
    # The manual: additions of f32 in global memory flush subnormals, those in shared memory do not.
    flushes = type_ == "f32" and inst.has("add")
    flushed = FLOAT["add"](PtxInst("add", ("ftz", "f32"), ("f32",), ())) if flushes else fn
    double = type_ == "f64" and inst.has("add")
    count = len(vector(operands[0]))
    columns = [[get(code, step.function, vector(o)[k]) for o in operands] for k in range(count)]

    def run(m: Machine) -> int | None:
        threads = m.all[m.act]
        olds = [np.zeros(len(threads), U64) for _ in range(count)]
        for memory, off, which in resolve(m, space, where(m), size * count, "atomic", threads):
            for k, column in enumerate(columns):
                values = [np.broadcast_to(c(m), threads.shape)[which] for c in column]
                here = off + k * size
                old = np.zeros(len(here), U64)
                for group in ranks(here):
                    before = memory.load(here[group], size)
                    old[group] = before
                    new = fn(before, *[v[group] for v in values])
                    if double:
                        new = m.nan(new, F64)
                    if flushes and memory is m.heap:
                        new = flushed(before, *[v[group] for v in values])
                    memory.store(here[group], size, new)
                olds[k][which] = old
            if m.track:
                memory.mark(off, size * count, pc)
        for out, old in zip(outs, olds, strict=False):
            out(m, old)
        return None

    return run


def _atomic128(
    code: Code, step: Step, operands: list[Any], where: Any, space: str, outs: list[Any], cas: bool
) -> Action:
    reads = [read_wide(x) for x in operands]

    def run(m: Machine) -> int | None:
        threads = m.all[m.act]
        old = np.zeros((len(threads), 2), U64)
        for memory, off, which in resolve(m, space, where(m), 16, "atomic", threads):
            values = [np.asarray(r(m))[which] for r in reads]
            got = np.zeros((len(off), 2), U64)
            for group in ranks(off):
                before = np.stack([memory.load(off[group], 8), memory.load(off[group] + 8, 8)], 1)
                got[group] = before
                new = values[-1][group]
                if cas:
                    new = np.where((before == values[0][group]).all(1)[:, None], new, before)
                memory.store(off[group], 8, new[:, 0])
                memory.store(off[group] + 8, 8, new[:, 1])
            old[which] = got
        for out in outs:
            out(m, old)
        return None

    return run
