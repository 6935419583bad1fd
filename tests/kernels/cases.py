"""Launches and expected results of the sixteen main kernels.

``CASES[name].launches(seed)`` gives the launches, ``check(launch, outputs, globals_after)`` the verdict. Expected
values follow the PTX that nvcc made (it shows which products are fused, the same on every SM): integers and
IEEE-rounded operations bit for bit; approximations with the bound of the "Mathematical Functions" appendix of the CUDA
C++ Programming Guide, called CPG below.
"""

from __future__ import annotations

import math

import numpy as np

from tests.kernels import exact
from tests.kernels.model import (
    Arg,
    Array,
    Buffer,
    Expected,
    KernelSpec,
    Launch,
    Scalar,
    check,
    expected,
    f32,
    fresh,
    inp,
    out,
    s32,
    u32,
)

__all__ = ["CASES", "Buffer", "Expected", "KernelSpec", "Launch", "Scalar", "check"]

Generator = np.random.Generator

F32_EPS = 2.0**-24  # half an ulp of a float, relative

#: (blocks, threads, n): more threads than elements, exact fits, tails, no work, one element.
SHAPES_1D = ((1, 32, 0), (1, 32, 1), (2, 32, 45), (3, 128, 300), (1, 64, 64), (2, 40, 77))


def line(blocks: int, threads: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Grid and block of a one-dimensional launch."""
    return (blocks, 1, 1), (threads, 1, 1)


def vadd(generator: Generator) -> list[Launch]:
    """c = a + b."""
    launches = []
    for blocks, threads, n in SHAPES_1D:
        a, b = exact.floats(generator, n, edges=True), exact.floats(generator, n, edges=True)
        args: list[Arg] = [inp("a", a), inp("b", b), fresh("c", n, "float32"), s32("n", n)]
        launches.append(Launch("vadd", f"n={n}", *line(blocks, threads), 0, args, expect={"c": expected(a + b)}))
    return launches


def saxpy(generator: Generator) -> list[Launch]:
    """y = fma(a, x, y)."""
    launches = []
    for (blocks, threads, n), a in zip(
        ((1, 32, 0), (1, 32, 1), (1, 32, 100), (3, 64, 500), (2, 48, 95), (2, 32, 64)),
        (2.5, -0.0, 1.1, -3.75e-3, math.inf, 1e-40),
        strict=True,
    ):
        x, y = exact.floats(generator, n, edges=True), exact.floats(generator, n, edges=True)
        args: list[Arg] = [f32("a", a), inp("x", x), out("y", y), s32("n", n)]
        want = expected(exact.fma(np.float32(a), x, y))
        launches.append(Launch("saxpy", f"n={n} a={a}", *line(blocks, threads), 0, args, expect={"y": want}))
    return launches


def _block_sums(x: Array, blocks: int, threads: int) -> Array:
    """The float sums of reduce_sum's blocks, in its order of additions."""
    sums = np.zeros(blocks * threads, np.float32)
    for start in range(0, len(x), blocks * threads):
        chunk = x[start : start + blocks * threads]
        sums[: len(chunk)] = sums[: len(chunk)] + chunk
    parts = sums.reshape(blocks, threads)
    while parts.shape[1] > 1:
        half = parts.shape[1] // 2
        parts = parts[:, :half] + parts[:, half:]
    return parts[:, 0]


def reduce_sum(generator: Generator) -> list[Launch]:
    """One float: exact if one block adds once or the sums are small integers, else bounded.

    atom.global.add.f32 flushes subnormal inputs and results (PTX manual, atom); the additions before it do not.
    """
    launches = []
    plans = (
        ("empty", 1, 32, 0), ("one", 1, 32, 1), ("normal", 1, 256, 1000), ("integers", 4, 64, 1001),
        ("normal", 3, 128, 700), ("subnormal", 1, 32, 40), ("infinity", 2, 32, 100), ("nan", 2, 64, 64),
    )  # fmt: skip
    for kind, blocks, threads, n in plans:
        x = exact.floats(generator, n, scale=100.0)
        start = np.float32(0.5)
        if kind == "integers":
            x, start = np.rint(x).astype(np.float32), np.float32(7)
        elif kind == "subnormal":
            x = (x * np.float32(1e-42)).astype(np.float32)
            start = np.float32(-1e-40)
        elif kind == "infinity":
            x[n // 2] = np.inf
        elif kind == "nan":
            x[n // 3] = np.nan
        parts = exact.ftz(_block_sums(x, blocks, threads))
        total = exact.ftz(start)
        for part in parts:
            total = exact.ftz(total + part)
        # The order of the blocks' additions is free: each of them rounds.
        spread = 0.0
        if blocks > 1 and kind == "normal":
            spread = 2 * blocks * F32_EPS * float(np.abs(parts).sum() + abs(start))
        want = expected(np.array([total], np.float32), abs=spread, source="blocks add in any order")
        args: list[Arg] = [inp("x", x), out("total", np.array([start], np.float32)), s32("n", n)]
        launches.append(Launch("reduce_sum", f"{kind} n={n}", *line(blocks, threads), 0, args, expect={"total": want}))
    return launches


def _matmul(a: Array, b: Array) -> Array:
    """Products accumulated by fma in order of k, with k padded to a whole tile with zeros as in the kernel."""
    m, k = a.shape
    n = b.shape[1]
    pad = -k % 16
    a = np.concatenate([a, np.zeros((m, pad), np.float32)], axis=1)
    b = np.concatenate([b, np.zeros((pad, n), np.float32)], axis=0)
    acc = np.zeros((m, n), np.float32)
    for i in range(k + pad):
        acc = exact.fma(a[:, i : i + 1], b[i : i + 1, :], acc)
    return acc


def matmul(generator: Generator) -> list[Launch]:
    """C = A * B by ordered fma."""
    launches = []
    for m, n, k, edges in (
        (16, 16, 16, False),
        (1, 1, 1, False),
        (33, 20, 17, False),
        (5, 40, 0, False),
        (18, 16, 35, True),
    ):
        a = exact.floats(generator, m * k, edges=edges)
        b = exact.floats(generator, k * n, edges=edges)
        want = expected(_matmul(a.reshape(m, k), b.reshape(k, n)).ravel())
        args: list[Arg] = [
            inp("a", a),
            inp("b", b),
            fresh("c", m * n, "float32"),
            s32("m", m),
            s32("n", n),
            s32("k", k),
        ]
        grid = (-(-n // 16), -(-m // 16), 1)
        launches.append(Launch("matmul", f"{m}x{n}x{k}", grid, (16, 16, 1), 0, args, expect={"c": want}))
    return launches


def softmax(generator: Generator) -> list[Launch]:
    """exp(x - max) / sum, per row, within the propagated bound."""
    launches = []
    plans = (("normal", 2, 2, 3, 50), ("normal", 2, 4, 7, 32), ("one column", 1, 1, 1, 1), ("wide", 1, 1, 1, 100),
             ("special", 3, 2, 6, 40), ("no rows", 1, 1, 0, 5))  # fmt: skip
    for kind, blocks, per_block, rows, cols in plans:
        x = exact.floats(generator, rows * cols, scale=3.0).reshape(rows, cols)
        if kind == "wide":
            x *= np.float32(30)
        elif kind == "special":
            x[0, 3] = np.inf
            x[1, 5] = -np.inf
            x[2, 7] = np.nan
            x[3, :] = -np.inf
            x[4, :] = np.float32(1e-45)
        top = np.full(rows, -np.inf, np.float32)
        for i in range(cols):
            top = exact.max_f32(top, x[:, i])
        power = np.exp((x - top[:, None]).astype(np.float32).astype(np.float64))
        quotient = (power / power.sum(axis=1, keepdims=True)).astype(np.float32)
        # CPG: expf 2 ulp (older editions; newer say 1), division 0, one addition half an ulp.  Numerator and each term
        # of the denominator are off by 2 ulp; the sum rounds ceil(cols / 32) + 5 times.
        terms = -(-cols // 32) + 5
        bound = (4 + 4 + terms + 1) * F32_EPS
        want = expected(
            quotient.ravel(), rel=bound, abs=4 * 2.0**-149, source="CPG: expf 2 ulp, division correctly rounded"
        )
        args: list[Arg] = [
            inp("in", x.ravel()),
            fresh("out", rows * cols, "float32"),
            s32("rows", rows),
            s32("cols", cols),
        ]
        launches.append(
            Launch(
                "softmax", f"{kind} {rows}x{cols}", (blocks, 1, 1), (32, per_block, 1), 0, args, expect={"out": want}
            )
        )
    return launches


def histogram(generator: Generator) -> list[Launch]:
    """Counts of bytes, added to the bins' contents."""
    launches = []
    for blocks, threads, n, top in (
        (1, 32, 0, 256),
        (1, 32, 1, 256),
        (2, 64, 1000, 256),
        (3, 96, 500, 4),
        (1, 256, 700, 256),
    ):
        data = generator.integers(0, top, n, dtype=np.uint8)
        before = generator.integers(0, 2**32, 256, dtype=np.uint32)
        counts = np.bincount(data, minlength=256).astype(np.uint32)
        args: list[Arg] = [inp("data", data), out("bins", before), s32("n", n)]
        launches.append(
            Launch(
                "histogram",
                f"n={n} of {top}",
                *line(blocks, threads),
                0,
                args,
                expect={"bins": expected(before + counts)},
            )
        )
    return launches


def _mandelbrot(width: int, height: int, x0: float, y0: float, step: float, samples: int, limit: int) -> Array:
    fine = np.float32(step) / np.float32(samples)
    px, py = np.meshgrid(np.arange(width), np.arange(height))
    total = np.zeros((height, width), np.int32)
    for sy in range(samples):
        for sx in range(samples):
            cx = exact.fma((px * samples + sx).astype(np.float32), fine, np.float32(x0))
            cy = exact.fma((py * samples + sy).astype(np.float32), fine, np.float32(y0))
            zx, zy = np.zeros_like(cx), np.zeros_like(cy)
            alive = np.ones(cx.shape, np.bool_)
            for _ in range(limit):
                xx, yy = zx * zx, zy * zy
                alive &= ~(xx + yy > 4.0)
                zy = np.where(alive, exact.fma(zx + zx, zy, cy), zy)
                zx = np.where(alive, (xx - yy) + cx, zx)
                total += alive
    return total


def mandelbrot(generator: Generator) -> list[Launch]:
    """Escape counts: every float operation is exact, so are the counts."""
    launches = []
    jitter = float(generator.random()) / 64
    plans = (
        ("whole", (2, 2), (8, 8), 15, 13, -2.0 + jitter, -1.25, 0.2, 1, 40),
        ("samples", (1, 1), (16, 4), 16, 4, -0.75 + jitter, 0.1, 0.01, 2, 60),
        ("one", (1, 1), (1, 1), 1, 1, 0.0, 0.0, 1.0, 1, 25),
        ("no pixels", (1, 1), (8, 8), 0, 0, 0.0, 0.0, 1.0, 1, 10),
        ("no samples", (1, 1), (8, 4), 7, 3, 0.0, 0.0, 1.0, 0, 10),
        ("limit 0", (1, 1), (8, 4), 8, 4, 0.0, 0.0, 1.0, 1, 0),
        ("nan", (1, 1), (8, 4), 8, 4, math.nan, 0.0, 1.0, 1, 9),
        ("infinity", (1, 1), (8, 4), 8, 4, math.inf, -1.0, 0.5, 1, 9),
    )
    for label, grid, block, width, height, x0, y0, step, samples, limit in plans:
        want = expected(_mandelbrot(width, height, x0, y0, step, samples, limit).ravel())
        args: list[Arg] = [
            fresh("counts", width * height, "int32"), s32("width", width), s32("height", height), f32("x0", x0),
            f32("y0", y0), f32("step", step), s32("samples", samples), s32("limit", limit),
        ]  # fmt: skip
        launches.append(Launch("mandelbrot", label, (*grid, 1), (*block, 1), 0, args, expect={"counts": want}))
    return launches


def scan(generator: Generator) -> list[Launch]:
    """Inclusive sums of each block's chunk (wrapping) and the chunks' totals."""
    launches = []
    for blocks, threads, n in ((1, 32, 0), (1, 32, 1), (2, 64, 100), (3, 256, 700), (1, 128, 128), (2, 1024, 1500)):
        x = exact.ints(generator, n, edges=True)
        padded = np.zeros(blocks * threads, np.int32)
        padded[:n] = x
        sums = np.cumsum(padded.reshape(blocks, threads), axis=1, dtype=np.int32)
        args: list[Arg] = [inp("in", x), fresh("out", n, "int32"), fresh("totals", blocks, "int32"), s32("n", n)]
        expect = {"out": expected(sums.ravel()[:n]), "totals": expected(sums[:, -1])}
        launches.append(Launch("scan", f"n={n}", *line(blocks, threads), 0, args, expect=expect))
    return launches


def divrem64(generator: Generator) -> list[Launch]:
    """Quotients and remainders.  PTX leaves division by zero and INT64_MIN / -1 unspecified: those are not checked."""
    launches = []
    for blocks, threads, n in ((1, 32, 0), (1, 32, 1), (2, 32, 45), (2, 64, 128), (1, 96, 70)):
        a, b = exact.longs(generator, n), exact.longs(generator, n)
        if n > 40:
            b[3], a[7], b[7] = 0, 1 << 63, 2**64 - 1
        defined = b != 0
        divisor = np.where(defined, b, np.uint64(1))
        signed_a, signed_b = a.view(np.int64), divisor.view(np.int64)
        overflow = (signed_a == -(2**63)) & (signed_b == -1)
        safe_b = np.where(overflow, np.int64(1), signed_b)
        quotient = exact.trunc_div(signed_a, safe_b)
        signed = defined & ~overflow
        expect = {
            "uq": expected(a // divisor, mask=defined),
            "ur": expected(a % divisor, mask=defined),
            "sq": expected(quotient, mask=signed),
            "sr": expected(signed_a - quotient * safe_b, mask=signed),
        }
        args: list[Arg] = [inp("a", a), inp("b", b), fresh("uq", n, "uint64"), fresh("ur", n, "uint64"),
            fresh("sq", n, "int64"),
                fresh("sr", n, "int64"), s32("n", n)]  # fmt: skip
        launches.append(Launch("divrem64", f"n={n}", *line(blocks, threads), 0, args, expect=expect))
    return launches


def f64_ops(generator: Generator) -> list[Launch]:
    """fma, division and square root in double, all correctly rounded (CPG: 0 ulp for each)."""
    launches = []
    for (blocks, threads, n), edges in zip(SHAPES_1D, (False, False, True, True, True, False), strict=True):
        a, b, c = (exact.doubles(generator, n, edges=edges) for _ in range(3))
        expect = {
            "out_fma": expected(exact.fma64(a, b, c)),
            "out_div": expected(a / b),
            "out_sqrt": expected(np.sqrt(a)),
        }
        args: list[Arg] = [
            inp("a", a),
            inp("b", b),
            inp("c", c),
            *(fresh(name, n, "float64") for name in expect),
            s32("n", n),
        ]
        launches.append(Launch("f64_ops", f"n={n}", *line(blocks, threads), 0, args, expect=expect))
    return launches


def half2_ops(generator: Generator) -> list[Launch]:
    """Packed half operations; ``n`` counts pairs.  Subnormal halves are kept (no .ftz in the PTX)."""
    launches = []
    for (blocks, threads, n), edges in zip(SHAPES_1D, (False, True, True, True, True, False), strict=True):
        a, b, c = (exact.halves(generator, 2 * n, edges=edges) for _ in range(3))
        # In float64 the sum and the product of two halves are exact: one rounding.
        wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
        fused = exact.fma(a, b, c, np.float16)
        low = fused[0::2].astype(np.float32) + c[1::2].astype(np.float32)
        expect = {
            "sum": expected((wide_a + wide_b).astype(np.float16)),
            "diff": expected((wide_a - wide_b).astype(np.float16)),
            "prod": expected((wide_a * wide_b).astype(np.float16)),
            "fused": expected(fused),
            "larger": expected((wide_a > wide_b).astype(np.float16)),
            "low": expected(low),
        }
        names = ("sum", "diff", "prod", "fused", "larger")
        args: list[Arg] = [inp("a", a), inp("b", b), inp("c", c), *(fresh(name, 2 * n, "float16") for name in names),
                fresh("low", n, "float32"), s32("n", n)]  # fmt: skip
        launches.append(Launch("half2_ops", f"pairs={n}", *line(blocks, threads), 0, args, expect=expect))
    return launches


def switch10(generator: Generator) -> list[Launch]:
    """Ten integer operations chosen by data; anything else gives -1."""
    launches = []
    for blocks, threads, n in SHAPES_1D:
        op = generator.integers(-1, 11, n, dtype=np.int32)
        op = np.where(generator.random(n) < 0.05, exact.ints(generator, n, edges=True), op).astype(np.int32)
        x = exact.ints(generator, n, edges=True)
        before = exact.ints(generator, n)
        bits = x.view(np.uint32)
        seven, ten = np.full_like(x, 7), np.full_like(x, 10)
        table = [
            x + np.int32(17), x * np.int32(29), x ^ np.int32(0x5A5A5A5A), x >> 3, (bits >> np.uint32(5)).view(np.int32),
            np.abs(x), np.array([int(v).bit_count() for v in bits], np.int32), exact.trunc_div(x, seven),
            x - exact.trunc_div(x, ten) * np.int32(10), before - x,
        ]  # fmt: skip
        want = np.full(n, -1, np.int32)
        for case, values in enumerate(table):
            want = np.where(op == case, values, want).astype(np.int32)
        args: list[Arg] = [inp("op", op), inp("x", x), out("out", before), s32("n", n)]
        launches.append(Launch("switch10", f"n={n}", *line(blocks, threads), 0, args, expect={"out": expected(want)}))
    return launches


def local_array(generator: Generator) -> list[Launch]:
    """A private array of 16 words walked by a generator of random numbers."""
    launches = []
    for blocks, threads, n, rounds in (
        (1, 32, 0, 3),
        (1, 32, 1, 5),
        (2, 32, 45, 0),
        (2, 64, 100, 9),
        (1, 96, 96, 1),
        (1, 40, 37, 30),
    ):
        x = exact.ints(generator, n, edges=True)
        slots = np.tile(np.arange(16, dtype=np.uint32) * np.uint32(0x9E3779B9), (n, 1))
        state = x.view(np.uint32).copy()
        rows = np.arange(n)
        for _ in range(rounds):
            value = slots[rows, state & 15]
            slots[rows, (state >> np.uint32(4)) & 15] = value + state
            state = state * np.uint32(1664525) + np.uint32(1013904223) + value
            state ^= state >> np.uint32(16)
        mix = np.zeros(n, np.uint32)
        for k in range(16):
            mix = mix * np.uint32(31) + slots[:, k]
        args: list[Arg] = [inp("x", x), fresh("out", n, "int32"), s32("n", n), s32("rounds", rounds)]
        launches.append(
            Launch("local_array", f"n={n} rounds={rounds}", *line(blocks, threads), 0, args,
                   expect={"out": expected(mix.view(np.int32))})
        )  # fmt: skip
    return launches


def _mix_bits(value: Array, key: Array, rounds: Array) -> Array:
    value, key = value.copy(), key.copy()
    for i in range(int(rounds.max(initial=0))):
        live = i < rounds
        step: Array = value ^ key
        step = (step << np.uint32(7)) | (step >> np.uint32(25))
        step = step * np.uint32(0x85EBCA6B)
        value = np.where(live, step, value).astype(np.uint32)
        key = np.where(live, key + (step >> np.uint32(3)), key).astype(np.uint32)
    return value ^ key


def call_twice(generator: Generator) -> list[Launch]:
    """Two calls of one function, the second with a trip count from data."""
    launches = []
    for blocks, threads, n in SHAPES_1D:
        x = exact.ints(generator, n, edges=True).view(np.uint32)
        key = int(generator.integers(0, 2**32))
        first = _mix_bits(x, np.full(n, key, np.uint32), np.full(n, 3))
        second = _mix_bits(
            first + np.arange(n, dtype=np.uint32), np.uint32(key) ^ first, (x & np.uint32(3)) + np.uint32(1)
        )
        args: list[Arg] = [inp("x", x), fresh("out", n, "uint32"), u32("key", key), s32("n", n)]
        launches.append(
            Launch("call_twice", f"n={n}", *line(blocks, threads), 0, args, expect={"out": expected(first - second)})
        )
    return launches


def trig(generator: Generator) -> list[Launch]:
    """sinf and cosf at every magnitude.  CPG: both 2 ulp over the full range."""
    launches = []
    for (blocks, threads, n), kind in zip(SHAPES_1D, ("", "edge", "edge", "large", "small", "edge"), strict=True):
        x = exact.floats(generator, n, edges=kind == "edge", scale=4.0)
        if kind == "large":
            exponent = generator.integers(17, 127, n)
            x = np.ldexp(generator.uniform(1, 2, n), exponent).astype(np.float32)
            x[::2] = -x[::2]
        elif kind == "small":
            x *= np.float32(2.0) ** generator.integers(-130, 0, n).astype(np.float32)
        elif kind == "edge":
            # The neighbours of multiples of pi/2, and of the limit of the short reduction (105615).
            near = (np.arange(1, n // 4 + 1) * (np.pi / 2)).astype(np.float32)
            x[: len(near)] = near
            if n > 60:
                x[-4:] = np.array([105614.0, 105615.0, -105616.0, 3.4e38], np.float32)
        wanted = {}
        for name, function in (("s", math.sin), ("c", math.cos)):
            values = [function(v) if math.isfinite(v) else math.nan for v in x.astype(np.float64).tolist()]
            wanted[name] = expected(np.array(values, np.float64).astype(np.float32), ulp=2, source="CPG: 2 ulp")
        args: list[Arg] = [inp("x", x), fresh("s", n, "float32"), fresh("c", n, "float32"), s32("n", n)]
        launches.append(Launch("trig", f"{kind} n={n}", *line(blocks, threads), 0, args, expect=wanted))
    return launches


def const_global(generator: Generator) -> list[Launch]:
    """Constant tables, an initialised global table that stays, and a counter that grows."""
    offsets = np.array([3, -1, 4, -1, 5, -9, 2, -6], np.int32)
    primes = np.array([2, 3, 5, 7, 11, 13, 17, 19], np.int32)
    launches = []
    for number, (blocks, threads, n) in enumerate(SHAPES_1D):
        index = exact.ints(generator, n, edges=True)
        weights = exact.floats(generator, 16, edges=number % 2 == 0)
        start = np.uint32(0xFFFFFFF0) if number == 3 else np.uint32(number)
        symbols: dict[str, Array] = {"cg_weights": weights, "cg_counter": np.array([start], np.uint32)}
        expect_symbols = {
            "cg_counter": Expected(np.array([start + np.uint32((index < 0).sum())], np.uint32)),
            "cg_primes": Expected(primes),
        }
        table = offsets
        if number == 4:  # the host may replace an initialised table
            table = exact.ints(generator, 8)
            symbols["cg_offsets"] = table
        sums = table[index & 7] * primes[(index >> 3) & 7] + table[2]
        expect = {"out": expected(weights[index & 15] + weights[3]), "sums": expected(sums)}
        args: list[Arg] = [inp("index", index), fresh("out", n, "float32"), fresh("sums", n, "int32"), s32("n", n)]
        launches.append(
            Launch("const_global", f"n={n}", *line(blocks, threads), 0, args, symbols, expect, expect_symbols)
        )
    return launches


CASES: dict[str, KernelSpec] = {
    maker.__name__: KernelSpec(maker.__name__, maker)
    for maker in (
        vadd, saxpy, reduce_sum, matmul, softmax, histogram, mandelbrot, scan, divrem64, f64_ops, half2_ops, switch10,
        local_array, call_twice, trig, const_global,
    )
}  # fmt: skip
