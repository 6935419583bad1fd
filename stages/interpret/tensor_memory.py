"""tcgen05: tensor memory of a block, its allocation, products of one block, loads, stores, arrival. Layouts: the PTX
ISA manual.

Everything happens at issue. Not interpreted: pairs of blocks, block scales, sparse A, .ws, .ashift, sums of 16
bits, elements of 4 and 6 bits, cp and shift, loads of 16x64b, packed loads and stores.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ir_format.ptx import Addr, Imm, Vec
from stages.interpret.code import Action, Code, Step, address, get, put
from stages.interpret.floats import FORMATS, decode, narrow
from stages.interpret.loads import resolve
from stages.interpret.machine import InterpreterError, Machine
from stages.interpret.matrix import inexact, numbers
from stages.interpret.mbarrier import State
from stages.interpret.rows import BITS, U64, Arr, Unsupported, bits_of, signed
from stages.interpret.warp_sync import spread, warp_operation

_ROWS: Final = 128
_COLUMNS: Final = 512
#: Element types by the number in an instruction descriptor.
_KINDS: Final[dict[str, tuple[str, ...]]] = {
    "kind::f16": ("f16", "bf16"), "kind::tf32": ("", "", "tf32"), "kind::i8": ("u8", "s8"),
    "kind::f8f6f4": ("e4m3", "e5m2"),
}  # fmt: skip
#: Bytes of a line of the swizzle's pattern by its number (0: none).
_PATTERN: Final = {0: 0, 2: 128, 4: 64, 6: 32}


class Cells:
    """Tensor memory of a block: cells of 32 bits, and the first column and number of columns of each allocation."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.words = rng.integers(0, 1 << 32, (_ROWS, _COLUMNS), dtype=np.uint64)
        self.taken: dict[int, int] = {}

    def find(self, n: int) -> int:
        """The first of this many free columns, -1 if there are none."""
        for first in range(0, _COLUMNS - n + 1, 32):
            if all(first + n <= at or at + many <= first for at, many in self.taken.items()):
                return first
        return -1


def _cells(m: Machine, thread: int) -> Cells:
    block = int(m.block_of[thread])
    if block not in m.tensor:
        m.tensor[block] = Cells(np.random.default_rng([block, 5]))
    return m.tensor[block]  # type: ignore[no-any-return]


def _place(step: Step, a: int, rows: int, columns: int) -> tuple[int, int]:
    row, column = a >> 16 & 0xFFFF, a & 0xFFFF
    if row + rows > _ROWS or column + columns > _COLUMNS:
        raise InterpreterError("address", f"tensor memory at {a:#x}", step.inst.line, step.inst.opcode)
    return row, column


# --------------------------------------------------------------------------- allocation


def _allocate(code: Code, step: Step, pc: int) -> Action:
    inst = step.inst
    if inst.mods[0] == "relinquish_alloc_permit":
        return warp_operation(code, step, pc, None, lambda m, threads: None)
    gives = inst.mods[0] == "alloc"
    to = inst.operands[0]
    read = address(code, step.function, to) if isinstance(to, Addr) else get(code, step.function, to)
    count = get(code, step.function, inst.operands[1])
    space = "shared" if any(x.startswith("shared") for x in inst.mods) else "generic"

    def run(m: Machine, threads: Arr) -> None:
        where, n = (np.broadcast_to(x(m), threads.shape) for x in (read, count))
        for k in range(len(threads)):
            if k and threads[k] // 32 == threads[k - 1] // 32:
                continue  # one thread of a warp
            cells = _cells(m, int(threads[k]))
            if not gives:
                if cells.taken.pop(int(where[k]) & 0xFFFF, None) != int(n[k]):
                    raise InterpreterError("undefined", "columns that are not allocated", inst.line, inst.opcode)
                continue
            first = cells.find(int(n[k]))
            if first < 0:
                raise InterpreterError("deadlock", "no columns of tensor memory are free", inst.line, inst.opcode)
            cells.taken[first] = int(n[k])
            memory, off, _ = resolve(m, space, where[k : k + 1], 4, "store", threads[k : k + 1])[0]
            memory.store(off, 4, np.array([first], U64))

    return warp_operation(code, step, pc, None, run)


# --------------------------------------------------------------------------- products


