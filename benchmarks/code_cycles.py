"""How fast our code may run: estimated cycles per kernel of tests/kernels, against ptxas's, in one run.

    python -m benchmarks.code_cycles [--sm 75,80,90,120] [--set main|corpus|...] [--markdown] [NAME ...]

Every launch of a kernel runs in the simulator with its clock (stages/simulate/cycles.py), with our cubin and ptxas's.
``issues``: instructions that warps issue; ``cycles``: those of stall counts and of waits for scoreboards, with every
warp alone on its scheduler. Both are sums over all warps and launches. The same model judges both compilers; its
latencies are guesses, so only the ratio means anything.
"""

from __future__ import annotations

import argparse
import math
from typing import NamedTuple

from tests.kernels import run
from tests.kernels.model import KernelSpec


class Cost(NamedTuple):
    """Sums over all warps of all launches."""

    issues: int
    cycles: int


def cost(spec: KernelSpec, image: bytes) -> Cost:
    """The cost of a kernel's launches with one cubin. Raises SimError; a wrong result is an error too."""
    from stages.simulate import Device, SimError

    issues = cycles = 0
    for launch in spec.launches(0):
        wrong, stats = run.run_launch(Device(image), launch, cycles=True)
        if wrong:
            raise SimError(wrong[0])
        for row in stats.cycles["instructions"]:
            issues += row[4]
            cycles += row[5] + row[6]
    return Cost(issues, cycles)


def measure(name: str, sm: str, compiler: str) -> Cost | str:
    """Compile and run; returns the reason if that fails."""
    from stages.simulate import ImageError, SimError

    spec = run.SETS["all"][name]
    image = run.COMPILERS[compiler](run.ptx_for(spec, sm), sm, [])
    if isinstance(image, str):
        return image
    try:
        return cost(spec, image)
    except (ImageError, SimError) as error:
        return f"{type(error).__name__}: {error}"


def main() -> None:
    """Print a table per SM and the geometric means of the ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sm", default="75,80,90,120")
    parser.add_argument("--set", dest="which", default="main", choices=list(run.SETS))
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    sep, edge = (" | ", "|") if args.markdown else ("  ", "")
    for sm in args.sm.split(","):
        print(
            edge + sep.join(("kernel".ljust(24), " issues", "  ptxas", "ratio", " cycles", "  ptxas", "ratio")) + edge
        )
        if args.markdown:
            print("|---|---|---|---|---|---|---|")
        logs: tuple[list[float], list[float]] = ([], [])
        for name in args.names or run.SETS[args.which]:
            if run.SETS["all"][name].min_sm > int(sm.rstrip("af")):
                continue
            ours, theirs = measure(name, sm, "orias"), measure(name, sm, "ptxas")
            if isinstance(ours, str) or isinstance(theirs, str):
                print(f"{name}: ours {ours}, ptxas {theirs}", flush=True)
                continue
            cells = [name.ljust(24)]
            for n in range(2):
                ratio = ours[n] / theirs[n]
                logs[n].append(math.log(ratio))
                cells += [f"{ours[n]:>7}", f"{theirs[n]:>7}", f"{ratio:5.2f}"]
            print(edge + sep.join(cells) + edge, flush=True)
        for n, what in enumerate(("issued instructions", "cycles")):
            if logs[n]:
                print(
                    f"{what}: geometric mean of ours / ptxas = {math.exp(sum(logs[n]) / len(logs[n])):.3f} over "
                    f"{len(logs[n])} kernels (sm_{sm})"
                )


if __name__ == "__main__":
    main()
