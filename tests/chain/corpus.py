"""The kernels on which the chain is tested, compiled once per test run and cached."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path

from orchestrator.api import compile_ptx

PTX = Path(__file__).resolve().parents[1] / "kernels" / "ptx"
FULL = ("sm_80", "sm_90", "sm_120")
PARTIAL = ("sm_75", "sm_86", "sm_89", "sm_100")
#: An SM without its own PTX uses nvcc's PTX of the nearest older target.
PTX_OF = {"sm_86": "sm_80", "sm_89": "sm_80"}


def kernels(arch: str = "sm_90") -> list[str]:
    """Names of the sixteen kernels."""
    return sorted(p.stem for p in (PTX / arch).glob("*.ptx") if p.stem != "all16")


def ptx_path(kernel: str, arch: str) -> Path:
    """The checked-in PTX of a kernel for a target."""
    return PTX / PTX_OF.get(arch, arch) / f"{kernel}.ptx"


@cache
def cubin(kernel: str, arch: str, opt: int = 3, maxrregcount: int = 0) -> bytes:
    """Our cubin; raises ChainError with the diagnostics."""
    kept = _kept(f"{kernel}-{arch}-{opt}-{maxrregcount}")
    if kept is not None and kept.exists():
        return kept.read_bytes()
    options: dict[str, int] = {"opt-level": opt}
    if maxrregcount:
        options["maxrregcount"] = maxrregcount
    made = compile_ptx(ptx_path(kernel, arch).read_bytes(), arch, dict(options), name=f"{kernel}.ptx")
    if kept is not None:
        part = kept.with_suffix(f".{os.getpid()}")
        part.write_bytes(made)
        part.replace(kept)
    return made


def _kept(name: str) -> Path | None:
    """Where the processes of one parallel test run share a cubin; None outside such a run."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if not run:
        return None
    folder = Path(tempfile.gettempdir()) / f"orias-cubins-{os.getuid()}-{run}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder / name
