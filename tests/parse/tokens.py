"""Deletes, duplicates or replaces one token of a PTX file, and compares the first message with ptxas's.

    python -m tests.parse.tokens [--count N] [--seed S] [--show K] [FILE...]

Without files it takes the repository's kernels.  Prints how often verdict, line, class and text are equal.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter
from pathlib import Path

from stages.parse import parse_text
from tests.parse.agreement import _ptxas, message_class
from tests.parse.helpers import corpus

_TOKEN = re.compile(r'"[^"\n]*"|//[^\n]*|[%$A-Za-z_][\w$]*|\.[\w:]+|\d[\w.]*|\S')
_ARCH = "compute_90a"


def mutate(rng: random.Random, text: str) -> str:
    """One token deleted, doubled, or replaced by another one of the file."""
    tokens = [m for m in _TOKEN.finditer(text) if not m.group().startswith("//")]
    m = rng.choice(tokens)
    kind = rng.randrange(3)
    if kind == 0:
        return text[: m.start()] + text[m.end() :]
    if kind == 1:
        return f"{text[: m.start()]}{m.group()} {text[m.start() :]}"
    return text[: m.start()] + rng.choice(tokens).group() + text[m.end() :]


def compare(texts: list[str]) -> tuple[Counter[str], Counter[tuple[str, str]]]:
    """Counts of equal verdicts, lines, classes and texts; pairs of classes that differ."""
    counts: Counter[str] = Counter()
    differ: Counter[tuple[str, str]] = Counter()
    for text in texts:
        theirs = [m for m in _ptxas(text, _ARCH) if m[1] in ("error", "fatal", "crash")]
        if any(m[1] == "crash" for m in theirs):
            counts["oracle crashed"] += 1
            continue
        _, _, diagnostics = parse_text(text, "k.ptx", _ARCH)
        mine = [(d.line, d.severity, d.message) for d in diagnostics if d.severity in ("error", "fatal")]
        counts["cases"] += 1
        if bool(theirs) != bool(mine):
            differ[(theirs[0][2] if theirs else "accepted", mine[0][2] if mine else "accepted")] += 1
            continue
        counts["verdict equal"] += 1
        if theirs:
            a, b = message_class(theirs[0][2]), message_class(mine[0][2])
            counts["refused by both"] += 1
            counts["line equal"] += theirs[0][0] == mine[0][0]
            counts["class equal"] += a == b
            counts["text equal"] += theirs[0][2] == mine[0][2]
            if a != b:
                differ[(a, b)] += 1
    return counts, differ


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=10)
    parser.add_argument("files", nargs="*", type=Path)
    args = parser.parse_args()
    paths = args.files or [p for p in corpus() if p.stat().st_size < 9000 and p.parent.name in ("sm_90", "hand")]
    files = [p.read_text() for p in paths]
    rng = random.Random(args.seed)
    counts, differ = compare([mutate(rng, rng.choice(files)) for _ in range(args.count)])
    for pair, n in differ.most_common(args.show):
        print(n, pair)
    print(dict(counts))


if __name__ == "__main__":
    main()
