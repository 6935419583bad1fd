"""Operations across a warp: shuffles, votes, matches, reductions, elections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ir_format.ptx import Pair, PtxInst
from stages.interpret.code import Action, Code, FunctionCode, Step, get, put
from stages.interpret.machine import Machine
from stages.interpret.rows import U64, Arr, signed
from stages.interpret.warp_sync import FULL, spread, warp_operation

Write = Callable[[Machine, Any], None]


def _results(function: FunctionCode, dest: Any) -> tuple[Write, Write]:
    """Writers for the value and the predicate of ``d|p``; an absent predicate is not written."""
    first, second = (dest.first, dest.second) if isinstance(dest, Pair) else (dest, None)
    return put(function, first), put(function, second)


def shfl(code: Code, step: Step, pc: int) -> Action:
    """shfl.sync (and the form without a mask)"""
    inst = step.inst
    f = code.functions[step.function]
    to, to_p = _results(f, inst.operands[0])
    a, b, c = (get(code, step.function, x) for x in inst.operands[1:4])
    member = inst.operands[4] if len(inst.operands) > 4 else None
    mode = next(x for x in inst.mods if x in ("up", "down", "bfly", "idx"))

    def run(m: Machine, threads: Arr) -> None:
        lane = threads % 32
        values, there, where = spread(m, threads, a(m) & U64(FULL))
        bv = (np.broadcast_to(b(m), threads.shape) & U64(31)).astype(np.int64)
        cv = np.broadcast_to(c(m), threads.shape)
        clamp = (cv & U64(31)).astype(np.int64)
        segment = ((cv >> U64(8)) & U64(31)).astype(np.int64)
        low = lane & segment
        high = low | (clamp & ~segment)
        if mode == "up":
            j = lane - bv
            valid = j >= high
        elif mode == "down":
            j = lane + bv
            valid = j <= high
        elif mode == "bfly":
            j = lane ^ bv
            valid = j <= high
        else:
            j = low | (bv & ~segment)
            valid = j <= high
        j = np.where(valid, j, lane)
        absent = ~there[where, j]
        got = np.where(absent, m.junk[threads], values[where, j])  # reading an inactive thread is undefined
        to(m, got)
        to_p(m, valid.astype(U64))

    return warp_operation(code, step, pc, member, run)


def vote(code: Code, step: Step, pc: int) -> Action:
    """vote.sync"""
    inst = step.inst
    to = put(code.functions[step.function], inst.operands[0])
    a = get(code, step.function, inst.operands[1])
    member = inst.operands[2] if len(inst.operands) > 2 else None
    mode = next(x for x in inst.mods if x in ("all", "any", "uni", "ballot"))

    def run(m: Machine, threads: Arr) -> None:
        values, there, where = spread(m, threads, a(m))
        yes = (values != 0) & there
        bits = np.uint64(1) << np.arange(32, dtype=U64)
        ballot = (yes * bits).sum(1).astype(U64)
        every = (there * bits).sum(1).astype(U64)
        result = {
            "ballot": ballot,
            "any": (ballot != 0).astype(U64),
            "all": (ballot == every).astype(U64),
            "uni": ((ballot == every) | (ballot == 0)).astype(U64),
        }[mode]
        to(m, result[where])

    return warp_operation(code, step, pc, member, run)


def match(code: Code, step: Step, pc: int) -> Action:
    """match.any and match.all"""
    inst = step.inst
    f = code.functions[step.function]
    to, to_p = _results(f, inst.operands[0])
    a = get(code, step.function, inst.operands[1])
    width = U64(FULL) if inst.types[-1] == "b32" else U64((1 << 64) - 1)
    every = inst.has("all")

    def run(m: Machine, threads: Arr) -> None:
        values, there, where = spread(m, threads, a(m) & width)
        same = (values[:, :, None] == values[:, None, :]) & there[:, :, None] & there[:, None, :]
        bits = np.uint64(1) << np.arange(32, dtype=U64)
        masks = (same * bits).sum(2).astype(U64)
        present = (there * bits).sum(1).astype(U64)
        got = masks[where, threads % 32]
        if every:
            whole = got == present[where]
            to(m, np.where(whole, got, U64(0)))
            to_p(m, whole.astype(U64))
        else:
            to(m, got)

    return warp_operation(code, step, pc, inst.operands[2], run)


def redux(code: Code, step: Step, pc: int) -> Action:
    """redux.sync"""
    inst = step.inst
    to = put(code.functions[step.function], inst.operands[0])
    a = get(code, step.function, inst.operands[1])
    mode = next(x for x in inst.mods if x in ("add", "min", "max", "and", "or", "xor"))
    type_ = inst.types[-1]
    if type_ == "f32":
        return _redux_float(code, step, pc, to, a)

    def run(m: Machine, threads: Arr) -> None:
        values, there, where = spread(m, threads, a(m) & U64(FULL))
        v = signed(values, 32) if type_ == "s32" else values.astype(np.int64)
        neutral = {"add": 0, "or": 0, "xor": 0, "and": FULL, "min": 1 << 40, "max": -(1 << 40)}[mode]
        v = np.where(there, v, neutral)
        fn = {
            "add": np.add,
            "min": np.minimum,
            "max": np.maximum,
            "and": np.bitwise_and,
            "or": np.bitwise_or,
            "xor": np.bitwise_xor,
        }[mode]
        to(m, fn.reduce(v, axis=1)[where].view(U64) & U64(FULL))

    return warp_operation(code, step, pc, inst.operands[2], run)


def _redux_float(code: Code, step: Step, pc: int, to: Any, a: Any) -> Action:
    from stages.interpret.fpu import FLOAT

    inst = step.inst
    mods = tuple(x for x in inst.mods if x in ("min", "max", "abs", "NaN", "f32"))
    pick = FLOAT["min"](PtxInst("min" if inst.has("min") else "max", mods, ("f32",), ()))

    def run(m: Machine, threads: Arr) -> None:
        values, there, where = spread(m, threads, a(m) & U64(FULL))
        first = there.argmax(1)
        r = values[np.arange(len(values)), first]
        for k in range(32):
            r = np.where(there[:, k], pick(r, values[:, k]), r)
        to(m, r[where])

    return warp_operation(code, step, pc, inst.operands[2], run)


def elect(code: Code, step: Step, pc: int) -> Action:
    """elect.sync: the lowest thread (the manual leaves the choice open; guessed)"""
    inst = step.inst
    f = code.functions[step.function]
    to, to_p = _results(f, inst.operands[0])

    def run(m: Machine, threads: Arr) -> None:
        _, there, where = spread(m, threads, np.zeros(1, U64))
        leader = there.argmax(1)[where]
        to(m, leader.astype(U64))
        to_p(m, (leader == threads % 32).astype(U64))

    return warp_operation(code, step, pc, inst.operands[1], run)


def activemask(code: Code, step: Step, pc: int) -> Action:
    """activemask: the threads that run together now"""
    to = put(code.functions[step.function], step.inst.operands[0])

    def run(m: Machine) -> int | None:
        _, there, where = spread(m, m.idx, np.zeros(1, U64), together=True)
        bits = np.uint64(1) << np.arange(32, dtype=U64)
        to(m, (there * bits).sum(1).astype(U64)[where])
        return None

    return run


ACTIONS: Final[dict[str, Callable[[Code, Step, int], Action]]] = {
    "shfl": shfl, "vote": vote, "match": match, "redux": redux, "elect": elect, "activemask": activemask,
}  # fmt: skip
