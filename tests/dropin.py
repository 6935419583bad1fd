"""Programs of other people with orias instead of ptxas: each installed one runs, and is counted.

    python -m tests.dropin [--install FOLDER] [--only WORD ...]

Runs `tests/orchestrator/test_programs.py` and `test_drop_in.py`, and prints for each program how many runs passed,
failed, or were skipped, and why. ``--install`` makes a private environment in the folder for each of Triton, Warp and
TileLang (they are large; several cannot share one) and looks for them there. nvcc, CMake, clang and GCC are the
machine's.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "orchestrator"
#: The packages to install for each Python program.
NEEDS = {"triton": ["triton"], "warp": ["warp-lang"], "tilelang": ["tilelang"]}


class Counts:
    """A pytest plugin that counts by program: the part of the test's name after `test_`."""

    def __init__(self) -> None:
        self.outcomes: dict[str, Counter[str]] = defaultdict(Counter)
        self.reasons: dict[str, set[str]] = defaultdict(set)
        self.seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = re.sub(r"\[.*", "", report.nodeid.split("::")[1]).removeprefix("test_")
        self.seconds[name] += report.duration
        if report.when == "call" or report.outcome != "passed":
            self.outcomes[name][report.outcome] += 1
        if report.skipped and isinstance(report.longrepr, tuple):
            self.reasons[name].add(report.longrepr[2].removeprefix("Skipped: "))


def install(folder: Path) -> list[Path]:
    """An environment for each Python program; existing ones are kept."""
    out = []
    for name, packages in NEEDS.items():
        python = folder / name / "bin" / "python"
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(folder / name)], check=True)
            subprocess.run([str(python), "-m", "pip", "install", "-q", *packages], check=False)
        out.append(python)
    return out


def main(argv: list[str] | None = None) -> int:
    """Run; 1 if something failed."""
    p = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    p.add_argument("--install", type=Path, help="folder for environments with the Python programs")
    p.add_argument("--only", nargs="*", default=[], help="programs")
    a = p.parse_args(argv)
    if a.install is not None:
        known = os.environ.get("ORIAS_PYTHONS", "")
        os.environ["ORIAS_PYTHONS"] = ":".join([*map(str, install(a.install)), *filter(None, [known])])
    counts = Counts()
    words = ["-q", "-p", "no:cacheprovider", str(HERE / "test_programs.py"), str(HERE / "test_drop_in.py")]
    if a.only:
        words += ["-k", " or ".join(a.only)]
    code = pytest.main(words, plugins=[counts])
    print(f"{'program':44} passed failed skipped  seconds")
    for name, got in counts.outcomes.items():
        why = "; ".join(sorted(counts.reasons[name]))
        print(
            f"{name:44} {got['passed']:6} {got['failed']:6} {got['skipped']:7} {counts.seconds[name]:8.1f}"
            + (f"  {why}" if why else "")
        )
    total: Counter[str] = sum(counts.outcomes.values(), Counter())
    print(f"{len(counts.outcomes)} programs and uses, {sum(total.values())} runs: {dict(total)}")
    return int(code != pytest.ExitCode.OK)


if __name__ == "__main__":
    sys.exit(main())
