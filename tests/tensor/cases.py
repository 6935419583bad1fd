"""Launches of the kernels of ptx/, with numpy's results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from stages.simulate.tensor_maps import tensor_map

Arr = NDArray[Any]


@dataclass(slots=True)
class Case:
    """A launch; ``out`` must equal ``want`` within ``error`` times its greatest element."""

    kernel: str
    grid: tuple[int, ...]
    block: int
    args: list[Any]
    out: Arr
    want: Arr
    shared: int = 0
    error: float = 0.0
    kwargs: dict[str, Any] = field(default_factory=dict)

    def off(self) -> str:
        """How the result differs, "" if it does not."""
        got, want = self.out.astype(np.float64), self.want.astype(np.float64)
        error = float(np.abs(got - want).max())
        most = self.error * float(np.abs(want).max())
        return "" if error <= most else f"{self.kernel}: off by {error:.4g}, allowed {most:.4g}"


#: kernel -> element type, bytes of a row of a tile, swizzle, type of the sums.
_GEMMS: Final[dict[str, tuple[Any, int, int, Any]]] = {
    "gemm_f16": (np.float16, 128, 128, np.float32),
    "gemm_bf16": (ml_dtypes.bfloat16, 64, 64, np.float32),
    "gemm_tf32": (np.float32, 32, 32, np.float32),
    "gemm_e4m3": (ml_dtypes.float8_e4m3fn, 128, 128, np.float32),
    "gemm_s8": (np.int8, 64, 64, np.int32),
}


def _integers(g: np.random.Generator, shape: tuple[int, ...], type_: Any, most: int = 8) -> Arr:
    """Whole numbers, so that the order of additions does not change a sum."""
    return np.asarray(g.integers(-most, most + 1, shape)).astype(type_)


def _plain(x: Arr) -> Arr:
    """Bytes for types that a map does not have."""
    return x.view(np.uint8) if x.dtype.itemsize == 1 else x


def gemm(name: str, g: np.random.Generator, m: int, n: int, k: int) -> Case:
    """A and B with K contiguous, tiles of 64 x 64."""
    type_, row, swizzle, sums = _GEMMS[name]
    a, b = _integers(g, (m, k), type_), _integers(g, (n, k), type_)
    box = (row // a.itemsize, 64)
    maps = [tensor_map(_plain(x), box, swizzle=swizzle) for x in (a, b)]
    c = np.zeros((m, n), sums)
    want = a.astype(np.float64) @ b.astype(np.float64).T
    args = [*maps, c, np.int32(n), np.int32(k)]
    return Case(name, (n // 64, m // 64), 128, args, c, want, 3 * 2 * 64 * row)


def special(g: np.random.Generator, m: int, n: int, k: int) -> Case:
    """Producers, consumers, a cluster of two blocks, output by a map."""
    a, b = (_integers(g, (rows, k), ml_dtypes.bfloat16) for rows in (m, n))
    c = np.zeros((m, n), ml_dtypes.bfloat16)
    maps = [tensor_map(x, box, swizzle=128) for x, box in ((a, (64, 128)), (b, (64, 32)), (c, (64, 64)))]
    want = (a.astype(np.float64) @ b.astype(np.float64).T).astype(ml_dtypes.bfloat16)
    shared = 4 * (128 * 128 + 64 * 128) + 2 * 8192
    return Case("gemm_special", (m // 128, n // 64), 384, [*maps, np.int32(k)], c, want, shared)


def major(g: np.random.Generator, m: int, n: int, k: int) -> Case:
    """A and B with M and N contiguous, sums in halves."""
    a, b = (_integers(g, (k, rows), np.float16, 4) for rows in (m, n))
    c = np.zeros((m, n), np.float16)
    maps = [tensor_map(x, (64, 64), swizzle=128) for x in (a, b)]
    want = a.astype(np.float64).T @ b.astype(np.float64)
    args = [*maps, c, np.int32(n), np.int32(k)]
    return Case("gemm_major", (n // 64, m // 64), 128, args, c, want, 2 * 8192)


def split(g: np.random.Generator, m: int, n: int, k: int) -> Case:
    """Without a swizzle, A in registers; the two halves of K are added in global memory."""
    a, b = (_integers(g, (rows, k), np.float16) for rows in (m, n))
    c = np.ones((m, n), np.float32)
    want = 1 + a.astype(np.float64) @ b.astype(np.float64).T
    args = [a, b, tensor_map(c, (64, 64)), np.int32(k), np.int32(k // 2)]
    return Case("gemm_split", (n // 64, m // 64, 2), 128, args, c, want)


def attention(g: np.random.Generator, heads: int, queries: int, keys: int) -> Case:
    """Softmax of scaled products, times values."""
    q, k, v = (g.standard_normal((heads, n, 64)).astype(np.float16) for n in (queries, keys, keys))
    out = np.zeros((heads, queries, 64), np.float32)
    maps = [tensor_map(x, (64, 64, 1), swizzle=128) for x in (q, k, v)]
    wide = [x.astype(np.float64) for x in (q, k, v)]
    s = wide[0] @ wide[1].transpose(0, 2, 1) / 8
    p = np.exp(s - s.max(-1, keepdims=True))
    want = p / p.sum(-1, keepdims=True) @ wide[2]
    return Case("attention", (queries // 64, heads), 128, [*maps, out, np.int32(keys)], out, want, 3 * 8192, 1e-3)


def memory(g: np.random.Generator, m: int, n: int, k: int) -> Case:
    """sm_100a: sums in tensor memory, K contiguous."""
    a, b = (_integers(g, (rows, k), np.float16) for rows in (m, n))
    c = np.zeros((m, n), np.float32)
    maps = [tensor_map(a, (64, 128), swizzle=128), tensor_map(b, (64, 64), swizzle=128)]
    want = a.astype(np.float64) @ b.astype(np.float64).T
    args = [*maps, c, np.int32(n), np.int32(k)]
    return Case("gemm5_f16", (n // 64, m // 128), 128, args, c, want, 2 * (128 * 128 + 64 * 128))


def memory_major(g: np.random.Generator, m: int, n: int, k: int) -> Case:
    """sm_100a: M and N contiguous, 64 rows."""
    a, b = (_integers(g, (k, rows), ml_dtypes.bfloat16) for rows in (m, n))
    c = np.zeros((m, n), np.float32)
    maps = [tensor_map(x, (32, 32), swizzle=64) for x in (a, b)]
    want = a.astype(np.float64).T @ b.astype(np.float64)
    args = [*maps, c, np.int32(n), np.int32(k)]
    return Case("gemm5_major", (n // 64, m // 64), 128, args, c, want, 4 * 2048)


Maker = Callable[[np.random.Generator], Case]


def _gemm_of(name: str, m: int, k: int) -> Maker:
    return lambda g: gemm(name, g, m, m, k)


#: kernel -> file, a small launch, one for the command.
KERNELS: Final[dict[str, tuple[str, Maker, Maker]]] = {
    **{name: ("gemm", _gemm_of(name, 64, 256), _gemm_of(name, 256, 256)) for name in _GEMMS},
    "gemm_special": ("special", lambda g: special(g, 256, 64, 320), lambda g: special(g, 256, 256, 256)),
    "gemm_major": ("major", lambda g: major(g, 64, 64, 128), lambda g: major(g, 256, 256, 256)),
    "gemm_split": ("major", lambda g: split(g, 64, 64, 128), lambda g: split(g, 256, 256, 256)),
    "gemm5_f16": ("memory_100", lambda g: memory(g, 128, 64, 192), lambda g: memory(g, 256, 256, 256)),
    "gemm5_major": ("memory_100", lambda g: memory_major(g, 64, 64, 64), lambda g: memory_major(g, 256, 256, 256)),
    "attention": ("major", lambda g: attention(g, 1, 64, 128), lambda g: attention(g, 2, 128, 256)),
}
