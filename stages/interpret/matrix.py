"""Matrix instructions of a warp: ldmatrix, stmatrix, movmatrix, mma.sync (dense).  Layouts: the PTX ISA manual.

With g = lane / 4, t = lane % 4 and e elements in a register: A holds in register r the row g + 8 (r % 2) and columns t e + i + 4 e (r / 2);
B in register r the rows t e + i + 4 e r of column g; C and D the rows g, g + 8 and columns 2 t, 2 t + 1.  How the hardware rounds inside of
a sum is not documented: products are added in float64 here and rounded once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ir_format.ptx import Addr, PtxInst, Vec
from stages.interpret.code import Action, Code, Step, address, get, put
from stages.interpret.floats import FORMATS, decode, narrow
from stages.interpret.machine import Machine
from stages.interpret.meeting import spread, warp_operation
from stages.interpret.rows import U64, Arr, Unsupported, bits_of, signed, unsigned

_LANE: Final = np.arange(32)
_WIDTHS: Final = {"s4": 4, "u4": 4, "b1": 1, "s8": 8, "u8": 8, "f16": 16, "bf16": 16, "tf32": 32, "f64": 64, "e4m3": 8, "e5m2": 8, "e3m2": 8, "e2m3": 8, "e2m1": 8}


def _registers(x: Any) -> list[Any]:
    return list(x.elems) if isinstance(x, Vec) else [x]


def _shared_rows(m: Machine, threads: Arr, a: Arr, there: Arr, where: Arr, matrices: int, what: str) -> tuple[Arr, Arr]:
    """Byte offsets of the rows of each matrix: (warps, matrices, 8)."""
    rows, _, _ = spread(m, threads, a)
    warps = rows.shape[0]
    chosen = rows[:, : 8 * matrices].reshape(warps, matrices, 8)
    first = np.unique(threads // 32) * 32
    block = np.broadcast_to(m.block_of[first][:, None, None], chosen.shape)
    off = m.shared.offsets((chosen & U64(0xFFFFFFFF)).ravel(), 16, what, block.ravel())
    return off.reshape(chosen.shape), first


def ldmatrix(code: Code, step: Step, pc: int) -> Action:
    """ldmatrix of 8x8 matrices of 16-bit elements"""
    inst = step.inst
    if not inst.has("m8n8") or inst.types[-1] != "b16":
        raise Unsupported(inst.opcode)
    f = code.functions[step.function]
    outs = [put(f, x) for x in _registers(inst.operands[0])]
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
    if not inst.has("m8n8") or inst.types[-1] != "b16":
        raise Unsupported(inst.opcode)
    at = inst.operands[0]
    assert isinstance(at, Addr)
    where_is = address(code, step.function, at)
    sources = [get(code, step.function, x) for x in _registers(inst.operands[1])]
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
                    m.shared.store(off[where, k, 2 * (lane % 4) + i] + 2 * (lane // 4), 2, (v >> U64(16 * i)) & U64(0xFFFF))
            else:
                m.shared.store(off[where, k, lane // 4] + 4 * (lane % 4), 4, v)

    return warp_operation(code, step, pc, None, run)


def movmatrix(code: Code, step: Step, pc: int) -> Action:
    """movmatrix: an 8x8 matrix of 16-bit elements, transposed"""
    inst = step.inst
    to = put(code.functions[step.function], inst.operands[0])
    read = get(code, step.function, inst.operands[1])

    def run(m: Machine, threads: Arr) -> None:
        values, _, where = spread(m, threads, read(m))
        lane = threads % 32
        out: Any = U64(0)
        for i in (0, 1):
            row, col = 2 * (lane % 4) + i, lane // 4
            v = values[where, row * 4 + col // 2]
            out = out | (((v >> (U64(16) * (col % 2).astype(U64))) & U64(0xFFFF)) << U64(16 * i))
        to(m, out)

    return warp_operation(code, step, pc, None, run)


# --------------------------------------------------------------------------- mma


def _elements(regs: list[Arr], width: int, count: int) -> Arr:
    """Elements of registers given as (warps, 32) rows: (warps, 32, registers, elements)."""
    stacked = np.stack(regs, 2)
    shifts = (np.arange(count) * width).astype(U64)
    return np.asarray((stacked[..., None] >> shifts) & U64((1 << width) - 1))


def _values(x: Arr, type_: str) -> Arr:
    """Numbers of element bits: float64 or int64."""
    if type_[0] == "s":
        return signed(x, _WIDTHS[type_])
    if type_[0] in "ub" and type_ != "bf16":
        return x.astype(np.int64)
    if type_ == "tf32":
        return decode(x & U64(0xFFFFE000), FORMATS["f32"])
    f = FORMATS[type_]
    return decode(unsigned(x, f.bits), f)


def mma(code: Code, step: Step, pc: int) -> Action:
    """mma.sync"""
    inst = step.inst
    shape = next((re.fullmatch(r"m(\d+)n(\d+)k(\d+)", x) for x in inst.mods if re.fullmatch(r"m\d+n\d+k\d+", x)), None)
    if shape is None or "sp" in inst.mods or any(x.startswith(("sp::", "block_scale", "kind::mx")) for x in inst.mods):
        raise Unsupported(inst.opcode)
    rows, cols, depth = (int(x) for x in shape.groups())
    td, ta, tb, tc = _types(inst)
    if (rows, cols, depth) == (8, 8, 4) and ta == "f16":
        raise Unsupported(inst.opcode)
    f = code.functions[step.function]
    dest, a, b, c = (_registers(x) for x in inst.operands[:4])
    outs = [put(f, x) for x in dest]
    reads = [[get(code, step.function, x) for x in group] for group in (a, b, c)]
    container = 64 if ta == "f64" else 32
    width = _WIDTHS[ta]
    e = container // width
    high = rows // 8
    operation = next((x for x in inst.mods if x in ("xor", "and")), None)

    def run(m: Machine, threads: Arr) -> None:
        gathered = [[spread(m, threads, r(m))[0] for r in group] for group in reads]
        _, _, where = spread(m, threads, np.zeros(1, U64))
        ea = _elements(gathered[0], width, e)
        eb = _elements(gathered[1], width, e)
        warps = ea.shape[0]
        g, t = _LANE // 4, _LANE % 4
        integer = td == "s32"
        left = np.zeros((warps, rows, depth), np.int64 if integer else np.float64)
        right = np.zeros((warps, depth, cols), left.dtype)
        for r in range(ea.shape[2]):
            for i in range(e):
                left[:, g + 8 * (r % high), t * e + i + 4 * e * (r // high)] = _values(ea[:, :, r, i], ta)
        for r in range(eb.shape[2]):
            for i in range(e):
                right[:, t * e + i + 4 * e * r, g] = _values(eb[:, :, r, i], tb)
        if operation == "xor":
            product = (left[:, :, :, None] != right[:, None, :, :]).sum(2).astype(np.int64)
        else:
            product = left @ right
        lane = threads % 32
        _accumulate(m, product, gathered[2], outs, where, lane, tc, td, inst)

    return warp_operation(code, step, pc, None, run)


def _types(inst: PtxInst) -> tuple[str, str, str, str]:
    types = inst.types
    if len(types) == 4:
        return types[0], types[1], types[2], types[3]
    raise Unsupported(inst.opcode)


def _accumulate(m: Machine, product: Arr, c: list[Arr], outs: list[Any], where: Arr, lane: Arr, tc: str, td: str, inst: PtxInst) -> None:
    """Add C and hand the results to the threads."""
    per = 2 if td == "f16" else 1
    for k, out in enumerate(outs):
        word: Any = U64(0)
        for i in range(per):
            place = k * per + i
            row = lane // 4 + 8 * (place // 2)
            col = 2 * (lane % 4) + place % 2
            p = product[where, row, col]
            if tc == "f16":
                cv = decode((c[place // 2][where, lane] >> U64(16 * (place % 2))) & U64(0xFFFF), FORMATS["f16"])
            elif tc == "s32":
                cv = signed(c[place][where, lane], 32)
            else:
                cv = decode(unsigned(c[place][where, lane], FORMATS[tc].bits), FORMATS[tc])
            total = p + cv
            if td == "s32":
                bits = bits_of(np.clip(total, -(1 << 31), (1 << 31) - 1) if inst.has("satfinite") else total, 32)
            else:
                bits = narrow(total, FORMATS[td])
            word = word | (bits << U64(16 * i))
        out(m, word)


ACTIONS: Final[dict[str, Callable[[Code, Step, int], Action]]] = {"ldmatrix": ldmatrix, "stmatrix": stmatrix, "movmatrix": movmatrix, "mma": mma}
