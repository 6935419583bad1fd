"""The option to compile hot modules: the modules that mypyc compiles write the same bytes."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.chain.corpus import cubin, ptx_path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = "ir_format,stages/encode"  # a part of the modules: all of them take minutes


def _missing() -> str:
    """What a build needs and this machine lacks."""
    if importlib.util.find_spec("mypyc") is None:
        return "mypyc (it comes with mypy)"
    if importlib.util.find_spec("setuptools") is None:
        return "setuptools"
    if not any(shutil.which(c) for c in ("cc", "gcc", "clang")):
        return "a C compiler"
    if not Path(sysconfig.get_paths()["include"], "Python.h").exists():
        return "Python.h"
    return ""


def test_every_module_to_compile_exists() -> None:
    """A module that was renamed would end the build with the option, which the test below builds in part only."""
    tree = ast.parse((ROOT / "setup.py").read_text())
    hot = next(n.value for n in tree.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "HOT")
    paths = [ROOT / folder / f"{name}.py" for folder, names in ast.literal_eval(hot).items() for name in names.split()]
    assert len(paths) > 60
    assert [p for p in paths if not p.exists()] == []


def test_sets_that_mypy_takes_for_frozen_ones_are() -> None:
    """A frozenset less a dictionary's keys is a set, which mypy calls a frozenset; a compiled module refuses it at
    import."""
    tree = ast.parse((ROOT / "setup.py").read_text())
    hot = next(n.value for n in tree.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "HOT")
    seen, wrong = 0, []
    for folder, names in ast.literal_eval(hot).items():
        for name in names.split():
            module = importlib.import_module(f"{folder.replace('/', '.')}.{name}")
            for node in ast.parse((ROOT / folder / f"{name}.py").read_text()).body:
                value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
                if not isinstance(value, ast.BinOp):
                    continue
                first: ast.expr = value
                while isinstance(first, ast.BinOp):
                    first = first.left
                kinds = [type(eval(ast.unparse(e), vars(module))) for e in (first, value)]
                seen += kinds[0] is frozenset
                if kinds[0] is frozenset and kinds[1] is set:
                    wrong.append(f"{folder}/{name}.py: {ast.unparse(node)}")
    assert seen > 5
    assert wrong == []


@pytest.mark.slow
@pytest.mark.skipif(bool(_missing()), reason=f"compiling needs {_missing()}")
def test_compiled_modules_make_the_same_cubins(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for folder in ("ir_format", "stages", "orchestrator"):
        shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    shutil.copy(ROOT / "setup.py", tree)
    env = {**os.environ, "ORIAS_COMPILE": f"0:{FOLDERS}", "PYTHONPATH": ""}
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
        cwd=tree,
        env=env,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-2000:]
    shown = subprocess.run(
        [sys.executable, "-c",
            "import ir_format.flow as f, ir_format.model as m, stages.encode.encode as e; print(*(x.__file__ for x "
            "in (f, m, e)))"],
        cwd=tree, env={**env, "PYTHONPATH": str(tree)}, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert all(not name.endswith(".py") for name in shown), shown
    for kernel, arch in (("softmax", "sm_90"), ("histogram", "sm_80"), ("call_twice", "sm_75"), ("f64_ops", "sm_120")):
        out = tree / "o.cubin"
        done = subprocess.run(
            [sys.executable, "-m", "orchestrator", str(ptx_path(kernel, arch)), f"-arch={arch}", "-o", str(out)],
            cwd=tree, env={**env, "PYTHONPATH": str(tree)}, capture_output=True, text=True, timeout=100,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert out.read_bytes() == cubin(kernel, arch), (kernel, arch)
