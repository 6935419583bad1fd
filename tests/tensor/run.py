"""Kernels with products of warpgroups and copies by tensor maps, against numpy.

python -m tests.tensor.run [--small] [--who ours ptxas interpreter] [--strict] [--only NAME ...] [-O LEVEL]

Each kernel of ptx/ is compiled by us and by ptxas, runs in the simulator, and is interpreted; a line for each with
processor seconds.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np

from orchestrator.api import compile_ptx
from stages.interpret.launch import Module
from stages.simulate.device import Device
from tests import oracle
from tests.tensor.cases import KERNELS, Case

HERE = Path(__file__).resolve().parent


def sm_of(name: str) -> str:
    """The target of a file."""
    return "100a" if name.endswith("_100") else "90a"


def text_of(name: str) -> str:
    """The PTX of a file."""
    return (HERE / "ptx" / f"{name}.ptx").read_text()


@cache
def cubin(name: str, who: str, level: int = 3) -> bytes:
    """A file compiled by us or by ptxas."""
    if who == "ours":
        return compile_ptx(text_of(name), f"sm_{sm_of(name)}", {"opt-level": level}, name=f"{name}.ptx")
    path = oracle.run_ptxas(HERE / "ptx" / f"{name}.ptx", sm_of(name), f"-O{level}")
    if not isinstance(path, Path):
        raise RuntimeError(str(path))
    return path.read_bytes()


def three(x: tuple[int, ...]) -> tuple[int, int, int]:
    """An extent."""
    full = (*x, 1, 1)
    return full[0], full[1], full[2]


def execute(case: Case, file: str, who: str, strict: bool = False, seed: int = 0, level: int = 3) -> list[str]:
    """Run a launch; what is wrong with it."""
    if who == "interpreter":
        module = Module(text_of(file), f"sm_{sm_of(file)}")
        module.launch(case.kernel, three(case.grid), (case.block, 1, 1), case.args, shared=case.shared)
        return [x for x in (case.off(),) if x]
    device = Device(cubin(file, who, level), progress=who == "ptxas")
    stats = device.launch(
        case.kernel, case.grid, case.block, case.args, shared=case.shared, strict=strict, seed=seed, limit=10_000_000
    )
    return [x for x in (case.off(), *stats.hazards[:3]) if x]


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--who", nargs="+", default=["ptxas", "ours", "interpreter"])
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("-O", dest="level", type=int, default=3)
    args = parser.parse_args()
    bad = 0
    for name, (file, small, large) in KERNELS.items():
        if args.only and name not in args.only:
            continue
        for who in args.who:
            case = (small if args.small else large)(np.random.default_rng(7))
            if who != "interpreter":
                cubin(file, who, args.level)
            began = time.process_time()
            try:
                wrong = execute(case, file, who, args.strict, 1, args.level)
            except Exception as e:
                wrong = [f"{type(e).__name__}: {e}"]
            bad += bool(wrong)
            print(
                f"{name:14} {who:12} {time.process_time() - began:6.1f} s  {'; '.join(wrong)[:300] or 'right'}",
                flush=True,
            )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
