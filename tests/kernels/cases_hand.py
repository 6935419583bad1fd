"""Launches and expected results of the kernels written in PTX: forms that nvcc does not emit.

The same interface as :mod:`tests.kernels.cases`. Every reference is plain Python on one element, written from the PTX
manual's description of the instruction.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from tests.kernels import exact
from tests.kernels.cases import SHAPES_1D, line
from tests.kernels.corpus_arith import one_dim
from tests.kernels.model import Arg, Array, Buffer, Expected, KernelSpec, Launch, Scalar, check, expected, inp, out, s32

__all__ = ["CASES", "Buffer", "Expected", "KernelSpec", "Launch", "Scalar", "check"]

Generator = np.random.Generator
M32 = 0xFFFFFFFF
M64 = 0xFFFFFFFFFFFFFFFF


def signed(value: int, bits: int = 32) -> int:
    """The two's complement reading of the low bits."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def words(g: Generator, n: int) -> Array:
    """uint32 over the whole range with edges."""
    return exact.ints(g, n, edges=True).view(np.uint32)


def packed(rows: list[bytes]) -> Expected:
    """Bytes of records, compared as 32-bit words (every record is a multiple of four)."""
    return expected(np.frombuffer(b"".join(rows), np.uint32))


def _shapes(
    name: str, g: Generator, body: Callable[[Generator, int, int], tuple[dict[str, Array], Expected]]
) -> list[Launch]:
    launches = []
    for blocks, threads, n in SHAPES_1D:
        inputs, want = body(g, n, threads)
        launches.append(one_dim(name, n, (blocks, threads), inputs, {"out": want}))
    return launches


def brx_switch(g: Generator) -> list[Launch]:
    """The jump table; 6 and 7 go past it."""

    def one(a: int) -> int:
        k = a & 7
        table = (a + 1000, a * 3, (~a & M32) ^ 0x55, M32 ^ 0x55, a >> 4, a.bit_count())
        return table[k] & M32 if k < 6 else M32

    def body(g: Generator, n: int, _: int) -> tuple[dict[str, Array], Expected]:
        x = words(g, n)
        return {"x": x}, expected(exact.wrap([one(a) for a in x.tolist()], np.uint32))

    return _shapes("brx_switch", g, body)


def _setp_one(a: int, b: int) -> int:
    f, h = struct.unpack("<ff", struct.pack("<II", a, b))
    less = signed(a) < signed(b)
    bits = 1 * less + 2 * (not less)
    q = not less
    p, q = a > b and q, not a > b and q
    bits += 4 * p + 8 * q
    unordered = f != f or h != h
    p = (f < h or unordered) or not p
    bits += 16 * p
    p = not unordered
    bits += 32 * p
    p = unordered ^ p
    bits += 64 * p + 128 * less + 256 * (f >= h or unordered)
    bits += 512 * (f == f and q)
    bits += 1024 if signed(a) >= 0 else 2048
    return int(bits + (4096 if h >= 0 else 8192))


def setp_forms(g: Generator) -> list[Launch]:
    """Predicates as bits.  slct with a NaN takes the second value."""

    def body(g: Generator, n: int, _: int) -> tuple[dict[str, Array], Expected]:
        x = np.where(g.random(n) < 0.5, words(g, n), exact.floats(g, n, edges=True).view(np.uint32)).astype(np.uint32)
        y = np.where(g.random(n) < 0.3, x, exact.floats(g, n, edges=True).view(np.uint32)).astype(np.uint32)
        pairs = zip(x.tolist(), y.tolist(), strict=True)
        return {"x": x, "y": y}, expected(np.array([_setp_one(a, b) for a, b in pairs], np.uint32))

    return _shapes("setp_forms", g, body)


def carry(g: Generator) -> list[Launch]:
    """128-bit sum and difference, and the product of the low halves."""

    def body(g: Generator, n: int, _: int) -> tuple[dict[str, Array], Expected]:
        x, y = words(g, 4 * n), words(g, 4 * n)
        x[g.random(4 * n) < 0.3] = M32
        rows = []
        for i in range(n):
            a, b = (int.from_bytes(v[4 * i : 4 * i + 4].tobytes(), "little") for v in (x, y))
            for value in (a + b, a - b, (a & M64) * (b & M64)):
                rows.append((value & ((1 << 128) - 1)).to_bytes(16, "little"))
        return {"x": x, "y": y}, packed(rows)

    return _shapes("carry", g, body)


