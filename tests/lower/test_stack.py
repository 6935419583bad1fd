"""alloca in functions that call: ours against ptxas's cubin in the simulator, at both levels and with spilled
registers."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.api import compile_ptx
from stages.simulate import Device
from tests import oracle

#: sum(n words at a), also through the stack: twelve words, the last two on the stack. rec: a level of recursion takes
#: 4n bytes.
PTX = """.version 7.8
.target sm_75
.address_size 64
.func (.param .b32 r) sum(.param .b64 a, .param .b32 n, .param .align 8 .b8 big[40], .param .b64 last) {
    .reg .b64 %rd<8>; .reg .b32 %r<8>; .reg .pred %p;
    ld.param.u64 %rd1, [a]; ld.param.u32 %r1, [n]; ld.param.u32 %r2, [big+36]; ld.param.u64 %rd2, [last];
    cvt.u32.u64 %r5, %rd2; add.u32 %r2, %r2, %r5;
loop:
    ld.u32 %r3, [%rd1]; add.u32 %r2, %r2, %r3; add.u64 %rd1, %rd1, 4; sub.u32 %r1, %r1, 1; setp.ne.u32 %p, %r1, 0;
    @%p bra loop;
    st.param.b32 [r], %r2; ret;
}
.func (.param .b32 r) rec(.param .b32 n) {
    .reg .b64 %rd<8>; .reg .b32 %r<8>; .reg .pred %p;
    ld.param.u32 %r1, [n];
    setp.eq.u32 %p, %r1, 0; mov.u32 %r4, 7; @%p bra out;
    mul.wide.u32 %rd1, %r1, 4; alloca.u64 %rd2, %rd1, 16; cvta.local.u64 %rd3, %rd2;
    st.u32 [%rd3], %r1; add.u64 %rd4, %rd3, %rd1; st.u32 [%rd4+-4], %r1;
    sub.u32 %r2, %r1, 1;
    { .param .b32 a; .param .b32 b; st.param.b32 [a], %r2; call (b), rec, (a); ld.param.b32 %r3, [b]; }
    ld.u32 %r5, [%rd3]; ld.u32 %r6, [%rd4+-4]; mad.lo.u32 %r4, %r3, 3, %r5; add.u32 %r4, %r4, %r6;
out:
    st.param.b32 [r], %r4; ret;
}
.visible .entry k(.param .u64 out, .param .u32 n) {
    .local .align 4 .b8 fixed[16];
    .reg .b64 %rd<20>; .reg .b32 %r<30>; .reg .pred %p;
    ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x; and.b32 %r3, %r2, 3; add.u32 %r1, %r1, %r3;
    mov.u64 %rd2, fixed; st.local.u32 [%rd2+4], %r2;
    mul.wide.u32 %rd3, %r1, 4; stacksave.u64 %rd12; alloca.u64 %rd4, %rd3, 8; cvta.local.u64 %rd5, %rd4;
    mov.u64 %rd6, %rd5; mov.u32 %r4, %r1;
fill:
    mad.lo.u32 %r5, %r4, 11, %r2; st.u32 [%rd6], %r5; add.u64 %rd6, %rd6, 4; sub.u32 %r4, %r4, 1;
    setp.ne.u32 %p, %r4, 0; @%p bra fill;
    { .param .b64 a; .param .b32 b; .param .align 8 .b8 c[40]; .param .b64 d; .param .b32 r;
      st.param.b64 [a], %rd5; st.param.b32 [b], %r1; st.param.b32 [c+36], %r2; st.param.b64 [d], %rd3;
      call (r), sum, (a, b, c, d); ld.param.b32 %r6, [r]; }
    alloca.u64 %rd7, %rd3, 32; cvta.local.u64 %rd8, %rd7; st.u32 [%rd8], %r6;
    { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), rec, (a); ld.param.b32 %r7, [b]; }
    div.u32 %r8, %r7, %r1; .reg .f32 %f<4>; cvt.rn.f32.u32 %f1, %r7; cvt.rn.f32.u32 %f2, %r1;
    div.rn.f32 %f3, %f1, %f2; mov.b32 %r11, %f3;
    ld.u32 %r12, [%rd8]; ld.u32 %r13, [%rd5]; ld.local.u32 %r14, [%rd2+4];
    stackrestore.u64 %rd12; alloca.u64 %rd13, 16, 8; and.b64 %rd14, %rd13, 7; cvt.u32.u64 %r15, %rd14;
    st.local.u32 [%rd13], %r12;
    xor.b32 %r20, %r8, %r11; add.u32 %r20, %r20, %r12; add.u32 %r20, %r20, %r13; add.u32 %r20, %r20, %r14;
    add.u32 %r20, %r20, %r15;
    mul.wide.u32 %rd9, %r2, 4; add.u64 %rd10, %rd1, %rd9; st.global.u32 [%rd10], %r20;
    ret;
}
"""


def _expected(n: int) -> list[int]:
    out = []
    for t in range(32):
        m = n + (t & 3)
        values = [11 * (m - i) + t for i in range(m)]
        total = (t + 4 * m + sum(values)) & 0xFFFFFFFF
        depth = 7
        for i in range(1, m + 1):
            depth = 3 * depth + 2 * i
        quotient = int(np.float32(np.float32(depth) / np.float32(m)).view(np.uint32))
        out.append((((depth // m) ^ quotient) + total + values[0] + t) & 0xFFFFFFFF)
    return out


def _run(image: bytes) -> list[int]:
    out = np.zeros(32, np.uint32)
    Device(image).launch("k", (1, 1, 1), (32, 1, 1), [out, 5], stack=4096)
    return [int(x) for x in out]


@pytest.mark.parametrize("arch", ["75", "80", "90", "120"])
@pytest.mark.parametrize("options", [{}, {"opt-level": 0}, {"maxrregcount": 24}])
def test_alloca_around_calls(arch: str, options: dict[str, int]) -> None:
    assert _run(compile_ptx(PTX, f"sm_{arch}", dict(options))) == _expected(5)


@pytest.mark.oracle
def test_ptxas_has_the_same_values() -> None:
    oracle.require("ptxas")
    got = oracle.compile_ptx(PTX, "80")
    assert not isinstance(got, oracle.ToolError), got
    assert _run(got.read_bytes()) == _expected(5)
