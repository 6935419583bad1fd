"""Every command line describes its options, for `-h` and `--help` alike."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text())
SCRIPTS: dict[str, str] = {**DECLARED["tool"]["orias"]["programs"], **DECLARED["project"]["scripts"]}


@pytest.mark.parametrize("name", SCRIPTS)
def test_help(name: str) -> None:
    module, _, function = SCRIPTS[name].partition(":")
    program = f"import sys; sys.argv[0] = {name!r}; from {module} import {function} as run; sys.exit(run())"
    texts = []
    for switch in ("-h", "--help"):
        got = subprocess.run(
            [sys.executable, "-c", program, switch], capture_output=True, text=True, cwd=ROOT, timeout=60
        )
        assert got.returncode == 0, got.stderr
        assert "usage" in got.stdout.lower() and name in got.stdout
        texts.append(got.stdout)
    assert texts[0] == texts[1]