def bfe(a: int, pos: int, size: int, width: int, is_signed: bool) -> int:
    """Bit field extract: bits past the top repeat the sign bit of the field (0 when unsigned or empty)."""
    top = width - 1
    sign = (a >> min(pos + size - 1, top)) & 1 if is_signed and size else 0
    value = 0
    for i in range(width):
        bit = (a >> (pos + i)) & 1 if i < size and pos + i <= top else sign
        value |= bit << i
    return value


def bfi(a: int, b: int, pos: int, size: int, width: int) -> int:
    """Bit field insert of a into b."""
    for i in range(size):
        if pos + i < width:
            b = (b & ~(1 << (pos + i))) | (((a >> i) & 1) << (pos + i))
    return b


def prmt(a: int, b: int, lanes: list[int]) -> int:
    """Byte permute; a lane's bit 3 replicates the sign of the chosen byte."""
    pool = a | b << 32
    value = 0
    for k, lane in enumerate(lanes):
        byte = (pool >> (8 * (lane & 7))) & 255
        value |= (255 * (byte >> 7) if lane & 8 else byte) << (8 * k)
    return value


def _bit_ops_one(a: int, b: int) -> bytes:
    pos, size = b & 63, (b >> 8) & 63
    low, n = pos & 3, pos & 3
    find_u = a.bit_length() - 1
    find_s = (~a & M32 if a >> 31 else a).bit_length() - 1
    modes = (
        [(n + k) & 7 for k in range(4)],  # f4e
        [(n - k) & 7 for k in range(4)],  # b4e
        [n] * 4,  # rc8
        [max(k, low) for k in range(4)],  # ecl
        [min(k, low) for k in range(4)],  # ecr
        [2 * (low & 1), 2 * (low & 1) + 1] * 2,  # rc16
    )
    wide = a | b << 32
    row = [
        bfe(a, pos, size, 32, False), bfe(a, pos, size, 32, True), bfi(b, a, pos, size, 32), bfe(a, 5, 9, 32, True),
        find_u, find_s, 31 - find_s if find_s >= 0 else -1, a ^ b ^ pos, (a & b) | (a & size) | (b & size),
        prmt(a, b, [0x8, 0xA, 0xF, 0x3]), *(prmt(a, b, mode) for mode in modes), int(a == 0),
    ]  # fmt: skip
    blob = struct.pack("<17I", *(value & M32 for value in row)) + b"\xa5" * 4
    return blob + struct.pack("<QQ", bfe(wide, pos, size, 64, True), bfi(wide, wide, pos, size, 64))


def bit_ops(g: Generator) -> list[Launch]:
    """Bit instructions; four bytes of each record stay as they were."""

    def body(g: Generator, n: int, _: int) -> tuple[dict[str, Array], Expected]:
        x, y = words(g, n), words(g, n)
        return {"x": x, "y": y}, packed([_bit_ops_one(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)])

    return _shapes("bit_ops", g, body)


def _clamp(value: int, low: int, high: int) -> int:
    return max(low, min(high, value))


def _int_forms_one(a: int, b: int, tid: int) -> bytes:
    sa, sb = signed(a), signed(b)
    h = (a & 0xFFFF, a >> 16)
    k = (b & 0xFFFF, b >> 16)
    sh, sk = [signed(v, 16) for v in h], [signed(v, 16) for v in k]
    a24, b24 = signed(a, 24), signed(b, 24)
    u24 = (a & 0xFFFFFF) * (b & 0xFFFFFF)
    low, high = -(2**31), 2**31 - 1
    narrow = [
        sh[0] * sk[1] >> 16, sh[1] * sk[0] + sh[0], min(sh[0], sk[0]), max(h[1], k[1]), abs(sk[1]), sh[0] >> 3,
        h[1] << tid if tid < 16 else 0, sh[0] - sk[1],
    ]  # fmt: skip
    row = [
        _clamp(sa + sb, low, high), _clamp(sa - sb, low, high), abs(sa - sb) + 17, abs(a - b) + a, a24 * b24, u24 >> 16,
        u24 + b, (a24 * b24 >> 16) + sa, _clamp((sa * sb >> 32) + sa, low, high), (a * b >> 32) + b,
        sh[0] * sk[0], h[1] * k[1] + a,
    ]  # fmt: skip
    blob = struct.pack("<12I", *(value & M32 for value in row)) + struct.pack("<8H", *(v & 0xFFFF for v in narrow))
    return blob + struct.pack("<Q", (sa * sb + 0x8000000000000001) & M64)


