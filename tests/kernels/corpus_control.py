"""Launches and references of the corpus kernels that branch, communicate or move memory.

The references of the branching kernels are plain Python, a thread at a time; integers wrap by :func:`s32w`.
"""

from __future__ import annotations

import numpy as np

from tests.kernels import exact
from tests.kernels.cases import SHAPES_1D, line
from tests.kernels.corpus_arith import columns, one_dim
from tests.kernels.model import Arg, Array, Expected, Launch, expected, f32, fresh, inp, out, s32, u32

Generator = np.random.Generator


def s32w(value: int) -> int:
    """Wrapped to a signed 32-bit integer."""
    return ((value + 2**31) & 0xFFFFFFFF) - 2**31


def u32w(value: int) -> int:
    """Wrapped to an unsigned 32-bit integer."""
    return value & 0xFFFFFFFF


def many_regs(generator: Generator) -> list[Launch]:
    """Twenty-four values updated in place, in order."""
    launches = []
    for (blocks, threads, n), rounds in zip(SHAPES_1D, (3, 5, 0, 4, 1, 6), strict=True):
        x = exact.ints(generator, n, edges=True).view(np.uint32)
        v = [x + np.uint32(u32w(k * 2654435769)) for k in range(24)]
        for r in range(rounds):
            for k in range(24):
                v[k] = v[k] * np.uint32(1664525) + (v[(k + 7) % 24] ^ np.uint32(r))
        mix = np.zeros(n, np.uint32)
        for k in range(24):
            mix = (mix ^ v[k]) * np.uint32(16777619)
        launches.append(
            one_dim("many_regs", n, (blocks, threads), {"x": x}, {"out": expected(mix)}, [s32("rounds", rounds)])
        )
    return launches


def _nested_one(v: int, tid: int) -> int:
    acc = 0
    for a in range((v & 3) + 1):
        if (v >> a) & 1:
            for b in range((tid & 3) + 1):
                if (v >> (a + b)) & 2:
                    acc += v >> b
                elif acc & 4:
                    acc ^= s32w(v * (b + 1))
                else:
                    acc -= a * 77 + b
                acc = s32w(acc)
        elif v < 0:
            acc = acc * 3 + a
        else:
            acc = (acc << 1) - v
        acc = s32w(acc + 13)
    return acc


def nested_div(generator: Generator) -> list[Launch]:
    """Nested branches."""
    launches = []
    for blocks, threads, n in SHAPES_1D:
        x = exact.ints(generator, n, edges=True)
        want = [_nested_one(v, i % threads) for i, v in enumerate(x.tolist())]
        launches.append(
            one_dim("nested_div", n, (blocks, threads), {"x": x}, {"out": expected(np.array(want, np.int32))})
        )
    return launches


def _find(row: list[int], key: int, width: int) -> int:
    for a in range(width):
        if row[a] == key:
            return a
        for b in range(a):
            if s32w(row[a] + row[b]) == key:
                return 1000 + a * width + b
    return -1


def early_return(generator: Generator) -> list[Launch]:
    """The first element, or pair, that gives the key."""
    launches = []
    for (blocks, threads, n), width in zip(SHAPES_1D, (4, 0, 9, 6, 12, 1), strict=True):
        data = generator.integers(-20, 20, (n, width), dtype=np.int32)
        key = 11
        want = np.array([_find(row, key, width) for row in data.tolist()], np.int32)
        args: list[Arg] = [
            inp("data", data.ravel()),
            fresh("out", n, "int32"),
            s32("n", n),
            s32("width", width),
            s32("key", key),
        ]
        launches.append(
            Launch(
                "early_return", f"n={n} width={width}", *line(blocks, threads), 0, args, expect={"out": expected(want)}
            )
        )
    return launches


def _interpret(code: list[int], acc: int, pc: int, steps: int) -> int:
    for _ in range(steps):
        op = code[pc & 63]
        if op == 4 and acc & 1:
            pc = s32w(pc + 1)
            continue
        if op == 6:
            return acc
        if op == 0:
            acc += pc
        elif op == 1:
            acc ^= s32w(acc << 3)
            pc += 2
        elif op == 2:
            acc *= 5
        elif op == 3:
            pc ^= acc
        elif op == 4:
            acc >>= 1
        elif op == 5:
            acc = int(f"{u32w(acc):032b}"[::-1], 2)
        elif op == 7:
            acc -= op * pc
        elif op == 8:
            for j in range(acc & 7):
                acc += j * pc
        elif op == 9:
            acc = ~acc
        else:
            acc += op
        acc, pc = s32w(acc), s32w(pc + 1)
    return acc ^ 0x40000000


