"""FMA contraction: which operations are contracted, and values that are rounded once."""

from __future__ import annotations

import struct
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from ir_format import isa
from ir_format.model import AttrValue
from orchestrator.api import compile_ptx
from stages.disasm.cubin import read_cubin
from stages.disasm.listing import decode_section
from stages.simulate import Device
from tests import oracle

#: Name, PTX, expected instructions. Each result is %f20, %d11 or %r11.
F32 = {
    "sum": ("mul.f32 %f10,%f1,%f2; add.f32 %f20,%f10,%f3;", "FFMA"),
    "difference": ("mul.f32 %f10,%f1,%f2; sub.f32 %f20,%f10,%f3;", "FFMA"),
    "from an addend": ("mul.f32 %f10,%f1,%f2; sub.f32 %f20,%f3,%f10;", "FFMA"),
    "rounded product": ("mul.rn.f32 %f10,%f1,%f2; add.f32 %f20,%f10,%f3;", "FMUL FADD"),
    "rounded sum": ("mul.f32 %f10,%f1,%f2; add.rn.f32 %f20,%f10,%f3;", "FMUL FADD"),
    "another mode": ("mul.f32 %f10,%f1,%f2; add.rz.f32 %f20,%f10,%f3;", "FMUL FADD"),
    "magnitude": ("mul.f32 %f10,%f1,%f2; abs.f32 %f11,%f10; add.f32 %f20,%f11,%f3;", "FMUL FADD"),
    "both flush": ("mul.ftz.f32 %f10,%f1,%f2; add.ftz.f32 %f20,%f10,%f3;", "FFMA"),
    "one flushes": ("mul.ftz.f32 %f10,%f1,%f2; add.f32 %f20,%f10,%f3;", "FMUL FADD"),
    "saturated sum": ("mul.f32 %f10,%f1,%f2; add.sat.f32 %f20,%f10,%f3;", "FFMA"),
    "saturated product": ("mul.sat.f32 %f10,%f1,%f2; add.f32 %f20,%f10,%f3;", "FMUL FADD"),
    "two sums": ("mul.f32 %f10,%f1,%f2; add.f32 %f11,%f10,%f3; sub.f32 %f12,%f10,%f4; mul.rn.f32 %f20,%f11,%f12;",
    "FFMA FFMA FMUL"),
    "read elsewhere": ("mul.f32 %f10,%f1,%f2; add.f32 %f11,%f10,%f3; mul.rn.f32 %f20,%f10,%f11;", "FMUL FADD FMUL"),
    "two products": ("mul.f32 %f10,%f1,%f2; mul.f32 %f11,%f3,%f4; add.f32 %f20,%f10,%f11;", "FMUL FFMA"),
    "two products, exchanged": ("mul.f32 %f10,%f1,%f2; mul.f32 %f11,%f3,%f4; sub.f32 %f20,%f11,%f10;", "FMUL FFMA"),
    "one of two read twice": (
            "mul.f32 %f10,%f1,%f2; mul.f32 %f11,%f3,%f4; add.f32 %f12,%f10,%f11; add.f32 %f13,%f10,%f3; mul.rn.f32 "
            "%f20,%f12,%f13;",
        "FMUL FADD FFMA FMUL",
    ),
    "double": ("mul.f32 %f10,%f1,%f2; add.f32 %f20,%f10,%f10;", "FMUL FADD"),
    "constants": ("mul.f32 %f10,%f1,0f3F800001; add.f32 %f20,%f10,0fBF800001;", "FFMA"),
    "factor rewritten": ("mul.f32 %f10,%f1,%f2; mul.rn.f32 %f1,%f3,%f4; add.f32 %f20,%f10,%f1;", "FMUL FFMA"),
    "guarded sum": ("mul.f32 %f10,%f1,%f2; setp.gt.f32 %p1,%f3,%f4; mov.f32 %f20,%f1; @%p1 add.f32 %f20,%f10,%f3;",
    "FFMA"),
    "chain": ("mul.f32 %f10,%f1,%f2; add.f32 %f11,%f10,%f3; mul.f32 %f12,%f11,%f4; add.f32 %f20,%f12,%f1;",
    "FFMA FFMA"),
}  # fmt: skip
F64 = {
    "sum": ("mul.f64 %d10,%d1,%d2; add.f64 %d11,%d10,%d3;", "DFMA"),
    "from an addend": ("mul.f64 %d10,%d1,%d2; sub.f64 %d11,%d3,%d10;", "DFMA"),
    "rounded": ("mul.rn.f64 %d10,%d1,%d2; add.f64 %d11,%d10,%d3;", "DMUL DADD"),
}
HALF = {
    "pair": ("mul.f16x2 %r10,%r1,%r2; add.f16x2 %r11,%r10,%r3;", "HFMA2"),
    "difference": ("mul.f16x2 %r10,%r1,%r2; sub.f16x2 %r11,%r3,%r10;", "HFMA2"),
    "bfloats": ("mul.bf16x2 %r10,%r1,%r2; add.bf16x2 %r11,%r10,%r3;", "HFMA2"),
    "rounded": ("mul.rn.f16x2 %r10,%r1,%r2; add.f16x2 %r11,%r10,%r3;", "HMUL2 HADD2"),
    "scalar": (
        "mov.b32 {%h1,%h4},%r1; mov.b32 {%h2,%h5},%r2; mov.b32 {%h3,%h6},%r3; "
        "mul.f16 %h10,%h1,%h2; add.f16 %h11,%h10,%h3; mov.b32 %r11,{%h11,%h11};",
        "HFMA2",
    ),
    "low half of a pair": (
            "mul.f16x2 %r10,%r1,%r2; mov.b32 {%h10,%h4},%r10; mov.b32 {%h3,%h6},%r3; add.f16 %h11,%h10,%h3; mov.b32 "
            "%r11,{%h11,%h11};",
        "HMUL2 HADD2",
    ),
}  # fmt: skip
CASES = [(bits, name) for bits, group in ((32, F32), (64, F64), (16, HALF)) for name in group]
GROUPS = {32: F32, 64: F64, 16: HALF}
COUNTED = ("FADD", "FMUL", "FFMA", "DADD", "DMUL", "DFMA", "HADD2", "HMUL2", "HFMA2")


