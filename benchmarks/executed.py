"""The execution cost on a GPU, estimated: our cubin of any PTX against ptxas's, in one run.

    python -m benchmarks.executed FILE.ptx|FILE.cu|FOLDER ... [--sm 80,90,100,120] [--launches 3] [--json FILE]

Launches are generated as for co-simulation (launches that leave their buffers or never end are dropped), and both
cubins run in the simulator with its clock. A line of the table is a kernel; every column is ours / ptxas's:

``issued``: warp instructions issued. ``lone``: cycles by stalls and scoreboards with every warp alone on its scheduler.
``full``: cycles for a warp of a full SM, the greatest of: ``lone`` divided among the warps of a scheduler, one issue
slot for each instruction, and for each pipe the sum of its issue intervals (:mod:`ir_format.hazards.classes`).
``waits``: issues that waited for a scoreboard for more than 100 cycles, thus for memory. ``regs``: registers. ``occ``:
occupancy, resident warps as registers and shared memory allow. ``local``: accesses to local memory (including spills).
The latencies are partly guesses (docs/simulator.md); the same model judges both sides, so only ratios mean anything.
CUDA is compiled by nvcc first.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from ir_format.hazards import load
from orchestrator.api import compile_ptx
from stages.analysis.occupancy import occupancy
from stages.check.cosim import Cosim
from stages.check.executors import launched, prepare
from stages.check.launches import Launch, launches
from stages.simulate import Device, SimError
from tests import oracle

#: A wait longer than this many cycles is for memory (the latencies of other units end below 50).
LONG_WAIT: Final = 100
SIM_LIMIT: Final = 600_000
COLUMNS: Final = ("issued", "lone", "full", "waits", "regs", "occ", "local")


@dataclass(slots=True)
class Cost:
    """The cost of one kernel by one compiler, summed over all launches (``regs`` and ``occ`` are of the kernel)."""

    issued: int = 0
    lone: int = 0
    full: float = 0.0
    waits: int = 0
    regs: int = 0
    occ: int = 0
    local: int = 0


def cost(device: Device, made: list[Launch]) -> Cost:
    """Run the launches. Raises SimError."""
    out = Cost()
    classes = load.classes(device.sm)
    pipes = load.pipes()
    for launch in made:
        stats = launched(device, launch, prepare(device, launch), seed=launch.seed, limit=SIM_LIMIT, cycles=True)
        entry = device.kernel(launch.entry)
        threads = launch.block[0] * launch.block[1] * launch.block[2]
        out.regs = entry.regs
        out.occ = occupancy(device.image.target, out.regs, entry.shared + launch.shared, threads).warps
        busy: Counter[str] = Counter()
        issued = lone = 0
        for _, _, text, _, issues, stall, waited in stats.cycles["instructions"]:  # type: ignore[attr-defined]
            op, *mods = text.split(".")
            issued += issues
            lone += stall + waited
            if issues and waited / issues > LONG_WAIT:
                out.waits += issues
            if op in ("LDL", "STL"):
                out.local += issues
            name = next((c for need, c in classes.get(op, ()) if need <= set(mods)), "")
            if name in pipes:
                busy[pipes[name].name] += issues * pipes[name].interval
        out.issued += issued
        out.lone += lone
        out.full += max([lone / max(1, out.occ // 4), issued, *busy.values()])
    return out


def runnable(cosim: Cosim, name: str, most: int, seconds: float) -> list[Launch]:
    """Launches of a kernel that end and stay within their buffers."""
    unit = cosim.module.codes[name].unit
    found: list[Launch] = []
    began = time.process_time()
    for shape, seed in launches(cosim.module.module, unit, 3 * most):
        cosim.began = time.process_time()
        launch, base = cosim.sound(unit, shape, seed)
        if base is not None and base.steps > 5:
            found.append(launch)
        if len(found) == most or time.process_time() - began > seconds:
            break
    return found


def ptx_of(path: Path, sm: str) -> str:
    """PTX text; for CUDA by nvcc. Raises RuntimeError."""
    if path.suffix == ".ptx":
        return path.read_text()
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "made.ptx"
        said = oracle.run_tool("nvcc", "-ptx", "-w", "-std=c++17", f"-arch=sm_{sm}", str(path), "-o", str(made))
        if isinstance(said, oracle.ToolError):
            raise RuntimeError(str(said))
        return made.read_text()


def measure(path: Path, sm: str, most: int, seconds: float) -> Iterator[tuple[str, Cost, Cost]]:
    """Kernels of a file with the cost of ours and of ptxas's. Failures are reported on stderr."""
    text = ptx_of(path, sm)
    theirs = oracle.compile_ptx(text, sm)
    if isinstance(theirs, oracle.ToolError):
        print(f"{path.name} sm_{sm}: {theirs}", file=sys.stderr)
        return
    ours = Device(compile_ptx(text, f"sm_{sm}", {}))
    other = Device(theirs.read_bytes())
    cosim = Cosim(text, f"sm_{sm}", {}, seconds=seconds)
    for name in cosim.module.codes:
        made = runnable(cosim, name, most, seconds)
        try:
            if not made:
                raise SimError("no launch that stays within its buffers and ends")
            yield name, cost(ours, made), cost(other, made)
        except SimError as error:
            print(f"{path.name} {name} sm_{sm}: not measured: {error}", file=sys.stderr)


