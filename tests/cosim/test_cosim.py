"""Co-simulation: known miscompilations are flagged, ours passes; undefined values and races are distinguished from
differences."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ir_format import isa
from orchestrator.api import compile_ptx
from stages.check.command import compile_elsewhere
from stages.check.cosim import MOST_SEEDS, SEEDS, Cosim, Report
from stages.check.launches import WIDE_SEEDS, make, shapes
from stages.disasm.cubin import read_cubin
from stages.disasm.listing import decode_section
from stages.interpret.launch import Module
from stages.simulate import Device
from tests import oracle
from tests.cosim import one_op
from tests.cosim.forms import Corpus
from tests.cosim.forms.base import Form

KNOWN = sorted((Path(__file__).parent / "known").glob("*.ptx"))
KERNELS = Path(__file__).parents[1] / "kernels" / "ptx" / "sm_90"


def ours(text: str, arch: str = "sm_90") -> Any:
    """Our cubin, in the simulator."""
    return Device(compile_ptx(text, arch, {"fmad": 0}))


def judge(text: str, *, seeds: int = 3, arch: str = "sm_90", **devices: Any) -> Report:
    """The report on a module."""
    return Cosim(text, arch, devices, seeds).run()


def shown(text: str) -> tuple[str, list[str]]:
    """The SM on which ptxas is wrong, and the options (given in the file unless they are sm_90 and none)."""
    found = re.search(r"// With: (sm_\w+)(.*)", text)
    return (found[1], found[2].split()) if found else ("sm_90", [])


@pytest.mark.parametrize("path", KNOWN, ids=lambda p: p.stem)
def test_known_cases_pass_with_ours(path: Path) -> None:
    """Our cubin is right where ptxas's is wrong."""
    text = path.read_text()
    arch, _ = shown(text)
    report = judge(text, arch=arch, ours=ours(text, arch))
    assert report.findings == []
    assert report.judged["ours"] == 3


@pytest.mark.oracle
@pytest.mark.parametrize("path", KNOWN, ids=lambda p: p.stem)
def test_known_cases_are_flagged_in_ptxas(path: Path) -> None:
    """ptxas 13.0 is wrong on each of them, and the report names the PTX line and the SASS instruction."""
    oracle.require("ptxas")
    arch, options = shown(path.read_text())
    image = compile_elsewhere(oracle.find("ptxas"), path, arch, options)  # type: ignore[arg-type]
    assert isinstance(image, bytes)
    report = judge(path.read_text(), arch=arch, ptxas=Device(image))
    assert [f.kind for f in report.findings] == ["difference"]
    assert "PTX line" in report.findings[0].text and "STG" in report.findings[0].text


COUNTED = sorted((Path(__file__).parent / "known" / "counted").glob("*.ptx"))


def counted(path: Path, image: bytes) -> tuple[int, int]:
    """How many instructions of a kind a cubin has, and how many its PTX requires (given in the file): for code that the
    simulator can't run."""
    found = re.search(r"// Wanted: (\d+) (\w+)", path.read_text())
    assert found is not None
    cubin = read_cubin(image)
    items = [item for section in cubin.sections for item in decode_section(section, isa.target(cubin.sm))]
    return sum(item.inst is not None and item.inst.op == found.group(2) for item in items), int(found.group(1))


@pytest.mark.parametrize("path", COUNTED, ids=lambda p: p.stem)
def test_known_counts_with_ours(path: Path) -> None:
    """Ours drops nothing."""
    have, want = counted(path, compile_ptx(path.read_text(), "sm_90a", {}))
    assert have == want


@pytest.mark.oracle
@pytest.mark.parametrize("path", COUNTED, ids=lambda p: p.stem)
def test_known_counts_of_ptxas(path: Path) -> None:
    """ptxas 13.0 drops some at -O3, none at -O0 (where it has one more)."""
    oracle.require("ptxas")
    few, all_ = (oracle.run_ptxas(path, "90a", f"-O{level}") for level in (3, 0))
    assert isinstance(few, Path) and isinstance(all_, Path)
    have, want = counted(path, few.read_bytes())
    assert have < want <= counted(path, all_.read_bytes())[0]


HEAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 q)
{ .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %d<9>; .shared .b32 s[256];
ld.param.u64 %d0, [p]; ld.param.u64 %d1, [q]; cvta.to.global.u64 %d0, %d0; cvta.to.global.u64 %d1, %d1;
mov.u32 %r0, %tid.x; mul.wide.u32 %d2, %r0, 4; add.u64 %d0, %d0, %d2; add.u64 %d1, %d1, %d2;
"""


def kernel(body: str) -> str:
    """A kernel that reads at %d0 and writes at %d1."""
    return f"{HEAD}{body}\nret; }}\n"


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("add.u32 %r2, %r1, 7;", "add.u32 %r2, %r1, 8;"),
        ("setp.lt.u32 %p1, %r1, 9; selp.u32 %r2, 1, 2, %p1;", "setp.ge.u32 %p1, %r1, 9; selp.u32 %r2, 1, 2, %p1;"),
        ("mul.lo.u32 %r2, %r1, %r1;", "mul.lo.u32 %r2, %r1, %r0;"),
        ("mov.u32 %r2, %r1;", "setp.eq.u32 %p1, %r0, 5; mov.u32 %r2, %r1; @%p1 mov.u32 %r2, 99;"),
    ],
)
def test_a_wrong_cubin_is_flagged(right: str, wrong: str) -> None:
    """The cubin of another program that differs in one instruction."""
    load, store = "ld.global.u32 %r1, [%d0];\n", "\nst.global.u32 [%d1], %r2;"
    text = kernel(load + right + store)
    assert judge(text, ours=ours(text)).findings == []
    report = judge(text, other=ours(kernel(load + wrong + store)))
    assert [f.kind for f in report.findings] == ["difference"]
    assert "block (" in report.findings[0].text


def test_undefined_values_are_no_difference() -> None:
    """A register and shared memory that were never written: both are reported as undefined."""
    text = kernel("ld.global.u32 %r1, [%d0]; add.u32 %r2, %r1, %r5; st.global.u32 [%d1], %r2;")
    assert {f.kind for f in judge(text, ours=ours(text)).findings} == {"undefined"}
    text = kernel(
        "and.b32 %r3, %r0, 63; shl.b32 %r3, %r3, 2; mov.u32 %r4, s; add.u32 %r4, %r4, %r3; "
        "ld.shared.u32 %r2, [%r4]; st.global.u32 [%d1], %r2;"
    )
    assert {f.kind for f in judge(text, ours=ours(text)).findings} == {"undefined"}


def by_zero(type_: str) -> str:
    """Quotients and remainders, every second one by zero: the interpreter returns all ones, as ptxas's code does."""
    r, cut = {16: ("%h", "cvt.u16.u32"), 32: ("%r", "mov.b32"), 64: ("%d", "cvt.u64.u32")}[int(type_[1:])]
    a, b, c, d = (f"{r}{n}" for n in (4, 5, 6, 7))
    regs = ".reg .b16 %h<9>;" if r == "%h" else ""
    body = (
        f"and.b32 %r3, %r0, 1; {cut} {b}, %r3; ld.global.u32 %r1, [%d0]; {cut} {a}, %r1; rem.{type_} {c}, {a}, "
        f"{b}; div.{type_} {d}, {a}, {b};"
    )
    return kernel(
        f"{regs} {body} xor.b{type_[1:]} {c}, {c}, 5; add.{type_} {c}, {c}, {d}; mul.wide.u32 %d3, %r0, 8; "
        f"add.u64 %d1, %d1, %d3; st.global.{type_} [%d1], {c};"
    )


@pytest.mark.parametrize("type_", ["u16", "s16", "u32", "s32", "u64", "s64"])
def test_division_by_zero(type_: str, tmp_path: Path) -> None:
    text = by_zero(type_)
    assert judge(text, ours=ours(text)).findings == []
    ptxas = oracle.find("ptxas")
    if ptxas is not None:
        path = tmp_path / "k.ptx"
        path.write_text(text)
        image = compile_elsewhere(ptxas, path, "sm_90", [])
        assert isinstance(image, bytes), image
        assert judge(text, ptxas=Device(image)).findings == []


DOUBLES = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 q)
{ .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f64 %f<9>;
ld.param.u64 %d0, [p]; ld.param.u64 %d1, [q]; cvta.to.global.u64 %d0, %d0; cvta.to.global.u64 %d1, %d1;
mov.u32 %r0, %tid.x; mul.wide.u32 %d2, %r0, 8; add.u64 %d0, %d0, %d2; add.u64 %d1, %d1, %d2;
ld.global.b64 %d3, [%d0]; or.b64 %d3, %d3, 0x7ff8000000000001; mov.b64 %f0, %d3;
"""


def test_payloads_of_nans_are_no_difference() -> None:
    """A NaN of double precision stored as bits, whole or in halves, equals any NaN and nothing else. A value that
    depends on its payload is undefined. Integers that look like NaNs are compared bit by bit."""

    def doubles(body: str) -> str:
        return f"{DOUBLES}{body}\nret; }}\n"

    add, whole = "add.rn.f64 %f1, %f0, 0d3FF0000000000000; mov.b64 %d4, %f1;", "st.global.b64 [%d1], %d4;"
    halves = "mov.b64 {%r1, %r2}, %d4; st.global.v2.b32 [%d1], {%r1, %r2};"
    for store in (whole, halves):
        text = doubles(add + store)
        assert judge(text, ours=ours(text)).findings == []
        other = doubles("mov.b64 %d4, 0xfff8000000000777;" + store)
        assert judge(text, other=ours(other)).findings == [], "any NaN will do"
        number = doubles("mov.b64 %d4, 0x7ff0000000000000;" + store)
        assert [f.kind for f in judge(text, other=ours(number)).findings] == ["difference"]
    text = doubles(add + "and.b64 %d4, %d4, 0xffff;" + whole)
    assert {f.kind for f in judge(text, ours=ours(text)).findings} == {"undefined"}
    text = doubles("or.b64 %d3, %d3, 0x8000000000000000; mov.b64 %f0, %d3;" + add + "shr.u64 %d4, %d4, 63;" + whole)
    other = ours(doubles("mov.b64 %d4, 0;" + whole))
    assert {f.kind for f in judge(text, ours=ours(text), other=other).findings} == {"undefined"}, "its sign is open too"
    text = doubles("mov.b64 %d4, %d3;" + whole)
    assert judge(text, ours=ours(text)).findings == []
    assert [f.kind for f in judge(text, other=ours(doubles("xor.b64 %d4, %d3, 2;" + whole))).findings] == ["difference"]


def test_comparisons_with_undefined_values_are_no_difference() -> None:
    """A number that is rarely less than random bits: only small halves show that shared memory was never written."""
    text = kernel("""and.b32 %r3, %r0, 63; shl.b32 %r3, %r3, 2; mov.u32 %r4, s; add.u32 %r4, %r4, %r3; \
ld.shared.u32 %r2, [%r4];
    shr.u32 %r5, %r2, 16; sub.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 31; selp.u32 %r2, 1, 2, %p1; \
st.global.u32 [%d1], %r2;""")
    cosim = Cosim(text, "sm_90", {"constant": ours(kernel("st.global.u32 [%d1], 1;"))}, 1)
    assert {f.kind for f in cosim.run().findings} == {"undefined"}


def test_a_rare_undefined_value_of_the_cubin_is_no_difference() -> None:
    """Shared memory that was never written decides, one time in 16; the cubin's own contents may be among those. A
    wrong constant is still found."""
    body = """and.b32 %r3, %r0, 63; shl.b32 %r3, %r3, 2; mov.u32 %r4, s; add.u32 %r4, %r4, %r3; \
ld.shared.u32 %r2, [%r4];
    mul.lo.u32 %r2, %r2, 0x9E3779B1; shr.u32 %r2, %r2, 28; setp.eq.u32 %p1, %r2, WHICH; selp.u32 %r2, 1, 2, %p1;
    setp.eq.u32 %p2, %r0, 3; @%p2 mov.u32 %r2, 7; st.global.u32 [%d1], %r2;"""
    for which in ("3", "10"):
        text = kernel(body.replace("WHICH", which))
        assert {f.kind for f in judge(text, seeds=2, ours=ours(text)).findings} <= {
            "undefined",
            "race",
        }  # (two blocks write the same elements)
        wrong = kernel(body.replace("WHICH", which).replace("7;", "8;"))
        assert "difference" in {f.kind for f in judge(text, seeds=2, other=ours(wrong)).findings}


RARE = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 n, .param .f32 x, .param .u32 m)
{ .reg .u64 %d<4>; .reg .u32 %r<8>; .reg .f32 %f<4>; .reg .pred %p<4>;
ld.param.u64 %d0, [out]; ld.param.u32 %r1, [n]; ld.param.f32 %f1, [x]; ld.param.u32 %r2, [m]; mov.u32 %r0, %tid.x;
setp.ge.u32 %p0, %r0, %r1; @%p0 exit; mul.wide.u32 %d1, %r0, 4; add.u64 %d1, %d0, %d1; mov.u32 %r3, 5;
BODY st.global.u32 [%d1], %r3; ret; }
"""


@pytest.mark.parametrize(
    "when",
    [
        "setp.eq.u32 %p1, %r2, 0;",  # no iteration of a loop
        "setp.eq.f32 %p1, %f1, 0f7f800000; setp.eq.f32 %p2, %f1, 0fff800000; or.pred %p1, %p1, %p2;",
        "abs.f32 %f2, %f1; setp.lt.f32 %p1, %f2, 0f0f800000; setp.ne.and.f32 %p1, %f1, 0f00000000, %p1;",  # 2^-96
        "abs.f32 %f2, %f1; setp.gt.f32 %p1, %f2, 0f6f800000; setp.ne.and.f32 %p1, %f2, 0f7f800000, %p1;",  # 2^96
    ],
    ids=["no turn", "infinite", "little", "great"],
)
def test_rare_scalars_are_tried(when: str) -> None:
    """A value that is wrong only for such a scalar is found, and each scalar occurs in a launch that can be judged."""
    right, wrong = (RARE.replace("BODY", when + f"@%p1 mov.u32 %r3, {value};") for value in (6, 7))
    report = judge(right, seeds=SEEDS, ours=ours(right), other=ours(wrong))
    assert [(f.kind, f.side) for f in report.findings] == [("difference", "other")]
    assert report.judged["ours"] == SEEDS


ELEMENTS = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n)
{ .reg .u64 %d<4>; .reg .u32 %r<8>; .reg .f32 %f<4>; .reg .pred %p<4>;
ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out]; ld.param.u32 %r1, [n]; mov.u32 %r0, %ctaid.x; mov.u32 %r2, %ntid.x; \
mov.u32 %r3, %tid.x;
mad.lo.u32 %r0, %r0, %r2, %r3; setp.ge.u32 %p0, %r0, %r1; @%p0 exit; mul.wide.u32 %d2, %r0, 4; add.u64 %d0, %d0, %d2; \
add.u64 %d1, %d1, %d2;
LOAD mov.u32 %r3, 5; BODY st.global.u32 [%d1], %r3; ret; }
"""


@pytest.mark.parametrize(
    ("load", "body"),
    [
        ("ld.global.u32 %r2, [%d0];", "setp.gt.u32 %p1, %r2, 123456789;"),
        ("ld.global.s32 %r2, [%d0];", "setp.gt.s32 %p1, %r2, -77777;"),
        ("ld.global.f32 %f1, [%d0];", "setp.gt.f32 %p1, %f1, 0f47CE4780;"),
        ("", "setp.gt.u32 %p1, %r1, 1777;"),
    ],
    ids=["unsigned", "signed", "float", "count"],
)
def test_numbers_of_the_code_are_tried(load: str, body: str) -> None:
    """A comparison that also accepts the very number is found, in a buffer and in a parameter."""
    right = ELEMENTS.replace("LOAD", load).replace("BODY", body + "@%p1 mov.u32 %r3, 6;")
    wrong = right.replace("setp.gt", "setp.ge")
    assert right != wrong
    report = Cosim(right, "sm_90", {"ours": ours(right), "other": ours(wrong)}).run()
    assert [(f.kind, f.side) for f in report.findings] == [("difference", "other")]


def judged_seeds(text: str) -> list[int]:
    """The seeds of all launches of a module's only kernel."""
    cosim = Cosim(text, "sm_90", {})
    (code,) = cosim.module.codes.values()
    return [launch.seed for launch, _, _ in cosim.judged(code.unit, quiet=True)]


