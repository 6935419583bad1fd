"""Launches and expected results of hand-written kernels for matrix, asynchronous, cluster and small-float instructions.

The same interface as :mod:`tests.kernels.cases`; fragment layouts are those of the PTX manual's chapter on warp-level
matrix instructions. Float products use small integers, so that the order of additions does not change a sum.
"""

from __future__ import annotations

import struct
from fractions import Fraction

import numpy as np

from tests.kernels import exact
from tests.kernels.cases import SHAPES_1D
from tests.kernels.cases_hand import packed
from tests.kernels.corpus_arith import one_dim
from tests.kernels.model import Array, Buffer, Expected, KernelSpec, Launch, Scalar, check, expected

__all__ = ["CASES", "Buffer", "Expected", "KernelSpec", "Launch", "Scalar", "check"]

Generator = np.random.Generator

#: Tiles of the launches: one block each, and one launch with a block too many.
TILES = ((1, 1), (3, 3), (3, 2))


def nibbles(values: Array, signed: bool) -> Array:
    """Bytes as twice as many four-bit numbers, low half first."""
    both = np.stack([values & 15, values >> 4], axis=-1).reshape(*values.shape[:-1], -1).astype(np.int64)
    return np.where(both >= 8, both - 16, both) if signed else both


def bits(values: Array) -> Array:
    """Bytes as eight times as many bits."""
    return np.unpackbits(values, axis=-1, bitorder="little").astype(np.int64)


def mma_int(g: Generator) -> list[Launch]:
    """D = A * B' + C for eight kinds of small integers; D wraps, or saturates with .satfinite."""
    launches = []
    for blocks, n in TILES:
        a, b = (g.integers(0, 256, (n, rows, 32), dtype=np.uint8) for rows in (16, 8))
        acc = g.integers(-1000, 1000, (n, 16, 8), dtype=np.int32)
        acc[:, ::5] = np.int32(2**31 - 50)
        acc[:, 1::5] = np.int32(-(2**31) + 50)
        sa, sb, ua, ub = (v.astype(np.int64) for v in (a.view(np.int8), b.view(np.int8), a, b))
        s4, u4 = (nibbles(a, True), nibbles(b, True)), nibbles(a, False)
        a1, b1 = bits(a), bits(b)

        def product(left: Array, right: Array) -> Array:
            return np.asarray(np.einsum("tik,tjk->tij", left, right))

        kinds = [
            product(sa, sb), product(ua, ub), product(ua, sb), product(sa, sb), product(*s4), product(u4, s4[1]),
            product(a1, 1 - b1) + product(1 - a1, b1), product(a1, b1),
        ]  # fmt: skip
        sums = np.stack(kinds, axis=1) + acc[:, None].astype(np.int64)
        sums[:, 3] = np.clip(sums[:, 3], -(2**31), 2**31 - 1)
        want = sums.astype(np.int32).ravel()
        inputs: dict[str, Array] = {"x": a.ravel(), "y": b.ravel(), "acc": acc.ravel()}
        launches.append(one_dim("mma_int", n, (blocks, 32), inputs, {"out": expected(want)}))
    return launches


def bf16_bits(values: Array) -> Array:
    """The upper halves of floats that bfloat16 represents exactly."""
    return (values.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)


