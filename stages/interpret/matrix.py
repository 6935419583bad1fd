"""Products of matrices of a warp: mma.sync, dense, sparse and scaled.  Layouts: the PTX ISA manual.

With g = lane / 4, t = lane % 4 and e elements per register: register r of A has the row g + 8 (r % 2) and columns t e +
i + 4 e (r / 2); register r of B the rows t e + i + 4 e r of column g; C and D the rows g, g + 8 and columns 2 t, 2 t +
1. How the hardware rounds inside a sum is not documented: here products are added in float64 and rounded at the end
(:func:`inexact` shows which results depend on that).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ir_format.ptx import Imm, PtxInst
from ir_format.ptx_types import TYPE_BITS
from stages.interpret import floats
from stages.interpret.code import Action, Code, Step, get, put
from stages.interpret.floats import FORMATS, decode, narrow
from stages.interpret.machine import Machine
from stages.interpret.rows import U64, Arr, Unsupported, bits_of, rounding, signed, unsigned
from stages.interpret.tiles import registers
from stages.interpret.warp_sync import spread, warp_operation

_LANE: Final = np.arange(32)
# --------------------------------------------------------------------------- mma


def _elements(regs: list[Arr], width: int, count: int) -> Arr:
    """Elements of registers given as (warps, 32) rows: (warps, 32, registers, elements)."""
    stacked = np.stack(regs, 2)
    shifts = (np.arange(count) * width).astype(U64)
    return np.asarray((stacked[..., None] >> shifts) & U64((1 << width) - 1))


def numbers(x: Arr, type_: str, nibbles: bool = False) -> Arr:
    """Numbers of element bits: float64 or int64. 4- and 6-bit floats are in bytes, unless `nibbles`: 4-bit ones are in
    bits 2 to 5 (documented)."""
    if type_ == "e2m1" and not nibbles:
        x = x >> U64(2)
    if type_[0] == "s":
        return signed(x, TYPE_BITS[type_])
    if type_[0] in "ub" and type_ != "bf16":
        return x.astype(np.int64)
    if type_ == "tf32":
        return decode(x & U64(0xFFFFE000), FORMATS["f32"])
    f = FORMATS[type_]
    return decode(unsigned(x, f.bits), f)


@dataclass(frozen=True, slots=True)
class Sparse:
    """Layout of the metadata of a sparse A in the threads of a group of four (documented).

    ``threads`` of them have it (1, 2 or 4, from ``first``). A word has the choices of 16 columns of rows g and g + 8
    (``halves``), or of one row, g in even threads and g + 8 in odd ones. A choice of 2 bits gives the position of each
    stored ``unit`` of elements in its chunk of ``chunk`` columns."""

    threads: int
    first: int
    halves: bool
    unit: int
    chunk: int


def sparsity(shape: tuple[int, int, int], type_: str, selector: int) -> Sparse:
    depth = shape[2]
    if type_ == "tf32":
        one = depth == 8
        return Sparse(1 if one else 2, selector if one else 2 * selector, True, 1, 2)
    if type_ in ("f16", "bf16"):
        one = depth == 16
        return Sparse(1 if one else 2, selector if one else 2 * selector, True, 1, 4)
    nibbles = type_ in ("u4", "s4") or (type_ == "e2m1" and depth == 128)
    pair = depth == (64 if nibbles else 32)
    return Sparse(2 if pair else 4, 2 * selector if pair else 0, False, 2 if nibbles else 1, 8 if nibbles else 4)


def expanded(stored: Arr, meta: Arr, how: Sparse, type_: str) -> Arr:
    """The dense A from its stored half (warps, rows, half of the columns) and metadata words (warps, 32)."""
    warps, rows, half = stored.shape
    full = np.zeros((warps, rows, 2 * half), stored.dtype)
    words = meta.reshape(warps, 8, 4)
    columns = np.arange(half)
    step = 1 if type_ == "tf32" else 2  # stored units of a nibble: one choice of 32-bit places, or two
    unit = columns // how.unit
    nibble = unit // step
    for row in range(rows):
        g, upper = row % 8, row // 8
        if how.halves:
            word = words[:, g, how.first + nibble // 4]
            shift = 16 * upper + 4 * (nibble % 4)
        else:
            word = words[:, g, how.first + upper + 2 * (nibble // 8)]
            shift = 4 * (nibble % 8)
        bits = (word >> shift.astype(U64)) & U64(15)
        if type_ == "tf32":
            place = (bits >> U64(3)).astype(np.int64)  # 0100: the first, 1110: the second of two (documented)
        else:
            place = ((bits >> (2 * (unit % 2)).astype(U64)) & U64(3)).astype(np.int64)
        target = how.chunk * nibble + how.unit * place + columns % how.unit
        np.put_along_axis(full[:, row], target, stored[:, row], axis=1)
    return full


def inexact(m: Machine, product: Arr, left: Arr, right: Arr) -> Arr:
    """Sums of products of floats: if the machine's :attr:`errors` is set, other sums that the hardware may compute.

    The manual says that sums have at least single precision, and leaves order and rounding open. A term may lose what
    is 22 bits below the greatest term (a guess: 24 bits, less the bits that a sum of many terms needs), so a sum whose
    terms cancel out may be a small number instead. The manual also leaves the sign of an empty sum open."""
    if m.errors is None or product.dtype != np.float64:
        return product
    with np.errstate(all="ignore"):
        magnitude = np.abs(left) @ np.abs(right)
        other = product + m.errors.uniform(-1.0, 1.0, product.shape) * 2.0**-22 * magnitude
        other = np.where(other == 0, np.copysign(0.0, m.errors.uniform(-1.0, 1.0, product.shape)), other)
    return np.where(np.isfinite(other), other, product)


def mma(code: Code, step: Step, pc: int) -> Action:
    """mma.sync and mma.sp"""
    inst = step.inst
    shape = next((re.fullmatch(r"m(\d+)n(\d+)k(\d+)", x) for x in inst.mods if re.fullmatch(r"m\d+n\d+k\d+", x)), None)
    if shape is None:
        raise Unsupported(inst.opcode)
    rows, cols, depth = (int(x) for x in shape.groups())
    td, ta, tb, tc = _types(inst)
    if (rows, cols, depth) == (8, 8, 4) and ta == "f16":
        return _four(code, step, pc)
    f = code.functions[step.function]
    dest, a, b, c = (registers(x) for x in inst.operands[:4])
    outs = [put(f, x) for x in dest]
    reads = [[get(code, step.function, x) for x in group] for group in (a, b, c)]
    rest = list(inst.operands[4:])
    how: Sparse | None = None
    meta: Any = None
    if any(x.startswith("sp") for x in inst.mods):
        meta = get(code, step.function, rest.pop(0))
        selector = rest.pop(0)
        assert isinstance(selector, Imm)
        how = sparsity((rows, cols, depth), ta, selector.value)
    scale = _scales(code, step, rest, depth) if inst.has("block_scale") else None
    container = 64 if ta == "f64" else 32
    nibbles = any(x.startswith("kind::mxf4") for x in inst.mods)
    width = 4 if nibbles else max(TYPE_BITS[ta], 8) if ta == "e2m1" else TYPE_BITS[ta]
    e = container // width
    high = rows // 8
    operation = next((x for x in inst.mods if x in ("xor", "and")), None)
    mode = rounding(inst)

    def run(m: Machine, threads: Arr) -> None:
        gathered = [[spread(m, threads, r(m), whole=True)[0] for r in group] for group in reads]
        _, _, where = spread(m, threads, np.zeros(1, U64))
        ea = _elements(gathered[0], width, e)
        eb = _elements(gathered[1], width, e)
        warps = ea.shape[0]
        g, t = _LANE // 4, _LANE % 4
        integer = td == "s32"
        left = np.zeros((warps, rows, depth if how is None else depth // 2), np.int64 if integer else np.float64)
        right = np.zeros((warps, depth, cols), left.dtype)
        for r in range(ea.shape[2]):
            for i in range(e):
                left[:, g + 8 * (r % high), t * e + i + 4 * e * (r // high)] = numbers(ea[:, :, r, i], ta, nibbles)
        for r in range(eb.shape[2]):
            for i in range(e):
                right[:, t * e + i + 4 * e * r, g] = numbers(eb[:, :, r, i], tb, nibbles)
        if how is not None:
            left = expanded(left, spread(m, threads, meta(m), whole=True)[0], how, ta)
        if operation == "xor":
            product = (left[:, :, :, None] != right[:, None, :, :]).sum(2).astype(np.int64)
        elif td == "f64":
            product = left
        elif scale is not None:
            product = scale(m, threads, left, right)
        else:
            product = inexact(m, left @ right, left, right)
        lane = threads % 32
        if td == "f64":
            _accumulate64(m, left, right, gathered[2], outs, where, lane, mode)
            return
        _accumulate(m, product, gathered[2], outs, where, lane, tc, td, inst)

    return warp_operation(code, step, pc, None, run)


def _four(code: Code, step: Step, pc: int) -> Action:
    """m8n8k4 of halves: four products at once, each by a quad and the quad sixteen lanes later (documented)."""
    inst = step.inst
    row_a, row_b = (x == "row" for x in inst.mods if x in ("row", "col"))
    td, tc = inst.types[0], inst.types[-1]
    dest, a, b, c = (registers(x) for x in inst.operands[:4])
    outs = [put(code.functions[step.function], x) for x in dest]
    reads = [[get(code, step.function, x) for x in group] for group in (a, b, c)]
    half = FORMATS["f16"]
    lane32 = _LANE
    quad, upper = lane32 // 4 % 4, 4 * (lane32 // 16)
    low = lane32 % 4

    def place(i: int, type_: str) -> tuple[Arr, Arr]:
        """Row and column of element i of an accumulator in each lane."""
        if type_ == "f16":
            return low + upper, np.full(32, i)
        return (lane32 & 1) + (i & 2) + upper, (i & 4) + (lane32 & 2) + np.full(32, i & 1)

    def run(m: Machine, threads: Arr) -> None:
        ga, gb, gc = ([spread(m, threads, r(m), whole=True)[0] for r in group] for group in reads)
        _, _, where = spread(m, threads, np.zeros(1, U64))
        ea, eb = (decode(_elements(g, 16, 2).reshape(-1, 32, 4), half) for g in (ga, gb))
        warps = ea.shape[0]
        left, right, total = np.zeros((warps, 4, 8, 4)), np.zeros((warps, 4, 4, 8)), np.zeros((warps, 4, 8, 8))
        for i in range(4):
            if row_a:
                left[:, quad, low + upper, i] = ea[:, :, i]
            else:
                left[:, quad, i + upper, low] = ea[:, :, i]
            if row_b:
                right[:, quad, low, i + upper] = eb[:, :, i]
            else:
                right[:, quad, i, low + upper] = eb[:, :, i]
        for i in range(8):
            r, col = place(i, tc)
            word = (gc[i // 2] >> U64(16 * (i % 2))) & U64(0xFFFF) if tc == "f16" else unsigned(gc[i], 32)
            total[:, quad, r, col] = decode(word, FORMATS[tc])
        bits = narrow(left @ right + total, FORMATS[td])
        lane = threads % 32
        for k, out in enumerate(outs):
            parts = []
            for i in (2 * k, 2 * k + 1) if td == "f16" else (k,):
                r, col = place(i, td)
                parts.append(bits[where, quad[lane], r[lane], col[lane]])
            out(m, parts[0] | (parts[1] << U64(16)) if td == "f16" else parts[0])

    return warp_operation(code, step, pc, None, run)


def _scales(code: Code, step: Step, operands: list[Any], depth: int) -> Any:
    """Scaled products: blocks of columns of A and of rows of B, each with a factor. One thread of the pair (A: `thread`
    0 or 1 names the pair; the even thread for row g, the odd one for g + 8) or of the group (B) has the factors of its
    row or column, bytes from `byte` up (documented).
    """
    inst = step.inst
    form = next(
        (x for x in inst.mods if x.startswith("scale_vec")),
        "scale_vec::2X" if inst.has("kind::mxf4") else "scale_vec::1X",
    )
    count = int(form[-2])
    kind = inst.types[-1]
    reads = [get(code, step.function, operands[k]) for k in (0, 2)]
    places = []
    for vector in (operands[1], operands[3]):
        byte, thread = registers(vector)
        if not (isinstance(byte, Imm) and isinstance(thread, Imm)):
            raise Unsupported(inst.opcode)
        places.append((byte.value, thread.value))

    def factor(codes: Arr) -> Arr:
        if kind == "ue8m0":
            return np.where(codes == 255, np.nan, np.ldexp(1.0, codes.astype(np.int32) - 127))
        return decode(codes & U64(0x7F), FORMATS["e4m3"])

    def run(m: Machine, threads: Arr, left: Arr, right: Arr) -> Arr:
        (byte_a, pair), (byte_b, thread) = places
        wa, wb = (spread(m, threads, r(m), whole=True)[0] for r in reads)
        g = np.arange(8)
        block = depth // count
        total = np.zeros((left.shape[0], left.shape[1], right.shape[2]))
        for k in range(count):
            fa = np.concatenate(
                [factor((wa[:, 4 * g + 2 * pair + upper] >> U64(8 * (byte_a + k))) & U64(0xFF)) for upper in (0, 1)],
                axis=1,
            )
            fb = factor((wb[:, 4 * g + thread] >> U64(8 * (byte_b + k))) & U64(0xFF))
            part = slice(k * block, (k + 1) * block)
            total += (left[:, :, part] @ right[:, part, :]) * fa[:, :, None] * fb[:, None, :]
        return total

    return run


def _types(inst: PtxInst) -> tuple[str, str, str, str]:
    types = inst.types
    if len(types) in (4, 5):
        return types[0], types[1], types[2], types[3]
    raise Unsupported(inst.opcode)


def _accumulate(
    m: Machine, product: Arr, c: list[Arr], outs: list[Any], where: Arr, lane: Arr, tc: str, td: str, inst: PtxInst
) -> None:
    """Add C and give the results to the threads."""
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


def _accumulate64(
    m: Machine, left: Arr, right: Arr, c: list[Arr], outs: list[Any], where: Arr, lane: Arr, mode: str
) -> None:
    """Doubles: one fused multiply-add after another in the order of k (the order is not documented), each in the
    rounding mode."""
    for place, out in enumerate(outs):
        row, col = lane // 4 + 8 * (place // 2), 2 * (lane % 4) + place % 2
        total = c[place][where, lane]
        for k in range(left.shape[2]):
            total = floats.fma(
                left[where, row, k].view(U64), right[where, k, col].view(U64), total, FORMATS["f64"], mode
            )
        out(m, m.nan(total, FORMATS["f64"]))


ACTIONS: Final[dict[str, Callable[[Code, Step, int], Action]]] = {"mma": mma}
