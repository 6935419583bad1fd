"""Division by constants: the factors by integers, the kernels in the simulator against Python."""

from __future__ import annotations

import random

import numpy as np
import pytest

from orchestrator.api import compile_ptx
from stages.lower.math import constdiv
from stages.simulate import Device

EDGES = (
    0,
    1,
    2,
    5,
    6,
    7,
    9,
    10,
    99,
    100,
    0x7FFF,
    0x8000,
    0xFFFE,
    0xFFFF,
    0x10000,
    0x7FFFFFFE,
    0x7FFFFFFF,
    0x80000000,
    0x80000001,
    0xFFFFFF9C,
    0xFFFFFFF9,
    0xFFFFFFFE,
    0xFFFFFFFF,
)


def divisors(size: int) -> list[int]:
    rng = random.Random(5)
    near = [(1 << k) + e for k in range(2, 32) for e in (-1, 1, 3)]
    return sorted(
        {
            d
            for d in (
                *range(3, 200),
                *near,
                *(rng.randrange(3, 1 << k) for k in range(3, 33) for _ in range(size // 400)),
            )
            if d & (d - 1)
        }
    )


def numerators(d: int, top: int, rng: random.Random) -> list[int]:
    """The ends of the range, and both sides of the first, the last and some multiple of ``d``."""
    return [
        0,
        1,
        top,
        top - 1,
        *(
            n
            for k in (1, top // d, max(0, top // d - 1), rng.randrange(top // d + 1))
            for n in (k * d - 1, k * d, k * d + d - 1)
            if 0 <= n <= top
        ),
    ]


def test_unsigned_factors(size: int) -> None:
    rng = random.Random(6)
    kinds = set()
    for d in divisors(size):
        m = constdiv.unsigned(d)
        kinds.add((m.more, m.before > 0))
        for n in numerators(d, (1 << 32) - 1, rng):
            assert (n >> m.before) * (m.factor + (m.more << 32)) >> 32 + m.after == n // d, (n, d)
    assert kinds == {(False, False), (False, True), (True, False)}


def test_signed_factors(size: int) -> None:
    rng = random.Random(7)
    for d in divisors(size):
        if d < 1 << 31:
            m = constdiv.signed(d)
            for n in numerators(d, 1 << 31, rng):
                for x in (n, -n):
                    assert (x * m.factor >> 32 + m.after) + (x < 0) == (n // d if x >= 0 else -(n // d)), (x, d)


def want(op: str, kind: str, n: int, d: int) -> int:
    bits = int(kind[1:])
    if d == 0:
        return (1 << bits) - 1
    q = abs(n) // abs(d) * (-1 if (n < 0) != (d < 0) else 1)
    return (q if op == "div" else n - q * d) % (1 << bits)


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_120"])
@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32"])
def test_kernels(kind: str, arch: str) -> None:
    """Quotients and remainders by constants of every kind, without the reciprocal of a general division."""
    bits, sign = int(kind[1:]), kind[0] == "s"
    half = 1 << bits - 1
    chosen = [
        1,
        2,
        3,
        6,
        7,
        10,
        28,
        64,
        100,
        641,
        1000,
        half - 1,
        half >> 1,
        *((-1, -2, -7, -1000, -half) if sign else (half, half + 1, 2 * half - 1)),
        0,
    ]
    lines = []
    for k, d in enumerate(chosen):
        for j, op in enumerate(("div", "rem")):
            lines += [f"{op}.{kind} d, x, {d};", f"st.global.{kind} [q+{(2 * k + j) * 4}], d;"]
    row = 8 * len(chosen)
    text = (
        f".version 8.7\n.target {arch}\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b)\n{{\n.reg "
        f".{kind} x, d; .reg .b64 p, q, o; .reg .b32 t;\n"
        f"ld.param.u64 p, [a]; ld.param.u64 q, [b]; mov.u32 t, %tid.x; mul.wide.u32 o, t, 4; add.s64 p, p, o; "
        f"mul.wide.u32 o, t, {row}; add.s64 q, q, o;\nld.global.{kind} x, [p];\n" + "\n".join(lines) + "\nret;\n}\n"
    )
    rng = np.random.default_rng(8)
    x = np.concatenate([np.array(EDGES, np.uint32), rng.integers(0, 1 << 32, 41, dtype=np.uint32)])
    got = np.zeros((x.size, len(chosen), 2), np.uint32)
    Device(compile_ptx(text, arch)).launch("k", 1, x.size, [x, got])
    for i, word in enumerate(x.tolist()):
        n = word & (1 << bits) - 1
        n -= 2 * half if sign and n & half else 0
        for k, d in enumerate(chosen):
            assert [want(op, kind, n, d) for op in ("div", "rem")] == (got[i, k] & (1 << bits) - 1).tolist(), (n, d)
