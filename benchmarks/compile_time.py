"""Processor time of compiling real files, as ratios to ptxas in the same run, by class of size.

    python -m benchmarks.compile_time [FILE_OR_FOLDER ...] [--repeat 5] [--sample N] [--server]

Each file is compiled for its own `.target` by one `orias` process (with --server: through a resident server, client and
server together) and by one ptxas process; the median processor time (user and system, all processes) of the repeats
counts. Files that either refuses are left out and counted. Prints per class of lines: files, the ratio of the sums, the
worst file, files above twice the ratio of their class, and SASS instructions that each makes in a second of processor
time. Without files: the kernels of tests/kernels and its corpus.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.cubin_facts import kernel_facts

ROOT = Path(__file__).resolve().parents[1]
#: Upper ends of the classes, in lines, and the bars of the cold process and of the server.
CLASSES = ((100, 4.5, 2.0), (300, 4.5, 2.0), (1000, 3.0, 0.0), (3000, 3.0, 0.0), (10000, 2.5, 0.0), (1 << 30, 2.5, 0.0))
_SCRIPT = Path(sys.executable).with_name("orias")
#: As users start it; `python -m` imports more.
PROGRAM = [str(_SCRIPT)] if _SCRIPT.exists() else [sys.executable, "-m", "orchestrator"]
_PATIENCE = 600  # seconds of one compile


class Measured(NamedTuple):
    """One file: lines, seconds of ours and of ptxas, instructions of ours and of ptxas."""

    path: Path
    lines: int
    ours: float
    theirs: float
    made: int
    made_by_theirs: int


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Server:
    """A resident server for the benchmark."""

    def __init__(self, folder: str) -> None:
        self.path = f"{folder}/server/socket"
        os.mkdir(os.path.dirname(self.path), 0o700)
        self.process = subprocess.Popen([sys.executable, "-m", "orchestrator", "--serve", self.path], cwd=ROOT)
        while not os.path.exists(self.path):
            time.sleep(0.05)

    def spent(self) -> float:
        """Seconds of the server and its ended jobs."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _median(command: list[str], repeat: int, env: dict[str, str], more: Callable[[], float]) -> float | None:
    """The median processor time of a command; None if it fails."""
    spent = []
    for _ in range(repeat):
        before = _children() + more()
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, timeout=_PATIENCE)
        if done.returncode:
            return None
        spent.append(_children() + more() - before)
    return statistics.median(spent)


def _measure(path: Path, repeat: int, folder: str, server: Server | None) -> Measured | None:
    text = path.read_text("latin-1")
    target = re.search(r"^\s*\.target\s+(sm_\w+)", text, re.M)
    if target is None:
        return None
    env = dict(os.environ)
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # every run would compile our sources again
    env.pop("ORIAS_SERVER", None)
    tail = [f"-arch={target[1]}", str(path.resolve()), "-o"]
    theirs = _median(["ptxas", *tail, f"{folder}/theirs"], repeat, env, lambda: 0.0)
    if server is not None:
        env["ORIAS_SERVER"] = server.path
    more = server.spent if server is not None else lambda: 0.0
    ours = _median([*PROGRAM, *tail, f"{folder}/ours"], repeat, env, more)
    if ours is None or theirs is None:
        return None
    made = [
        sum(k.instructions for k in kernel_facts(Path(folder, who).read_bytes()).values()) for who in ("ours", "theirs")
    ]
    return Measured(path, text.count("\n"), ours, theirs, *made)


def _files(given: list[Path]) -> Iterator[Path]:
    for path in given or [ROOT / "tests/kernels"]:
        yield from sorted(path.rglob("*.ptx")) if path.is_dir() else [path]


def _row(name: str, some: list[Measured], bar: str) -> str:
    ours, theirs = sum(m.ours for m in some), sum(m.theirs for m in some)
    worst = max(some, key=lambda m: m.ours / m.theirs)
    above = sum(m.ours / m.theirs > 2 * ours / theirs for m in some)
    return (
        f"{name:>8} {len(some):6} {ours / theirs:7.2f} {bar:>5} {worst.ours / worst.theirs:7.1f} {above:6} "
        f"{sum(m.made for m in some) / ours:9.0f} {sum(m.made_by_theirs for m in some) / theirs:9.0f}"
        f"  {worst.path.name}"
    )


def main() -> None:
    """Measure and print."""
    ap = argparse.ArgumentParser(description="processor time of real files against ptxas")
    ap.add_argument("paths", nargs="*", type=Path)
    ap.add_argument("--repeat", type=int, default=5)
    ap.add_argument("--sample", type=int, default=0, help="so many files at most, drawn always the same")
    ap.add_argument("--server", action="store_true", help="through a resident server")
    args = ap.parse_args()
    if shutil.which("ptxas") is None:
        sys.exit("compile_time: no ptxas to compare with")
    files = list(_files(args.paths))
    if args.sample and len(files) > args.sample:
        files = random.Random(1).sample(files, args.sample)
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder) if args.server else None
        try:
            got = [_measure(path, args.repeat, folder, server) for path in files]
        finally:
            if server is not None:
                server.process.terminate()
                server.process.wait()
    done = [m for m in got if m is not None]
    print(f"{len(done)} files, {len(got) - len(done)} left out; load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    if not done:
        return
    print("   lines  files   ratio   bar   worst  above      SASS/s   ptxas's  the worst file")
    low = 0
    for most, cold, resident in CLASSES:
        some = [m for m in done if low < m.lines <= most]
        bar = resident if args.server else cold
        if some:
            print(_row(f"<={most}" if most < 1 << 30 else f">{low}", some, f"{bar:.1f}" if bar else "-"))
        low = most
    print(_row("all", done, "-"))


if __name__ == "__main__":
    main()
