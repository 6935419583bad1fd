"""-g: the PTX text's debug sections in the file, their addresses resolved, as in ptxas's file."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
import pytest

from orchestrator.api import compile_ptx
from stages.elf.dwarf import R_CUDA_64
from tests import oracle
from tests.elf.line_rows import decode
from tests.elf.reader import Cubin, info_records, read
from tests.elf.registers_seen import compare, register_places

TEXT = """.version {version}
.target {target}, debug
.address_size 64
.visible .global .align 4 .u32 gv;
.visible .entry k(.param .u64 k_param_0, .param .u32 k_param_1)
{{
.reg .b32 %r<4>; .reg .b64 %rd<3>; .reg .pred %p1;
.loc 1 2 0
$L__func_begin0:
.loc 1 2 0
ld.param.u64 %rd1, [k_param_0];
ld.param.u32 %r1, [k_param_1];
$L__tmp0:
.loc 1 3 5
mov.u32 %r2, %tid.x;
setp.lt.s32 %p1, %r2, %r1;
@!%p1 bra $L__BB0_2;
.loc 1 4 5
st.global.u32 [%rd1], %r2;
$L__tmp1:
$L__BB0_2:
.loc 1 5 1
ret;
$L__tmp2:
$L__func_end0:
}}
.file 1 "/tmp/k.cu"
.section .debug_abbrev
{{
.b8 1,17,1,3,8,16,6,0,0
.b8 2,46,1,17,1,18,1,64,10,135,64,8,3,8,0,0
.b8 3,11,0,17,1,18,1,0,0
.b8 4,52,0,2,10,3,8,0,0
.b8 0
}}
.section .debug_info
{{
.b32 85
.b8 2,0
.b32 .debug_abbrev
.b8 8
.b8 1
.b8 107,46,99,117,0
.b32 .debug_line
.b8 2
.b64 $L__func_begin0
.b64 $L__func_end0
.b8 1,156,107,0,107,0
.b8 4,9,3
.b64 k_param_1
.b8 110,0
.b8 3
.b64 $L__tmp0
.b64 $L__tmp2
.b8 0
.b8 4,9,3
.b64 gv
.b8 103,0
.b8 0
}}
"""
PLACES = {"begin": 22, "end": 30, "tmp": 58, "param": 47, "variable": 78}  # of the addresses in .debug_info


def text(arch: str) -> str:
    return TEXT.format(target=f"sm_{arch}", version="8.6" if arch == "100" else "8.0")


def relocations(cubin: Cubin) -> dict[int, tuple[int, str, int]]:
    """Offset in .debug_info -> (type, symbol, addend)."""
    out: dict[int, tuple[int, str, int]] = {}
    for name, size in ((".rel.debug_info", 16), (".rela.debug_info", 24)):
        if name in cubin.names():
            data = cubin.section(name).data
            for at in range(0, len(data), size):
                where, kind, symbol = struct.unpack_from("<Q2I", data, at)
                addend = struct.unpack_from("<q", data, at + 16)[0] if size == 24 else 0
                out[where] = (kind, cubin.symbols[symbol].name, addend)
    return out


def _without(data: bytes, relocated: dict[int, tuple[int, str, int]]) -> bytes:
    """The bytes without those that relocations replace (ptxas leaves the addends there too)."""
    out = bytearray(data)
    for at in relocated:
        out[at : at + 8] = bytes(8)
    return bytes(out)


def ours(arch: str) -> Cubin:
    options = {"device-debug": 1, "generate-line-info": 1, "opt-level": 0}
    return read(compile_ptx(text(arch), f"sm_{arch}", options))  # type: ignore[arg-type]


@pytest.mark.parametrize("arch", ["75", "80", "90", "100"])
def test_addresses(arch: str) -> None:
    cubin = ours(arch)
    found = relocations(cubin)
    data = cubin.section(".debug_info").data
    size = len(cubin.section(".text.k").data)
    assert found[PLACES["begin"]] == (R_CUDA_64, "k", 0)
    assert 0 < found[PLACES["tmp"]][2] < found[PLACES["end"]][2] <= size
    assert found[PLACES["variable"]][:2] == (R_CUDA_64, "gv")
    base = {"75": 0x160, "80": 0x160, "90": 0x210, "100": 0x380}[arch]
    assert struct.unpack_from("<Q", data, PLACES["param"])[0] == base + 8
    assert {".debug_abbrev", ".debug_info", ".debug_line"} <= set(cubin.names())


@pytest.mark.oracle
@pytest.mark.parametrize("arch", ["80", "90"])
def test_sections_are_ptxas(arch: str) -> None:
    """The same bytes except for places in the code, and relocations against the same symbols at the same places."""
    oracle.require("ptxas")
    got = oracle.compile_ptx(text(arch), arch, "-g")
    assert not isinstance(got, oracle.ToolError), got.stderr
    theirs, mine = read(got.read_bytes()), ours(arch)
    assert theirs.section(".debug_abbrev").data == mine.section(".debug_abbrev").data
    want, found = relocations(theirs), relocations(mine)
    assert _without(theirs.section(".debug_info").data, want) == _without(mine.section(".debug_info").data, found)
    assert {at: row[:2] for at, row in found.items()} == {at: row[:2] for at, row in want.items()}
    assert found[PLACES["begin"]] == want[PLACES["begin"]]


@pytest.mark.oracle
def test_tools_read_it() -> None:
    oracle.require("nvdisasm")
    path = oracle._new_path("debug", ".cubin")
    path.write_bytes(compile_ptx(text("90"), "sm_90", {"device-debug": 1, "generate-line-info": 1, "opt-level": 0}))
    assert '//## File "/tmp/k.cu", line 3' in oracle.nvdisasm(path, "-g", "-c")


def test_readers_without_relocations() -> None:
    """Addends are in the bytes, as in ptxas's file; the line table is plain DWARF 2 and begins with the code."""
    cubin = ours("90")
    data = cubin.section(".debug_info").data
    for at, (_, symbol, addend) in relocations(cubin).items():
        if symbol == "k":
            assert struct.unpack_from("<Q", data, at)[0] == addend
    table = decode(cubin.section(".debug_line").data)
    assert table.sequences[0][0][0].address == 0


