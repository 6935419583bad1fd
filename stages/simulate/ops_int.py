"""Integer arithmetic; the other integer families are joined to its table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ir_format.model import INV, NEG, ZERO, Imm, Operand, Reg
from stages.simulate import ops_compare, ops_logic
from stages.simulate.build import Arr, Build, Builder, Get, InstFn, View, flags_of, join64, put
from stages.simulate.ops_compare import PACKED
from stages.simulate.ops_logic import same
from stages.simulate.state import P_SINK, SINK

u8, u32, u64, i32, i64 = np.uint8, np.uint32, np.uint64, np.int32, np.int64
_32: Final = u64(32)


def wide(b: Build, op: Operand) -> Get:
    """A 32-bit addend as uint64 for which carries are right: -x is 2**32 - x, ~x is the 32-bit inverse."""
    get = b.raw(op)
    flags = flags_of(op)
    if flags & NEG:
        return lambda v: u64(1 << 32) - get(v).astype(u64)
    if flags & INV:
        return lambda v: np.invert(get(v)).astype(u64)
    return lambda v: get(v).astype(u64)


def _carry_add(b: Build, gets: list[Get], carries: list[Get]) -> InstFn:
    """Sum of uint64 addends and carries, with carry-out predicates: the first if the sum passes 2**32, the second if it
    passes 2**33."""
    d, pu, pv = b.dst(), b.pdst(0), b.pdst(1)

    def run(v: View, m: Arr | None) -> None:
        total = gets[0](v)
        for g in gets[1:]:
            total = total + g(v)
        for c in carries:
            total = total + c(v)
        put(v.U[d], total.astype(u32), m)
        if pu != P_SINK:
            put(v.P[pu], total >> _32 != 0, m)
        if pv != P_SINK:
            put(v.P[pv], total >> u64(33) != 0, m)

    return run


def carries(b: Build) -> list[Get]:
    """Carry inputs of .X forms."""
    if "X" not in b.mods:
        return []
    return [b.psrc(i, False) for i in range(len(b.ps)) if b.pconst(i) is not False]


def iadd3(b: Build) -> InstFn:
    """Three-input add with carries."""
    b.only("X", "64")
    if "64" in b.mods:
        return _add64(b)
    ps = carries(b)
    live = [o for o in b.s if not (isinstance(o, Reg) and o.num == ZERO and not o.flags & (NEG | INV))]
    if not ps and all(isinstance(p, Reg) and p.num == ZERO for p in b.pd):
        gets = [b.u(o) for o in live] or [b.u(b.s[0])]
        if len(gets) == 1:
            return b.emit(same, gets)
        if len(gets) == 2:
            return b.emit(np.add, gets)
        return b.emit(lambda x, y, z: x + y + z, gets)
    return _carry_add(b, [wide(b, o) for o in live] or [wide(b, b.s[0])], ps)


def _add64(b: Build) -> InstFn:
    """64-bit sum of all sources. With a negated source the carry-out is that of adding its complement."""
    live = [o for o in b.s if not (isinstance(o, Reg) and o.num == ZERO and not o.flags & (NEG | INV))] or [b.s[0]]
    gets = [b.q(o) for o in live]
    ps = carries(b)
    pu, pv = b.pdst(0), b.pdst(1)
    if pu == P_SINK and pv == P_SINK and not ps:
        return b.emit_q(lambda *xs: sum(xs[1:], xs[0]), gets)
    if pv != P_SINK or len(gets) > 2:
        raise b.refuse("second carry")
    negated = [g for g, o in zip(gets, live, strict=True) if flags_of(o) & NEG]
    low, high = b.dst(0), b.dst(1)

    def run(v: View, m: Arr | None) -> None:
        total = gets[0](v)
        carry = np.zeros(v.n, np.bool_)
        for g in gets[1:]:
            x = g(v)
            total = total + x
            carry |= total < x
        for p in ps:
            one = p(v)
            total = total + one
            carry |= one & (total == 0)
        for g in negated:  # -0 carries
            carry |= g(v) == 0
        put(v.U[low], total.astype(u32), m)
        put(v.U[high], (total >> _32).astype(u32), m)
        put(v.P[pu], carry, m)

    return run


def _add_halves(p: Arr, q: Arr) -> Arr:
    """Sums of the two halves."""
    return np.asarray(((p + q) & u32(0xFFFF)) | ((p & u32(0xFFFF0000)) + (q & u32(0xFFFF0000))))


def _packed_add(b: Build, kind: Any) -> InstFn:
    """Sums of each half or byte, wrapping or (.ISAT) clamped."""
    if kind is np.int16 and "16x2" in b.mods and "ISAT" in b.mods:
        kind = np.uint16  # without a sign in its name the type is unsigned
    info = np.iinfo(kind)
    signs = [-1 if flags_of(o) & NEG else 1 for o in b.s[:2]]
    clamp = "ISAT" in b.mods

    def run(p: Arr, q: Arr) -> Arr:
        parts = [np.ascontiguousarray(x).view(kind).astype(i64) * sign for x, sign in zip((p, q), signs, strict=True)]
        total = parts[0] + parts[1]
        if clamp:
            total = np.clip(total, info.min, info.max)
        return np.asarray(total.astype(kind).view(u32))

    return b.emit(run, [b.raw(o) for o in b.s[:2]])


def iadd(b: Build) -> InstFn:
    """Two-input add, 32 or 64 bits, or two halves; .ISAT clamps."""
    if "16x2" in b.mods and "ISAT" not in b.mods and not any(flags_of(o) & NEG for o in b.s[:2]):
        b.only("16x2")
        return b.emit(_add_halves, [b.u(o) for o in b.s[:2]])
    b.only("64", "X", "32", "S32", "U32", "ISAT", *PACKED)
    lanes = next((m for m in b.inst.mods if m in PACKED), "")
    if lanes:
        return _packed_add(b, PACKED[lanes])
    if "64" in b.mods:
        return _add64(b)
    x, y = (b.u(o) for o in b.s[:2])
    if "ISAT" in b.mods:
        gx, gy = b.raw(b.s[0]), b.raw(b.s[1])
        kind: Any = i32 if "S32" in b.mods else u32
        info = np.iinfo(kind)
        signs = [-1 if flags_of(o) & NEG else 1 for o in b.s[:2]]

        def clamp(p: Arr, q: Arr) -> Arr:
            total = p.view(kind).astype(i64) * signs[0] + q.view(kind).astype(i64) * signs[1]
            return np.asarray(np.clip(total, info.min, info.max).astype(kind).view(u32))

        return b.emit(clamp, [gx, gy])
    if "X" in b.mods or any(isinstance(p, Reg) and p.num != ZERO for p in b.pd):
        return _carry_add(b, [wide(b, o) for o in b.s[:2]], carries(b))
    return b.emit(np.add, [x, y])


def clmad(b: Build) -> InstFn:
    """Product over GF(2) of two 64-bit values, one half of its 127 bits, and a third value added."""
    b.only("LO", "HI")
    upper = "HI" in b.mods

    def run(x: Arr, y: Arr, z: Arr) -> Arr:
        half = np.zeros(np.broadcast(x, y).shape, u64)
        for i in range(64):
            at = y >> u64(i) & u64(1)
            if upper:
                half ^= (x >> u64(64 - i)) * at if i else half & u64(0)
            else:
                half ^= (x << u64(i)) * at
        return half ^ z

    return b.emit_q(run, [b.q(o) for o in b.s[:3]])


def _mulwide(signed: bool) -> Callable[[Arr, Arr], Arr]:
    if signed:
        return lambda x, y: (x.view(i32).astype(i64) * y.view(i32).astype(i64)).view(u64)
    return lambda x, y: x.astype(u64) * y.astype(u64)


def imad(b: Build) -> InstFn:
    """Multiply-add: 32 bits, .WIDE (64-bit result), .HI (upper half of it)."""
    b.only("MOV", "SHL", "IADD", "U32", "X", "WIDE", "HI")
    x, y, z = b.s[:3]
    ps = carries(b)
    if "WIDE" not in b.mods and "HI" not in b.mods:
        no_carry = all(isinstance(p, Reg) and p.num == ZERO for p in b.pd)
        if not ps and no_carry:
            if _is_zero(x) or _is_zero(y):
                return b.emit(same, [b.u(z)])
            if _is_zero(z):
                return b.emit(np.multiply, [b.u(x), b.u(y)])
            if isinstance(y, Imm) and y.value == 1:
                return b.emit(np.add, [b.u(x), b.u(z)])
            return b.emit(lambda p, q, r: p * q + r, [b.u(x), b.u(y), b.u(z)])
        gx, gy = b.u(x), b.u(y)
        return _carry_add(b, [lambda v: (gx(v) * gy(v)).astype(u64), wide(b, z)], ps)
    mul = _mulwide("U32" not in b.mods)
    gx, gy, gz = b.u(x), b.u(y), b.q(z)
    pu = b.pdst(0)
    high_only = "HI" in b.mods
    low, high = (SINK, b.dst(0)) if high_only else (b.dst(0), b.dst(1))
    plain = _is_zero(z) and not ps

    def run(v: View, m: Arr | None) -> None:
        total = product = mul(gx(v), gy(v))
        carry = None
        if not plain:
            total = product + gz(v)
            if pu != P_SINK:
                carry = total < product
            for p in ps:
                one = p(v)
                total = total + one
                if carry is not None:
                    carry = carry | (one & (total == 0))
        halves = total.view(u32).reshape(-1, 2)
        if not high_only:
            put(v.U[low], halves[:, 0], m)
        put(v.U[high], halves[:, 1], m)
        if pu != P_SINK:
            put(v.P[pu], np.zeros(v.n, np.bool_) if carry is None else carry, m)

    return run


def _is_zero(op: Operand) -> bool:
    return isinstance(op, Reg) and op.num == ZERO and not op.flags & INV


def idp(b: Build) -> InstFn:
    """Dot products of bytes (4A) or of half words and bytes (2A)."""
    x, y, z = b.raw(b.s[0]), b.raw(b.s[1]), b.u(b.s[2])
    types = [m for m in b.inst.mods if m in ("U8", "S8", "U16", "S16")]
    first_signed = types[0].startswith("S") if types else "S8" in b.mods
    second_signed = types[-1].startswith("S") if types else "S8" in b.mods
    four = "4A" in b.mods
    upper = "HI" in b.mods

    def run(p: Arr, q: Arr, r: Arr) -> Arr:
        if four:
            left = p.view(np.int8 if first_signed else u8).reshape(-1, 4).astype(i64)
            right = q.view(np.int8 if second_signed else u8).reshape(-1, 4).astype(i64)
        else:
            left = p.view(np.int16 if first_signed else np.uint16).reshape(-1, 2).astype(i64)
            bytes_ = q.view(np.int8 if second_signed else u8).reshape(-1, 4).astype(i64)
            right = bytes_[:, 2:] if upper else bytes_[:, :2]
        return np.asarray(((left * right).sum(axis=1) + r.astype(i64)).astype(u32))

    return b.emit(lambda p, q, r: run(np.ascontiguousarray(p), np.ascontiguousarray(q), r), [x, y, z])


def lea(b: Build) -> InstFn:
    """Shift and add. .HI takes the upper word of {c, a} << s; .SX32: c is the sign of a. -a and ~a apply to the shifted
    value."""
    b.only("HI", "X", "SX32")
    high = "HI" in b.mods
    shift_op = b.s[-1]
    if not isinstance(shift_op, Imm):
        raise b.refuse("shift is not an immediate")
    s = shift_op.value & 31
    a, addend = b.raw(b.s[0]), wide(b, b.s[1])
    top: Get | None = None
    if high and "SX32" not in b.mods:
        if len(b.s) < 4:
            raise b.refuse("no upper operand")
        top = b.raw(b.s[2])
    flags = flags_of(b.s[0])

    def shifted(v: View) -> Arr:
        low = a(v)
        if not high:
            x = low << u32(s)
        else:
            upper = top(v) if top is not None else (low.view(i32) >> i32(31)).view(u32)
            x = ((join64(low, upper) << u64(s)) >> _32).astype(u32)
        if flags & NEG:
            return u64(1 << 32) - x.astype(u64)
        return (np.invert(x) if flags & INV else x).astype(u64)

    return _carry_add(b, [shifted, addend], carries(b))


def iabs(b: Build) -> InstFn:
    """Absolute value."""
    return b.emit(lambda x: np.abs(x.view(i32)).view(u32), [b.u(b.s[-1])])


OPS: Final[dict[str, Builder]] = {
    "IADD3": iadd3, "UIADD3": iadd3, "CLMAD": clmad, "IADD": iadd, "UIADD": iadd, "VIADD": iadd, "UVIADD": iadd,
    "IMAD": imad, "UIMAD": imad, "IDP": idp,
    "LEA": lea, "ULEA": lea, "IABS": iabs, "UIABS": iabs, **ops_logic.OPS, **ops_compare.OPS,
}  # fmt: skip
