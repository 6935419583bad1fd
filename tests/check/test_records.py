"""The judge of records: silent on ptxas's cubins and ours, and it finds mutants of each record that code can show."""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.api import compile_ptx
from stages.check.record_facts import Info
from stages.check.records import check_records
from stages.disasm.cubin import CubinError
from tests import oracle
from tests.elf.reader import read

SHAPES = Path(__file__).parents[1] / "elf" / "shapes"
HAND = Path(__file__).parents[1] / "kernels" / "hand"
FILES = [
    (SHAPES / f"{n}.ptx", "90")
    for n in ("calls", "full", "cluster", "params", "print", "bulk_copy", "texture", "mbarrier")
]
FILES += [
    (SHAPES / "full.ptx", "75"),
    (SHAPES / "setmaxnreg.ptx", "90a"),
    (HAND / "brx_switch.ptx", "100"),
    (HAND / "shared_barrier.ptx", "80"),
    (HAND / "redux_ops.ptx", "80"),
]

#: Records that code does not determine: what the launch needs, what the program meant, what only the optimizer knew.
NOT_SHOWN = {
    0x05,
    0x10,
    0x3D,
    0x3E,
    0x3F,
    0x5B,
    0x41,
    0x1B,
    0x09,
    0x4D,
    0x53,
    0x55,
    0x23,
    Info.WMMA_USED,
    Info.AT_ENTRY_FRAGMENTS,
}


def _theirs(path: Path, sm: str) -> bytes:
    got = oracle.run_ptxas(path, sm)
    assert isinstance(got, Path), got
    return got.read_bytes()


@functools.cache
def _ours(path: Path, sm: str) -> bytes:
    return compile_ptx(path.read_text(), f"sm_{sm}")


@pytest.mark.parametrize(("path", "sm"), FILES, ids=[f"{p.stem}-{s}" for p, s in FILES])
def test_silent_on_cubins(path: Path, sm: str) -> None:
    oracle.require("ptxas")
    assert check_records(_theirs(path, sm)) == []
    assert check_records(_ours(path, sm)) == []


_OLD_SHUFFLE = """.version 6.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 p) {
.reg .b32 %r<3>; .reg .b64 %d; ld.param.u64 %d, [p]; ld.global.u32 %r1, [%d];
shfl.sync.bfly.b32 %r2, %r1, 1, 31, 0xffffffff; st.global.u32 [%d], %r2; ret; }
"""


def test_silent_on_objects_with_helpers() -> None:
    """An object carries a function for the shuffle, which is in no list; the kernel has the registers of a call."""
    oracle.require("ptxas")
    for text, helper in ((_OLD_SHUFFLE, b"__cuda_sm70_shfl"), ((HAND / "redux_ops.ptx").read_text(), b"__cuda_redux")):
        got = oracle.compile_ptx(text, "80", "-c")
        assert isinstance(got, Path), got
        assert helper in got.read_bytes()
        assert check_records(got.read_bytes()) == []


def mutants(data: bytes) -> Iterator[tuple[int, str, bytes]]:
    """(code, what, file) of each record with one field changed. Symbols' numbers in the module's records stay: a record
    about another symbol is a record that is missing."""
    file = read(data)
    for s in file.sections:
        if s.type != 0x70000000 or s.name.startswith(".nv.merc"):
            continue
        at = s.offset
        while at < s.offset + s.size:
            form, code, value = struct.unpack_from("<BBH", data, at)
            if form == 4:
                yield from _changed(data, code, at + 4, value, s.name)
                at += value
            elif form == 3:
                yield code, f"{s.name} {code:#x}", data[: at + 2] + struct.pack("<H", value ^ 1) + data[at + 4 :]
            elif form == 2:
                yield code, f"{s.name} {code:#x}", data[: at + 2] + bytes((value & 0xFF ^ 1,)) + data[at + 3 :]
            else:  # a flag: changed into another record
                yield code, f"{s.name} {code:#x}", data[: at + 1] + b"\x7f" + data[at + 2 :]
            at += 4


def header_mutants(data: bytes) -> Iterator[tuple[str, bytes]]:
    """(what, file) of headers of sections and symbols of functions with one field changed."""
    (headers,) = struct.unpack_from("<Q", data, 0x28)

    def put(at: int, form: str, change: int) -> bytes:
        (value,) = struct.unpack_from(form, data, at)
        return data[:at] + struct.pack(form, value ^ change) + data[at + struct.calcsize(form) :]

    for s in read(data).sections:
        at = headers + 64 * s.index
        if s.name.startswith(".text"):
            yield "flags", put(at + 8, "<Q", 1 << 20)
            yield "symbol", put(at + 44, "<I", 1)
        if s.name.startswith((".nv.constant0", ".nv.shared.reserved")):
            yield "size", put(at + 32, "<Q", 4)
        for k in range(s.offset, s.offset + s.size, 24) if s.name == ".symtab" else ():
            if data[k + 4] & 15 == 2 and struct.unpack_from("<H", data, k + 6)[0]:
                yield "a function's kind", put(k + 5, "<B", 0x10)
                yield "a function's size", put(k + 16, "<Q", 16)


@pytest.mark.parametrize(("path", "sm"), FILES[::3], ids=[f"{p.stem}-{s}" for p, s in FILES[::3]])
def test_mutants_of_headers_are_found(path: Path, sm: str) -> None:
    oracle.require("ptxas")
    for data in (_theirs(path, sm), _ours(path, sm)):
        made = list(header_mutants(data))
        assert len(made) > 4
        assert [what for what, mutant in made if not check_records(mutant)] == []


def _changed(data: bytes, code: int, at: int, size: int, section: str) -> Iterator[tuple[int, str, bytes]]:
    for k in range(at, at + size, 4):
        (word,) = struct.unpack_from("<I", data, k)
        yield (
            code,
            f"{section} {code:#x} word {(k - at) // 4}",
            data[:k] + struct.pack("<I", word ^ 0x10) + data[k + 4 :],
        )
    yield code, f"{section} {code:#x} gone", data[: at - 3] + b"\x7f" + data[at - 2 :]


@pytest.mark.parametrize(("path", "sm"), FILES, ids=[f"{p.stem}-{s}" for p, s in FILES])
def test_mutants_are_found(path: Path, sm: str) -> None:
    oracle.require("ptxas")
    data = _theirs(path, sm)
    missed = []
    for code, what, mutant in mutants(data):
        if code in NOT_SHOWN:
            continue
        try:
            if check_records(mutant):
                continue
        except CubinError:
            continue
        missed.append("REGCOUNT" if code == Info.REGCOUNT else what)
    # setmaxnreg moves registers between warps: the launch bounds give a kernel's initial number
    assert missed == (["REGCOUNT"] if path.stem == "setmaxnreg" else [])
