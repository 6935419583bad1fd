"""Arms with loads from global memory: long ones go under predicates where their loads come together then."""

from __future__ import annotations

import pytest

from ir_format.flow import is_guarded
from tests.optimize.test_passes import HEAD, of, ops, optimized

SMS = ("sm_80", "sm_90")
LONG = "mul.lo.s32 %r4, %r3, %r3; xor.b32 %r3, %r4, %r1; " * 5  # with a load an arm of 12 instructions


def _arm(n: int, loads: int = 1) -> str:
    load = f"ld.global.u32 %r3, [%rd3+{64 * n}]; " * loads
    return f"setp.gt.u32 %p1, %r1, {n + 3}; @%p1 bra J{n}; {load}{LONG} add.u32 %r5, %r5, %r3; J{n}: "


@pytest.mark.parametrize("target", SMS)
@pytest.mark.parametrize(
    ("body", "branches"),
    [
        (_arm(0), 1),  # alone
        (_arm(0) + _arm(1), 0),  # one behind the other
        ("ld.global.u32 %r7, [%rd3+4]; " + _arm(0) + "add.u32 %r5, %r5, %r7; ", 0),  # one under way already
        ("ld.global.u32 %r1, [%rd3+4]; " + _arm(0), 1),  # which the branch waits for
        (_arm(0) + "ld.global.u32 %r7, [%rd3+4]; add.u32 %r5, %r5, %r7; ", 0),  # one behind the arm
        (_arm(0, 0) + _arm(1, 0), 2),  # without loads
        (
            "L: " + _arm(0) + "ld.volatile.global.u32 %r6, [%rd1]; setp.lt.u32 %p2, %r6, %r5; @%p2 bra L; ",
            1,
        ),  # in a loop
    ],
)
def test_arms_with_loads(body: str, branches: int, target: str) -> None:
    unit, _ = optimized(HEAD + "mov.u32 %r5, 0; mov.u32 %r3, %r2; " + body + "st.global.u32 [%rd3], %r5; ret;", target)
    assert ops(unit).count("BRA") == branches


def test_undefined_values_begin_late() -> None:
    """Loads of four arms come together; what they leave undefined begins to live just in front of them."""
    body = (
        HEAD + "mov.u32 %r5, 0; mov.u32 %r3, %r2; " + "".join(map(_arm, range(4))) + "st.global.u32 [%rd3], %r5; ret;"
    )
    unit, _ = optimized(body, "sm_90")
    names = ops(unit)
    loads = [n for n, i in enumerate(names) if i == "LDG"]
    assert len(loads) == 4 and all(is_guarded(i) for i in of(unit, "LDG"))
    assert "IMAD" not in names[loads[0] : loads[-1]]
    for f in unit.functions:
        for b in f.blocks:
            for n, i in enumerate(b.insts[:-1]):
                if i.op == "UNDEF":
                    after = next(x for x in b.insts[n + 1 :] if x.op != "UNDEF")
                    assert any(r in (*after.dsts, *after.srcs) for r in i.dsts)
