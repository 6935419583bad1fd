"""Instructions in ptxas's code that only later SMs have: pairs of floats, three-way minimum of halves, masked 256-bit
loads; nvlink's value for an unknown stack."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ir_format import isa
from ir_format.flow import PHYSICAL_BASE
from ir_format.hazards import hazards
from stages.disasm.cubin import read_cubin
from stages.disasm.listing import decode_section
from stages.simulate import Device
from tests import oracle

HEAD = ".version 8.8\n.target sm_{}\n.address_size 64\n"


def compiled(body: str, arch: str) -> bytes:
    """ptxas's cubin of one kernel k(p, q) whose pointers are in %rd1 and %rd2."""
    oracle.require("ptxas")
    regs = ".reg .b64 %rd<12>; .reg .b32 %r<12>; .reg .f32 %f<6>; ld.param.u64 %rd1,[p]; ld.param.u64 %rd2,[q];"
    got = oracle.compile_ptx(
        HEAD.format(arch) + f".visible .entry k(.param .u64 p, .param .u64 q, .param .f32 w) {{ {regs} {body} ret; }}",
        arch,
    )
    assert isinstance(got, Path), got
    return got.read_bytes()


def code(data: bytes) -> list[str]:
    """Its instructions."""
    cubin = read_cubin(data)
    return [item.text for section in cubin.sections for item in decode_section(section, isa.target(cubin.sm))]


@pytest.mark.oracle
@pytest.mark.parametrize("strict", [False, True])
def test_pairs_of_floats(strict: bool) -> None:
    """Sums, products, fused multiply-adds; swapped pairs, one number for both halves; rounding modes."""
    body = """ld.param.f32 %f5,[w]; ld.global.v2.b64 {%rd3,%rd4},[%rd1]; ld.global.b64 %rd5,[%rd1+16];
    fma.rn.f32x2 %rd6,%rd3,%rd4,%rd5; st.global.b64 [%rd2],%rd6; add.rm.f32x2 %rd7,%rd3,%rd4; \
st.global.b64 [%rd2+8],%rd7; mul.rz.f32x2 %rd8,%rd7,%rd4; st.global.b64 [%rd2+16],%rd8;
    mov.b64 %rd9,{%f5,%f5}; mul.rn.f32x2 %rd9,%rd3,%rd9; st.global.b64 [%rd2+24],%rd9; mov.b64 {%f1,%f2},%rd9; \
mov.b64 %rd10,{%f2,%f1}; add.rn.f32x2 %rd10,%rd10,%rd5; st.global.b64 [%rd2+32],%rd10;"""
    data = compiled(body, "100a")
    for name in ("FFMA2", "FADD2.RM", "FMUL2.RZ", "F32x2.LO_HI", ".F32"):
        assert any(name in line for line in code(data)), name
    a, b, c = (np.array(x, np.float32) for x in ([1.1, -3e7], [1 / 3, 7.7], [-0.36666667, 2.5]))
    out = np.zeros(10, np.float32)
    Device(data).launch("k", 1, 1, [np.concatenate([a, b, c]), out, np.float32(0.3)], strict=strict)
    wide = [x.astype(np.float64) for x in (a, b, c)]
    fused = (wide[0] * wide[1] + wide[2]).astype(np.float32)
    exact = wide[0] + wide[1]
    down = exact.astype(np.float32)
    down = np.where(down > exact, np.nextafter(down, np.float32(-np.inf)), down).astype(np.float32)
    product = down.astype(np.float64) * wide[1]
    cut = product.astype(np.float32)
    cut = np.where(np.abs(cut) > np.abs(product), np.nextafter(cut, np.float32(0)), cut).astype(np.float32)
    scaled = a * np.float32(0.3)
    assert np.array_equal(out, np.concatenate([fused, down, cut, scaled, scaled[::-1] + c]))


@pytest.mark.oracle
@pytest.mark.parametrize("used", [[0, 2, 3, 6, 7], [1, 3, 5], [7], [0, 1, 2, 3], list(range(8))])
def test_masked_loads_of_256_bits(used: list[int]) -> None:
    """The words that the mask names go to consecutive registers; the other words leave their registers unchanged, also
    for the hazard tables."""
    regs = ",".join(f"%r{i}" if i in used else "_" for i in range(8))
    data = compiled(
        f"ld.global.v8.b32 {{{regs}}},[%rd1]; " + " ".join(f"st.global.b32 [%rd2+{4 * i}],%r{i};" for i in used), "100a"
    )
    out = np.full(8, -1, np.int32)
    Device(data).launch("k", 1, 1, [np.arange(10, 18, dtype=np.int32), out, np.float32(0)])
    assert out.tolist() == [10 + i if i in used else -1 for i in range(8)]
    cubin = read_cubin(data)
    (load,) = (
        i.inst
        for s in cubin.sections
        for i in decode_section(s, isa.target(cubin.sm))
        if i.inst is not None and i.inst.op == "LDG"
    )
    assert sum(cell < PHYSICAL_BASE["UR"] for cell, _, _ in hazards(100).access(load).writes) == len(used)


