"""`orias-farm`: a batch over a Dask cluster. The campaign with a thousand files is `python -m tests.farm`."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from orchestrator.farm.cluster import Settings
from orchestrator.farm.run import run_farm
from orchestrator.farm.work import OTHER, Job, Result, compile_job

needs_dask = pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="needs orias[farm] (Dask)")


@needs_dask
def test_killed_workers_lose_nothing() -> None:
    """Each file is compiled once, with the bytes of the chain, though a worker dies; errors come in order."""
    from tests.farm import campaign

    got = campaign(6, 2, 2)
    assert got.wrong == [] and got.kills > 0


@needs_dask
def test_no_cluster(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A scheduler that is not there is said so, and files are counted as not compiled."""
    (tmp_path / "a.ptx").write_text("")
    command = ["--output-dir", str(tmp_path / "made"), "--report", str(tmp_path / "r.json"), str(tmp_path / "a.ptx")]
    assert run_farm(command, Settings("nowhere://1", 1)) == 255
    said = capfd.readouterr().err
    assert "no cluster at 'nowhere://1'" in said and "1 of 1 files were not compiled" in said
    assert '"exit": null' in (tmp_path / "r.json").read_text()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["-arch", "sm_90"], "there is no file to compile"),
        (["-j", "4", "a.ptx"], "--jobs"),
        (["--no-such-option", "a.ptx"], "no-such-option"),
        (["-o", "x", "a.ptx"], "--output-dir"),
    ],
)
def test_refused_command_lines(words: list[str], text: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Refused before a cluster is made."""
    assert run_farm(words, Settings()) == 255
    assert text in capfd.readouterr().err


def test_worker_of_another_version() -> None:
    """A worker with another orias does not compile."""
    got = Result(*compile_job(tuple(Job("a.ptx", b"", (), "/", "0.0.0"))))  # type: ignore[arg-type]
    assert got.code == OTHER and "has orias" in got.said and not got.cubin


def test_missing_package(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """Without Dask the command says what to install."""
    from typer.testing import CliRunner

    from orchestrator.farm.cli import app

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    done = CliRunner().invoke(app, ["-arch", "sm_90", "a.ptx"])
    assert done.exit_code == 255
    assert "orias[farm]" in done.output + capfd.readouterr().err