def test_type_of_an_extensible_object() -> None:
    options = {"compile-only": 1, "extensible-whole-program": 1}
    data = compile_ptx(text("90"), "sm_90", options)  # type: ignore[arg-type]
    assert struct.unpack_from("<H", data, 16)[0] == 0xFF00  # as ptxas -ewp writes


# A loop with a variable that moves between registers, a call, a local array; as nvcc -G writes them.
VARIABLES = """.version 8.0
.target sm_80
.address_size 64
.func (.param .b32 back) twice(.param .b32 a)
{{
.reg .b32 %r<4>;
.loc 1 20 0
ld.param.b32 %r1, [a];
shl.b32 %r2, %r1, 1;
add.u32 %r3, %r2, %r1;
sub.u32 %r3, %r3, %r1;
st.param.b32 [back], %r3;
ret;
}}
.visible .entry k(.param .u64 k_param_0, .param .u32 k_param_1)
{{
.local .align 8 .b8 __local_depot0[24];
.reg .b32 %r<12>; .reg .b64 %rd<5>; .reg .pred %p<3>; .reg .b16 %rs<3>; .reg .f32 %f<3>;
.loc 1 2 0
$L__func_begin0:
ld.param.u64 %rd1, [k_param_0];
ld.param.u32 %r1, [k_param_1];
mov.u64 %rd2, __local_depot0;
st.local.u32 [%rd2+8], %r1;
mov.u32 %r2, 7;
$L__tmp0:
.loc 1 3 5
add.s32 %r3, %r1, 5;
cvt.u16.u32 %rs1, %r3;
setp.gt.s32 %p1, %r3, 3;
cvt.rn.f32.s32 %f1, %r3;
$L__tmp1:
.loc 1 4 5
mov.u32 %r4, 0;
mov.u32 %r5, %r3;
$L__loop:
add.s32 %r5, %r5, %r4;
add.s32 %r4, %r4, 1;
setp.lt.s32 %p2, %r4, 4;
@%p2 bra $L__loop;
{{
.param .b32 x; .param .b32 y;
st.param.b32 [x], %r5;
call (y), twice, (x);
ld.param.b32 %r6, [y];
}}
{{
.reg .b32 %r2;
mov.u32 %r2, %tid.x;
add.s32 %r7, %r6, %r2;
}}
ld.local.u32 %r8, [%rd2+8];
add.s32 %r9, %r7, %r8;
selp.s32 %r10, %r9, 1, %p1;
add.f32 %f2, %f1, 0f3F800000;
st.global.u32 [%rd1], %r10;
st.global.f32 [%rd1+4], %f2;
$L__tmp2:
ret;
$L__func_end0:
}}
.file 1 "/tmp/k.cu"
.section .debug_abbrev
{{
.b8 1,17,1,3,8,16,6,0,0
.b8 2,46,1,17,1,18,1,64,10,135,64,8,3,8,0,0
.b8 3,52,0,2,10,3,8,0,0
.b8 0
}}
.section .debug_info
{{
.b32 57
.b8 2,0
.b32 .debug_abbrev
.b8 8
.b8 1
.b8 107,46,99,117,0
.b32 .debug_line
.b8 2
.b64 $L__func_begin0
.b64 $L__func_end0
.b8 1,156,107,0,107,0
.b8 3,11,3
.b64 __local_depot0
.b8 35,8,110,0
.b8 0,0
}}
.section .debug_loc
{{
.b64 $L__tmp0
.b64 $L__tmp2
.b8 5,0,144,178,228,149,1
.b64 0
.b64 0
}}
"""
DEBUG: dict[str, Any] = {"device-debug": 1, "generate-line-info": 1, "opt-level": 0}


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_120"])
def test_registers_hold_what_the_table_says(arch: str) -> None:
    """Second source: the interpreter's registers, line by line."""
    text = VARIABLES.format().replace(".version 8.0", ".version 8.7")
    seen = compare(text, arch, "k", [np.zeros(4, np.int32), np.int32(11)])
    wrong = [w for w in seen.wrong if "%rd2" not in w]  # a local address: each stack begins elsewhere
    assert not wrong and seen.compared > 40


