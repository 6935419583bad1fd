"""Loop-invariant code motion: what leaves a loop and what stays in it; values by simulator and PTX interpreter."""

from __future__ import annotations

import pytest

from ir_format.flow import build_cfg, loops
from ir_format.model import Header, Inst, Unit
from stages.optimize.passes import PASSES
from stages.plumbing.runner import Context, Flags
from tests.lower.helpers import lower_text
from tests.optimize.loop_kernels import SMS, differences, text

COUNTS = (0, 1, 2, 3, 9)


def optimized(body: str, target: str, *skip: str) -> tuple[Unit, dict[str, int]]:
    """The unit after all passes but some, and the statistics."""
    (unit,) = lower_text(text(body, target), target)
    ctx = Context(Header("ori", target), None, Flags())
    for p in PASSES:
        if p.name not in skip:
            p.run(unit, ctx)
    return unit, ctx.stats


def in_loops(unit: Unit) -> list[Inst]:
    """The instructions of all loops."""
    f = unit.functions[0]
    found = {p for x in loops(build_cfg(f)) for p in x.body}
    return [i for p in sorted(found) for i in f.blocks[p].insts]


def ops(unit: Unit) -> list[str]:
    return [i.op for i in in_loops(unit)]


ROUND = "add.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, %r2; @%p1 bra L;"
END = "st.global.u32 [%rd5], %r4; ret;"
START = 'mov.u32 %r3, 0; mov.u32 %r4, 0; L: .pragma "nounroll";'


@pytest.mark.parametrize("target", SMS)
def test_arithmetic_leaves(target: str) -> None:
    body = (
        START
        + "popc.b32 %r5, %r1; mul.lo.u32 %r6, %r5, %r9; xor.b32 %r7, %r3, %r6; add.u32 %r4, %r4, %r7;"
        + ROUND
        + END
    )
    unit, stats = optimized(body, target)
    assert stats["invariants moved out of loops"] >= 2
    assert not {"POPC", "IMAD"} & set(ops(unit))
    assert differences(body, target, COUNTS) == []


@pytest.mark.parametrize("target", SMS)
def test_division_leaves(target: str) -> None:
    body = START + "div.u32 %r5, %r1, %r9; xor.b32 %r7, %r3, %r5; add.u32 %r4, %r4, %r7;" + ROUND + END
    unit, _ = optimized(body, target)
    assert not {"MUFU", "I2F", "F2I"} & set(ops(unit))
    assert differences(body, target, COUNTS) == []


#: instructions of the loop besides a load of [%rd3], and whether the load may move out.
BESIDE = [
    ("xor.b32 %r7, %r3, %r5;", True),
    ("xor.b32 %r7, %r3, %r5; st.shared.u32 [sh], %r7;", True),
    ("xor.b32 %r7, %r3, %r5; st.global.u32 [%rd5+256], %r7;", False),
    ("xor.b32 %r7, %r3, %r5; bar.sync 0;", False),
    ("xor.b32 %r7, %r3, %r5; membar.gl;", False),
    ("atom.shared.add.u32 %r7, [sh+512], 1; mov.u32 %r7, %r5;", False),
]


@pytest.mark.parametrize(("beside", "leaves"), BESIDE)
@pytest.mark.parametrize("target", SMS)
def test_loads_leave_the_loop_if_nothing_writes_them(beside: str, leaves: bool, target: str) -> None:
    body = START + f"ld.global.u32 %r5, [%rd3]; {beside} add.u32 %r4, %r4, %r7;" + ROUND + END
    unit, _ = optimized(body, target)
    assert ("LDG" not in ops(unit)) == leaves
    assert differences(body, target, COUNTS) == []


@pytest.mark.parametrize("target", SMS)
def test_read_only_loads_pass_stores(target: str) -> None:
    body = (
        START
        + (
            "ld.global.nc.u32 %r5, [%rd3]; xor.b32 %r7, %r3, %r5; st.global.u32 [%rd5+256], %r7; bar.sync 0; "
            "add.u32 %r4, %r4, %r7;"
        )
        + ROUND
        + END
    )
    unit, _ = optimized(body, target)
    assert "LDG" not in ops(unit)
    assert differences(body, target, COUNTS) == []


def test_shared_loads_pass_stores_to_global_memory() -> None:
    def body(store: str) -> str:
        return (
            "st.shared.u32 [sh], %r9;"
            + START
            + f"ld.shared.u32 %r5, [sh]; xor.b32 %r7, %r3, %r5; {store}; add.u32 %r4, %r4, %r7;"
            + ROUND
            + END
        )

    assert "LDS" not in ops(optimized(body("st.global.u32 [%rd5+256], %r7"), "sm_90")[0])
    assert "LDS" in ops(optimized(body("st.shared.u32 [sh+4], %r7"), "sm_90")[0])
    assert "LDS" in ops(optimized(body("st.u32 [%rd5+256], %r7"), "sm_90")[0])


@pytest.mark.parametrize(
    "ordered", ["ld.volatile.global.u32", "ld.relaxed.gpu.global.u32", "ld.acquire.gpu.global.u32"]
)
def test_ordered_loads_stay(ordered: str) -> None:
    body = START + f"{ordered} %r5, [%rd3]; xor.b32 %r7, %r3, %r5; add.u32 %r4, %r4, %r7;" + ROUND + END
    assert "LDG" in ops(optimized(body, "sm_90")[0])


