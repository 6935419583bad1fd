"""The schedule checker over everything that compiles: it must be silent on ptxas's cubins, and on ours.

    python -m tests.check.sweep [--sm 90a] [--who ptxas|ours] [--opt 0] [--opt 3] [--set kernels,forms,isa,table]
    [--families wmma,mma] [--every N [--first K]] [--keep FOLDER] python -m tests.check.sweep CUBIN_OR_FOLDER...

Sets: *kernels* (the test kernels and the hand-written ones), *forms* (:mod:`tests.cosim.forms`: one kernel for each
form of the descriptor table), *isa* (:mod:`tests.isa.corpus`: the instruction set, with matrix products, textures, bulk
copies), *table* (:mod:`tests.isa.corpus_table`: many forms in one kernel; ptxas alone). ``--every`` takes each N-th
kernel of *forms* and *isa*, from the ``--first`` on. Prints findings grouped by rule with an example, and what could
not be judged or was refused.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path

from stages.check.schedule_checker import Finding, check_bytes
from tests import oracle

SETS = ("kernels", "forms", "isa", "table")
BUNDLE = 30
#: A compiler of a module's text: returns a cubin, or its error output.
Compiler = Callable[[str], "bytes | str"]


class Sweep:
    """Counts of one target, level and side."""

    def __init__(self, title: str, keep: Path | None) -> None:
        self.title = title
        self.keep = keep
        self.cubins = self.instructions = 0
        self.groups: Counter[tuple[str, ...]] = Counter()
        self.examples: dict[tuple[str, ...], Finding] = {}
        self.unjudged: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.began = time.monotonic()

    def judge(self, data: bytes, name: str) -> None:
        """Judge one cubin; ``name``: for its file under ``keep``."""
        if self.keep is not None:
            self.keep.mkdir(parents=True, exist_ok=True)
            (self.keep / f"{name}.cubin").write_bytes(data)
        report = check_bytes(data)
        self.cubins += 1
        self.instructions += report.instructions
        for finding in report.findings:
            key = (
                finding.kind,
                f"{finding.have} of {finding.need}" if finding.kind in ("raw", "waw", "war") else "",
                re.sub(r"SB.*", "", finding.rule),
                _mnemonic(finding.earlier),
                _mnemonic(finding.later),
            )
            self.groups[key] += 1
            self.examples.setdefault(key, finding)
        for text in report.unjudged:
            self.unjudged[re.sub(r"^.*?: (0x[0-9a-f]+:? )?", "", text)] += 1

    def print(self, most: int | None = None) -> None:
        """Print the counts, findings by rule (``most``: the most frequent ones), refusals by reason."""
        seconds = time.monotonic() - self.began
        print(
            f"{self.title}: {self.cubins} cubins, {self.instructions} instructions, "
            f"{sum(self.groups.values())} findings, {sum(self.unjudged.values())} not judged,"
            f" {sum(self.refused.values())} kernels refused, {seconds:.0f} s",
            flush=True,
        )
        for key, count in self.groups.most_common(most):
            print(f"{count:6} {self.examples[key]}")
        for what, counts in (("not judged", self.unjudged), ("refused", self.refused)):
            for text, count in counts.most_common(12):
                print(f"{count:6} {what}: {text}")
        sys.stdout.flush()


def _mnemonic(text: str) -> str:
    return next((w for w in text.split()[1:] if not w.startswith("@")), "?").partition(".")[0]


def compiler(arch: str, who: str, level: int) -> Compiler:
    """ptxas or our chain."""
    if who == "ptxas":

        def theirs(text: str) -> bytes | str:
            got = oracle.compile_ptx(text, arch, f"-O{level}")
            return got.read_bytes() if isinstance(got, Path) else got.stderr

        return theirs
    from orchestrator.api import ChainError, compile_ptx

    def ours(text: str) -> bytes | str:
        try:
            return compile_ptx(text, f"sm_{arch}", {"opt-level": level})
        except ChainError as error:
            return str(error)

    return ours


def modules(sweep: Sweep, compile_: Compiler, head: str, kernels: list[str], name: str) -> None:
    """Judge kernels in bundles, halved if the compiler refuses one."""
    todo = [kernels[at : at + BUNDLE] for at in range(0, len(kernels), BUNDLE)]
    todo.reverse()
    count = 0
    while todo:
        part = todo.pop()
        got = compile_(head + "".join(part))
        if isinstance(got, bytes):
            sweep.judge(got, f"{name}{count:05d}")
            count += 1
        elif len(part) == 1:
            sweep.refused[_reason(got)] += 1
        else:
            todo += [part[len(part) // 2 :], part[: len(part) // 2]]


def _reason(said: str) -> str:
    lines = [line for line in said.splitlines() if "error" in line or "fatal" in line] or said.splitlines() or ["?"]
    return re.sub(r"'?k\d+_\w+'?|%\w+|0x[0-9a-f]+|^.*?(error|fatal) *: ", "", lines[0])[:110]


def kernels(sweep: Sweep, compile_: Compiler, arch: str) -> None:
    """The test kernels for the nearest older SM that has them."""
    from tests.check.schedule_mutants import KERNELS
    from tests.check.test_schedule import sources

    number = int(re.sub(r"\D", "", arch))
    near = max(n for p in (KERNELS / "ptx").glob("sm_*") if (n := int(p.name[3:])) <= number)
    for path in sources(near):
        got = compile_(path.read_text())
        if isinstance(got, bytes):
            sweep.judge(got, path.stem)
        else:
            sweep.refused[_reason(got)] += 1


def forms(sweep: Sweep, compile_: Compiler, arch: str, part: slice) -> None:
    """One kernel for each form of the descriptor table that ptxas takes."""
    from tests.cosim.forms import Corpus
    from tests.cosim.forms.base import kernel_text
    from tests.cosim.one_op import CHUNK, ptxas_takes

    made = Corpus(f"sm_{arch}").forms[part]
    for at in range(0, len(made), CHUNK):
        taken = [f for part, _ in ptxas_takes(made[at : at + CHUNK], f"sm_{arch}") for f in part]
        modules(
            sweep,
            compile_,
            f".version 9.0\n.target sm_{arch}\n.address_size 64\n",
            [kernel_text(f, k) + "\n" for k, f in enumerate(taken)],
            f"form{at:05d}_",
        )


def isa_corpus(sweep: Sweep, compile_: Compiler, arch: str, families: set[str] | None, part: slice) -> None:
    """The corpus of the instruction set."""
    from tests.isa.corpus import HEAD, kernels
    from tests.isa.corpus_ops import MODULES

    for family, group in groupby(kernels(families), lambda k: k[0]):
        suffix, extra = MODULES.get(family, ("", ""))
        modules(
            sweep, compile_, HEAD.format(version="9.0", sm=arch + suffix) + extra, [t for _, t in group][part], family
        )


def table(sweep: Sweep, arch: str, level: int) -> None:
    """The front end's accepted forms, many to a kernel, by ptxas."""
    from tests.isa.corpus_table import compile_table

    with tempfile.TemporaryDirectory() as folder:
        _, bad = compile_table(Path(folder), arch, str(level))
        sweep.refused["refused by ptxas"] += bad
        files(sweep, [Path(folder)])