def switch_loop(generator: Generator) -> list[Launch]:
    """The small interpreter."""
    launches = []
    for (blocks, threads, n), steps in zip(SHAPES_1D, (5, 8, 0, 12, 40, 20), strict=True):
        code = generator.choice(np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 200], np.uint8), 64)
        before = exact.ints(generator, n)
        want = np.array([_interpret(code.tolist(), acc, i, steps) for i, acc in enumerate(before.tolist())], np.int32)
        args: list[Arg] = [inp("code", code), out("out", before), s32("n", n), s32("steps", steps)]
        launches.append(
            Launch(
                "switch_loop", f"n={n} steps={steps}", *line(blocks, threads), 0, args, expect={"out": expected(want)}
            )
        )
    return launches


def _walk(v: int, limit: int) -> int:
    steps = 0
    while v > 1:
        steps += 1
        if steps > limit:
            break
        if v & 1:
            v = u32w(v * 3 + 1)
            continue
        v >>= 1
        while not v & 1 and v:
            v >>= 1
        if v % 11 == 5:
            steps += 100
    return u32w(steps * 65536 + (v & 0xFFFF))


def while_break(generator: Generator) -> list[Launch]:
    """Loops with break and continue."""
    launches = []
    for (blocks, threads, n), limit in zip(SHAPES_1D, (9, 50, 200, 60, 0, 1000), strict=True):
        x = generator.integers(0, 5000, n, dtype=np.uint32)
        x = np.where(generator.random(n) < 0.2, exact.ints(generator, n, edges=True).view(np.uint32), x).astype(
            np.uint32
        )
        want = np.array([_walk(v, limit) for v in x.tolist()], np.uint32)
        launches.append(
            one_dim("while_break", n, (blocks, threads), {"x": x}, {"out": expected(want)}, [u32("limit", limit)])
        )
    return launches


#: (blocks, threads, n) where every warp is whole.
WARP_SHAPES = ((1, 32, 0), (1, 32, 32), (2, 64, 96), (1, 256, 256), (3, 96, 224))


def _warps(values: Array) -> Array:
    return values.reshape(-1, 32)


def vote(generator: Generator) -> list[Launch]:
    """Votes of whole warps."""
    launches = []
    lanes = np.arange(32, dtype=np.uint64)
    for blocks, threads, n in WARP_SHAPES:
        x = generator.integers(-1000, 1000, n, dtype=np.int32)
        if n >= 96:
            x[:32], x[32:64] = 950, 4
        warps = _warps(x)
        weights = np.uint64(1) << lanes
        ballots = (((warps & 1) != 0) * weights).sum(axis=1).astype(np.uint32)
        flags = (warps > 900).any(axis=1) * 2 + (warps > -900).all(axis=1)
        same = ((warps[:, :, None] & 7) == (warps[:, None, :] & 7)) * weights
        below = (weights - np.uint64(1)).astype(np.uint32)
        ranks = [int(b & m).bit_count() for b in ballots for m in below]
        wants = {
            "ballots": expected(np.repeat(ballots, 32)),
            "flags": expected(np.repeat(flags, 32).astype(np.int32)),
            "same": expected(same.sum(axis=2).astype(np.uint32).ravel()),
            "ranks": expected(np.array(ranks, np.uint32)),
        }
        launches.append(one_dim("vote", n, (blocks, threads), {"x": x}, wants))
    return launches


