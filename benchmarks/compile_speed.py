"""Speed of compiling, as ratios against ptxas in the same run.

    python -m benchmarks.compile_speed [--arch sm_90] [--repeat 5]

Prints wall time of a cold `orias vadd.ptx` and of the module with all sixteen kernels, and where the time goes.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def best(command: list[str], repeat: int) -> float:
    """Least wall time of a command in seconds; raises CalledProcessError where it fails."""
    times = []
    for _ in range(repeat):
        t = time.perf_counter()
        subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
        times.append(time.perf_counter() - t)
    return min(times)


def main() -> None:
    """Measure and print."""
    ap = argparse.ArgumentParser()
    ap.add_argument("--arch", default="sm_90")
    ap.add_argument("--repeat", type=int, default=5)
    args = ap.parse_args()
    have_ptxas = shutil.which("ptxas") is not None
    with tempfile.TemporaryDirectory() as tmp:
        print(f"start-up of Python alone: {best([sys.executable, '-c', 'pass'], args.repeat) * 1000:.0f} ms")
        for stem, bar in (("vadd", 0.3), ("all16", 2.5)):
            ptx = ROOT / "tests/kernels/ptx" / args.arch / f"{stem}.ptx"
            tail = [f"-arch={args.arch}", str(ptx), "-o", f"{tmp}/out.cubin"]
            ours = best([sys.executable, "-m", "orchestrator", *tail], args.repeat)
            line = f"{stem:8} orias {ours * 1000:8.1f} ms (bar {bar * 1000:.0f} ms)"
            if have_ptxas:
                theirs = best(["ptxas", *tail], args.repeat)
                line += f"   ptxas {theirs * 1000:8.1f} ms   ratio {ours / theirs:6.1f}"
            print(line)
            done = subprocess.run([sys.executable, "-m", "orchestrator", "--time", *tail], cwd=ROOT, capture_output=True, text=True, check=True)
            print("".join("         " + x + "\n" for x in done.stderr.splitlines()), end="")


if __name__ == "__main__":
    main()
