"""cvt.satfinite to f16: sm_75 has no saturating conversion, the others do."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.api import compile_ptx
from stages.simulate import Device
from tests.fuzz.judge import Launch, Program

#: Largest number, ties at the bound, beyond it, infinities, NaNs with payloads, subnormals of both types, halves of a
#: unit.
BITS = (
    0, 0x80000000, 0x477FE000, 0x477FEFFF, 0x477FF000, 0x477FFFFF, 0x47800000, 0xC77FF000, 0x7F800000, 0xFF800000,
    0x7FC00000, 0xFFC12345, 0x7F800001,
    0x7F7FFFFF, 0xFF7FFFFF, 0x33000000, 0x33000001, 0x38800000, 0x387FFFFF, 0x3F800000, 0xBF801000, 0x3F803000, 1,
    0x80000001, 0x33800000, 0xB3000001,
    0x477FE001, 0xC77FE001, 0x447A0000, 0x40490FDB, 0x47FFE000, 0xC7800000,
)  # fmt: skip
SOURCE = """.version 8.6
.target {arch}
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 q)
{{
    .reg .u64 %d<3>; .reg .f32 %f; .reg .b16 %h; .reg .b32 %r;
    ld.param.u64 %d1, [p]; ld.param.u64 %d2, [q]; mov.u32 %r, %tid.x;
    mad.wide.u32 %d1, %r, 4, %d1; mad.wide.u32 %d2, %r, 2, %d2; ld.global.f32 %f, [%d1];
    cvt.{rounding}.satfinite.f16.f32 %h, %f; st.global.b16 [%d2], %h; ret;
}}
"""


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("rounding", ["rn", "rz"])
@pytest.mark.parametrize("arch", ["sm_75", "sm_80"])
def test_f16_stays_finite(arch: str, rounding: str, level: int) -> None:
    text = SOURCE.format(arch=arch, rounding=rounding)
    x, y = np.array(BITS, np.uint32), np.zeros(32, np.uint16)
    Device(compile_ptx(text, arch, {"opt-level": level})).launch("k", 1, 32, [x, y], strict=True)
    wide = x.view(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        near = wide.astype(np.float16)
        far = np.abs(near.astype(np.float64)) > np.abs(wide.astype(np.float64))
    if rounding == "rz":
        near = np.where(far, (near.view(np.uint16) - np.uint16(1)).view(np.float16), near)
    good = np.where(np.isinf(near), np.copysign(np.float16(65504), near), near).view(np.uint16)
    good = np.where(np.isnan(wide), np.uint16(0x7FFF), good)
    assert [hex(v) for v in y] == [hex(v) for v in good]
    program = Program(text, Launch(1, 32, lambda seed: [x.copy(), np.zeros(32, np.uint16)]), arch)
    assert (program.expected("k").buffers[1] == y).all()
