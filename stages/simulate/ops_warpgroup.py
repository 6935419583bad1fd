"""Products of a warpgroup: HGMMA, QGMMA, IGMMA, BGMMA, and their ordering, WARPGROUP (sm_90a).

Each of the four warps has 16 of the 64 rows of A and of the sums, in the layout of HMMA's fragments, continued along
the columns. A matrix in shared memory is read through its descriptor (:func:`tile`). A product is computed at once,
except in strict mode, where there is a :class:`flight.Flight`: then when a wait asks for it, with the descriptors from
issue, but registers and shared memory as they are at the wait.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ir_format.model import NEG, Imm, Mem, Name, Reg
from stages.simulate import fp
from stages.simulate.arr import Arr
from stages.simulate.build import Build, Builder, InstFn, View
from stages.simulate.exact import F16
from stages.simulate.machine import Fault
from stages.simulate.memory import Bytes
from stages.simulate.ops_matrix import dense, elements, fragment_matrix

u8, u16, u32, u64, i64, f32, f64 = np.uint8, np.uint16, np.uint32, np.uint64, np.int64, np.float32, np.float64

#: Swizzle of a descriptor (bits 62-63): bytes of a row of its pattern (documented).
_SPANS: Final = {0: 16, 1: 128, 2: 64, 3: 32}
_BITS: Final = {"F16": 16, "BF16": 16, "TF32": 32, "E4M3": 8, "E5M2": 8, "S8": 8, "U8": 8, "U1": 1}


class Descriptor:
    """The fields of a matrix in shared memory (documented): start 0-13, leading offset 16-29, stride offset 32-45, all
    in units of 16 bytes; base offset 49-51; swizzle 62-63."""

    __slots__ = ("base", "lead", "span", "start", "stride")

    def __init__(self, low: int, high: int) -> None:
        self.start = (low & 0x3FFF) << 4
        self.lead = (low >> 16 & 0x3FFF) << 4
        self.stride = (high & 0x3FFF) << 4
        self.base = high >> 17 & 7
        self.span = _SPANS[high >> 30]

    def swizzled(self, at: Arr) -> Arr:
        """Addresses with as many of their bits from 4 up as the pattern has XORed with those from 7 up (documented);
        the base offset moves the pattern (a guess from its formula)."""
        if self.span == 16:
            return at
        return np.asarray(at ^ ((((at >> 7) - self.base) & (self.span // 16 - 1)) << 4))


def tile(
    memory: Bytes,
    origin: int,
    size: int,
    d: Descriptor,
    first: int,
    rows: int,
    k_bytes: int,
    transposed: bool,
    unit: int = 2,
) -> Arr:
    """``rows`` rows from ``first`` of a matrix whose rows (of K) have ``k_bytes`` bytes: [row, bytes].

    Without a swizzle the matrix consists of groups of 8 rows of 16 contiguous bytes; with one, the rows have as
    many bytes as the pattern. K contiguous: the stride offset goes from 8 rows to the next 8; the leading offset, used
    only without a swizzle, from 16 bytes of K to the next. M or N contiguous (``transposed``, elements of ``unit``
    bytes): a line of 16 or more bytes is for one k, and 8 lines are contiguous. Without a swizzle the leading offset
    goes to the next 8 k, the stride offset to the next 8 rows; with one, the leading offset goes to the next rows, the
    stride offset to the next 8 k (documented)."""
    if not transposed:
        row, chunk = np.arange(first, first + rows)[:, None], np.arange(k_bytes // 16)
        step = d.lead if d.span == 16 else 16
        if d.span != 16 and k_bytes > d.span:
            raise Fault(f"a matrix of {k_bytes} bytes of K in a pattern of {d.span}")
        return _read(memory, origin, size, d, row // 8 * d.stride + row % 8 * d.span + chunk * step).reshape(rows, -1)
    held = 16 // unit
    chunk, k = np.arange(first // held, (first + rows) // held)[:, None], np.arange(k_bytes // unit)
    wide = d.span // 16
    if wide == 1:
        at = chunk * d.stride + k % 8 * 16 + k // 8 * d.lead
    else:
        at = chunk // wide * d.lead + chunk % wide * 16 + k % 8 * d.span + k // 8 * d.stride
    lines = _read(memory, origin, size, d, at).view((u8, u16, u32)[unit // 2])  # [chunk, k, element]
    return np.ascontiguousarray(lines.transpose(0, 2, 1)).view(u8).reshape(rows, -1)


def _read(memory: Bytes, origin: int, size: int, d: Descriptor, offsets: Arr) -> Arr:
    """16 bytes at each place of a matrix in shared memory."""
    at = d.swizzled(d.start + offsets)
    if int(at.max()) + 16 > size:
        raise Fault(
            f"out-of-bounds shared read by a matrix descriptor at {int(at.max()):#x} (window of {size:#x} bytes)"
        )
    return np.ascontiguousarray(memory.quads[(origin + at) // 16]).view(u8)


def numbers(data: Arr, kind: str) -> Arr:
    """Values, as doubles, of rows of bytes."""
    n = len(data)
    if kind == "U1":
        return np.unpackbits(data, axis=1, bitorder="little").astype(f64)
    words = np.ascontiguousarray(data).view(u32)
    return np.asarray(elements(words, _BITS[kind], kind)).reshape(n, -1).astype(f64)


class Product:
    """One product, prepared. ``parts(v, warps)``: the descriptors at issue; ``apply`` computes it."""

    def __init__(self, b: Build) -> None:
        self.b = b
        inst = b.inst
        mods = list(inst.mods)
        self.sparse = "SP" in mods
        shape = next((x for x in mods if x.startswith("64x")), "")
        kinds = [x for x in mods if x in _BITS]
        if not shape:
            raise b.refuse("shape")
        self.n, self.k = (int(x) for x in shape.split("x")[1:])
        if inst.op in ("HGMMA", "QGMMA"):
            half = kinds[:1] == ["F16"]
            self.sums = "F16" if half else "F32"
            kinds = (kinds[1:] if half else kinds) or ["F16"]
        else:
            self.sums, kinds = "S32", kinds or ["U1"]
        self.kinds = (kinds[0], kinds[-1])
        self.saturate = "SAT" in mods
        known = (shape, "SP", "SAT", "F16", "F32", "AND", "POPC", *_BITS)
        b.only(*known)
        self._operands(b)

    def _operands(self, b: Build) -> None:
        order = [o for o in b.inst.srcs if isinstance(o, Mem) or (isinstance(o, Reg) and o.file == "R")]
        at = next((i for i, o in enumerate(order) if isinstance(o, Mem)), -1)
        if at < 0 or at > 1 or not isinstance(order[at], Mem):
            raise b.refuse("no descriptor")
        mem = order[at]
        assert isinstance(mem, Mem) and mem.desc is not None
        flags = mem.desc.mod.split(".")
        self.turn = ("tnspA" in flags, "tnspB" in flags)
        self.negative = ["negA" in flags, "negB" in flags]
        held = order[0] if at else None
        self.fragment: list[int] = []
        if isinstance(held, Reg):
            self.fragment = [b.row(held._replace(flags=0), i) for i in range(4)]
            self.negative[0] |= bool(held.flags & NEG)
        self.descriptors = [b.row(mem.desc, i) for i in ((2, 3) if held is not None else (0, 1, 2, 3))]
        count = self.n // 4 if self.sums == "F16" else self.n // 2
        rest = order[at + 1 :]
        gone = isinstance(rest[0], Reg) and rest[0].num < 0
        self.into = [] if not b.d or (isinstance(b.d[0], Reg) and b.d[0].num < 0) else [b.dst(i) for i in range(count)]
        self.added = [] if gone else [b.row(rest[0], i) for i in range(count)]
        self.keep = b.psrc(0, False)
        self.meta = b.row(rest[1]) if self.sparse else -1
        numbers = [o.value for o in b.s if isinstance(o, Imm)]
        self.selector = int(numbers[-1]) if self.sparse and numbers else 0
        self.ends = any(isinstance(o, Name) and o.name == "gsb0" for o in b.inst.srcs)

    # --- at issue ---

    def issue(self, v: View, warps: Arr) -> Arr:
        """[warp, word] of the descriptors of these warps (numbers in the view), and whether the sums are added to."""
        first = warps * 32
        words = [v.U[row][first].astype(i64) for row in self.descriptors]
        if len(words) == 2:
            words = [np.zeros(len(warps), i64)] * 2 + words
        return np.stack([*words, self.keep(v)[first].astype(i64)], axis=1)

    # --- the product ---

    def apply(self, v: View, warps: Arr, issued: Arr) -> None:
        """Compute, for some warps of the view."""
        if not self.into:
            return
        lanes = (warps[:, None] * 32 + np.arange(32)).ravel()
        a, b = self._left(v, warps, issued, lanes), self._right(v, warps, issued)
        total = a @ b.transpose(0, 2, 1)
        old = self._sums(v, lanes, len(warps))
        if old is not None:
            keep = issued[:, 4] != 0
            total[keep] += old[keep]
        self._write(v, lanes, total)

    def _memory(self, v: View, warps: Arr) -> tuple[Any, Arr]:
        window = self.b.ctx.memory.shared
        return window, v.wide(window.lane_key)[warps * 32]

    def _left(self, v: View, warps: Arr, issued: Arr, lanes: Arr) -> Arr:
        kind = self.kinds[0]
        stored = self.k // 2 if self.sparse else self.k
        bits = _BITS[kind]
        if self.fragment:
            words = np.stack([v.U[r][lanes] for r in self.fragment], axis=1).reshape(-1, 32, 4)
            out = fragment_matrix(elements(words, bits, kind), 16, stored, True).astype(f64)
        else:
            window, bases = self._memory(v, warps)
            inside = v.wide("thread")[warps * 32] // 32 % 4
            found: dict[tuple[int, ...], Arr] = {}
            rows = []
            for base, part, low, high in zip(bases, inside, issued[:, 0], issued[:, 1], strict=True):
                key = (int(base), int(part), int(low), int(high))
                if key not in found:
                    d = Descriptor(key[2], key[3])
                    data = tile(window, key[0], window.size, d, 16 * key[1], 16, stored * bits // 8, self.turn[0])
                    found[key] = numbers(data, kind)
                rows.append(found[key])
            out = np.stack(rows)
        if self.sparse:
            out = dense(out, v.U[self.meta][lanes].reshape(-1, 32), kind, bits, self.selector)
        return -out if self.negative[0] else out

    def _right(self, v: View, warps: Arr, issued: Arr) -> Arr:
        kind = self.kinds[1]
        window, bases = self._memory(v, warps)
        found: dict[tuple[int, ...], Arr] = {}
        out = []
        for base, low, high in zip(bases, issued[:, 2], issued[:, 3], strict=True):
            key = (int(base), int(low), int(high))
            if key not in found:
                d = Descriptor(key[1], key[2])
                data = tile(window, key[0], window.size, d, 0, self.n, self.k * _BITS[kind] // 8, self.turn[1])
                found[key] = numbers(data, kind)
            out.append(found[key])
        stacked = np.stack(out)
        return -stacked if self.negative[1] else stacked

    def _sums(self, v: View, lanes: Arr, count: int) -> Arr | None:
        """The sums so far: [warp, row, column]."""
        if not self.added:
            return None
        words = np.ascontiguousarray(np.stack([v.U[r][lanes] for r in self.added], axis=1))
        if self.sums == "F16":
            values = fp.decode_half(words.view(u16), F16)
        elif self.sums == "F32":
            values = words.view(f32).astype(f64)
        else:
            values = words.view(np.int32).astype(f64)
        # lane 4 g + t, registers (8 columns, half, pair): row g + 8 half, column 8 j + 2 t + pair
        parts = values.reshape(count, 8, 4, self.n // 8, 2, 2)
        return np.ascontiguousarray(parts.transpose(0, 4, 1, 3, 2, 5)).reshape(count, 16, self.n)

    def _write(self, v: View, lanes: Arr, total: Arr) -> None:
        count = len(total)
        parts = total.reshape(count, 2, 8, self.n // 8, 4, 2).transpose(0, 2, 4, 3, 1, 5)
        flat = np.ascontiguousarray(parts).reshape(count * 32, self.n // 2)
        if self.sums == "F16":
            words = np.ascontiguousarray(fp.to_f16(flat)).view(u32)
        elif self.sums == "F32":
            words = fp.round_f32(flat).view(u32)
        else:
            exact = flat.astype(i64)
            if self.saturate:
                exact = np.clip(exact, -(1 << 31), (1 << 31) - 1)
            words = exact.astype(u32)
        for i, row in enumerate(self.into):
            v.U[row][lanes] = words[:, i]


def warps_of(v: View, m: Arr | None) -> Arr:
    """Numbers in the view of the active warps, all of whose lanes must be active."""
    if m is None:
        return np.arange(v.n // 32)
    some = m.reshape(-1, 32)
    warps = np.flatnonzero(some.any(axis=1))
    if not some[warps].all():
        raise Fault("a divergent group of a warp executes an instruction of a warpgroup", int(warps[0]) * 32)
    return warps


def product(b: Build) -> InstFn:
    """HGMMA, QGMMA, IGMMA, BGMMA."""
    made = Product(b)

    # They have no latency and no scoreboard: a wait for groups covers them (:mod:`flight`).
    b.writes.clear()

    def run(v: View, m: Arr | None) -> None:
        warps = warps_of(v, m)
        issued = made.issue(v, warps)
        flight = b.ctx.flight
        if flight is None:
            made.apply(v, warps, issued)
        else:
            flight.start(v, warps, issued, made, b.pc)

    return run


def order(b: Build) -> InstFn:
    """WARPGROUP.ARRIVE makes the registers available to products; .DEPBAR waits for groups."""
    b.only("ARRIVE", "DEPBAR", "LE")
    left = next((o.value for o in b.inst.srcs if isinstance(o, Imm)), 0)
    arrives = "ARRIVE" in b.mods

    def run(v: View, m: Arr | None) -> None:
        flight = b.ctx.flight
        if flight is not None:
            if arrives:
                flight.arrive(v, warps_of(v, m))
            else:
                flight.finish(v, warps_of(v, m), left)

    return run


OPS: Final[dict[str, Builder]] = {
    "HGMMA": product, "QGMMA": product, "IGMMA": product, "BGMMA": product, "WARPGROUP": order,
}  # fmt: skip
