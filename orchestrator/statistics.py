"""What --compiler-stats prints, in ptxas's format (measured): the whole time and the memory that was needed at most;
with `phase-wise` the time of each stage, under our names of them; with `detailed`, of which ptxas prints nothing, what
each stage and pass did."""

from __future__ import annotations

import resource
from collections.abc import Sequence

from ir_format.typed import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from orchestrator.seen import Sum

_SHORT: Final = {"t": "time", "m": "memory", "p": "phase-wise", "d": "detailed"}


def asked(values: Sequence[str]) -> frozenset[str]:
    """The words under their long names."""
    return frozenset([_SHORT.get(v, v) for v in values])


def lines(words: frozenset[str], phases: Sequence[tuple[str, float]], seconds: float) -> list[str]:
    """The lines, without `ptxas info    : STAT: `; ``phases``: name and seconds of each."""
    out: list[str] = []
    if "time" in words:
        by_phase = "phase-wise" in words
        out.append(f"CompileTime = {seconds * 1000:.6f} ms" + " (100%)" * by_phase)
        if by_phase:
            width = max([len(name) for name, _ in phases], default=0) + len("-time")
            for name, spent in phases:
                out.append(f"{name + '-time':{width}} : {spent * 1000:.3f} ms ({100 * spent / seconds:.2f}%)")
    if "memory" in words:
        out.append(f"PeakMemoryUsage = {peak():.3f} KB")
    return out


def table(parts: Sequence[Sum]) -> list[str]:
    """A row for each stage and below it its passes: over all kernels, time, KiB by which the process grew, rewrites,
    instructions before and after it."""
    out = [f"{'stage and pass':26} {'time':>12} {'memory':>10} {'rewrites':>9}  instructions"]
    for s in parts:
        name = f"  {s.name}" if s.name else s.stage
        spent, memory = f"{s.spent / 1e6:.3f} ms", f"{s.memory} KB"
        out.append(f"{name:26} {spent:>12} {memory:>10} {s.rewrites:>9}  {s.before} -> {s.after}")
    return out


def peak() -> float:
    """KiB of this process and of the largest stage at most."""
    return float(sum(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
