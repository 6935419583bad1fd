"""Listings of `orias-disasm` against ``nvdisasm -c``, on ptxas's cubins of every PTX file of the tests.

    python -m tests.isa.listings --sm 90 [--hex] [--opt 3,0] [--show 20] [FILE.ptx|FILE.cubin...]

Prints how many listings are equal after runs of blanks are collapsed, and the first differing lines of the
others.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from pathlib import Path

from stages.disasm.cubin import read_cubin
from stages.disasm.listing import print_cubin
from tests import oracle

ROOT = Path(__file__).resolve().parents[1]


def ptx_files(sm: str) -> list[Path]:
    """PTX files of the tests for this SM or for no particular one."""
    number = sm.rstrip("af")
    return [
        p
        for p in sorted(ROOT.rglob("*.ptx"))
        if not re.fullmatch(r"sm_\d+", p.parent.name) or p.parent.name == f"sm_{number}"
    ]


def cubins(files: Iterable[Path], sm: str, opts: tuple[str, ...]) -> list[tuple[str, Path]]:
    """(name, cubin) of the files that ptxas accepts for the SM; PTX for another target has its .target line
    replaced."""
    out: list[tuple[str, Path]] = []
    for file in files:
        if file.suffix == ".cubin":
            out.append((file.name, file))
            continue
        text = re.sub(r"^\.target\s+sm_\d+[af]?", f".target sm_{sm}", file.read_text(), flags=re.M)
        for opt in opts:
            cubin = oracle.compile_ptx(text, sm, f"-O{opt}")
            if isinstance(cubin, Path):
                out.append((f"{file.relative_to(ROOT) if file.is_relative_to(ROOT) else file} -O{opt}", cubin))
    return out


def lines(text: str) -> list[str]:
    """Nonempty lines, with runs of blanks collapsed."""
    found = (re.sub(r"\s+", " ", line).strip() for line in text.splitlines())
    return [line for line in found if line]


def difference(cubin: Path, hex_words: bool = False) -> list[tuple[str, str]]:
    """Pairs (nvdisasm's line, ours) that differ."""
    theirs = lines(oracle.nvdisasm(cubin, "-c", *(["-hex"] if hex_words else [])))
    ours = lines("".join(print_cubin(read_cubin(cubin.read_bytes()), hex_words)))
    pairs = [(a, b) for a, b in zip(theirs, ours) if a != b]
    if len(theirs) != len(ours):
        pairs.append((f"{len(theirs)} lines", f"{len(ours)} lines"))
    return pairs


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--sm", default="90")
    parser.add_argument("--hex", action="store_true")
    parser.add_argument("--opt", default="3,0")
    parser.add_argument("--show", type=int, default=10)
    args = parser.parse_args()
    for sm in args.sm.split(","):
        equal = 0
        found = cubins(args.files or ptx_files(sm), sm, tuple(args.opt.split(",")))
        shown = 0
        for name, cubin in found:
            pairs = difference(cubin, args.hex)
            if not pairs:
                equal += 1
            elif shown < args.show:
                shown += 1
                print(f"{name}: {len(pairs)} lines")
                print(f"    {pairs[0][0][:140]}\n    {pairs[0][1][:140]}")
        print(f"sm_{sm}: {equal} of {len(found)} listings equal", flush=True)


if __name__ == "__main__":
    main()