def test_wide_launches() -> None:
    """Very many threads follow if nothing depended on an order, and only then."""
    assert judged_seeds(
        ELEMENTS.replace("LOAD", "ld.global.u32 %r4, [%d0];").replace("BODY", "add.u32 %r3, %r4, 1;")
    ) == [*range(MOST_SEEDS), *WIDE_SEEDS]
    racing = ELEMENTS.replace("LOAD", "ld.param.u64 %d1, [out]; ld.global.u32 %r4, [%d1];").replace(
        "BODY", "add.u32 %r3, %r4, %r0;"
    )
    assert judged_seeds(racing) == [*range(MOST_SEEDS)]


def test_parameters_related_to_an_extreme() -> None:
    """A difference of two very great parameters, which is almost nothing for two of equal size."""
    body = (
        "add.f32 %f3, %f1, %f2; abs.f32 %f1, %f1; setp.gt.f32 %p1, %f1, 0f7E000000; setp.eq.and.f32 %p1, %f3, "
        "0f00000000, %p1;"
    )
    right, wrong = (
        ELEMENTS.replace(".param .u32 n", ".param .u32 n, .param .f32 x, .param .f32 y")
        .replace("LOAD", "ld.param.f32 %f1, [x]; ld.param.f32 %f2, [y];")
        .replace("BODY", f"{body} @%p1 mov.u32 %r3, {value};")
        for value in (6, 7)
    )
    report = Cosim(right, "sm_90", {"ours": ours(right), "other": ours(wrong)}).run()
    assert [(f.kind, f.side) for f in report.findings] == [("difference", "other")]