def test_variables_are_kept_as_long_as_the_sections_say() -> None:
    """Nothing reads %r2 of the kernel, but the location list says that a variable is in it up to the last label."""
    cubin = read(compile_ptx(VARIABLES.format(), "sm_80", DEBUG))
    rows = [p for p in register_places(cubin)["k"] if p.name == "%r2"]
    kept = max(rows, key=lambda p: p.end - p.begin)
    code = cubin.section(".text.k").data
    exits = [at for at in range(0, len(code), 16) if struct.unpack_from("<H", code, at)[0] & 0xFFF == 0x94D]
    assert kept.begin < 0x200 and kept.end > exits[0] - 0x40
    assert {p.number for p in rows} != {kept.number}  # the inner scope's own %r2 has another register


@pytest.mark.oracle
def test_register_tables_beside_ptxas() -> None:
    """The same functions, and each register with its type."""
    oracle.require("ptxas")
    got = oracle.compile_ptx(VARIABLES.format(), "80", "-g")
    assert not isinstance(got, oracle.ToolError), got.stderr
    theirs, mine = read(got.read_bytes()), read(compile_ptx(VARIABLES.format(), "sm_80", DEBUG))
    want, found = register_places(theirs), register_places(mine)
    assert set(want) == set(found) == {"k", "twice"}
    for function, rows in want.items():
        assert {(p.name, p.type) for p in rows} == {(p.name, p.type) for p in found[function]}