def match_all(generator: Generator) -> list[Launch]:
    """match.all of whole warps, votes of half warps in divergent code."""
    launches = []
    for blocks, threads, n in WARP_SHAPES:
        x = np.repeat(generator.integers(-8, 8, n // 32, dtype=np.int32) * 16, 32) + generator.integers(
            0, 16, n, dtype=np.int32
        )
        if n >= 96:
            x[40] += 64
            x[64:96:2] &= -2
        x = x.astype(np.int32)
        warps = _warps(x)
        equal = (warps >> 4 == warps[:, :1] >> 4).all(axis=1)
        part = np.empty_like(warps)
        part[:, 1::2] = ((warps[:, 1::2] & 2) != 0).sum(axis=1, keepdims=True)
        part[:, 0::2] = 100 + (warps[:, 0::2] & 1).any(axis=1, keepdims=True)
        wants = {
            "all": expected(np.repeat(np.where(equal, 0xFFFFFEFF, 0), 32).astype(np.uint32)),
            "part": expected(part.ravel()),
        }
        launches.append(one_dim("match_all", n, (blocks, threads), {"x": x}, wants))
    return launches


def shuffles(generator: Generator) -> list[Launch]:
    """Shuffles of whole warps and segments; a lane without a source keeps its own value."""
    launches = []
    lane = np.arange(32)
    for blocks, threads, n in WARP_SHAPES:
        x, d = exact.ints(generator, n), exact.doubles(generator, n)
        warps = _warps(x)
        rows = np.arange(len(warps))[:, None]
        up = np.where(lane >= 3, lane - 3, lane)
        down = np.where(lane % 8 + 5 < 8, lane + 5, lane)
        parts = (warps[rows, warps & 31], warps[:, up], warps[:, down], warps[:, lane ^ 6], warps[:, (lane & ~7) + 1])
        sums = _warps(d)
        for step in (16, 8, 4, 2, 1):
            sums = sums + sums[:, np.where(lane + step < 32, lane + step, lane)]
        wants = {"out": columns(*(p.ravel() for p in parts)), "wide": expected(sums.ravel())}
        launches.append(one_dim("shuffles", n, (blocks, threads), {"x": x, "d": d}, wants))
    return launches


def cas_loop(generator: Generator) -> list[Launch]:
    """The largest magnitude (NaN never wins) and a counter that stops at the top."""
    launches = []
    for (blocks, threads, n), top in zip(SHAPES_1D, (5, 5, 40, 1000, 0, 77), strict=True):
        x = exact.floats(generator, n, edges=True)
        start, largest = 3, np.uint32(0x00000007)
        sizes = np.abs(x[~np.isnan(x)]).view(np.uint32)
        best = max(int(largest), int(sizes.max(initial=0)))
        counter = start if start >= top else min(top, start + n)
        args: list[Arg] = [
            inp("x", x), out("largest", np.array([largest], np.uint32)), out("counter", np.array([start], np.int32)),
            s32("top", top), s32("n", n),
        ]  # fmt: skip
        wants = {"largest": expected(np.array([best], np.uint32)), "counter": expected(np.array([counter], np.int32))}
        launches.append(Launch("cas_loop", f"n={n} top={top}", *line(blocks, threads), 0, args, expect=wants))
    return launches


def _count_to(value: int, limit: int, times: int, step: int) -> int:
    """atomicInc (step 1) or atomicDec (step -1), ``times`` times."""
    for _ in range(times):
        if step > 0:
            value = 0 if value >= limit else value + 1
        else:
            value = limit if value == 0 or value > limit else value - 1
    return value


def atomics(generator: Generator) -> list[Launch]:
    """Every result is independent of the order of the threads."""
    launches = []
    for blocks, threads, n in SHAPES_1D:
        x = exact.ints(generator, n, edges=True)
        words = exact.ints(generator, 11)
        uwords = generator.integers(0, 2**32, 4, dtype=np.uint32)
        uwords[2:] = (7, 30)
        longs = exact.longs(generator, 3)
        v = x.tolist()
        unsigned = [u32w(item) for item in v]
        w = words.tolist()
        per_block = [v[b * threads : (b + 1) * threads] for b in range(blocks)]
        for item in v:
            w[0], w[1], w[6] = s32w(w[0] + item), s32w(w[1] - item), w[6] ^ item
            w[2], w[3] = min(w[2], item), max(w[3], item)
            w[4], w[5] = w[4] & (item | 0x0FF0), w[5] | (item & 0x10101)
        for chunk in per_block:
            local = [0, 0, 0, -1]
            for item in chunk:
                local = [s32w(local[0] + item), max(local[1], item), local[2] | item, local[3] & (item | 0xFF)]
            w[7], w[8] = s32w(w[7] + local[0]), max(w[8], local[1])
            w[9], w[10] = w[9] | local[2], w[10] & local[3]
        u = uwords.tolist()
        u[0], u[1] = min([u[0], *unsigned]), max([u[1], *unsigned])
        u[2], u[3] = _count_to(u[2], 9, n, 1), _count_to(u[3], 9, n, -1)
        wide = longs.tolist()
        for item, bits in zip(v, unsigned, strict=True):
            wide[0] += item * 0x100000001
            wide[1] = max(wide[1], bits << 7)
            wide[2] ^= bits * 0x9E3779B97F4A7C15 & (2**64 - 1)
        args: list[Arg] = [inp("x", x), out("words", words), out("uwords", uwords), out("longs", longs), s32("n", n)]
        wants = {
            "words": expected(np.array(w, np.int32)),
            "uwords": expected(np.array(u, np.uint32)),
            "longs": expected(exact.wrap(wide, np.uint64)),
        }
        launches.append(Launch("atomics", f"n={n}", *line(blocks, threads), 0, args, expect=wants))
    return launches


def tickets(generator: Generator) -> list[Launch]:
    """Every ticket is taken once."""
    launches = []
    for blocks, threads, n in SHAPES_1D:
        before = np.concatenate([np.zeros(n, np.uint32), generator.integers(0, 99, n, dtype=np.uint32)])
        args: list[Arg] = [
            out("next", np.zeros(1, np.uint32)), out("taken", before), fresh("owner", n, "uint32"), s32("n", n),
        ]  # fmt: skip
        wants = {
            "next": expected(np.array([n], np.uint32)),
            "taken": expected(np.ones(2 * n, np.uint32)),
            "owner": expected(before[n:]),
        }
        launches.append(Launch("tickets", f"n={n}", *line(blocks, threads), 0, args, expect=wants))
    return launches


def index3d(generator: Generator) -> list[Launch]:
    """The flat index in three dimensions."""
    launches = []
    shapes: tuple[tuple[tuple[int, int, int], tuple[int, int, int], tuple[int, int, int]], ...] = (
        ((1, 1, 1), (4, 4, 4), (4, 3, 2)), ((2, 3, 2), (5, 2, 3), (10, 6, 6)), ((2, 1, 3), (8, 4, 1), (13, 4, 3)),
        ((1, 1, 1), (1, 1, 1), (1, 1, 1)), ((1, 2, 1), (2, 2, 8), (0, 3, 3)),
    )  # fmt: skip
    for grid, block, (nx, ny, nz) in shapes:
        z, y, x = np.meshgrid(np.arange(nz), np.arange(ny), np.arange(nx), indexing="ij")
        bx, by, bz = x // block[0], y // block[1], z // block[2]
        tx, ty, tz = x % block[0], y % block[1], z % block[2]
        flat_block = (bz * grid[1] + by) * grid[0] + bx
        flat_thread = (tz * block[1] + ty) * block[0] + tx
        want = flat_block * 10000 + flat_thread * 8 + grid[2] * 4 + block[2]
        args: list[Arg] = [fresh("out", nx * ny * nz, "int32"), s32("nx", nx), s32("ny", ny), s32("nz", nz)]
        wants = {"out": expected(want.astype(np.int32).ravel())}
        launches.append(Launch("index3d", f"{nx}x{ny}x{nz}", grid, block, 0, args, expect=wants))
    return launches


def transpose(generator: Generator) -> list[Launch]:
    """A transposed matrix."""
    launches = []
    for width, height in ((16, 16), (33, 18), (1, 1), (5, 40), (0, 7)):
        data = exact.ints(generator, width * height)
        grid = (max(1, -(-width // 16)), -(-height // 16), 1)
        args: list[Arg] = [
            inp("in", data),
            fresh("out", len(data), "int32"),
            s32("width", width),
            s32("height", height),
        ]
        want = expected(np.ascontiguousarray(data.reshape(height, width).T).ravel())
        launches.append(Launch("transpose", f"{width}x{height}", grid, (16, 8, 1), 0, args, expect={"out": want}))
    return launches


def stencil(generator: Generator) -> list[Launch]:
    """centre + weight * ((above + below) + (left + right)), zero outside, one fused rounding."""
    launches = []
    for width, height, weight, edges in (
        (8, 8, 0.25, False),
        (19, 11, -1.5, False),
        (1, 1, 2.0, False),
        (9, 20, 0.1, True),
    ):
        data = exact.floats(generator, width * height, edges=edges)
        padded = np.zeros((height + 2, width + 2), np.float32)
        padded[1:-1, 1:-1] = data.reshape(height, width)
        around = (padded[:-2, 1:-1] + padded[2:, 1:-1]) + (padded[1:-1, :-2] + padded[1:-1, 2:])
        want = exact.fma(np.float32(weight), around, padded[1:-1, 1:-1])
        args: list[Arg] = [
            inp("in", data), fresh("out", width * height, "float32"), s32("width", width), s32("height", height),
            f32("weight", weight),
        ]  # fmt: skip
        grid = (-(-width // 8), -(-height // 8), 1)
        launches.append(
            Launch("stencil", f"{width}x{height}", grid, (8, 8, 1), 0, args, expect={"out": expected(want.ravel())})
        )
    return launches


def call_args(generator: Generator) -> list[Launch]:
    """Two levels of calls.  Inputs stay small: a + 1 must not overflow."""
    launches = []
    for blocks, threads, n in SHAPES_1D:
        x = exact.ints(generator, n) >> np.int32(2)
        table = exact.ints(generator, 4, edges=True)
        sums, products = [], []
        for a in x.tolist():
            first = a + 3 * int(table[a & 3])
            second = a + 1 + first * int(table[3])
            sums.append(second - first)
            products.append(0.5 * (a & 0xFFFF) * 7)
        wants = {"sums": expected(exact.wrap(sums, np.int64)), "products": expected(np.array(products, np.float64))}
        launches.append(one_dim("call_args", n, (blocks, threads), {"x": x, "table": table}, wants))
    return launches


def local_structs(generator: Generator) -> list[Launch]:
    """Records sorted by key, earlier ones first among equals."""
    launches = []
    for blocks, threads, n in SHAPES_1D:
        x = exact.ints(generator, n, edges=True)
        keys, marks = [], []
        for v in x.tolist():
            state = u32w(v)
            items = []
            for rank in range(8):
                state = u32w(state * 1103515245 + 12345)
                items.append(((state >> 8) % 1000, rank, state & 255, state >> 24))
            items.sort(key=lambda item: item[0])
            pick = (v >> 3) & 7
            keys.append(items[pick][0])
            marks.append(items[pick][1] * 65536 + items[7 - pick][2] * 256 + items[pick ^ 1][3])
        wants = {"keys": expected(np.array(keys, np.int32)), "marks": expected(np.array(marks, np.int32))}
        launches.append(one_dim("local_structs", n, (blocks, threads), {"x": x}, wants))
    return launches


def sync_count(generator: Generator) -> list[Launch]:
    """Counts over each block; threads past n count as zero."""
    launches = []
    for blocks, threads, n in SHAPES_1D:
        x = exact.ints(generator, n)
        if n > 200:
            x[128:256] &= 0x7FFFFFFF
            x[100] = 12345
        padded = np.zeros(blocks * threads, np.int32)
        padded[:n] = x
        rows = padded.reshape(blocks, threads)
        odd = (rows & 1).sum(axis=1)
        flags = (rows >= 0).all(axis=1) + 2 * (rows == 12345).any(axis=1)
        wants = {
            "counts": expected(np.repeat(odd, threads)[:n].astype(np.int32)),
            "flags": expected(np.repeat(flags, threads)[:n].astype(np.int32)),
        }
        launches.append(one_dim("sync_count", n, (blocks, threads), {"x": x}, wants))
    return launches


def dyn_shared(generator: Generator) -> list[Launch]:
    """Each chunk reversed, and differences of the high halves around it; 6 bytes of shared memory a thread."""
    launches = []
    for blocks, threads, n in SHAPES_1D:
        x = exact.ints(generator, n, edges=True)
        reverse, near = [], []
        for start in range(0, n, threads):
            chunk = x[start : start + threads]
            high = chunk >> np.int32(16)
            reverse.append(chunk[::-1])
            near.append((high - np.roll(high, -1)).astype(np.int16))
        args: list[Arg] = [inp("x", x), fresh("out", n, "int32"), fresh("near", n, "int16"), s32("n", n)]
        wants = {
            "out": expected(np.concatenate([np.zeros(0, np.int32), *reverse])),
            "near": expected(np.concatenate([np.zeros(0, np.int16), *near])),
        }
        launches.append(Launch("dyn_shared", f"n={n}", *line(blocks, threads), 6 * threads, args, expect=wants))
    return launches


def const_struct(generator: Generator) -> list[Launch]:
    """Structures in constant memory as their initialiser has them."""
    rules = ((1, 2, -1, 0xFF, 5000000000), (-7, 0, 1, 0xFFFF, -1), (100, 7, -1, 0x0F0F, 1 << 40), (0, 31, 1, 0x8001, 0),
             (-2147483647, 1, 1, 1, -9), (42, 16, -1, 0x7FFF, 3))  # fmt: skip
    launches = []
    for blocks, threads, n in SHAPES_1D:
        x = exact.ints(generator, n, edges=True)
        narrow, wide = [], []
        for v in x.tolist():
            add, shift, sign, mask, big = rules[u32w(v) % 6]
            narrow.append(((s32w(v + add) >> shift) ^ mask) * sign)
            wide.append(big * v + 0x0123456789ABCDEF)
        wants = {"out": expected(exact.wrap(narrow, np.int32)), "wide": expected(exact.wrap(wide, np.int64))}
        launches.append(one_dim("const_struct", n, (blocks, threads), {"x": x}, wants))
    return launches


def last_block(generator: Generator) -> list[Launch]:
    """Block sums and their total; the counter goes back to zero."""
    launches = []
    for blocks, threads, n in ((1, 32, 0), (1, 32, 1), (4, 64, 200), (3, 128, 384), (5, 32, 160)):
        x = exact.ints(generator, n)
        padded = np.zeros(blocks * threads, np.int32)
        padded[:n] = x
        sums = padded.reshape(blocks, threads).sum(axis=1, dtype=np.int32)
        args: list[Arg] = [inp("x", x), fresh("parts", blocks, "int32"), fresh("total", 1, "int32"), s32("n", n)]
        wants = {"parts": expected(sums), "total": expected(np.array([sums.sum(dtype=np.int32)], np.int32))}
        zero = np.zeros(1, np.uint32)
        launches.append(
            Launch(
                "last_block",
                f"n={n}",
                *line(blocks, threads),
                0,
                args,
                {"lb_done": zero},
                wants,
                {"lb_done": Expected(zero)},
            )
        )
    return launches


def vec_access(generator: Generator) -> list[Launch]:
    """Records of four ints and four shorts."""
    launches = []
    for blocks, threads, n in SHAPES_1D:
        quads = exact.ints(generator, 4 * n, edges=True)
        duos = generator.integers(-32768, 32768, 4 * n, dtype=np.int16)
        q, s = quads.reshape(n, 4), duos.reshape(n, 4).astype(np.int32)
        wants = {
            "out": columns(q[:, 3], q[:, 0] + q[:, 2], q[:, 1] ^ s[:, 0], q[:, 2] - s[:, 3]),
            "packed": columns(
                duos[3::4], (s[:, 2] + q[:, 0]).astype(np.int16), duos[0::4], (q[:, 1] >> np.int32(16)).astype(np.int16)
            ),
        }
        launches.append(one_dim("vec_access", n, (blocks, threads), {"in": quads, "small": duos}, wants))
    return launches


def bitonic(generator: Generator) -> list[Launch]:
    """Each chunk sorted."""
    launches = []
    for blocks, threads, n in ((1, 32, 0), (1, 64, 64), (3, 32, 96), (1, 256, 256), (2, 1, 2), (1, 2, 2)):
        data = exact.ints(generator, n, edges=True)
        want = np.sort(data.reshape(-1, threads), axis=1).ravel()
        args: list[Arg] = [out("data", data), s32("n", n)]
        launches.append(Launch("bitonic", f"n={n}", *line(blocks, threads), 0, args, expect={"data": expected(want)}))
    return launches


CONTROL = (
    many_regs, nested_div, early_return, switch_loop, while_break, vote, match_all, shuffles, cas_loop, atomics,
    tickets,
    index3d, transpose, stencil, call_args, local_structs, sync_count, dyn_shared, const_struct, last_block, vec_access,
    bitonic,
)  # fmt: skip
