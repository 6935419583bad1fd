"""Branches, calls and returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from ir_format.ptx import CallTarget, LabelList, LabelRef, Operand, PtxParam, Reg, Sym, Vec
from stages.interpret.barriers import release_blocks
from stages.interpret.code import FUNCTION_BASE, VARIADIC, Action, Code, Step, get
from stages.interpret.machine import DONE, LEVEL, MAX_DEPTH, InterpreterError, Machine
from stages.interpret.rows import U64, Arr, Unsupported
from stages.interpret.warp_sync import FULL, lanes_of, release_warps

# --------------------------------------------------------------------------- branches and calls


def branch(code: Code, step: Step, pc: int) -> Action:
    """bra"""
    target = step.inst.operands[0]
    assert isinstance(target, LabelRef)
    to = code.functions[step.function].labels[target.index]
    return lambda m: to


def branch_table(code: Code, step: Step, pc: int) -> Action:
    """brx.idx"""
    index, labels = step.inst.operands[:2]
    assert isinstance(labels, LabelList)
    f = code.functions[step.function]
    targets = np.array([f.labels[x] for x in labels.labels], np.int64)
    read = get(code, step.function, index)

    def run(m: Machine) -> int | None:
        k = lanes_of(m, read(m) & U64(FULL)).astype(np.int64)
        if (k >= len(targets)).any():
            raise InterpreterError("undefined", "branch index beyond the table", step.inst.line, step.inst.opcode)
        m.key[m.idx] = (MAX_DEPTH - m.depth) * LEVEL + targets[k]
        return -1

    return run


def leave(code: Code, step: Step, pc: int) -> Action:
    """ret and exit"""
    inst = step.inst

    def run(m: Machine) -> int | None:
        if inst.op == "exit" or m.depth == 0:
            m.status[m.idx] = DONE
            release_warps(m, m.idx)
            release_blocks(m, np.unique(m.block_of[m.idx]))
            return -1
        frame = m.frame
        m.sp[m.idx] = m.base[m.idx]
        back = frame.back[m.idx]
        site = frame.site[m.idx]
        for place in np.unique(site):
            call = code.steps[int(place)]
            threads = m.idx[site == place]
            _return(m, code, step.function, call, threads)
        m.key[m.idx] = (MAX_DEPTH - m.depth + 1) * LEVEL + back
        return -1

    return run


def _return(m: Machine, code: Code, callee: int, call: Step, threads: Arr) -> None:
    """Copy results of a call to the caller's registers or parameter variables."""
    f = code.functions[callee]
    target = call.inst.operands[0]
    assert isinstance(target, CallTarget)
    outer = m.frames[m.depth - 1, call.function]
    inner_base = m.base
    for formal, actual in _elements(f.function.rets, target.rets):
        if formal.space == "reg":
            value: Any = m.regs[formal.reg][threads]
        else:
            value = (
                m.local.load(
                    m.local.offsets(
                        inner_base[threads] + U64(f.places[formal.name].offset), formal.size, "return", threads
                    ),
                    formal.size,
                )
                if not formal.dims and formal.size <= 8
                else None
            )
        if isinstance(actual, Reg):
            r = outer.regs[actual.index]
            if r is m.junk or r is m.junk_bits:
                r = outer.regs[actual.index] = r.copy()
            r[threads] = value
        elif isinstance(actual, Sym):
            at = outer.base[threads] + U64(code.place(call.function, actual.name).offset)
            _copy(m, inner_base[threads] + U64(f.places[formal.name].offset), at, formal.size, threads)


def _copy(m: Machine, source: Arr, dest: Arr, size: int, threads: Arr) -> None:
    """Copy bytes of local memory."""
    a = m.local.offsets(source, 1, "argument", threads)
    b = m.local.offsets(dest, 1, "argument", threads)
    span = np.arange(size)
    m.local.data[b[:, None] + span] = m.local.data[a[:, None] + span]


def call(code: Code, step: Step, pc: int) -> Action:
    """call: direct, or by address"""
    target = step.inst.operands[0]
    assert isinstance(target, CallTarget)
    if isinstance(target.target, Sym):
        name = target.target.name
        if name not in code.by_name:
            return _system_call(code, step, name, target)
        k = code.by_name[name]
        return lambda m: _enter(m, code, step, pc, k, target, m.idx)
    read = get(code, step.function, target.target)

    def indirect(m: Machine) -> int | None:
        where = lanes_of(m, read(m)).astype(np.int64)
        threads = m.idx
        for value in np.unique(where):
            k, rest = divmod(int(value) - FUNCTION_BASE, 16)
            if rest or not 0 <= k < len(code.functions):
                raise InterpreterError("undefined", "call of what is no function", step.inst.line, step.inst.opcode)
            group = threads[where == value]
            m.idx = m.act = group
            _enter(m, code, step, pc, k, target, group)
        return -1

    return indirect


