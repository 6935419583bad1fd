"""Bulk copies and reductions between global and shared memory, and stores that arrive at a barrier object. All are made
at once.

UBLKCP, UBLKRED: destination, source and size are uniform, so a warp copies once. A destination in shared memory is a
pair: the address, and the address of the barrier object at which the bytes arrive. The lower half of the size counts
units of 16 bytes, the upper half names the blocks of a multicast (measured: the code packs them so).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ir_format.model import ZERO, Imm, Reg
from stages.simulate import fp
from stages.simulate.arr import Arr
from stages.simulate.build import Build, Builder, Context, InstFn, View
from stages.simulate.exact import BF16, F16
from stages.simulate.memory import atomic
from stages.simulate.ops_atomic import operation
from stages.simulate.ops_barrier_words import step90
from stages.simulate.ops_float import best
from stages.simulate.ops_memory import active, address32, address64, data_rows, gather_data, locate, mem_of, words_of

u8, u32, u64, i64 = np.uint8, np.uint32, np.uint64, np.int64


def leaders(v: View, m: Arr | None) -> Arr:
    """One lane of each active warp."""
    lanes = np.arange(0, v.n, 32)
    if m is None:
        return lanes
    some = m.reshape(-1, 32)
    return np.asarray((lanes + some.argmax(axis=1))[some.any(axis=1)])


def shared_at(ctx: Context, v: View, address: Arr, lanes: Arr, size: int, what: str) -> Arr:
    """Byte offsets of shared addresses, whose upper byte names the block of the cluster."""
    launch = ctx.launch
    window = ctx.memory.shared
    if launch.cluster_size > 1:
        base = launch.cluster_base(v, address, lanes)
        address = address & u32(0xFFFFFF)
    else:
        base = v.wide(window.lane_key)[lanes]
    return np.asarray(window.offsets(address, size, lanes, what, base))


def _span(ctx: Context, v: View, space: str, address: Arr, lane: Arr, size: int, what: str) -> tuple[Any, slice]:
    """Memory and bytes of one copy, both ends checked."""
    memory = ctx.memory
    if space == "G":
        heap = memory.heap
        at = int(heap.offsets(address, 16, lane, what)[0])
        heap.offsets(address + u64(size - 16), 16, lane, what)
        return heap, slice(at, at + size)
    at = int(shared_at(ctx, v, address, lane, 16, what)[0])
    shared_at(ctx, v, address + u32(size - 16), lane, 16, what)
    return memory.shared, slice(at, at + size)


def arrive(ctx: Context, v: View, address: Arr, lane: Arr, size: int) -> None:
    """Bytes have arrived at a barrier object."""
    at = shared_at(ctx, v, address, lane, 8, "atomic")
    view = ctx.memory.shared.views[8]
    count = np.array([size], u64)
    atomic(view, at // 8, lambda o, k: step90(o, np.zeros(len(k), u64), u64(0) - count[k]), count, True)


def bring(ctx: Context, v: View, address: Arr, lane: Arr, size: int, deliver: Callable[[], None]) -> None:
    """A copy to shared memory whose bytes arrive at a barrier object: at once, or when the program waits for it."""
    if ctx.copies is None:
        deliver()
        arrive(ctx, v, address, lane, size)
        return

    def later() -> None:
        deliver()
        arrive(ctx, v, address, lane, size)

    ctx.copies.arrive(int(shared_at(ctx, v, address, lane, 8, "atomic")[0]), later)


def send(ctx: Context, v: View, lane: int, act: Callable[[], None]) -> None:
    """A copy from shared memory: at once, or when the warp waits for it."""
    if ctx.copies is None:
        act()
    else:
        ctx.copies.leave(v.lo // 32 + lane // 32, act)


def commit(b: Build) -> InstFn:
    """UTMACMDFLUSH: commit the warp's copies from shared memory so far as a group."""
    copies = b.ctx.copies
    if copies is None:
        return quiet(b)
    return lambda v, m: copies.commit(v.lo // 32 + leaders(v, m) // 32)


def wait_copies(b: Build) -> InstFn:
    """DEPBAR, which also waits for groups of copies from shared memory."""
    copies = b.ctx.copies
    if copies is None:
        return quiet(b)
    left = next((o.value for o in b.inst.srcs if isinstance(o, Imm)), 0)
    return lambda v, m: copies.finish(v.lo // 32 + leaders(v, m) // 32, left)


def in_block(address: Arr, rank: int) -> Arr:
    return np.asarray((address & u32(0xFFFFFF)) | u32(rank << 24))


def multicast(ctx: Context, v: View, lane: int, to: int, source: int, size: int, blocks: int, barrier: int) -> None:
    """One lane copies ``size`` bytes from global memory to the same offset in shared memory of each block of the mask;
    the bytes arrive at a barrier object there."""
    one = np.array([lane])
    memory, span = _span(ctx, v, "G", np.array([source], u64), one, size, "read")
    data = memory.data[span].copy()
    for r in bits(blocks):
        dest, out = _span(ctx, v, "S", in_block(np.array([to], u32), r), one, size, "write")
        dest.data[out] = data
        arrive(ctx, v, in_block(np.array([barrier], u32), r), one, size)


def bits(mask: int, width: int = 16) -> list[int]:
    """The blocks that a mask of this many bits names."""
    return [r for r in range(width) if mask >> r & 1]


Reduce = Callable[[Arr, Arr], Arr]


def _reduction(b: Build) -> Reduce:
    """The reduction that the modifiers name."""
    words = words_of(b)
    op = next((x for x in words if x in ("ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR")), "ADD")
    kind = next((x for x in words if x in ("S32", "U64", "S64", "F16", "BF16", "F32", "F64", "64", "U32")), "U32")
    return reduction(op, kind)


def reduction(op: str, kind: str) -> Reduce:
    """A function from the bytes of destination and source to those of the result."""
    if kind in ("F16", "BF16"):
        fmt = F16 if kind == "F16" else BF16
        fn: Any = {
            "ADD": fp.add_odd,
            "MIN": lambda x, y: best(True, False, x, y),
            "MAX": lambda x, y: best(False, False, x, y),
        }[op]

        def halves(old: Arr, new: Arr) -> Arr:
            x, y = (fp.decode_half(np.ascontiguousarray(a).view(np.uint16), fmt) for a in (old, new))
            return np.asarray(fp.encode_half(fn(x, y), fmt).view(u8))

        return halves
    types: dict[str, Any] = {
        "U32": u32,
        "S32": np.int32,
        "U64": u64,
        "64": u64,
        "S64": i64,
        "F32": np.float32,
        "F64": np.float64,
    }
    view = types[kind]
    plain: dict[str, Any] = {
        "ADD": np.add, "MIN": np.minimum, "MAX": np.maximum, "AND": np.bitwise_and, "OR": np.bitwise_or,
        "XOR": np.bitwise_xor,
        "INC": lambda x, y: np.where(x >= y, view(0), x + view(1)), "DEC": lambda x,
        y: np.where((x == 0) | (x > y), y, x - view(1)),
    }  # fmt: skip

    def run(old: Arr, new: Arr) -> Arr:
        x, y = (np.ascontiguousarray(a).view(view) for a in (old, new))
        with np.errstate(all="ignore"):
            if kind == "F32":  # the word has no .FTZ, unlike the additions of single numbers in global memory
                return np.asarray(np.ascontiguousarray(fp.canonical32(x + y)).view(u8))
            return np.asarray(np.ascontiguousarray(plain[op](x, y).astype(view)).view(u8))

    return run


def bulk(b: Build) -> InstFn:
    """UBLKCP, UBLKRED: {S G} {S G} order: destination, source."""
    words = words_of(b)
    reduce = _reduction(b) if b.inst.op == "UBLKRED" else None
    spaces = [x for x in words if x in ("S", "G")]
    if len(spaces) != 2 or any(x not in _KNOWN for x in words):
        raise b.refuse()
    to, source = mem_of(b, 0), mem_of(b, 1)
    wide = "MULTICAST32" in words  # its mask is the word after the size
    several, masked = wide or "MULTICAST" in words, "DST_G_BYTE_MASK" in words
    size_row = next(b.row(o) for o in b.inst.srcs if isinstance(o, Reg) and o.file == "UR")
    get_to = address64(b, to, True) if spaces[0] == "G" else address32(b, to)
    get_from = address64(b, source, True) if spaces[1] == "G" else address32(b, source)
    barrier = b.row(to.ubase, 1) if spaces[0] == "S" and to.ubase is not None else None

    def run(v: View, m: Arr | None) -> None:
        a, f = get_to(v), get_from(v)
        for lane in leaders(v, m):
            one = np.array([lane])
            word = int(v.U[size_row][lane])
            size = 16 * (word & 0xFFFF)
            if not size:
                continue
            memory, span = _span(b.ctx, v, spaces[1], f[one], one, size, "read")
            data = memory.data[span].copy()
            ranks = bits(int(v.U[size_row + 1][lane]) if wide else word >> 16, 32 if wide else 16) if several else [-1]
            for r in ranks:
                address = a[one] if r < 0 else in_block(a[one], r)
                dest, out = _span(b.ctx, v, spaces[0], address, one, size, "write")
                if masked:  # the upper half says which of each 16 bytes to write
                    keep = np.resize((word >> (16 + np.arange(16)) & 1).astype(np.bool_), size)
                    dest.data[out] = np.where(keep, data, dest.data[out])
                    continue
                dest.data[out] = data if reduce is None else reduce(dest.data[out], data)
                if barrier is not None:
                    bar = v.U[barrier][one]
                    arrive(b.ctx, v, bar if r < 0 else in_block(bar, r), one, size)

    return run


_KNOWN: Final = frozenset(
    [
        "S",
        "G",
        "MULTICAST",
        "MULTICAST32",
        "STRONG",
        "SM",
        "GPU",
        "SYS",
        "DST_G_BYTE_MASK",
        "ADD",
        "MIN",
        "MAX",
        "INC",
        "DEC",
        "AND",
        "OR",
        "XOR",
        "U32",
        "S32",
        "U64",
        "S64",
        "64",
        "F16",
        "BF16",
        "F32",
        "F64",
        "RN",
    ]
)


def async_store(b: Build) -> InstFn:
    """STAS, REDAS: a store or reduction in shared memory of the cluster; its bytes arrive at the barrier object that
    the second address register names."""
    words = words_of(b)
    step: Any = None
    if b.inst.op == "REDAS":
        size, step = operation(b)
    else:
        size = next(({"64": 8, "128": 16}[x] for x in words if x in ("64", "128")), 4)
        if any(x not in ("64", "128", "32") for x in words):
            raise b.refuse()
    target = mem_of(b)
    place = locate(b, "shared", target, size, "write")
    data = [o for o in b.s if isinstance(o, Reg)]
    rows = data_rows(b, data[0], size)
    if target.base is None:
        raise b.refuse("no barrier")
    bar = b.row(target.base, 1)

    def run(v: View, m: Arr | None) -> None:
        act = active(m)
        memory, at = place(v, act)
        values = gather_data(rows, size, v, act)
        if step is None:
            memory.store(at, size, values)
        else:
            atomic(memory.views[size], at // size, lambda o, k: step(o, values[k]), values, True)
        lanes = np.arange(v.n) if act is None else act
        for lane in lanes:
            one = np.array([lane])
            arrive(b.ctx, v, v.U[bar][one], one, size)

    return run


def fill(b: Build) -> InstFn:
    """UMEMSETS.64: fill shared memory with zeros, in words of 8 bytes (measured: st.bulk)."""
    b.only("64")
    registers = [o for o in b.inst.srcs if isinstance(o, Reg) and o.file == "UR"]
    if len(registers) > 1 and registers[0].num != ZERO:
        raise b.refuse("another value than zero")
    get = address32(b, mem_of(b))
    count = b.row(registers[-1])

    def run(v: View, m: Arr | None) -> None:
        address = get(v)
        for lane in leaders(v, m):
            one = np.array([lane])
            size = 8 * int(v.U[count][lane])
            if size:
                memory = b.ctx.memory.shared
                at = int(shared_at(b.ctx, v, address[one], one, 8, "write")[0])
                shared_at(b.ctx, v, address[one] + u32(size - 8), one, 8, "write")
                memory.data[at : at + size] = 0

    return run


def quiet(b: Build) -> InstFn:
    """Hints and events that have no effect here."""
    return lambda v, m: None


def prefetch_only(b: Build) -> InstFn:
    """UTMACCTL: prefetches of a tensor map have no effect here; other forms need tensor maps."""
    b.only("PF", "IV")
    return quiet(b)


OPS: Final[dict[str, Builder]] = {
    "UBLKCP": bulk, "UBLKRED": bulk, "UBLKPF": quiet, "UMEMSETS": fill, "UTMACMDFLUSH": commit, "DEPBAR": wait_copies,
    "UTMACCTL": prefetch_only, "PMTRIG": quiet, "STAS": async_store, "REDAS": async_store,
}  # fmt: skip
