"""An estimate of issue cycles: where warps spend their time, by instruction and PTX line.

The strict machine reports when each instruction of each bundle issues. The gap since the previous issue is charged to
the instruction that waited, split by cause: the previous instruction's stall count, or scoreboards. Each warp counts
as if it were alone on its scheduler, so the sum is an upper estimate of latency-bound time, not a prediction. The model
is the same for every compiler's code.
"""

from __future__ import annotations

from typing import Any


class Profile:
    """Counts by instruction number: [warp issues, cycles of stall counts, cycles of scoreboard waits]. ``acted``:
    issues with at least one active lane; ``shortest``: the shortest wait of any issue."""

    __slots__ = ("acted", "counts", "longest", "shortest")

    def __init__(self) -> None:
        self.counts: dict[int, list[int]] = {}
        self.longest = 0
        self.acted: set[int] = set()
        self.shortest: dict[int, int] = {}

    def issued(self, pc: int, warps: int, stall: int, waited: int, clock: int, acts: bool = True) -> None:
        """One instruction issued for ``warps`` warps; ``acts``: its guard is true in some lane."""
        if acts:
            self.acted.add(pc)
        if waited < self.shortest.get(pc, 1 << 60):
            self.shortest[pc] = waited
        row = self.counts.get(pc)
        if row is None:
            row = self.counts[pc] = [0, 0, 0]
        row[0] += warps
        row[1] += stall * warps
        row[2] += waited * warps
        if clock > self.longest:
            self.longest = clock

    def table(self, program: Any) -> dict[str, object]:
        """Plain values for :func:`report`: one row per instruction, one per PTX line."""
        rows = []
        lines: dict[int, list[int]] = {}
        for pc in sorted(self.counts):
            issues, stall, waited = self.counts[pc]
            address = program.addresses[pc]
            line = program.lines.ptx_line(address)
            name, offset = program.image.function_at(address)
            inst = program.insts[pc]
            text = ".".join((inst.op, *inst.mods)) if inst is not None else "?"
            rows.append((name, offset, text, line, issues, stall, waited))
            total = lines.setdefault(line, [0, 0, 0])
            for i, value in enumerate((issues, stall, waited)):
                total[i] += value
        places = {pc: program.image.function_at(program.addresses[pc]) for pc in self.counts}
        return {
            "longest": self.longest, "instructions": rows, "lines": [(line, *lines[line]) for line in sorted(lines)],
            "acted": {places[pc] for pc in self.acted},
            "shortest": {places[pc]: wait for pc, wait in self.shortest.items()},
        }  # fmt: skip


def report(table: dict[str, Any]) -> str:
    """The table as text."""
    out = [f"estimated cycles of the longest warp: {table['longest']} (latencies are guesses; compare, do not believe)"]
    out.append(f"{'function':24} {'offset':>8} {'PTX':>6} {'issues':>10} {'stall':>10} {'wait':>10}  instruction")
    for name, offset, text, line, issues, stall, waited in table["instructions"]:
        out.append(f"{name[:24]:24} {offset:#8x} {line or '':>6} {issues:>10} {stall:>10} {waited:>10}  {text}")
    out.append(f"{'PTX line':>8} {'issues':>10} {'stall':>10} {'wait':>10}")
    for line, issues, stall, waited in table["lines"]:
        out.append(f"{line or '?':>8} {issues:>10} {stall:>10} {waited:>10}")
    return "\n".join(out) + "\n"