def _elements(formals: Sequence[PtxParam], actuals: Sequence[Operand]) -> Iterator[tuple[PtxParam, Operand]]:
    """Parameters and their arguments; registers of vector types element by element."""
    for formal, actual in zip(formals, actuals, strict=False):
        if isinstance(actual, Vec) and formal.space == "reg" and formal.vec == len(actual.elems):
            size = formal.size // formal.vec
            yield from (
                (PtxParam(formal.name, formal.type, size, size, space="reg", reg=formal.reg + k), x)
                for k, x in enumerate(actual.elems)
            )
        else:
            yield formal, actual


def _enter(m: Machine, code: Code, step: Step, pc: int, k: int, target: CallTarget, threads: Arr) -> int:
    f = code.functions[k]
    depth = m.depth + 1
    if depth >= MAX_DEPTH:
        raise InterpreterError("limit", "calls nested too deep", step.inst.line, step.inst.opcode)
    values: list[tuple[Any, Any, Any]] = []
    sizes: dict[str, int] = {}
    for formal, actual in _elements(f.function.params, target.args):
        place = code.place(step.function, actual.name) if isinstance(actual, Sym) else None
        if place is not None and place.space == "local":
            if not formal.size and place.size > VARIADIC:
                raise Unsupported(f"an argument list of {place.size} bytes")
            values.append((formal, None, np.asarray(m.base[threads] + U64(place.offset))))
            sizes[formal.name] = formal.size or place.size
        else:
            values.append((formal, np.broadcast_to(get(code, step.function, actual)(m), threads.shape), None))
    frame = m.frames.get((depth, k))
    if frame is None:
        frame = m.frames[depth, k] = m.new_frame(f)
    frame.base[threads] = m.sp[threads]
    m.sp[threads] += U64(f.frame)
    if (m.sp[threads] > U64(m.local.size)).any():
        raise InterpreterError("limit", "local memory is used up by calls", step.inst.line, step.inst.opcode)
    frame.back[threads] = pc + 1
    frame.site = frame.site.copy() if frame.site.base is not None else frame.site
    frame.site[threads] = pc
    for formal, value, source in values:
        if formal.space == "reg":
            r = frame.regs[formal.reg]
            if r is m.junk or r is m.junk_bits:
                r = frame.regs[formal.reg] = r.copy()
            if source is not None:
                value = m.local.load(m.local.offsets(source, formal.size, "argument", threads), formal.size)
            width = f.widths[formal.reg]
            r[threads] = value & U64((1 << width) - 1)
            continue
        at = frame.base[threads] + U64(f.places[formal.name].offset)
        if source is not None:
            _copy(m, source, at, sizes[formal.name], threads)
        else:
            m.local.store(m.local.offsets(at, formal.size, "argument", threads), formal.size, value)
    m.key[threads] = (MAX_DEPTH - depth) * LEVEL + f.start
    return -1


def _system_call(code: Code, step: Step, name: str, target: CallTarget) -> Action:
    """Functions of the driver: printf prints nothing and returns 0."""
    if name != "vprintf":
        raise Unsupported(f"call of '{name}'")
    result = target.rets[0] if target.rets else None

    def run(m: Machine) -> int | None:
        if isinstance(result, Sym):
            at = m.base[m.idx] + U64(code.place(step.function, result.name).offset)
            m.local.store(m.local.offsets(at, 4, "return", m.idx), 4, np.zeros(len(m.idx), U64))
        return None

    return run


def trap(code: Code, step: Step, pc: int) -> Action:
    """trap"""

    def run(m: Machine) -> int | None:
        raise InterpreterError("trap", f"trap by {m.name_of(int(m.idx[0]))}", step.inst.line, step.inst.opcode)

    return run


ACTIONS: Final[dict[str, Callable[[Code, Step, int], Action]]] = {
    "bra": branch, "brx": branch_table, "call": call, "ret": leave, "exit": leave, "trap": trap,
}  # fmt: skip
