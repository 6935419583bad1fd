"""Triton compiles three kernels ahead of time, without a GPU: `python triton_aot.py SM...`. Prints name, SM, size of
the cubin."""

from __future__ import annotations

import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n) + tl.load(y + at, at < n), at < n)


@triton.jit
def softmax(x, out, stride, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.load(x + tl.program_id(0) * stride + at, at < n, -float("inf"))
    e = tl.exp(row - tl.max(row, 0))
    tl.store(out + tl.program_id(0) * stride + at, e / tl.sum(e, 0), at < n)


@triton.jit
def matmul(a, b, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, p = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    acc = tl.zeros((M, N), tl.float32)
    for at in range(0, k, K):
        acc += tl.dot(tl.load(a + i[:, None] * k + at + p[None, :]), tl.load(b + (at + p[:, None]) * N + j[None, :]))
    tl.store(c + i[:, None] * N + j[None, :], acc)


CASES = (
    (add, {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 1024}),
    (softmax, {"x": "*fp32", "out": "*fp32", "stride": "i32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 1024}),
    (
        matmul,
        {"a": "*fp16", "b": "*fp16", "c": "*fp32", "k": "i32", "M": "constexpr", "N": "constexpr", "K": "constexpr"},
        {"M": 64, "N": 64, "K": 32},
    ),
)

for sm in map(int, sys.argv[1:]):
    for fn, signature, constants in CASES:
        made = triton.compile(
            ASTSource(fn=fn, signature=signature, constexprs=constants), target=GPUTarget("cuda", sm, 32)
        )
        cubin = made.asm["cubin"]
        assert cubin[:4] == b"\x7fELF" and fn.__name__.encode() in cubin
        print(fn.__name__, sm, len(cubin), b"an open ptxas" in cubin)