@pytest.mark.parametrize("target", SMS)
def test_a_load_that_may_not_run_stays(target: str) -> None:
    """After an exit of the loop, and in an arm too long for a guard; arithmetic moves out anyway."""
    early = (
        START
        + (
            "setp.gt.u32 %p2, %r3, %r9; @%p2 bra X; ld.global.u32 %r5, [%rd3+64]; popc.b32 %r6, %r1; "
            "add.u32 %r5, %r5, %r6; add.u32 %r4, %r4, %r5;"
        )
        + ROUND
        + "X: "
        + END
    )
    unit, _ = optimized(early, target)
    assert "LDG" in ops(unit) and "POPC" not in ops(unit)
    assert differences(early, target, COUNTS) == []
    arm = "xor.b32 %r7, %r7, %r3; mul.lo.u32 %r7, %r7, %r7;" * 8
    inner = (
        START
        + (
            f"mov.u32 %r7, 1; setp.gt.u32 %p2, %r3, %r9; @%p2 bra X; ld.global.u32 %r5, [%rd3+64]; "
            f"xor.b32 %r7, %r5, %r3; {arm} X: add.u32 %r4, %r4, %r7;"
        )
        + ROUND
        + END
    )
    unit, _ = optimized(inner, target)
    assert "LDG" in ops(unit)
    assert differences(inner, target, COUNTS) == []


@pytest.mark.parametrize("target", SMS)
def test_out_of_two_loops(target: str) -> None:
    """As far out as the operands allow: one value out of both loops, one out of the inner."""
    body = (
        'mov.u32 %r3, 0; mov.u32 %r4, 0; M: .pragma "nounroll"; mov.u32 %r10, 0; L: .pragma "nounroll"; '
        "popc.b32 %r5, %r1; brev.b32 %r6, %r3; xor.b32 %r7, %r5, %r10; mad.lo.u32 %r4, %r7, %r6, %r4; "
        "add.s32 %r10, %r10, 1; setp.lt.s32 %p2, %r10, %r9; @%p2 bra L;" + ROUND.replace("bra L", "bra M") + END
    )
    unit, _ = optimized(body, target)
    assert "POPC" not in ops(unit) and ops(unit).count("BREV") == 1
    inner = min(loops(build_cfg(unit.functions[0])), key=lambda x: len(x.body))
    assert not any(i.op == "BREV" for p in inner.body for i in unit.functions[0].blocks[p].insts)
    assert differences(body, target, COUNTS) == []


@pytest.mark.parametrize("target", SMS)
def test_loop_with_two_entries_gets_a_preheader(target: str) -> None:
    """A header that two blocks jump to gets a preheader."""
    body = (
        (
            "mov.u32 %r4, 0; setp.gt.u32 %p2, %r1, 20; @%p2 bra A; mov.u32 %r3, 1; bra L; A: mov.u32 %r3, 2; "
            "L: popc.b32 %r5, %r9; xor.b32 %r7, %r3, %r5; add.u32 %r4, %r4, %r7;"
        )
        + ROUND
        + END
    )
    unit, _ = optimized(body, target, "if-conversion")
    assert "POPC" not in ops(unit)
    assert differences(body, target, COUNTS) == []


def test_cycle_with_two_entries_stays() -> None:
    body = (
        (
            "mov.u32 %r3, 0; mov.u32 %r4, 0; setp.gt.u32 %p2, %r1, 20; @%p2 bra M; L: popc.b32 %r5, %r9; "
            "add.u32 %r4, %r4, %r5; M: xor.b32 %r4, %r4, %r3;"
        )
        + ROUND
        + END
    )
    unit, stats = optimized(body, "sm_90", "if-conversion")
    assert "invariants moved out of loops" not in stats
    assert differences(body, "sm_90", COUNTS) == []


def test_what_changes_in_the_loop_stays() -> None:
    """A register with two definitions in the loop, a result of a vote, the clock."""
    body = START + (
        "mov.u32 %r5, %r9; setp.gt.u32 %p2, %r3, 3; @%p2 mov.u32 %r5, %r1; popc.b32 %r6, %r5; "
        "vote.sync.ballot.b32 %r7, %p2, 0xffffffff; mov.u32 %r8, %clock; add.u32 %r4, %r4, %r6; "
        "xor.b32 %r4, %r4, %r7; add.u32 %r4, %r4, %r8;"
    )
    unit, _ = optimized(body + ROUND + END, "sm_90")
    assert {"POPC", "VOTE"} <= set(ops(unit)) and {"CS2R", "S2R", "S2UR"} & set(ops(unit))


def test_register_pressure_keeps_cheap_work_in_the_loop() -> None:
    """With many live values in the loop, cheap work stays."""
    many = "".join(f"ld.global.u32 %r{n}, [%rd3+{4 * n}];" for n in range(20, 55))
    use = "".join(f"mad.lo.u32 %r4, %r4, %r3, %r{n};" for n in range(20, 55))
    body = (
        many
        + START
        + "xor.b32 %r5, %r1, %r9; xor.b32 %r7, %r3, %r5; add.u32 %r4, %r4, %r7;"
        + use
        + ROUND
        + "xor.b32 %r4, %r4, %r1; xor.b32 %r4, %r4, %r9;"
        + END
    )
    _, stats = optimized(body, "sm_90")
    assert "invariants moved out of loops" not in stats
    assert differences(body, "sm_90", COUNTS) == []


def test_a_loop_that_never_ends() -> None:
    """No exit: nothing to prove about exits, and no crash."""
    unit, _ = optimized("L: ld.global.u32 %r5, [%rd3]; st.global.u32 [%rd5], %r5; bra L;", "sm_90")
    assert "LDG" in ops(unit)