def test_races_are_no_difference() -> None:
    """Warps that read what others write without a barrier."""
    body = """
    and.b32 %r3, %r0, 255; shl.b32 %r3, %r3, 2; mov.u32 %r4, s; add.u32 %r4, %r4, %r3; st.shared.u32 [%r4], %r0; BARRIER
    xor.b32 %r3, %r3, 128; mov.u32 %r4, s; add.u32 %r4, %r4, %r3; ld.shared.u32 %r2, [%r4]; st.global.u32 [%d1], %r2;"""
    safe = kernel(body.replace("BARRIER", "bar.sync 0;"))
    report = Cosim(safe, "sm_90", {"ours": ours(safe)}, 1).run()
    assert report.findings == []
    racy = kernel(body.replace("BARRIER", ""))
    report = Cosim(racy, "sm_90", {"ours": ours(racy)}, 1).run()
    assert report.findings and {f.kind for f in report.findings} <= {"race", "undefined"}


def test_pointers_inside_of_parameters() -> None:
    """A record with a number and two pointers gets buffers for these; a wrong value at an address that one of them
    holds is found."""
    text = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .align 8 .b8 s[24])
{ .reg .b32 %r<9>; .reg .b64 %d<9>;
ld.param.u64 %d0, [s+8]; ld.param.u64 %d1, [s+16]; ld.param.u32 %r0, [s]; cvta.to.global.u64 %d0, %d0; \
cvta.to.global.u64 %d1, %d1;
mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d0, %d0, %d2; add.u64 %d1, %d1, %d2;
ld.global.u32 %r2, [%d0]; add.u32 %r2, %r2, %r0; st.global.u32 [%d1], %r2; ret; }
"""
    report = judge(text, ours=ours(text))
    assert report.findings == [] and report.judged["ours"] == 3
    wrong = judge(text, other=ours(text.replace("[s+8]", "[s+16]")))
    assert [f.kind for f in wrong.findings] == ["difference"] and "s+16[" in wrong.findings[0].text


POINTERS = """.version 8.7
.target sm_80
.address_size 64
.func (.param .b32 r) plus(.param .b32 x) { .reg .b32 %r<3>; ld.param.u32 %r1, [x]; add.u32 %r1, %r1, 5; \
st.param.b32 [r], %r1; ret; }
.func (.param .b32 r) times(.param .b32 x) { .reg .b32 %r<3>; ld.param.u32 %r1, [x]; mul.lo.u32 %r2, %r1, 77; \
xor.b32 %r1, %r1, %r2; st.param.b32 [r], %r1; ret; }
.func (.param .b32 r) twice(.param .b32 x);
.global .align 8 .u64 others[4] = {0, twice, plus, times};
.const .align 8 .u64 table[2] = {times, twice};
.func (.param .b32 r) twice(.param .b32 x)
{ .reg .b32 %r<6>; .reg .b64 %d<3>; .param .b32 a; .param .b32 b; ld.param.u32 %r1, [x]; and.b32 %r3, %r1, 8; \
cvt.u64.u32 %d1, %r3; mov.u64 %d2, others;
add.u64 %d1, %d1, %d2; ld.global.u64 %d1, [%d1+16]; st.param.b32 [a], %r1; \
P: .callprototype (.param .b32 _) _ (.param .b32 _);
call (b), %d1, (a), P; ld.param.b32 %r2, [b]; mad.lo.u32 %r2, %r2, 3, %r1; st.param.b32 [r], %r2; ret; }
.visible .entry first(.param .u64 p, .param .u64 q)
{ .reg .b32 %r<9>; .reg .b64 %d<9>; .param .b32 a; .param .b32 b; ld.param.u64 %d0, [p]; ld.param.u64 %d4, [q]; \
mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4;
add.u64 %d0, %d0, %d1; add.u64 %d4, %d4, %d1; ld.global.u32 %r1, [%d0]; and.b32 %r2, %r1, 1; mul.wide.u32 %d2, %r2, 8; \
mov.u64 %d3, table; add.u64 %d3, %d3, %d2;
ld.const.u64 %d3, [%d3]; st.param.b32 [a], %r1; Q: .callprototype (.param .b32 _) _ (.param .b32 _); \
call (b), %d3, (a), Q; ld.param.b32 %r3, [b];
mad.lo.u32 %r3, %r3, 31, %r1; st.global.u32 [%d4], %r3; ret; }
.visible .entry second(.param .u64 q)
{ .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<2>; .param .b32 a; .param .b32 b; ld.param.u64 %d0, [q]; \
mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4;
add.u64 %d0, %d0, %d1; and.b32 %r1, %r0, 3; mul.wide.u32 %d2, %r1, 8; mov.u64 %d3, others; add.u64 %d3, %d3, %d2; \
ld.global.u64 %d3, [%d3]; setp.eq.u64 %p0, %d3, 0;
mov.u64 %d5, plus; @%p0 mov.u64 %d3, %d5; setp.eq.u64 %p1, %d3, %d5;
st.param.b32 [a], %r0; R: .callprototype (.param .b32 _) _ (.param .b32 _); call (b), %d3, (a), R; \
ld.param.b32 %r3, [b]; @%p1 add.u32 %r3, %r3, 1000; st.global.u32 [%d0], %r3; ret; }
"""


@pytest.mark.parametrize("sm", ["80", "90", "120"])
def test_pointers_to_functions_in_data(sm: str) -> None:
    """Tables of functions in global and constant memory (as for virtual functions), shared by kernels whose copies of
    the functions are elsewhere; nested calls by pointer; null pointers; comparison with a pointer that the code
    computes."""
    text = POINTERS.replace("sm_80", f"sm_{sm}")
    report = Cosim(text, f"sm_{sm}", {"ours": ours(text, f"sm_{sm}")}, 3).run()
    assert report.findings == [] and report.judged["ours"] == 6


@pytest.mark.oracle
def test_pointers_to_functions_in_data_of_ptxas(tmp_path: Path) -> None:
    """ptxas's cubin of the same text passes too."""
    oracle.require("ptxas")
    (tmp_path / "pointers.ptx").write_text(POINTERS)
    image = compile_elsewhere(oracle.find("ptxas"), tmp_path / "pointers.ptx", "sm_80", [])  # type: ignore[arg-type]
    assert isinstance(image, bytes)
    assert Cosim(POINTERS, "sm_80", {"ptxas": Device(image)}, 2).run().findings == []