@pytest.mark.oracle
def test_three_way_minimum_of_halves() -> None:
    body = """ld.global.v2.b32 {%r1,%r2},[%rd1]; ld.global.b32 %r3,[%rd1+8]; max.s16x2 %r4,%r1,%r2; \
max.s16x2 %r4,%r4,%r3; st.global.b32 [%rd2],%r4;
    min.u16x2 %r5,%r1,%r2; min.u16x2 %r5,%r5,%r3; st.global.b32 [%rd2+4],%r5; max.s16x2 %r6,%r1,%r2; \
min.s16x2 %r6,%r6,%r3; st.global.b32 [%rd2+8],%r6;"""
    data = compiled(body, "90a")
    assert any("VIMNMX3.S16x2" in line for line in code(data))
    values = np.array([-5, 300, 7, -32768, 100, -2], np.int16)
    out = np.zeros(6, np.int16)
    Device(data).launch("k", 1, 1, [values, out, np.float32(0)])
    a, b, c = values.reshape(3, 2)
    unsigned = np.minimum(np.minimum(a.view(np.uint16), b.view(np.uint16)), c.view(np.uint16)).view(np.int16)
    assert out.tolist() == [*np.maximum(np.maximum(a, b), c), *unsigned, *np.minimum(np.maximum(a, b), c)]


@pytest.mark.oracle
def test_the_stack_of_a_linked_recursion(tmp_path: Path) -> None:
    """nvlink writes -1 if it knows no depth: the launch's own stack size then counts."""
    oracle.require("ptxas", "nvlink")
    text = (
        HEAD.format("90")
        + """.visible .func (.param .b32 r) f(.param .b32 n) { .reg .b32 %r<5>; .reg .pred %p; ld.param.b32 %r1,[n]; \
setp.lt.u32 %p,%r1,2; mov.u32 %r3,1; @%p bra D;
    sub.u32 %r2,%r1,1; { .param .b32 a; .param .b32 b; st.param.b32 [a],%r2; call (b),f,(a); ld.param.b32 %r3,[b]; } \
mul.lo.u32 %r3,%r3,%r1; D: st.param.b32 [r],%r3; ret; }
    .visible .entry k(.param .u64 p) { .reg .b64 %rd; .reg .b32 %r<2>; ld.param.u64 %rd,[p]; { .param .b32 a; \
.param .b32 b; st.param.b32 [a],7; call (b),f,(a); ld.param.b32 %r1,[b]; }
    st.global.b32 [%rd],%r1; ret; }"""
    )
    made = oracle.compile_ptx(text, "90", "-c")
    assert isinstance(made, Path), made
    linked = tmp_path / "linked.cubin"
    said = oracle.run_tool("nvlink", "-arch", "sm_90", str(made), "-o", str(linked))
    assert linked.is_file(), said
    out = np.zeros(1, np.int32)
    Device(linked.read_bytes()).launch("k", 1, 1, [out])
    assert out[0] == 5040


@pytest.mark.oracle
def test_product_of_halves_as_a_float() -> None:
    """HMUL2.F32 of sm_75: ptxas contracts the product and its conversion, so that it is rounded once, to f32."""
    body = """.reg .b16 %h<3>; mov.u32 %r1,%tid.x; mad.wide.u32 %rd1,%r1,4,%rd1; mad.wide.u32 %rd2,%r1,4,%rd2;
    ld.global.b16 %h0,[%rd1]; ld.global.b16 %h1,[%rd1+2]; mul.f16 %h2,%h0,%h1; cvt.f32.f16 %f1,%h2; \
st.global.f32 [%rd2],%f1;"""
    data = compiled(body, "75")
    assert any("HMUL2.F32" in line for line in code(data))
    halves = np.random.default_rng(1).uniform(-300, 300, 128).astype(np.float16)
    out = np.zeros(64, np.float32)
    Device(data).launch("k", 1, 64, [halves, out, np.float32(0)])
    assert np.array_equal(out, halves[::2].astype(np.float32) * halves[1::2].astype(np.float32))
    assert not np.array_equal(out, (halves[::2] * halves[1::2]).astype(np.float32))
