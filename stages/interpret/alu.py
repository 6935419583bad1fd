"""Integers, bits, logic, selection: see :mod:`stages.interpret.rows` for the conventions. Each row follows the PTX
ISA manual."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from ir_format.ptx import Imm, PtxInst
from stages.interpret.floats import F32, flush, is_nan
from stages.interpret.rows import BITS, U64, Arr, Fn, Maker, bits_of, elementwise, mask, row, signed, typed, unsigned

INTEGER: Final = frozenset(["u16", "s16", "u32", "s32", "u64", "s64", "u16x2", "s16x2", "u8x4", "s8x4"])
#: Makers for mnemonics that also have float forms; :mod:`stages.interpret.fpu` chooses.
INT: Final[dict[str, Maker]] = {}


def _int(*names: str) -> Callable[[Maker], Maker]:
    def enter(maker: Maker) -> Maker:
        for name in names:
            INT[name] = maker
        return maker

    return enter


def clamp(x: Arr, bits: int) -> Arr:
    """An int64 clamped to a signed width, as bits."""
    top = 1 << bits - 1
    return bits_of(np.clip(x, -top, top - 1), bits)


def high64(a: Arr, b: Arr) -> Arr:
    """High half of the unsigned 128-bit product."""
    low = mask(32)
    al, ah, bl, bh = a & low, a >> U64(32), b & low, b >> U64(32)
    middle = ((al * bl) >> U64(32)) + ((al * bh) & low) + ((ah * bl) & low)
    return np.asarray(ah * bh + ((al * bh) >> U64(32)) + ((ah * bl) >> U64(32)) + (middle >> U64(32)))


def mul_high(a: Arr, b: Arr, type_: str) -> Arr:
    """High half of the product."""
    bits = BITS[type_]
    if bits < 64:
        product = typed(a, type_) * typed(b, type_)
        return bits_of(product >> product.dtype.type(bits), bits)
    high = high64(a, b)
    if type_[0] == "s":
        high = high - np.where(signed(a, 64) < 0, b, U64(0)) - np.where(signed(b, 64) < 0, a, U64(0))
    return high


@_int("add", "sub")
def _add(inst: PtxInst) -> Fn:
    def one(type_: str) -> Fn:
        bits = BITS[type_]
        minus = inst.op == "sub"
        if inst.has("sat") and type_[0] == "u":
            top = (1 << bits) - 1

            def clamped(a: Arr, b: Arr) -> Arr:
                x, y = signed(unsigned(a, bits), 64), signed(unsigned(b, bits), 64)
                return bits_of(np.clip(x - y if minus else x + y, 0, top), bits)

            return clamped
        if inst.has("sat"):
            return lambda a, b: clamp(
                signed(a, bits) - signed(b, bits) if minus else signed(a, bits) + signed(b, bits), bits
            )
        return (lambda a, b: unsigned(a - b, bits)) if minus else (lambda a, b: unsigned(a + b, bits))

    return elementwise(inst.types[0], one)


@row("clmad")
def _clmad(inst: PtxInst) -> Fn:
    """The carry-less product of 127 bits, of which the instruction takes one half."""

    def product(a: Arr, b: Arr, c: Arr) -> Arr:
        low, high = np.zeros_like(a | b), np.zeros_like(a | b)
        for i in range(64):
            on = U64(0) - ((b >> U64(i)) & U64(1))
            low = low ^ ((a << U64(i)) & on)
            high = high ^ ((a >> U64(64 - i)) & on) if i else high
        return (high if inst.has("hi") else low) ^ c

    return product


@_int("mul")
def _mul(inst: PtxInst) -> Fn:
    type_ = inst.types[0]
    bits = BITS[type_]
    if inst.has("hi"):
        return lambda a, b: mul_high(a, b, type_)
    if inst.has("wide"):
        return lambda a, b: bits_of(typed(a, type_) * typed(b, type_), 2 * bits)
    return lambda a, b: unsigned(a * b, bits)


@_int("mad")
def _mad(inst: PtxInst) -> Fn:
    type_ = inst.types[0]
    bits = BITS[type_] * (2 if inst.has("wide") else 1)
    product = _mul(inst)
    if inst.has("sat"):
        return lambda a, b, c: clamp(signed(product(a, b), bits) + signed(c, bits), bits)
    return lambda a, b, c: unsigned(product(a, b) + c, bits)


@row("mul24", "mad24")
def _mul24(inst: PtxInst) -> Fn:
    type_, hi, sat = inst.types[0], inst.has("hi"), inst.has("sat")

    def cut(x: Arr) -> Arr:
        return signed(x, 24) if type_[0] == "s" else unsigned(x, 24)

    def product(a: Arr, b: Arr) -> Arr:
        p = cut(a) * cut(b)
        return bits_of(p >> p.dtype.type(16) if hi else p, 32)

    if inst.op == "mul24":
        return product
    if sat:
        return lambda a, b, c: clamp(signed(product(a, b), 32) + signed(c, 32), 32)
    return lambda a, b, c: unsigned(product(a, b) + c, 32)


@row("sad")
def _sad(inst: PtxInst) -> Fn:
    type_ = inst.types[0]
    bits = BITS[type_]

    def sad(a: Arr, b: Arr, c: Arr) -> Arr:
        x, y = typed(a, type_), typed(b, type_)
        return unsigned(np.where(x < y, bits_of(y - x, 64), bits_of(x - y, 64)) + c, bits)

    return sad


@_int("div", "rem")
def _div(inst: PtxInst) -> Fn:
    type_ = inst.types[0]
    bits = BITS[type_]

    def divide(a: Arr, b: Arr) -> Arr:
        x, y = np.broadcast_arrays(typed(a, type_), typed(b, type_))
        # unspecified by the manual; all ones is what ptxas's code gives, for remainders too (measured in 16, 32 and 64
        # bits)
        zero = y == 0
        negative = (x < 0) != (y < 0) if type_[0] == "s" else np.zeros(x.shape, np.bool_)
        mx, my = (np.abs(x).view(U64), np.abs(y).view(U64)) if type_[0] == "s" else (x, y)
        q = mx // np.where(zero, U64(1), my)
        q = np.where(negative, U64(0) - q, q)
        if inst.op == "div":
            return unsigned(np.where(zero, mask(bits), q), bits)
        return unsigned(np.where(zero, mask(bits), a - q * b), bits)

    return divide


@_int("abs")
def _abs(inst: PtxInst) -> Fn:
    bits = BITS[inst.types[0]]
    return lambda a: bits_of(np.abs(signed(a, bits)), bits)


@_int("neg")
def _neg(inst: PtxInst) -> Fn:
    return elementwise(inst.types[0], lambda t: lambda a: unsigned(U64(0) - a, BITS[t]))


@_int("min", "max")
def _min(inst: PtxInst) -> Fn:
    pick: Any = np.minimum if inst.op == "min" else np.maximum
    relu = inst.has("relu")

    def one(type_: str) -> Fn:
        def least(a: Arr, b: Arr) -> Arr:
            r = pick(typed(a, type_), typed(b, type_))
            return bits_of(np.maximum(r, 0) if relu else r, BITS[type_])

        return least

    return elementwise(inst.types[0], one)


# --------------------------------------------------------------------------- bits


def popcount(x: Arr) -> Arr:
    """The number of set bits of each uint64."""
    x = x - ((x >> U64(1)) & U64(0x5555555555555555))
    x = (x & U64(0x3333333333333333)) + ((x >> U64(2)) & U64(0x3333333333333333))
    x = (x + (x >> U64(4))) & U64(0x0F0F0F0F0F0F0F0F)
    return (x * U64(0x0101010101010101)) >> U64(56)


def bit_length(x: Arr) -> Arr:
    """Position of the highest set bit plus one; 0 for 0."""
    for k in (1, 2, 4, 8, 16, 32):
        x = x | (x >> U64(k))
    return popcount(x)


@row("popc")
def _popc(inst: PtxInst) -> Fn:
    return lambda a: popcount(unsigned(a, BITS[inst.types[0]]))


@row("clz")
def _clz(inst: PtxInst) -> Fn:
    bits = BITS[inst.types[0]]
    return lambda a: U64(bits) - bit_length(unsigned(a, bits))


@row("bfind")
def _bfind(inst: PtxInst) -> Fn:
    type_ = inst.types[0]
    bits, shift = BITS[type_], inst.has("shiftamt")

    def find(a: Arr) -> Arr:
        x = unsigned(a, bits)
        if type_[0] == "s":
            x = unsigned(np.where(signed(a, bits) < 0, ~a, a), bits)
        n = bit_length(x)
        return np.where(n == 0, mask(32), U64(bits) - n if shift else n - U64(1))

    return find


def reverse(x: Arr, bits: int) -> Arr:
    """Bits in reverse order."""
    out = np.zeros_like(x)
    for k in range(bits):
        out |= ((x >> U64(k)) & U64(1)) << U64(bits - 1 - k)
    return out


@row("brev")
def _brev(inst: PtxInst) -> Fn:
    return lambda a: reverse(np.asarray(a), BITS[inst.types[0]])


@row("fns")
def _fns(inst: PtxInst) -> Fn:
    def one(word: int, base: int, offset: int) -> int:
        if offset == 0:
            return base if word >> base & 1 else 0xFFFFFFFF
        step = 1 if offset > 0 else -1
        found, at = 0, base
        while 0 <= at < 32:
            if word >> at & 1:
                found += 1
                if found == abs(offset):
                    return at
            at += step
        return 0xFFFFFFFF

    def find(a: Arr, b: Arr, c: Arr) -> Arr:
        x, y, z = np.broadcast_arrays(unsigned(a, 32), unsigned(b, 32) & U64(31), signed(c, 32))
        return np.array([one(int(p), int(q), int(r)) for p, q, r in zip(x, y, z, strict=True)], U64)

    return find


def shift_left(x: Arr, n: Arr) -> Arr:
    """x << n with 0 for n of 64 or more."""
    return np.where(n > U64(63), U64(0), x << np.minimum(n, U64(63)))


def ones(n: Arr) -> Arr:
    """The lowest n bits set."""
    return shift_left(np.ones_like(n), n) - U64(1)


@row("bfe")
def _bfe(inst: PtxInst) -> Fn:
    type_ = inst.types[0]
    bits = BITS[type_]

    def extract(a: Arr, b: Arr, c: Arr) -> Arr:
        x, pos, n = np.broadcast_arrays(unsigned(a, bits), b & U64(0xFF), c & U64(0xFF))
        field = np.where(pos < bits, x >> np.minimum(pos, U64(63)), U64(0)) & ones(n)
        if type_[0] == "u":
            return unsigned(field, bits)
        sign = (x >> np.minimum(pos + n - U64(1), U64(bits - 1))) & U64(1)
        room = np.minimum(n, np.where(pos < bits, U64(bits) - np.minimum(pos, U64(bits)), U64(0)))
        fill = np.where((n > 0) & (sign != 0), ~ones(room), U64(0))
        return unsigned(field | fill, bits)

    return extract


@row("bfi")
def _bfi(inst: PtxInst) -> Fn:
    bits = BITS[inst.types[0]]

    def insert(a: Arr, b: Arr, c: Arr, d: Arr) -> Arr:
        x, y, pos, n = np.broadcast_arrays(a, b, c & U64(0xFF), d & U64(0xFF))
        where = shift_left(ones(n), pos)
        return unsigned((y & ~where) | (shift_left(x, pos) & where), bits)

    return insert


@row("szext")
def _szext(inst: PtxInst) -> Fn:
    is_signed, wrap = inst.types[0] == "s32", inst.has("wrap")

    def extend(a: Arr, b: Arr) -> Arr:
        n = unsigned(b, 32)
        n = n & U64(31) if wrap else np.minimum(n, U64(32))
        low = a & ones(n)
        sign = (n > 0) & (n < 32) & ((a >> np.where(n > 0, n - U64(1), U64(0))) & U64(1) != 0)
        return unsigned(np.where(sign, low | ~ones(n), low) if is_signed else low, 32)

    return extend


@row("bmsk")
def _bmsk(inst: PtxInst) -> Fn:
    def make(a: Arr, b: Arr) -> Arr:
        x, y = unsigned(a, 32), unsigned(b, 32)
        if inst.has("wrap"):
            x, y = x & U64(31), y & U64(31)
        x, y = np.minimum(x, U64(32)), np.minimum(y, U64(32))
        return unsigned(ones(y) << x, 32)

    return make


@row("dp4a", "dp2a")
def _dot(inst: PtxInst) -> Fn:
    ta, tb = inst.types
    count = 4 if inst.op == "dp4a" else 2
    width = 32 // count
    first = 2 if inst.has("hi") else 0

    def part(x: Arr, k: int, bits: int, type_: str) -> Arr:
        v = x >> U64(k * bits)
        return signed(v, bits) if type_[0] == "s" else unsigned(v, bits).astype(np.int64)

    def dot(a: Arr, b: Arr, c: Arr) -> Arr:
        total: Any = signed(c, 32)
        for k in range(count):
            total = total + part(a, k, width, ta) * part(b, k + first, 8, tb)
        return bits_of(total, 32)

    return dot


# --------------------------------------------------------------------------- logic, shifts, permutations


def _logic(fn: Any, inst: PtxInst) -> Fn:
    bits = BITS[inst.types[0]]
    return lambda *x: unsigned(fn(*x), bits)


row("and")(partial(_logic, np.bitwise_and))
row("or")(partial(_logic, np.bitwise_or))
row("xor")(partial(_logic, np.bitwise_xor))
row("not")(partial(_logic, np.bitwise_not))


@row("cnot")
def _cnot(inst: PtxInst) -> Fn:
    return lambda a: (unsigned(a, BITS[inst.types[0]]) == 0).astype(U64)


@row("shl", "shr")
def _shift(inst: PtxInst) -> Fn:
    type_ = inst.types[0]
    bits = BITS[type_]

    def shift(a: Arr, b: Arr) -> Arr:
        n = np.minimum(unsigned(b, 32), U64(bits))
        if inst.op == "shl":
            return unsigned(shift_left(a, n), bits)
        if type_[0] == "s":
            return bits_of(signed(a, bits) >> np.minimum(n, U64(63)).astype(np.int64), bits)
        return np.where(n > U64(63), U64(0), unsigned(a, bits) >> np.minimum(n, U64(63)))

    return shift


@row("shf")
def _funnel(inst: PtxInst) -> Fn:
    left, wrap = inst.mods[0] == "l", inst.has("wrap")

    def shift(a: Arr, b: Arr, c: Arr) -> Arr:
        n = unsigned(c, 32)
        n = n & U64(31) if wrap else np.minimum(n, U64(32))
        both = (unsigned(b, 32) << U64(32)) | unsigned(a, 32)
        return unsigned((both << n) >> U64(32) if left else both >> n, 32)

    return shift


# Selectors of the special modes of prmt by the low two bits of c: one nibble per result byte, lowest first.
_PRMT: Final = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}


@row("prmt")
def _prmt(inst: PtxInst) -> Fn:
    mode = next((m for m in inst.mods if m in _PRMT), None)
    table = np.array(_PRMT[mode], U64) if mode else None

    def permute(a: Arr, b: Arr, c: Arr) -> Arr:
        both = (unsigned(b, 32) << U64(32)) | unsigned(a, 32)
        select = table[(c & U64(3)).astype(np.int64)] if table is not None else c
        out: Any = U64(0)
        for k in range(4):
            s = (select >> U64(4 * k)) & U64(0xF)
            byte = (both >> ((s & U64(7)) * U64(8))) & U64(0xFF)
            byte = np.where(s & U64(8) != 0, np.where(byte & U64(0x80) != 0, U64(0xFF), U64(0)), byte)
            out = out | (byte << U64(8 * k))
        return np.asarray(out)

    return permute


@row("lop3")
def _lop3(inst: PtxInst) -> Fn:
    lut = inst.operands[4]
    assert isinstance(lut, Imm)
    table = lut.value

    def logic(a: Arr, b: Arr, c: Arr, _lut: Arr, *q: Arr) -> Any:
        out: Any = U64(0)
        for k in range(8):
            if table >> k & 1:
                out = out | ((a if k & 4 else ~a) & (b if k & 2 else ~b) & (c if k & 1 else ~c))
        d = unsigned(np.broadcast_to(np.asarray(out), np.broadcast_shapes(a.shape, b.shape, c.shape)), 32)
        if not q:
            return d
        nonzero = (d != 0).astype(U64)
        return d, (nonzero & q[0] if inst.has("and") else nonzero | q[0])

    return logic


@row("selp")
def _selp(inst: PtxInst) -> Fn:
    bits = BITS[inst.types[0]]
    return lambda a, b, p: unsigned(np.asarray(np.where(p != 0, a, b)), bits)


@row("slct")
def _slct(inst: PtxInst) -> Fn:
    bits = BITS[inst.types[0]]
    if inst.types[1] == "s32":
        return lambda a, b, c: unsigned(np.asarray(np.where(signed(c, 32) >= 0, a, b)), bits)
    ftz = inst.has("ftz")

    def select(a: Arr, b: Arr, c: Arr) -> Arr:
        x = unsigned(c, 32)
        x = flush(x, F32) if ftz else x
        first = ~is_nan(x, F32) & ((x & U64(F32.sign) == 0) | (x == U64(F32.sign)))
        return unsigned(np.where(first, a, b), bits)

    return select
