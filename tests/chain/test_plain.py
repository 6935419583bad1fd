"""Plain command lines are read without Typer, with the same meaning."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from stages.parse import work
from stages.parse.__main__ import _OPTIONS
from stages.parse.cli import app
from stages.plumbing.plain import path, read

ROOT = Path(__file__).parents[2]
VADD = ROOT / "tests/kernels/ptx/sm_90/vadd.ptx"

PLAIN = (
    [],
    ["-"],
    ["a.ptx", "./b//c.ptx", "d/../e.ptx"],
    ["--arch", "sm_90", "k.ptx", "-o", "x"],
    ["--arch=sm_80", "--arch=sm_90", "-O1", "-O", "2", "--opt-level=0", "k.ptx"],
    ["-ox/y", "--output=./z", "--option", "a=b=c", "--option=d", "--explain"],
    ["--option", "e=", "-o", "-"],
)


@pytest.mark.parametrize("argv", PLAIN, ids=" ".join)
def test_as_typer_reads(argv: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Any, ...]] = []
    monkeypatch.setattr(work, "run_parse", lambda *args: seen.append(args) or 0)
    got = CliRunner().invoke(app, argv)
    assert got.exit_code == 0, got.output
    plain = read(argv, _OPTIONS, ("--explain",))
    assert plain is not None
    output = plain.last("output")
    assert seen == [
        (
            [path(f) for f in plain.files],
            plain.last("arch") or "sm_75",
            int(plain.last("level") or 3),
            output and path(output),
            plain.values.get("option", []),
            bool(plain.flags),
        )
    ]


@pytest.mark.parametrize(
    "argv",
    (
        ["-h"],
        ["--", "k"],
        ["--arch"],
        ["--arch", "--x"],
        ["--arc", "sm_90"],
        ["-x"],
        [""],
        ["-o", ""],
        ["-Oexplain", "-"],
    ),
)
def test_left_to_typer(argv: list[str]) -> None:
    plain = read(argv, _OPTIONS, ("--explain",))
    assert plain is None or not (plain.last("level") or "0").isdigit()


def test_too_many_files() -> None:
    assert read(["a", "b"], {}, most=1) is None and read(["a", "b"], {}, most=2) is not None


def test_no_typer_in_a_pipe(tmp_path: Path) -> None:
    """No stage of a pipe imports Typer, or `typing`, which takes as long as a stage; the pipe's cubin equals that of
    `orias`."""
    data = b""
    for name in ("parse", "lower", "optimize", "regalloc", "schedule", "encode", "elf"):
        argv = {"parse": ["--arch", "sm_90", str(VADD)], "elf": ["-o", str(tmp_path / "k")]}.get(name, [])
        slow = {"typer", "click", "rich", "pydantic", "dataclasses", "typing"}
        program = (
            f"import sys, os; before = set(sys.modules); sys.argv[0] = 'orias-{name}'\n"
            "def end(code, leave=os._exit):\n"
            f"    leave(99 if {slow} & set(sys.modules) - before else code)\n"
            f"os._exit = end\nfrom stages.{name}.__main__ import main\nmain()"
        )
        done = subprocess.run([sys.executable, "-c", program, *argv], input=data, capture_output=True, cwd=ROOT)
        assert (done.returncode, done.stderr) == (0, b""), name
        data = done.stdout
    subprocess.run(
        [sys.executable, "-m", "orchestrator", "-arch", "sm_90", str(VADD), "-o", str(tmp_path / "o")],
        check=True,
        cwd=ROOT,
    )
    assert (tmp_path / "k").read_bytes() == (tmp_path / "o").read_bytes()


def test_unwritable_output(tmp_path: Path) -> None:
    for module, argv in (("parse", ["--arch", "sm_90", str(VADD)]), ("lower", []), ("elf", [])):
        done = subprocess.run(
            [sys.executable, "-m", f"stages.{module}", *argv, "-o", str(tmp_path / "no/x")],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd=ROOT,
        )
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr
