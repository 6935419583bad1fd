"""Programs that were once wrong, and a few random ones, through the whole chain: values as in the PTX interpreter."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests import oracle
from tests.fuzz import programs
from tests.fuzz.chain import ARCHES, number, read, way_of
from tests.fuzz.judge import Launch, Program, Way, check
from tests.fuzz.shrink import settled

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


@pytest.mark.parametrize(("seed", "sm"), [(61059, 75), (7, 80), (8, 90)])
def test_registers_have_values_on_every_path(seed: int, sm: int) -> None:
    """Blocks that jump to each other once saw each other's new registers (the first seed)."""
    assert settled(programs.module(seed, sm, 3).split("\n"))


@pytest.mark.parametrize(
    ("line", "right"),
    [("bra L2;", False), ("@%p0 bra L2;", False), ("brx.idx %w0, T;", True), ("st.u32 [0], %w0;", True)],
)
def test_paths_that_leave_a_register_without_a_value(line: str, right: bool) -> None:
    text = f"mov.u32 %w0, 1;\nsetp.eq.u32 %p0, %w0, 1;\nT: .branchtargets L1, L1;\n{line}\nL1:\nmov.u32 %w1, 2;\nL2:"
    assert settled([*text.split("\n"), "add.u32 %w0, %w0, %w1;", "ret;"]) is right


@pytest.mark.oracle
@pytest.mark.parametrize(("seed", "arch"), [(42, "sm_80"), (41, "sm_90"), (40, "sm_120")])
def test_ptxas_agrees(seed: int, arch: str) -> None:
    """The programs are well defined: another compiler gives the same results (its own errors, tests/cosim/known, do not
    show in these)."""
    oracle.require("ptxas")
    program = Program(programs.module(seed, 75, 3), programs.launch(seed))
    assert [str(f) for f in check(program, Way(arch, by="ptxas"))] == []


_NEGATED = """.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out) {
.reg .b64 %i, %o; .reg .b32 %a, %b, %t;
ld.param.u64 %i, [in]; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x;
mad.wide.u32 %i, %t, 8, %i; mad.wide.u32 %o, %t, 4, %o;
ld.global.v2.b32 {%a, %b}, [%i];
OP.bf16x2 %a, %a; min.xorsign.abs.bf16x2 %a, %a, %b;
st.global.b32 [%o], %a; ret; }
"""


def _halves(seed: int) -> list[np.ndarray]:
    """Four pairs with another pair each: NaNs of both signs, infinities, numbers."""
    given = [0xFFC0FFC0, 0x3F803F80, 0x7FC17FC1, 0x3F803F80, 0xBF803F80, 0x3F80BF80, 0x7F80FF80, 0x80004000]
    return [np.array(given, np.uint32), np.zeros(4, np.uint32)]


@pytest.mark.parametrize("op", ["neg", "abs"])
def test_the_sign_of_a_negated_nan_is_left_open(op: str) -> None:
    """The manual defines neg and abs of a NaN as some NaN: its sign decides what .xorsign stores, and is not compared,
    whatever sign the interpreter's own has. Results of numbers are."""
    program = Program(_NEGATED.replace("OP", op), Launch(1, 4, _halves))
    assert (
        program.expected("k").buffers[1][2:].tolist()
        == {"neg": [0x3F803F80, 0x4000], "abs": [0x3F80BF80, 0x80004000]}[op]
    )
    assert [which.reshape(-1, 4).all(1).tolist() for which in program.open("k")][1] == [True, True, False, False]
    assert check(program, Way("sm_90")) == []
    flipped = Program(program.text.replace("st.global", "xor.b32 %a, %a, 0x8000; st.global"), program.launch)
    program.known.update({("k", 0, 0, n): flipped.expected("k", nans=n) for n in range(3)})
    assert ["thread 2" in f.what for f in check(program, Way("sm_90"))] == [True]


def test_same_seed_same_program() -> None:
    assert programs.module(7, 80, 3) == programs.module(7, 80, 3)
