"""Two compilations side by side: what is equal, what differs, and the reasons for waits."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.api import compile_ptx
from stages.diff.cli import app
from stages.diff.diff import pair, summary
from stages.diff.timed import read_codes
from stages.plumbing.runner import Flags

PTX = Path(__file__).parents[1] / "kernels/ptx/sm_90/saxpy.ptx"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("diff")
    streams: dict[str, bytes] = {}
    (out / "a.cubin").write_bytes(compile_ptx(PTX.read_text(), "sm_90", streams=streams))
    for stage in ("parse", "optimize", "schedule"):
        (out / f"{stage}.ori").write_bytes(streams[stage])
    naive = {"schedule": Flags(quiet=True, extra={"scheduler": "naive"})}
    (out / "b.cubin").write_bytes(compile_ptx(PTX.read_text(), "sm_90", flags=naive))
    return out


def test_equal_inputs_have_no_difference(folder: Path) -> None:
    for name in ("a.cubin", "optimize.ori", "schedule.ori"):
        done = CliRunner().invoke(app, [str(folder / name), str(folder / name)])
        assert done.exit_code == 0 and "0 in the first alone, 0 in the second alone" in done.output, done.output


def test_control_words_and_their_reasons(folder: Path) -> None:
    done = CliRunner().invoke(app, [str(folder / "a.cubin"), str(folder / "b.cubin")])
    assert done.exit_code == 1 and "SB1 of" in done.output and "class ldg" in done.output
    (a,), (b,) = (read_codes((folder / f"{n}.cubin").read_bytes()) for n in "ab")
    assert a.cycles < b.cycles and f"estimated cycles {a.cycles} | {b.cycles}" in summary(pair(a, b))[0]
    assert a.registers == b.registers
    rows = pair(a, b).rows
    assert [r[1] for r in rows if r[1] is not None] == a.lines and [r[2] for r in rows if r[2] is not None] == b.lines


def test_a_stream_and_its_cubin_have_the_same_instructions(folder: Path) -> None:
    (stream,), (cubin,) = (read_codes((folder / n).read_bytes()) for n in ("schedule.ori", "a.cubin"))
    keys = [x.key for x in stream.lines]
    assert keys == [x.key for x in cubin.lines][: len(keys)]
    assert [x.cycles for x in stream.lines] == [x.cycles for x in cubin.lines][: len(keys)]


def test_html_and_bad_input(folder: Path) -> None:
    page = CliRunner().invoke(app, [str(folder / "a.cubin"), str(folder / "b.cubin"), "-f", "html"]).output
    assert page.startswith("<!DOCTYPE html>") and page.count("<tr") > 20 and "saxpy" in page
    for bad in ("parse.ori", "none"):
        assert CliRunner().invoke(app, [str(folder / "a.cubin"), str(folder / bad)]).exit_code == 2