def files(sweep: Sweep, paths: Iterable[Path]) -> None:
    """Existing cubins."""
    for path in _cubins(paths):
        sweep.judge(path.read_bytes(), path.stem)


def _cubins(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        yield from sorted(path.rglob("*.cubin")) if path.is_dir() else [path]


def main(argv: list[str] | None = None) -> int:
    """Command line; see the module's text."""
    parser = argparse.ArgumentParser(description="the schedule checker over the corpora")
    parser.add_argument("--sm", action="append", default=[], help="75, 80, 90a, ... (default 75 80 90a 120a)")
    parser.add_argument("--who", choices=("ours", "ptxas"), default="ptxas")
    parser.add_argument("--opt", action="append", type=int, default=[], help="0 or 3 (default: both)")
    parser.add_argument("--set", default=",".join(SETS))
    parser.add_argument("--families", default="", help="families of the set isa")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for the cubins")
    parser.add_argument("cubins", nargs="*", type=Path)
    options = parser.parse_args(argv)
    if options.cubins:
        sweep = Sweep("cubins", None)
        files(sweep, options.cubins)
        sweep.print()
        return 1 if sweep.groups else 0
    bad = 0
    part = slice(options.first, None, options.every)
    families = set(options.families.split(",")) if options.families else None
    for arch in options.sm or ["75", "80", "90a", "120a"]:
        for level in options.opt or [3, 0]:
            for chosen in options.set.split(","):
                if chosen == "table" and options.who == "ours":
                    continue
                sweep = Sweep(
                    f"sm_{arch} {options.who} -O{level} {chosen}",
                    options.keep / f"{arch}_{options.who}_O{level}_{chosen}" if options.keep else None,
                )
                compile_ = compiler(arch, options.who, level)
                if chosen == "kernels":
                    kernels(sweep, compile_, arch)
                elif chosen == "forms":
                    forms(sweep, compile_, arch, part)
                elif chosen == "isa":
                    isa_corpus(sweep, compile_, arch, families, part)
                elif chosen == "table":
                    table(sweep, arch, level)
                else:
                    parser.error(f"no set {chosen}")
                sweep.print()
                bad += sum(sweep.groups.values())
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
