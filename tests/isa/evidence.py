"""Which rows ptxas has been seen to use: generates ``ir_format/isa/rows/seen.py`` from cubins of the corpus.

    python -m tests.isa.evidence FOLDER_OR_CUBIN... [--fresh]     adds what the cubins hold to the table
    python -m tests.isa.evidence --show IMAD [--sm 90]            rows of a mnemonic with where they come from
    python -m tests.isa.evidence --unseen                         rows that no cubin has shown, by file

A word counts if the decoder accepts it and the encoder reproduces its bits; ``tests.isa.coverage`` compares the texts.
"""

from __future__ import annotations

import argparse
import textwrap
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from ir_format import isa
from ir_format.isa import evidence
from ir_format.isa.machine import Refusal
from stages.disasm.cubin import CubinError, read_cubin
from tests.isa.coverage import distinct_words

TABLE = Path(evidence.__file__).parent / "rows" / "seen.py"
HEAD = (
    '"""On which SMs ptxas was seen to write a word of a row, by the names of :func:`ir_format.isa.evidence.keys`. '
    'Made by\ntests/isa/evidence.py."""\n'
)


def by_sm(paths: Iterable[Path]) -> dict[int, list[Path]]:
    """Cubins of files and folders by their SM."""
    out: dict[int, list[Path]] = defaultdict(list)
    for path in paths:
        for file in sorted(path.glob("*.cubin")) if path.is_dir() else [path]:
            try:
                out[read_cubin(file.read_bytes()).sm].append(file)
            except CubinError as error:
                print(f"{file}: {error}")
    return out


def collect(paths: Iterable[Path], known: dict[str, frozenset[int]]) -> dict[str, frozenset[int]]:
    """The table with the cubins' words added; rows that no longer exist are dropped."""
    names = evidence.keys()
    out = {key: known.get(key, frozenset()) for key in names.values()}
    for sm, files in by_sm(paths).items():
        target = isa.target(sm)
        short: dict[int, str] = {}
        for word in distinct_words(files):
            found = target.decode_plan(word)
            if isinstance(found, Refusal) or target.encode(found[0]) != word:
                continue
            row = found[1].form.row
            if id(row) not in short:
                short[id(row)] = names[target.written(row)]
            key = short[id(row)]
            if sm not in out[key]:
                out[key] |= {sm}
    return out


def render(table: dict[str, frozenset[int]]) -> str:
    """The module: names grouped by their SMs, the largest group first."""
    groups: dict[str, list[str]] = defaultdict(list)
    for key, sms in table.items():
        if sms:
            groups[evidence.ranges(sms)].append(key)
    lines = []
    for head in sorted(groups, key=lambda h: (-len(groups[h]), h)):
        lines += textwrap.wrap(
            f"{head}: {' '.join(groups[head])}",
            118,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    return HEAD + '\nfrom __future__ import annotations\n\nTEXT = """\n' + "\n".join(lines) + '\n"""\n'


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--show", default="")
    parser.add_argument("--sm", type=int, default=90)
    parser.add_argument("--unseen", action="store_true")
    args = parser.parse_args()
    if args.paths:
        TABLE.write_text(render(collect(args.paths, {} if args.fresh else evidence.seen())))
    if args.show:
        target = isa.target(args.sm)
        for row in target.rows(args.show):
            print(f"{target.provenance(row):<14}{target.written(row)}")
    if args.unseen:
        evidence.seen.cache_clear()
        missing = [key for key in evidence.keys().values() if not evidence.seen().get(key)]
        print(f"{len(missing)} of {len(evidence.keys())} rows unseen:", *missing)


if __name__ == "__main__":
    main()