def mma_float(g: Generator) -> list[Launch]:
    """Half (float and half results, and a chained k = 8), bfloat16, tf32 and double products."""
    launches = []
    for blocks, n in TILES:
        half, brain = ([g.integers(-8, 9, (n, rows, 16)).astype(np.float64) for rows in (16, 8)] for _ in range(2))
        tf = [g.integers(-500, 500, (n, rows, 8)).astype(np.float64) for rows in (16, 8)]
        double = [g.integers(-(2**20), 2**20, (n, 8, 4)).astype(np.float64) for _ in range(2)]
        acc = g.integers(-100, 100, (n, 16, 8)).astype(np.float64)

        def product(left: Array, right: Array) -> Array:
            return np.asarray(np.einsum("tik,tjk->tij", left, right))

        first = product(*half) + acc
        packed_half = np.full((n, 16, 4, 2), 0xA5A5A5A5, np.uint32)  # the second word of each pair is not written
        packed_half[..., 0] = product(*half).astype(np.float16).view(np.uint32).reshape(n, 16, 4)
        kinds = [
            first.astype(np.float32).view(np.uint32), packed_half.reshape(n, 16, 8),
            (first + product(half[0][..., :8], half[1][..., :8])).astype(np.float32).view(np.uint32),
            (product(*brain) + acc).astype(np.float32).view(np.uint32),
            (product(*tf) + acc).astype(np.float32).view(np.uint32),
        ]  # fmt: skip
        start = np.tile(np.array([1.0, 2.0]), 4)
        inputs: dict[str, Array] = {
            **{name: v.astype(np.float16).ravel() for name, v in zip(("xh", "yh"), half, strict=True)},
            **{name: bf16_bits(v).ravel() for name, v in zip(("xb", "yb"), brain, strict=True)},
            **{name: v.astype(np.float32).ravel() for name, v in zip(("xt", "yt"), tf, strict=True)},
            **{name: v.ravel() for name, v in zip(("xd", "yd"), double, strict=True)},
            "acc": acc.astype(np.float32).ravel(),
        }
        wants = {"out": expected(np.stack(kinds, axis=1).ravel()), "outd": expected((product(*double) + start).ravel())}
        launches.append(one_dim("mma_float", n, (blocks, 32), inputs, wants))
    return launches


def _fragment(matrix: Array) -> Array:
    """The 32 words of an 8 x 8 matrix of 16-bit elements: lane l has row l / 4, columns 2 (l % 4) and the next."""
    return np.ascontiguousarray(matrix).view(np.uint32).ravel()


def matrix_moves(g: Generator) -> list[Launch]:
    """ldmatrix, plain and transposed, movmatrix, and the form of one matrix."""
    launches = []
    for blocks, n in TILES:
        x = g.integers(0, 65536, (n, 4, 8, 8), dtype=np.uint16)
        rows = []
        for tile in x:
            plain = [_fragment(m) for m in tile]
            turned = [_fragment(m.T) for m in tile]
            rows.append(np.stack([*plain, *turned, turned[1], plain[0]], axis=1).ravel())
        want = expected(np.concatenate(rows))
        launches.append(one_dim("matrix_moves", n, (blocks, 32), {"x": x.ravel()}, {"out": want}))
    return launches


def matrix_stores(g: Generator) -> list[Launch]:
    """stmatrix, four matrices plain, then two transposed over the first half."""
    launches = []
    for blocks, n in TILES:
        x = g.integers(0, 2**32, (n, 32, 4), dtype=np.uint32)
        rows = []
        for tile in x:
            # Register j of all lanes is matrix j, four lanes per row.
            memory = np.ascontiguousarray(tile.T).view(np.uint16).reshape(4, 8, 8)
            rows.append(memory.copy().view(np.uint32).ravel())
            memory[:2] = memory[2:].transpose(0, 2, 1).copy()
            rows.append(memory.view(np.uint32).ravel())
        launches.append(
            one_dim("matrix_stores", n, (blocks, 32), {"x": x.ravel()}, {"out": expected(np.concatenate(rows))})
        )
    return launches


def async_copy(g: Generator) -> list[Launch]:
    """cp.async: whole, half and single words; bytes past a short source are zero."""
    launches = []
    for blocks, n in TILES:
        x = g.integers(0, 256, (n, 64, 16), dtype=np.uint8)
        want = np.zeros((n, 64, 32), np.uint8)
        for t in range(64):
            other = x[:, t ^ 33]
            short = other[:, 12:16].copy()
            short[:, (t ^ 33) & 3 :] = 0
            want[:, t] = np.concatenate([other, other[:, 8:], short, other[:, :4]], axis=1)
        launches.append(
            one_dim("async_copy", n, (blocks, 64), {"x": x.ravel()}, {"out": expected(want.ravel().view(np.uint32))})
        )
    return launches


def shared_barrier(g: Generator) -> list[Launch]:
    """Three iterations of a = 5 a + a of thread t + 37."""
    launches = []
    for blocks, n in TILES:
        x = g.integers(0, 2**32, (n, 64), dtype=np.uint32)
        a = x
        for _ in range(3):
            a = a * np.uint32(5) + np.roll(a, -37, axis=1)
        launches.append(one_dim("shared_barrier", n, (blocks, 64), {"x": x.ravel()}, {"out": expected(a.ravel())}))
    return launches


