"""Tiles of 8x8 matrices in shared memory and across a warp: ldmatrix, stmatrix, movmatrix. Layouts: the PTX ISA
manual."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ir_format.ptx import Addr, Vec
from stages.interpret.code import Action, Code, Step, address, get, put
from stages.interpret.machine import Machine
from stages.interpret.rows import U64, Arr
from stages.interpret.warp_sync import spread, warp_operation


def registers(x: Any) -> list[Any]:
    """The registers of a fragment."""
    return list(x.elems) if isinstance(x, Vec) else [x]


def _shared_rows(m: Machine, threads: Arr, a: Arr, there: Arr, where: Arr, matrices: int, what: str) -> tuple[Arr, Arr]:
    """Byte offsets of the rows of each matrix: (warps, matrices, 8)."""
    rows, _, _ = spread(m, threads, a, whole=True)
    warps = rows.shape[0]
    chosen = rows[:, : 8 * matrices].reshape(warps, matrices, 8)
    first = np.unique(threads // 32) * 32
    block = np.broadcast_to(m.block_of[first][:, None, None], chosen.shape)
    off = m.shared.offsets((chosen & U64(0xFFFFFFFF)).ravel(), 16, what, block.ravel())
    return off.reshape(chosen.shape), first


def ldmatrix(code: Code, step: Step, pc: int) -> Action:
    """ldmatrix of 8x8 matrices of 16-bit elements"""
    inst = step.inst
    if not inst.has("m8n8"):
        return narrow_load(code, step, pc)
    f = code.functions[step.function]
    outs = [put(f, x) for x in registers(inst.operands[0])]
    at = inst.operands[1]
    assert isinstance(at, Addr)
    where_is = address(code, step.function, at)
    trans = inst.has("trans")

    def run(m: Machine, threads: Arr) -> None:
        a = np.broadcast_to(where_is(m), threads.shape)
        _, there, where = spread(m, threads, a)
        off, _ = _shared_rows(m, threads, a, there, where, len(outs), "matrix load")
        lane = threads % 32
        for k, out in enumerate(outs):
            if trans:
                low, high = (m.shared.load(off[where, k, 2 * (lane % 4) + i] + 2 * (lane // 4), 2) for i in (0, 1))
                out(m, low | (high << U64(16)))
            else:
                out(m, m.shared.load(off[where, k, lane // 4] + 4 * (lane % 4), 4))

    return warp_operation(code, step, pc, None, run)


def stmatrix(code: Code, step: Step, pc: int) -> Action:
    """stmatrix of 8x8 matrices of 16-bit elements"""
    inst = step.inst
    if not inst.has("m8n8"):
        return narrow_store(code, step, pc)
    at = inst.operands[0]
    assert isinstance(at, Addr)
    where_is = address(code, step.function, at)
    sources = [get(code, step.function, x) for x in registers(inst.operands[1])]
    trans = inst.has("trans")

    def run(m: Machine, threads: Arr) -> None:
        a = np.broadcast_to(where_is(m), threads.shape)
        _, there, where = spread(m, threads, a)
        off, _ = _shared_rows(m, threads, a, there, where, len(sources), "matrix store")
        lane = threads % 32
        for k, read in enumerate(sources):
            v = np.broadcast_to(read(m), threads.shape)
            if trans:
                for i in (0, 1):
                    m.shared.store(
                        off[where, k, 2 * (lane % 4) + i] + 2 * (lane // 4), 2, (v >> U64(16 * i)) & U64(0xFFFF)
                    )
            else:
                m.shared.store(off[where, k, lane // 4] + 4 * (lane % 4), 4, v)

    return warp_operation(code, step, pc, None, run)


def movmatrix(code: Code, step: Step, pc: int) -> Action:
    """movmatrix: an 8x8 matrix of 16-bit elements, transposed"""
    inst = step.inst
    to = put(code.functions[step.function], inst.operands[0])
    read = get(code, step.function, inst.operands[1])

    def run(m: Machine, threads: Arr) -> None:
        values, _, where = spread(m, threads, read(m), whole=True)
        lane = threads % 32
        out: Any = U64(0)
        for i in (0, 1):
            row, col = 2 * (lane % 4) + i, lane // 4
            v = values[where, row * 4 + col // 2]
            out = out | (((v >> (U64(16) * (col % 2).astype(U64))) & U64(0xFFFF)) << U64(16 * i))
        to(m, out)

    return warp_operation(code, step, pc, None, run)


def _row_at(m: Machine, threads: Arr, a: Arr, size: int, rows: int, matrices: int, what: str) -> Arr:
    """Byte offsets of rows whose addresses the lanes give in order: (warps, matrices, rows)."""
    given, _, _ = spread(m, threads, a, whole=True)
    warps = given.shape[0]
    chosen = given[:, : rows * matrices].reshape(warps, matrices, rows)
    first = np.unique(threads // 32) * 32
    block = np.broadcast_to(m.block_of[first][:, None, None], chosen.shape)
    return np.asarray(
        m.shared.offsets((chosen & U64(0xFFFFFFFF)).ravel(), size, what, block.ravel()).reshape(chosen.shape)
    )


def narrow_load(code: Code, step: Step, pc: int) -> Action:
    """ldmatrix of bytes, or of 6- and 4-bit elements that become bytes: m8n16 and (transposed) m16n16"""
    inst = step.inst
    f = code.functions[step.function]
    outs = [put(f, x) for x in registers(inst.operands[0])]
    where_is = address(code, step.function, inst.operands[1])  # type: ignore[arg-type]
    square = inst.has("m16n16")
    nibbles = inst.types == ("s8", "s4")
    bits = 6 if inst.has("b6x16_p32") else 4 if inst.has("b4x16_p64") or nibbles else 8
    size = 8 if nibbles else 16
    rows = 16 if square else 8
    matrices = len(outs) // (2 if square else 1)

    def run(m: Machine, threads: Arr) -> None:
        a = np.broadcast_to(where_is(m), threads.shape)
        off = _row_at(m, threads, a, size, rows, matrices, "matrix load")
        _, _, where = spread(m, threads, np.zeros(1, U64))
        elements: Arr
        stored = m.shared.data[off[..., None] + np.arange(size)].astype(U64)  # (warps, matrices, rows, 16 bytes)
        if bits == 8:
            elements = stored
        else:  # sixteen packed elements, then padding (documented), each in the low bits of its byte (CUTLASS)
            at = np.arange(16) * bits
            wide = stored | (np.concatenate([stored[..., 1:], np.zeros_like(stored[..., :1])], axis=-1) << U64(8))
            elements = (wide[..., at // 8] >> (at % 8).astype(U64)) & U64((1 << bits) - 1)
            if nibbles:
                elements = (elements ^ U64(8)) - U64(8) & U64(255)
        lane = threads % 32
        g, t = lane // 4, lane % 4
        for k, out in enumerate(outs):
            word: Any = U64(0)
            for i in range(4):
                if square:  # transposed: a thread has four rows of a column
                    e = elements[where, k // 2, 4 * t + i, g + 8 * (k % 2)]
                else:
                    e = elements[where, k, g, 4 * t + i]
                word = word | (e << U64(8 * i))
            out(m, word)

    return warp_operation(code, step, pc, None, run)


def narrow_store(code: Code, step: Step, pc: int) -> Action:
    """stmatrix of bytes: m16n8, transposed"""
    inst = step.inst
    where_is = address(code, step.function, inst.operands[0])  # type: ignore[arg-type]
    sources = [get(code, step.function, x) for x in registers(inst.operands[1])]

    def run(m: Machine, threads: Arr) -> None:
        a = np.broadcast_to(where_is(m), threads.shape)
        off = _row_at(m, threads, a, 16, 8, len(sources), "matrix store")
        _, _, where = spread(m, threads, np.zeros(1, U64))
        lane = threads % 32
        for k, read in enumerate(sources):
            v = np.broadcast_to(read(m), threads.shape)
            for i in range(4):  # register k of lane 4 g + t: rows 4 t + i of column g; a column is a row of memory
                m.shared.store(off[where, k, lane // 4] + 4 * (lane % 4) + i, 1, (v >> U64(8 * i)) & U64(0xFF))

    return warp_operation(code, step, pc, None, run)


ACTIONS: Final[dict[str, Callable[[Code, Step, int], Action]]] = {
    "ldmatrix": ldmatrix,
    "stmatrix": stmatrix,
    "movmatrix": movmatrix,
}