def int_forms(g: Generator) -> list[Launch]:
    """Integer forms beyond plain C."""

    def body(g: Generator, n: int, threads: int) -> tuple[dict[str, Array], Expected]:
        x, y = words(g, n), words(g, n)
        pairs = zip(x.tolist(), y.tolist(), strict=True)
        return {"x": x, "y": y}, packed([_int_forms_one(a, b, i % threads) for i, (a, b) in enumerate(pairs)])

    return _shapes("int_forms", g, body)


# --- directed rounding ------------------------------------------------------------------------------------------------

#: precision, exponent of the smallest unit, largest exponent
FORMATS = {"float32": (24, -149, 127), "float64": (53, -1074, 1023)}


def round_fraction(value: Fraction, dtype: str, mode: str, zero_sign: float = 1.0) -> float:
    """A rational rounded to a format: rn, rz, rm (down), rp (up)."""
    if value == 0:
        return 0.0 * zero_sign
    precision, low, top = FORMATS[dtype]
    size, negative = abs(value), value < 0
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - precision + 1, low)
    whole, rest = divmod(size, unit)
    up = mode == ("rm" if negative else "rp")
    if (up and rest) or (mode == "rn" and (rest * 2 > unit or (rest * 2 == unit and whole & 1))):
        whole += 1
    sign = -1.0 if negative else 1.0
    largest = (Fraction(2) ** precision - 1) * Fraction(2) ** (top - precision + 1)
    if whole * unit > largest:
        return sign * (float(largest) if mode == "rz" or not (up or mode == "rn") else float("inf"))
    return sign * float(whole * unit)


def _sum(x: float, y: float, dtype: str, mode: str) -> float:
    if not (np.isfinite(x) and np.isfinite(y)):
        return float(np.float64(x) + np.float64(y))
    both_negative = bool(np.signbit(x) and np.signbit(y))
    zero = -1.0 if both_negative or (mode == "rm" and not (_is_plus_zero(x) and _is_plus_zero(y))) else 1.0
    return round_fraction(Fraction(x) + Fraction(y), dtype, mode, zero)


def _is_plus_zero(x: float) -> bool:
    return x == 0 and not np.signbit(x)


def _product(x: float, y: float, dtype: str, mode: str) -> float:
    if not (np.isfinite(x) and np.isfinite(y)):
        return float(np.float64(x) * np.float64(y))
    sign = -1.0 if np.signbit(x) != np.signbit(y) else 1.0
    return round_fraction(Fraction(x) * Fraction(y), dtype, mode, sign)


def _fused(x: float, y: float, z: float, dtype: str, mode: str) -> float:
    if not all(np.isfinite(v) for v in (x, y, z)):
        product = np.float64(x) * np.float64(y) if not (np.isfinite(x) and np.isfinite(y)) else np.float64(0)
        return float(product + np.float64(z))
    value = Fraction(x) * Fraction(y) + Fraction(z)
    negative = bool(np.signbit(x) != np.signbit(y))
    if x != 0 and y != 0 and z != 0:
        zero = -1.0 if mode == "rm" else 1.0  # exact cancellation
    elif negative == bool(np.signbit(z)):
        zero = -1.0 if negative else 1.0
    else:
        zero = -1.0 if mode == "rm" else 1.0
    return round_fraction(value, dtype, mode, zero)


def _quotient(x: float, y: float, dtype: str, mode: str) -> float:
    if not (np.isfinite(x) and np.isfinite(y)) or y == 0:
        with np.errstate(all="ignore"):
            return float(np.float64(x) / np.float64(y))
    sign = -1.0 if np.signbit(x) != np.signbit(y) else 1.0
    return round_fraction(Fraction(x) / Fraction(y), dtype, mode, sign)


