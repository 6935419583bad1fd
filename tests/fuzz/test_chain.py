"""Programs that were once wrong, and a few random ones, through the whole chain: values as in the PTX interpreter."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests import oracle
from tests.fuzz import programs
from tests.fuzz.chain import ARCHES, number, read, way_of
from tests.fuzz.judge import Program, Way, check

THEIRS = sorted((Path(__file__).parent / "theirs").glob("*.ptx"))
CASES = sorted((Path(__file__).parent / "cases").glob("*.ptx"))


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_programs_that_were_once_wrong(path: Path) -> None:
    """In the configuration that was wrong, and at -O3 on every SM."""
    program, way, kernels = read(path)
    (kernel,) = kernels
    assert program.defined(kernel) == ""
    target = next(int(line.split("sm_")[1]) for line in program.text.split("\n") if line.startswith(".target"))
    for w in dict.fromkeys((way, *(Way(a) for a in ARCHES if number(a) >= target))):
        assert [str(f) for f in check(program, w, kernels, 2)] == []


@pytest.mark.oracle
@pytest.mark.parametrize("path", THEIRS, ids=lambda p: p.stem)
def test_programs_that_ptxas_compiles_wrong(path: Path) -> None:
    """Errors of ptxas that no small program shows (those are in tests/cosim/known): ours is right, its cubin is not."""
    oracle.require("ptxas")
    program, way, kernels = read(path)
    assert program.defined(kernels[0]) == ""
    assert check(program, way, kernels) == []
    assert [f.kind for f in check(program, replace(way, by="ptxas"), kernels)] == ["value"]


@pytest.mark.parametrize(
    ("seed", "arch", "level"), [(1, "sm_75", 3), (2, "sm_80", 3), (4, "sm_120", 3), (5, "sm_90", 3), (6, "sm_80", 0)]
)
def test_random_modules(seed: int, arch: str, level: int) -> None:
    program = Program(programs.module(seed, min(number(arch), 90), 3), programs.launch(seed))
    assert [str(f) for f in check(program, way_of(arch, level, seed))] == []


@pytest.mark.oracle
@pytest.mark.parametrize(("seed", "arch"), [(42, "sm_80"), (41, "sm_90"), (40, "sm_120")])
def test_ptxas_agrees(seed: int, arch: str) -> None:
    """The programs are well defined: another compiler gives the same results (its own errors, tests/cosim/known, do not
    show in these)."""
    oracle.require("ptxas")
    program = Program(programs.module(seed, 75, 3), programs.launch(seed))
    assert [str(f) for f in check(program, Way(arch, by="ptxas"))] == []


def test_same_seed_same_program() -> None:
    assert programs.module(7, 80, 3) == programs.module(7, 80, 3)
