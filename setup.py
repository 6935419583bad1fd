"""Build hook.

Installed, everything lies under the one name `orias` (`orias.stages`, `orias.ir_format`, `orias.orchestrator`): a
wheel is made of a copy of the sources under `build/renamed`, in which their imports have that name in front. In a
checkout (an editable install, `build_ext --inplace`, an sdist) the folders are what they are, and :mod:`orias` leads to
them.

`ORIAS_COMPILE=1 pip install .` compiles the hot modules with mypyc (the value is the C compiler's -O
level, and after a colon folders of :data:`HOT` may stand, to compile those alone: `1:ir_format,stages/encode`).

Without the variable nothing is compiled and the package is pure Python. The Python sources stay the one source: what is
compiled is generated from them, and makes the same bytes (tests/chain/test_compiled.py).
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

from setuptools import find_packages, setup

FOLDERS = ("stages", "ir_format", "orchestrator")
RENAMED = Path("build", "renamed")
PROGRAMS = Path("build", "programs")
DATA = {"": ["*.ptx", "*.msgpack", "py.typed", "page/*"]}
_IMPORT = re.compile(rf"^(\s*(?:from|import) )({'|'.join(FOLDERS)})\b", re.M)

#: Modules worth compiling, found by profile. Classes that others subclass, and what runs once, stay interpreted.
HOT = {
    "ir_format": "framing model flow wire unit_copy rename",
    "ir_format/isa": "machine plan codec special tmem vectors",
    "ir_format/hazards": "model classes",
    "stages/parse": "scan operands units",
    "stages/analysis": "abi dependences divergence register_limits",
    "stages/lower": "legalize spaces cleanup",
    "stages/lower/convergence": "divergence converge",
    "stages/optimize": "analyses values",
    "stages/optimize/ssa": "construct destruct webs",
    "stages/optimize/scalar": "combine constant_bank constant_pool copies copy_propagation dce fold fuse known_bits"
    " predicates rules wide_sums",
    "stages/optimize/control": "if_conversion simplify_cfg",
    "stages/optimize/memory": "atomics guarded_vectors local_arrays redundancy vectorize_loads",
    "stages/optimize/loops": "induction licm natural rotate share_pointers unroll",
    "stages/optimize/late": "def_use list_schedule order_trials pressure rematerialize return_register sink"
    " uniform_forms uniform_promotion uniform_webs",
    "stages/regalloc": "allocate assign coalescing divergent_ranges finish live_ranges load_tree moves operand_slots"
    " parallel_copies register_counts spill warpgroup",
    "stages/schedule": "control list_scheduling reuse schedule_unit scoreboards zero_pairs",
    "stages/encode": "encode",
}


def _declared() -> dict[str, Any]:
    if not os.path.exists("pyproject.toml"):
        return {}
    with open("pyproject.toml", "rb") as f:
        return tomllib.load(f)


def _programs() -> list[str]:
    """The scripts of the programs that compile, for pip to put the path of Python into their first lines."""
    PROGRAMS.mkdir(parents=True, exist_ok=True)
    out = []
    for name, place in _declared().get("tool", {}).get("orias", {}).get("programs", {}).items():
        module, _, function = place.partition(":")
        path = PROGRAMS / name
        path.write_text(f"#!python\nfrom {module} import {function}\n\n{function}()\n", encoding="utf-8")
        out.append(str(path))
    return out


def _installs() -> bool:
    """Whether this run makes what is copied into an installation."""
    words = set(sys.argv[1:])
    return "--inplace" not in words and bool(words & {"bdist_wheel", "install", "build", "build_py"})


def _renamed() -> None:
    """Copy the sources to :data:`RENAMED`, as modules of the package `orias`."""
    shutil.rmtree(RENAMED, ignore_errors=True)
    ignore = shutil.ignore_patterns("__pycache__", "*.so", "_checkout.py")
    shutil.copytree("orias", RENAMED / "orias", ignore=ignore)
    for folder in FOLDERS:
        shutil.copytree(folder, RENAMED / "orias" / folder, ignore=ignore)
    for path in RENAMED.rglob("*.py"):
        path.write_text(_IMPORT.sub(r"\1orias.\2", path.read_text(encoding="utf-8")), encoding="utf-8")


def main() -> None:
    """Set up, with or without extension modules."""
    # With a root that is named, an editable install is a line in a .pth file. Without one it is a finder, whose imports
    # would cost each process 25 ms.
    packages = find_packages(include=[f"{f}*" for f in (*FOLDERS, "orias")])
    layout: dict[str, object] = {"packages": packages, "package_dir": {"": "."}}
    root = ""
    if _installs():
        _renamed()
        layout = {"packages": find_packages(str(RENAMED)), "package_dir": {"": str(RENAMED)}}
        root = f"{RENAMED}/orias/"
    layout["package_data"] = DATA
    layout["scripts"] = _programs()
    layout["data_files"] = [("share/man/man1", sorted(map(str, Path("docs", "man").glob("*.1"))))]
    level, _, some = os.environ.get("ORIAS_COMPILE", "").partition(":")
    if not level:
        setup(**layout)  # type: ignore[arg-type]
        return
    try:
        from mypyc.build import mypycify
    except ImportError:  # the first question of an isolated build: what it needs
        # what the package needs at run time too: mypy reads the types of its decorators from there
        setup(setup_requires=["mypy>=1.11", "msgpack-types", *_declared()["project"]["dependencies"]])
        return
    folders = some.split(",") if some else list(HOT)
    paths = [f"{root}{folder}/{name}.py" for folder in folders for name in HOT[folder].split()]
    options = (
        ["--ignore-missing-imports"]
        if os.path.exists("pyproject.toml")
        else ["--ignore-missing-imports", "--config-file="]
    )
    modules = mypycify([*options, *paths], opt_level=level, debug_level="0", multi_file=True)
    setup(**layout, ext_modules=modules)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
