"""Pointers to functions: created in one kernel or in data, used in another; our cubin and ptxas's give the same
values."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from orchestrator.api import compile_ptx
from stages.simulate import Device
from tests import oracle


def _function(name: str, body: str, local: int = 0) -> str:
    memory = (
        f".local .align 4 .b8 m[{local}]; mov.u64 %rd1, m; st.local.u32 [%rd1+{local - 4}], %r1; ld.local.u32 %r1, "
        f"[%rd1+{local - 4}];"
        if local
        else ""
    )
    return (
        f".func (.param .b32 r) {name}(.param .b32 x) {{ .reg .b32 %r<4>; .reg .b64 %rd<3>; ld.param.u32 %r1, "
        f"[x]; {memory} {body} st.param.b32 [r], %r1; ret; }}\n"
    )


CALL = "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), %rd5, (a), proto; ld.param.b32 %r1, [b]; }"
#: `pick` stores a pointer by an input, `use` calls what the table has at an index and what `pick` stored, `none`
#: calls nothing.
PTX = (
    ".version 7.8\n.target sm_75\n.address_size 64\n.global .u64 cell;\n"
    + _function("one", "add.u32 %r1, %r1, 1;", 96)
    + _function("direct", "mul.lo.u32 %r1, %r1, 11;")
    + _function("three", "mul.lo.u32 %r1, %r1, 3;")
    + _function("five", "mul.lo.u32 %r1, %r1, 5;", 400)
    + ".func (.param .b32 r) twice(.param .b32 x) { .reg .b32 %r<4>; .reg .b64 %rd<6>; proto: .callprototype (.param "
    ".b32 _) _ (.param .b32 _);\n"
    + f"    ld.param.u32 %r1, [x]; ld.global.u64 %rd5, [cell]; {CALL} {CALL} st.param.b32 [r], %r1; ret; }}\n"
    + """.global .u64 table[3] = {five, 0, one};
.const .u64 fixed[2] = {one, five};
.visible .entry pick(.param .u64 p) {
    .reg .b64 %rd<6>; .reg .b32 %r<4>; .reg .pred %q;
    ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [%rd1]; setp.ne.u32 %q, %r1, 0;
    mov.u64 %rd2, three; mov.u64 %rd3, one; selp.b64 %rd4, %rd2, %rd3, %q; st.global.u64 [cell], %rd4;
    { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), direct, (a); ld.param.b32 %r1, [b]; }
    st.global.u32 [%rd1+4], %r1; ret;
}
.visible .entry use(.param .u64 p) {
    .reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .pred %q; proto: .callprototype (.param .b32 _) _ (.param .b32 _);
    ld.param.u64 %rd1, [p]; mov.u32 %r2, %tid.x; mul.wide.u32 %rd2, %r2, 4; add.u64 %rd1, %rd1, %rd2;
    ld.global.u32 %r1, [%rd1];
    and.b32 %r3, %r2, 2; mul.wide.u32 %rd3, %r3, 8; mov.u64 %rd4, table; add.u64 %rd4, %rd4, %rd3;
    ld.global.u64 %rd5, [%rd4];
"""
    + f"    {CALL} ld.global.u64 %rd5, [cell]; {CALL} and.b32 %r4, %r2, 1; mul.wide.u32 %rd3, %r4, 8; mov.u64 %rd4, "
    f"fixed; add.u64 %rd4, %rd4, %rd3; ld.const.u64 %rd5, [%rd4]; {CALL}\n"
    + """    { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), twice, (a); ld.param.b32 %r1, [b]; }
    ld.global.u64 %rd6, [table+8]; setp.eq.u64 %q, %rd6, 0; selp.b32 %r5, 1000, 0, %q; add.u32 %r1, %r1, %r5;
    ld.global.u64 %rd6, [cell]; mov.u64 %rd7, three; setp.eq.u64 %q, %rd6, %rd7; selp.b32 %r5, 70000, 0, %q;
    add.u32 %r1, %r1, %r5;
    st.global.u32 [%rd1], %r1; ret;
}
.visible .entry none(.param .u64 p) { .reg .b64 %rd<2>; ld.param.u64 %rd1, [p]; st.global.u64 [%rd1], 0; ret; }
"""
)


def _cell(first: int, x: int) -> int:
    return x * 3 if first else x + 1


def _expected(first: int) -> list[int]:
    out = [first, first * 11, *range(7, 37)]
    for t in range(32):
        x = out[t]
        x = x + 1 if t & 2 else x * 5
        x = _cell(first, x)
        x = x * 5 if t & 1 else x + 1
        out[t] = _cell(first, _cell(first, x)) + 1000 + (70000 if first else 0)
    return out


def _run(device: Any, first: int) -> list[int]:
    data = np.array([first, 0, *range(7, 37)], np.uint32)
    for name, threads in (("pick", 1), ("use", 32)):
        device.launch(name, (1, 1, 1), (threads, 1, 1), [data])
    return [int(x) for x in data]


@pytest.mark.parametrize("arch", ["75", "80", "90", "120"])
@pytest.mark.parametrize("level", [0, 3])
def test_pointers_go_from_kernel_to_kernel(arch: str, level: int) -> None:
    device = Device(compile_ptx(PTX, f"sm_{arch}", {"opt-level": level}))
    assert _run(device, 1) == _expected(1)
    assert _run(device, 0) == _expected(0)


@pytest.mark.oracle
def test_ptxas_has_the_same_values() -> None:
    oracle.require("ptxas")
    got = oracle.compile_ptx(PTX, "80")
    assert not isinstance(got, oracle.ToolError), got
    assert _run(Device(got.read_bytes()), 1) == _expected(1)


@pytest.mark.oracle
def test_the_stack_covers_what_a_pointer_may_reach(tmp_path: Any) -> None:
    oracle.require("cuobjdump")
    path = tmp_path / "k.cubin"
    path.write_bytes(compile_ptx(PTX, "sm_80"))
    text = oracle.cuobjdump(path, "-elf")
    stacks = {m[1]: int(m[2], 16) for m in re.finditer(r"function: (\w+)\(\S+\s+min stack size: (\S+)", text)}
    assert stacks["use"] >= 400 and stacks["none"] == 0 and stacks["pick"] == 0
    assert "$none$" not in text
