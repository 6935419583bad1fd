"""Conversions to registers of 128 bits: the value, and the sign extension of the rest. Expected values by hand and
by Python's integers; ptxas's cubin in the simulator is a second source."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from orchestrator.api import compile_ptx
from stages.simulate import Device
from tests import oracle

HALF = struct.unpack("<H", struct.pack("<e", 1.5))[0]


def _bits(x: float, form: str) -> int:
    return int.from_bytes(struct.pack(form, x), "little")


#: instruction -> the register's contents; %r1 = -300, %r2 = 70000, %f1 = -2.75, %rd1 the bits of -2.75.
CASES = {
    "cvt.rn.f64.s32 %q1, %r1;": _bits(-300.0, "<d"),
    "cvt.rzi.s64.f64 %q1, %rd1;": -2,
    "cvt.rzi.s32.f32 %q1, %f1;": -2,
    "cvt.rzi.u32.f32 %q1, %f2;": 1,
    "cvt.rn.f32.f64 %q1, %rd1;": _bits(-2.75, "<f"),
    "cvt.rn.f16.f32 %q1, %f2;": HALF,
    "cvt.rn.f16x2.f32 %q1, %f1, %f2;": _bits(-2.75, "<e") << 16 | HALF,
    "cvt.pack.sat.s16.s32 %q1, %r1, %r2;": (-300 & 0xFFFF) << 16 | 32767,
    "cvt.pack.sat.s8.s32.b32 %q1, %r1, %r2, %r3;": 0x12340000 | (-128 & 0xFF) << 8 | 127,
    "cvt.pack.sat.s8.s32.b32 %rd2, %r1, %r2, %r3; mov.b128 %q1, {%rd2, %rd2};": (0x123480 << 8 | 127) * (1 << 64 | 1),
    "cvt.s64.s8 %q1, %r1;": -44,
    "cvt.u32.u16 %q1, %r1;": -300 & 0xFFFF,
    "cvt.f64.f32 %q1, %f1;": _bits(-2.75, "<d"),
    "cvt.rzi.f64.f64 %q1, %rd1;": _bits(-2.0, "<d"),
    "mov.b128 %q1, {%rd1, %rd1}; cvt.rn.f32.f64 %q1, %q1;": _bits(-2.75, "<f"),
}
#: Cases in which ptxas 13.0 takes the upper half from a uniform register that it does not write.
UNDEFINED = ("cvt.rzi.s32.f32 %q1, %f1;",)
BODY = """
.version 9.0
.target sm_{sm}
.address_size 64
.entry k(.param .u64 p)
{{ .reg .b128 %q<3>; .reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %a, %b;
ld.param.u64 %rd8, [p];
ld.global.b64 %rd1, [%rd8]; ld.global.b32 %r1, [%rd8+8]; ld.global.b32 %r2, [%rd8+12]; ld.global.b32 %r3, [%rd8+16];
ld.global.f32 %f1, [%rd8+20]; ld.global.f32 %f2, [%rd8+24];
{cases}
ret; }}
"""


@pytest.mark.parametrize("sm", [80, 100])
def test_conversions_into_128_bits(sm: int) -> None:
    cases = "\n".join(
        [
            f"{text} mov.b128 {{%a, %b}}, %q1; st.global.v2.b64 [%rd8+{64 + 16 * n}], {{%a, %b}};"
            for n, text in enumerate(CASES)
        ]
    )
    text = BODY.format(sm=sm, cases=cases)
    images = [compile_ptx(text, f"sm_{sm}")]
    if oracle.find("ptxas") is not None:
        got = oracle.compile_ptx(text, str(sm))
        assert not isinstance(got, oracle.ToolError), got
        images.append(got.read_bytes())
    for who, image in enumerate(images):
        memory = np.zeros(64 + 16 * len(CASES), np.uint8)
        memory[:28] = np.frombuffer(struct.pack("<dii iff", -2.75, -300, 70000, 0x1234, -2.75, 1.5), np.uint8)
        Device(image).launch("k", 1, 1, [memory])
        for n, (case, want) in enumerate(CASES.items()):
            found = int.from_bytes(memory[64 + 16 * n :][:16].tobytes(), "little")
            known = (1 << 64 if who and case in UNDEFINED else 1 << 128) - 1
            assert found & known == want & known, (case, who)
