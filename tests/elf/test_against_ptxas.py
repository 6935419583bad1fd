"""Split ptxas's cubins into records, link these again, and compare every byte that is not in the list of allowed
differences."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stages.elf.link import link
from stages.elf.report import resource_lines
from tests import oracle
from tests.elf.compare import differences
from tests.elf.lift import lift
from tests.elf.reader import Cubin, load, read

pytestmark = pytest.mark.oracle

SHAPES = sorted(p.stem for p in (Path(__file__).parent / "shapes").glob("*.ptx"))
SMS = ("75", "80", "86", "87", "89", "90", "90a", "100", "103", "110", "120", "121")
KERNELS = Path(__file__).parents[1] / "kernels" / "ptx"


def compiled(ptx: Path, sm: str, *options: str) -> Cubin:
    path = oracle.run_ptxas(ptx, sm, *options)
    assert isinstance(path, Path), path
    return load(path)


def takes(ptx: Path, sm: str) -> bool:
    """Whether the program is for ``sm``: a suffixed target accepts only itself."""
    found = re.search(r"\.target\s+sm_(\d+)(a?)", ptx.read_text())
    assert found
    return sm == found[1] + "a" if found[2] else int(sm.strip("af")) >= int(found[1])


def cases() -> list[tuple[str, str]]:
    folder = Path(__file__).parent / "shapes"
    return [(s, sm) for s in SHAPES for sm in SMS if takes(folder / f"{s}.ptx", sm)]


@pytest.mark.parametrize(("shape", "sm"), cases())
def test_relinked_shape_is_equal(shape: str, sm: str) -> None:
    oracle.require("ptxas")
    path = Path(__file__).parent / "shapes" / f"{shape}.ptx"
    theirs = compiled(path, sm)
    ours = read(link(*lift(theirs, f"sm_{sm}", path.read_text())))
    assert differences(theirs, ours) == []


@pytest.mark.parametrize("sm", ["75", "80", "90", "100", "120"])
def test_relinked_kernels_are_equal(sm: str) -> None:
    """The sixteen kernels in one module."""
    oracle.require("ptxas")
    path = KERNELS / f"sm_{sm}" / "all16.ptx"
    theirs = compiled(path, sm)
    ours = read(link(*lift(theirs, f"sm_{sm}", path.read_text())))
    assert differences(theirs, ours) == []


def test_register_limit_of_the_command_line() -> None:
    oracle.require("ptxas")
    path = Path(__file__).parent / "shapes" / "calls.ptx"
    theirs = compiled(path, "80", "-maxrregcount", "32")
    header, module, units = lift(theirs, "sm_80", path.read_text())
    for u in units:
        u.attrs.pop("maxregcount", None)
    header.options["maxrregcount"] = "32"
    assert differences(theirs, read(link(header, module, units))) == []


@pytest.mark.parametrize("sm", ["80", "90"])
@pytest.mark.parametrize("shape", SHAPES)
def test_resource_lines(shape: str, sm: str) -> None:
    """The text of -v equals ptxas's, but for the compile times."""
    oracle.require("ptxas")
    path = Path(__file__).parent / "shapes" / f"{shape}.ptx"
    if not takes(path, sm):
        pytest.skip(f"{shape} needs a later target")
    import subprocess

    tool = oracle.find("ptxas")
    done = subprocess.run(
        [str(tool), "-v", "-arch", f"sm_{sm}", str(path), "-o", "/dev/null"], capture_output=True, text=True, check=True
    )
    expected = [line for line in (done.stdout + done.stderr).splitlines() if "Compile time" not in line]
    header, module, units = lift(compiled(path, sm), f"sm_{sm}", path.read_text())
    assert resource_lines(header, module, units) == expected


@pytest.mark.parametrize("sm", ["75", "80", "90", "100", "120"])
def test_tools_read_our_file(sm: str, tmp_path: Path) -> None:
    """cuobjdump and nvdisasm accept the file, print the code of the original, and the same resource use."""
    oracle.require("ptxas", "nvdisasm", "cuobjdump")
    ptx = KERNELS / f"sm_{sm}" / "all16.ptx"
    original = oracle.run_ptxas(ptx, sm)
    assert isinstance(original, Path)
    ours = tmp_path / "ours.cubin"
    ours.write_bytes(link(*lift(load(original), f"sm_{sm}", ptx.read_text())))
    # cuobjdump prints the command line of the note and the e_flags byte; both are allowed differences.
    assert (
        oracle.cuobjdump(ours, "-sass").split("\n\t\t", 1)[1]
        == oracle.cuobjdump(original, "-sass").split("\n\t\t", 1)[1]
    )
    assert _resources(oracle.cuobjdump(ours, "-res-usage")) == _resources(oracle.cuobjdump(original, "-res-usage"))
    assert _code(oracle.nvdisasm(ours, "-c")) == _code(oracle.nvdisasm(original, "-c"))
    assert ".text.vadd" in oracle.cuobjdump(ours, "-elf")


def _resources(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if "REG:" in line or "Function" in line]


def _code(text: str) -> list[str]:
    return [line for line in text.splitlines() if "/*" in line]


@pytest.mark.parametrize("sm", ["75", "80", "90", "100", "120"])
def test_nvlink_takes_our_file(sm: str, tmp_path: Path) -> None:
    oracle.require("ptxas", "nvlink")
    path = Path(__file__).parent / "shapes" / "vadd.ptx"
    ours = tmp_path / "ours.cubin"
    ours.write_bytes(link(*lift(compiled(path, sm), f"sm_{sm}", path.read_text())))
    result = oracle.run_tool("nvlink", "-arch", f"sm_{sm}", str(ours), "-o", str(tmp_path / "out"))
    assert isinstance(result, str), result
