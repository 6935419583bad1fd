"""The stages of docs/examples on the kernels of the tests: the rules of their streams, order, schedule and convergence.

python -m tests.facts.own_stages [--sm sm_80 ...] [--only vadd ...]
"""

from __future__ import annotations

import argparse
import io
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from orchestrator.api import compile_ptx, finish
from stages.check import convergence_checker
from stages.check.schedule_checker import check_bytes
from stages.check.streams import Stream, order, verify
from stages.facts.annotate import annotated
from stages.plumbing.chain import ENCODE

ROOT: Final = Path(__file__).parents[2]
EXAMPLES: Final = ROOT / "docs/examples"
PTX: Final = ROOT / "tests/kernels/ptx"
SMS: Final = ("sm_80", "sm_90", "sm_120")
#: Reads a stream at level `allocated`, returns one at level `scheduled`.
Scheduler = Callable[[bytes], bytes]


def kernels(sm: str) -> list[str]:
    """The names of the kernels."""
    return sorted(p.stem for p in (PTX / sm).glob("*.ptx") if p.stem != "all16")


def _built(compilers: Sequence[str], words: Sequence[str], source: str, folder: Path) -> Scheduler | None:
    compiler = next((found for name in compilers if (found := shutil.which(name))), None)
    if compiler is None:
        return None
    program = folder / source.replace(".", "_")
    subprocess.run([compiler, *words, "-o", str(program), str(EXAMPLES / source)], check=True)

    def run(data: bytes) -> bytes:
        return subprocess.run([str(program)], input=_annotated(data), capture_output=True, check=True).stdout

    return run


@cache
def _annotated(data: bytes) -> bytes:
    return annotated(io.BytesIO(data))


def in_cpp(folder: Path) -> Scheduler | None:
    """The example in C++, built; None if there is no compiler."""
    return _built(("g++", "clang++"), ("-O1", "-std=c++17"), "control.cpp", folder)


def in_rust(folder: Path) -> Scheduler | None:
    """The example in Rust, built; None if there is no compiler."""
    return _built(("rustc",), ("--edition", "2021", "-C", "opt-level=1", "-C", "debuginfo=0"), "control.rs", folder)


def in_python(data: bytes) -> bytes:
    """The example in Python, as a program."""
    command = [sys.executable, str(EXAMPLES / "order.py")]
    return subprocess.run(command, input=data, capture_output=True, check=True, env={"PYTHONPATH": str(ROOT)}).stdout


def findings(scheduler: Scheduler, allocated: bytes) -> list[str]:
    """The judges' findings on a scheduler's output for a stream."""
    made = scheduler(allocated)
    stream = Stream(made)
    found = [*verify(stream), *order(Stream(allocated), stream)]
    cubin = finish(made, (ENCODE,))
    return found + [str(f) for f in (*check_bytes(cubin).findings, *convergence_checker.check_bytes(cubin).findings)]


@cache
def allocated(sm: str, kernel: str) -> bytes:
    """The stream after regalloc."""
    streams: dict[str, bytes] = {}
    compile_ptx((PTX / sm / f"{kernel}.ptx").read_text(), sm, streams=streams)
    return streams["regalloc"]


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sm", nargs="*", default=SMS)
    parser.add_argument("--only", nargs="*")
    args = parser.parse_args(argv)
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        cpp, rust = in_cpp(Path(folder)), in_rust(Path(folder))
        for sm in args.sm:
            for kernel in args.only or kernels(sm):
                stream = allocated(sm, kernel)
                for name, scheduler in (("control.cpp", cpp), ("control.rs", rust), ("order.py", in_python)):
                    found = findings(scheduler, stream) if scheduler is not None else ["no compiler"]
                    bad += bool(found)
                    print(f"{sm} {kernel} {name}: {len(found)} findings {found[:1]}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
