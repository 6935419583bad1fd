"""Moves, sums and shifts move to the multiplier's pipe if the ALU is the busier one; values stay the same."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from ir_format import isa
from orchestrator.api import compile_ptx
from stages.disasm.cubin import read_cubin
from stages.disasm.listing import decode_section
from stages.simulate import Device

_ROUNDS = 6


def _ptx(sm: int) -> str:
    """A mixing function of sums, exclusive ors and rotations, which keep the ALU busy."""
    steps = "".join(
        "add.s32 %r2, %r2, %r3; xor.b32 %r4, %r4, %r2; shf.l.wrap.b32 %r4, %r4, %r4, 16;\n"
        "add.s32 %r5, %r5, %r4; xor.b32 %r3, %r3, %r5; shf.l.wrap.b32 %r3, %r3, %r3, 12;\n"
        for _ in range(_ROUNDS)
    )
    return f"""
.version 8.7
.target sm_{sm}
.address_size 64
.visible .entry mix(.param .u64 out, .param .u64 in)
{{
    .reg .b32 %r<9>; .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [in];
    ld.global.v4.u32 {{%r2, %r3, %r4, %r5}}, [%rd2];
    {steps}
    shl.b32 %r6, %r5, 7;
    st.global.v4.u32 [%rd1], {{%r2, %r3, %r4, %r6}};
    ret;
}}
"""


def _expected(words: list[int]) -> list[int]:
    a, b, c, d = words
    mask = 0xFFFFFFFF
    for _ in range(_ROUNDS):
        a = a + b & mask
        c ^= a
        c = (c << 16 | c >> 16) & mask
        d = d + c & mask
        b ^= d
        b = (b << 12 | b >> 20) & mask
    return [a, b, c, d << 7 & mask]


@pytest.mark.parametrize("sm", [75, 80, 90, 100, 120])
def test_the_pipes_share_the_work(sm: int) -> None:
    cubin = compile_ptx(_ptx(sm), f"sm_{sm}", {})
    words = [0x01234567, 0x89ABCDEF, 0xDEADBEEF, 0x10000001]
    got = np.zeros(4, np.uint32)
    device = Device(cubin)
    stats = device.launch("mix", 1, 1, [got, np.array(words, np.uint32)], strict=True)
    assert got.tolist() == _expected(words)
    assert not stats.hazards
    target = isa.target(f"sm_{sm}")
    made = Counter(
        (d.inst.op, *d.inst.mods) for s in read_cubin(cubin).sections for d in decode_section(s, target) if d.inst
    )
    sums = made["IMAD", "IADD"]
    assert made["IMAD", "SHL", "U32"] == 1  # a shift becomes a product on every SM
    if sm == 120:  # the pipes are one there
        assert sums == 0
    else:  # 24 instructions that only the ALU has, 12 sums
        assert sums >= 10
