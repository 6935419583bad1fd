"""Launches and expected results of small loops written in PTX without unrolling by any compiler: they show the work of
the loop passes."""

from __future__ import annotations

import numpy as np

from tests.kernels import exact
from tests.kernels.corpus_arith import one_dim
from tests.kernels.model import Array, Buffer, Expected, KernelSpec, Launch, Scalar, check, expected, u32

__all__ = ["CASES", "Buffer", "Expected", "KernelSpec", "Launch", "Scalar", "check"]

Generator = np.random.Generator

#: (blocks, threads, n, rounds): none, one, up to a remainder of each size, many.
PLANS = (
    (1, 32, 31, 0),
    (1, 32, 32, 1),
    (1, 64, 40, 2),
    (1, 64, 64, 3),
    (2, 32, 50, 4),
    (1, 32, 32, 7),
    (1, 64, 64, 17),
    (2, 32, 64, 64),
)


def _launch(name: str, plan: tuple[int, int, int, int], inputs: dict[str, Array], out: Array) -> Launch:
    blocks, threads, n, k = plan
    launch = one_dim(name, n, (blocks, threads), inputs, {"out": expected(out)}, [u32("k", k)])
    return Launch(launch.entry, f"n={n} k={k}", launch.grid, launch.block, 0, launch.args, expect=launch.expect)


def loop_dot(g: Generator) -> list[Launch]:
    """Fused products in order."""
    launches = []
    for plan in PLANS:
        n, k = plan[2:]
        a, b = exact.floats(g, n * k).reshape(n, k), exact.floats(g, k * n).reshape(k, n)
        s = np.zeros(n, np.float32)
        for j in range(k):
            s = exact.fma(a[:, j], b[j], s)
        launches.append(_launch("loop_dot", plan, {"a": a.ravel(), "b": b.ravel()}, s))
    return launches


def loop_stencil(g: Generator) -> list[Launch]:
    """k rows give k - 2."""
    launches = []
    for plan in PLANS:
        n, k = plan[2:]
        x = exact.floats(g, n * k).reshape(k, n)
        rows = [exact.fma(x[j + 1], np.float32(2), x[j] + x[j + 2]) * np.float32(0.25) for j in range(k - 2)]
        launches.append(
            _launch("loop_stencil", plan, {"x": x.ravel()}, np.concatenate([np.zeros(0, np.float32), *rows]))
        )
    return launches


def loop_sum(g: Generator) -> list[Launch]:
    """Sums that wrap; k words, of which thread i takes each 32nd from i on."""
    launches = []
    for plan in PLANS:
        n, k = plan[2], plan[3] * 13
        x = exact.ints(g, k, edges=True).view(np.uint32)
        want = [int(x[i::32].sum(dtype=np.uint64)) & 0xFFFFFFFF if i < k else 0 for i in range(n)]
        launches.append(_launch("loop_sum", (*plan[:3], k), {"x": x}, np.array(want, np.uint32)))
    return launches


def loop_matmul(g: Generator) -> list[Launch]:
    """16 x 16 times 16 x n."""
    launches = []
    for blocks, threads, n, _ in PLANS[:4]:
        a, x = exact.floats(g, 256).reshape(16, 16), exact.floats(g, 16 * n).reshape(16, n)
        rows = []
        for r in range(16):
            s = np.zeros(n, np.float32)
            for j in range(16):
                s = exact.fma(a[r, j], x[j], s)
            rows.append(s)
        launches.append(
            one_dim(
                "loop_matmul",
                n,
                (blocks, threads),
                {"a": a.ravel(), "x": x.ravel()},
                {"out": expected(np.concatenate(rows))},
            )
        )
    return launches


def loop_strlen(g: Generator) -> list[Launch]:
    """The text ends in a zero."""
    launches = []
    for blocks, threads, n, k in PLANS:
        s = g.integers(1, 256, n + k + 1, dtype=np.uint8)
        s[g.random(len(s)) < 0.08] = 0
        s[-1] = 0
        zeros = np.flatnonzero(s == 0)
        want = zeros[np.searchsorted(zeros, np.arange(n))] - np.arange(n)
        launches.append(
            one_dim("loop_strlen", n, (blocks, threads), {"s": s}, {"out": expected(want.astype(np.uint32))})
        )
    return launches


def loop_horner(g: Generator) -> list[Launch]:
    """k coefficients."""
    launches = []
    for plan in PLANS:
        n, k = plan[2:]
        x, co = exact.floats(g, n), exact.floats(g, k)
        s = np.zeros(n, np.float32)
        for c in co:
            s = exact.fma(s, x, np.full(n, c, np.float32))
        launches.append(_launch("loop_horner", plan, {"x": x, "co": co}, s))
    return launches


def loop_chase(g: Generator) -> list[Launch]:
    """A permutation."""
    launches = []
    for plan in PLANS:
        n, k = plan[2:]
        following = g.permutation(n).astype(np.uint32)
        at = np.arange(n, dtype=np.uint32)
        for _ in range(k):
            at = following[at]
        launches.append(_launch("loop_chase", plan, {"next": following}, at))
    return launches


CASES: dict[str, KernelSpec] = {
    maker.__name__: KernelSpec(maker.__name__, maker, "hand")
    for maker in (loop_dot, loop_stencil, loop_sum, loop_matmul, loop_strlen, loop_horner, loop_chase)
}
