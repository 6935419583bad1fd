"""Forms that ptxas accepts and the manual does not have are refused by name; similar forms of the manual are not."""

from __future__ import annotations

import pytest

from stages.interpret.undocumented import Outside, refuse_outside

FORMS = [
    ("st.async.b32", "sm_120a"), ("st.async.weak.global.u64", "sm_120a"), ("st.async.release.global.u32", "sm_120a"),
    ("st.async.mmio.release.gpu.global.u32", "sm_120a"),
    ("red.async.release.gpu.global.min.u32", "sm_120a"), ("red.async.relaxed.sys.add.u32", "sm_120a"),
    ("red.async.mmio.release.gpu.add.u32", "sm_120a"),
    ("red.async.release.sys.and.b32", "sm_120a"), ("fma.rz.bf16", "sm_90"), ("fma.rm.oob.relu.bf16x2", "sm_90"),
    ("fence.acquire.gpu", "sm_80"),
    ("ld.global.v8.u8", "sm_90"), ("st.volatile.v8.b16", "sm_80"),
]  # fmt: skip
IN_THE_MANUAL = [
    ("st.async.release.gpu.global.u32", "sm_120a"), ("st.async.mmio.release.sys.b8", "sm_120a"),
    ("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.u32", "sm_90"),
    ("red.async.release.gpu.add.s64", "sm_120a"), ("red.async.mmio.release.sys.global.add.u32", "sm_120a"),
    ("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.min.u32", "sm_90"),
    ("red.async.relaxed.cluster.xor.b32", "sm_90"),
    ("fma.rn.bf16", "sm_90"), ("fma.rz.f32", "sm_90"), ("fma.rz.f32.bf16", "sm_100a"), ("fence.acquire.gpu", "sm_90"),
    ("fence.acq_rel.gpu", "sm_80"),
    ("ld.global.v8.b32", "sm_100"), ("ld.global.v4.u8", "sm_90"), ("red.global.min.u32", "sm_90"),
    ("st.global.b32", "sm_90"),
]  # fmt: skip


@pytest.mark.parametrize(("opcode", "target"), FORMS)
def test_forms_outside_the_manual_are_refused(opcode: str, target: str) -> None:
    """The message gives the reason."""
    with pytest.raises(Outside, match="not in the PTX manual"):
        refuse_outside(opcode, target)


@pytest.mark.parametrize(("opcode", "target"), IN_THE_MANUAL)
def test_forms_of_the_manual_are_accepted(opcode: str, target: str) -> None:
    """Nothing is raised."""
    refuse_outside(opcode, target)
