"""The progress line: only on a terminal, after two seconds, and removed at the end."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path

from orchestrator.processes import END, MARK, Pipeline, Process
from orchestrator.progress import Progress

ROOT = Path(__file__).parents[2]
VADD = ROOT / "tests/kernels/ptx/sm_90/vadd.ptx"
SLOW = ["--stage", "lower=sleep 2.6; exec " + sys.executable + " -m stages.lower"]


def test_progress_text() -> None:
    """A kernel is done when its process begins the next one; the time left follows from those done."""
    process = Process("lower+optimize", 1, -1)
    for stage in ("lower", "optimize", "lower", "optimize", "lower"):
        process.err += MARK + stage.encode() + END
    pipeline = Pipeline([process], -1, -1, memoryview(b""))
    out = StringIO()
    progress = Progress(6, time.perf_counter() - 10, "lower", out)
    assert progress.text([pipeline], progress.started + 4) == ("orias: 2 of 6 kernels, lower, 14 s, about 8 s left")
    progress([pipeline])
    progress([pipeline])
    assert out.getvalue().count("kernels") == 1
    progress.clear()
    assert out.getvalue().endswith("\r" + " " * 79 + "\r")
    fresh = Progress(6, time.perf_counter(), "lower", StringIO())
    fresh([pipeline])
    assert not fresh.shown
    assert Progress(6, 0.0, "lower").out is not sys.stderr  # which the cache records


def _run(terminal: bool, tmp_path: Path, slow: list[str]) -> bytes:
    command = [sys.executable, "-m", "orchestrator", "-arch", "sm_90", str(VADD), "-o", str(tmp_path / "o"), *slow]
    if not terminal:
        return subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stderr
    master, slave = pty.openpty()
    done = subprocess.Popen(command, cwd=ROOT, stderr=slave)
    os.close(slave)
    said = b""
    try:
        while piece := os.read(master, 4096):
            said += piece
    except OSError:  # the other end is closed
        pass
    assert done.wait() == 0
    os.close(master)
    return said


def test_terminal_alone(tmp_path: Path) -> None:
    said = _run(True, tmp_path, SLOW)
    assert b"orias: " in said and b"lower" in said and said.endswith(b"\r" + b" " * 79 + b"\r")
    assert _run(True, tmp_path, []) == b""
    assert _run(False, tmp_path, SLOW) == b""
