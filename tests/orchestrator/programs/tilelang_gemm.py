"""TileLang lowers a matrix product to CUDA and has nvcc compile it, without a GPU:
`python tilelang_gemm.py FOLDER ARCH...`, with CUDA_HOME a toolkit. Prints name and size."""

from __future__ import annotations

import sys
from pathlib import Path

import tilelang
import tilelang.language as T
from tilelang.contrib import nvcc


def gemm(m: int, n: int, k: int):
    @T.prim_func
    def main(a: T.Tensor((m, k), "float16"), b: T.Tensor((k, n), "float16"), c: T.Tensor((m, n), "float32")):
        with T.Kernel(n // 64, m // 64, threads=128) as (bx, by):
            sa = T.alloc_shared((64, 32), "float16")
            sb = T.alloc_shared((32, 64), "float16")
            acc = T.alloc_fragment((64, 64), "float32")
            T.clear(acc)
            for i in T.Pipelined(k // 32, num_stages=2):
                T.copy(a[by * 64, i * 32], sa)
                T.copy(b[i * 32, bx * 64], sb)
                T.gemm(sa, sb, acc)
            T.copy(acc, c[by * 64, bx * 64])

    return main


folder = Path(sys.argv[1])
for arch in sys.argv[2:]:
    target = tilelang.tvm.target.Target({"kind": "cuda", "arch": arch})
    with target:
        made = tilelang.lower(gemm(256, 256, 256), target=target)
    path = folder / f"gemm_{arch}.cubin"
    include = [f"-I{Path(tilelang.__file__).parent / part}" for part in ("src", "3rdparty/cutlass/include")]
    nvcc.compile_cuda(made.kernel_source, "cubin", [f"-arch={arch}"], [*include, "-std=c++17"], path_target=str(path))
    print(path.name, path.stat().st_size, b"an open ptxas" in path.read_bytes())
