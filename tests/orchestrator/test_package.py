"""The contents of an installation: one top-level name, the tools, the Python interface, and the same cubins."""

from __future__ import annotations

import ast
import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.chain.corpus import cubin, ptx_path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("stages", "ir_format", "orchestrator")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a wheel, made as pip makes it."""
    if importlib.util.find_spec("setuptools") is None:
        pytest.skip("setuptools is not installed")
    tmp = tmp_path_factory.mktemp("wheel")
    tree = tmp / "tree"
    for folder in (*FOLDERS, "orias"):
        shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    command = [sys.executable, "setup.py", "-q", "bdist_wheel", "-d", str(tmp)]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp / "site")
    return tmp / "site"


def run(installed: Path, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python so that the installation is found first."""
    return subprocess.run(
        [sys.executable, "-P", *words],
        cwd=cwd or installed.parent,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_there_is_one_name_and_no_import_of_another(installed: Path) -> None:
    assert {p.name for p in installed.iterdir() if p.suffix not in (".dist-info", ".data")} == {"orias"}
    assert (installed / "orias" / "py.typed").exists()
    page = installed / "orias" / "stages" / "plumbing" / "page"
    assert {p.name for p in page.iterdir()} == {p.name for p in (ROOT / "stages" / "plumbing" / "page").iterdir()}
    held = {p.relative_to(installed / "orias").as_posix() for p in installed.rglob("*") if p.suffix in (".py", ".ptx")}
    ours = [p.relative_to(ROOT) for f in FOLDERS for p in (ROOT / f).rglob("*") if p.suffix in (".py", ".ptx")]
    assert {p.as_posix() for p in ours} <= held
    for path in installed.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [n for n in names if n.split(".")[0] in FOLDERS], path


def test_the_command_line_makes_the_same_cubin(installed: Path, tmp_path: Path) -> None:
    ptx = str(ptx_path("softmax", "sm_90"))
    for more in ([], ["--exec"]):
        done = run(installed, "-m", "orias", ptx, "-arch=sm_90", "-o", "k.cubin", *more, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert (tmp_path / "k.cubin").read_bytes() == cubin("softmax", "sm_90"), more


PROGRAM = """
import sys
import numpy as np
import orias
from pathlib import Path
assert not [m for m in sys.modules if m.startswith("orias.")], "importing orias imports more"
c = orias.compile(Path(sys.argv[1]))
a = np.arange(64, dtype=np.float32)
out = np.zeros(64, np.float32)
orias.run(c, grid=2, args=[a, a, out, np.int32(64)])
assert (out == a + a).all()
assert orias.check(c)
from orias.stage import Unit
from orias.ir_format.model import Unit as Same
assert Unit is Same
assert not [m for m in sys.modules if m.split(".")[0] in ("stages", "ir_format", "orchestrator")]
"""


def test_a_program_uses_it(installed: Path) -> None:
    done = run(installed, "-c", PROGRAM, str(ptx_path("vadd", "sm_90")))
    assert done.returncode == 0, done.stderr


def test_tools_and_entry_points_are_there(installed: Path) -> None:
    (text,) = [p.read_text() for p in installed.glob("*.dist-info/entry_points.txt")]
    for line in text.splitlines():
        name, eq, place = line.partition(" = ")
        if eq:
            module = place.partition(":")[0]
            assert (installed / f"{module.replace('.', '/')}.py").exists(), name
    programs = {p.name: p.read_text() for p in installed.glob("*.data/scripts/*")}
    assert {"orias", "orias-parse", "orias-elf"} <= set(programs) and len(programs) == 8
    for name, text in programs.items():
        first, line = text.splitlines()[:2]
        assert first == "#!python", name  # which pip replaces
        module = line.split()[1]
        assert (installed / f"{module.replace('.', '/')}.py").exists(), name
