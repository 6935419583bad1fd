"""Warp instructions that a launch issues, in the cubins of both compilers: lost reconvergence shows as many more of
them.

    python -m tests.check.executed [--sm 90] [--set own,kernels] [--above 1.5] [NAME ...]

The simulator counts them (``Stats.instructions``: an instruction counts once for each group of a warp that executes
it, whatever its guard says). Exit code 1 if ours issues more than ``--above`` times as many as ptxas's.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from typing import Any

from stages.simulate import Device, SimError
from tests.check.convergence_mutants import jobs


def issued(cubins: dict[str, bytes], run: Callable[[Device], Any]) -> dict[str, int]:
    """Warp instructions of the same launch on each cubin; ``run`` launches on a device, with fresh arguments, and
    returns the statistics."""
    return {who: int(run(Device(data)).instructions) for who, data in cubins.items()}


def compare(sm: str, sets: Iterable[str], names: list[str]) -> Iterable[tuple[str, int, int]]:
    """(kernel, ours, ptxas's), summed over its launches."""
    sides = {who: {job.name: job for job in jobs(sm, who, sets, names)} for who in ("ours", "ptxas")}
    for name in sides["ours"]:
        if name not in sides["ptxas"]:
            continue
        total = {"ours": 0, "ptxas": 0}
        for who, found in sides.items():
            device = Device(found[name].data)
            for run in found[name].runs:
                total[who] += int(run(device)[1].instructions)
        yield name, total["ours"], total["ptxas"]


def main(argv: list[str] | None = None) -> int:
    """Command line; see the module's text."""
    parser = argparse.ArgumentParser(description="warp instructions issued by both compilers' cubins")
    parser.add_argument("--sm", default="90")
    parser.add_argument("--set", default="own,kernels")
    parser.add_argument("--above", type=float, default=1.5)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args(argv)
    worst = 0.0
    try:
        for name, ours, theirs in compare(options.sm, options.set.split(","), options.names):
            worst = max(worst, ours / theirs)
            print(f"{name:20} ours {ours:9} ptxas {theirs:9} {ours / theirs:6.3f}", flush=True)
    except SimError as e:
        print(e)
        return 2
    print(f"worst {worst:.3f}")
    return 1 if worst > options.above else 0


if __name__ == "__main__":
    sys.exit(main())
