"""Compares the whole chain with ptxas's full compilation: verdict, and first line of the messages.

    python -m tests.parse.full FILE_OR_FOLDER... [--options "-arch sm_80 -c"] [--every N]      files, each once by
    content
    python -m tests.parse.full --cases 2000 [--seed S] [--targets sm_80,sm_90a]                one generated instruction
    a module
    python -m tests.parse.full --modules                                                       the whole modules of
    module_cases

``--journal FILE`` keeps the result of each case on one line. A second run takes the results that it finds there, so
that a long campaign can be stopped and continued. ``--again`` takes only ptxas's side from there and compiles each case
anew here.

ptxas refuses much in code generation only, which its parse-only mode (`tests.parse.agreement`) does not show. The
comparison runs in one process; each case is compiled alone on both sides.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import itertools
import json
import random
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import redirect_stderr
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from orchestrator.conflicts import UsageError
from orchestrator.options import read, stream_options
from stages.plumbing.back_end import elf_from_stream
from stages.plumbing.chain import MIDDLE
from stages.plumbing.front_end import parse_to_stream
from stages.plumbing.runner import Flags, run_stage
from tests.oracle import find
from tests.parse.generate import TARGETS, accepted, kernel, mutated
from tests.parse.module_cases import CASES

_PATH = re.compile(r"[^\s']*/k\.ptx|(?<=')k\.ptx(?=')|(?<=ptxas )k\.ptx")


class Verdict(NamedTuple):
    """Accepted or not, and the messages."""

    taken: bool
    lines: tuple[str, ...]

    @property
    def first(self) -> str:
        """The first line."""
        return self.lines[0] if self.lines else ""


def ours(data: bytes, options: list[str]) -> Verdict:
    """The chain in this process."""
    try:
        cl = read([*options, "k.ptx"])
    except UsageError as e:
        return Verdict(False, (f"ptxas fatal   : {e}",))
    target = cl.values.get("gpu-name", "sm_75")
    said = io.StringIO()
    said.writelines(m.render() + "\n" for m in cl.messages)
    with redirect_stderr(said):
        code = _chain(data, target, stream_options(cl, target))
    return Verdict(code == 0, _lines(said.getvalue()))


def _chain(data: bytes, target: str, options: dict[str, object]) -> int:
    out = io.BytesIO()
    code = parse_to_stream(
        [("k.ptx", data)],
        target,
        options,  # type: ignore[arg-type]
        out.write,
        say=sys.stderr.write,  # type: ignore[arg-type]
    )
    for stage in MIDDLE:
        if code:
            return code
        inp, out = io.BytesIO(out.getvalue()), io.BytesIO()
        code = run_stage(stage, inp, out, Flags(quiet=True))
        if code == 1:  # a unit was rejected: its diagnostics come last, as in the orchestrator
            code = 0
    return code or elf_from_stream(io.BytesIO(out.getvalue()), lambda data: None)


def theirs(data: bytes, options: list[str], folder: Path, name: str = "ptxas") -> Verdict:
    """ptxas as a whole."""
    tool = find(name)
    if tool is None:
        raise SystemExit(f"{name} is not installed")
    path = folder / "k.ptx"
    path.write_bytes(data)
    try:
        done = subprocess.run(
            [str(tool), *options, "-o", str(folder / "k.cubin"), str(path)],
            capture_output=True,
            check=False,
            timeout=600,
        )
    except subprocess.TimeoutExpired:
        return Verdict(False, ("ptxas does not end",))
    lines = _lines((done.stdout + done.stderr).decode("latin-1"))
    if done.returncode < 0 or done.returncode > 250 and not lines:
        lines = (f"ptxas crashed ({done.returncode})",)
    return Verdict(done.returncode == 0, lines)


def _lines(text: str) -> tuple[str, ...]:
    return tuple([_PATH.sub("FILE", line) for line in text.splitlines() if line.strip()])


class Tally:
    """Counts, and examples of what differs."""

    def __init__(self, journal: Path | None = None, release: str = "13.0", again: bool = False) -> None:
        self.journal = journal
        self.again = again
        self.tool = "ptxas" if release == "13.0" else f"ptxas-{release}"
        self.release = release
        self.known: dict[str, tuple[Verdict, Verdict]] = {}
        if journal is not None and journal.exists():
            for line in journal.read_text().splitlines():
                key, a, b = json.loads(line)
                self.known[key] = Verdict(a[0], tuple(a[1])), Verdict(b[0], tuple(b[1]))
        self.counts: Counter[str] = Counter()
        self.wrong: dict[str, list[str]] = defaultdict(list)
        self.slow: list[tuple[float, str]] = []

    def one(self, name: str, data: bytes, options: list[str], folder: Path) -> None:
        """Judge one module."""
        a, b = self.both(name, data, options, folder)
        self.counts["cases"] += 1
        if a.first.startswith("ptxas crashed") or a.first.startswith("ptxas does not"):
            self.counts["oracle crashed"] += 1
            return
        kind = re.sub(r"'[^']*'|\d+", "*", (b if a.taken else a).first)
        if a.taken != b.taken:
            self.counts["verdict differs"] += 1
            self.wrong[f"{'only we refuse' if a.taken else 'only ptxas refuses'}: {kind}"].append(
                f"{name}: {(b if a.taken else a).first}"
            )
            return
        self.counts["taken" if a.taken else "refused"] += 1
        if a.first == b.first:
            self.counts["first line equal"] += 1
        else:
            self.wrong[f"first line: {kind}"].append(f"{name}: {a.first}  <>  {b.first}")

    def both(self, name: str, data: bytes, options: list[str], folder: Path) -> tuple[Verdict, Verdict]:
        """The results of ptxas and orias, perhaps from an earlier run."""
        key = hashlib.sha256(data + repr(options).encode()).hexdigest()[:24]
        found = self.known.get(key)
        if found is not None and not self.again:
            return found
        a = found[0] if found is not None else theirs(data, options, folder, self.tool)
        start = time.process_time()
        b = ours(data, [*options, "--release", self.release])
        self.slow.append((time.process_time() - start, name))
        if self.journal is not None:
            with self.journal.open("a") as f:
                f.write(json.dumps([key, [a.taken, a.lines], [b.taken, b.lines]]) + "\n")
        return a, b

    def show(self, most: int) -> None:
        """Print it."""
        for key in sorted(self.wrong, key=lambda k: -len(self.wrong[k])):
            print(f"{len(self.wrong[key]):6} {key}")
            for text in self.wrong[key][:most]:
                print("         ", text)
        n = max(1, self.counts["cases"] - self.counts["oracle crashed"])
        same = self.counts["taken"] + self.counts["refused"]
        print(dict(self.counts))
        print(
            f"verdicts equal: {same} of {n} = {100 * same / n:.2f} %; first line equal: "
            f"{self.counts['first line equal']} of {same}"
        )
        print("slowest:", [f"{t:.1f} s {name}" for t, name in sorted(self.slow, reverse=True)[:5]])


def files(paths: list[Path]) -> Iterator[tuple[str, bytes]]:
    """PTX in files (also objects of GCC, which are text), without duplicate contents."""
    seen: set[bytes] = set()
    for path in paths:
        for p in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if not p.is_file() or p.suffix not in (".ptx", ".o", ".s"):
                continue
            data = p.read_bytes()
            digest = hashlib.sha256(data).digest()
            if digest not in seen and b".version" in data:
                seen.add(digest)
                yield str(p), data


def generated(target: str, seed: int, count: int, versions: tuple[str, ...] = ()) -> Iterator[tuple[str, bytes]]:
    """Modules of one instruction: one half as rows make them, one half changed in one step; under each of ``versions``
    in turn, if given. Each target has different cases."""
    rng = random.Random(f"{seed} {target}")
    good = list(accepted(target))
    cases = rng.sample(good, min(count // 2, len(good)))
    cases += itertools.islice(mutated(target, rng.randrange(1 << 31), count), count - len(cases))
    known = [v for v in versions if "107" not in target or v >= "9.4"]
    for n, case in enumerate(cases):
        if known and case.kind != "version":
            case = replace(case, version=known[n % len(known)])
        yield (
            f"[{case.version} {case.target} {case.row} {case.kind}] {case.text}",
            kernel([case.text], case.version, case.target)[0].encode("latin-1"),
        )


def arch_of(target: str, data: bytes) -> str:
    """The -arch for a module's `.target`: the same if ptxas still knows it."""
    m = re.search(rb"\.target\s+(sm_\w+)", data)
    name = m.group(1).decode() if m else target
    number = int(re.sub(r"\D", "", name))
    return "sm_75" if number < 75 else "sm_86" if number == 82 else name


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--options", default="-arch sm_80")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--cases", type=int, default=0, help="generated modules per target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument(
        "--release", default="13.0", help="the ptxas to be compared with, and orias as it: 13.0 or 13.5"
    )
    parser.add_argument("--versions", default="", help="PTX versions for the generated cases, in turn: 9.1,9.2,9.3")
    parser.add_argument("--modules", action="store_true")
    parser.add_argument("--show", type=int, default=3)
    parser.add_argument("--journal", type=Path, help="keep what was said here, and go on from there")
    parser.add_argument("--again", action="store_true", help="take from the journal what ptxas said only")
    args = parser.parse_args()
    tally = Tally(args.journal, args.release, args.again)
    versions = tuple(args.versions.split(",")) if args.versions else ()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        options = shlex.split(args.options)
        for n, (label, data) in enumerate(files(args.paths)):
            if n % args.every == 0:
                tally.one(label, data, options, folder)
                if tally.counts["cases"] % 200 == 0:
                    print(dict(tally.counts), flush=True)
        if args.modules:
            for label, text in CASES.items():
                data = text.encode("latin-1")
                tally.one(label, data, ["-arch", arch_of("sm_90", data)], folder)
        for target in args.targets.split(",") if args.cases else ():
            for label, data in generated(target, args.seed, args.cases, versions):
                tally.one(label, data, ["-arch", arch_of(target, data)], folder)
            print(target, dict(tally.counts), flush=True)
    tally.show(args.show)


if __name__ == "__main__":
    main()
