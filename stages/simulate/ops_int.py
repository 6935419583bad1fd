"""Integer, logic, move, compare and predicate instructions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ir_format.model import INV, NEG, ZERO, Imm, Operand, Reg
from stages.simulate.build import Arr, Build, Builder, Get, InstFn, View, flags_of, join64, put
from stages.simulate.state import P_SINK, SINK

u8, u32, u64, i32, i64 = np.uint8, np.uint32, np.uint64, np.int32, np.int64
_M32: Final = u64(0xFFFFFFFF)
_32: Final = u64(32)


def wide(b: Build, op: Operand) -> Get:
    """A 32-bit addend as uint64 such that carries come out right: -x is 2**32 - x, ~x is the 32-bit inverse."""
    get = b.raw(op)
    flags = flags_of(op)
    if flags & NEG:
        return lambda v: u64(1 << 32) - get(v).astype(u64)
    if flags & INV:
        return lambda v: np.invert(get(v)).astype(u64)
    return lambda v: get(v).astype(u64)


def _carry_add(b: Build, gets: list[Get], carries: list[Get]) -> InstFn:
    """Sum of uint64 addends and carries, with carry-out predicates: first if the sum passes 2**32, second if it passes 2**33."""
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
            return b.emit(_copy, gets)
        if len(gets) == 2:
            return b.emit(np.add, gets)
        return b.emit(lambda x, y, z: x + y + z, gets)
    return _carry_add(b, [wide(b, o) for o in live] or [wide(b, b.s[0])], ps)


def _add64(b: Build) -> InstFn:
    """64-bit sum of all sources. The carry-out of a sum with a negated source is that of adding its complement."""
    gets = [b.q(o) for o in b.s if not (isinstance(o, Reg) and o.num == ZERO and not o.flags & (NEG | INV))] or [b.q(b.s[0])]
    ps = carries(b)
    pu, pv = b.pdst(0), b.pdst(1)
    if pu == P_SINK and pv == P_SINK and not ps:
        return b.emit_q(lambda *xs: sum(xs[1:], xs[0]), gets)
    if pv != P_SINK or len(gets) > 2:
        raise b.refuse("second carry")
    negated = sum(bool(flags_of(o) & NEG) for o in b.s)
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
        if negated:  # -0 carries
            for g, o in zip(gets, b.s, strict=False):
                if flags_of(o) & NEG:
                    carry |= g(v) == 0
        put(v.U[low], total.astype(u32), m)
        put(v.U[high], (total >> _32).astype(u32), m)
        put(v.P[pu], carry, m)

    return run


def _add_halves(p: Arr, q: Arr) -> Arr:
    """Sums of the two halves."""
    return np.asarray(((p + q) & u32(0xFFFF)) | ((p & u32(0xFFFF0000)) + (q & u32(0xFFFF0000))))


def _packed_add(b: Build, kind: Any) -> InstFn:
    """Sums of halves or bytes apart, wrapping or (.ISAT) clamped."""
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
    if "16x2" in b.mods and not any(flags_of(o) & NEG for o in b.s[:2]):
        b.only("16x2")
        return b.emit(_add_halves, [b.u(o) for o in b.s[:2]])
    b.only("64", "X", "S32", "U32", "ISAT", *_PACKED)
    lanes = next((m for m in b.inst.mods if m in _PACKED), "")
    if lanes:
        return _packed_add(b, _PACKED[lanes])
    if "64" in b.mods:
        return _add64(b)
    x, y = (b.u(o) for o in b.s[:2])
    if "ISAT" in b.mods:
        gx, gy = b.raw(b.s[0]), b.raw(b.s[1])
        kind: Any = u32 if "U32" in b.mods else i32
        info = np.iinfo(kind)
        signs = [-1 if flags_of(o) & NEG else 1 for o in b.s[:2]]

        def clamp(p: Arr, q: Arr) -> Arr:
            total = p.view(kind).astype(i64) * signs[0] + q.view(kind).astype(i64) * signs[1]
            return np.asarray(np.clip(total, info.min, info.max).astype(kind).view(u32))

        return b.emit(clamp, [gx, gy])
    if "X" in b.mods or any(isinstance(p, Reg) and p.num != ZERO for p in b.pd):
        return _carry_add(b, [wide(b, o) for o in b.s[:2]], carries(b))
    return b.emit(np.add, [x, y])


def _copy(x: Arr) -> Arr:
    return x


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
                return b.emit(_copy, [b.u(z)])
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
    x, y, z = (b.raw(o) for o in b.s[:3])
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
    """Shift and add. .HI takes the upper word of {c, a} << s; .SX32: c is the sign of a. -a and ~a apply to the shifted value."""
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


# --- logic -----------------------------------------------------------------------------------------------------

_Two = Callable[[Arr, Arr], Arr]
#: The sixteen functions of two words; index bits: b = 0xC, c = 0xA.
_TWO: Final[tuple[_Two | None, ...]] = (
    None,
    lambda b, c: ~(b | c),
    lambda b, c: ~b & c,
    lambda b, c: ~b,
    lambda b, c: b & ~c,
    lambda b, c: ~c,
    lambda b, c: b ^ c,
    lambda b, c: ~(b & c),
    lambda b, c: b & c,
    lambda b, c: ~(b ^ c),
    lambda b, c: c,
    lambda b, c: ~b | c,
    lambda b, c: b,
    lambda b, c: b | ~c,
    lambda b, c: b | c,
    lambda b, c: np.full_like(b, -1 if b.dtype == np.bool_ else 0xFFFFFFFF),
)


def lut3(table: int) -> Callable[[Arr, Arr, Arr], Arr]:
    """The function of three words (or booleans) that a LOP3 table gives (a = 0xF0, b = 0xCC, c = 0xAA)."""
    f1, f0 = _TWO[(table >> 4) & 15], _TWO[table & 15]
    if f1 is None and f0 is None:
        return lambda a, b, c: np.zeros_like(a)
    if f1 is f0 and f1 is not None:
        same = f1
        return lambda a, b, c: same(b, c)
    if f0 is None:
        one = f1
        return (lambda a, b, c: a) if (table >> 4) & 15 == 15 else (lambda a, b, c: a & one(b, c))  # type: ignore[misc]
    if f1 is None:
        zero = f0
        return (lambda a, b, c: ~a) if table & 15 == 15 else (lambda a, b, c: ~a & zero(b, c))
    if (table >> 4) & 15 == 15:
        zero = f0
        return lambda a, b, c: a | zero(b, c)
    if table & 15 == 15:
        other = f1
        return lambda a, b, c: ~a | other(b, c)
    if (table >> 4) & 15 == ~table & 15:
        zero = f0
        return lambda a, b, c: a ^ zero(b, c)
    one, zero = f1, f0
    return lambda a, b, c: (a & one(b, c)) | (~a & zero(b, c))


def _lut_of(b: Build, index: int) -> int:
    op = b.s[index]
    if not isinstance(op, Imm):
        raise b.refuse("table is not an immediate")
    return op.value & 0xFF


def lop3(b: Build) -> InstFn:
    """Any function of three words; predicate: result is not zero, OR (.PAND: AND) the predicate source."""
    b.only("LUT", "PAND")
    fn = lut3(_lut_of(b, 3))
    gets = [b.u(o) for o in b.s[:3]]
    pu = b.pdst(0)
    if pu == P_SINK:
        return b.emit(fn, gets)
    d = b.dst()
    pp = b.psrc(0, False)
    combine: Any = np.logical_and if "PAND" in b.mods else np.logical_or
    trivial = b.pconst(0) is ("PAND" in b.mods)
    ga, gb, gc = gets

    def run(v: View, m: Arr | None) -> None:
        x = fn(ga(v), gb(v), gc(v))
        nonzero = x != 0
        if not trivial:
            nonzero = combine(nonzero, pp(v))
        put(v.U[d], x, m)
        put(v.P[pu], nonzero, m)

    return run


def _pred_or_sign(b: Build, op: Reg) -> Get:
    """A predicate, or the sign of a register."""
    if op.file in ("P", "UP"):
        return b.p(op)
    if op.mod != "SIGN":
        raise b.refuse(f"operand {op!r}")
    get = b.raw(op)
    flip = bool(op.flags & INV)
    return lambda v: (get(v) >> u32(31) != 0) ^ flip


def plop3(b: Build) -> InstFn:
    """Two functions of three predicates."""
    b.only("LUT")
    tables = [o for o in b.inst.srcs if isinstance(o, Imm)]
    if len(tables) != 2:
        raise b.refuse("needs two tables")
    first, second = lut3(tables[0].value & 0xFF), lut3(tables[1].value & 0xFF)
    gets = [_pred_or_sign(b, o) for o in b.inst.srcs if isinstance(o, Reg)][:3]
    return b.emit_p(lambda x, y, z: (first(x, y, z), second(x, y, z)), gets)


def shf(b: Build) -> InstFn:
    """Funnel shift of {c, a} by b; .HI gives the upper word; amounts clamp (.W: wrap) at the operand width."""
    b.only("L", "R", "W", "HI", "S64", "U64", "S32", "U32")
    left, high, wrap = "L" in b.mods, "HI" in b.mods, "W" in b.mods
    width = 64 if "S64" in b.mods or "U64" in b.mods else 32
    signed = not left and ("S32" in b.mods or "S64" in b.mods)
    a, s, c = b.s[:3]
    if isinstance(s, Imm):
        n = s.value & (width - 1) if wrap else min(s.value, width)
        if n < 32 and left and not high:
            return b.emit(lambda x: x << u32(n), [b.u(a)])
        if n < 32 and not left and high:
            if signed:
                return b.emit(lambda x: (x.view(i32) >> i32(n)).view(u32), [b.u(c)])
            return b.emit(lambda x: x >> u32(n), [b.u(c)])
    ga, gs, gc = b.u(a), b.u(s), b.u(c)

    def run(low: Arr, amount: Arr, top: Arr) -> Arr:
        x = join64(low, top)
        n = (amount & u32(width - 1) if wrap else np.minimum(amount, u32(width))).astype(u64)
        k = np.minimum(n, u64(63))
        if left:
            y = np.where(n > 63, u64(0), x << k)
        elif signed:
            y = (x.view(i64) >> k.view(i64)).view(u64)
        else:
            y = np.where(n > 63, u64(0), x >> k)
        return (y >> _32 if high else y).astype(u32)

    return b.emit(run, [ga, gs, gc])


_PRMT_MODES: Final[dict[str, Callable[[Any, int], Any]]] = {
    "F4E": lambda s, i: s + i,
    "B4E": lambda s, i: (s - i) & 7,
    "RC8": lambda s, i: s,
    "ECL": lambda s, i: np.maximum(s, i),
    "ECR": lambda s, i: np.minimum(s, i),
    "RC16": lambda s, i: (s & 1) * 2 + (i & 1),
}


def prmt(b: Build) -> InstFn:
    """Byte permute of {c, a} by the selector b."""
    b.only(*_PRMT_MODES)
    mode = b.pick(*_PRMT_MODES)
    ga, gs, gc = (b.u(o) for o in b.s[:3])

    def run(a: Arr, sel: Arr, c: Arr) -> Arr:
        data = join64(a, c).view(u8).reshape(-1, 8)
        out = np.empty((len(a), 4), u8)
        lanes = np.arange(len(a))
        for i in range(4):
            if mode:
                out[:, i] = data[lanes, _PRMT_MODES[mode]((sel & u32(3)).astype(i64), i)]
                continue
            nibble = sel >> u32(4 * i)
            byte = data[lanes, nibble & u32(7)]
            sign = (nibble & u32(8)) != 0
            out[:, i] = np.where(sign, np.where(byte & u8(0x80), u8(0xFF), u8(0)), byte)
        return out.view(u32).reshape(-1)

    sel_op = b.s[1]
    if isinstance(sel_op, Imm) and not mode and not sel_op.value & 0x8888:
        picks = [(sel_op.value >> (4 * i)) & 7 for i in range(4)]

        def fixed(a: Arr, c: Arr) -> Arr:
            return np.ascontiguousarray(join64(a, c).view(u8).reshape(-1, 8)[:, picks]).view(u32).reshape(-1)

        return b.emit(fixed, [ga, gc])
    return b.emit(run, [ga, gs, gc])


def sgxt(b: Build) -> InstFn:
    """Extend the low b bits of a by sign (.U32: by zero)."""
    b.only("W", "U32")
    wrap, unsigned = "W" in b.mods, "U32" in b.mods

    def run(x: Arr, bits: Arr) -> Arr:
        n = (bits & u32(31) if wrap else np.minimum(bits, u32(32))).astype(i64)
        k = i64(64) - n
        y = x.astype(u64)
        full = n == 0
        if unsigned:
            got = (y << np.where(full, 0, k).astype(u64)) >> np.where(full, 0, k).astype(u64)
        else:
            got = ((y << np.where(full, 0, k).astype(u64)).view(i64) >> np.where(full, 0, k)).view(u64)
        return np.where(full, u32(0), got.astype(u32))

    return b.emit(run, [b.u(o) for o in b.s[:2]])


def bmsk(b: Build) -> InstFn:
    """b ones from bit a up."""
    b.only("W")
    wrap = "W" in b.mods

    def run(start: Arr, size: Arr) -> Arr:
        if wrap:
            first, n = (start & u32(31)).astype(u64), (size & u32(31)).astype(u64)
        else:
            first, n = np.minimum(start, u32(32)).astype(u64), np.minimum(size, u32(32)).astype(u64)
        return (((u64(1) << n) - u64(1)) << first).astype(u32)

    return b.emit(run, [b.u(o) for o in b.s[:2]])


def iabs(b: Build) -> InstFn:
    """Absolute value."""
    return b.emit(lambda x: np.abs(x.view(i32)).view(u32), [b.u(b.s[-1])])


def _popcount(x: Arr) -> Arr:
    y = x - ((x >> u32(1)) & u32(0x55555555))
    y = (y & u32(0x33333333)) + ((y >> u32(2)) & u32(0x33333333))
    y = (y + (y >> u32(4))) & u32(0x0F0F0F0F)
    return np.asarray((y * u32(0x01010101)) >> u32(24))


def popc(b: Build) -> InstFn:
    """Count of ones."""
    return b.emit(_popcount, [b.u(b.s[-1])])


def _leading(x: Arr) -> Arr:
    """Index of the highest one, -1 for 0 (exact: a double holds 32 bits)."""
    _, e = np.frexp(x.astype(np.float64))
    return np.where(x == 0, i32(-1), e - 1).astype(i32)


def flo(b: Build) -> InstFn:
    """Index of the leading one (signed: of the leading bit that differs from the sign); .SH: as a left-shift amount. None: 0xffffffff."""
    b.only("U32", "SH")
    unsigned, shift = "U32" in b.mods, "SH" in b.mods
    d, pu = b.dst(), b.pdst(0)
    get = b.u(b.s[-1])

    def run(v: View, m: Arr | None) -> None:
        x = get(v)
        if not unsigned:
            x = np.where(x.view(i32) < 0, ~x, x)
        at = _leading(x)
        found = at >= 0
        put(v.U[d], np.where(found, 31 - at if shift else at, -1).astype(i32).view(u32), m)
        if pu != P_SINK:
            put(v.P[pu], found, m)

    return run


def _reverse(x: Arr) -> Arr:
    for k, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF), (16, 0x0000FFFF)):
        x = ((x >> u32(k)) & u32(mask)) | ((x & u32(mask)) << u32(k))
    return x


def brev(b: Build) -> InstFn:
    """Bits in reverse order."""
    return b.emit(_reverse, [b.u(b.s[-1])])


# --- moves and selects -----------------------------------------------------------------------------------------


def mov(b: Build) -> InstFn:
    """Copy."""
    b.only("64")
    if "64" in b.mods:
        return b.emit_q(_copy, [b.q(b.s[0])])
    if len(b.s) > 1 and isinstance(b.s[1], Imm) and b.s[1].value != 15:
        keep = np.uint32(sum(0xFF << (8 * i) for i in range(4) if not b.s[1].value >> i & 1))
        d = b.dst()
        get = b.u(b.s[0])
        return lambda v, m: put(v.U[d], (v.U[d] & keep) | (get(v) & ~keep), m)
    return b.emit(_copy, [b.u(b.s[0])])


def _choose(p: Arr, x: Arr, y: Arr) -> Arr:
    return np.where(p, x, y)


def sel(b: Build) -> InstFn:
    """a where the predicate is true, else b."""
    b.only("64")
    if "64" in b.mods:
        return b.emit_q(_choose, [b.psrc(0, True), b.q(b.s[0]), b.q(b.s[1])])
    return b.emit(_choose, [b.psrc(0, True), b.u(b.s[0]), b.u(b.s[1])])


# --- compare and minimum ---------------------------------------------------------------------------------------

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
    """How a comparison result joins the predicate source; nothing to do for ``AND PT``."""
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


def _minmax(b: Build, kind: Any, x: Get, y: Get, index: int = 0) -> Get:
    """min where the predicate is true, max where false."""
    fixed = b.pconst(index) if index < len(b.ps) else None
    if fixed is not None:
        fn = np.minimum if fixed else np.maximum
        return lambda v: fn(x(v).view(kind), y(v).view(kind))
    pp = b.psrc(index, True)
    return lambda v: np.where(pp(v), np.minimum(x(v).view(kind), y(v).view(kind)), np.maximum(x(v).view(kind), y(v).view(kind)))


def _no_preds(b: Build) -> None:
    if any(not (isinstance(p, Reg) and p.num == ZERO) for p in b.pd):
        raise b.refuse("predicate result")


def imnmx(b: Build) -> InstFn:
    """Minimum or maximum of two."""
    b.only("U32", "S32", "U64", "S64", "RELU", *_PACKED)
    _no_preds(b)
    packed = next((m for m in b.inst.mods if m in _PACKED), "")
    if packed:
        return _packed(b, _PACKED[packed])
    if "U64" in b.mods or "S64" in b.mods:
        kind64: Any = i64 if "S64" in b.mods else u64
        best64 = _minmax(b, kind64, b.q(b.s[0]), b.q(b.s[1]))
        return b.emit_q(_copy, [best64])
    kind: Any = u32 if "U32" in b.mods else i32
    best = _minmax(b, kind, b.u(b.s[0]), b.u(b.s[1]))
    if "RELU" in b.mods:
        return b.emit(lambda x: np.maximum(x, 0).view(u32), [best])
    return b.emit(lambda x: x.view(u32), [best])


_PACKED: Final[dict[str, Any]] = {
    "U16x2": np.uint16, "S16x2": np.int16, "16x2": np.int16, "U8x4": u8, "S8x4": np.int8, "8x4": np.int8,
}  # fmt: skip


def _packed(b: Build, kind: Any) -> InstFn:
    """Minimum or maximum of halves or bytes apart; a second predicate, where there is one, chooses for the upper half."""
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
    """Minimum or maximum of three; the second predicate, where there is one, decides the second step."""
    b.only("U32", "S32", "RELU")
    _no_preds(b)
    kind: Any = u32 if "U32" in b.mods else i32
    first = _minmax(b, kind, b.u(b.s[0]), b.u(b.s[1]))
    both = _minmax(b, kind, first, b.u(b.s[2]), 1 if len(b.ps) > 1 else 0)
    relu = "RELU" in b.mods
    return b.emit(lambda x: (np.maximum(x, 0) if relu else x).view(u32), [both])


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


# --- predicates and registers ----------------------------------------------------------------------------------


def _byte_shift(b: Build) -> int:
    for op in (*b.d, *b.s):
        mod = op.mod if isinstance(op, (Reg, Imm)) else ""
        if mod in ("B1", "B2", "B3"):
            return 8 * int(mod[1])
    return 8 * int(b.pick("B1", "B2", "B3", default="B0")[1])


def p2r(b: Build) -> InstFn:
    """Predicates into the bits of a register that the mask names, the rest from a."""
    values = [o for o in b.s if isinstance(o, (Reg, Imm))]
    if len(values) < 2:
        raise b.refuse()
    shift = u32(_byte_shift(b))
    ga, gm = b.u(values[0]), b.u(values[1])
    for i in range(7):
        b.reads.append(("P", i))
    d = b.dst()

    def run(v: View, m: Arr | None) -> None:
        word = np.zeros(v.n, u32)
        for i in range(7):
            word |= v.P[i].astype(u32) << u32(i)
        mask = gm(v)
        put(v.U[d], (ga(v) & ~(mask << shift)) | ((word & mask) << shift), m)

    return run


def r2p(b: Build) -> InstFn:
    """Bits of a register into the predicates that the mask names."""
    values = [o for o in b.s if isinstance(o, (Reg, Imm))]
    if len(values) < 2 or not isinstance(values[1], Imm):
        raise b.refuse()
    mask = values[1].value
    shift = _byte_shift(b)
    get = b.u(values[0])
    chosen = [i for i in range(7) if mask >> i & 1]
    b.writes.extend(("P", i) for i in chosen)

    def run(v: View, m: Arr | None) -> None:
        word = get(v) >> u32(shift)
        for i in chosen:
            put(v.P[i], (word & u32(1 << i)) != 0, m)

    return run


def nop(b: Build) -> InstFn:
    """Nothing."""
    return lambda v, m: None


OPS: Final[dict[str, Builder]] = {
    "IADD3": iadd3, "UIADD3": iadd3, "IADD": iadd, "UIADD": iadd, "VIADD": iadd, "UVIADD": iadd, "IMAD": imad, "UIMAD": imad, "IDP": idp,
    "LEA": lea, "ULEA": lea, "LOP3": lop3, "ULOP3": lop3, "PLOP3": plop3, "UPLOP3": plop3, "SHF": shf, "USHF": shf, "PRMT": prmt, "UPRMT": prmt,
    "SGXT": sgxt, "USGXT": sgxt, "BMSK": bmsk, "UBMSK": bmsk, "IABS": iabs, "UIABS": iabs, "POPC": popc, "UPOPC": popc, "FLO": flo, "UFLO": flo,
    "BREV": brev, "UBREV": brev, "MOV": mov, "UMOV": mov, "SEL": sel, "USEL": sel, "ISETP": isetp, "UISETP": isetp, "IMNMX": imnmx,
    "UIMNMX": imnmx, "VIMNMX": imnmx, "UVIMNMX": imnmx, "VIMNMX3": vimnmx3, "UVIMNMX3": vimnmx3, "VIADDMNMX": viaddmnmx,
    "UVIADDMNMX": viaddmnmx, "VABSDIFF": vabsdiff, "VABSDIFF4": vabsdiff4, "P2R": p2r, "UP2UR": p2r, "R2P": r2p, "UR2UP": r2p, "NOP": nop,
}  # fmt: skip