def ratio(ours: float, theirs: float) -> float:
    """Ours / theirs; if theirs is 0, one is added to both."""
    return ours / theirs if theirs else float(ours + 1)


def summary(rows: list[tuple[str, Cost, Cost]], sm: str, worst: int) -> str:
    """The table of the worst kernels, and geometric means over all."""
    lines = [f"sm_{sm}: " + " ".join(c.rjust(7) for c in COLUMNS)]
    ratios = {name: [ratio(getattr(a, c), getattr(b, c)) for c in COLUMNS] for name, a, b in rows}
    order = sorted(ratios, key=lambda n: -max(ratios[n][0], ratios[n][2]))
    for name in order[:worst]:
        lines.append(f"  {name:36.36} " + " ".join(f"{r:7.2f}" for r in ratios[name]))
    for at, column in enumerate(COLUMNS[:6]):
        logs = [math.log(r[at]) for r in ratios.values() if r[at] > 0]
        if logs:
            mean = math.exp(sum(logs) / len(logs))
            lines.append(f"  {column}: geometric mean {mean:.3f}, most {max(r[at] for r in ratios.values()):.2f}")
    more = [n for n, a, b in rows if a.local and not b.local]
    lines.append(f"  {len(rows)} kernels; local memory only in ours: {', '.join(more) or 'none'}")
    return "\n".join(lines)


def files(names: list[str]) -> list[Path]:
    """Files as given, and all PTX and CUDA files of folders."""
    out: list[Path] = []
    for name in names:
        path = Path(name)
        out += sorted(p for p in path.rglob("*") if p.suffix in (".ptx", ".cu")) if path.is_dir() else [path]
    return out


def main() -> None:
    """Print a table for each SM."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--sm", default="80,90,100,120")
    parser.add_argument("--launches", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0, help="processor seconds to find launches of a kernel")
    parser.add_argument("--worst", type=int, default=15)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    kept: dict[str, Any] = {}
    for sm in args.sm.split(","):
        rows: list[tuple[str, Cost, Cost]] = []
        for path in files(args.files):
            try:
                rows += [(f"{path.stem}/{k}", a, b) for k, a, b in measure(path, sm, args.launches, args.seconds)]
            except (RuntimeError, subprocess.SubprocessError, ValueError) as error:
                print(f"{path}: {error}", file=sys.stderr)
        print(summary(rows, sm, args.worst), flush=True)
        kept[sm] = {name: [asdict(a), asdict(b)] for name, a, b in rows}
    if args.json:
        args.json.write_text(json.dumps(kept, indent=1))


if __name__ == "__main__":
    main()
