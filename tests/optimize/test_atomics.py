"""Atomic operations whose result nothing reads, and those of a whole warp on one address: shapes, and values by
simulator and PTX interpreter."""

from __future__ import annotations

import pytest

from ir_format.model import RZ, Inst, Mem, Unit
from tests.optimize.loop_kernels import SMS, differences
from tests.optimize.test_loops_licm import optimized

END = "ret;"
#: The results of an atomic sum differ from thread to thread; their order among threads is that of the lanes in both
#: machines.
STORE = "st.global.u32 [%rd5+8192], %r3; ret;"
SHARED = (
    "mov.u32 %r7, sh; and.b32 %r8, %r9, 3; shl.b32 %r8, %r8, 2; add.u32 %r7, %r7, %r8; mov.u32 %r6, 0; "
    "st.shared.u32 [%r7], %r6; bar.sync 0;"
)
SHOWN = "bar.sync 0; ld.shared.u32 %r6, [%r7]; st.global.u32 [%rd5], %r6; ret;"


def atomics(unit: Unit) -> list[Inst]:
    return [i for b in unit.functions[0].blocks for i in b.insts if i.op in ("ATOM", "ATOMG", "ATOMS", "RED", "REDG")]


@pytest.mark.parametrize("target", SMS)
@pytest.mark.parametrize("what", ["add.u32", "max.s32", "and.b32", "add.f32", "inc.u32"])
def test_unread_results_become_reductions(what: str, target: str) -> None:
    """An operation on global memory whose result has no reader becomes RED."""
    body = (
        f"atom.global.{what} %{'f' if 'f32' in what else 'r'}3, [%rd5], "
        f"{'0f3F800000' if 'f32' in what else '%r9'}; {END}"
    )
    unit, _ = optimized(body, target)
    (found,) = atomics(unit)
    assert found.op == ("REDG" if target == "sm_90" or target == "sm_120" else "RED") and not found.dsts
    assert differences(body, target, (1, 5)) == []


@pytest.mark.parametrize("target", SMS)
@pytest.mark.parametrize("what", ["exch.b32 %r3, [%rd5], %r9", "cas.b32 %r3, [%rd5], %r9, %r1"])
def test_swaps_are_not_reductions(what: str, target: str) -> None:
    """RED has no exchange, so the result goes to RZ."""
    body = f"atom.global.{what}; {END}"
    unit, _ = optimized(body, target)
    (found,) = atomics(unit)
    assert found.op == "ATOMG" and found.dsts[-1] == RZ
    assert differences(body, target, (1,)) == []


@pytest.mark.parametrize("target", SMS)
def test_acquire_keeps_its_result(target: str) -> None:
    """Instructions after an acquiring operation wait for it, so it keeps its result."""
    unit, _ = optimized(
        (
            f"atom.acquire.gpu.global.add.u32 %r3, [%rd5], %r9; ld.global.u32 %r4, [%rd3]; "
            f"st.global.u32 [%rd5+64], %r4; {END}"
        ),
        target,
    )
    (found,) = atomics(unit)
    assert found.op == "ATOMG" and found.dsts[-1] != RZ


@pytest.mark.parametrize("target", SMS)
def test_shared_counter(target: str) -> None:
    """An increment in shared memory uses the form that counts threads, from sm_80 on."""
    body = f"{SHARED} atom.shared.add.u32 %r3, [%r7], 1; {SHOWN}"
    unit, _ = optimized(body, target)
    (found,) = atomics(unit)
    assert found.dsts == (RZ,) and ("POPC" in found.mods) == (target != "sm_75")
    assert differences(body, target, (1,)) == []


@pytest.mark.parametrize("target", SMS)
@pytest.mark.parametrize("guard", ["", "@%p1 "])
@pytest.mark.parametrize("value", ["1", "7", "-1", "%r2"])
@pytest.mark.parametrize("result", [True, False])
def test_sums_of_one_value_are_aggregated(target: str, guard: str, value: str, result: bool) -> None:
    """One value, one address, any threads: one thread adds for all."""
    body = (
        f"mov.u32 %r3, 9; setp.gt.u32 %p1, %r9, %r2; {guard}atom.global.add.u32 %r3, [%rd4+4096], {value}; "
        f"{STORE if result else END}"
    )
    unit, stats = optimized(body, target)
    assert stats["atomics counted"] == 1
    (found,) = atomics(unit)
    assert found.guard is not None and found.op == (
        "ATOMG" if result else "RED" if target in ("sm_75", "sm_80") else "REDG"
    )
    assert differences(body, target, (0, 1, 7, 15, 16)) == []


@pytest.mark.parametrize("target", SMS)
def test_threads_on_another_path_are_not_aggregated(target: str) -> None:
    """Threads on another path do not count."""
    body = (
        f"mov.u32 %r3, 9; setp.gt.u32 %p1, %r9, %r2; @%p1 bra L; atom.global.add.u32 %r3, [%rd4+4096], 5; "
        f"add.u32 %r3, %r3, %r1; bra M; L: atom.global.add.u32 %r3, [%rd4+2048], 3; M: {STORE}"
    )
    _, stats = optimized(body, target)
    assert stats["atomics counted"] == 2
    assert differences(body, target, (0, 1, 7, 15, 16)) == []


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
@pytest.mark.parametrize("what", ["add.u32", "min.u32", "min.s32", "max.s32", "and.b32", "or.b32", "xor.b32"])
def test_different_values_without_a_result_become_one_reduction(what: str, target: str) -> None:
    """Different values, no result: one operation for a warp."""
    body = (
        f"setp.gt.u32 %p1, %r9, %r2; @%p1 bra L; ld.global.u32 %r3, [%rd3]; atom.global.{what} %r4, "
        f"[%rd4+4096], %r3; L: {END}"
    )
    unit, stats = optimized(body, target)
    assert (
        stats["atomics reduced"] == 1 and [i.op for b in unit.functions[0].blocks for i in b.insts].count("REDUX") == 1
    )
    assert differences(body, target, (0, 1, 7, 15, 16)) == []


@pytest.mark.parametrize("target", SMS)
def test_places_that_differ(target: str) -> None:
    """Nothing is aggregated if threads add to different words."""
    body = f"atom.global.add.u32 %r3, [%rd5], 1; {STORE}"
    _, stats = optimized(body, target)
    assert not stats.get("atomics counted") and not stats.get("atomics reduced")
    assert differences(body, target, (1,)) == []


@pytest.mark.parametrize("target", SMS)
def test_scaled_addresses(target: str) -> None:
    """A shifted index into shared memory: the access shifts it, up to sm_89."""
    body = (
        "mov.u32 %r7, sh; and.b32 %r8, %r9, 3; shl.b32 %r8, %r8, 2; add.u32 %r7, %r7, %r8; "
        "st.shared.u32 [%r7+16], %r1; bar.sync 0; ld.shared.u32 %r6, [%r7+16]; xor.b32 %r6, %r6, %r6; "
        "st.global.u32 [%rd5], %r6; ret;"
    )
    unit, _ = optimized(body, target)
    (where,) = [o for b in unit.functions[0].blocks for i in b.insts if i.op == "STS" for o in i.srcs if type(o) is Mem]
    assert where.base is not None and where.base.mod == ("X4" if target in ("sm_75", "sm_80") else "")
    assert differences(body, target, (1,)) == []
