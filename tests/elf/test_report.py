"""The output of -v: the whole text against ptxas's, except numbers of registers, frames and times (the code
differs)."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import oracle

MODULE = """
.version 7.8
.target sm_75
.address_size 64
.global .align 4 .u32 g1 = 5;
.global .align 4 .u32 g2[4];
.const .align 4 .u32 c1[3];
.shared .align 4 .b8 sm[12];
EXTERN
.visible .func (.param .u32 r) last (.param .u32 a) { .reg .u32 %r<3>; ld.param.u32 %r1, [a]; add.u32 %r1, %r1, 1; \
st.param.u32 [r], %r1; ret; }
.visible .func (.param .u32 r) inner (.param .u32 a) {
    .reg .u32 %r<3>; ld.param.u32 %r1, [a];
    { .param .u32 x; .param .u32 y; st.param.u32 [x], %r1; call.uni (y), CALLEE, (x); ld.param.u32 %r2, [y]; }
    st.param.u32 [r], %r2; ret; }
.visible .entry k(.param .u64 p) {
    .reg .u32 %r<5>; .reg .b64 %rd<3>; .shared .align 4 .b8 own[20];
    ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [%rd1]; bar.sync 3; ld.const.u32 %r3, [c1]; st.shared.u32 [own], %r3; \
st.shared.u32 [sm], %r3;
    { .param .u32 x; .param .u32 y; st.param.u32 [x], %r1; call.uni (y), inner, (x); ld.param.u32 %r2, [y]; }
    st.global.u32 [%rd1], %r2; st.global.u32 [g1], %r3; ret; }
.visible .entry k2(.param .u64 p) .maxntid 64 {
    .reg .f32 %f<5>; .reg .b64 %rd<3>; ld.param.u64 %rd1, [p]; ld.global.f32 %f1, [%rd1]; mul.f32 %f2, %f1, %f1; \
st.global.f32 [%rd1], %f2; ret; }
"""
WITH_EXTERN = MODULE.replace("EXTERN", ".extern .func (.param .u32 r) outside (.param .u32 a);").replace(
    "CALLEE", "outside"
)
WHOLE = MODULE.replace("EXTERN", "").replace("CALLEE", "last")

#: Functions of an object: another compiler's callers keep the stack a multiple of 8, so it is rounded up to that.
FRAMES = """
.version 7.8
.target sm_75
.address_size 64
.extern .func (.param .u32 r) outside (.param .u32 a);
.visible .func (.param .u32 r) inner (.param .u32 a) { .reg .u32 %r<3>; ld.param.u32 %r1, [a];
    { .param .u32 x; .param .u32 y; st.param.u32 [x], %r1; call.uni (y), outside, (x); ld.param.u32 %r2, [y]; } \
st.param.u32 [r], %r2; ret; }
.visible .func (.param .u32 r) local (.param .u32 a, .param .u32 b) { .reg .u32 %r<9>; .local .align 16 .b8 buf[64]; \
.reg .b64 %rd<4>;
    ld.param.u32 %r1, [a]; ld.param.u32 %r2, [b]; mov.u64 %rd1, buf; cvt.u64.u32 %rd2, %r2; add.s64 %rd1, %rd1, %rd2; \
st.local.v4.u32 [buf], {%r1, %r1, %r1, %r2};
    ld.local.u32 %r3, [%rd1]; st.param.u32 [r], %r3; ret; }
"""


def _said(command: list[str], frames: bool = False) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    text = re.sub(r"Used \d+ registers", "Used N registers", done.stdout + done.stderr)
    text = re.sub(r"Compile time = \d+\.\d{3} ms", "Compile time = T ms", text)
    return (
        re.sub(r"\d+ bytes stack frame", "N bytes stack frame", text).splitlines() if not frames else text.splitlines()
    )


@pytest.mark.parametrize("sm", ["75", "90"])
@pytest.mark.parametrize("options", [["-c"], ["-c", "-maxrregcount", "32"], ["-maxrregcount", "40"], []], ids=" ".join)
def test_report_is_ptxas_text(options: list[str], sm: str, tmp_path: Path) -> None:
    """Objects with and without outside functions: spill bytes count the registers that a function saves."""
    oracle.require("ptxas")
    source = tmp_path / "m.ptx"
    source.write_text(WITH_EXTERN if "-c" in options else WHOLE)
    arguments = [*options, "-v", f"-arch=sm_{sm}", str(source), "-o", str(tmp_path / "m.o")]
    theirs = _said([str(oracle.find("ptxas")), *arguments])
    assert _said([sys.executable, "-m", "orchestrator", *arguments]) == theirs
    assert any("Compile time = T ms" in line for line in theirs)


@pytest.mark.parametrize("sm", ["75", "90"])
def test_frames_of_functions_are_ptxas_frames(sm: str, tmp_path: Path) -> None:
    oracle.require("ptxas")
    source = tmp_path / "m.ptx"
    source.write_text(FRAMES)
    arguments = ["-c", "-v", f"-arch=sm_{sm}", str(source), "-o", str(tmp_path / "m.o")]
    theirs = _said([str(oracle.find("ptxas")), *arguments], frames=True)
    assert _said([sys.executable, "-m", "orchestrator", *arguments], frames=True) == theirs
    assert "    8 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads" in theirs


@pytest.mark.oracle
@pytest.mark.parametrize("options", [("32",), ("64", "-override-directive-values")])
def test_which_limit_takes_precedence(options: tuple[str, ...], tmp_path: Path) -> None:
    """The lines about -maxrregcount beside a kernel's own bounds."""
    oracle.require("ptxas")
    bounds = [
        "",
        ".maxntid 256 .minnctapersm 4",
        ".maxntid 256",
        ".maxnreg 40",
        ".reqntid 64 .minnctapersm 1 .maxnreg 64",
    ]
    kernels = "".join(f".visible .entry k{i}() {b}\n{{ ret; }}\n" for i, b in enumerate(bounds))
    source = tmp_path / "m.ptx"
    source.write_text(f".version 8.0\n.target sm_90\n.address_size 64\n{kernels}")
    arguments = ["-maxrregcount", *options, "-v", "-arch=sm_90", str(source), "-o", str(tmp_path / "m.cubin")]
    theirs, mine = (_said([*tool, *arguments]) for tool in (["ptxas"], [sys.executable, "-m", "orchestrator"]))
    assert [x for x in mine if "Overriding" in x] == [x for x in theirs if "Overriding" in x] != []
