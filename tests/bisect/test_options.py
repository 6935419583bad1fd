"""Options of `orias-bisect` and `orias-reduce` in use: several culprits, disabled parts, a page, a table, a folder for
a bug report, another compiler."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

import stages.bisect.vendor
import stages.optimize.passes
from orchestrator.api import compile_ptx
from stages.bisect.cli import app
from stages.check.ptx_uses import undefined
from stages.plumbing.runner import Pass
from stages.reduce.cli import app as reduce_app
from stages.reduce.program import Program
from tests.bisect.test_bisect import faulty, planted

#: All threads store the same value.
SHORT = """.version 8.0
.target sm_80
.address_size 64
.visible .entry sums(.param .u64 out)
{
.reg .b32 %r<4>;
.reg .b64 %d<2>;
ld.param.u64 %d1, [out];
xor.b32 %r2, 5, 1234567;
add.u32 %r3, %r2, 99;
st.global.u32 [%d1], %r3;
}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A kernel with two constants that passes may spoil."""
    out = tmp_path / "short.ptx"
    out.write_text(SHORT)
    return out


def spoil(monkeypatch: pytest.MonkeyPatch, *constants: int) -> None:
    """Passes `spoil-N` that replace N by another constant."""
    for n in reversed(constants):
        p = faulty(n)
        planted(monkeypatch, stages.optimize.passes, 0, Pass(f"spoil-{n}", p.run, min_opt=1))


def bisect(*args: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, [*map(str, args), "-O", "1", "--seeds", "1", "-q"])
    return done.exit_code, done.output


def test_all_culprits_one_after_another(monkeypatch: pytest.MonkeyPatch, file: Path, tmp_path: Path) -> None:
    spoil(monkeypatch, 1234567, 99)
    code, said = bisect(file, "--all", "--html", tmp_path / "x.html", "--keep", tmp_path / "kept")
    heads = [line.split(" on,")[0] for line in said.splitlines() if line.startswith("wrong from")]
    assert code == 0 and sorted(heads) == ["wrong from optimize: spoil-1234567", "wrong from optimize: spoil-99"], said
    assert "no further culprit" in said
    for name in ("x.html", "x-2.html", "kept/wrong.cubin", "kept-2/wrong.cubin"):
        assert (tmp_path / name).exists(), name


def test_disabled_parts(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    spoil(monkeypatch, 1234567, 99)
    code, said = bisect(file, "--without", "optimize:spoil-1234567")
    assert code == 0 and said.startswith("wrong from optimize: spoil-99 on")
    assert "skip=spoil-1234567" in said  # the printed commands leave it out too
    code, said = bisect(file, "--without", "optimize:nothing")
    assert code == 2 and "there is no part 'optimize:nothing'" in said


def test_a_folder_for_a_bug_report(monkeypatch: pytest.MonkeyPatch, file: Path, tmp_path: Path) -> None:
    """The folder has everything: values, both computations, the table, commands, a page with both streams, the reduced
    PTX."""
    spoil(monkeypatch, 1234567)
    folder = tmp_path / "report"
    code, said = bisect(file, "--report", folder)
    assert code == 0
    text = (folder / "report.txt").read_text()
    assert text == said
    for part in (
        "wrong from optimize: spoil-1234567 on, rewrite 2 of 1 to 3",
        "found by co-simulation: sums: out[0] is ",
        "sm_80, ",
        "kernel: sums",
        "launch: seed 0",
        "xor.b32 %r2, 5, 1234567;",  # what the manual requires
        "STG.E",  # what the cubin does
        f"right: orias {file}",
        "wrong: orias ",
        f"check: orias-check {file} --cosim --arch sm_80 --cubin wrong.cubin --kernel sums",
        "sm_80    ok WRONG WRONG WRONG",
        "sm_120   ok WRONG WRONG WRONG",
    ):
        assert part in text, part
    assert {p.name for p in folder.iterdir()} >= {"right.cubin", "wrong.cubin", "wrong.ori", "reduced.ptx"}
    page = (folder / "report.html").read_text()
    assert page.startswith("<!DOCTYPE html>") and "<table" in page and "0x12d688" in page.lower()
    left = Program((folder / "reduced.ptx").read_text(), "sm_80")
    (f,) = left.functions().values()
    assert len(f.body) <= 4 and not undefined(f)


def test_reduction_to_the_same_culprit(monkeypatch: pytest.MonkeyPatch, file: Path, tmp_path: Path) -> None:
    """Of two faults the first named one is kept."""
    spoil(monkeypatch, 1234567, 99)
    out = tmp_path / "reduced.ptx"
    done = CliRunner().invoke(reduce_app, [str(file), "--same", "-O", "1", "-j", "2", "-o", str(out)])
    assert done.exit_code == 0 and "reducing what this is: wrong from optimize: spoil-1234567" in done.output
    text = out.read_text()
    assert "1234567" in text and "99;" not in text and text.count(";") <= 9, text


def test_another_compiler_is_accused_with_a_witness_alone(
    monkeypatch: pytest.MonkeyPatch, file: Path, tmp_path: Path
) -> None:
    """A compiler that is wrong at -O3, then one that is wrong everywhere, then a second one as witness."""
    wrong = ["-O3"]

    def compiles(program: Path, source: Path, arch: str, words: Sequence[str]) -> bytes:
        bad = program.name == "vendor" and not {*wrong}.isdisjoint(words)
        text = source.read_text().replace("1234567", "1234568") if bad else source.read_text()
        return compile_ptx(text, arch, {"fmad": 0})

    monkeypatch.setattr(stages.bisect.vendor, "compile_elsewhere", compiles)
    code, said = bisect(file, "--vendor", "vendor", "--report", tmp_path / "out")
    assert code == 0 and said.startswith("vendor -O3 makes a wrong cubin"), said
    assert "witness: vendor -O2 computes the expected value in that launch" in said and "our cubin: agrees" in said
    assert {p.name for p in (tmp_path / "out").iterdir()} >= {"report.txt", "report.html", "repro.cu", "wrong.cubin"}
    host = (tmp_path / "out/repro.cu").read_text()
    assert "cuLaunchKernel" in host and '#define KERNEL "sums"' in host and host.count("{") == host.count("}")
    wrong[:] = ["-O0", "-O1", "-O2", "-O3"]
    code, said = bisect(file, "--vendor", "vendor")
    assert code == 3 and "not accused" in said
    code, said = bisect(file, "--vendor", "vendor", "--witness", "other")
    assert code == 0 and "witness: other -O3 computes the expected value" in said


def test_a_stage_that_copies_is_blamed(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`cat` as the scheduler: the message names the command, what it wrote and what was expected."""
    from orchestrator.__main__ import _run

    assert _run([str(file), "-arch", "sm_80", "--stage", "schedule=cat", "-o", os.devnull]) == 255
    assert "stage schedule ('cat') wrote level 'allocated', expected 'scheduled'" in capsys.readouterr().err
