"""Loads, stores, constants, copies to shared memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ir_format.model import ZERO, Const, Imm, Mem, Operand, Reg
from stages.simulate.build import Arr, Build, Builder, Get, InstFn, View, count, join64, put
from stages.simulate.image import GLOBAL_BASE
from stages.simulate.machine import Fault
from stages.simulate.memory import CONST_HI, LOCAL_HI, PARAM_HI, SHARED_HI, Bytes, aligned, lane_of
from stages.simulate.state import SINK

u8, u32, u64, i64 = np.uint8, np.uint32, np.uint64, np.int64

#: Modifiers that do not change an access in a model that has no caches and is strongly ordered.
HINTS: Final = frozenset(
    [
        "E",
        "CONSTANT",
        "STRONG",
        "WEAK",
        "MMIO",
        "SYS",
        "GPU",
        "SM",
        "CTA",
        "VC",
        "EF",
        "EL",
        "LU",
        "EU",
        "NA",
        "U",
        "LTC64B",
        "LTC128B",
        "LTC256B",
        "PRIVATE",
        "ADDR",
        "BYPASS",
        "ACCESS",
        "EN",
        "ENL2",
        "ELL2",
        "EFL2",
        "L2",
        "IVALL",
        "32",
        "D",
        "B",
    ]
)
SIZES: Final[dict[str, tuple[int, bool]]] = {
    "U8": (1, False), "S8": (1, True), "U16": (2, False), "S16": (2, True), "32": (4, False), "64": (8, False),
    "128": (16, False),
    "256": (32, False),
}  # fmt: skip
#: space of a load or store: function of (build, address operand, size, what) -> locator
Locator = Callable[[View, "Arr | None"], tuple[Any, Arr]]


def words_of(b: Build) -> list[str]:
    """Modifiers split at dots."""
    return [w for m in b.inst.mods for w in m.split(".")]


def access_size(b: Build, *also: str) -> tuple[int, bool]:
    """(bytes, sign-extend) of the access; refuses unknown modifiers."""
    size = (4, False)
    for word in words_of(b):
        if word in SIZES:
            size = SIZES[word]
        elif word not in HINTS and word not in also:
            raise b.refuse(f"modifier {word}")
    return size


def mem_of(b: Build, index: int = 0) -> Mem:
    """The index-th address operand."""

    found = [o for o in (*b.inst.dsts, *b.inst.srcs) if isinstance(o, Mem)]
    if index >= len(found):
        raise b.refuse("no address operand")
    return found[index]


_SCALE: Final = {"X4": 2, "X8": 3, "X16": 4}


def address32(b: Build, op: Mem) -> Get:
    """A 32-bit byte address."""
    parts: list[Get] = []
    if op.base is not None and op.base.num != ZERO:
        base = b.raw(op.base)
        shift = _SCALE.get(op.base.mod, 0)
        parts.append((lambda v: base(v) << u32(shift)) if shift else base)
    if op.ubase is not None and op.ubase.num != ZERO:
        parts.append(b.raw(op.ubase))
    offset = u32(op.offset & 0xFFFFFFFF)
    if not parts:
        return lambda v: np.full(v.n, offset, u32)
    first = parts[0]
    if len(parts) == 1:
        return (lambda v: first(v) + offset) if offset else first
    second = parts[1]
    return lambda v: first(v) + second(v) + offset


def address64(b: Build, op: Mem, extended: bool) -> Get:
    """A 64-bit byte address; ``extended`` is .E: the base is a pair unless marked .U32."""
    parts: list[Get] = []
    if op.base is not None and op.base.num != ZERO:
        if extended and op.base.mod != "U32":
            low, high = b.row(op.base, 0), b.row(op.base, 1)
            parts.append(lambda v: join64(v.U[low], v.U[high]))
        else:
            base = b.raw(op.base)
            parts.append(lambda v: base(v).astype(u64))
    if op.ubase is not None and op.ubase.num != ZERO:
        ulow, uhigh = b.row(op.ubase, 0), b.row(op.ubase, 1)
        parts.append(lambda v: join64(v.U[ulow], v.U[uhigh]))
    if op.desc is not None and op.desc.num != ZERO:
        b.row(op.desc, 0)
        b.row(op.desc, 1)
    offset = u64(op.offset & 0xFFFFFFFFFFFFFFFF)

    def run(v: View) -> Arr:
        if not parts:
            return np.full(v.n, offset, u64)
        total = parts[0](v)
        for part in parts[1:]:
            total = total + part(v)
        return total + offset if offset else total

    return run


def active(m: Arr | None) -> Arr | None:
    """Indices of the active lanes, None = all."""
    return None if m is None else m.nonzero()[0]


def cut(values: Arr, act: Arr | None) -> Arr:
    """The active lanes of a row."""
    return values if act is None else values[act]


def locate(b: Build, space: str, op: Mem, size: int, what: str) -> Callable[[View, Arr | None], tuple[Any, Arr]]:
    """``(memory, byte offsets)`` of the active lanes for an access in one space."""
    memory = b.ctx.memory
    if space == "global":
        get = address64(b, op, "E" in words_of(b))

        def in_global(v: View, act: Arr | None) -> tuple[Any, Arr]:
            return memory.heap, memory.heap.offsets(cut(get(v), act), size, act, what)

        return in_global
    window = memory.shared if space == "shared" else memory.local
    get32 = address32(b, op)
    key = window.lane_key
    cluster = space == "shared" and b.ctx.launch.cluster_size > 1

    def in_window(v: View, act: Arr | None) -> tuple[Any, Arr]:
        address = cut(get32(v), act)
        if cluster:  # the upper byte names the block of the cluster
            base = b.ctx.launch.cluster_base(v, address, act)
            address = address & u32(0xFFFFFF)
        else:
            base = cut(v.wide(key), act)
        return window, window.offsets(address, size, act, what, base)

    return in_window


def fixed_window(b: Build, upper: int, what: str, size: int) -> Callable[[Arr, Arr], tuple[Bytes, Arr]]:
    """``(memory, byte offsets)`` of addresses in a window of constants: the module's (bank 3) or the kernel's
    parameters (bank 0)."""
    number, start, name = (
        (3, 0, "constants") if upper == CONST_HI else (0, b.ctx.launch.target.bank0.param_bias, "parameters")
    )
    bank = b.ctx.banks.get(number, b"")
    memory = Bytes(np.frombuffer(bank + bytes(64 - len(bank) % 32), u8).copy())

    def find(address: Arr, who: Arr) -> tuple[Bytes, Arr]:
        at = (address & u64(0xFFFFFFFF)).astype(i64) + start
        aligned(at, size, who, what, "constant")
        bad = at + size > len(bank)
        if what != "read" or count(bad):
            first = int(bad.argmax())
            raise Fault(
                f"{what} of {size} bytes in the window of {name} at {int(address[first]):#x}", lane_of(who, first)
            )
        return memory, at

    return find


def generic(b: Build, op: Mem, size: int, what: str) -> Callable[[View, Arr | None], list[tuple[Any, Arr, Arr | None]]]:
    """Groups ``(memory, byte offsets, positions among the active lanes)`` of a generic access."""
    memory = b.ctx.memory
    get = address64(b, op, "E" in words_of(b))
    fixed: dict[int, Callable[[Arr, Arr], tuple[Bytes, Arr]]] = {}

    def run(v: View, act: Arr | None) -> list[tuple[Any, Arr, Arr | None]]:
        address = cut(get(v), act)
        upper = address >> u64(32)
        windows = (upper >= u64(SHARED_HI)) & (upper <= u64(PARAM_HI)) & (upper != u64(GLOBAL_BASE >> 32))
        if not count(windows):
            return [(memory.heap, memory.heap.offsets(address, size, act, what), None)]
        out: list[tuple[Any, Arr, Arr | None]] = []
        lanes = np.arange(v.n) if act is None else act
        for high in (SHARED_HI, LOCAL_HI, CONST_HI, PARAM_HI):
            where = (upper == u64(high)).nonzero()[0]
            if not len(where):
                continue
            who = lanes[where]
            if high in (CONST_HI, PARAM_HI):
                if high not in fixed:
                    fixed[high] = fixed_window(b, high, what, size)
                out.append((*fixed[high](address[where], who), where))
                continue
            window = memory.shared if high == SHARED_HI else memory.local
            low = address[where].astype(u32)
            if window is memory.shared and b.ctx.launch.cluster_size > 1:
                base = b.ctx.launch.cluster_base(v, low, who)
                low = low & u32(0xFFFFFF)
            else:
                base = v.wide(window.lane_key)[who]
            out.append((window, window.offsets(low, size, who, what, base), where))
        where = (~windows).nonzero()[0]
        if len(where):
            out.append((memory.heap, memory.heap.offsets(address[where], size, lanes[where], what), where))
        return out

    return run


def _extend(values: Arr, size: int, signed: bool) -> Arr:
    if size == 4:
        return values
    if signed:
        return values.view(np.int8 if size == 1 else np.int16).astype(np.int32).view(u32)
    return values.astype(u32)


def _write(rows: list[int], values: Arr, size: int, signed: bool, v: View, act: Arr | None) -> None:
    """Loaded values into destination rows."""
    if size <= 4:
        columns = [_extend(values, size, signed)]
    else:
        table = values.view(u32).reshape(len(values), -1) if size == 8 else values
        columns = [table[:, i] for i in range(size // 4)]
    for row, column in zip(rows, columns, strict=True):
        if act is None:
            v.U[row][:] = column
        else:
            v.U[row][act] = column


def load(space: str) -> Builder:
    """A load from ``space``."""

    def build(b: Build) -> InstFn:
        size, signed = access_size(b)
        op = mem_of(b)
        _plain_preds(b)
        rows = dst_rows(b, size)
        if space == "generic":
            groups = generic(b, op, size, "read")

            def run_generic(v: View, m: Arr | None) -> None:
                act = active(m)
                n = v.n if act is None else len(act)
                kind = {1: np.uint8, 2: np.uint16, 4: u32, 8: u64}.get(size, u32)
                values = np.empty(n if size <= 8 else (n, size // 4), kind)
                for memory, at, where in groups(v, act):
                    got = memory.load(at, size)
                    if where is None:
                        values = got
                    else:
                        values[where] = got
                _write(rows, values, size, signed, v, act)

            return run_generic
        place = locate(b, space, op, size, "read")

        def run(v: View, m: Arr | None) -> None:
            act = active(m)
            memory, at = place(v, act)
            _write(rows, memory.load(at, size), size, signed, v, act)

        return run

    return build


def dst_rows(b: Build, size: int) -> list[int]:
    """The destination rows of a load. A load of 256 bits has two register operands, the second for the lower half. Of
    each half, the words that the mask names go to consecutive registers (measured: mask 0xcd fills three registers of
    one operand and two of the other)."""
    if len(b.d) == 2 and size == 32:
        mask = next((o.value for o in b.s if isinstance(o, Imm)), 0xFF)
        rows = []
        for op, half in ((b.d[1], mask & 15), (b.d[0], mask >> 4 & 15)):
            rows += [b.out(op, (half & (1 << i) - 1).bit_count()) if half >> i & 1 else SINK for i in range(4)]
        return rows
    return [b.dst(i) for i in range(max(size // 4, 1))]


def _plain_preds(b: Build) -> None:
    if any(not (isinstance(p, Reg) and p.num == ZERO) for p in b.pd):
        raise b.refuse("predicate result")


def data_operands(b: Build) -> list[Reg]:
    """The register operands that hold data. Cache-policy operands must be the default."""
    for op in b.s:
        if isinstance(op, Imm) and op.value not in (0, 255):
            raise b.refuse(f"operand {op.value:#x}")
    data = [o for o in b.s if isinstance(o, Reg)]
    if not data:
        raise b.refuse("no data operand")
    return data


def data_rows(b: Build, op: Operand, size: int) -> list[int]:
    """Rows of the data of a store or atomic."""
    return [b.row(op, i) for i in range(max(size // 4, 1))]


def gather_data(rows: list[int], size: int, v: View, act: Arr | None) -> Arr:
    """The active lanes' store data, in the shape that memory needs."""
    if size <= 4:
        value = cut(v.U[rows[0]], act)
        return value if size == 4 else value.astype(u8 if size == 1 else np.uint16)
    table = np.stack([cut(v.U[r], act) for r in rows], axis=1)
    return table.view(u64).reshape(-1) if size == 8 else table


