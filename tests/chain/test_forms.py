"""Values of rare forms: variables in bodies, families of variables, sums as operands, aliases, narrow floats from
f16x2, scales in braces."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.api import compile_ptx
from stages.simulate import Device
from tests import oracle

ARCHS = ("sm_80", "sm_90", "sm_120")
REGS = (
    ".reg .pred %p<4>; .reg .b32 %r<20>; .reg .b64 %rd<12>; .reg .b16 %h<4>; .reg .b8 %b<4>; "
    ".reg .f16x2 %x<4>; .reg .f32 %f<12>;"
)


def run(
    body: str,
    arch: str,
    before: str = "",
    words: int = 8,
    data: tuple[int, ...] = (),
    options: dict[str, int] | None = None,
    image: bytes = b"",
) -> list[int]:
    """The words that one thread writes to `[%rd1]`; `[%rd2]` is `data`."""
    text = (
        f".version 9.0\n.target {arch}\n.address_size 64\n{before}\n.visible .entry k(.param .u64 a, .param .u64 b)\n"
        f"{{ {REGS}\nld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b];\n{body}\nret; }}\n"
    )
    out, given = np.zeros(words, np.uint32), np.array([*data, 0], np.uint32)
    Device(image or compile_ptx(text, arch, dict(options or {}))).launch("k", 1, 1, [out, given])
    return [int(x) for x in out]


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("arch", ARCHS)
def test_variables_of_a_body(arch: str, level: int) -> None:
    """Each declaration is a separate variable, with its own value and address."""
    body = """
.global .u32 g = 5; .const .u32 c[2] = {7, 8}; .global .u64 at = generic(g);
{ .global .u32 g = 6; ld.global.u32 %r1, [g]; }
ld.global.u32 %r2, [g]; ld.global.u64 %rd3, [at]; ld.u32 %r3, [%rd3];
mov.u64 %rd4, c; ld.const.u32 %r4, [%rd4+4]; cvta.const.u64 %rd5, c; ld.u32 %r5, [%rd5];
st.global.u32 [g], 9; call.uni (%r6), f, ();
st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4}; st.global.v2.u32 [%rd1+16], {%r5, %r6};"""
    body = body.replace("", "")
    before = ".global .u32 g = 4;\n.func (.reg .u32 r) f() { .global .u32 g = 10; ld.global.u32 r, [g]; ret; }"
    assert run(body, arch, before, options={"opt-level": level})[:6] == [6, 5, 5, 8, 7, 10]


@pytest.mark.parametrize("arch", ARCHS)
def test_families_of_variables(arch: str) -> None:
    body = """
.shared .u32 S<3>; .local .v2 .u32 L<2>; .param .u32 %P<2>;
st.shared.u32 [S0], 1; st.shared.u32 [S2], 3; st.shared.u32 [S1], 2; st.local.v2.u32 [L0], {4, 5}; \
st.local.v2.u32 [L1], {6, 7};
{ .shared .u32 S<1>; st.shared.u32 [S0], 100; }
st.param.u32 [%P0], 30; st.param.u32 [%P1], 4; call.uni (%r9), minus, (%P0, %P1);
ld.shared.u32 %r1, [S0]; ld.shared.u32 %r2, [S1]; ld.shared.u32 %r3, [S2]; ld.local.u32 %r4, [L0+4]; \
ld.local.u32 %r5, [L1]; ld.global.u32 %r6, [G1];
st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4}; st.global.v2.u32 [%rd1+16], {%r5, %r6}; st.global.u32 [%rd1+24], %r9;"""
    before = (
        ".global .u32 G<2>;\n.func (.reg .u32 r) minus(.param .u32 x, .param .u32 y) { .reg .u32 a, b; "
        "ld.param.u32 a, [x]; ld.param.u32 b, [y]; sub.u32 r, a, b; ret; }"
    )
    assert run(body, arch, before)[:7] == [1, 2, 3, 5, 6, 0, 26]


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("arch", ARCHS)
def test_sums(arch: str, level: int) -> None:
    """A constant is added to a source before the instruction, in the width of the register."""
    body = """
