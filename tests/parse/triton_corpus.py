"""Makes PTX with Triton (from PyPI, in any environment that has it; no GPU is needed).

    python tests/parse/triton_corpus.py FOLDER [--archs 80,90,100,120]

The kernels are our own.  `python -m tests.parse.corpus_check FOLDER` compares the files.
"""

from __future__ import annotations

import argparse
import inspect
from pathlib import Path
from typing import Any

import triton  # type: ignore[import-not-found,unused-ignore]
import triton.language as tl  # type: ignore[import-not-found,unused-ignore]


@triton.jit  # type: ignore[misc,untyped-decorator,unused-ignore]
def vadd(x, y, o, n, B: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit  # type: ignore[misc,untyped-decorator,unused-ignore]
def softmax(o, x, s, n, B: tl.constexpr):  # type: ignore[no-untyped-def]
    r = tl.program_id(0)
    c = tl.arange(0, B)
    v = tl.load(x + r * s + c, mask=c < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(o + r * s + c, e / tl.sum(e, 0), mask=c < n)


@triton.jit  # type: ignore[misc,untyped-decorator,unused-ignore]
def matmul(a, b, c, K, sa, sb, sc, B: tl.constexpr, D: tl.constexpr):  # type: ignore[no-untyped-def]
    m = tl.program_id(0) * B + tl.arange(0, B)
    n = tl.program_id(1) * B + tl.arange(0, B)
    k = tl.arange(0, D)
    pa = a + m[:, None] * sa + k[None, :]
    pb = b + k[:, None] * sb + n[None, :]
    acc = tl.zeros((B, B), dtype=tl.float32)
    for _ in range(0, K, D):
        acc = tl.dot(tl.load(pa), tl.load(pb), acc)
        pa += D
        pb += D * sb
    tl.store(c + m[:, None] * sc + n[None, :], acc)


@triton.jit  # type: ignore[misc,untyped-decorator,unused-ignore]
def norm(x, w, o, s, n, eps, B: tl.constexpr):  # type: ignore[no-untyped-def]
    c = tl.arange(0, B)
    v = tl.load(x + tl.program_id(0) * s + c, mask=c < n, other=0.0).to(tl.float32)
    d = tl.where(c < n, v - tl.sum(v, 0) / n, 0.0)
    y = d / tl.sqrt(tl.sum(d * d, 0) / n + eps)
    tl.store(o + tl.program_id(0) * s + c, (y * tl.load(w + c, mask=c < n)).to(tl.float16), mask=c < n)


@triton.jit  # type: ignore[misc,untyped-decorator,unused-ignore]
def histogram(x, h, n, B: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(h + tl.load(x + i, mask=i < n, other=0), 1, mask=i < n)


@triton.jit  # type: ignore[misc,untyped-decorator,unused-ignore]
def locks(x, o, B: tl.constexpr):  # type: ignore[no-untyped-def]
    while tl.atomic_cas(x, 0, 1) == 1:
        pass
    i = tl.arange(0, B)
    tl.atomic_max(o + i, i)
    tl.atomic_xchg(x, 0)


@triton.jit  # type: ignore[misc,untyped-decorator,unused-ignore]
def scan(x, o, B: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, B)
    tl.store(o + i, tl.cumsum(tl.load(x + i), 0))


@triton.jit  # type: ignore[misc,untyped-decorator,unused-ignore]
def order(x, o, B: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, B)
    tl.store(o + i, tl.sort(tl.load(x + i)))


@triton.jit  # type: ignore[misc,untyped-decorator,unused-ignore]
def functions(x, o, n, B: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    y = (
        0.5 * v * (1 + tl.erf(v))
        + tl.sin(v) * tl.cos(v)
        + tl.log2(v)
        + tl.exp2(v)
        + tl.rsqrt(v)
        + tl.abs(v)
        + tl.floor(v)
        + tl.ceil(v)
    )
    tl.store(o + i, tl.fma(y, v, tl.maximum(v, 0.0)) + tl.rand(7, i), mask=i < n)


@triton.jit  # type: ignore[misc,untyped-decorator,unused-ignore]
def casts(x, o, B: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, B)
    v = tl.load(x + i)
    w = (
        v.to(tl.float8e5).to(tl.float32)
        + v.to(tl.bfloat16).to(tl.float32)
        + v.to(tl.float16).to(tl.float32)
        + v.to(tl.int8).to(tl.float32)
    )
    tl.store(o + i, w + v.to(tl.int64).to(tl.float32) + v.to(tl.float64).to(tl.float32))


@triton.jit  # type: ignore[misc,untyped-decorator,unused-ignore]
def turn(x, o, s, B: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, B)
    tl.store(o + i[:, None] * s + i[None, :], tl.trans(tl.load(x + i[:, None] * s + i[None, :])))


def jobs() -> list[tuple[str, Any, dict[str, str], dict[str, int]]]:
    """Names, kernels, types of arguments, constants."""
    out: list[tuple[str, Any, dict[str, str], dict[str, int]]] = []
    for t in ("fp32", "fp16", "bf16", "i8", "i64", "fp64"):
        out.append((f"vadd_{t}", vadd, {"x": f"*{t}", "y": f"*{t}", "o": f"*{t}", "n": "i32"}, {"B": 1024}))
    for t, b, d in (
        ("fp16", 64, 32),
        ("bf16", 128, 64),
        ("fp32", 32, 16),
        ("i8", 64, 64),
        ("fp16", 128, 64),
        ("fp8e5", 64, 64),
    ):
        acc = "*i32" if t == "i8" else "*fp32"
        out.append(
            (
                f"matmul_{t}_{b}",
                matmul,
                {"a": f"*{t}", "b": f"*{t}", "c": acc, "K": "i32", "sa": "i32", "sb": "i32", "sc": "i32"},
                {"B": b, "D": d},
            )
        )
    out.append(("softmax", softmax, {"o": "*fp32", "x": "*fp32", "s": "i32", "n": "i32"}, {"B": 2048}))
    out.append(
        ("norm", norm, {"x": "*fp16", "w": "*fp16", "o": "*fp16", "s": "i32", "n": "i32", "eps": "fp32"}, {"B": 1024})
    )
    out.append(("histogram", histogram, {"x": "*i32", "h": "*i32", "n": "i32"}, {"B": 256}))
    out.append(("locks", locks, {"x": "*i32", "o": "*i32"}, {"B": 128}))
    out.append(("scan", scan, {"x": "*fp32", "o": "*fp32"}, {"B": 1024}))
    out.append(("order", order, {"x": "*i32", "o": "*i32"}, {"B": 256}))
    out.append(("functions", functions, {"x": "*fp32", "o": "*fp32", "n": "i32"}, {"B": 512}))
    out.append(("casts", casts, {"x": "*fp32", "o": "*fp32"}, {"B": 512}))
    out.append(("turn", turn, {"x": "*fp16", "o": "*fp16", "s": "i32"}, {"B": 64}))
    return out


def main() -> None:
    """Command line."""
    from triton.backends.compiler import GPUTarget  # type: ignore[import-not-found,unused-ignore]
    from triton.compiler import ASTSource  # type: ignore[import-not-found,unused-ignore]

    parser = argparse.ArgumentParser(description=inspect.cleandoc(__doc__ or ""))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--archs", default="80,90,100,120")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for arch in args.archs.split(","):
        for name, kernel, types, constants in jobs():
            signature = {**types, **dict.fromkeys(constants, "constexpr")}
            try:
                built = triton.compile(
                    ASTSource(fn=kernel, signature=signature, constexprs=constants),
                    target=GPUTarget("cuda", int(arch), 32),
                )
            except Exception as e:  # a type or shape that this Triton does not support for this target
                print(f"{name} sm_{arch}: {type(e).__name__}: {str(e).splitlines()[0][:100] if str(e) else ''}")
                continue
            (args.folder / f"{name}_sm_{arch}.ptx").write_text(built.asm["ptx"])


if __name__ == "__main__":
    main()
