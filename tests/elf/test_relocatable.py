"""Objects (-c): linked by nvlink with ptxas's objects, both ways, and run by the simulator; all four pairs must do the
same."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ir_format.diag import OriasError
from orchestrator.api import compile_ptx
from tests import oracle

HEAD = ".version {version}\n.target {target}\n.address_size 64\n"
DECLARED = ".extern .func (.param .b32 r) ext(.param .b32 a);\n"
CALL = "{{ .param .b32 p0; .param .b32 q0; st.param.b32 [p0], {x}; call.uni (q0), {f}, (p0); ld.param.b32 {y}, [q0]; }}"

# Calls in both directions, a routine of the math library, globals and constants of both files, shared memory.
CALLER = f"""{DECLARED}
.extern .global .align 4 .u32 eg;
.visible .global .align 4 .u32 vg = 5;
.global .align 4 .u32 sg[4];
.visible .const .align 4 .u32 cv[4] = {{7, 8, 9, 1}};
.const .align 1 .b8 cb[8] = {{1, 2, 3, 4, 5, 6, 7, 8}};
.global .align 8 .u64 ptr = vg;
.extern .shared .align 16 .b8 dyn[];
.visible .func (.param .b32 r) dbl(.param .b32 a)
{{ .reg .b32 %r<4>; .reg .f64 %d<4>; ld.param.u32 %r1, [a]; cvt.rn.f64.u32 %d1, %r1; \
div.rn.f64 %d2, %d1, 0d4008000000000000;
cvt.rzi.u32.f64 %r2, %d2; st.param.b32 [r], %r2; ret; }}
.func (.param .b32 r) loc(.param .b32 a)
{{ .reg .b32 %r<4>; ld.param.u32 %r1, [a]; mad.lo.u32 %r2, %r1, %r1, 3;
{CALL.format(x="%r2", f="ext", y="%r2")}
st.param.b32 [r], %r2; ret; }}
.visible .entry k(.param .u64 p, .param .u32 n)
{{ .reg .b32 %r<20>; .reg .b64 %rd<9>; .shared .align 4 .u32 sh[8];
ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n];
{CALL.format(x="%r1", f="loc", y="%r2")}
{CALL.format(x="%r2", f="dbl", y="%r2")}
ld.global.u32 %r3, [eg]; add.u32 %r2, %r2, %r3;
ld.global.u64 %rd2, [ptr]; ld.global.u32 %r3, [%rd2]; add.u32 %r2, %r2, %r3;
st.global.u32 [sg+4], %r2; ld.const.u32 %r3, [cv+8]; add.u32 %r2, %r2, %r3; ld.const.u8 %r3, [cb+3]; \
add.u32 %r2, %r2, %r3;
st.shared.u32 [sh+4], %r2; st.shared.u32 [dyn+4], %r1; bar.sync 0; ld.shared.u32 %r4, [sh+4]; \
ld.shared.u32 %r5, [dyn+4]; add.u32 %r4, %r4, %r5;
mul.wide.u32 %rd4, %r1, 4; mov.u64 %rd7, cv; add.u64 %rd7, %rd7, %rd4; ld.const.u32 %r3, [%rd7]; add.u32 %r4, %r4, %r3;
cvta.const.u64 %rd7, %rd7; ld.u32 %r3, [%rd7]; add.u32 %r4, %r4, %r3;
st.global.u32 [%rd1], %r4; ret; }}
"""
CALLEE = """.visible .global .align 4 .u32 eg = 11;
.visible .func (.param .b32 r) ext(.param .b32 a)
{ .reg .b32 %r<4>; .local .align 8 .b8 lo[16]; .reg .b64 %rd<3>; ld.param.u32 %r1, [a]; mov.u64 %rd1, lo; \
add.u64 %rd1, %rd1, 8;
st.local.u32 [%rd1], %r1; ld.local.u32 %r2, [%rd1]; mad.lo.u32 %r2, %r2, 5, 1; st.param.b32 [r], %r2; ret; }
"""
# Pointers to functions of the other file and of this one, in data and in registers.
POINTERS = f"""{DECLARED}
.visible .func (.param .b32 r) own(.param .b32 a) {{ .reg .b32 %r<4>; ld.param.u32 %r1, [a]; xor.b32 %r1, %r1, 85; \
st.param.b32 [r], %r1; ret; }}
.visible .global .align 8 .u64 fp[2] = {{ext, own}};
.visible .entry k(.param .u64 p, .param .u32 n)
{{ .reg .b32 %r<20>; .reg .b64 %rd<9>; .reg .pred %p<3>;
ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n];
proto: .callprototype (.param .b32 _) _ (.param .b32 _);
ld.global.u64 %rd3, [fp];
{{ .param .b32 p0; .param .b32 q0; st.param.b32 [p0], %r1; call (q0), %rd3, (p0), proto; ld.param.b32 %r2, [q0]; }}
ld.global.u64 %rd3, [fp+8];
{{ .param .b32 p0; .param .b32 q0; st.param.b32 [p0], %r2; call (q0), %rd3, (p0), proto; ld.param.b32 %r3, [q0]; }}
mov.u64 %rd4, own; mov.u64 %rd5, ext; setp.eq.u64 %p1, %rd4, %rd3; selp.b64 %rd6, %rd5, %rd4, %p1;
{{ .param .b32 p0; .param .b32 q0; st.param.b32 [p0], %r3; call (q0), %rd6, (p0), proto; ld.param.b32 %r4, [q0]; }}
st.global.u32 [%rd1], %r2; st.global.u32 [%rd1+4], %r3; st.global.u32 [%rd1+8], %r4; ret; }}
"""
# Shared variables of the module and of a device function, which the linker places.
SHARED = f"""{DECLARED}
.shared .align 8 .b8 ms[24];
.visible .shared .align 4 .b8 vs[12];
.visible .func (.param .b32 r) f(.param .b32 a)
{{ .reg .b32 %r<6>; .shared .align 4 .b8 fl[8]; ld.param.u32 %r1, [a]; st.shared.u32 [ms+4], %r1; \
st.shared.u32 [fl+4], 77; st.shared.u32 [vs], 3;
ld.shared.u32 %r2, [fl+4]; ld.shared.u32 %r3, [vs]; add.u32 %r2, %r2, %r3; st.param.b32 [r], %r2; ret; }}
.visible .entry k(.param .u64 p, .param .u32 n)
{{ .reg .b32 %r<20>; .reg .b64 %rd<9>; .shared .align 16 .b8 kl[48];
ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n]; st.shared.u32 [kl+4], %r1;
{CALL.format(x="%r1", f="f", y="%r2")}
{CALL.format(x="%r2", f="ext", y="%r2")}
ld.shared.u32 %r4, [ms+4]; add.u32 %r2, %r2, %r4; ld.shared.u32 %r4, [kl+4]; add.u32 %r2, %r2, %r4; bar.sync 3;
mov.u64 %rd2, ms; cvta.shared.u64 %rd2, %rd2; ld.u32 %r4, [%rd2+4]; add.u32 %r2, %r2, %r4;
st.global.u32 [%rd1], %r2; ret; }}
"""


def module(body: str, arch: str) -> str:
    """The text of a file."""
    return HEAD.format(version="8.8" if int(re.sub(r"\D", "", arch)) >= 100 else "8.0", target=f"sm_{arch}") + body


def ours(body: str, arch: str) -> bytes:
    return compile_ptx(module(body, arch), f"sm_{arch}", {"compile-only": 1})


def theirs(body: str, arch: str) -> bytes:
    got = oracle.compile_ptx(module(body, arch), arch, "-c")
    assert not isinstance(got, oracle.ToolError), got.stderr
    return got.read_bytes()


def linked(objects: list[bytes], arch: str, folder: str) -> bytes:
    """nvlink's output for objects."""
    paths = []
    for i, data in enumerate(objects):
        path = Path(folder) / f"{i}.o"
        path.write_bytes(data)
        paths.append(str(path))
    out = Path(folder) / "linked.cubin"
    got = oracle.run_tool("nvlink", "-arch", f"sm_{arch}", *paths, "-o", str(out))
    assert not isinstance(got, oracle.ToolError), got.stderr
    return out.read_bytes()


