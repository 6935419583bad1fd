"""Copies by a tensor map: UTMALDG, UTMASTG, UTMAREDG, made at once (operands measured: see the rows of the ISA table).

A map has 128 bytes. The offsets of the fields that ``tensormap.replace`` writes are measured from ptxas's code; the
others are this project's own (docs/simulator.md): :mod:`stages.simulate.tensor_maps` makes such maps.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ir_format.model import Reg
from stages.simulate import ops_bulk
from stages.simulate.arr import Arr
from stages.simulate.build import Build, Builder, InstFn, View
from stages.simulate.image import GLOBAL_BASE
from stages.simulate.machine import Fault
from stages.simulate.memory import CONST_HI, PARAM_HI
from stages.simulate.ops_memory import fixed_window, mem_of, words_of

u8, u16, u32, u64, i64, f32 = np.uint8, np.uint16, np.uint32, np.uint64, np.int64, np.float32

#: Type field of a map: name, bytes, the fill for elements out of bounds if the map asks for NaNs (a guess: the
#: canonical NaN).
_TYPES: Final = {
    0: ("U8", 1, 0), 1: ("U16", 2, 0), 2: ("U32", 4, 0), 3: ("S32", 4, 0), 4: ("U64", 8, 0), 5: ("S64", 8, 0),
    6: ("F16", 2, 0x7FFF), 7: ("F32", 4, 0x7FFFFFFF), 8: ("F32", 4, 0x7FFFFFFF), 9: ("F64", 8, 0x7FFFFFFFFFFFFFFF),
    10: ("BF16", 2, 0x7FFF),
}  # fmt: skip
_UNSIGNED: Final = {1: u8, 2: u16, 4: u32, 8: u64}
_SPANS: Final = (16, 32, 64, 128)


class Map:
    """The fields of a map."""

    def __init__(self, data: bytes) -> None:
        words = np.frombuffer(data, u32).astype(i64)
        flags = int(words[2])
        self.address = int(words[0]) | int(words[1]) << 32
        self.rank = (flags >> 4 & 7) + 1
        kind = flags >> 7 & 15
        self.ftz, self.tf32 = kind == 8, bool(flags >> 16 & 1)
        if kind not in _TYPES or self.rank > 5:
            raise Fault(f"a tensor map of type {kind} and rank {self.rank}: not supported by the simulator")
        self.kind, self.size, nan = _TYPES[kind]
        self.fill = nan if flags >> 15 & 1 else 0
        if flags >> 11 & 3 or flags >> 19 & 7:
            raise Fault("interleaved tensor maps and other atoms of a swizzle are not supported by the simulator")
        self.span = _SPANS[flags >> 13 & 3]
        self.dims = [int(words[8 + i]) + 1 for i in range(self.rank)]
        high = int(words[7])
        self.strides = [
            self.size,
            *((int(words[3 + i]) | (high >> 4 * i & 15) << 32) << 4 for i in range(self.rank - 1)),
        ]
        self.steps = [(int(words[13]) >> 3 * i & 7) + 1 for i in range(self.rank)]
        box = [int(words[13]) >> 24 & 255, *(int(words[14]) >> 8 * i & 255 for i in range(4))]
        self.box = [box[i] + 1 for i in range(self.rank)]
        #: im2col: corners of the pixels' box, channels and pixels of a column (the project's own offsets)
        own = np.frombuffer(data[0x40:0x5C], np.int16).astype(int)
        self.lower, self.upper = [int(x) for x in own[0:3]], [int(x) for x in own[4:7]]
        self.channels, self.pixels = int(words[22]), int(words[23])

    def places(self, index: list[Arr]) -> tuple[Arr, Arr]:
        """Byte offsets from the address of the elements with these indices (one array per dimension, innermost first;
        the arrays broadcast together), and which of the elements exist."""
        at: Any = 0
        there: Any = True
        for i, x in enumerate(index):
            there = there & (x >= 0) & (x < self.dims[i])
            at = at + x * self.strides[i]
        return np.asarray(at), np.asarray(there)

    def tile(self, start: list[int]) -> list[Arr]:
        """The indices of a box: the last dimension is the slowest."""
        out = []
        for i in range(self.rank):
            x = start[i] + self.steps[i] * np.arange(-(-self.box[i] // self.steps[i]))
            out.append(x.reshape([-1 if j == self.rank - 1 - i else 1 for j in range(self.rank)]))
        return out

    def rows(self, first: int, rows: list[int]) -> list[Arr]:
        """The indices of four rows of a map of two dimensions."""
        return [(first + np.arange(self.box[0]))[None, :], np.array(rows)[:, None]]

    def column(self, start: list[int], offsets: list[int], wide: int = 0) -> list[Arr]:
        """The indices of pixels that follow each other in their box, row by row and image by image (documented), moved
        by ``offsets`` (in elements, so not scaled)."""
        inner = self.rank - 2
        low = self.lower[:inner]
        extent = [(self.dims[1 + i] + self.upper[i] - 1 - low[i]) // self.steps[1 + i] + 1 for i in range(inner)]
        step = [self.steps[1 + i] for i in range(inner)]
        place = [(start[1 + i] - low[i]) // step[i] for i in range(inner)]
        count = wide or self.pixels
        flat = np.arange(count)
        indices = []
        for i in range(inner):
            flat = flat + place[i]
            indices.append(low[i] + flat % extent[i] * step[i] + offsets[i])
            flat = flat // extent[i]
        image = start[-1] + flat
        return [(start[0] + np.arange(self.channels))[None, :], *(x[:, None] for x in indices), image[:, None]]


def _map_at(b: Build, address: int) -> Map:
    """A map in global memory, among the parameters or the constants."""
    upper = address >> 32
    if upper in (CONST_HI, PARAM_HI):
        memory, at = fixed_window(b, upper, "read", 64)(np.array([address], u64), np.zeros(1, i64))
        fixed_window(b, upper, "read", 64)(np.array([address + 64], u64), np.zeros(1, i64))
        return Map(memory.data[int(at[0]) : int(at[0]) + 128].tobytes())
    heap = b.ctx.memory.heap
    at = heap.offsets(np.array([address], u64), 64, None, "read")
    heap.offsets(np.array([address + 64], u64), 64, None, "read")
    return Map(heap.data[int(at[0]) : int(at[0]) + 128].tobytes())


def _elements(b: Build, m: Map, at: Arr, there: Arr, what: str) -> tuple[Arr, Arr]:
    """Element numbers in global memory of the elements that exist, and which those are."""
    some = np.flatnonzero(np.broadcast_to(there, np.broadcast_shapes(at.shape, there.shape)).ravel())
    offsets = np.broadcast_to(at, np.broadcast_shapes(at.shape, there.shape)).ravel()[some]
    if len(some):
        heap = b.ctx.memory.heap
        ends = np.array([m.address + int(offsets.min()), m.address + int(offsets.max())]).astype(u64)
        heap.offsets(ends, m.size, None, what)
    return (m.address - GLOBAL_BASE + offsets) // m.size, some


def _swizzled(m: Map, base: int, count: int) -> Arr:
    """Offsets of the 16-byte pieces of a box in shared memory, from an address there."""
    at = base + 16 * np.arange(count)
    return np.asarray(at ^ ((at >> 7 & (m.span // 16 - 1)) << 4))


def _box(b: Build, v: View, m: Map, address: int, lane: int, count: int, what: str) -> tuple[Any, Arr]:
    """Shared memory, and the numbers of the pieces of a box of this many elements."""
    size = count * m.size
    if size % 16 or address & 127:
        raise Fault(f"a box of {size} bytes at {address:#x}: not a multiple of 16 at a multiple of 128", lane)
    one = np.array([lane])
    low = ops_bulk.shared_at(b.ctx, v, np.array([address], u32), one, 16, what)
    ops_bulk.shared_at(b.ctx, v, np.array([address + size - 16], u32), one, 16, what)
    base = int(low[0]) - (address & 0xFFFFFF)
    return b.ctx.memory.shared, (base + _swizzled(m, address & 0xFFFFFF, size // 16)) // 16


def _round_tf32(bits: Arr) -> Arr:
    """Round to the nearest number with 10 bits of fraction; ties away from zero (a guess)."""
    return np.asarray(np.where(bits & u32(0x7F800000) == u32(0x7F800000), bits, (bits + u32(0x1000)) & u32(0xFFFFE000)))


class _Uniform:
    """The uniform registers of an instruction, for one lane."""

    def __init__(self, b: Build) -> None:
        block, at = mem_of(b, 0).ubase, mem_of(b, 1).ubase
        if block is None or at is None:
            raise b.refuse("no registers")
        self.block = [b.row(block, i) for i in range(block.width)]
        self.at = b.row(at, 0), b.row(at, 1)
        more = [o for o in b.inst.srcs if isinstance(o, Reg) and o.file == "UR"]
        self.more = b.row(more[0]) if more else -1

    def read(self, v: View, lane: int) -> tuple[list[int], int, int]:
        """The words of the block, the address of the map, the offsets and masks."""
        words = [int(v.U[r][lane]) for r in self.block]
        address = int(v.U[self.at[0]][lane]) | int(v.U[self.at[1]][lane]) << 32
        return words, address, int(v.U[self.more][lane]) if self.more >= 0 else 0


def _signed(words: list[int]) -> list[int]:
    return [w - ((w & 0x80000000) << 1) for w in words]


def _offsets_of(word: int, count: int) -> list[int]:
    """im2col's offsets in a half word (measured: 16, 8 or 5 bits each)."""
    bits = {1: 16, 2: 8, 3: 5}[count]
    return [word >> bits * i & (1 << bits) - 1 for i in range(count)]


