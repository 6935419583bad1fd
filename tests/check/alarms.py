"""False alarms: the schedule checker and the strict simulator over ptxas's cubins of PTX files, where both must be
silent.

    python -m tests.check.alarms [--who ptxas|ours] [--judge schedule,strict] [--launches N] [--every N [--first K]]
    [--seconds S] [--budget S] [--journal FILE] PTX_OR_FOLDER...

The target is the file's own. The strict simulator runs each kernel with launches generated as for co-simulation
(:mod:`stages.check.launches`; those that end in the plain simulator), with three draws of latencies (short, long,
random). A hazard that it lists, or a result other than the plain one's, is an alarm. Alarms are printed by rule with an
example; launches that no simulator can run are counted by reason. ``--budget``: processor seconds of the simulator for
a file; ``--journal``: a file with a line of JSON per PTX file, from which an interrupted run continues.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ir_format.diag import OriasError
from ir_format.ptx import PtxUnit
from stages.check.executors import prepare, simulate
from stages.check.launches import Launch, make, pointers_in_structs, shapes
from stages.interpret.launch import Module, ParseError
from stages.simulate import Device, ImageError, SimError
from tests.check.sweep import Sweep, compiler

LIMIT = 30_000
DRAWS = (1, 2, 3)


class Strict:
    """Counts of the strict simulator."""

    def __init__(self) -> None:
        self.kernels = self.launches = 0
        self.alarms: Counter[str] = Counter()
        self.examples: dict[str, str] = {}
        self.idle: Counter[str] = Counter()
        self.until = 1e18  # processor time after which no launch begins

    def add(self, other: Strict) -> None:
        """Add the counts of another file."""
        self.kernels += other.kernels
        self.launches += other.launches
        self.alarms += other.alarms
        self.idle += other.idle
        self.examples = {**other.examples, **self.examples}

    def kernel(self, name: str, device: Any, module: Module, unit: PtxUnit, launches: int) -> None:
        """One kernel: launches that end in the plain simulator, each in all draws."""
        done = 0
        why = "no launch"
        for shape, seed in [(s, k) for k in range(launches) for s in shapes(unit)[k % 2 : k % 2 + 1]]:
            if time.process_time() > self.until:
                why = "no time" if not done else why
                break
            for attempt in range(6):
                launch = make(module.module, unit, shape, seed, attempt)
                plain = simulate(device, launch, seed=seed, limit=LIMIT)
                if not plain.error:
                    break
                why = re.sub(r"0x[0-9a-f]+|\d+|\(.*|.* at ", "", plain.error)[:90]
            else:
                continue
            done += 1
            for draw in DRAWS:
                self._draw(name, device, launch, simulate(device, launch, seed=draw, limit=LIMIT), draw)
        self.kernels += done > 0
        self.launches += done
        if not done:
            self.idle[why] += 1

    def _draw(self, name: str, device: Any, launch: Launch, plain: Any, draw: int) -> None:
        args = prepare(device, launch)
        try:
            stats = device.launch(
                launch.entry,
                launch.grid,
                launch.block,
                args,
                shared=launch.shared,
                strict=True,
                seed=draw,
                limit=4 * LIMIT,
                names=launch.names,
            )
        except SimError as error:
            self._add("ends", f"{name}: {launch.describe()}: {error}")
            return
        for line in stats.hazards:
            self._add(_rule(line), f"{name}: {line}")
        if (
            not stats.hazards
            and not plain.error
            and any(not np.array_equal(a, plain.buffers[k]) for k, a in launch.arrays(args).items())
        ):
            self._add("another result (a race?)", f"{name}: {launch.describe()}")

    def _add(self, key: str, text: str) -> None:
        self.alarms[key] += 1
        self.examples.setdefault(key, text)

    def print(self) -> None:
        """Print alarms by rule, and kernels that were not run by reason."""
        print(
            f"strict: {self.kernels} kernels, {self.launches} launches, "
            f"{sum(self.alarms.values())} alarms, {sum(self.idle.values())} kernels not run"
        )
        for key, count in self.alarms.most_common():
            print(f"{count:6} {key}\n       {self.examples[key]}")
        for key, count in self.idle.most_common(12):
            print(f"{count:6} not run: {key}")


def _rule(line: str) -> str:
    """A hazard's pair of mnemonics, and distance."""
    words = re.findall(r"(?:@!?U?P\d )?\b([A-Z][A-Z0-9]+)[.\w]* ", line)
    return " ".join(
        (
            *words[1:4],
            line.rsplit(" ", 3)[-3],
            re.sub(r".*?(read too early|still to be written over|overwritten by|kept for reuse).*", r"\1", line),
        )
    )


