"""The inline sequences for IEEE division, reciprocal and square root, as lowering emits them, against exact
arithmetic.

MUFU is off by up to one unit in the last place (f32) or two units of its 20-bit seed (f64) at random: the results must
not depend on it. The enumerations below include every hard case of f32.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from . import exact, values
from .exact import F32, F64, MODES, Format
from .sasseval import Evaluator, one_op

Array = Any


def run(ev: Evaluator, f: Format, want: Any, operands: list[tuple[int, ...]]) -> None:
    bad = []
    for ops in operands:
        got, right = ev.run(*ops), want(*ops)
        if not (f.is_nan(got) if right is None else got == right):
            bad.append((hex(got), right if right is None else hex(right), [hex(o) for o in ops]))
    assert not bad, f"{len(bad)} of {len(operands)} wrong (got, want, operands): {bad[:5]}"


def pairs(f: Format, n: int, seed: int) -> list[tuple[int, ...]]:
    rng = np.random.default_rng(seed)
    a, b = values.pairs(f)
    pick = rng.permutation(a.size)[: n // 4]
    c, d = values.near_midpoint_quotients(f, rng, n // 2)
    e, g = values.random_bits(f, rng, n // 4), values.random_bits(f, rng, n // 4)
    return list(zip(np.concatenate([a[pick], c, e]).tolist(), np.concatenate([b[pick], d, g]).tolist(), strict=True))


def singles(f: Format, n: int, seed: int) -> list[tuple[int, ...]]:
    rng = np.random.default_rng(seed)
    one = f.bias << (f.p - 1)
    near = (one + rng.integers(0, 1 << f.p, n // 2, dtype=np.uint64)).tolist()
    return [(x,) for x in (*values.specials(f), *near, *values.random_bits(f, rng, n // 2).tolist())]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ftz", [False, True])
@pytest.mark.parametrize("op", ["div", "rcp", "sqrt"])
def test_f32_sequences_are_exact(op: str, mode: str, ftz: bool, size: int) -> None:
    text = f"{op}.{mode}{'.ftz' if ftz else ''}.f32 $d, $0" + (", $1" if op == "div" else "")
    ev = Evaluator(one_op(text, "f32", ["f32"] * (2 if op == "div" else 1), "sm_90"), 1)
    ops = pairs(F32, size // 2, 21) if op == "div" else singles(F32, size // 2, 22)
    one = 0x3F800000
    want = {
        "div": lambda a, b: exact.div(F32, a, b, mode, ftz),
        "rcp": lambda b: exact.div(F32, one, b, mode, ftz),
        "sqrt": lambda a: exact.sqrt(F32, a, mode, ftz),
    }[op]
    run(ev, F32, want, ops)
    assert ev.calls < len(ops), "everything takes the slow path"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("op", ["div", "rcp", "sqrt"])
def test_f64_sequences_are_exact(op: str, mode: str, size: int) -> None:
    text = f"{op}.{mode}.f64 $d, $0" + (", $1" if op == "div" else "")
    ev = Evaluator(one_op(text, "f64", ["f64"] * (2 if op == "div" else 1), "sm_80"), 2)
    ops = pairs(F64, size // 2, 23) if op == "div" else singles(F64, size // 2, 24)
    one = 0x3FF << 52
    want = {
        "div": lambda a, b: exact.div(F64, a, b, mode),
        "rcp": lambda b: exact.div(F64, one, b, mode),
        "sqrt": lambda a: exact.sqrt(F64, a, mode),
    }[op]
    run(ev, F64, want, ops)
    assert ev.calls < len(ops) // 2, "most operands take the slow path"
