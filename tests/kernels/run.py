"""Compile test kernels, run them in the simulator and judge the results: a tool, and a helper of the tests.

    python -m tests.kernels.run [--arch 90] [--with orias|ptxas|both] [--set main|corpus|hand|tensor|all]
                                [--seed N] [--strict] [--combined] [--option=-O0] [NAME ...]

Prints one line per kernel; exit 1 if anything is wrong. ``--with both`` runs ptxas's cubin and ours in turn;
``--combined`` takes the main kernels from one cubin of the combined module.
"""

from __future__ import annotations

import argparse
import functools
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests import oracle
from tests.kernels import cases, cases_corpus, cases_hand, cases_loops, cases_tensor, make_ptx
from tests.kernels.model import Array, Buffer, KernelSpec, Launch, check, combined_ptx

if TYPE_CHECKING:
    from stages.interpret.launch import Module
    from stages.simulate import Device

SETS: dict[str, dict[str, KernelSpec]] = {
    "main": cases.CASES,
    "corpus": cases_corpus.CASES,
    "hand": cases_hand.CASES,
    "loops": cases_loops.CASES,
    "tensor": cases_tensor.CASES,
    "all": {**cases.CASES, **cases_corpus.CASES, **cases_hand.CASES, **cases_loops.CASES, **cases_tensor.CASES},
}

#: Seconds for one compilation by our chain.
COMPILE_TIMEOUT_S = 120.0


def ptx_sm(arch: str) -> int:
    """The newest SM with checked-in PTX that an arch accepts ("86" that of sm_80, "90a" that of sm_90)."""
    number = int(arch.rstrip("af"))
    return max(sm for sm in make_ptx.SMS if sm <= number)


def ptx_for(spec: KernelSpec, arch: str, combined: bool = False) -> Path:
    """The PTX file for a kernel and an arch; ``combined`` gives the module of all main kernels."""
    return combined_ptx(ptx_sm(arch)) if combined and not spec.folder else spec.ptx(ptx_sm(arch))


def compile_ptxas(ptx: Path, arch: str, options: list[str]) -> bytes | str:
    """ptxas's cubin, or its error text."""
    result = oracle.run_ptxas(ptx, arch, *options, tool=oracle.tool_for(arch))
    return str(result) if isinstance(result, oracle.ToolError) else result.read_bytes()


def compile_orias(ptx: Path, arch: str, options: list[str]) -> bytes | str:
    """Our cubin, made by a separate process, or the error text."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.cubin"
        command = [sys.executable, "-m", "orchestrator", str(ptx), "-arch", f"sm_{arch}", *options, "-o", str(out)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=COMPILE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return f"no end after {COMPILE_TIMEOUT_S:g} s"
        if done.returncode != 0 or not out.is_file():
            lines = done.stderr.strip().splitlines() or ["no output file"]
            return f"exit {done.returncode}: {lines[-1 if lines[0].startswith('Traceback') else 0]}"
        return out.read_bytes()


@functools.cache
def _compile(compiler: str, ptx: Path, arch: str, options: tuple[str, ...]) -> bytes | str:
    return COMPILERS[compiler](ptx, arch, list(options))


COMPILERS = {"ptxas": compile_ptxas, "orias": compile_orias}


def prepare(device: Device | Module, launch: Launch) -> tuple[dict[str, Array], list[Any]]:
    """Reset a device, set the launch's symbols: its buffers as fresh copies by name, its arguments in order."""
    device.reset()
    for name, value in launch.globals.items():
        device.set_global(name, value)
    memory: dict[str, Array] = {name: buffer.data.copy() for name, buffer in launch.buffers().items()}
    return memory, [memory[arg.name] if isinstance(arg, Buffer) else arg.data for arg in launch.args]


def run_launch(device: Device | Module, launch: Launch, **options: Any) -> tuple[list[str], Any]:
    """What is wrong with a launch's results in the simulator or the interpreter, and its statistics. Raises SimError;
    ``options`` go to ``launch``."""
    memory, args = prepare(device, launch)
    stats = device.launch(launch.entry, launch.grid, launch.block, args, shared=launch.shared, **options)
    symbols = {name: device.get_global(name, want.values.dtype) for name, want in launch.expect_globals.items()}
    return check(launch, memory, symbols), stats


def simulate(image: bytes, launch: Launch, *, strict: bool = False, seed: int = 0) -> list[str]:
    """Run one launch of a cubin in the simulator; returns the differences, or the simulator's error as one line."""
    from stages.simulate import Device, ImageError, SimError

    try:
        return run_launch(Device(image), launch, strict=strict, seed=seed, names=[arg.name for arg in launch.args])[0]
    except (ImageError, SimError) as error:
        return [f"{type(error).__name__}: {error}"]


def judge(spec: KernelSpec, image: bytes, *, seed: int = 0, strict: bool = False) -> list[str]:
    """All launches of a kernel on one cubin; every line names its launch."""
    lines: list[str] = []
    for launch in spec.launches(seed):
        lines += [f"{launch.label}: {line}" for line in simulate(image, launch, strict=strict, seed=seed)]
    return lines


def main(argv: list[str] | None = None) -> int:
    """Command line; see the module's text."""
    parser = argparse.ArgumentParser(description="Compile test kernels, simulate them, judge the results.")
    parser.add_argument("--arch", default="90", help="75, 80, 90a, ... (default 90)")
    parser.add_argument("--with", dest="compiler", default="orias", choices=[*COMPILERS, "both"])
    parser.add_argument("--set", dest="which", default="main", choices=list(SETS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--strict", action="store_true", help="with the simulator's timing model")
    parser.add_argument("--combined", action="store_true", help="main kernels from the combined module")
    parser.add_argument("--option", action="append", default=[], help="an option for the compiler (may be repeated)")
    parser.add_argument("names", nargs="*", help="kernels (default: the whole set)")
    options = parser.parse_args(argv)
    unknown = [name for name in options.names if name not in SETS["all"]]
    if unknown:
        parser.error("no such kernel: " + " ".join(unknown))
    chosen = {name: SETS["all"][name] for name in options.names} or SETS[options.which]
    failed = total = 0
    for name, spec in chosen.items():
        if int(options.arch.rstrip("af")) < spec.min_sm:
            continue
        for compiler in COMPILERS if options.compiler == "both" else (options.compiler,):
            start = time.perf_counter()
            ptx = ptx_for(spec, options.arch, options.combined)
            image = _compile(compiler, ptx, options.arch, tuple(options.option))
            made = time.perf_counter()
            lines = [image] if isinstance(image, str) else judge(spec, image, seed=options.seed, strict=options.strict)
            times = f"compile {made - start:.2f} s, run {time.perf_counter() - made:.2f} s"
            print(f"{'WRONG' if lines else 'ok   '} {name:14} {compiler:6} {times}", flush=True)
            for line in lines[:3]:
                print(f"      {line[:300]}")
            failed += bool(lines)
            total += 1
    print(f"{failed} of {total} wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