def test_wild_accesses_are_undefined() -> None:
    """A kernel that leaves every buffer is not judged, and the report gives its line."""
    text = kernel("ld.global.u32 %r1, [%d0+100000000]; st.global.u32 [%d1], %r1;")
    report = judge(text, ours=ours(text))
    assert {f.kind for f in report.findings} == {"undefined"}
    assert "line 8" in report.findings[0].text
    assert report.judged == {}


@pytest.mark.parametrize(
    "name", ["vadd", "saxpy", "scan", "histogram", "switch10", "call_twice", "divrem64", "half2_ops", "local_array"]
)
def test_kernels(name: str) -> None:
    """Test kernels with launches generated here: our cubins are right, and something was judged."""
    text = (KERNELS / f"{name}.ptx").read_text()
    report = judge(text, ours=ours(text))
    assert report.differences() == []
    assert report.judged["ours"] == 3


def test_command_line() -> None:
    """`orias-check --cosim`: exit status 0, 2 for nothing to do; no traceback on a missing file or bad PTX."""

    def check(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "stages.check", *args], capture_output=True, text=True, check=False, timeout=60
        )

    good = check(str(KNOWN[0]), "--cosim", "--seeds", "1")
    assert good.returncode == 0 and "0 differences" in good.stdout
    for bad in (["/nonexistent.ptx", "--cosim"], [__file__, "--cosim"], [str(KNOWN[0])]):
        done = check(*bad)
        assert done.returncode == 2, done
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arch", ["80", "90"])
def test_one_instruction_forms(arch: str) -> None:
    """A small sweep: interpreter and our cubin agree on a form of a sample of the rows that our chain supports."""
    forms = sample(f"sm_{arch}", 110, 5)
    sweep = one_op.Sweep(f"sm_{arch}", ("ours",), 5, None)
    sweep.judge_ours([f for f in forms if f.name[0] != "v"])
    assert sweep.counts["ours differs"] == 0
    assert sweep.counts["ours equal"] >= 40


