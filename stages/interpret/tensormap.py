"""Copies by a tensor map (cp.async.bulk.tensor, its reductions), tensormap.replace and tensormap.cp_fenceproxy.

The contents of a map are opaque to PTX. This interpreter uses the maps that the host side of this project makes
(docs/judges.md): the fields that ``tensormap.replace`` writes are where ptxas's code for it puts them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ir_format.ptx import Addr, Bracket, Imm, PtxInst, Vec
from stages.interpret.atomics import update
from stages.interpret.bulk import arrived, bits, in_block
from stages.interpret.code import Action, Code, Step, address, get, space_of
from stages.interpret.loads import resolve
from stages.interpret.machine import InterpreterError, Machine
from stages.interpret.memory import GLOBAL_BASE, RANK_SHIFT
from stages.interpret.rows import U64, Arr, Unsupported

#: elemtype of tensormap.replace (documented): PTX type of the elements of a map.
_ELEMENTS: Final = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f32", "f64", "bf16", "f32", "f32")
_NAN: Final = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF, "f64": 0x7FFFFFFFFFFFFFFF}
_FLUSHED: Final = (8, 12)
_TF32: Final = (11, 12)


def _int(data: Arr, at: int, size: int = 4) -> int:
    return int.from_bytes(data[at : at + size].tobytes(), "little")


@dataclass(slots=True)
class TensorMap:
    """The fields of a map."""

    address: int
    type_: str
    number: int
    extents: list[int]
    pitches: list[int]  # bytes from one element to the next in each dimension
    box: list[int]
    steps: list[int]
    pattern: int  # bytes of a row of the swizzle, 0 for none
    nan: bool
    lower: list[int]
    upper: list[int]
    channels: int
    pixels: int

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return int(self.type_.lstrip("bfus")) // 8


def parse(data: Arr) -> TensorMap:
    """The fields of the 128 bytes."""
    word = _int(data, 8)
    rank = (word >> 4 & 7) + 1
    number = word >> 7 & 15
    if word >> 16 & 1:
        number += 4  # tf32: f32 with an extra bit
    if number >= len(_ELEMENTS) or rank > 5:
        raise Unsupported(f"a tensor map of element type {number} and {rank} dimensions")
    if word >> 11 & 3 or word >> 19 & 7:
        raise Unsupported("a tensor map with interleaved channels or another atom of its swizzle")
    type_ = _ELEMENTS[number]
    size = int(type_.lstrip("bfus")) // 8
    tops = _int(data, 0x1C)
    pitches = [size]
    for i in range(rank - 1):
        pitches.append(16 * (_int(data, 0x0C + 4 * i) + ((tops >> 4 * i & 15) << 32)))
    steps = _int(data, 0x34)
    sides = [_int(data, 0x37, 1), *(_int(data, 0x38 + i, 1) for i in range(4))]
    corner = np.frombuffer(data[0x40:0x50].tobytes(), np.int16)
    return TensorMap(
        _int(data, 0, 8),
        type_,
        number,
        [_int(data, 0x20 + 4 * i) + 1 for i in range(rank)],
        pitches,
        [side + 1 for side in sides[:rank]],
        [(steps >> 3 * i & 7) + 1 for i in range(rank)],
        (0, 32, 64, 128)[word >> 13 & 3],
        bool(word >> 15 & 1),
        [int(x) for x in corner[:3]],
        [int(x) for x in corner[4:7]],
        _int(data, 0x58),
        _int(data, 0x5C),
    )


def tiled(t: TensorMap, start: list[int]) -> Arr:
    """Coordinates of the elements of a box, innermost first: (elements, dimensions)."""
    axes = [start[i] + np.arange(0, t.box[i], t.steps[i]) for i in range(len(t.extents))]
    grids = np.meshgrid(*axes[::-1], indexing="ij")
    return np.stack([x.ravel() for x in grids[::-1]], axis=1)


def four_rows(t: TensorMap, start: list[int]) -> Arr:
    """Coordinates of four rows of a map of two dimensions."""
    inner = start[0] + np.arange(t.box[0])
    return np.stack([np.tile(inner, 4), np.repeat(np.array(start[1:5]), len(inner))], axis=1)


def pixels(t: TensorMap, start: list[int], offsets: list[int]) -> Arr:
    """im2col: coordinates of the channels of consecutive pixels in the bounding box, from the given one, each moved by
    the offsets (documented)."""
    space = len(t.extents) - 2
    out = []
    at = list(start[1:])
    for _ in range(t.pixels):
        moved = [at[i] + offsets[i] for i in range(space)]
        out += [[start[0] + c, *moved, at[space]] for c in range(t.channels)]
        for i in range(space):
            at[i] += t.steps[1 + i]
            if at[i] < t.extents[1 + i] + t.upper[i]:
                break
            at[i] = t.lower[i]
        else:
            at[space] += 1
    return np.array(out)


def _tf32(x: Arr) -> Arr:
    """Rounded to nearest, ties away from zero (a guess: the manual does not say)."""
    finite = (x & U64(0x7F800000)) != U64(0x7F800000)
    return np.where(finite, ((x + U64(0x1000)) & U64(0xFFFFE000)), x)


class Box:
    """The elements of a copy: where they are in global memory, and which exist."""

    def __init__(self, t: TensorMap, coordinates: Arr) -> None:
        self.t = t
        inside = (coordinates >= 0) & (coordinates < np.array(t.extents))
        self.there: Arr = np.asarray(inside.all(axis=1))
        offset = (coordinates[self.there] * np.array(t.pitches)).sum(axis=1)
        self.at = (offset + t.address).astype(U64)
        self.bytes = len(coordinates) * t.size

    def load(self, m: Machine) -> Arr:
        """The bytes, in the order of shared memory."""
        t = self.t
        values = np.full(len(self.there), _NAN.get(t.type_, 0) if t.nan else 0, U64)
        if len(self.at):
            values[self.there] = m.heap.load(m.heap.offsets(self.at, t.size, "copy"), t.size)
        if t.number in _TF32:
            values = _tf32(values)
        if t.number in _FLUSHED:
            values = np.where(values & U64(0x7F800000), values, values & U64(0x80000000))
        width = (8 * np.arange(t.size)).astype(U64)
        return np.asarray((values[:, None] >> width) & U64(0xFF)).astype(np.uint8).ravel()

    def store(self, m: Machine, data: Arr, fn: Any, pc: int) -> None:
        """Write bytes of shared memory to the elements that exist."""
        t = self.t
        width = (8 * np.arange(t.size)).astype(U64)
        values = np.bitwise_or.reduce(data.reshape(-1, t.size).astype(U64) << width, axis=1)[self.there]
        if not len(self.at):
            return
        off = m.heap.offsets(self.at, t.size, "copy")
        m.heap.store(off, t.size, values if fn is None else fn(m.heap.load(off, t.size), values))
        if m.track:
            m.heap.mark(off, t.size, pc)

    def shared(self, m: Machine, space: str, a: int, thread: Arr) -> Arr:
        """Offsets of the bytes in shared memory, in order; the swizzle exchanges pieces of 16 bytes of lines of 128
        bytes as their addresses say."""
        if a % 128 or self.bytes % 16:
            raise InterpreterError("undefined", f"a box of {self.bytes} bytes at {a:#x} of shared memory")
        ends = [a, a + self.bytes - 16]
        low = int(resolve(m, space, np.array([ends[0]], U64), 16, "copy", thread)[0][1][0])
        resolve(m, space, np.array([ends[1]], U64), 16, "copy", thread)
        own = a & ((1 << RANK_SHIFT) - 1)
        at = own + np.arange(self.bytes)
        if self.t.pattern:
            at = at ^ (at // 128 % (self.t.pattern // 16)) * 16
        return np.asarray(low - own + at)


def _map_operand(code: Code, step: Step, x: Any) -> tuple[Any, list[Any]]:
    """A reader for the address of a map, and for its coordinates."""
    if not isinstance(x, Bracket) or not isinstance(x.parts[0], Addr) or not isinstance(x.parts[1], Vec):
        raise Unsupported(step.inst.opcode)
    return address(code, step.function, x.parts[0]), [get(code, step.function, c) for c in x.parts[1].elems]


def _map_at(m: Machine, a: int, thread: Arr) -> TensorMap:
    memory, off, _ = resolve(m, "generic", np.array([a], U64), 8, "map read", thread)[0]
    resolve(m, "generic", np.array([a + 120], U64), 8, "map read", thread)
    if a % 64:
        raise InterpreterError("undefined", f"a tensor map at {a:#x}, not a multiple of 64")
    return parse(memory.data[int(off[0]) : int(off[0]) + 128])


def _coordinates(inst: PtxInst, t: TensorMap, start: list[int], offsets: list[int]) -> Arr:
    if inst.has("tile::gather4") or inst.has("tile::scatter4"):
        return four_rows(t, start)
    if len(start) != len(t.extents):
        raise InterpreterError("undefined", "dimensions unlike those of the map", inst.line, inst.opcode)
    if inst.has("im2col"):
        return pixels(t, start, offsets)
    if inst.has("im2col_no_offs"):
        return pixels(t, start, [0] * (len(start) - 2))
    if any(x.startswith("im2col") for x in inst.mods):
        raise Unsupported(inst.opcode)
    return tiled(t, start)


def copy(code: Code, step: Step, pc: int) -> Action:
    """cp.async.bulk.tensor and cp.reduce.async.bulk.tensor"""
    if step.inst.has("prefetch"):
        return lambda m: None
    return _store(code, step, pc) if step.inst.has("bulk_group") else _load(code, step, pc)


def _load(code: Code, step: Step, pc: int) -> Action:
    inst = step.inst
    operands = list(inst.operands)
    to, bar = operands[0], operands[2]
    assert isinstance(to, Addr) and isinstance(bar, Addr)
    reads = [address(code, step.function, to), address(code, step.function, bar)]
    at, coordinates = _map_operand(code, step, operands[1])
    rest = operands[3:]
    offsets: list[Any] = []
    if any(x.startswith("im2col") for x in inst.mods):
        offsets = [get(code, step.function, x) for x in _elements(rest.pop(0))]
    targets = get(code, step.function, rest.pop(0)) if inst.has("multicast::cluster") else None
    space = "cluster" if inst.has("shared::cluster") else "shared"

    def run(m: Machine) -> int | None:
        threads = m.all[m.act]
        values = _rows(m, threads, [*reads, at, *coordinates, *offsets, *([targets] if targets else [])])
        for k, row in enumerate(values):
            one = threads[k : k + 1]
            t = _map_at(m, row[2], one)
            start = [_signed(x) for x in row[3 : 3 + len(coordinates)]]
            moved = [x & 0xFFFF for x in row[3 + len(coordinates) : 3 + len(coordinates) + len(offsets)]]
            box = Box(t, _coordinates(inst, t, start, moved))
            data = box.load(m)
            ends = [(row[0], row[1])]
            if targets is not None:
                ends = [(in_block(m, row[0], r), in_block(m, row[1], r)) for r in bits(row[-1] & 0xFFFF)]
            for end, barrier in ends:
                span = box.shared(m, space, end & 0xFFFFFFFF, one)
                m.shared.data[span] = data
                if m.track:
                    m.shared.mark(span, 1, pc)
                arrived(m, step, np.array([barrier], U64), np.array([len(data)]), one, space)
        return None

    return run


def _store(code: Code, step: Step, pc: int) -> Action:
    inst = step.inst
    at, coordinates = _map_operand(code, step, inst.operands[0])
    source = inst.operands[1]
    assert isinstance(source, Addr)
    read = address(code, step.function, source)

    def run(m: Machine) -> int | None:
        threads = m.all[m.act]
        for k, row in enumerate(_rows(m, threads, [at, read, *coordinates])):
            one = threads[k : k + 1]
            t = _map_at(m, row[0], one)
            box = Box(t, _coordinates(inst, t, [_signed(x) for x in row[2:]], []))
            data = m.shared.data[box.shared(m, "shared", row[1] & 0xFFFFFFFF, one)]
            fn = None
            if inst.has("reduce"):
                fn = update(PtxInst("red", (*inst.mods, t.type_), (t.type_,), ()))[0]
            box.store(m, data, fn, pc)
        return None

    return run


def _elements(x: Any) -> list[Any]:
    return list(x.elems) if isinstance(x, Vec) else [x]


def _rows(m: Machine, threads: Arr, reads: list[Any]) -> list[list[int]]:
    """The values of each thread."""
    columns = [np.broadcast_to(r(m), threads.shape) for r in reads]
    return [[int(c[k]) for c in columns] for k in range(len(threads))]


def _signed(x: int) -> int:
    return (x & 0xFFFFFFFF) - ((x & 0x80000000) << 1)


#: Fields of tensormap.replace: byte of a word, low bit, bits (measured from ptxas's code).
_FIELDS: Final = {
    "rank": (8, 4, 3), "interleave_layout": (8, 11, 2), "swizzle_mode": (8, 13, 2), "fill_mode": (8, 15, 1),
    "swizzle_atomicity": (8, 19, 3),
}  # fmt: skip


def _field(inst: PtxInst, ordinal: int, value: int) -> list[tuple[int, int, int, int]]:
    """(byte, low bit, bits, value) of each field that a replacement writes."""
    for name, (at, low, width) in _FIELDS.items():
        if inst.has(name):
            return [(at, low, width, value)]
    if inst.has("global_address"):
        return [(0, 0, 64, value)]
    if inst.has("elemtype"):
        plain = value - 4 if value in (11, 12) else value - 2 if value > 12 else value
        # tf32 sets the bit; other types leave it as it is (measured)
        return [(8, 7, 4, plain), *([(8, 16, 1, 1)] if value in (11, 12) else [])]
    if inst.has("global_dim"):
        return [(0x20 + 4 * ordinal, 0, 32, value - 1)]
    if inst.has("box_dim"):
        return [(0x37 + ordinal, 0, 8, value - 1)]
    if inst.has("element_stride"):
        return [(0x34, 3 * ordinal, 3, value - 1)]
    if inst.has("global_stride"):
        return [(0x0C + 4 * ordinal, 0, 32, value >> 4), (0x1C, 4 * ordinal, 4, value >> 36)]
    raise Unsupported(inst.opcode)


def change(code: Code, step: Step, pc: int) -> Action:
    """tensormap.replace, tensormap.cp_fenceproxy"""
    inst = step.inst
    to = inst.operands[0]
    assert isinstance(to, Addr)
    where = address(code, step.function, to)
    if inst.has("cp_fenceproxy"):
        source = inst.operands[1]
        assert isinstance(source, Addr)
        read = address(code, step.function, source)

        def publish(m: Machine) -> int | None:
            threads = m.all[m.act]
            for k, (a, b) in enumerate(_rows(m, threads, [where, read])):
                one = threads[k : k + 1]
                target, at, _ = resolve(m, "global", np.array([a], U64), 8, "copy", one)[0]
                origin, start, _ = resolve(m, "shared", np.array([b], U64), 8, "copy", one)[0]
                span = np.arange(128)
                target.data[int(at[0]) + span] = origin.data[int(start[0]) + span]
                if m.track:
                    target.mark(int(at[0]) + span, 1, pc)
            return None

        return publish
    ordinal = inst.operands[1].value if len(inst.operands) > 2 and isinstance(inst.operands[1], Imm) else 0
    value = get(code, step.function, inst.operands[-1])
    space = space_of(code, step.function, to, inst)

    def run(m: Machine) -> int | None:
        threads = m.all[m.act]
        for k, (a, v) in enumerate(_rows(m, threads, [where, value])):
            for at, low, width, value_bits in _field(inst, ordinal, v):
                size = 8 if width == 64 else 4 if width == 32 or at in (8, 0x1C, 0x34) else 1
                memory, off, _ = resolve(m, space, np.array([a + at], U64), size, "store", threads[k : k + 1])[0]
                mask = ((1 << width) - 1) << low
                old = int(memory.load(off, size)[0])
                new = np.array([old & ~mask | value_bits << low & mask], U64)
                memory.store(off, size, new)
                if m.track:
                    memory.mark(off, size, pc)
        return None

    return run


ACTIONS: Final[dict[str, Callable[[Code, Step, int], Action]]] = {"tensormap": change}
__all__ = ["ACTIONS", "GLOBAL_BASE", "copy"]
