"""-g: the PTX text's debug sections in the file, their addresses resolved, as in ptxas's file."""

from __future__ import annotations

import struct

import pytest

from orchestrator.api import compile_ptx
from stages.elf.dwarf import R_CUDA_64
from tests import oracle
from tests.elf.line_rows import decode
from tests.elf.reader import Cubin, read

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
