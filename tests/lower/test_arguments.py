"""Arguments and results of functions in memory: their address taken, lists without a size, accesses beyond their end.
The PTX interpreter and, if available, ptxas's cubin give the expected values."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.api import compile_ptx
from stages.check.command import compile_elsewhere
from stages.check.cosim import Cosim
from stages.simulate import Device
from tests import oracle
from tests.lower.helpers import lower_text

HEAD = ".version 8.7\n.target SM\n.address_size 64\n"
#: Addresses of arguments and results, as LLVM computes them: selected, offset by an index, read through .param,
#: .local and generic addresses.
TAKEN = """
.func (.param .align 16 .b8 r[32]) pick(.param .b32 a, .param .align 16 .b8 s[48], .param .b64 k,
.param .align 4 .b8 u[12], .param .align 2 .b8 w[2])
{
 .reg .b64 %rd<12>; .reg .b32 %r<12>; .reg .b16 %h<4>; .reg .pred %p;
 ld.param.b64 %rd2, [k];
 mov.b64 %rd1, s;
 mov.b64 %rd3, u;
 mov.b64 %rd4, r;
 mov.b64 %rd9, w;
 ld.param.b32 %r1, [a];
 add.s64 %rd5, %rd1, %rd2;
 ld.local.b32 %r2, [%rd5];
 ld.param.b32 %r3, [%rd5+4];
 cvta.local.u64 %rd6, %rd3;
 ld.b32 %r4, [%rd6+8];
 setp.gt.u32 %p, %r1, 4;
 selp.b64 %rd7, %rd1, %rd3, %p;
 ld.param.b32 %r5, [%rd7];
 st.local.b32 [%rd1+8], %r4;
 ld.param.v4.b32 {%r6, %r7, %r8, %r9}, [s];
 ld.param.b16 %h1, [%rd9];
 cvt.u32.u16 %r10, %h1;
 st.param.v4.b32 [r], {%r2, %r3, %r5, %r6};
 st.param.b32 [%rd4+16], %r8;
 add.s64 %rd4, %rd4, 20;
 st.local.b32 [%rd4], %r10;
 st.param.v2.b32 [r+24], {%r1, %r4};
 ret;
}
.func (.param .b32 r) twice(.param .align 4 .b8 u[12], .param .b32 i)
{
 .reg .b64 %rd<12>; .reg .b32 %r<12>; .reg .pred %p;
 mov.b64 %rd1, u;
 ld.param.b32 %r1, [i];
 setp.eq.s32 %p, %r1, 0;
 @%p bra END;
 mul.wide.u32 %rd2, %r1, 4;
 add.s64 %rd1, %rd1, %rd2;
 ld.local.b32 %r2, [%rd1];
 add.s32 %r2, %r2, %r1;
 st.param.b32 [%rd1+-4], %r2;
 sub.s32 %r1, %r1, 1;
 { .param .b32 o; .param .b32 n; .param .align 4 .b8 w[12]; st.param.b32 [n], %r1;
 ld.param.b32 %r4, [u]; ld.param.b32 %r5, [u+4]; ld.param.b32 %r6, [u+8]; st.param.b32 [w], %r4;
 st.param.b32 [w+4], %r5; st.param.b32 [w+8], %r6;
 call (o), twice, (w, n);
 ld.param.b32 %r3, [o]; }
 add.s32 %r2, %r2, %r3;
 st.param.b32 [r], %r2;
 ret;
END:
 ld.local.b32 %r2, [%rd1];
 st.param.b32 [r], %r2;
 ret;
}
.visible .entry k(.param .b64 in, .param .b64 out)
{
 .reg .b64 %rd<12>; .reg .b32 %r<40>; .reg .b16 %h<4>; .reg .pred %p;
 ld.param.b64 %rd1, [in]; ld.param.b64 %rd2, [out];
 cvta.to.global.u64 %rd1, %rd1; cvta.to.global.u64 %rd2, %rd2;
 mov.u32 %r1, %tid.x;
 mul.wide.u32 %rd3, %r1, 4;
 add.s64 %rd1, %rd1, %rd3;
 mul.wide.u32 %rd3, %r1, 48;
 add.s64 %rd2, %rd2, %rd3;
 ld.global.b32 %r2, [%rd1];
 and.b32 %r3, %r2, 7;
 mul.wide.u32 %rd4, %r3, 4;
 cvt.u16.u32 %h1, %r2;
 {
 .param .b32 a; .param .align 16 .b8 s[48]; .param .b64 kk; .param .align 4 .b8 u[12]; .param .align 2 .b8 w[2];
 .param .align 16 .b8 o[32];
 st.param.b32 [a], %r3;
 st.param.v4.b32 [s], {%r1, %r2, %r3, %r2};
 xor.b32 %r4, %r2, 5; xor.b32 %r5, %r2, 9;
 st.param.v4.b32 [s+16], {%r4, %r5, %r3, %r1};
 st.param.v4.b32 [s+32], {%r5, %r5, %r4, %r1};
 st.param.b64 [kk], %rd4;
 st.param.b32 [u], %r5; st.param.b32 [u+4], %r2; st.param.b32 [u+8], %r4;
 st.param.b16 [w], %h1;
 call (o), pick, (a, s, kk, u, w);
 ld.param.v4.b32 {%r10, %r11, %r12, %r13}, [o];
 ld.param.v4.b32 {%r14, %r15, %r16, %r17}, [o+16];
 }
 st.global.b32 [%rd2], %r10; st.global.b32 [%rd2+4], %r11; st.global.b32 [%rd2+8], %r12; st.global.b32 [%rd2+12], %r13;
 st.global.b32 [%rd2+16], %r14; st.global.b32 [%rd2+20], %r15; st.global.b32 [%rd2+24], %r16;
 st.global.b32 [%rd2+28], %r17;
 { .param .align 4 .b8 u[12]; .param .b32 n; .param .b32 o;
 st.param.b32 [u], %r4; st.param.b32 [u+4], %r2; st.param.b32 [u+8], %r5;
 and.b32 %r6, %r2, 1; add.s32 %r6, %r6, 1;
 st.param.b32 [n], %r6;
 call (o), twice, (u, n);
 ld.param.b32 %r7, [o]; }
 st.global.b32 [%rd2+32], %r7;
 ret;
}
"""
#: sum(n, list): the words of a list of arguments without a size, eight bytes each.
LIST = """
.visible .func (.param .b32 r) sum(.param .b32 n, .param .align 8 .b8 va[])
{
 .reg .b64 %rd<12>; .reg .b32 %r<12>; .reg .pred %p;
 mov.b64 %rd1, va;
 ld.param.b32 %r1, [n];
 mov.b32 %r2, 0;
L: setp.eq.s32 %p, %r1, 0;
 @%p bra E;
 ld.local.b32 %r3, [%rd1];
 add.s32 %r2, %r2, %r3;
 add.s64 %rd1, %rd1, 8;
 sub.s32 %r1, %r1, 1;
 bra L;
E: st.param.b32 [r], %r2;
 ret;
}
.visible .entry k(.param .b64 in, .param .b64 out)
{
 .reg .b64 %rd<12>; .reg .b32 %r<40>; .reg .b16 %h<4>; .reg .pred %p;
 ld.param.b64 %rd1, [in]; ld.param.b64 %rd2, [out];
 cvta.to.global.u64 %rd1, %rd1; cvta.to.global.u64 %rd2, %rd2;
 mov.u32 %r1, %tid.x;
 mul.wide.u32 %rd3, %r1, 4;
 add.s64 %rd1, %rd1, %rd3;
 add.s64 %rd2, %rd2, %rd3;
 ld.global.b32 %r2, [%rd1];
 { .param .align 8 .b8 u[24]; .param .b32 n; .param .b32 o;
 st.param.b32 [u], %r2; st.param.b32 [u+8], %r1; st.param.b32 [u+16], %r2;
 and.b32 %r6, %r2, 3;
 st.param.b32 [n], %r6;
 call (o), sum, (n, u);
 ld.param.b32 %r7, [o]; }
 st.global.b32 [%rd2], %r7;
 ret;
}
"""
KERNELS = {"taken": TAKEN, "list": LIST}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("sm", ["sm_75", "sm_90", "sm_120"])
def test_values(name: str, sm: str) -> None:
    text = HEAD.replace("SM", sm) + KERNELS[name]
    cubins = {f"O{level}": Device(compile_ptx(text, sm, {"opt-level": level})) for level in (0, 3)}
    report = Cosim(text, sm, cubins, 3).run()
    assert report.findings == [], report.findings[0].text
    assert report.judged == {"O0": 3, "O3": 3}


@pytest.mark.oracle
@pytest.mark.parametrize("name", KERNELS)
def test_values_of_ptxas(name: str, tmp_path: Path) -> None:
    """The interpreter and ptxas agree on the meaning of such arguments."""
    oracle.require("ptxas")
    path = tmp_path / "k.ptx"
    path.write_text(HEAD.replace("SM", "sm_90") + KERNELS[name])
    image = compile_elsewhere(oracle.find("ptxas"), path, "sm_90", [])  # type: ignore[arg-type]
    assert isinstance(image, bytes), image
    report = Cosim(path.read_text(), "sm_90", {"ptxas": Device(image)}, 3).run()
    assert report.findings == []
    assert report.judged == {"ptxas": 3}


def _function(body: str) -> str:
    regs = ".reg .b64 %rd<9>; .reg .b32 %r<9>;"
    return (
        HEAD.replace("SM", "sm_90")
        + f".visible .func (.param .align 8 .b8 r[16]) f(.param .b32 a, .param .align 16 .b8 s[12]) {{ {regs}\n"
        f"{body}\nret; }}\n"
    )


@pytest.mark.parametrize(
    ("body", "warned"),
    [
        (
            "ld.param.v4.b32 {%r1, %r2, %r3, %r4}, [s]; st.param.v2.b32 [r], {%r1, %r3};",
            "",
        ),  # LLVM reads the padding too
        ("ld.param.b32 %r1, [s+12]; st.param.b32 [r], %r1;", "s"),
        ("st.param.b32 [r+16], 3;", "r"),
        ("ld.param.b32 %r1, [s+8]; st.param.b32 [r+12], %r1;", ""),
    ],
)
def test_accesses_beyond_the_end_of_an_argument(body: str, warned: str, tmp_path: Path) -> None:
    """Words beyond an argument's end do not exist; an access that lies completely there gives a warning."""
    path = tmp_path / "f.ptx"
    path.write_text(_function(body))
    done = subprocess.run(
        [sys.executable, "-m", "orchestrator", "-c", "-arch", "sm_90", str(path), "-o", str(tmp_path / "f.o")],
        capture_output=True,
        text=True,
    )
    said = f"ptxas {path}, line 5; warning : Access outside of parameter '{warned}'\n" if warned else ""
    assert (done.returncode, done.stdout + done.stderr) == (0, said)


@pytest.mark.parametrize(
    ("target", "align", "before", "places"),
    [
        ("sm_75", 64, 0, [32, 160, 224]),
        ("sm_80", 256, 1, [0, 160, 288, 416]),
        ("sm_90a", 16, 1, [0, 16, 144, 160]),
        ("sm_90a", 32, 2, [0, 4, 16, 144, 176]),
        ("sm_90a", 64, 0, [48, 176, 240]),
        ("sm_90a", 128, 0, [112, 240, 368]),
        ("sm_100a", 64, 1, [0, 64, 192, 256]),
    ],
)
def test_addresses_of_parameters_are_aligned(target: str, align: int, before: int, places: list[int]) -> None:
    """A parameter's offset is aligned in the bank (expected: ptxas 13.0's records): the copy unit refuses a tensor
    map that is not at a multiple of 64."""
    params = ", ".join(
        [
            *(f".param .u32 p{i}" for i in range(before)),
            f".param .align {align} .b8 m[128], .param .u64 q, .param .align {align} .b8 z[128]",
        ]
    )
    text = f".version 9.0\n.target {target}\n.address_size 64\n.visible .entry k({params}) {{ ret; }}"
    (unit,) = lower_text(text, target)
    assert [p.offset for p in unit.params] == places
