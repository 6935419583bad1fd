"""The repository holds sources alone: nothing that a compiler or a test leaves behind is tracked."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# What orias, nvcc, Python, a linker or a browser write.
BUILT = {".o", ".obj", ".a", ".so", ".cubin", ".fatbin", ".ori", ".pyc", ".whl", ".egg-info", ".log", ".tmp", ".orig"}


def test_no_built_file_is_tracked() -> None:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode != 0:
        pytest.skip("this is no checkout of git")
    names = [name for name in listing.stdout.split("\0") if name]
    assert names
    assert [name for name in names if Path(name).suffix in BUILT] == []
