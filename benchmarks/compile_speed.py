"""Speed of compiling, as ratios against ptxas in the same run.

    python -m benchmarks.compile_speed [--arch sm_90] [--repeat 5] [--tree DIR]

Least wall time and least processor time (user and system, all processes) of a cold `orias` on one small kernel, the
module with all sixteen kernels, and a module of 20,000 lines (:mod:`benchmarks.big_ptx`). On a busy machine only
processor time says anything. ``--tree``: another tree to measure, e.g. one with compiled modules.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.big_ptx import big_ptx

ROOT = Path(__file__).resolve().parents[1]


def best(command: list[str], repeat: int, cwd: Path = ROOT) -> tuple[float, float]:
    """Least wall time and least processor time of a command in seconds; raises CalledProcessError if it fails."""
    wall, cpu = [], []
    for _ in range(repeat):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        t = time.perf_counter()
        subprocess.run(command, cwd=cwd, capture_output=True, check=True)
        wall.append(time.perf_counter() - t)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(wall), min(cpu)


def main() -> None:
    """Measure and print."""
    ap = argparse.ArgumentParser()
    ap.add_argument("--arch", default="sm_90")
    ap.add_argument("--repeat", type=int, default=5)
    ap.add_argument("--tree", type=Path, default=ROOT)
    args = ap.parse_args()
    if "PYTHONDONTWRITEBYTECODE" in os.environ:
        del os.environ["PYTHONDONTWRITEBYTECODE"]  # every run would compile our sources again
    have_ptxas = shutil.which("ptxas") is not None
    with tempfile.TemporaryDirectory() as tmp:
        wall, cpu = best([sys.executable, "-c", "pass"], args.repeat)
        print(
            f"start-up of Python alone: {wall * 1000:.0f} ms, processor {cpu * 1000:.0f} ms; {os.cpu_count()} cores, "
            f"load {os.getloadavg()[0]:.1f}"
        )
        big = Path(tmp, "big.ptx")
        big.write_text(big_ptx(args.arch))
        kernels = ROOT / "tests/kernels/ptx" / args.arch
        for ptx, bar in ((kernels / "vadd.ptx", 0.1), (kernels / "all16.ptx", 0.4), (big, 3.0)):
            tail = [f"-arch={args.arch}", str(ptx), "-o", f"{tmp}/out.cubin"]
            repeat = args.repeat if ptx != big else max(1, args.repeat // 2)
            wall, cpu = best([sys.executable, "-m", "orchestrator", *tail], repeat, args.tree)
            line = f"{ptx.stem:6} orias {wall * 1000:8.1f} ms (bar {bar * 1000:.0f}), processor {cpu * 1000:8.1f} ms"
            if have_ptxas:
                wall, theirs = best(["ptxas", *tail], repeat)
                line += (
                    f"   ptxas {wall * 1000:8.1f} ms, processor {theirs * 1000:8.1f} ms   ratio of processor "
                    f"time {cpu / theirs:5.1f}"
                )
            print(line)
            done = subprocess.run(
                [sys.executable, "-m", "orchestrator", "--time", *tail],
                cwd=args.tree,
                capture_output=True,
                text=True,
                check=True,
            )
            print("".join("         " + x + "\n" for x in done.stderr.splitlines()), end="")


if __name__ == "__main__":
    main()