def results(image: bytes) -> list[int]:
    """The words that the kernel writes."""
    from stages.simulate import Device

    out = np.zeros(4, np.uint32)
    Device(image).launch("k", (1, 1, 1), (1, 1, 1), [out, np.uint32(1)], shared=64)
    return [int(x) for x in out]


CASES = [(text, arch) for text in ("CALLER", "POINTERS", "SHARED") for arch in ("75", "80", "90", "100", "120")]


@pytest.mark.oracle
@pytest.mark.parametrize(("text", "arch"), CASES)
def test_links_with_the_others(text: str, arch: str) -> None:
    oracle.require("ptxas", "nvlink")
    caller, callee = globals()[text], CALLEE
    makers: list[Callable[[str, str], bytes]] = [ours, theirs]
    with tempfile.TemporaryDirectory() as folder:
        got = [
            results(linked([first(caller, arch), second(callee, arch)], arch, folder))
            for first in makers
            for second in makers
            if (first, second) != (theirs, theirs)
        ]
        want = results(linked([theirs(caller, arch), theirs(callee, arch)], arch, folder))
    assert any(want)
    assert got == [want] * 3


@pytest.mark.oracle
def test_resources_as_the_linker_counts_them() -> None:
    """Registers, stack along the calls, barriers: the linker finds what it needs in our records."""
    oracle.require("ptxas", "nvlink", "cuobjdump")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "k.cubin"
        found = []
        for make in (ours, theirs):
            path.write_bytes(linked([make(SHARED, "80"), make(CALLEE, "80")], "80", folder))
            text = oracle.run_tool("cuobjdump", "-res-usage", str(path))
            assert isinstance(text, str)
            found.append({k: int(v) for k, v in re.findall(r"(\w+):(\d+)", text.split("Function k:")[1])})
    assert {k: v for k, v in found[0].items() if k in ("STACK", "SHARED", "LOCAL")} == {
        k: v for k, v in found[1].items() if k in ("STACK", "SHARED", "LOCAL")
    }
    assert found[0]["REG"] >= 24


