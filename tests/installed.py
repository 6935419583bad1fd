"""Every printed command and every example, with the package as a user installs it.

    python -m tests.installed [FOLDER] [--with triton,cupy-cuda13x]

Clones this checkout (its last commit) into FOLDER, makes an empty virtual environment there, installs the clone into it
with pip and nothing else (but what `--with` names, which the examples of other projects need), then runs the tests of
printed commands and examples with the programs of that environment: nothing of the checkout is on their path. tox -e
installed does the same.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = ("tests/test_documented.py", "tests/test_examples.py")


def install(folder: Path, others: list[str]) -> tuple[Path, Path]:
    """The clone, and the folder of programs of an environment in which it is installed."""
    clone, env = folder / "clone", folder / "env"
    quiet = ["--quiet", "--disable-pip-version-check"]
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    subprocess.run([sys.executable, "-m", "venv", str(env)], check=True)
    subprocess.run([str(env / "bin" / "pip"), "install", *quiet, str(clone)], check=True)
    if others:
        subprocess.run([str(env / "bin" / "pip"), "install", *quiet, *others], check=True)
    return clone, env / "bin"


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="kept; without one, a temporary folder")
    parser.add_argument("--with", dest="others", default="", help="further packages for the environment")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        clone, programs = install(args.folder or Path(name), [p for p in args.others.split(",") if p])
        env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"ORIAS_BIN": str(programs)}
        command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", *TESTS]
        return subprocess.run(command, cwd=clone, env=env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