def _index(b: Build, m: Map, mode: str, start: list[int], more: int) -> list[Arr]:
    if mode in ("GATHER4", "SCATTER4"):
        return m.rows(start[0], start[1:5])
    if len(start) != m.rank:
        raise Fault(f"{len(start)} coordinates for a tensor map of {m.rank} dimensions")
    if mode == "IM2COL":
        if m.rank < 3:
            raise Fault("im2col of a tensor map of fewer than three dimensions")
        return m.column(start, _offsets_of(more & 0xFFFF, m.rank - 2))
    return m.tile(start)


def _mode(b: Build, *known: str) -> str:
    words = words_of(b)
    dims = ("1D", "2D", "3D", "4D", "5D")
    modes = ("IM2COL", "GATHER4", "SCATTER4")
    b.only(*dims, *modes, *known)
    return next((x for x in words if x in modes), "")


def load(b: Build) -> InstFn:
    """UTMALDG: copy a box to shared memory of each block of a multicast; its bytes arrive at a barrier object."""
    mode = _mode(b, "MULTICAST", "2CTA")
    several = "MULTICAST" in b.mods
    registers = _Uniform(b)

    def run(v: View, mask: Arr | None) -> None:
        for lane in ops_bulk.leaders(v, mask):
            words, address, more = registers.read(v, int(lane))
            m = _map_at(b, address)
            places = m.places(_index(b, m, mode, _signed(words[2:]), more))
            count = int(np.prod(np.broadcast_shapes(*(x.shape for x in places))))
            for rank in ops_bulk.bits(more >> 16) if several else [-1]:
                to, bar = (x if rank < 0 else int(ops_bulk.in_block(np.array([x], u32), rank)[0]) for x in words[:2])
                memory, pieces = _box(b, v, m, to, int(lane), count, "write")

                def deliver(m: Map = m, places: Any = places, memory: Any = memory, pieces: Arr = pieces) -> None:
                    memory.quads[pieces] = _gather(b, m, *places).view(u32).reshape(-1, 4)

                ops_bulk.bring(b.ctx, v, np.array([bar], u32), np.array([lane]), count * m.size, deliver)

    return run


