"""Common behaviour of all programs: `--version`, `--help`, completion, man pages, exit codes."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from orchestrator.__main__ import _run
from orias.manual import EXITS, _application, pages
from stages.plumbing.runner import VERSION

ROOT = Path(__file__).parents[2]
TYPER = [name for name in EXITS if name not in ("orias", "orias-farm")]  # these two read ptxas's command line
BIN = Path(sys.executable).parent


def invoke(name: str, *words: str) -> Any:
    return CliRunner().invoke(_application(name), list(words), prog_name=name)


@pytest.mark.parametrize("name", TYPER)
def test_version_and_help(name: str) -> None:
    assert invoke(name, "--version").stdout == f"{name} {VERSION}\n"
    text = invoke(name, "-h").stdout
    assert "--version" in text and "--show-completion" in text
    assert invoke(name, "--no-such-option").exit_code == 2


def test_the_installed_programs_are_those_with_pages() -> None:
    import tomllib

    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert {*declared["project"]["scripts"], *declared["tool"]["orias"]["programs"]} == set(EXITS)


def test_man_pages_are_current() -> None:
    """docs/man is the output of `python -m orias.manual docs/man`, and each page has its sections and every option."""
    made = dict(pages())
    held = {p.name: p.read_text() for p in (ROOT / "docs" / "man").iterdir()}
    stale = sorted(n for n in {*held, *made} if held.get(n) != made.get(n))
    assert not stale, "options changed: run `python -m orias.manual docs/man`"
    for name, text in made.items():
        for part in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "SEE ALSO"):
            assert f"\n.SH {part}\n" in text, name
    shown = re.findall(r"^\.B \\-\\-([a-z]\S*?)[,\s[]", made["orias.1"] + "\n", re.M)
    from orchestrator.options import OPTIONS

    assert {o.long.replace("-", "\\-") for o in OPTIONS if o.long[0].islower()} <= set(shown)
    assert ".B \\-cfg, \\-\\-output\\-control\\-flow\\-graph\n" in made["orias-disasm.1"]


def bash(script: str, line: str) -> list[str]:
    """The completions that bash offers for a command line that ends at the cursor."""
    words = line.split(" ")
    code = (
        f"{script}\nCOMP_WORDS=({' '.join(repr(w) for w in words)}); COMP_CWORD={len(words) - 1}\n"
        f"F=$(complete -p {words[0]} | sed 's/.*-F \\([^ ]*\\).*/\\1/'); $F {words[0]} {words[-1]!r} {words[-2]!r}\n"
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    path = f"{BIN}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "PATH": path}
    )
    return done.stdout.split()


def test_bash_completes(capsys: pytest.CaptureFixture[str]) -> None:
    """In bash, as `eval "$(PROGRAM --show-completion bash)"` sets it up."""
    assert _run(["--show-completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert bash(script, "orias --fdev") == ["--fdevice-time-trace"]
    assert bash(script, "orias -arch sm_90") == ["sm_90", "sm_90a"]
    assert bash(script, "orias --diagnostics-format s") == ["sarif"]
    os.environ["_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"] = "1"
    try:
        script = invoke("orias-schedule", "--show-completion", "bash").stdout
    finally:
        del os.environ["_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"]
    if (BIN / "orias-schedule").exists():
        assert bash(script, "orias-schedule --dump") == ["--dump-after"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_a_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["--show-completion", shell]) == 0
    assert "fdevice-time-trace" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name", ["orias-show", "orias-disasm", "orias-check", "orias-run", "orias-diff", "orias-bisect"]
)
def test_a_file_of_another_kind_ends_with_2(name: str, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("neither PTX nor a stream nor a cubin\n")
    words = [str(path)] * (2 if name == "orias-diff" else 1)
    done = invoke(name, *words)
    assert done.exit_code == 2 and str(path) in done.output, done.output


def test_modules_run_as_programs_do() -> None:
    """`python -m stages.X` is the program of the stage."""
    for name in TYPER:
        short = {"run": "simulate"}.get(name.removeprefix("orias-"), name.removeprefix("orias-"))
        assert callable(importlib.import_module(f"stages.{short}.__main__").main)
