"""wmma: fragments loaded from, multiplied, and stored to matrices in memory.

The layout of fragments is not documented, so any layout is right. Here elements follow one another in row-major order
through the elements of a register, the registers of a thread, the threads of the warp; if fragments have more room than
the matrix has elements, the elements repeat.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ir_format.ptx import Addr, PtxInst
from ir_format.ptx_types import TYPE_BITS
from stages.interpret import floats
from stages.interpret.code import Action, Code, Step, address, get, put, space_of
from stages.interpret.floats import FORMATS, decode, narrow
from stages.interpret.loads import resolve
from stages.interpret.machine import Machine
from stages.interpret.matrix import inexact, numbers
from stages.interpret.rows import U64, Arr, Unsupported, bits_of, rounding
from stages.interpret.tiles import registers
from stages.interpret.warp_sync import spread, warp_operation


def _dims(inst: PtxInst) -> tuple[int, int, int]:
    found = next((re.fullmatch(r"m(\d+)n(\d+)k(\d+)", x) for x in inst.mods if x[0] == "m" and x[1:2].isdigit()), None)
    if found is None:
        raise Unsupported(inst.opcode)
    m, n, k = (int(x) for x in found.groups())
    return m, n, k


def _extent(matrix: str, dims: tuple[int, int, int]) -> tuple[int, int]:
    m, n, k = dims
    return {"a": (m, k), "b": (k, n)}.get(matrix, (m, n))


def _layouts(inst: PtxInst) -> list[str]:
    return [x for x in inst.mods if x in ("row", "col")]


def move(code: Code, step: Step, pc: int) -> Action:
    """wmma.load and wmma.store"""
    inst = step.inst
    loads = inst.has("load")
    matrix = next(x for x in inst.mods if x in ("a", "b", "c", "d"))
    rows, cols = _extent(matrix, _dims(inst))
    operands = list(inst.operands)
    fragment = registers(operands.pop(0 if loads else 1))
    at = operands.pop(0)
    if not isinstance(at, Addr):
        raise Unsupported(inst.opcode)
    by_row = _layouts(inst)[0] == "row"
    where_is = address(code, step.function, at)
    space = space_of(code, step.function, at, inst)
    stride = get(code, step.function, operands[0]) if operands else None
    natural = cols if by_row else rows
    bits = TYPE_BITS[inst.types[0]]
    per = 64 // bits if bits == 64 else 32 // bits
    n = len(fragment)
    outs = [put(code.functions[step.function], x) for x in fragment] if loads else []
    reads = [] if loads else [get(code, step.function, x) for x in fragment]
    size = max(bits // 8, 1)

    def run(m: Machine, threads: Arr) -> None:
        base, _, where = spread(m, threads, np.broadcast_to(where_is(m), threads.shape))
        first = base.max(axis=1)[where]  # all threads give the same address (documented)
        step_ = np.broadcast_to(stride(m) if stride is not None else np.array([natural], U64), threads.shape).astype(
            np.int64
        )
        lane = threads % 32
        values = [np.broadcast_to(r(m), threads.shape) for r in reads]
        for k in range(n):
            word: Any = np.zeros(len(threads), U64)
            for i in range(per):
                place = (lane * n + k) * per + i
                element = place % (rows * cols)
                row, col = element // cols, element % cols
                index = (row * step_ + col) if by_row else (col * step_ + row)
                a = first + (index * bits // 8).astype(U64)
                shift = (index * bits % 8).astype(U64) if bits < 8 else np.zeros(len(threads), U64)
                if loads:
                    got = np.zeros(len(threads), U64)
                    for memory, off, which in resolve(m, space, a, size, "matrix load", threads):
                        got[which] = memory.load(off, size)
                    word = word | (((got >> shift) & U64((1 << bits) - 1)) << U64(i * bits))
                    continue
                live = place < rows * cols
                for memory, off, which in resolve(m, space, a, size, "matrix store", threads):
                    keep = live[which]
                    value = (values[k][which] >> U64(i * bits)) & U64((1 << bits) - 1)
                    memory.store(off[keep], size, value[keep])
                    if m.track:
                        memory.mark(off[keep], size, pc)
            if loads:
                outs[k](m, word)

    return warp_operation(code, step, pc, None, run)


def _gather(m: Machine, threads: Arr, reads: list[Any], rows: int, cols: int, bits: int) -> Arr:
    """The matrix in a warp's fragments: element bits (warps, rows, cols)."""
    per = max(32 // bits, 1)
    words = np.stack([spread(m, threads, r(m), whole=True)[0] for r in reads], axis=2)  # (warps, 32, registers)
    shifts = (np.arange(per) * bits).astype(U64)
    flat = ((words[..., None] >> shifts) & U64((1 << bits) - 1)).reshape(words.shape[0], -1)
    return np.asarray(flat[:, : rows * cols].reshape(-1, rows, cols))


def multiply(code: Code, step: Step, pc: int) -> Action:
    """wmma.mma"""
    inst = step.inst
    dims = _dims(inst)
    types = inst.types
    td, tc = types[0], types[-1]
    ta, tb = (types[1], types[2]) if len(types) == 4 else ("f16", "f16")
    fragments = [registers(x) for x in inst.operands[:4]]
    outs = [put(code.functions[step.function], x) for x in fragments[0]]
    reads = [[get(code, step.function, x) for x in group] for group in fragments[1:]]
    operation = next((x for x in inst.mods if x in ("xor", "and")), None)
    rows, cols = dims[0], dims[1]
    mode = rounding(inst)
    per = max(32 // TYPE_BITS[td], 1)
    n = len(outs)

    def run(m: Machine, threads: Arr) -> None:
        a, b, c = (
            numbers(_gather(m, threads, group, *_extent(matrix, dims), TYPE_BITS[t]), t)
            for group, matrix, t in zip(reads, "abc", (ta, tb, tc), strict=True)
        )
        if td == "f64":
            total = np.array(c)
            for k in range(dims[2]):  # in the order of k, rounded at each step (the order is not documented)
                x, y = np.broadcast_arrays(a[:, :, k, None], b[:, None, k, :])
                total = decode(
                    floats.fma(x.copy().view(U64), y.copy().view(U64), total.view(U64), FORMATS["f64"], mode),
                    FORMATS["f64"],
                )
        else:
            if operation == "xor":
                product = (a[:, :, :, None] != b[:, None, :, :]).sum(2).astype(np.int64)
            else:
                product = inexact(m, a @ b, a, b)
            total = product + c
        if td == "s32":
            bits = bits_of(np.clip(total, -(1 << 31), (1 << 31) - 1) if inst.has("satfinite") else total, 32)
        else:
            bits = narrow(total, FORMATS[td])
            if td == "f64":
                bits = m.nan(bits, FORMATS[td])
        _, _, where = spread(m, threads, np.zeros(1, U64))
        flat = bits.reshape(bits.shape[0], -1)
        lane = threads % 32
        for k, out in enumerate(outs):
            word: Any = U64(0)
            for i in range(per):
                element = ((lane * n + k) * per + i) % (rows * cols)
                word = word | (flat[where, element] << U64(i * TYPE_BITS[td] % 64))
            out(m, word)

    return warp_operation(code, step, pc, None, run)


def wmma(code: Code, step: Step, pc: int) -> Action:
    """wmma.load, wmma.store, wmma.mma"""
    return multiply(code, step, pc) if step.inst.has("mma") else move(code, step, pc)


ACTIONS: Final[dict[str, Callable[[Code, Step, int], Action]]] = {"wmma": wmma}