def _root(x: float, dtype: str, mode: str) -> float:
    if not np.isfinite(x) or x <= 0:
        with np.errstate(all="ignore"):
            return float(np.sqrt(np.float64(x)))
    value = Fraction(x)
    scale = 2**2400  # the root has far more bits than any format
    whole = math.isqrt(value.numerator * scale // value.denominator)
    sticky = 0 if Fraction(whole * whole, scale) == value else 1
    return round_fraction(Fraction(2 * whole + sticky, 2 * math.isqrt(scale)), dtype, mode)


#: The kernels' instructions in order.
ROUNDED = (
    *(("add", mode) for mode in ("rz", "rm", "rp")), ("sub", "rp"), *(("mul", mode) for mode in ("rz", "rm", "rp")),
    *(("fma", mode) for mode in ("rz", "rm", "rp")), *(("div", mode) for mode in ("rz", "rm", "rp")), ("rcp", "rz"),
    ("rcp", "rp"), ("sqrt", "rm"), ("sqrt", "rp"), ("sqrt", "rz"),
)  # fmt: skip


def _rounded(x: float, y: float, z: float, dtype: str) -> list[float]:
    table: dict[str, Callable[[str], float]] = {
        "add": lambda mode: _sum(x, y, dtype, mode),
        "sub": lambda mode: _sum(x, -y, dtype, mode),
        "mul": lambda mode: _product(x, y, dtype, mode),
        "fma": lambda mode: _fused(x, y, z, dtype, mode),
        "div": lambda mode: _quotient(x, y, dtype, mode),
        "rcp": lambda mode: _quotient(1.0, y, dtype, mode),
        "sqrt": lambda mode: _root(x, dtype, mode),
    }
    return [table[op](mode) for op, mode in ROUNDED]


def _rounding(name: str, g: Generator, dtype: str, make: Callable[..., Array]) -> list[Launch]:
    def body(g: Generator, n: int, _: int) -> tuple[dict[str, Array], Expected]:
        x, y, z = (make(g, n, edges=True) for _ in range(3))
        triples = zip(x.tolist(), y.tolist(), z.tolist(), strict=True)
        rows = [_rounded(*triple, dtype) for triple in triples]
        return {"x": x, "y": y, "z": z}, expected(np.array(rows, dtype).ravel())

    return [
        one_dim(name, n, (blocks, threads), inputs, {"out": want})
        for blocks, threads, n in ((1, 32, 0), (1, 32, 1), (2, 32, 45), (1, 96, 70))
        for inputs, want in [body(g, n, threads)]
    ]


def round_f32(g: Generator) -> list[Launch]:
    """Directed rounding in float."""
    return _rounding("round_f32", g, "float32", exact.floats)


def round_f64(g: Generator) -> list[Launch]:
    """Directed rounding in double."""
    return _rounding("round_f64", g, "float64", exact.doubles)


def ftz_sat(g: Generator) -> list[Launch]:
    """.ftz flushes inputs and results; .sat clamps to [0, 1], NaN to +0; copysign d, a, b is |b| with the sign of a;
    a zero counts as normal for testp."""

    def saturate(values: Array) -> Array:
        return np.where(values > 0, np.minimum(values, np.float32(1)), np.float32(0)).astype(np.float32)

    def body(g: Generator, n: int, _: int) -> tuple[dict[str, Array], Expected]:
        x, y = exact.floats(g, n, edges=True), exact.floats(g, n, edges=True)
        x = np.where(g.random(n) < 0.25, x * np.float32(2.0**-120), x).astype(np.float32)
        a, b = exact.ftz(x), exact.ftz(y)
        one = np.float32(1)
        tests = (
            (a == 0) * 1 + ((np.abs(x) < np.finfo(np.float32).tiny) & (x != 0)) * 2
            + np.isfinite(x) * 4 + np.isnan(y) * 8
            + np.isinf(y) * 16 + (np.isfinite(y) & ((np.abs(y) >= np.finfo(np.float32).tiny) | (y == 0))) * 32
        )  # fmt: skip
        parts = (
            exact.ftz(a + b), exact.ftz(a * b), exact.ftz(exact.fma(a, b, a)), saturate(x + y),
                saturate(exact.ftz(a * b)),
            saturate(exact.fma(x, y, y)), exact.ftz(a / b), exact.ftz(np.sqrt(a)), exact.ftz(one / b),
                exact.min_f32(a, b),
            exact.max_f32(a, b), np.abs(a), -b, tests.astype(np.uint32).view(np.float32), np.copysign(y, x),
        )  # fmt: skip
        want = expected(np.stack(parts, axis=1).astype(np.float32).ravel())
        mask = np.ones(len(want.values), np.bool_)
        for column, value in ((3, x + y), (4, exact.ftz(a * b)), (5, exact.fma(x, y, y))):
            # The manual does not say which zero a saturated -0 gives.
            mask[column : 15 * n : 15] = ~((value == 0) & np.signbit(value))
        for column, value in ((1, a * b), (2, exact.fma(a, b, a)), (6, a / b)):
            # The manual does not say whether a result that rounds up to the smallest normal number is flushed.
            mask[column : 15 * n : 15] &= np.abs(value) != np.finfo(np.float32).tiny
        return {"x": x, "y": y}, Expected(want.values, mask=mask)

    return _shapes("ftz_sat", g, body)


def _float_to_int(value: float, bits: int, is_signed: bool, mode: str) -> int:
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if is_signed else (0, (1 << bits) - 1)
    if value != value:
        return 0
    if abs(value) == float("inf"):
        return high if value > 0 else low
    rounded = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}[mode](value)
    return _clamp(int(rounded), low, high)


