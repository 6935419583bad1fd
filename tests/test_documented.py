"""Every command line in README and docs: run as printed in a scratch folder or, if it is a synopsis or a campaign,
checked against the help.

A command is in a code span or on an indented line and begins with a name of :data:`TOOLS`. A command with `[...]`,
`...`, capital placeholders or a bar is a synopsis: the program must exist and its help must know each option. `python
-m` is a development command: its module must exist and its help must know each option. The build covers installing
(`pip`, `tox`).
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BIN = Path(os.environ.get("ORIAS_BIN") or Path(sys.executable).parent)  # tests/installed.py has another environment's
TOOLS = ("orias", "python -m ")
#: Inputs of the examples, created beforehand in the scratch folder.
SYNOPSIS = re.compile(r"\[-|\[--|\.\.\.|\bFOLDER\b|\bCOMMAND\b|\bNAME\b|\bLEVEL\b|\bOUT\b|\bCUBINS\b")
#: Exit codes other than 0 that a printed command may have: the kernel of the scratch folder is right, two cubins
#: differ.
CODES = {
    "orias docs/examples/typo.ptx -arch sm_90 --explain": (255,),
    "orias-bisect": (0, 1),
    "orias-check": (0, 2),
    "orias-reduce": (0, 1),
    "orias-diff": (0, 1),
}


def printed() -> list[tuple[str, str]]:
    """(file, command) of each; a command printed several times is run once."""
    out: dict[str, str] = {}
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = path.read_text()
        found = re.findall(r"`([^`\n]+)`", text) + [
            re.split(r"\s{3,}#", line)[0] for line in re.findall(r"^ {4}(\S.*)$", text, re.M)
        ]
        for command in found:
            command = command.strip()
            if re.match(r"(orias(-[a-z]+)? \S|python -m \S)", command) and not re.match(
                r"orias +(the|takes|runs) ", command
            ):
                out.setdefault(command, path.name)
    return [(name, command) for command, name in out.items()]


COMMANDS = printed()
ORIAS = [c for c in COMMANDS if c[1].startswith("orias")]
#: A name followed only by options (`orias-disasm --exact`) describes options; -h is a command.
SHAPES = [c for c in ORIAS if SYNOPSIS.search(c[1]) or (re.fullmatch(r"orias-\w+( -[\w-]+)+", c[1]))]
PLAIN = [c for c in ORIAS if c not in SHAPES]
MODULES = [c for c in COMMANDS if c[1].startswith("python -m ")]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """K.ptx, K.cubin, streams T/, X.ori, BEFORE.ori, AFTER.ori, a scheduler and a judge of one's own."""
    folder = tmp_path_factory.mktemp("scratch")
    shutil.copytree(ROOT / "tests" / "kernels" / "ptx" / "sm_90", folder / "tests" / "kernels" / "ptx" / "sm_90")
    shutil.copy(ROOT / "tests" / "kernels" / "ptx" / "sm_75" / "saxpy.ptx", folder / "K.ptx")
    shutil.copy(ROOT / "tests" / "kernels" / "ptx" / "sm_90" / "vadd.ptx", folder / "vadd.ptx")
    shutil.copytree(ROOT / "docs" / "examples", folder / "docs" / "examples")
    ours = "exec orias-schedule"
    for name, text in (("my-scheduler", ours), ("mine", ours), ("control", ours), ("run-it", "exit 0")):
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    for line in (
        "orias K.ptx -arch sm_90 -o K.cubin --save-temps T",
        "orias vadd.ptx -arch sm_90 -o vadd.cubin",
        "orias-disasm --ori K.cubin -o X.ori",
    ):
        done = shell(line, folder)
        assert done.returncode == 0, done.stderr
    for old, new in (
        ("T/2.optimize.ori", "BEFORE.ori"),
        ("T/3.regalloc.ori", "AFTER.ori"),
        ("T/1.lower.ori", "1.lower.ori"),
        ("T/2.optimize.ori", "2.optimize.ori"),
    ):
        shutil.copy(folder / old, folder / new)
    return folder


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = f"{folder}:{BIN}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=240,
        check=False,
    )


@pytest.mark.parametrize(("file", "command"), PLAIN)
def test_commands_run_as_printed(scratch: Path, file: str, command: str) -> None:
    tool = command.split()[0]
    if shutil.which(tool, path=str(BIN)) is None:
        pytest.skip(f"{tool} is not installed beside this Python")
    done = shell(command, scratch)
    assert done.returncode in CODES.get(command, CODES.get(tool, (0,))), (
        f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
    )
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("file", "command"), SHAPES)
def test_synopses_name_options_that_there_are(file: str, command: str) -> None:
    tool = command.split()[0]
    if shutil.which(tool, path=str(BIN)) is None:
        pytest.skip(f"{tool} is not installed beside this Python")
    text = shell(f"COLUMNS=300 {tool} --help", ROOT).stdout
    for option in re.findall(r"(?<![\w-])(--?[a-zA-Z][\w-]*)", command.split(" ", 1)[1]):
        assert option in text, f"{tool} has no {option}"


@pytest.mark.parametrize("module", sorted({c[1].split()[2] for c in MODULES}))
def test_development_commands_are_there(module: str) -> None:
    path = ROOT / module.replace(".", "/")
    assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), (
        f"python -m {module}: there is no such module"
    )
    commands = [c[1] for c in MODULES if c[1].split()[2] == module]
    options = {o for c in commands for o in re.findall(r"(?<![\w-])(--[a-z][\w-]*)", c.split(module, 1)[1])}
    if not options:
        return
    said = io.StringIO()
    argv, sys.argv = sys.argv, [module, "--help"]
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), contextlib.suppress(SystemExit):
            runpy.run_module(module, run_name="__main__", alter_sys=False)
    finally:
        sys.argv = argv
    missing = [o for o in sorted(options) if o not in said.getvalue()]
    assert not missing, f"python -m {module} has no {missing}"
