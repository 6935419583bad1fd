"""Size of our code: instructions and registers per kernel of tests/kernels, against ptxas's, in one run.

python -m benchmarks.code_size [--arch sm_90] [--opt 3] [--markdown]
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.cubin_facts import KernelFacts, kernel_facts

ROOT = Path(__file__).resolve().parents[1]


def ptxas_for(arch: str) -> str:
    """The ptxas that knows an SM: sm_107 came after the release on PATH."""
    return str(ROOT / ".tox/ptxas-13.5/ptxas") if arch.startswith("sm_107") else "ptxas"


def compile_both(ptx: Path, arch: str, opt: int, folder: Path) -> tuple[dict[str, KernelFacts], dict[str, KernelFacts]]:
    """(ours, ptxas's) facts; empty if the compiler refused or is absent."""
    out = []
    for name, command in (("ours", [sys.executable, "-m", "orchestrator"]), ("ptxas", [ptxas_for(arch)])):
        cubin = folder / f"{name}.cubin"
        cubin.unlink(missing_ok=True)
        try:
            subprocess.run(
                [*command, f"-arch={arch}", f"-O{opt}", str(ptx), "-o", str(cubin)],
                cwd=ROOT,
                capture_output=True,
                check=False,
            )
        except FileNotFoundError:
            pass
        out.append(kernel_facts(cubin.read_bytes()) if cubin.exists() else {})
    return out[0], out[1]


def folder_of(arch: str) -> Path:
    """The checked-in PTX of an SM, or of the next lower one that has some."""
    root = ROOT / "tests/kernels/ptx"
    number = int(arch.removeprefix("sm_").rstrip("af"))
    return root / f"sm_{max(n for p in root.glob('sm_*') if (n := int(p.name[3:])) <= number)}"


def main() -> None:
    """Print the table and the geometric means of the ratios."""
    ap = argparse.ArgumentParser()
    ap.add_argument("--arch", default="sm_90")
    ap.add_argument("--opt", type=int, default=3)
    ap.add_argument("--markdown", action="store_true")
    ap.add_argument("files", nargs="*", type=Path)
    args = ap.parse_args()
    files = args.files or sorted(p for p in folder_of(args.arch).glob("*.ptx") if p.stem != "all16")
    rows = []
    with tempfile.TemporaryDirectory() as tmp:
        for f in files:
            ours, theirs = compile_both(f, args.arch, args.opt, Path(tmp))
            for k in sorted(set(ours) | set(theirs)):
                rows.append((k, ours.get(k), theirs.get(k)))
    sep = " | " if args.markdown else "  "
    edge = "|" if args.markdown else ""
    print(edge + sep.join(("kernel".ljust(24), "instr", "ptxas", "ratio", " regs", "ptxas", "ratio")) + edge)
    if args.markdown:
        print("|---|---|---|---|---|---|---|")
    logs: tuple[list[float], list[float]] = ([], [])
    for k, a, b in rows:
        cells = [k.ljust(24)]
        for n in range(2):
            x, y = (a[n] if a else 0), (b[n] if b else 0)
            ratio = x / y if x and y else 0.0
            if ratio:
                logs[n].append(math.log(ratio))
            cells += [f"{x or '-':>5}", f"{y or '-':>5}", f"{ratio:5.2f}" if ratio else "    -"]
        print(edge + sep.join(cells) + edge)
    for n, what in enumerate(("instructions", "registers")):
        if logs[n]:
            print(
                f"{what}: geometric mean of ours / ptxas = {math.exp(sum(logs[n]) / len(logs[n])):.3f} over "
                f"{len(logs[n])} kernels ({args.arch} -O{args.opt})"
            )


if __name__ == "__main__":
    main()