def _element(d: int, outer: Arr, along: Arr, size: int, turned: bool) -> Arr:
    """Addresses of the elements (outer, along K) of the matrix with descriptor d and elements of this many bytes."""
    start, lead, stride = ((d >> low & 0x3FFF) << 4 for low in (0, 16, 32))
    pattern = _PATTERN.get(d >> 61 & 7)
    if pattern is None or d >> 52 & 1:
        raise Unsupported(f"a matrix descriptor {d:#x}")
    line = pattern or 16
    if turned:
        inner, other = outer * size, along  # M or N is contiguous
        far = inner // line * (lead if pattern else stride) + other // 8 * (stride if pattern else lead)
    else:
        inner, other = along * size, outer
        far = other // 8 * stride + (0 if pattern else inner // 16 * lead)
    at = start + far + other % 8 * line + (inner % line if pattern or turned else inner % 16)
    if pattern:
        at = at ^ ((at // 128 - (d >> 49 & 7)) & (pattern // 16 - 1)) * 16
    return np.asarray(at)


class _Product:
    """One tcgen05.mma."""

    def __init__(self, code: Code, step: Step) -> None:
        inst = self.inst = step.inst
        self.step = step
        self.kind = next((x for x in inst.mods if x in _KINDS), "")
        if not self.kind or any(x in inst.mods for x in ("sp", "ws", "block_scale", "cta_group::2", "ashift")):
            raise Unsupported(inst.opcode)
        operands = list(inst.operands)
        self.left_in_cells = isinstance(operands[1], Addr)

        def read(x: Any) -> Any:
            return address(code, step.function, x) if isinstance(x, Addr) else get(code, step.function, x)

        if any(isinstance(x, Vec) for x in operands):
            raise Unsupported(f"{inst.opcode} with disabled lanes")
        self.reads = [read(x) for x in operands[:5]]
        self.shift = operands[5].value if len(operands) > 5 and isinstance(operands[5], Imm) else 0

    def run(self, m: Machine) -> int | None:
        """Each active thread starts one product."""
        threads = m.all[m.act]
        columns = [np.broadcast_to(r(m), threads.shape) for r in self.reads]
        for k, thread in enumerate(threads):
            self._one(m, int(thread), [int(c[k]) for c in columns])
        return None

    def _one(self, m: Machine, thread: int, values: list[int]) -> None:
        to, left, right, what, keep = values
        types = _KINDS[self.kind]
        numbers_ = what >> 7 & 7, what >> 10 & 7
        sums = "s32" if self.kind == "kind::i8" else "f32"
        if what & 7 or max(numbers_) >= len(types) or what >> 4 & 3 != (2 if sums == "s32" else 1):
            raise Unsupported(f"{self.inst.opcode} with the descriptor {what:#x}")
        rows, width = (what >> 24 & 31) * 16, (what >> 17 & 63) * 8
        if rows not in (64, 128):
            raise Unsupported(f"{self.inst.opcode} of {rows} rows")
        cells = _cells(m, thread)
        lane = np.arange(rows) if rows == 128 else np.arange(rows) // 16 * 32 + np.arange(rows) % 16
        first, column = _place(self.step, to, int(lane[-1]) + 1, width)
        ta, tb = types[numbers_[0]], types[numbers_[1]]
        if self.left_in_cells:
            row, at = _place(self.step, left, int(lane[-1]) + 1, 8)
            bits = BITS[ta]
            words = cells.words[row + lane, at : at + 8]
            shifts = (np.arange(32 // bits) * bits).astype(U64)
            a = ((words[:, :, None] >> shifts) & U64((1 << bits) - 1)).reshape(rows, -1)
        else:
            a = self._shared(m, thread, left, rows, ta, bool(what >> 15 & 1))
        b = self._shared(m, thread, right, width, tb, bool(what >> 16 & 1))
        x = numbers(a, ta).astype(np.float64) * (-1.0 if what >> 13 & 1 else 1.0)
        y = numbers(b, tb).astype(np.float64).T * (-1.0 if what >> 14 & 1 else 1.0)
        product = x @ y
        place = np.ix_(first + lane, column + np.arange(width))
        old = cells.words[place]
        if sums == "s32":
            total = product.astype(np.int64) + (signed(old, 32) if keep else 0)
            cells.words[place] = bits_of(np.clip(total, -(1 << 31), (1 << 31) - 1) if what >> 3 & 1 else total, 32)
            return
        product = inexact(m, product, x, y)
        more = decode(old, FORMATS["f32"]) * 2.0**-self.shift if keep else 0.0
        cells.words[place] = narrow(product + more, FORMATS["f32"])

    def _shared(self, m: Machine, thread: int, d: int, outer: int, type_: str, turned: bool) -> Arr:
        """Element bits of a matrix in shared memory: 32 bytes of K."""
        size = BITS[type_] // 8
        at = _element(d, np.arange(outer)[:, None], np.arange(32 // size)[None, :], size, turned)
        block = np.full(at.size, m.block_of[thread], np.int64)
        off = m.shared.offsets(at.ravel().astype(U64), size, "matrix read", block)
        return m.shared.load(off, size).reshape(at.shape)


def _commit(code: Code, step: Step, pc: int) -> Action:
    """One arrival: all work started before is done"""
    inst = step.inst
    to = inst.operands[0]
    if not isinstance(to, Addr) or inst.has("multicast::cluster") or inst.has("cta_group::2"):
        raise Unsupported(inst.opcode)
    where = address(code, step.function, to)
    space = "cluster" if inst.has("shared::cluster") else "generic"

    def run(m: Machine) -> int | None:
        threads = m.all[m.act]
        for memory, off, _ in resolve(m, space, where(m), 8, "mbarrier", threads):
            for at in off:
                state: State | None = m.barriers.get(int(at)) if memory is m.shared else None
                if state is None:
                    raise InterpreterError("undefined", "no mbarrier there", inst.line, inst.opcode)
                state.pending -= 1
                state.advance()
        return None

    return run


# --------------------------------------------------------------------------- loads and stores


def _layout(inst: Any, count: int, split: int) -> tuple[Arr, Arr]:
    """Row and column, relative to the address, of each register of each thread: (32, registers)."""
    t, r = np.meshgrid(np.arange(32), np.arange(count), indexing="ij")
    if inst.has("32x32b"):
        return t, r
    if inst.has("16x32bx2"):
        return t % 16, r + t // 16 * split
    if inst.has("16x128b"):
        return t // 4 + r % 2 * 8, r // 2 * 4 + t % 4
    if inst.has("16x256b"):
        return t // 4 + r // 2 % 2 * 8, r // 4 * 8 + t % 4 * 2 + r % 2
    raise Unsupported(inst.opcode)


def _transfer(code: Code, step: Step, pc: int) -> Action:
    """ld and st"""
    inst = step.inst
    store = inst.mods[0] == "st"
    if any(x in inst.mods for x in ("pack::16b", "unpack::16b", "red")):
        raise Unsupported(inst.opcode)
    operands = list(inst.operands)
    data = operands.pop(-1 if store else 0)
    to = operands.pop(0)
    elements = list(data.elems) if isinstance(data, Vec) else [data]
    if not isinstance(to, Addr):
        raise Unsupported(inst.opcode)
    split = operands[0].value if operands and isinstance(operands[0], Imm) else 0
    where = address(code, step.function, to)
    row, column = _layout(inst, len(elements), split)
    reads = [get(code, step.function, x) for x in elements] if store else []
    outs = [] if store else [put(code.functions[step.function], x) for x in elements]

    def run(m: Machine, threads: Arr) -> None:
        at, _, line = spread(m, threads, where(m))
        first = np.unique(threads // 32)
        results = np.zeros((len(first), 32, len(elements)), U64)
        values = np.stack([spread(m, threads, r(m))[0] for r in reads], axis=2) if store else results
        for k, warp in enumerate(first):
            cells = _cells(m, int(warp) * 32)
            high, left = _place(step, int(at[k, 0]), int(row.max()) + 1, int(column.max()) + 1)
            if store:
                cells.words[high + row, left + column] = values[k] & U64(0xFFFFFFFF)
            else:
                results[k] = cells.words[high + row, left + column]
        for k, out in enumerate(outs):
            out(m, results[line, threads % 32, k])

    return warp_operation(code, step, pc, None, run)


def tcgen05(code: Code, step: Step, pc: int) -> Action:
    """All of tcgen05"""
    what = step.inst.mods[0]
    if step.inst.has("cta_group::2"):
        raise Unsupported(step.inst.opcode)
    if what in ("alloc", "dealloc", "relinquish_alloc_permit"):
        return _allocate(code, step, pc)
    if what == "mma":
        return _Product(code, step).run
    if what == "commit":
        return _commit(code, step, pc)
    if what in ("ld", "st"):
        return _transfer(code, step, pc)
    if what.startswith(("wait", "fence")):
        return lambda m: None
    raise Unsupported(step.inst.opcode)


ACTIONS: Final[dict[str, Callable[[Code, Step, int], Action]]] = {"tcgen05": tcgen05}
