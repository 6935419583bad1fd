"""Tensor memory (sm_100a and later): products UTCHMMA, UTCQMMA, UTCIMMA of one block, LDTM and STTM, UTCBAR, and the
mask of allocated columns. All take effect at once.

A block has 128 lanes of 512 cells of 32 bits. One lane of a warp starts a product; the instruction descriptor says what
it computes (documented for PTX). Refused by name: pairs of blocks, block scales, sparse A, .WS, sums of 16 bits,
elements of 4 and 6 bits, copies and shifts of tensor memory, loads of 16 x 64 bits and packed loads.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ir_format.model import Imm, Mem, Reg
from stages.simulate import fp, ops_bulk
from stages.simulate.arr import Arr
from stages.simulate.build import Build, Builder, Context, InstFn, View, put
from stages.simulate.machine import Fault
from stages.simulate.memory import atomic
from stages.simulate.ops_barrier_words import step90
from stages.simulate.ops_memory import mem_of
from stages.simulate.ops_warpgroup import Descriptor, numbers, tile
from stages.simulate.state import SINK

u32, u64, i64, f32, f64 = np.uint32, np.uint64, np.int64, np.float32, np.float64
LANES: Final = 128
COLUMNS: Final = 512
#: Columns that are allocated together.
_UNIT: Final = 32
#: Types of A and B by instruction and number (documented); None: refused.
_TYPES: Final[dict[str, tuple[str, ...]]] = {
    "UTCHMMA": ("F16", "BF16", "TF32"), "UTCQMMA": ("E4M3", "E5M2"), "UTCIMMA": ("U8", "S8"),
}  # fmt: skip
_SPANS: Final = {0: 16, 2: 128, 4: 64, 6: 32}


class TensorMemory:
    """The cells of every resident block, and which of its columns are allocated."""

    def __init__(self, blocks: int) -> None:
        generator = np.random.default_rng(blocks)
        self.cells = generator.integers(0, 1 << 32, (blocks, LANES, COLUMNS), dtype=u32)
        self.used = [0] * blocks


def tensor_of(ctx: Context) -> TensorMemory:
    """The tensor memory of a launch, created on first use."""
    if ctx.tensor is None:
        ctx.tensor = TensorMemory(ctx.launch.resident)
    return ctx.tensor  # type: ignore[no-any-return]


def _at(address: int, lanes: int, columns: int) -> tuple[int, int]:
    """First lane and column."""
    lane, column = address >> 16, address & 0xFFFF
    if lane + lanes > LANES or column + columns > COLUMNS:
        raise Fault(f"tensor memory at lane {lane}, column {column}: {lanes} lanes of {columns} columns lie outside")
    return lane, column


# --- products ---


class _Fields:
    """An instruction descriptor."""

    def __init__(self, word: int, op: str) -> None:
        if word & 7:
            raise Fault("products of sparse matrices in tensor memory are not supported by the simulator")
        types = _TYPES[op]
        a, b = word >> 7 & 7, word >> 10 & 7
        if a >= len(types) or b >= len(types):
            raise Fault(f"element types {a} and {b} of {op} are not supported by the simulator")
        self.a, self.b = types[a], types[b]
        self.sums = word >> 4 & 3
        if self.sums != (2 if op == "UTCIMMA" else 1):
            raise Fault(f"sums of type {self.sums} of {op} are not supported by the simulator")
        self.saturate = bool(word >> 3 & 1)
        self.negative = bool(word >> 13 & 1), bool(word >> 14 & 1)
        self.turned = bool(word >> 15 & 1), bool(word >> 16 & 1)
        self.n, self.m = (word >> 17 & 63) * 8, (word >> 24 & 31) * 16
        if self.m not in (64, 128):
            raise Fault(f"products of {self.m} rows are not supported by the simulator")

    def lanes(self, first: int) -> Arr:
        """The lanes of the rows: with 64 rows, the first 16 of every 32 (documented)."""
        rows = np.arange(self.m)
        return first + (rows if self.m == 128 else rows // 16 * 32 + rows % 16)


def _descriptor(low: int, high: int) -> Descriptor:
    d = Descriptor(low, high & 0x3FFFFFFF)
    span = _SPANS.get(high >> 29)
    if span is None or high >> 20 & 1:
        raise Fault(f"a matrix descriptor with the upper word {high:#x} is not supported by the simulator")
    d.span = span
    return d


def mma(b: Build) -> InstFn:
    """UTCHMMA, UTCQMMA, UTCIMMA: D = A B (+ D)."""
    b.only()
    places = [o for o in b.inst.srcs if isinstance(o, Mem)]
    if len(places) != 4 or any(isinstance(o, Reg) and o.file == "UR" and o.num >= 0 for o in b.inst.srcs):
        raise b.refuse("operands")
    left, right, to, more = places
    in_tensor = left.desc is None
    where = left.ubase if in_tensor else left.desc
    rows_a = [b.row(where, i) for i in range(1 if in_tensor else 2)]  # type: ignore[arg-type]
    rows_b = [b.row(right.desc, i) for i in range(2)]  # type: ignore[arg-type]
    row_d, row_i = b.row(to.ubase), b.row(more.ubase, 1)  # type: ignore[arg-type]
    keep = b.psrc(0, False)
    shift = next((o.value for o in b.inst.srcs if isinstance(o, Imm)), 0)
    op = b.inst.op

    def run(v: View, mask: Arr | None) -> None:
        tensor, window = tensor_of(b.ctx), b.ctx.memory.shared
        for lane in ops_bulk.leaders(v, mask):
            f = _Fields(int(v.U[row_i][lane]), op)
            block, origin = int(v.wide("block")[lane]), int(v.wide(window.lane_key)[lane])
            cells = tensor.cells[block]
            first, column = _at(int(v.U[row_d][lane]), f.m if f.m == LANES else 112, f.n)
            words_a = [int(v.U[r][lane]) for r in rows_a]
            unit = {"F16": 2, "BF16": 2, "TF32": 4}.get(f.a, 1)
            if in_tensor:
                _, at = _at(words_a[0], f.m, 8)
                data = np.ascontiguousarray(cells[f.lanes(words_a[0] >> 16), at : at + 8]).view(np.uint8)
            else:
                d = _descriptor(*words_a)
                data = tile(window, origin, window.size, d, 0, f.m, 32, f.turned[0], unit)
            d = _descriptor(*(int(v.U[r][lane]) for r in rows_b))
            other = tile(window, origin, window.size, d, 0, f.n, 32, f.turned[1], unit)
            a, c = numbers(data, f.a), numbers(other, f.b)
            total = (-a if f.negative[0] else a) @ (-c if f.negative[1] else c).T
            lanes = f.lanes(first)
            part = cells[lanes, column : column + f.n]
            if keep(v)[lane]:
                old = part.view(np.int32 if f.sums == 2 else f32).astype(f64)
                total = total + (old if not shift else np.ldexp(old, -shift))
            cells[lanes, column : column + f.n] = _words(total, f)

    return run


def _words(total: Arr, f: _Fields) -> Arr:
    if f.sums == 1:
        return np.asarray(fp.round_f32(total).view(u32))
    exact = total.astype(i64)
    return np.asarray((np.clip(exact, -(1 << 31), (1 << 31) - 1) if f.saturate else exact).astype(u32))


def arrive(b: Build) -> InstFn:
    """UTCBAR: arrive once when the work started so far is done, which is at once here."""
    b.only()
    row = b.row(mem_of(b).ubase)  # type: ignore[arg-type]
    one_more, nothing = np.ones(1, u64), np.zeros(1, u64)

    def run(v: View, m: Arr | None) -> None:
        for lane in ops_bulk.leaders(v, m):
            one = np.array([lane])
            at = ops_bulk.shared_at(b.ctx, v, v.U[row][one], one, 8, "atomic")
            atomic(b.ctx.memory.shared.views[8], at // 8, lambda o, k: step90(o, one_more, nothing), one_more, True)

    return run


# --- loads and stores ---


def _pattern(b: Build, count: int) -> tuple[Arr, Arr, Arr]:
    """Lane and column, relative to the address, of each register of each thread; which threads take part."""
    t, r = np.arange(32)[:, None], np.arange(count)[None, :]
    here = np.ones(32, np.bool_)
    words = {w for m in b.inst.mods for w in m.split(".")}
    if "16dp256bit" in words:  # eight columns, as the sums of a product
        return t // 4 + 8 * (r // 2 % 2), 8 * (r // 4) + 2 * (t % 4) + r % 2, here
    if "16dp128bit" in words:
        return t // 4 + 8 * (r % 2), 4 * (r // 2) + t % 4, here
    if "16dp32bit_t0_t15" in words:
        return t + 0 * r, r + 0 * t, np.arange(32) < 16
    if "16dp32bit_t16_t31" in words:
        return t - 16 + 0 * r, r + 0 * t, np.arange(32) >= 16
    if words - {f"x{1 << k}" for k in range(8)}:
        raise b.refuse("shape")
    return t + 0 * r, r + 0 * t, here


def _transfer(b: Build, store: bool) -> InstFn:
    """LDTM, STTM: transfer a warp's lanes of tensor memory, starting at the one that the address names."""
    mem = mem_of(b)
    if mem.ubase is None:
        raise b.refuse("no address")
    base = b.row(mem.ubase)
    data = next(o for o in (b.s if store else b.d) if isinstance(o, Reg))
    count = data.width
    rows = [b.row(data) if data.num < 0 else b.row(data, i) for i in range(count)] if store else [
        b.dst(i) for i in range(count)
    ]  # fmt: skip
    lane, column, here = _pattern(b, count)
    lane, column = lane[here], column[here]
    high, wide = int(lane.max()) + 1, int(column.max()) + 1

    def run(v: View, m: Arr | None) -> None:
        tensor = tensor_of(b.ctx)
        values = np.zeros((count, v.n), u32) if not store else np.stack([v.U[r] for r in rows])
        taken = np.zeros(v.n, np.bool_)
        for warp in range(v.n // 32):
            part = slice(32 * warp, 32 * warp + 32)
            if m is not None and not m[part].any():
                continue
            address = (int(v.U[base][32 * warp]) + mem.offset) & 0xFFFFFFFF
            first, at = _at(address, high, wide)
            cells = tensor.cells[int(v.wide("block")[32 * warp])]
            who = np.flatnonzero(here) + 32 * warp
            if store:
                cells[first + lane, at + column] = values[:, who].T
            else:
                values[:, who] = cells[first + lane, at + column].T
                taken[who] = True
        if not store:
            for row, value in zip(rows, values, strict=True):
                if row != SINK:
                    put(v.U[row], value, taken if m is None else taken & m)

    return run


# --- columns in use ---


def columns(b: Build) -> InstFn:
    """UTCATOMSWS: FIND_AND_SET.ALIGN allocates units of 32 columns, aligned to their number if possible (a guess); AND
    keeps those of a mask."""
    b.only("FIND_AND_SET", "ALIGN", "AND")
    source = b.row(b.s[0])
    out, found = b.dst(), b.pdst(0)
    finds = "FIND_AND_SET" in b.mods

    def run(v: View, m: Arr | None) -> None:
        tensor = tensor_of(b.ctx)
        for lane in ops_bulk.leaders(v, m):
            block, word = int(v.wide("block")[lane]), int(v.U[source][lane])
            warp = slice(lane // 32 * 32, lane // 32 * 32 + 32)
            if not finds:
                v.U[out][warp] = tensor.used[block]
                tensor.used[block] &= word
                continue
            ones = (1 << word) - 1
            free = [i for i in range(0, COLUMNS // _UNIT, max(word, 1)) if not tensor.used[block] & ones << i]
            v.P[found][warp] = bool(free)
            v.U[out][warp] = free[0] if free else 0
            if free:
                tensor.used[block] |= ones << free[0]

    return run


OPS: Final[dict[str, Builder]] = {
    "UTCHMMA": mma, "UTCQMMA": mma, "UTCIMMA": mma, "UTCBAR": arrive, "UTCATOMSWS": columns,
    "UVIRTCOUNT": ops_bulk.quiet,
    "LDTM": lambda b: _transfer(b, False), "STTM": lambda b: _transfer(b, True),
}  # fmt: skip