def _int_cvt_one(a: int, f: float) -> bytes:
    w, s, v = a & M32, signed(a), signed(a, 64)
    with np.errstate(all="ignore"):
        half_int = np.float64(s).astype(np.float16).tobytes()
        half = np.float32(f).astype(np.float16).astype(np.float32)
        integral = exact.ftz(np.rint(exact.ftz(half)))
    blob = struct.pack("<III", signed(w, 8) & M32, w & 255, signed(w, 16) & M32)
    blob += struct.pack(
        "<bBhHh",
        _clamp(s, -128, 127),
        _clamp(s, 0, 255),
        _clamp(w, 0, 32767),
        _clamp(v, 0, 65535),
        _clamp(v, -32768, 32767),
    )
    blob += struct.pack("<iIi", _clamp(v, -(2**31), 2**31 - 1), _clamp(v, 0, M32), _clamp(a, 0, 2**31 - 1))
    blob += struct.pack("<qqQ", s, signed(a, 8), max(v, 0))
    blob += struct.pack("<hH", _float_to_int(f, 16, True, "rni"), _float_to_int(f, 16, False, "rzi"))
    blob += struct.pack("<bB", _float_to_int(f, 8, True, "rmi"), _float_to_int(f, 8, False, "rpi")) + half_int
    return blob + half.tobytes() + integral.tobytes()


def int_cvt(g: Generator) -> list[Launch]:
    """Conversions to and between integers; NaN payloads of the two floats are not checked."""

    def body(g: Generator, n: int, _: int) -> tuple[dict[str, Array], Expected]:
        x = exact.longs(g, n)
        f = exact.floats(g, n, edges=True, scale=200.0)
        f = np.where(g.random(n) < 0.2, g.integers(-300, 300, n) + 0.5, f).astype(np.float32)
        want = packed([_int_cvt_one(a, v) for a, v in zip(x.tolist(), f.tolist(), strict=True)])
        mask = np.ones(len(want.values), np.bool_)
        for column in (16, 17):
            mask[column : 18 * n : 18] = ~np.isnan(f)
        return {"x": x, "f": f}, Expected(want.values, mask=mask)

    return _shapes("int_cvt", g, body)


def func_params(g: Generator) -> list[Launch]:
    """Calls: a record in, a record out, nested calls."""

    def inner(v: int, k: int) -> int:
        result = 0
        for _ in range(k):
            result = (result * 31 + v) & M32
            v >>= 1
        return result

    def one(a: int) -> bytes:
        second = 77 if a & 1 else inner(~a & M32, 7) ^ inner(a, 5)
        return struct.pack("<IIQ", (a + 0x1234) & M32, second, a * a & M64)

    def body(g: Generator, n: int, _: int) -> tuple[dict[str, Array], Expected]:
        x = words(g, n)
        return {"x": x}, packed([one(a) for a in x.tolist()])

    return _shapes("func_params", g, body)


