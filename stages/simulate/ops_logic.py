"""Logic, shifts, bit and byte operations, moves, predicates as bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ir_format.model import INV, Const, Imm, Operand, Reg
from stages.simulate.build import Arr, Build, Builder, Get, InstFn, View, join64, put
from stages.simulate.state import P_SINK, UP0

u8, u32, u64, i32, i64 = np.uint8, np.uint32, np.uint64, np.int32, np.int64
_32: Final = u64(32)


def same(x: Arr) -> Arr:
    """The value itself."""
    return x


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
    """The function of three words (or booleans) for a LOP3 table (a = 0xF0, b = 0xCC, c = 0xAA)."""
    f1, f0 = _TWO[(table >> 4) & 15], _TWO[table & 15]
    if f1 is None and f0 is None:
        return lambda a, b, c: np.zeros_like(a)
    if f1 is f0 and f1 is not None:
        alike = f1
        return lambda a, b, c: alike(b, c)
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


def _pred_or_sign(b: Build, op: Operand) -> Get:
    """A predicate, or the sign of a register or of a word of a constant bank."""
    if isinstance(op, Reg) and op.file in ("P", "UP"):
        return b.p(op)
    if not isinstance(op, Reg | Const) or op.mod != "SIGN":
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
    gets = [_pred_or_sign(b, o) for o in b.inst.srcs[:3]]
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


def _popcount(x: Arr) -> Arr:
    y = x - ((x >> u32(1)) & u32(0x55555555))
    y = (y & u32(0x33333333)) + ((y >> u32(2)) & u32(0x33333333))
    y = (y + (y >> u32(4))) & u32(0x0F0F0F0F)
    return np.asarray((y * u32(0x01010101)) >> u32(24))


def popc(b: Build) -> InstFn:
    """Count of ones."""
    return b.emit(_popcount, [b.u(b.s[-1])])


def _leading(x: Arr) -> Arr:
    """Index of the highest set bit, -1 for 0 (exact: a double holds 32 bits)."""
    _, e = np.frexp(x.astype(np.float64))
    return np.where(x == 0, i32(-1), e - 1).astype(i32)


def flo(b: Build) -> InstFn:
    """Index of the leading set bit (signed: of the leading bit that differs from the sign); .SH: as a left-shift
    amount. 0xffffffff if there is none."""
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
        return b.emit_q(same, [b.q(b.s[0])])
    if len(b.s) > 1 and isinstance(b.s[1], Imm) and b.s[1].value != 15:
        keep = np.uint32(sum(0xFF << (8 * i) for i in range(4) if not b.s[1].value >> i & 1))
        d = b.dst()
        get = b.u(b.s[0])
        return lambda v, m: put(v.U[d], (v.U[d] & keep) | (get(v) & ~keep), m)
    return b.emit(same, [b.u(b.s[0])])


def _choose(p: Arr, x: Arr, y: Arr) -> Arr:
    return np.where(p, x, y)


def sel(b: Build) -> InstFn:
    """a where the predicate is true, else b."""
    b.only("64")
    if "64" in b.mods:
        return b.emit_q(_choose, [b.psrc(0, True), b.q(b.s[0]), b.q(b.s[1])])
    return b.emit(_choose, [b.psrc(0, True), b.u(b.s[0]), b.u(b.s[1])])


# --- predicates and registers ----------------------------------------------------------------------------------


def _byte_shift(b: Build) -> int:
    for op in (*b.d, *b.s):
        mod = op.mod if isinstance(op, (Reg, Imm)) else ""
        if mod in ("B1", "B2", "B3"):
            return 8 * int(mod[1])
    return 8 * int(b.pick("B1", "B2", "B3", default="B0")[1])


def p2r(b: Build) -> InstFn:
    """Write predicates into the bits of a register that the mask names; the other bits come from a."""
    values = [o for o in b.s if isinstance(o, (Reg, Imm))]
    if len(values) < 2:
        raise b.refuse()
    shift = u32(_byte_shift(b))
    ga, gm = b.u(values[0]), b.u(values[1])
    first = UP0 if b.inst.op == "UP2UR" else 0
    wanted = values[1].value if isinstance(values[1], Imm) else -1
    b.reads.extend(("P", first + i) for i in range(7) if wanted >> i & 1)  # predicates outside the mask are not read
    d = b.dst()

    def run(v: View, m: Arr | None) -> None:
        word = np.zeros(v.n, u32)
        for i in range(7):
            word |= v.P[first + i].astype(u32) << u32(i)
        mask = gm(v)
        put(v.U[d], (ga(v) & ~(mask << shift)) | ((word & mask) << shift), m)

    return run


def r2p(b: Build) -> InstFn:
    """Write bits of a register into the predicates that the mask names."""
    values = [o for o in b.s if isinstance(o, (Reg, Imm))]
    if len(values) < 2 or not isinstance(values[1], Imm):
        raise b.refuse()
    mask = values[1].value
    shift = _byte_shift(b)
    get = b.u(values[0])
    chosen = [i for i in range(7) if mask >> i & 1]
    first = UP0 if b.inst.op == "UR2UP" else 0
    b.writes.extend(("P", first + i) for i in chosen)

    def run(v: View, m: Arr | None) -> None:
        word = get(v) >> u32(shift)
        for i in chosen:
            put(v.P[first + i], (word & u32(1 << i)) != 0, m)

    return run


def nop(b: Build) -> InstFn:
    """Nothing."""
    return lambda v, m: None


OPS: Final[dict[str, Builder]] = {
    "LOP3": lop3, "ULOP3": lop3, "PLOP3": plop3, "UPLOP3": plop3, "SHF": shf, "USHF": shf, "PRMT": prmt, "UPRMT": prmt,
    "SGXT": sgxt, "USGXT": sgxt, "BMSK": bmsk, "UBMSK": bmsk, "POPC": popc, "UPOPC": popc, "FLO": flo, "UFLO": flo,
    "BREV": brev, "UBREV": brev, "MOV": mov, "UMOV": mov, "SEL": sel, "USEL": sel, "P2R": p2r, "UP2UR": p2r, "R2P": r2p,
    "UR2UP": r2p, "NOP": nop,
}  # fmt: skip