def _gather(b: Build, m: Map, at: Arr, there: Arr) -> Arr:
    """The elements of a box, in the order of shared memory."""
    shape = np.broadcast_shapes(at.shape, there.shape)
    kind = _UNSIGNED[m.size]
    data = np.full(int(np.prod(shape)), m.fill, kind)
    numbers, some = _elements(b, m, at, there, "read")
    data[some] = b.ctx.memory.heap.views[m.size][numbers]
    if m.tf32:
        data = _round_tf32(data)
    if m.ftz:
        data = np.where(data & u32(0x7F800000), data, data & u32(0x80000000))
    return np.ascontiguousarray(data)


def store(b: Build) -> InstFn:
    """UTMASTG, UTMAREDG: copy or reduce a box of shared memory to those of its elements that exist."""
    ops = ("ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR")
    mode = _mode(b, *(ops if b.inst.op == "UTMAREDG" else ()))
    what = next((x for x in b.inst.mods if x in ops), "ADD") if b.inst.op == "UTMAREDG" else ""
    registers = _Uniform(b)

    def run(v: View, mask: Arr | None) -> None:
        for lane in ops_bulk.leaders(v, mask):
            words, address, _ = registers.read(v, int(lane))
            m = _map_at(b, address)
            at, there = m.places(_index(b, m, mode, _signed(words[1:]), 0))
            count = int(np.prod(np.broadcast_shapes(at.shape, there.shape)))
            memory, pieces = _box(b, v, m, words[0], int(lane), count, "read")
            numbers, some = _elements(b, m, at, there, "write")

            def act(
                m: Map = m, memory: Any = memory, pieces: Arr = pieces, to: Arr = numbers, some: Arr = some
            ) -> None:
                data = np.ascontiguousarray(memory.quads[pieces]).view(_UNSIGNED[m.size]).ravel()
                target = b.ctx.memory.heap.views[m.size]
                if not what:
                    target[to] = data[some]
                    return
                result = ops_bulk.reduction(what, m.kind)(target[to].view(u8), data[some].view(u8))
                target[to] = result.view(_UNSIGNED[m.size])

            ops_bulk.send(b.ctx, v, int(lane), act)

    return run


OPS: Final[dict[str, Builder]] = {
    "UTMALDG": load, "UTMASTG": store, "UTMAREDG": store, "UTMAPF": ops_bulk.quiet, "UTMAL2CCTL": ops_bulk.quiet,
    "UBLKL2CCTL": ops_bulk.quiet,
}  # fmt: skip