def generic_mem(g: Generator) -> list[Launch]:
    """The space of a generic address: 1 shared, 2 local, 4 global."""

    def body(g: Generator, n: int, threads: int) -> tuple[dict[str, Array], Expected]:
        x = words(g, n)
        rows = []
        for i, a in enumerate(x.tolist()):
            space = {1: 1, 2: 2}.get(a & 3, 4)
            rows.append(struct.pack("<IIII", a, (a >> 8) & 255, space | (i << 8), i % threads))
        return {"x": x}, packed(rows)

    return _shapes("generic_mem", g, body)


def ordered_mem(g: Generator) -> list[Launch]:
    """Ordered accesses and atomics: sums that are the same in every order."""
    launches = []
    for blocks, threads, n in SHAPES_1D:
        x = words(g, n)
        a = [((2 * v) & M32) ^ v for v in x.tolist()]
        small = sum(v & 1023 for v in a)
        cells = bytearray(
            struct.pack("<QQQd", 5, 9, 1 << 40, 0.5)
            + struct.pack("<fI", 2.0, 0xABCDEF01)
            + struct.pack("<QQII", 1, 7, 3, 2)
        )
        before = np.frombuffer(bytes(cells), np.uint32).copy()
        merged = 1 << 40
        for v in a:
            merged |= v
        tick = 2
        for _ in range(n):
            tick = 0 if tick >= 6 else tick + 1
        after = struct.pack("<QQQd", (5 + sum(a)) & M64, max([9, *a]), merged, 0.5 + small)
        after += struct.pack("<fI", 2.0 + small, 0xABCDEF01)
        after += struct.pack("<QQII", 12345 if n else 1, 8 if n else 7, 3 + n, tick)
        args: list[Arg] = [
            inp("x", x),
            out("out", np.full(2 * n, 0xA5A5A5A5, np.uint32)),
            out("cells", before),
            s32("n", n),
        ]
        wants = {
            "out": expected(np.repeat(np.array(a, np.uint32), 2)),
            "cells": expected(np.frombuffer(after, np.uint32)),
        }
        launches.append(Launch("ordered_mem", f"n={n}", *line(blocks, threads), 0, args, expect=wants))
    return launches


def named_bars(g: Generator) -> list[Launch]:
    """Blocks of 64 threads, all of them working."""
    launches = []
    for blocks in (1, 2, 3):
        x = words(g, 64 * blocks)
        rows = x.reshape(blocks, 2, 32)
        product = rows[:, 0] * rows[:, 1]
        want = np.stack([product, product ^ rows[:, 1]], axis=1).ravel()
        launches.append(one_dim("named_bars", 64 * blocks, (blocks, 64), {"x": x}, {"out": expected(want)}))
    return launches


def redux_ops(g: Generator) -> list[Launch]:
    """Reductions of whole warps, and of the lanes whose number is a multiple of four."""
    launches = []
    for blocks, threads, n in ((1, 32, 32), (2, 64, 96), (1, 128, 128)):
        x = words(g, n)
        rows = []
        for start in range(0, n, 32):
            lanes = x[start : start + 32].tolist()
            whole = [signed(v) for v in lanes]
            ones, zeros, parity = 0, M32, 0
            for v in lanes:
                ones, zeros, parity = ones | v, zeros & v, parity ^ v
            row = [sum(whole), min(whole), max(whole), min(lanes), max(lanes), zeros, ones, parity]
            for lane in range(32):
                rows.append(struct.pack("<9I", *(v & M32 for v in row), sum(lanes[::4]) & M32 if lane % 4 == 0 else 0))
        launches.append(one_dim("redux_ops", n, (blocks, threads), {"x": x}, {"out": packed(rows)}))
    return launches


CASES: dict[str, KernelSpec] = {
    maker.__name__: KernelSpec(maker.__name__, maker, "hand", 80 if maker is redux_ops else 75)
    for maker in (
        brx_switch, setp_forms, carry, bit_ops, int_forms, round_f32, round_f64, ftz_sat, int_cvt, func_params,
            generic_mem,
        ordered_mem, named_bars, redux_ops,
    )
}  # fmt: skip
