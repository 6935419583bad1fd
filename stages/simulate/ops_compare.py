"""Integer comparisons, minima and maxima, absolute differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ir_format.model import ZERO, Reg
from stages.simulate.build import Arr, Build, Builder, Get, InstFn, View, put
from stages.simulate.ops_logic import same
from stages.simulate.state import P_SINK

u8, u32, u64, i32, i64 = np.uint8, np.uint32, np.uint64, np.int32, np.int64
_32: Final = u64(32)


CMP: Final[dict[str, Callable[[Arr, Arr], Arr]]] = {
    "F": lambda a, b: np.zeros(a.shape, np.bool_),
    "LT": np.less,
    "EQ": np.equal,
    "LE": np.less_equal,
    "GT": np.greater,
    "NE": np.not_equal,
    "GE": np.greater_equal,
    "T": lambda a, b: np.ones(a.shape, np.bool_),
}
BOP: Final[dict[str, Callable[[Arr, Arr], Arr]]] = {"AND": np.logical_and, "OR": np.logical_or, "XOR": np.logical_xor}


def combined(b: Build, index: int = 0) -> Callable[[Arr, View], Arr]:
    """How a comparison result is combined with the predicate source; ``AND PT`` needs nothing."""
    op = b.pick(*BOP, default="AND")
    if b.pconst(index) is (op == "AND") and op != "XOR":
        return lambda x, v: x
    join, pp = BOP[op], b.psrc(index, True)
    return lambda x, v: join(x, pp(v))


def compare(b: Build, test: Callable[[View], Arr]) -> InstFn:
    """Pu = test bop Pp, Pv = !test bop Pp."""
    pu, pv = b.pdst(0), b.pdst(1)
    join = combined(b)

    def run(v: View, m: Arr | None) -> None:
        x = test(v)
        first = join(x, v)
        if pv != P_SINK:
            second = join(np.logical_not(x), v)
            put(v.P[pv], second, m)
        put(v.P[pu], first, m)

    return run


def isetp(b: Build) -> InstFn:
    """Integer comparison; .EX continues a comparison of lower words whose result is Px."""
    b.only(*CMP, *BOP, "U32", "EX", "U64", "S64")
    name = next((m for m in b.inst.mods if m in CMP), "")
    if not name:
        raise b.refuse("no comparison")
    cmp = CMP[name]
    if "U64" in b.mods or "S64" in b.mods:
        kind64: Any = i64 if "S64" in b.mods else u64
        x64, y64 = b.q(b.s[0]), b.q(b.s[1])
        return compare(b, lambda v: cmp(x64(v).view(kind64), y64(v).view(kind64)))
    kind: Any = u32 if "U32" in b.mods else i32
    x, y = b.u(b.s[0]), b.u(b.s[1])
    if "EX" not in b.mods:
        return compare(b, lambda v: cmp(x(v).view(kind), y(v).view(kind)))
    px = b.psrc(1, True)
    strict = {"LT": np.less, "LE": np.less, "GT": np.greater, "GE": np.greater}.get(name)

    def extended(v: View) -> Arr:
        p, q = x(v).view(kind), y(v).view(kind)
        if name == "NE":
            return np.asarray((p != q) | px(v))
        if strict is None:
            return cmp(p, q) & px(v)
        return np.asarray(strict(p, q) | ((p == q) & px(v)))

    return compare(b, extended)


def viset(b: Build) -> InstFn:
    """Integer comparison whose result is a mask (.BM): ones for true, of a word or of each element."""
    b.only(*CMP, "BM", "U32", "S32", *PACKED)
    name = next((m for m in b.inst.mods if m in CMP), "")
    if not name or "BM" not in b.mods:
        raise b.refuse("no comparison")
    packed = next((m for m in b.inst.mods if m in PACKED), "")
    kind: Any = PACKED[packed] if packed else i32 if "S32" in b.mods else u32
    cmp, ones = CMP[name], np.iinfo(kind).max if np.iinfo(kind).min == 0 else -1

    def masked(x: Arr, y: Arr) -> Arr:
        true = cmp(np.ascontiguousarray(x).view(kind), np.ascontiguousarray(y).view(kind))
        return np.asarray(np.where(true, kind(ones), kind(0)).astype(kind).view(u32))

    return b.emit(masked, [b.u(b.s[0]), b.u(b.s[1])])


def _minmax(b: Build, kind: Any, x: Get, y: Get, index: int = 0) -> Get:
    """min where the predicate is true, max where false."""
    fixed = b.pconst(index) if index < len(b.ps) else None
    if fixed is not None:
        fn = np.minimum if fixed else np.maximum
        return lambda v: fn(x(v).view(kind), y(v).view(kind))
    pp = b.psrc(index, True)
    return lambda v: np.where(
        pp(v), np.minimum(x(v).view(kind), y(v).view(kind)), np.maximum(x(v).view(kind), y(v).view(kind))
    )


def _no_preds(b: Build) -> None:
    if any(not (isinstance(p, Reg) and p.num == ZERO) for p in b.pd):
        raise b.refuse("predicate result")


def imnmx(b: Build) -> InstFn:
    """Minimum or maximum of two."""
    b.only("U32", "S32", "U64", "S64", "RELU", *PACKED)
    _no_preds(b)
    packed = next((m for m in b.inst.mods if m in PACKED), "")
    if packed:
        return _packed(b, PACKED[packed])
    if "U64" in b.mods or "S64" in b.mods:
        kind64: Any = i64 if "S64" in b.mods else u64
        best64 = _minmax(b, kind64, b.q(b.s[0]), b.q(b.s[1]))
        return b.emit_q(same, [best64])
    kind: Any = u32 if "U32" in b.mods else i32
    best = _minmax(b, kind, b.u(b.s[0]), b.u(b.s[1]))
    if "RELU" in b.mods:
        return b.emit(lambda x: np.maximum(x, 0).view(u32), [best])
    return b.emit(lambda x: x.view(u32), [best])


PACKED: Final[dict[str, Any]] = {
    "U16x2": np.uint16, "S16x2": np.int16, "16x2": np.int16, "U8x4": u8, "S8x4": np.int8, "8x4": np.int8,
}  # fmt: skip


def _packed(b: Build, kind: Any) -> InstFn:
    """Minimum or maximum of each half or byte; a second predicate, if present, chooses for the upper half."""
    parts = 4 // np.dtype(kind).itemsize
    if parts == 4 and len(b.ps) > 1 and b.pconst(1) is not b.pconst(0):
        raise b.refuse("predicate for each byte")
    x, y = b.u(b.s[0]), b.u(b.s[1])
    first, second = b.psrc(0, True), b.psrc(1 if len(b.ps) > 1 else 0, True)
    relu = "RELU" in b.mods
    d = b.dst()

    def run(v: View, m: Arr | None) -> None:
        p, q = (np.ascontiguousarray(g(v)).view(kind).reshape(-1, parts) for g in (x, y))
        low = first(v)[:, None] if parts == 4 else np.stack([first(v), second(v)], axis=1)
        r = np.where(low, np.minimum(p, q), np.maximum(p, q))
        if relu:
            r = np.maximum(r, 0)
        put(v.U[d], np.ascontiguousarray(r).view(u32).reshape(-1), m)

    return run


def vimnmx3(b: Build) -> InstFn:
    """Minimum or maximum of three; the second predicate, if present, decides the second step."""
    b.only("U32", "S32", "RELU", "U16x2", "S16x2")
    _no_preds(b)
    halves = b.pick("U16x2", "S16x2")
    if halves:
        return _halves3(b, PACKED[halves])
    kind: Any = u32 if "U32" in b.mods else i32
    first = _minmax(b, kind, b.u(b.s[0]), b.u(b.s[1]))
    both = _minmax(b, kind, first, b.u(b.s[2]), 1 if len(b.ps) > 1 else 0)
    relu = "RELU" in b.mods
    return b.emit(lambda x: (np.maximum(x, 0) if relu else x).view(u32), [both])


def _halves3(b: Build, kind: Any) -> InstFn:
    """The same for each half of a word."""
    gets = [b.u(o) for o in b.s[:3]]
    steps = [b.psrc(0, True), b.psrc(1 if len(b.ps) > 1 else 0, True)]
    relu = "RELU" in b.mods
    d = b.dst()

    def run(v: View, m: Arr | None) -> None:
        r, *rest = (np.ascontiguousarray(g(v)).view(kind).reshape(-1, 2) for g in gets)
        for other, low in zip(rest, steps, strict=True):
            r = np.where(low(v)[:, None], np.minimum(r, other), np.maximum(r, other))
        if relu:
            r = np.maximum(r, kind(0))
        put(v.U[d], np.ascontiguousarray(r).view(u32).reshape(-1), m)

    return run


def viaddmnmx(b: Build) -> InstFn:
    """Minimum or maximum of a + b (wrapping) and c."""
    b.only("U32", "RELU")
    _no_preds(b)
    kind: Any = u32 if "U32" in b.mods else i32
    x, y = b.u(b.s[0]), b.u(b.s[1])
    best = _minmax(b, kind, lambda v: x(v) + y(v), b.u(b.s[2]))
    relu = "RELU" in b.mods
    return b.emit(lambda z: (np.maximum(z, 0) if relu else z).view(u32), [best])


def vabsdiff(b: Build) -> InstFn:
    """|a - b| + c."""
    b.only("U32")
    kind: Any = u32 if "U32" in b.mods else i32

    def run(x: Arr, y: Arr, z: Arr) -> Arr:
        return np.asarray((np.abs(x.view(kind).astype(i64) - y.view(kind).astype(i64))).astype(u32) + z)

    return b.emit(run, [b.u(o) for o in b.s[:3]])


def vabsdiff4(b: Build) -> InstFn:
    """Byte-wise |a - b|; .ACC sums the four and adds c."""
    b.only("U8", "ACC", "S8")
    kind: Any = u8 if "U8" in b.mods else np.int8
    acc = "ACC" in b.mods

    def run(x: Arr, y: Arr, z: Arr) -> Arr:
        p = np.ascontiguousarray(x).view(kind).reshape(-1, 4).astype(i64)
        q = np.ascontiguousarray(y).view(kind).reshape(-1, 4).astype(i64)
        d = np.abs(p - q)
        return np.asarray(d.sum(axis=1).astype(u32) + z if acc else d.astype(u8).view(u32).reshape(-1))

    return b.emit(run, [b.u(o) for o in b.s[:3]])


OPS: Final[dict[str, Builder]] = {
    "VISET": viset, "ISETP": isetp, "UISETP": isetp, "IMNMX": imnmx, "UIMNMX": imnmx, "VIMNMX": imnmx, "UVIMNMX": imnmx,
    "VIMNMX3": vimnmx3, "UVIMNMX3": vimnmx3,
    "VIADDMNMX": viaddmnmx, "UVIADDMNMX": viaddmnmx, "VABSDIFF": vabsdiff, "VABSDIFF4": vabsdiff4,
}  # fmt: skip
