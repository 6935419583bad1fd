"""nvdisasm's views in orias-disasm: -g, -gi, -gp, -sf, -fun, -cfg and -bbcfg are compared with nvdisasm's text, -plr by
the meaning of its columns. Cubins of both compilers."""

from __future__ import annotations

import os
import pty
import re
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.api import compile_ptx
from stages.disasm.cli import app
from tests import oracle

ROOT = Path(__file__).parents[1]
KERNELS = ("mandelbrot", "histogram")  # a call and loops; shared memory, barriers and atomics


@cache
def cubin(name: str, compiler: str) -> bytes:
    path = ROOT / "elf" / "lineinfo" / "positions.ptx"
    if name != "positions":
        path = ROOT / "kernels" / "ptx" / "sm_90" / f"{name}.ptx"
    text = path.read_text()
    if compiler == "orias":
        return compile_ptx(text, "sm_90", {"generate-line-info": 1}, name=str(path))
    made = oracle.compile_ptx(text, "sm_90", "-lineinfo")
    assert isinstance(made, Path), made
    return made.read_bytes()


def ours(path: Path, *options: str) -> str:
    done = CliRunner().invoke(app, [*options, str(path)])
    assert done.exit_code == 0, done.output
    return done.stdout


def theirs(path: Path, *options: str) -> str:
    return str(oracle.nvdisasm(path, *options))


def code(text: str) -> str:
    """The listing without the symbols at its end, of which nvdisasm prints more."""
    return text.split("//--------------------- SYMBOLS")[0].rstrip()


@pytest.mark.oracle
@pytest.mark.parametrize("compiler", ["orias", "ptxas"])
def test_lines_and_functions(compiler: str, tmp_path: Path) -> None:
    oracle.require("ptxas", "nvdisasm")
    path = tmp_path / "k.cubin"
    path.write_bytes(cubin("positions", compiler))
    for option in ("-g", "-gi", "-gp", "-sf"):
        assert code(ours(path, option)) == code(theirs(path, "-c", option)), option
    said = CliRunner().invoke(app, ["-fun", "nothing", str(path)])
    assert said.exit_code == 2
    number, name = re.findall(r"(\d+) (k\w)", said.stderr)[0]
    one = code(theirs(path, "-c", "-fun", number))
    assert code(ours(path, "-fun", number)) == code(ours(path, "-fun", name)) == one
    assert one.count(".section\t.text.") == 1


@pytest.mark.oracle
@pytest.mark.parametrize("compiler", ["orias", "ptxas"])
@pytest.mark.parametrize("name", KERNELS)
def test_control_flow_graphs_equal_nvdisasm(name: str, compiler: str, tmp_path: Path) -> None:
    oracle.require("ptxas", "nvdisasm")
    path = tmp_path / "k.cubin"
    path.write_bytes(cubin(name, compiler))
    for option in ("-cfg", "-bbcfg"):
        assert ours(path, option) == theirs(path, option), option


def lives(text: str) -> dict[str, dict[str, dict[int, str]]]:
    """Address -> file -> register -> mark, read from the columns under their numbers."""
    out: dict[str, dict[str, dict[int, str]]] = {}
    titles: list[str] = []
    places: list[dict[int, int]] = []
    for line in text.splitlines():
        front, found, table = line.partition("// |")
        if not found:
            continue
        cells = table.rstrip().rstrip("|").split("|")
        if "GPR" in table:
            titles = [c.strip() for c in cells]
        elif "#" in table and "Number" not in table:
            places = [{m.start(): int(m[0]) for m in re.finditer(r"\d+", c)} for c in cells]
        address = re.match(r"\s+/\*([0-9a-f]{4})\*/", front)
        if address:
            row = out.setdefault(address[1], {})
            for title, cell, at in zip(titles, cells, places):
                marks = {n: cell[p : p + len(str(n))].strip() for p, n in at.items()}
                row[title] = {n: mark for n, mark in marks.items() if mark}
    return out


@pytest.mark.oracle
@pytest.mark.parametrize("compiler", ["orias", "ptxas"])
@pytest.mark.parametrize("name", ["histogram"])
def test_life_ranges(name: str, compiler: str, tmp_path: Path) -> None:
    """Every mark of every register except R1, the stack pointer, whose end the two see in different places."""
    oracle.require("ptxas", "nvdisasm")
    path = tmp_path / "k.cubin"
    path.write_bytes(cubin(name, compiler))
    mine, other = lives(ours(path, "-plr")), lives(theirs(path, "-c", "-plr"))
    assert mine.keys() == other.keys() and len(mine) > 40
    for address, row in other.items():
        for title, marks in row.items():
            own = mine[address].get(title, {})
            assert {n: m for n, m in own.items() if (title, n) != ("GPR", 1)} == {
                n: m for n, m in marks.items() if (title, n) != ("GPR", 1)
            }, (address, title)


def test_the_modes_of_life_ranges(tmp_path: Path) -> None:
    path = tmp_path / "k.cubin"
    path.write_bytes(cubin("histogram", "orias"))
    wide, narrow, count = (ours(path, "-lrm", mode) for mode in ("wide", "narrow", "count"))
    assert ours(path, "-plr") == wide
    widths = [max([len(line) for line in text.splitlines() if "// |" in line]) for text in (wide, narrow, count)]
    assert widths[0] > widths[1] > widths[2]


def test_what_is_no_cubin_is_named(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("no cubin")
    done = CliRunner().invoke(app, [str(path)])
    assert done.exit_code == 2 and done.stderr == f"orias-disasm: '{path}': not an ELF file\n"


def test_no_binary_for_a_terminal(tmp_path: Path) -> None:
    """A stream is written to a pipe, but not to a terminal."""
    path = tmp_path / "k.cubin"
    path.write_bytes(cubin("histogram", "orias"))
    pid, fd = pty.fork()
    if pid == 0:
        import sys

        os.execv(sys.executable, [sys.executable, "-m", "stages.disasm", "--ori", str(path)])
    said = b""
    while True:
        try:
            part = os.read(fd, 4096)
        except OSError:
            break
        if not part:
            break
        said += part
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 2
    assert said.strip() == b"orias-disasm: binary output is not written to a terminal: name a file with -o"
