"""The checked-in PTX is complete, free of paths, accepted by ptxas, and equal to nvcc's output for today's sources."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import oracle
from tests.kernels import cases, cases_corpus, cases_hand, cases_loops, cases_tensor, make_ptx
from tests.kernels.model import HERE, combined_ptx

SPECS = [*cases.CASES.values(), *cases_corpus.CASES.values()]
HAND = {**cases_hand.CASES, **cases_loops.CASES, **cases_tensor.CASES}

#: nvcc's release that made the checked-in files.
NVCC_RELEASE = "V13.0.88"


def test_every_source_has_launches_and_ptx() -> None:
    for folder, table in ((HERE, cases.CASES), (HERE / "corpus", cases_corpus.CASES)):
        assert [source.stem for source in make_ptx.sources(folder)] == sorted(table)
    for sm in make_ptx.SMS:
        for spec in SPECS:
            text = spec.ptx(sm).read_text()
            assert f".target sm_{sm}\n" in text
            assert re.findall(r"\.entry (\w+)\(", text) == [spec.name]
        combined = combined_ptx(sm).read_text()
        assert sorted(re.findall(r"\.entry (\w+)\(", combined)) == sorted(cases.CASES)


def test_every_hand_written_kernel_has_launches() -> None:
    assert sorted(path.stem for path in (HERE / "hand").glob("*.ptx")) == sorted(HAND)
    for spec in HAND.values():
        text = spec.ptx(120).read_text()
        assert f".target sm_{spec.min_sm}\n" in text
        assert re.findall(r"\.entry (\w+)\(", text) == [spec.name]


def test_no_paths() -> None:
    for path in HERE.rglob("*.ptx"):
        text = path.read_text()
        assert not re.search(r"/(root|home|work|tmp|usr)/", text), path
        assert ".file" not in text, path


def test_parameters_match_the_launches() -> None:
    """Sizes and order of the PTX parameters match the launches' arguments."""
    widths = {"u64": 8, "u32": 4, "f32": 4, "u16": 2, "u8": 1, "s32": 4, "s64": 8, "b64": 8, "b32": 4, "f64": 8}
    for spec in [*SPECS, *HAND.values()]:
        head = spec.ptx(90).read_text().split(".entry", 1)[1].split(")", 1)[0]
        sizes = []
        for kind, rest in re.findall(r"\.param(?: \.align \d+)? \.(\w+) ?([^,\n]*)", head):
            array = re.search(r"\[(\d+)\]", rest)
            sizes.append(int(array[1]) if array else widths[kind])
        launch = spec.launches(0)[0]
        buffers = launch.buffers()
        assert sizes == [8 if arg.name in buffers else len(arg.data) for arg in launch.args], spec.name


@pytest.mark.oracle
@pytest.mark.parametrize("sm", make_ptx.SMS)
def test_ptxas_takes_all(sm: int) -> None:
    oracle.require("ptxas")
    for spec in [*SPECS, *HAND.values()]:
        if sm < spec.min_sm:
            continue
        result = oracle.run_ptxas(spec.ptx(sm), sm)
        assert isinstance(result, Path), f"{spec.name}: {result}"
    assert isinstance(oracle.run_ptxas(combined_ptx(sm), sm), Path)


@pytest.mark.oracle
def test_nvcc_makes_the_same(tmp_path: Path) -> None:
    """A sample; ``make_ptx.py --check`` compares all."""
    oracle.require("nvcc")
    version = oracle.run_tool("nvcc", "--version")
    if not isinstance(version, str) or NVCC_RELEASE not in version:
        pytest.skip(f"the files were made by nvcc {NVCC_RELEASE}")
    nvcc = oracle.find("nvcc")
    assert nvcc is not None
    for name, folder, sm in (("softmax", HERE, 90), ("half2_ops", HERE, 75), ("funnel", HERE / "corpus", 120)):
        target = tmp_path / f"{name}.ptx"
        make_ptx.compile_one(nvcc, folder / f"{name}.cu", sm, target, folder)
        assert target.read_bytes() == (folder / "ptx" / f"sm_{sm}" / f"{name}.ptx").read_bytes()
