"""Constant banks: offsets of loads with an index register."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.api import compile_ptx
from stages.simulate import Device


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_120"])
@pytest.mark.parametrize("beyond", [0, 0x7FF0, 0x8000, 0x18000])
def test_offsets_beside_an_index_of_a_constant_bank(arch: str, beyond: int) -> None:
    """What an address subtracts again is not put into the signed 16-bit offset of LDC, where it would wrap."""
    words = ", ".join(str(3 * n + 1) for n in range(8))
    text = (
        f".version 8.7\n.target {arch}\n.address_size 64\n.const .align 8 .b64 table[8] = {{{words}}};\n"
        ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n.reg .b32 %r<4>;\n.reg .b64 %d<8>;\n"
        "ld.param.u64 %d1, [in];\nld.param.u64 %d2, [out];\nld.global.u32 %r1, [%d1];\nmov.u64 %d3, table;\n"
        f"sub.s32 %r2, %r1, {beyond // 8};\ncvt.s64.s32 %d4, %r2;\nmad.lo.s64 %d5, %d4, 8, %d3;\n"
        f"add.s64 %d5, %d5, {beyond};\nld.const.b64 %d6, [%d5+8];\nst.global.b64 [%d2], %d6;\nret;\n}}\n"
    )
    out = np.zeros(1, np.uint64)
    Device(compile_ptx(text, arch)).launch("k", 1, 1, [np.array([3], np.uint32), out])
    assert out[0] == 3 * 4 + 1