def cluster_pair(g: Generator) -> list[Launch]:
    """Blocks in pairs: the difference to the other's value, and the own value after the other's addition."""
    launches = []
    for blocks in (2, 4, 6):
        x = g.integers(0, 2**32, (blocks // 2, 2, 32), dtype=np.uint32)
        rank = np.array([[[0], [1000]]], np.uint32)
        want = np.stack([x - x[:, ::-1] + rank, x + np.uint32(7)], axis=2)
        launches.append(
            one_dim("cluster_pair", blocks, (blocks, 32), {"x": x.ravel()}, {"out": expected(want.ravel())})
        )
    return launches


# --- small floats -----------------------------------------------------------------------------------------------------

#: (exponent bits, fraction bits, bits of the largest finite value); e4m3 has no infinity.
SMALL = {
    "f16": (5, 10, 0x7BFF), "bf16": (8, 7, 0x7F7F), "tf32": (8, 10, 0x3FBFF), "e4m3": (4, 3, 0x7E),
    "e5m2": (5, 2, 0x7B),
}  # fmt: skip
CANONICAL_NAN = {"f16": 0x7FFF, "bf16": 0x7FFF, "tf32": 0x3FFFF, "e4m3": 0x7F, "e5m2": 0x7F}


def encode(value: Fraction | float, kind: str, mode: str = "rn", saturate: bool = False) -> int:
    """A number as the bits of a small float: rn to even, rna ties away, rz; NaN is the manual's canonical one."""
    exponent_bits, fraction_bits, largest = SMALL[kind]
    sign_bit = 1 << (exponent_bits + fraction_bits)
    if isinstance(value, float):
        negative = bool(np.signbit(value))
        if value != value:
            return CANONICAL_NAN[kind]
        if value in (float("inf"), float("-inf")):
            return (largest if saturate else largest + 1) | (sign_bit if negative else 0)
        value = Fraction(value)
    else:
        negative = value < 0
    size = abs(value)
    if size == 0:
        return sign_bit if negative else 0
    bias = (1 << (exponent_bits - 1)) - 1
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    exponent = max(exponent, 1 - bias)
    whole, rest = divmod(size / Fraction(2) ** (exponent - fraction_bits), 1)
    half = Fraction(1, 2)
    if (mode == "rn" and (rest > half or (rest == half and whole & 1))) or (mode == "rna" and rest >= half):
        whole += 1
    # The hidden bit of a normal number carries into the exponent field by itself.
    code = whole + ((exponent + bias - 1) << fraction_bits)
    if code > largest:
        code = largest if saturate or mode == "rz" else largest + 1
    return code | (sign_bit if negative else 0)


def decode(code: int, kind: str) -> float:
    """The value of the bits of a small float."""
    exponent_bits, fraction_bits, largest = SMALL[kind]
    size = code & ((1 << (exponent_bits + fraction_bits)) - 1)
    sign = -1.0 if code >> (exponent_bits + fraction_bits) else 1.0
    if size > largest:
        return sign * float("inf") if size == largest + 1 and kind != "e4m3" else float("nan")
    field, fraction = size >> fraction_bits, size & ((1 << fraction_bits) - 1)
    bias = (1 << (exponent_bits - 1)) - 1
    whole = fraction + (1 << fraction_bits if field else 0)
    return sign * float(Fraction(whole) * Fraction(2) ** (max(field, 1) - bias - fraction_bits))


def _fma(a: int, b: int, c: int, kind: str) -> Fraction | float:
    """The exact value, or a float for zeros and special values."""
    x, y, z = (decode(v, kind) for v in (a, b, c))
    if all(np.isfinite(v) for v in (x, y, z)):
        value = Fraction(x) * Fraction(y) + Fraction(z)
        if value != 0:
            return value
    return float(np.float64(x) * np.float64(y) + np.float64(z))


def _extreme(a: int, b: int, kind: str, largest: bool, keep_nan: bool) -> int:
    x, y = decode(a, kind), decode(b, kind)
    if x != x or y != y:
        if keep_nan or (x != x and y != y):
            return CANONICAL_NAN[kind]
        return b if x != x else a
    pair = sorted(((x, not np.signbit(x), a), (y, not np.signbit(y), b)))
    return pair[1 if largest else 0][2]


def _relu(value: Fraction | float) -> Fraction | float:
    return value if value != value or value > 0 else 0.0


def _f32_bits(value: float) -> int:
    return int(np.float32(value).view(np.uint32)) if value == value else 0x7FFFFFFF


def _small_row(f: float, h: float) -> tuple[bytes, set[int]]:
    """The record of two floats, and the words that are not checked."""

    def pair(
        kind: str, upper: Fraction | float, lower: Fraction | float, mode: str = "rn", saturate: bool = False
    ) -> int:
        width = 1 + sum(SMALL[kind][:2])
        return encode(upper, kind, mode, saturate) << width | encode(lower, kind, mode, saturate)

    def widen(both: int, kind: str) -> int:
        return encode(decode(both >> 8, kind), "f16") << 16 | encode(decode(both & 255, kind), "f16")

    unchecked: set[int] = set()
    e4, e5 = pair("e4m3", f, h, saturate=True), pair("e5m2", f, h, saturate=True)
    bf, bh = encode(f, "bf16"), encode(h, "bf16")
    hf, hh = encode(f, "f16"), encode(h, "f16")
    fused = [_fma(bf, bh, c, "bf16") for c in (bf, bh)]
    half_fused = [_fma(hf, hh, c, "f16") for c in (hf, hh)]
    least, most = _extreme(bf, bh, "bf16", False, True), _extreme(bf, bh, "bf16", True, False)
    both_nan = f != f or h != h
    if both_nan:
        # neg of a NaN, the sign that a NaN lends, and a NaN as tf32 (ptxas clears its low bits, measured).
        unchecked |= {3, 10, 12}
    if any(v == 0 and np.signbit(float(v)) for v in half_fused):
        unchecked.add(15)  # a saturated -0
    least_f32 = float("nan") if both_nan else float(exact.min_f32(f, h))
    largest = max(abs(f), abs(h))
    crossed = -largest if np.signbit(f) != np.signbit(h) else largest
    saturated = [0.0 if v != v else max(Fraction(0),
        min(Fraction(1), Fraction(v))) if abs(v) != float("inf") else float(v > 0)
                 for v in half_fused]  # fmt: skip
    largest_half = _extreme(hf, hh, "f16", True, True)
    row = [
        pair("bf16", f, h), pair("bf16", f, h, "rz"), pair("f16", _relu(f), _relu(h)), encode(f, "tf32", "rna") << 13,
        e5 << 16 | e4, widen(e4, "e4m3"), widen(e5, "e5m2"), pair("bf16", fused[0], fused[1]),
            most << 16 | _extreme(bh, bf, "bf16", True, False),
        least << 16 | least, (bf ^ 0x8000) << 16 | (bh ^ 0x8000), _f32_bits(least_f32), _f32_bits(crossed),
        pair("bf16", _relu(fused[1]), _relu(fused[0])), largest_half << 16 | largest_half,
            pair("f16", saturated[0], saturated[1]),
    ]  # fmt: skip
    return struct.pack("<16I", *row), unchecked


def small_floats(g: Generator) -> list[Launch]:
    """Conversions and packed arithmetic of the small formats."""
    launches = []
    for blocks, threads, n in SHAPES_1D:
        x, y = exact.floats(g, n, edges=True, scale=20.0), exact.floats(g, n, edges=True, scale=0.05)
        rows, mask = [], np.ones((n, 16), np.bool_)
        for i, (f, h) in enumerate(zip(x.tolist(), y.tolist(), strict=True)):
            blob, unchecked = _small_row(f, h)
            rows.append(blob)
            mask[i, list(unchecked)] = False
        want = packed(rows)
        guard = np.ones(len(want.values) - 16 * n, np.bool_)
        launches.append(
            one_dim("small_floats", n, (blocks, threads), {"x": x, "y": y},
                    {"out": Expected(want.values, mask=np.concatenate([mask.ravel(), guard]))})
        )  # fmt: skip
    return launches


#: The first SM that has each kernel's instructions.
MIN_SM = {"matrix_moves": 75, "matrix_stores": 90, "cluster_pair": 90, "small_floats": 89}

CASES: dict[str, KernelSpec] = {
    maker.__name__: KernelSpec(maker.__name__, maker, "hand", MIN_SM.get(maker.__name__, 80))
    for maker in (
        mma_int, mma_float, matrix_moves, matrix_stores, async_copy, shared_barrier, cluster_pair, small_floats,
    )
}  # fmt: skip
