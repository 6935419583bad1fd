"""One-instruction kernels over arrays: PTX text, operands, running in the simulator, comparing with the reference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import values
from .reference import ANY, BITS, FORMATS, Case, Halves, Near, Result, to_float

Array = Any
DTYPE = {16: np.uint16, 32: np.uint32, 64: np.uint64}


def kernel_text(case: Case, name: str) -> str:
    """Thread i loads operand i of every array, stores result i. Parameters: result, operands."""
    params = ", ".join(f".param .u64 p{k}" for k in range(len(case.srcs) + 1))
    n = BITS[case.dst]
    lines = [f".reg .b{n} d;", ".reg .b32 t, c, n, i;", ".reg .b64 q, w;"]
    lines += ["mov.u32 t, %tid.x;", "mov.u32 c, %ctaid.x;", "mov.u32 n, %ntid.x;", "mad.lo.u32 i, c, n, t;"]
    text = case.op.replace("$d", "d")
    for k, s in enumerate(case.srcs):
        b = BITS[s]
        lines += [
            f".reg .b{b} a{k};",
            f"ld.param.u64 q, [p{k + 1}];",
            f"mul.wide.u32 w, i, {b // 8};",
            "add.u64 q, q, w;",
        ]
        lines += [f"ld.global.b{b} a{k}, [q];"]
        text = text.replace(f"${k}", f"a{k}")
    lines += [text if text.endswith("}") else text + ";"]
    lines += [
        "ld.param.u64 q, [p0];",
        f"mul.wide.u32 w, i, {n // 8};",
        "add.u64 q, q, w;",
        f"st.global.b{n} [q], d;",
        "ret;",
    ]
    return f".visible .entry {name}({params})\n{{\n" + "\n".join(lines) + "\n}\n"


def module_text(cases: Sequence[Case], arch: str) -> str:
    return f".version 8.8\n.target {arch}\n.address_size 64\n" + "".join(
        kernel_text(c, f"k{i}") for i, c in enumerate(cases)
    )


def operands(case: Case, n: int, seed: int) -> list[Array]:
    """``n`` operands per source: special values in all (or random) combinations, then random ones and hard
    quotients."""
    rng = np.random.default_rng(seed)
    columns: list[Array] = []
    for s in case.srcs:
        bits = BITS[s]
        half = s.removesuffix("x2")
        if half in FORMATS:
            f = FORMATS[half]
            pool = np.array(values.specials(f), np.uint64)
            x = np.concatenate([rng.choice(pool, n // 2), values.random_bits(f, rng, n - n // 2)])
            if s.endswith("x2"):
                x = x | np.roll(x, 7) << np.uint64(16)
        else:
            edge = [
                0,
                1,
                2,
                3,
                5,
                7,
                (1 << bits) - 1,
                (1 << bits) - 2,
                1 << (bits - 1),
                (1 << (bits - 1)) - 1,
                (1 << (bits - 1)) + 1,
            ]
            edge += [(1 << k) + d for k in range(2, bits) for d in (-1, 0, 1)]
            x = np.concatenate(
                [
                    rng.choice(np.array(edge, np.uint64), n // 2),
                    rng.integers(0, 1 << min(bits, 63), n - n // 2, dtype=np.uint64),
                ]
            )
            x = np.where(rng.integers(0, 3, n) == 0, x >> rng.integers(0, bits, n).astype(np.uint64), x)
            if bits < 64:
                x &= np.uint64((1 << bits) - 1)
        columns.append(rng.permutation(x))
    if case.name.startswith("div.") and len(case.srcs) == 2 and case.srcs[0] in FORMATS:
        a, b = values.near_midpoint_quotients(FORMATS[case.srcs[0]], rng, n // 4)
        columns[0][: n // 4], columns[1][: n // 4] = a, b
    return [c.astype(DTYPE[BITS[s]]) for c, s in zip(columns, case.srcs, strict=True)]


def matches(t: str, got: int, want: Result) -> bool:
    """Does ``got`` (bits of type ``t``) match the reference?"""
    if isinstance(want, Halves):
        half = t.removesuffix("x2")
        return matches(half, got & 0xFFFF, want.low) and matches(half, got >> 16, want.high)
    if want is ANY:
        return True
    f = FORMATS.get(t)
    if isinstance(want, Near):
        assert f is not None
        v = to_float(f, got)
        if math.isinf(want.abs_):
            return True
        if math.isinf(want.value) or math.isinf(v):
            return v == want.value or (math.isinf(v) and abs(want.value) > to_float(f, f.inf - 1) * (1 - want.rel))
        return not math.isnan(v) and abs(v - want.value) <= max(want.rel * abs(want.value), want.abs_)
    if want is None:
        return f.is_nan(got) if f is not None else (got & 0x7FFFFFFF) > 0x7F800000
    return got == want


def failures(device: Any, kernel: str, case: Case, n: int, seed: int) -> list[str]:
    """Run a kernel of a loaded module; returns differences from the reference, as text."""
    ops = operands(case, n, seed)
    out = np.zeros(n, DTYPE[BITS[case.dst]])
    device.launch(kernel, n // 64, 64, [out, *ops])
    bad = []
    for i, got in enumerate(out.tolist()):
        args = [int(o[i]) for o in ops]
        want = case.ref(*args)
        if not matches(case.dst, got, want):
            bad.append(f"{[hex(a) for a in args]}: got {got:#x}, want {hex(want) if isinstance(want, int) else want}")
    return bad
