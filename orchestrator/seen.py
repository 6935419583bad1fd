"""Information about a compile besides its output: times by stage and pass, a trace, statistics as JSON, remarks,
the page of a kernel. Imported only where something of it was asked for."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence

from ir_format.typed import TYPE_CHECKING, Any
from stages.plumbing.chain import MIDDLE
from stages.plumbing.observe import PASSES, PICTURES, REMARKS, PassRow, Seen
from stages.plumbing.runner import VERSION

if TYPE_CHECKING:
    from orchestrator.driver import Run
    from orchestrator.options import CommandLine


def observed(cl: CommandLine) -> str:
    """What the stages must look at for this command line (the option ``observe`` of the header)."""
    page = is_page(cl.values.get("report", ""))
    asked = {word for value in cl.lists.get("compiler-stats", ()) for word in value.split(",")}
    by_pass = asked & {"phase-wise", "p", "detailed", "d"} or {"time", "fdevice-time-trace", "stats-json"} & set(
        cl.values
    )
    words = [PASSES] if by_pass or page else []
    words += [REMARKS] if page or "remarks" in cl.values else []
    words += [PICTURES] if page else []
    return ",".join(words)


def is_page(path: str) -> bool:
    """Whether --report names a page, by its end; else it is the JSON report of a batch."""
    return path.endswith((".html", ".htm"))


class Sum:
    """A pass, or a stage, over all units."""

    def __init__(self, stage: str, name: str) -> None:
        self.stage, self.name = stage, name
        self.spent = self.before = self.after = self.rewrites = self.memory = self.peak = 0

    def add(self, row: PassRow) -> None:
        """One more unit."""
        self.spent += row.spent
        self.before += row.before
        self.after += row.after
        self.rewrites += row.rewrites
        self.memory += row.memory
        self.peak = max(self.peak, row.peak)


def sums(seen: Sequence[Seen]) -> list[Sum]:
    """By stage in the order of the chain, the stage itself before its passes."""
    found: dict[tuple[str, str], Sum] = {}
    for unit in seen:
        for row in unit.passes:
            key = row.stage, row.name
            if key not in found:
                found[key] = Sum(*key)
            found[key].add(row)
    order = {s.name: n for n, s in enumerate(MIDDLE)}
    return sorted(found.values(), key=lambda s: (order.get(s.stage, 99), s.name != ""))


def tell(run: Run, seen: list[Seen], encoded: bytes, cubin: bytes) -> None:
    """Say, and write, all that was asked for. ``encoded``: the stream that `elf` read. Raises Abort."""
    cl = run.cl
    if cl.flag("time"):
        for line in _times(run, seen):
            sys.stderr.write(f"orias: {line}\n")
    if "compiler-stats" in cl.lists:
        _statistics(run, seen)
    if "fdevice-time-trace" in cl.values:
        run.write(cl.values["fdevice-time-trace"], run.times.trace(cl, seen))
    if "stats-json" in cl.values:
        run.write(cl.values["stats-json"], (json.dumps(_as_json(run, seen, cubin), indent=1) + "\n").encode())
    if "remarks" in cl.values:
        from orchestrator.remarks import as_text, as_yaml

        path = cl.values["remarks"]
        sources = [] if "start-from" in cl.values else run.sources()
        text = as_yaml(seen, sources) if path.endswith((".yaml", ".yml")) else as_text(seen, sources)
        if path:
            run.write(path, text.encode())
        else:
            sys.stderr.write(text)
    if is_page(cl.values.get("report", "")):
        from orchestrator.report import pages

        for name, page in pages(run, seen, encoded, cubin):
            run.write(name, page)


def _times(run: Run, seen: Sequence[Seen]) -> Iterator[str]:
    """The parts of the compile, and below the one that runs the stages what each and each pass took, over all units."""
    inner = sums(seen)
    for name, seconds in run.times:
        yield f"{name:40} {seconds * 1000:8.1f} ms"
        for s in inner:
            if s.stage in name.split("+"):
                yield f"{('    ' + s.name if s.name else '  ' + s.stage):40} {s.spent / 1e6:8.1f} ms"


def _statistics(run: Run, seen: Sequence[Seen]) -> None:
    """What --compiler-stats asks for, to standard error or to the file of --compiler-stats-file."""
    from orchestrator.statistics import asked, lines, table

    cl = run.cl
    words = asked(cl.lists["compiler-stats"])
    inner = sums(seen)
    phases = [
        part
        for name, seconds in run.times
        for part in [(s.stage, s.spent / 1e9) for s in inner if not s.name and s.stage in name.split("+")]
        or [(name, seconds)]
    ]
    said = lines(words, phases, time.perf_counter() - run.began)
    if "detailed" in words:
        said += table(inner)
    path = cl.values.get("compiler-stats-file")
    if path is not None:
        names = cl.inputs or ["application ptx input"]
        run.write(path, "".join([f"{names[0]} >>\n\n", *[f"{line}\n" for line in said], "\n"]).encode())
        return
    for line in said:
        lead = "ptxas info    : STAT: " if " = " in line else ""
        sys.stderr.write(f"{lead}{line}\n")


def _as_json(run: Run, seen: Sequence[Seen], cubin: bytes) -> dict[str, Any]:
    """The object of --stats-json."""
    from orchestrator.statistics import peak

    def numbers(row: PassRow) -> dict[str, Any]:
        return {
            "seconds": row.spent / 1e9,
            "instructions_before": row.before,
            "instructions_after": row.after,
            "rewrites": row.rewrites,
            "memory_kib": row.memory,
            "peak_kib": row.peak,
        }

    units = []
    for unit in seen:
        stages: dict[str, dict[str, Any]] = {}
        for row in unit.passes:
            stages.setdefault(row.stage, {"name": row.stage, "passes": []})
            if row.name:
                stages[row.stage]["passes"].append({"name": row.name, **numbers(row)})
            else:
                stages[row.stage] = {"name": row.stage, **numbers(row), "passes": stages[row.stage]["passes"]}
        units.append({"name": unit.unit, "stages": list(stages.values())})
    return {
        "orias": VERSION,
        "target": run.target,
        "sources": [name for name, _ in ([] if "start-from" in run.cl.values else run.sources())],
        "seconds": time.perf_counter() - run.began,
        "peak_kib": peak(),
        "output_bytes": len(cubin),
        "parts": [{"name": name, "seconds": seconds} for name, seconds in run.times],
        "units": units,
    }