@pytest.mark.oracle
def test_local_variables_are_in_the_frame() -> None:
    """Bytes of .debug_info: DW_OP_addr of a local variable becomes DW_OP_fbreg of its place, as in ptxas's file."""
    oracle.require("ptxas")
    got = oracle.compile_ptx(VARIABLES.format(), "80", "-g")
    assert not isinstance(got, oracle.ToolError), got.stderr
    mine = read(compile_ptx(VARIABLES.format(), "sm_80", DEBUG)).section(".debug_info").data
    theirs = read(got.read_bytes()).section(".debug_info").data
    assert mine[46] == theirs[46] == 0x91 and mine[48:] == theirs[48:]
    # the array is at the low end of a frame of 24 bytes, of 32 here
    assert (mine[47], theirs[47]) == (-32 & 0x7F, -24 & 0x7F)


@pytest.mark.oracle
@pytest.mark.parametrize("arch", ["80", "90"])
def test_objects_relocate_places_in_other_sections(arch: str) -> None:
    """A linker joins the sections of several objects: the same relocations as ptxas's, in the same sections, and a name
    of its own for the copy of the text."""
    oracle.require("ptxas")
    text = VARIABLES.format().replace("sm_80", f"sm_{arch}")
    got = oracle.compile_ptx(text, arch, "-g", "-c")
    assert not isinstance(got, oracle.ToolError), got.stderr
    theirs, mine = read(got.read_bytes()), read(compile_ptx(text, f"sm_{arch}", {**DEBUG, "compile-only": 1}))
    want, found = relocations(theirs), relocations(mine)
    assert {at: row[:2] for at, row in found.items()} == {at: row[:2] for at, row in want.items()}
    assert {row[1] for row in found.values()} == {"k", ".debug_abbrev", ".debug_line"}

    def debug(cubin: Cubin) -> set[str]:
        return {name for name in cubin.names() if "debug" in name and "frame" not in name}

    assert debug(theirs) == debug(mine)
    assert f".nv_debug_ptx_txt.{zlib.adler32(text.encode())}" in debug(mine)


def test_an_empty_stretch_ends_no_location_list() -> None:
    """Two zeros end a list: a stretch at the begin of a function, whose moves took no code, has other places."""
    text = (
        VARIABLES.format()
        .replace(".visible .entry k", ".visible .func k")
        .replace("$L__tmp2\n.b8 5", "$L__tmp0\n.b8 5")
    )
    text = text.replace("mov.u32 %r2, 7;", "").replace("st.local.u32 [%rd2+8], %r1;", "")
    text = text.replace("mov.u64 %rd2, __local_depot0;\n", "").replace("ld.local.u32 %r8, [%rd2+8]", "mov.u32 %r8, 1")
    data = read(compile_ptx(text, "sm_80", {**DEBUG, "compile-only": 1})).section(".debug_loc").data
    begin, end = struct.unpack_from("<2Q", data)
    assert begin == end == 1


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_debugged_code_checks_its_stack(arch: str) -> None:
    """As ptxas's -g: a trap where the frame leaves local memory, only in functions that have one; a barrier and the
    wait for errors before each exit, and a record of that for each kernel."""
    bare = ".visible .entry n(.param .u64 q)\n{\n.loc 1 1 0\nret;\n}\n"
    text = VARIABLES.format().replace(".visible .entry k", bare + ".visible .entry k")
    cubin = read(compile_ptx(text, arch, DEBUG))

    def count(kernel: str, opcode: int) -> int:
        code = cubin.section(f".text.{kernel}").data
        return sum(struct.unpack_from("<H", code, at)[0] & 0xFFF == opcode for at in range(0, len(code), 16))

    trap, membar, errbar, leave = 0x95C, 0x992, 0x9AB, 0x94D
    assert [count("k", trap), count("n", trap)] == [1, 0]
    for kernel in "kn":
        assert count(kernel, membar) == count(kernel, errbar) >= count(kernel, leave) - 1 > -1
    assert [code for _, code, _ in info_records(cubin.section(".nv.info").data)].count(0x53) == 2


def test_a_target_with_debug_is_debugged_without_the_option() -> None:
    """As ptxas does: the same file as with -g."""
    assert compile_ptx(text("80"), "sm_80") == compile_ptx(text("80"), "sm_80", DEBUG)
