"""The repository holds sources alone: nothing that a compiler or a test leaves behind is tracked."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# What orias, nvcc, Python, a linker or a browser write.
BUILT = {".o", ".obj", ".a", ".so", ".cubin", ".fatbin", ".ori", ".pyc", ".whl", ".egg-info", ".log", ".tmp", ".orig"}

#: What stands at the top of the repository; inputs that someone tried out belong elsewhere.
TOP = {
    ".ci", ".gitignore", ".pre-commit-hooks.yaml", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md",
    "benchmarks", "docs", "ir_format", "mkdocs.yml", "orchestrator", "orias", "pyproject.toml", "setup.py", "stages",
    "tests", "tox.ini",
}  # fmt: skip


def tracked() -> list[str]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode != 0:
        pytest.skip("this is no checkout of git")
    names = [name for name in listing.stdout.split("\0") if name]
    assert names
    return names


def test_no_built_file_is_tracked() -> None:
    assert [name for name in tracked() if Path(name).suffix in BUILT] == []


def test_the_top_level_is_the_layout() -> None:
    assert {name.split("/")[0] for name in tracked()} - TOP == set()
