"""A second opinion on control words: basalt-sass, a third-party hazard checker, on our cubins and ptxas's.

    python -m tests.check.second_opinion [--sm 120] [--set main|all] [--ptxas] [--verbose]

It is calibrated on sm_120 and looks at whole mnemonics; on other SMs it uses the same model with the same numbers.
Errors count, warnings do not.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tests import oracle


class Opinion(NamedTuple):
    """Its result for one cubin: instructions and dependences checked, errors and warnings as text."""

    instructions: int
    pairs: int
    errors: list[str]
    warnings: list[str]


@cache
def _judge() -> tuple[Any, Any, Any]:
    from basalt.cli import DEFAULT_LATENCIES, DEFAULT_OBSERVED
    from basalt.toolchain import Toolchain
    from basalt.verify.latency import LatencyModel
    from basalt.verify.observed import ObservedStalls

    nvdisasm = oracle.find("nvdisasm")
    assert nvdisasm is not None
    model = LatencyModel.assumed().overlay(Path(DEFAULT_LATENCIES))
    return Toolchain(nvdisasm.parent), model, ObservedStalls.read(Path(DEFAULT_OBSERVED))


def opinion(cubin: bytes) -> Opinion:
    """Its verdict on every kernel of a cubin. Needs the package and nvdisasm."""
    from basalt.disasm import disassemble_kernels, disassemble_program
    from basalt.verify.hazards import Severity, verify_program

    tools, model, observed = _judge()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "k.cubin"
        path.write_bytes(cubin)
        programs = disassemble_kernels(tools, path) or {"": disassemble_program(tools, path)}
    instructions = pairs = 0
    errors: list[str] = []
    warnings: list[str] = []
    for name, program in programs.items():
        report = verify_program(program, model, observed=observed)
        instructions += report.instructions
        pairs += report.checked_pairs
        for h in report.hazards:
            text = f"{name}: {h.describe()} | {h.def_text} | {h.use_text}"
            (errors if h.severity is Severity.ERROR else warnings).append(text)
    return Opinion(instructions, pairs, errors, warnings)


def main(argv: list[str] | None = None) -> int:
    """Command line; see the module's text."""
    from orchestrator.api import ChainError, compile_ptx
    from tests.check.test_schedule import KERNELS, sources

    parser = argparse.ArgumentParser(description="basalt-sass on our cubins")
    parser.add_argument("--sm", type=int, action="append", default=[], help="80, 90, 120 (default: these three)")
    parser.add_argument("--set", choices=("main", "all"), default="all")
    parser.add_argument("--ptxas", action="store_true", help="ptxas's cubins instead")
    parser.add_argument("--verbose", action="store_true", help="print warnings too")
    options = parser.parse_args(argv)
    bad = 0
    for sm in options.sm or [80, 90, 120]:
        total: Counter[str] = Counter()
        for path in [KERNELS / "ptx" / f"sm_{sm}" / "all16.ptx"] if options.set == "main" else sources(sm):
            if options.ptxas:
                got = oracle.run_ptxas(path, "90a" if sm == 90 else sm)
                if not isinstance(got, Path):
                    continue
                data = got.read_bytes()
            else:
                try:
                    data = compile_ptx(path.read_text(), f"sm_{sm}")
                except ChainError:
                    total["refused"] += 1
                    continue
            said = opinion(data)
            total += Counter(
                cubins=1,
                instructions=said.instructions,
                dependences=said.pairs,
                errors=len(said.errors),
                warnings=len(said.warnings),
            )
            for text in [*said.errors, *(said.warnings if options.verbose else ())]:
                print(f"sm_{sm} {path.stem}: {text}", flush=True)
        print(f"sm_{sm}: {dict(total)}", flush=True)
        bad += total["errors"]
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
