"""The whole corpus of a target, compiled and compared: the figures of docs/isa.md.

    python -m tests.isa.campaign OUT [--sm 75,80,90a] [--keep] [--show 5]

One-operation kernels at -O3 and -O0, every form of the descriptor table at -O0, the tests' PTX files under many
options. Then one line per target: distinct words, wrong, refused, with the list of refusals. It takes minutes per
target. Cubins stay in ``OUT/SM``; ``--keep`` compares existing ones. sm_107a is compiled by ptxas 13.5.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.isa.corpus import compile_all
from tests.isa.corpus_files import FAMILY, OPTIONS, SHORT, compile_files
from tests.isa.corpus_table import compile_table
from tests.isa.coverage import check, distinct_words
from tests.isa.listings import ptx_files

TARGETS = ("75", "80", "86", "87", "88", "89", "90a", "100a", "103a", "110a", "120a", "121a")


def compile_target(out: Path, sm: str) -> None:
    """All cubins of a target, in four folders of ``out``."""
    compile_all(out / "o3", sm, "3")
    compile_all(out / "o0", sm, "0")
    compile_table(out / "t0", sm, "0")
    compile_files(out / "f", sm, ptx_files(FAMILY.get(sm, sm)), SHORT if sm in FAMILY else tuple(OPTIONS))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--sm", default=",".join(TARGETS))
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--show", type=int, default=5)
    args = parser.parse_args()
    for sm in args.sm.split(","):
        out = args.out / sm
        if not args.keep:
            compile_target(out, sm)
        report = check(distinct_words(sorted(p for p in out.iterdir() if p.is_dir())), sm)
        print(
            f"sm_{sm}: {report.words} words, {report.wrong} wrong, {report.refused} refused ({report.undefined} by "
            f"nvdisasm too)",
            flush=True,
        )
        for name, examples in report.examples.items():
            print(*(f"    {name}: {x}" for x in examples[: args.show]), sep="\n")


if __name__ == "__main__":
    main()