def text(bits: int, body: str, arch: str) -> str:
    """A kernel of one block: each thread reads four numbers and writes one."""
    size, name, kind = {32: (4, "f", "f32"), 64: (8, "d", "f64"), 16: (4, "r", "b32")}[bits]
    loads = " ".join(f"ld.global.{kind} %{name}{n + 1},[%rd1+{size * n}];" for n in range(4))
    result = {32: "%f20", 64: "%d11", 16: "%r11"}[bits]
    return f""".version 8.6
.target {arch}
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out) {{
.reg .b64 %rd<4>; .reg .f32 %f<24>; .reg .f64 %d<12>; .reg .b32 %r<12>; .reg .b16 %h<12>; .reg .pred %p<2>; \
.reg .b32 %t;
ld.param.u64 %rd1,[in]; ld.param.u64 %rd2,[out]; mov.u32 %t,%tid.x;
mad.wide.u32 %rd1,%t,{4 * size},%rd1; mad.wide.u32 %rd2,%t,{size},%rd2;
{loads}
{body}
st.global.{kind} [%rd2],{result}; ret; }}
"""


def counted(cubin: bytes) -> Counter[str]:
    """How many of each arithmetic instruction a cubin has."""
    found = isa.target("sm_90")
    names = [d.inst.op for s in read_cubin(cubin).sections for d in decode_section(s, found) if d.inst is not None]
    return Counter(n for n in names if n in COUNTED)


def run(cubin: bytes, bits: int) -> list[int]:
    """Results for numbers near 1 that need more bits than a product keeps, and for some of other sizes."""
    rng = np.random.default_rng(bits)
    kind: type = {32: np.uint32, 64: np.uint64, 16: np.uint32}[bits]
    if bits == 16:
        one = rng.integers(0x3C00, 0x3C40, (32, 4)) | rng.integers(0x3C00, 0x3C40, (32, 4)) << 16
    else:
        one = (0x3F800000 if bits == 32 else 0x3FF0000000000000) + rng.integers(0, 1 << 13, (32, 4))
        one[16:] ^= rng.integers(0, 2, (16, 4)) << (bits - 1)
    given, out = one.astype(kind).reshape(-1), np.zeros(32, kind)
    Device(cubin).launch("k", 1, 32, [given, out])
    return [int(x) for x in out]


@pytest.mark.parametrize(("bits", "name"), CASES)
def test_what_is_contracted(bits: int, name: str) -> None:
    body, wanted = GROUPS[bits][name]
    assert counted(compile_ptx(text(bits, body, "sm_90"), "sm_90")) == Counter(wanted.split())


@pytest.mark.parametrize("options", [{"fmad": 0}, {"opt-level": 0}])
def test_nothing_is_contracted_without_fmad(options: dict[str, AttrValue]) -> None:
    cubin = compile_ptx(text(32, F32["sum"][0], "sm_90"), "sm_90", options)
    assert counted(cubin) == Counter(["FMUL", "FADD"])


@pytest.mark.oracle
@pytest.mark.parametrize(("bits", "name"), CASES)
def test_contraction_equals_ptxas(bits: int, name: str) -> None:
    """The same number of instructions and the same bits: they show which of two products is rounded."""
    source = text(bits, GROUPS[bits][name][0], "sm_90")
    theirs = oracle.compile_ptx(source, "90")
    assert isinstance(theirs, Path), theirs
    assert run(compile_ptx(source, "sm_90"), bits) == run(theirs.read_bytes(), bits)


def test_a_sum_that_one_rounding_makes_exact() -> None:
    """(1 + 2^-12)^2 - (1 + 2^-11) is 2^-24, which two roundings lose."""
    body = F32["difference"][0]
    for options, wanted in (({}, 2.0**-24), ({"fmad": 0}, 0.0)):
        given = np.array([1 + 2**-12, 1 + 2**-12, 1 + 2**-11, 0], np.float32)
        out = np.zeros(1, np.float32)
        Device(compile_ptx(text(32, body, "sm_80"), "sm_80", options)).launch("k", 1, 1, [given, out])
        assert struct.unpack("f", out.tobytes()) == (wanted,)