@pytest.mark.oracle
@pytest.mark.parametrize("arch", one_op.TARGETS)
def test_one_instruction_forms_of_ptxas(arch: str) -> None:
    """A sample of the corpus: the interpreter and ptxas's cubins agree, apart from the listed exceptions."""
    oracle.require("ptxas")
    sweep = one_op.Sweep(f"sm_{arch}", ("ptxas",), 7, None)
    forms = sample(f"sm_{arch}", 150, 7)
    for at in range(0, len(forms), one_op.CHUNK):
        sweep.chunk(forms[at : at + one_op.CHUNK])
    assert sweep.counts["ptxas differs"] == 0
    assert sweep.counts["ptxas outside the manual, not explained"] == 0
    assert sweep.counts["ptxas equal"] >= 100


def sample(target: str, count: int, seed: int) -> list[Form]:
    """A few forms of the corpus, drawn from a seed."""
    forms = Corpus(target, limit=3, seed=seed).forms
    return random.Random(seed).sample(forms, count)


def test_dynamic_shared_memory_leaves_room_for_static_variables() -> None:
    """Launches that were tried again with the most shared memory did not start, which was called a difference."""
    text = """.version 8.0\n.target sm_90\n.address_size 64\n.extern .shared .align 16 .b8 d[];
.visible .entry k(.param .u64 p) { .shared .align 4 .b8 a[512]; .shared .align 16 .b8 b[40000]; .reg .b32 %r<3>;
    mov.u32 %r0, a; mov.u32 %r1, b; mov.u32 %r2, d; st.shared.u32 [%r0], %r1; st.shared.u32 [%r2], %r1; ret; }\n"""
    module = Module(text, "sm_90")
    kernel = module.codes["k"].unit
    device = ours(text)
    for attempt in (0, 1, 2, 3):
        launch = make(module.module, kernel, shapes(kernel)[0], 0, attempt)
        assert launch.shared > 0
        device.launch("k", 1, 32, [np.zeros(4, np.uint32)], shared=launch.shared)
    assert launch.shared > 180_000
