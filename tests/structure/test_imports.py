"""Stages are independent programs: none imports another, and shared modules import none of them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.structure.import_circles import circles

ROOT = Path(__file__).parents[2]
CHAIN = ("parse", "lower", "optimize", "regalloc", "schedule", "encode", "elf")
SHARED = ("analysis", "plumbing")


def imported(path: Path) -> set[str]:
    """Dotted names of the modules that a file imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            found.add(node.module or "")
            found.update(f"{node.module}.{a.name}" for a in node.names)
    return found


def folders(package: str) -> set[str]:
    """Folders of `stages/` that the files of ``package`` import."""
    files = (ROOT / package).rglob("*.py")
    names = {n.split(".")[1] for f in files for n in imported(f) if n.startswith("stages.")}
    return names & {p.name for p in (ROOT / "stages").iterdir() if p.is_dir()}


@pytest.mark.parametrize("stage", CHAIN)
def test_a_stage_imports_no_other_stage_and_no_tool(stage: str) -> None:
    assert folders(f"stages/{stage}") <= {stage, *SHARED}


def test_analyses_import_no_stage() -> None:
    assert folders("stages/analysis") <= {"analysis"}


def test_the_format_imports_nothing_of_the_product() -> None:
    for path in (ROOT / "ir_format").rglob("*.py"):
        assert not {n for n in imported(path) if n.startswith(("stages", "orchestrator", "tests"))}, path


def test_no_modules_import_each_other() -> None:
    """Imports inside functions count too."""
    assert circles() == []
