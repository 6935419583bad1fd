"""Line tables: ptxas's rows survive a round trip through our records; bad tables are refused."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from ir_format.diag import CompileError
from ir_format.model import Code, Function, Header, Module, Unit
from orchestrator.api import compile_ptx
from stages.elf.lines import ptx_copy, sleb
from stages.elf.link import link
from tests import oracle
from tests.elf.compare import differences
from tests.elf.lift import lift
from tests.elf.line_rows import Row, Table, decode
from tests.elf.reader import Cubin, load, read
from tests.elf.test_link import EXIT, NOP, module

PTX = Path(__file__).parent / "lineinfo" / "positions.ptx"


def _kernel_of_sequences(c: Cubin, section: str, table: Table) -> list[str]:
    """Which kernel each sequence belongs to, by its relocation."""
    by_place: dict[int, str] = {}
    for prefix, size in ((".rel", 16), (".rela", 24)):
        if prefix + section in c.names():
            data = c.section(prefix + section).data
            for i in range(0, len(data), size):
                at, kind, sym = struct.unpack_from("<QII", data, i)
                assert kind == 2
                by_place[at] = c.symbols[sym].name
    return [by_place[p] for p in table.places]


def _by_kernel(c: Cubin, section: str) -> dict[str, tuple[list[Row], int]]:
    table = decode(c.section(section).data)
    return dict(zip(_kernel_of_sequences(c, section, table), table.sequences, strict=True))


def _resolve(rows: list[Row], row: Row, strings: bytes) -> tuple[object, ...]:
    """A row as (file, line, chain of call sites with names): what a debugger shows."""
    if not row.context:
        return (row.file, row.line)
    name = strings[row.name : strings.index(b"\0", row.name)].decode()
    return (row.file, row.line, name, _resolve(rows, rows[row.context - 1], strings))


def _shown(c: Cubin) -> dict[str, list[tuple[int, tuple[object, ...]]]]:
    strings = c.section(".debug_str").data if ".debug_str" in c.names() else b""
    out = {}
    for kernel, (rows, end) in _by_kernel(c, ".debug_line").items():
        seen = [(r.address, _resolve(rows, r, strings)) for r in rows]
        out[kernel] = [*seen, (end, ("end",))]
    return out


def _lines_of(c: Cubin) -> dict[str, list[tuple[int, int]]]:
    out = {}
    for kernel, (rows, end) in _by_kernel(c, ".nv_debug_line_sass").items():
        kept: list[tuple[int, int]] = []
        for r in rows:
            if not kept or kept[-1][1] != r.line:
                kept.append((r.address, r.line))
        out[kernel] = [*kept, (end, -1)]
    return out


def _with_lines(c: Cubin, module_: Module, units: list[Unit]) -> None:
    """Put ptxas's rows into the units' records."""
    source = _by_kernel(c, ".debug_line")
    sass = _by_kernel(c, ".nv_debug_line_sass")
    strings = c.section(".debug_str").data
    for u in units:
        f = Function(u.name)
        rows = source.get(u.name, ([], 0))[0]
        index: dict[tuple[object, ...], int] = {}

        def add(row: Row, rows: list[Row] = rows, f: Function = f, index: dict[tuple[object, ...], int] = index) -> int:
            key = _resolve(rows, row, strings)
            if key not in index:
                site = add(rows[row.context - 1]) if row.context else -1
                f.locs.append((row.file, row.line, 0, site, str(key[2]) if row.context else ""))
                index[key] = len(f.locs) - 1
            return index[key]

        places = {r.address: add(r) for r in rows}  # the last row of an address: earlier ones are call sites
        numbers = {r.address: r.line for r in sass[u.name][0]}
        loc, line, lines = -1, 0, []
        for at in sorted({*places, *numbers}):
            loc, line = places.get(at, loc), numbers.get(at, line)
            lines.append((at, line, loc))
        u.code[0] = u.code[0]._replace(lines=tuple(lines))
        u.functions = [f]
    module_.files = [(int(n), name) for n, name in re.findall(r'^\.file\s+(\d+)\s+"(.*)"', PTX.read_text(), re.M)]


@pytest.mark.oracle
@pytest.mark.parametrize("sm", ["75", "80", "89", "90", "100", "120"])
def test_rows_equal_ptxas(sm: str) -> None:
    oracle.require("ptxas")
    path = oracle.run_ptxas(PTX, sm, "-lineinfo")
    assert isinstance(path, Path)
    theirs = load(path)
    header, mod, units = lift(theirs, f"sm_{sm}", PTX.read_text())
    header.options["generate-line-info"] = 1
    mod.attrs["ptx_text"] = PTX.read_text()
    _with_lines(theirs, mod, units)
    ours = read(link(header, mod, units))
    assert differences(theirs, ours) == []
    assert _shown(ours) == _shown(theirs)
    assert _lines_of(ours) == _lines_of(theirs)
    assert ours.section(".nv_debug_ptx_txt").data == theirs.section(".nv_debug_ptx_txt").data
    a, b = decode(theirs.section(".debug_line").data), decode(ours.section(".debug_line").data)
    assert [_path(a, f) for f in a.files] == [_path(b, f) for f in b.files]
    assert all(time == size == 0 for _, _, time, size in b.files)


def _path(table: Table, file: tuple[str, int, int, int]) -> str:
    return (table.folders[file[1] - 1] + "/" if file[1] else "") + file[0]


@pytest.mark.oracle
def test_nvdisasm_prints_our_positions(tmp_path: Path) -> None:
    oracle.require("ptxas", "nvdisasm")
    path = oracle.run_ptxas(PTX, "90", "-lineinfo")
    assert isinstance(path, Path)
    header, mod, units = lift(load(path), "sm_90", PTX.read_text())
    header.options["generate-line-info"] = 1
    mod.attrs["ptx_text"] = PTX.read_text()
    _with_lines(load(path), mod, units)
    ours = tmp_path / "ours.cubin"
    ours.write_bytes(link(header, mod, units))
    for option in ("-g", "-gi", "-gp"):
        got = [line for line in oracle.nvdisasm(ours, "-c", option).splitlines() if "//##" in line]
        assert got == [line for line in oracle.nvdisasm(path, "-c", option).splitlines() if "//##" in line]
        assert len(got) > 6


def simple(lines: tuple[tuple[int, int, int], ...], locs: list[tuple[int, int, int, int, str]]) -> Unit:
    u = Unit("k")
    u.code = [Code("k", "entry", NOP * 70 + EXIT, (), lines)]
    u.functions = [Function("k")]
    u.functions[0].locs = locs
    return u


def linked(u: Unit, files: tuple[tuple[int, str], ...] = ((1, "a.cu"),), text: str | None = None) -> Cubin:
    header = Header("encoded", "sm_90")
    header.options["generate-line-info"] = 1
    m = module(u)
    m.files = list(files)
    if text is not None:
        m.attrs["ptx_text"] = text
    return read(link(header, m, [u]))


def test_far_steps_in_both_directions() -> None:
    wanted = [(0, 1), (16, 100000), (32, 3), (48, 11), (64, 6), (1024, 7), (1040, 7 + 8), (1056, 7 + 8 + 9), (1072, 1)]
    u = simple(tuple((at, 0, i) for i, (at, _) in enumerate(wanted)), [(1, line, 1, -1, "") for _, line in wanted])
    rows, end = _by_kernel(linked(u), ".debug_line")["k"]
    assert [(r.address, r.line) for r in rows] == wanted
    assert end == len(linked(u).section(".text.k").data)


def test_without_text_there_is_no_table_of_it() -> None:
    c = linked(simple(((0, 1, 0),), [(1, 1, 1, -1, "")]))
    assert (
        ".debug_line" in c.names() and ".nv_debug_line_sass" not in c.names() and ".nv_debug_ptx_txt" not in c.names()
    )
    c = linked(simple(((0, 2, -1),), []), text="a\n  b // c\n// d\r\n.loc 1 2 3\n")
    assert c.section(".nv_debug_ptx_txt").data == b"a\0b // c\0\0\0"
    assert decode(c.section(".debug_line").data).sequences == []


def test_no_option_no_section() -> None:
    u = simple(((0, 1, 0),), [(1, 1, 1, -1, "")])
    assert not [n for n in read(link(Header("encoded", "sm_90"), module(u), [u])).names() if "line" in n]


BAD = {
    "no such loc": (((0, 1, 3),), [(1, 1, 1, -1, "")], ((1, "a"),)),
    "outside the code": (((4096, 1, 0),), [(1, 1, 1, -1, "")], ((1, "a"),)),
    "negative place": (((-16, 1, 0),), [(1, 1, 1, -1, "")], ((1, "a"),)),
    "inlined at itself": (((0, 1, 0),), [(1, 1, 1, 0, "f")], ((1, "a"),)),
    "inlined nowhere": (((0, 1, 0),), [(1, 1, 1, 7, "f")], ((1, "a"),)),
    "negative line": (((0, 1, 0),), [(1, -1, 1, -1, "")], ((1, "a"),)),
    "file twice": (((0, 1, 0),), [(1, 1, 1, -1, "")], ((1, "a"), (1, "b"))),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_tables_are_refused(what: str) -> None:
    lines, locs, files = BAD[what]
    with pytest.raises(CompileError):
        linked(simple(lines, locs), files, "x\n")


def test_numbers_and_text() -> None:
    assert [sleb(v).hex() for v in (0, 63, 64, -64, -65, 128)] == ["00", "3f", "c000", "40", "bf7f", "8001"]
    assert ptx_copy("\t.section .debug_str\n{\n.b8 1\n}\n.b8 2\n") == b".section .debug_str\0{\0\0}\0.b8 2\0"


def _chain(*options: str) -> Cubin:
    """Our cubin of the file by the whole chain; ``options`` by name."""
    return read(compile_ptx(PTX.read_bytes(), "sm_90", dict.fromkeys(options, 1), name=PTX.name))


@pytest.mark.parametrize("options", [(), ("generate-line-info",)])
def test_the_chain_writes_tables_and_text(options: tuple[str, ...]) -> None:
    """If the program says .loc, with and without -lineinfo, as ptxas: the same text, and its lines with
    instructions."""
    oracle.require("ptxas")
    got = oracle.run_ptxas(PTX, "90", *(["-lineinfo"] if options else []))
    assert isinstance(got, Path)
    theirs, ours = load(got), _chain(*options)
    names = [s.name for s in theirs.sections if "debug" in s.name]
    assert [s.name for s in ours.sections if "debug" in s.name] == names
    text = ours.section(".nv_debug_ptx_txt").data
    assert text == theirs.section(".nv_debug_ptx_txt").data
    lines = text.split(b"\0")
    a, b = (
        {k: {r.line for r in rows} for k, (rows, _) in _by_kernel(c, ".nv_debug_line_sass").items()}
        for c in (theirs, ours)
    )
    assert a.keys() == b.keys()
    for kernel in a:
        assert all(b";" in lines[n - 1] or b".entry" in lines[n - 1] for n in b[kernel])
        assert len(a[kernel] & b[kernel]) * 2 >= len(a[kernel])


def test_no_tables_where_they_are_not_wanted() -> None:
    got = _chain("suppress-debug-info")
    assert [s.name for s in got.sections if "debug" in s.name] == [".debug_frame", ".rela.debug_frame"]
    plain = compile_ptx(re.sub(r"(?m)^\s*\.(loc|file).*$", "", PTX.read_text().split("\t.section")[0]), "sm_90")
    assert ".debug_line" not in read(plain).names()


def test_disassembler_shows_ptx_lines(tmp_path: Path) -> None:
    oracle.require("nvdisasm")
    file = tmp_path / "k.cubin"
    file.write_bytes(compile_ptx(PTX.read_bytes(), "sm_90", {"generate-line-info": 1}, name=PTX.name))
    shown = re.findall(r'//## File "\.nv_debug_ptx_txt", line (\d+)', oracle.nvdisasm(file, "-gp", "-c"))
    assert {"16", "31"} & set(shown) and len(set(shown)) > 5