ld.global.u32 %r1, [%rd2]; ld.global.u64 %rd3, [%rd2+8]; ld.global.u16 %h1, [%rd2+4];
st.global.u32 [%rd1], %r1+1; mad.lo.u32 %r2, %r1+21, %r1+22, %r1+-3; st.global.u32 [%rd1+4], %r2;
st.global.u64 [%rd1+8], %rd3+0x123456789; st.global.u16 [%rd1+16], %h1+3; setp.gt.u32 %p1, %r1+41, 5; \
selp.u32 %r3, 1, 2, %p1; st.global.u32 [%rd1+20], %r3;
cvt.u64.u32 %rd4, %r1+61; st.global.u64 [%rd1+24], %rd4;"""
    x, wide, half = 0xFFFFFFF0, 0xFFFFFFFF00000001, 0xFFFE
    got = run(body, arch, words=8, data=(x, half, wide & 0xFFFFFFFF, wide >> 32), options={"opt-level": level})
    m = 0xFFFFFFFF
    total = (wide + 0x123456789) & (1 << 64) - 1
    want = [
        x + 1 & m,
        ((x + 21 & m) * (x + 22 & m) + (x - 3)) & m,
        total & m,
        total >> 32,
        half + 3 & 0xFFFF,
        1 if (x + 41 & m) > 5 else 2,
        x + 61 & m,
        0,
    ]
    assert got == want


@pytest.mark.parametrize("arch", ARCHS)
def test_an_alias_in_a_whole_program(arch: str) -> None:
    before = """.visible .func (.param .u32 r) real(.param .u32 a) { .reg .u32 %v; ld.param.u32 %v, [a]; \
add.u32 %v, %v, 5; st.param.u32 [r], %v; ret; }
.visible .func (.param .u32 r) other(.param .u32 a);
.alias other, real;"""
    body = (
        "{ .param .u32 x, y; st.param.u32 [x], 3; call.uni (y), other, (x); ld.param.u32 %r1, [y]; "
        "} st.global.u32 [%rd1], %r1;"
    )
    assert run(body, arch, before)[0] == 8


@pytest.mark.parametrize("arch", ARCHS)
def test_offsets_beyond_the_field(arch: str) -> None:
    """Addresses of shared and local memory have 32 bits: higher bits are lost."""
    body = """