def test_an_object_of_its_own() -> None:
    """Type, sections and symbols of an object; an undefined function is no error in it, but is one in a whole
    program."""
    from tests.elf.reader import read

    image = ours(CALLER, "90")
    names = read(image).names()
    assert image[16:18] == b"\1\0" and {".text.k", ".text.dbl", ".text.loc", ".rela.text.loc", ".nv.info.dbl"} <= set(
        names
    )
    with pytest.raises(OriasError, match="Unresolved extern"):
        compile_ptx(module(CALLER, "90"), "sm_90")


@pytest.mark.parametrize("arch", ["sm_90", "sm_120"])
def test_functions_of_the_driver_need_no_declaration(arch: str) -> None:
    """Fetches with derivatives call one; the object names it for the linker."""
    head = (
        f".version 8.7\n.target {arch}\n.address_size 64\n.visible .entry k(.param .u64 t, "
        f".param .u64 out) {{ .reg .b64 %t, %o; .reg .f32 %f<9>;\n"
    )
    text = (
        head
        + """ld.param.u64 %t, [t]; ld.param.u64 %o, [out]; mov.f32 %f1, 0f3F800000;
tex.grad.3d.v4.f32.f32 {%f2, %f3, %f4, %f5}, [%t, {%f1, %f1, %f1, %f1}], {%f1, %f1, %f1, %f1}, {%f1, %f1, %f1, %f1};
st.global.v4.f32 [%o], {%f2, %f3, %f4, %f5}; ret; }
"""
    )
    assert b"__cuda_syscall_tex_grad_3d_v4_f32_f32\0" in compile_ptx(text, arch, {"compile-only": 1})
