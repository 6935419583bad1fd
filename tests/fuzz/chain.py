"""Random programs through the whole chain, executed in the simulator and compared with the PTX interpreter.

    python -m tests.fuzz.chain [--seed N] [--count N] [--arch sm_X ...] [-O LEVEL ...] [--minutes M] [--kernels N]
    [--runs N] [--turns] [--cuda] [--who ptxas] [--raw] [--keep FOLDER] [FILE.ptx ...]

Each failure is printed with its seed, shrunk (without ``--raw``), and the guilty pass is named. Files are programs kept
before; their first lines say how to run them.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tests import oracle
from tests.fuzz import programs
from tests.fuzz.guilty import guilty, theirs
from tests.fuzz.judge import Fault, ParseError, Program, Way, check
from tests.fuzz.shrink import shrink

#: Known errors of ptxas (tests/cosim/known) that are so frequent that nothing else would show.
_SPARED = re.compile(r"@!?%\w+ (testp\.|set\.)")

ARCHES = ("sm_75", "sm_80", "sm_90", "sm_120")
#: SMs that random programs are written for.
FLOORS = (75, 80, 90)


def number(arch: str) -> int:
    """The SM of an arch."""
    return int(arch[3:].rstrip("af"))


def floor(arches: list[str], seed: int) -> int:
    """The SM for which a module is written: newer forms occur only with newer SMs."""
    wanted = [number(a) for a in arches]
    usable = [n for n in FLOORS if min(wanted) <= n <= max(wanted)] or [max(n for n in FLOORS if n <= min(wanted))]
    return usable[seed % len(usable)]


def way_of(arch: str, level: int, seed: int) -> Way:
    """How a module is compiled; some have few registers, some run in the timed machine."""
    return Way(arch, level, {0: 24, 1: 32, 2: 40, 3: 64}.get(seed % 8, 0) if level else 0, strict=seed % 3 == 0)


def write(folder: Path, name: str, program: Program, fault: Fault, text: str) -> Path:
    """Save a program, with the way to run it at the top."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    way = fault.way
    path.write_text(
        f"// {fault.kernel or '-'} {way.arch} {way.level} {way.registers} "
        f"{program.launch.seed + fault.data}\n// {fault.kind}: {fault.what}\n{text}"
    )
    return path


def read(path: Path) -> tuple[Program, Way, list[str]]:
    """A kept program, its way and its kernel."""
    text = path.read_text()
    kernel, arch, level, registers, data = text.split("\n", 1)[0].removeprefix("//").split()
    body = "\n".join(line for line in text.split("\n") if not line.startswith("//"))
    return (
        Program(body, programs.launch(int(data))),
        Way(arch, int(level), int(registers)),
        [kernel] if kernel != "-" else [],
    )


def report(program: Program, fault: Fault, label: str, folder: Path | None, raw: bool) -> None:
    """Print a failure; save it; shrink it and look for the culprit."""
    print(f"{label}: {fault}", flush=True)
    if folder:
        write(folder, f"{label.replace(' ', '_')}.ptx", program, fault, program.text)
    if raw or fault.kind == "undefined":
        return
    print(f"  {guilty(program, fault)}; {theirs(program, fault)}", flush=True)
    small = shrink(program.text, program.launch, fault)
    if not small:
        print("  not made smaller")
    elif folder:
        print(
            (
                f"  {small.count(chr(10))} lines in "
                f"{write(folder, f'{label.replace(chr(32), chr(95))}.small.ptx', program, fault, small)}"
            ),
            flush=True,
        )
    else:
        print(small, flush=True)


def modules(options: argparse.Namespace) -> Iterator[tuple[str, int, int, str]]:
    """(label, seed, SM, text) of the modules asked for."""
    for seed in range(options.seed, options.seed + options.count):
        sm = floor(options.arch, seed)
        if options.cuda:
            from tests.fuzz import cuda

            try:
                text = cuda.module(seed, sm, options.kernels)
            except RuntimeError as e:  # nvcc did not end in time
                print(f"seed {seed}: {e}", flush=True)
                continue
        else:
            text = programs.module(seed, sm, options.kernels)
        if options.who != "ours":
            text = _SPARED.sub(r"\1", text)
        yield f"seed {seed}", seed, sm, text


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description="Random programs through the chain, against the PTX interpreter.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=10, help="modules")
    parser.add_argument("--kernels", type=int, default=6, help="kernels of a module")
    parser.add_argument("--runs", type=int, default=2, help="sets of data for a kernel")
    parser.add_argument("--arch", nargs="+", default=list(ARCHES))
    parser.add_argument("-O", dest="levels", nargs="+", type=int, default=[3, 0])
    parser.add_argument("--minutes", type=float, default=0.0, help="stop after so long")
    parser.add_argument("--cuda", action="store_true", help="random CUDA C through nvcc in place of random PTX")
    parser.add_argument(
        "--turns", action="store_true", help="one SM and level a module, in turn, in place of all of them"
    )
    parser.add_argument("--who", choices=("ours", "ptxas", oracle.NEWER), default="ours", help="whose cubins")
    parser.add_argument("--raw", action="store_true", help="only print failures")
    parser.add_argument("--keep", type=Path, help="a folder for failures")
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    began = time.monotonic()
    counts = {"modules": 0, "launches": 0, "instructions": 0}
    faults = 0
    for path in options.files:
        program, way, kernels = read(path)
        for fault in check(program, way, kernels, 1, counts):
            faults += 1
            report(program, fault, path.stem, options.keep, options.raw)
    for label, seed, sm, text in modules(options) if not options.files else ():
        if options.minutes and time.monotonic() - began > 60 * options.minutes:
            break
        try:
            program = Program(text, programs.launch(seed))
        except ParseError as e:
            print(f"{label}: does not parse: {str(e).splitlines()[0]}")
            faults += 1
            continue
        counts["modules"] += 1
        seen: set[tuple[str, str]] = set()
        pairs = [(arch, level) for arch in options.arch if number(arch) >= sm for level in options.levels]
        if options.turns:
            pairs = [pairs[seed // 3 % len(pairs)]]
        for arch, level in pairs:
            for fault in check(program, replace(way_of(arch, level, seed), by=options.who), (), options.runs, counts):
                faults += 1
                raw = options.raw or (fault.kernel, fault.kind) in seen
                seen.add((fault.kernel, fault.kind))
                report(program, fault, f"{label} {arch} {fault.kernel}", options.keep, raw)
    seconds = time.monotonic() - began
    print(
        f"{counts['modules']} modules, {counts['launches']} launches, "
        f"{counts['instructions']} warp instructions, {faults} faults, {seconds:.0f} s"
    )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