.shared .u32 s[4]; .local .u32 l[4]; st.shared.u32 [s+8], 11; st.local.u32 [l+12], 12; mov.u32 %r9, s;
ld.shared.u32 %r1, [s+4294967304]; ld.local.u32 %r2, [l+4294967308]; ld.shared.u32 %r3, [%r9+4294967304]; \
sub.u32 %r9, %r9, 0x1000000; ld.shared.u32 %r4, [%r9+16777224];
ld.const.u32 %r5, [c+4294967300]; ld.param.u32 %r6, [a+4294967296]; ld.param.u32 %r7, [a];
sub.u32 %r6, %r6, %r7; st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4}; st.global.v2.u32 [%rd1+16], {%r5, %r6};"""
    assert run(body, arch, ".const .u32 c[2] = {13, 14};")[:6] == [11, 12, 11, 11, 14, 0]


def e2m1(x: float) -> int:
    """The nearest of 0, 0.5, 1, 1.5, 2, 3, 4, 6 (ties to even), with the sign; NaN gives the largest."""
    values = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
    if x != x:
        return 7
    near = min(abs(abs(x) - v) for v in values) if abs(x) < 6 else 0
    codes = [n for n, v in enumerate(values) if abs(abs(x) - v) == near] if abs(x) < 6 else [7]
    code = codes[0] if len(codes) == 1 else next(n for n in codes if n % 2 == 0)
    return code | (8 if np.signbit(x) else 0)


@pytest.mark.parametrize("arch", ["sm_100a", "sm_120a"])
def test_four_bit_floats_from_halves(arch: str) -> None:
    values = np.array(
        [0.0, -0.0, 0.25, 0.26, 0.75, 1.25, 2.5, -2.5, 3.5, 5.0, -5.0, 7.0, np.inf, -np.inf, np.nan, -1.0], np.float16
    )
    body = "".join(
        (
            f"ld.global.b32 %x1, [%rd2+{4 * k}]; cvt.rn.satfinite.e2m1x2.f16x2 %b1, %x1; cvt.u32.u8 %r1, %b1; "
            f"st.global.u32 [%rd1+{4 * k}], %r1;\n"
        )
        for k in range(8)
    )
    got = run(body, arch, data=tuple(int(w) for w in values.view(np.uint32)))
    assert got == [e2m1(float(values[2 * k])) | e2m1(float(values[2 * k + 1])) << 4 for k in range(8)]


SCALED = {
    "mxf8f6f4": ("m16n8k32.row.col.f32.e4m3.e5m2.f32.ue8m0", ""),
    "mxf4": ("m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0", ".scale_vec::2X"),
    "mxf4nvf4": ("m16n8k64.row.col.f32.e2m1.e2m1.f32.ue4m3", ".scale_vec::4X"),
}  # fmt: skip


@pytest.mark.parametrize("kind", SCALED)
def test_scales_in_braces(kind: str) -> None:
    """Braces around a scale do not change the code."""
    shape, vector = SCALED[kind]
    load = (
        "ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd2]; ld.global.v4.b32 {%r5, %r6, %r7, %r8}, [%rd2+16]; "
        "ld.global.u16 %h1, [%rd2+32]; mov.f32 %f1, 0f00000000;"
    )
    made = []
    for a, b in (("{%r7}", "{%r8}"), ("%r7", "%r8")):
        body = (
            f"{load} mma.sync.aligned.kind::{kind}.block_scale{vector}.{shape} {{%f2, %f3, %f4, %f5}}, "
            f"{{%r1, %r2, %r3, %r4}}, {{%r5, %r6}}, "
            f"{{%f1, %f1, %f1, %f1}}, {a}, {{%h1, %h1}}, {b}, {{0, 1}}; st.global.v4.f32 [%rd1], {{%f2, "
            f"%f3, %f4, %f5}};"
        )
        text = (
            f".version 9.0\n.target sm_120a\n.address_size 64\n.visible .entry k(.param .u64 a, "
            f".param .u64 b)\n{{ {REGS}\nld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b];\n{body}\nret; }}\n"
        )
        made.append(compile_ptx(text, "sm_120a", {}))
    assert made[0] == made[1]


@pytest.mark.oracle
@pytest.mark.parametrize("arch", ARCHS)
def test_ptxas_gives_the_same_sums(arch: str) -> None:
    """A second source for the meaning of a sum: ptxas's own code in the simulator."""
    oracle.require("ptxas")
    body = (
        "ld.global.u32 %r1, [%rd2]; mad.lo.u32 %r2, %r1+21, %r1+22, %r1+-3; st.global.u32 [%rd1], %r2; "
        "add.u64 %rd3, g+1, 1; mov.u64 %rd4, g; sub.u64 %rd3, %rd3, %rd4; st.global.u64 [%rd1+8], %rd3;"
    )
    before = ".global .u32 g = 5;"
    text = (
        f".version 9.0\n.target {arch}\n.address_size 64\n{before}\n.visible .entry k(.param .u64 a, .param .u64 b)\n"
        f"{{ {REGS}\nld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b];\n{body}\nret; }}\n"
    )
    made = oracle.compile_ptx(text, arch)
    assert not isinstance(made, oracle.ToolError)
    assert run(body, arch, before, data=(77,)) == run(body, arch, before, data=(77,), image=made.read_bytes())