def store(space: str) -> Builder:
    """A store to ``space``."""

    def build(b: Build) -> InstFn:
        size, _ = access_size(b)
        op = mem_of(b)
        data = data_operands(b)
        rows = data_rows(b, data[0], size) if size < 32 else [b.row(o, i) for o in data[:2] for i in range(4)]
        if space == "generic":
            groups = generic(b, op, size, "write")

            def run_generic(v: View, m: Arr | None) -> None:
                act = active(m)
                values = gather_data(rows, size, v, act)
                for memory, at, where in groups(v, act):
                    memory.store(at, size, values if where is None else values[where])

            return run_generic
        place = locate(b, space, op, size, "write")

        def run(v: View, m: Arr | None) -> None:
            act = active(m)
            memory, at = place(v, act)
            memory.store(at, size, gather_data(rows, size, v, act))

        return run

    return build


def ldc(b: Build) -> InstFn:
    """Load from a constant bank, indexed by a register if there is one."""
    size, signed = access_size(b, "IL", "IS", "ISL")
    source = next((o for o in b.inst.srcs if isinstance(o, Const)), None)
    if source is None:
        raise b.refuse("no constant operand")
    rows = [b.dst(i) for i in range(max(size // 4, 1))]
    if source.ireg is None or source.ireg.num == ZERO:
        value = b.bank(source.bank, source.offset, size)
        if signed:
            value -= (value >> (8 * size - 1)) << (8 * size)
        constants = [b.ctx.lanes.constant(value >> (32 * i)) for i in range(len(rows))]

        def fixed(v: View, m: Arr | None) -> None:
            for row, constant in zip(rows, constants, strict=True):
                put(v.U[row], v.U[constant], m)

        return fixed
    if words_of(b) and any(w in ("IL", "IS", "ISL") for w in words_of(b)):
        raise b.refuse("index mode")
    index = b.raw(source.ireg)
    data = np.frombuffer(b.ctx.banks.get(source.bank, b""), u8)
    base, bank = source.offset, source.bank

    def run(v: View, m: Arr | None) -> None:
        act = active(m)
        at = cut(index(v), act).astype(np.int32).astype(i64) + base
        bad = (at < 0) | (at + size > len(data))
        if count(bad):
            first = int(bad.argmax())
            raise Fault(
                f"out-of-bounds constant read of {size} bytes at c[{bank:#x}][{int(at[first]):#x}]", lane_of(act, first)
            )
        bytes_ = data[at[:, None] + np.arange(size)]
        values = (
            np.ascontiguousarray(bytes_)
            .view({1: u8, 2: np.uint16, 4: u32, 8: u64}.get(size, u32))
            .reshape((-1,) if size <= 8 else (len(at), size // 4))
        )
        _write(rows, values, size, signed, v, act)

    return run


def uldc(b: Build) -> InstFn:
    """LDC into uniform registers: the same, for the active warps."""
    return ldc(b)


def ldgsts(b: Build) -> InstFn:
    """Copy from global to shared memory. The copy is made at once, so DEPBAR and the waits have nothing to wait
    for."""
    size, _ = access_size(b, "ZFILL")
    mems = [o for o in (*b.inst.dsts, *b.inst.srcs) if isinstance(o, Mem)]
    if len(mems) != 2:
        raise b.refuse("needs two addresses")
    to = locate(b, "shared", mems[0], size, "write")
    source = locate(b, "global", mems[1], size, "read")
    pred = b.psrc(0, True) if b.ps and b.pconst(0) is not True else None
    if "ZFILL" in words_of(b):
        return _zero_fill(b, mems[1], size, to, pred)

    def run(v: View, m: Arr | None) -> None:
        act = active(m)
        if pred is None:
            heap, at = source(v, act)
            shared, there = to(v, act)
            shared.store(there, size, heap.load(at, size))
            return
        base = np.ones(v.n, np.bool_) if m is None else m
        copies, zeros = active(base & pred(v)), active(base & ~pred(v))
        heap, at = source(v, copies)
        shared, there = to(v, copies)
        shared.store(there, size, heap.load(at, size))
        if zeros is not None and len(zeros):
            shared, there = to(v, zeros)
            n = len(zeros)
            shared.store(there, size, np.zeros(n if size <= 8 else (n, size // 4), {4: u32, 8: u64}.get(size, u32)))

    return run


def _zero_fill(
    b: Build, op: Mem, size: int, to: Callable[[View, Arr | None], tuple[Any, Arr]], pred: Get | None
) -> InstFn:
    """LDGSTS.ZFILL: the low bits k of the address say that the last k bytes are zeros (measured: the code adds
    -size & 3); if the predicate is false, all are."""
    get = address64(b, op, "E" in words_of(b))
    heap = b.ctx.memory.heap

    def run(v: View, m: Arr | None) -> None:
        act = active(m)
        address = cut(get(v), act)
        lanes = np.arange(v.n) if act is None else act
        k = (address & u64(size - 1)).astype(i64)
        n = size - k
        if pred is not None:
            n = np.where(cut(pred(v), act), n, 0)
        data = np.zeros((len(address), size), u8)
        base = address & ~u64(size - 1)
        for i in range(size):
            here = (n > i).nonzero()[0]
            if len(here):
                data[here, i] = heap.load(heap.offsets(base[here] + u64(i), 1, lanes[here], "read"), 1)
        shared, there = to(v, act)
        shared.store(there, size, data.view(u32) if size == 16 else data.view({4: u32, 8: u64}[size]).reshape(-1))

    return run


def nothing(b: Build) -> InstFn:
    """Fences and cache hints: memory here is strongly ordered."""
    return lambda v, m: None


OPS: Final[dict[str, Builder]] = {
    "LDG": load("global"), "STG": store("global"), "LDS": load("shared"), "STS": store("shared"), "LDL": load("local"),
    "STL": store("local"),
    "LD": load("generic"), "ST": store("generic"), "LDC": ldc, "ULDC": uldc, "LDCU": uldc, "LDGSTS": ldgsts,
    "LDGDEPBAR": nothing,
    "MEMBAR": nothing, "ERRBAR": nothing, "CGAERRBAR": nothing, "CCTL": nothing, "CCTLL": nothing,
    "FENCE": nothing,
}  # fmt: skip