def files(paths: list[Path]) -> Iterator[Path]:
    """PTX files of folders."""
    for path in paths:
        yield from sorted(path.rglob("*.ptx")) if path.is_dir() else [path]


def main(argv: list[str] | None = None) -> int:
    """Command line; see the module's text."""
    parser = argparse.ArgumentParser(description="false alarms of the judges of schedules")
    parser.add_argument("--who", choices=("ours", "ptxas"), default="ptxas")
    parser.add_argument("--judge", default="schedule,strict")
    parser.add_argument("--launches", type=int, default=2)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--budget", type=float, default=1e9)
    parser.add_argument("--journal", type=Path)
    parser.add_argument("paths", nargs="+", type=Path)
    options = parser.parse_args(argv)
    began = time.monotonic()
    told = _told(options.journal)
    sweep, strict = Sweep(f"schedule, {options.who}", None), Strict()
    for path in list(files(options.paths))[options.first :: options.every]:
        if time.monotonic() - began > options.seconds:
            print(f"time is over before {path}")
            break
        if str(path) in told:
            strict.add(told[str(path)])
            continue
        text = path.read_text()
        target = re.search(r"^\s*\.target\s+sm_(\w+)", text, re.MULTILINE)
        got: bytes | str = compiler(target.group(1), options.who, 3)(text) if target else "no target"
        if isinstance(got, str):
            sweep.refused[got.strip().splitlines()[0][:100] if got.strip() else "?"] += 1
            continue
        if "schedule" in options.judge:
            sweep.judge(got, path.stem)
        if "strict" in options.judge:
            own = Strict()
            own.until = time.process_time() + options.budget
            _strict(own, path.stem, got, text, options.launches)
            strict.add(own)
            _tell(options.journal, path, own)
    sweep.print()
    strict.print()
    return 1 if sweep.groups or strict.alarms else 0


def _told(journal: Path | None) -> dict[str, Strict]:
    """The journal's counts of the strict simulator, by file."""
    found = {}
    for line in journal.read_text().splitlines() if journal is not None and journal.exists() else ():
        row = json.loads(line)
        s = found[row["file"]] = Strict()
        s.kernels, s.launches, s.examples = row["kernels"], row["launches"], row["examples"]
        s.alarms, s.idle = Counter(row["alarms"]), Counter(row["idle"])
    return found


def _tell(journal: Path | None, path: Path, s: Strict) -> None:
    if journal is not None:
        row = {"file": str(path), "kernels": s.kernels, "launches": s.launches, "alarms": s.alarms, "idle": s.idle}
        with journal.open("a") as f:
            f.write(json.dumps({**row, "examples": s.examples}) + "\n")


def _strict(strict: Strict, name: str, data: bytes, text: str, launches: int) -> None:
    target = re.search(r"^\s*\.target\s+(sm_\w+)", text, re.MULTILINE)
    try:
        device = Device(data)
        module = Module(text, target.group(1) if target else "sm_90")
    except (ParseError, ImageError, OriasError) as error:
        strict.idle[str(error).splitlines()[0][:90]] += 1
        return
    for code in module.codes.values():
        if pointers_in_structs(code.unit):
            strict.idle["pointers inside of a parameter"] += 1
        else:
            strict.kernel(name, device, module, code.unit, launches)


if __name__ == "__main__":
    sys.exit(main())
