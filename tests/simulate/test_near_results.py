"""Results that ptxas's code reads sooner than the documents say: the strict machine must have them by then."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from stages.simulate import Device
from tests import oracle

#: A chain of byte products (IMMA to IMMA 27 cycles, to STG 26), and a division by what the block has in common, whose
#: divisor becomes a float in a uniform register (UI2F to MUFU 9, without a scoreboard).
TEXT = """.version 9.0
.target sm_120a
.address_size 64
.visible .entry products(.param .u64 p) { .reg .b32 %r<20>; .reg .b64 %rd<4>; ld.param.u64 %rd1, [p];
mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2; ld.global.u32 %r2, [%rd1];
mov.b32 %r10, 0; mov.b32 %r11, 0; mov.b32 %r12, 0; mov.b32 %r13, 0;
PRODUCT PRODUCT PRODUCT
st.global.b32 [%rd1+128], %r10; st.global.b32 [%rd1+256], %r13; ret; }
.visible .entry quotient(.param .u64 p, .param .u32 d) { .reg .b32 %r<20>; .reg .b64 %rd<4>; ld.param.u64 %rd1, [p];
ld.param.u32 %r3, [d]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;
ld.global.u32 %r2, [%rd1];
div.u32 %r4, %r2, %r3; st.global.b32 [%rd1+128], %r4; ret; }
""".replace(
    "PRODUCT",
    "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%r10, %r11, %r12, %r13}, {%r2, %r2, %r1, %r1}, {%r2, %r1}, "
    "{%r10, %r11, %r12, %r13};",
)


def test_nothing_is_read_too_early() -> None:
    oracle.require("ptxas")
    made = oracle.compile_ptx(TEXT, "120a")
    assert isinstance(made, Path)
    device = Device(made.read_bytes())
    start = np.arange(96, dtype=np.uint32) * np.uint32(0x01F30507)
    for kernel, more in (("products", []), ("quotient", [np.uint32(7)])):
        plain = start.copy()
        device.launch(kernel, 1, 32, [plain, *more])
        for seed in (1, 2, 3):
            data = start.copy()
            stats = device.launch(kernel, 1, 32, [data, *more], strict=True, seed=seed)
            assert not stats.hazards and np.array_equal(data, plain), kernel
        if kernel == "quotient":
            assert np.array_equal(plain[32:64], start[:32] // 7)
