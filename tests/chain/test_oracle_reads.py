"""NVIDIA's tools read our cubins without a complaint, and print every instruction as intended."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from ir_format import isa
from tests import oracle
from tests.chain.corpus import FULL, PARTIAL, cubin, kernels

pytestmark = pytest.mark.oracle


def texts(data: bytes) -> list[tuple[str, bytes]]:
    """(.text section name, bytes)."""
    return [(s.name, s.data()) for s in ELFFile(io.BytesIO(data)).iter_sections() if s.name.startswith(".text.")]


@pytest.mark.parametrize(("arch", "opt"), [*((a, 3) for a in (*FULL, *PARTIAL)), ("sm_90", 0)])
def test_tools_accept(arch: str, opt: int, tmp_path: Path) -> None:
    """All kernels in one cubin, because a tool takes half a second to start."""
    oracle.require("nvdisasm", "cuobjdump")
    path = tmp_path / "all16.cubin"
    path.write_bytes(cubin("all16", arch, opt))
    for tool, args in (("nvdisasm", ["-c"]), ("cuobjdump", ["-sass", "-elf", "-res-usage"])):
        out = oracle.run_tool(tool, *args, str(path))
        assert isinstance(out, str), f"{tool} {args}: {out}"
        assert "warning" not in out.lower() and "error" not in out.lower(), f"{tool} {args}"
        assert all(kernel in out for kernel in kernels())


@pytest.mark.parametrize(("arch", "opt"), [*((a, 3) for a in (*FULL, *PARTIAL)), ("sm_90", 0)])
def test_every_word_prints_as_meant(arch: str, opt: int) -> None:
    """nvdisasm's text of each word equals our printer's: the encoder wrote what the scheduler said. All kernels in one
    call, because the tool takes half a second to start."""
    oracle.require("nvdisasm")
    spec = isa.target(arch)
    found = texts(cubin("all16", arch, opt))
    assert len(found) == len(kernels())
    data = b"".join([code for _, code in found])
    words = [int.from_bytes(data[n : n + 16], "little") for n in range(0, len(data), 16)]
    theirs = oracle.disasm_words(words, arch.removeprefix("sm_"))
    for n, (w, text) in enumerate(zip(words, theirs, strict=True)):
        inst = spec.decode(w, 16 * n)
        assert inst, f"{16 * n:#x}: {inst}"
        assert text != oracle.UNDEFINED, f"{16 * n:#x}: nvdisasm refuses {w:#034x}"
        ours = spec.format(inst, 16 * n)
        assert ours.split() == text.removesuffix(";").split(), f"{16 * n:#x}"


@pytest.mark.parametrize("arch", FULL)
def test_nvlink_accepts(arch: str, tmp_path: Path) -> None:
    oracle.require("nvlink")
    for kernel in kernels():
        path = tmp_path / f"{kernel}.cubin"
        path.write_bytes(cubin(kernel, arch))
        theirs = oracle.run_ptxas(Path(__file__).parents[1] / "kernels/ptx" / arch / f"{kernel}.ptx", arch)
        assert isinstance(theirs, Path)
        want = oracle.run_tool("nvlink", f"-arch={arch}", str(theirs), "-o", str(tmp_path / "a"))
        got = oracle.run_tool("nvlink", f"-arch={arch}", str(path), "-o", str(tmp_path / "b"))
        assert isinstance(got, str) or not isinstance(want, str), f"{kernel}: {got}"
