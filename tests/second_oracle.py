"""Installs the second oracle, ptxas 13.5, next to the first.

    python -m tests.second_oracle [FOLDER]

Two versions of one wheel cannot be in one environment, so this one is unpacked into a separate folder (default:
`.tox/ptxas-13.5` in the repository), of which only ptxas is kept; an existing one is not replaced. If the registry does
not have it, the tests that need it are skipped and say so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.oracle import NEWER_ENV, NEWER_FOLDER

WHEEL = "nvidia-cuda-nvcc==13.5.37"


def install(folder: Path) -> bool:
    """Whether `folder` has ptxas now."""
    tool = folder / "ptxas"
    if tool.is_file():
        return True
    with tempfile.TemporaryDirectory() as name:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        if subprocess.run([*pip, "--target", name, WHEEL], check=False).returncode:
            return False
        found = next(Path(name).glob("nvidia/*/bin/ptxas"), None)
        if found is None:
            return False
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f"ptxas.{os.getpid()}"
        shutil.copy2(found, part)
        part.chmod(0o755)
        part.rename(tool)
    return True


def main() -> None:
    """Command line."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else os.environ.get(NEWER_ENV) or NEWER_FOLDER)
    if not install(folder):
        print(f"{WHEEL} cannot be had: the tests against it are skipped")


if __name__ == "__main__":
    main()
