"""Sparse conditional constant propagation: what remains of a loop, and its values by simulator and PTX interpreter."""

from __future__ import annotations

import pytest

from ir_format.model import Header, Imm, Inst, Unit
from stages.optimize.analyses import Analyses
from stages.optimize.passes import PASSES
from stages.optimize.ssa.check import faults
from stages.plumbing.runner import Context, Flags
from tests.lower.helpers import lower_text
from tests.optimize.loop_kernels import differences, text
from tests.optimize.test_loops_licm import optimized

COUNTS = (0, 1, 9)
NEXT = "add.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, %r2; @%p1 bra L;"
END = "add.u32 %r4, %r4, %r5; st.global.u32 [%rd5], %r4; ret;"
START = 'mov.u32 %r3, 0; mov.u32 %r4, 0; mov.u32 %r5, 1; L: .pragma "nounroll"; '


def constants(body: str, target: str = "sm_90") -> dict[str, int]:
    """The statistics, after the values were compared."""
    _, stats = optimized(body, target)
    assert differences(body, target, COUNTS) == []
    return stats


def named(unit: Unit, op: str) -> list[Inst]:
    return [i for b in unit.functions[0].blocks for i in b.insts if i.op == op]


#: A loop whose variable %r5 is always 1, since the branch that would change it is never taken.
NEVER = START + "setp.eq.u32 %p2, %r5, 1; @%p2 bra J; mul.lo.u32 %r5, %r9, 77; bar.sync 0; J: xor.b32 %r4, %r4, %r3; "


@pytest.mark.parametrize("target", ["sm_80", "sm_120"])
def test_a_branch_that_is_never_taken(target: str) -> None:
    """The value depends on the branch, the branch on the value: only the optimistic assumption finds both."""
    stats = constants(NEVER + NEXT + END, target)
    assert stats["branches on propagated constants"] == 1 and stats["propagated constants"] >= 1
    unit, _ = optimized(NEVER + NEXT + END, target)
    assert not named(unit, "BAR") and len(named(unit, "ISETP")) <= 2
    kept, _ = optimized(NEVER + NEXT + END, target, "sccp")
    assert named(kept, "BAR")


def test_a_value_that_is_carried_and_never_changes() -> None:
    """Through two variables that are exchanged, and arithmetic that gives the same again."""
    body = START + "mul.lo.u32 %r6, %r5, 3; sub.u32 %r5, %r6, 2; add.u32 %r4, %r4, %r9; " + NEXT + END
    assert constants(body)["propagated constants"] >= 2
    floats = (
        "mov.u32 %r3, 0; mov.u32 %r4, 0; mov.f32 %f1, 0f3F800000; L: fma.rn.f32 %f1, %f1, 0f40400000, 0fC0000000; "
        "mov.b32 %r5, %f1; add.u32 %r4, %r4, %r9; " + NEXT + END
    )
    stats = constants(floats)
    assert stats["propagated constants"] >= 2
    unit, _ = optimized(floats, "sm_90")
    assert not named(unit, "FFMA")


def test_what_varies_stays() -> None:
    """A counter; a value that one path changes; a value of a guarded write."""
    for body in (
        START + "add.u32 %r5, %r5, 1; " + NEXT + END,
        START + "setp.eq.u32 %p2, %r9, 3; @%p2 bra J; mov.u32 %r5, 9; J: add.u32 %r4, %r4, %r5; " + NEXT + END,
        START + "setp.eq.u32 %p2, %r9, 3; @%p2 mov.u32 %r5, 9; add.u32 %r4, %r4, %r5; " + NEXT + END,
    ):
        assert "branches on propagated constants" not in constants(body)


def test_both_ways_to_one_block_with_one_value() -> None:
    """Two paths that set the same constant join to it."""
    body = (
        "setp.eq.u32 %p2, %r9, 3; @%p2 bra A; mov.u32 %r5, 6; st.global.u32 [%rd5+4096], %r9; bra J; "
        "A: mov.u32 %r5, 6; bar.warp.sync -1; J: mul.lo.u32 %r4, %r5, 7; st.global.u32 [%rd5], %r4; ret;"
    )
    unit, stats = optimized(body, "sm_90")
    assert stats["propagated constants"] >= 1 and differences(body, "sm_90", COUNTS) == []
    assert [i for i in named(unit, "COPY") + named(unit, "MOV") if Imm("I", 42) in i.srcs]


def test_the_form_stays_conventional() -> None:
    """After the pass the function is in SSA form as before, and what is known of its values is right."""
    (unit,) = lower_text(text(NEVER + NEXT + END, "sm_90"), "sm_90")
    ctx = Context(Header("ori", "sm_90"), None, Flags())
    for p in PASSES:
        p.run(unit, ctx)
        if p.name == "sccp":
            break
    (a,) = [x for x in ctx.kept["optimize"].of.values() if isinstance(x, Analyses)]  # type: ignore[attr-defined]
    assert a.webs is not None and faults(a.f, a.webs) == []
    known = a.known_values
    assert known is not None
    counted = known.uses[:]
    a.keep(frozenset(("cfg", "idom")))
    assert a.values.uses == counted
