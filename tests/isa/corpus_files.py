"""Cubins of whole PTX files under many options of ptxas, for :mod:`tests.isa.coverage`: debug code, relocatable code,
spills, bounds checks.

    python -m tests.isa.corpus_files OUT [FILE.ptx...] --sm 90a [--short]

Without files: every PTX file of the tests that is for the SM (or the first of its family) or for no particular one; its
.target line is replaced. Prints (cubins, refusals).
"""

from __future__ import annotations

import argparse
import re
import subprocess
from pathlib import Path

from tests import oracle
from tests.isa.corpus import ptx_version
from tests.isa.listings import ptx_files

#: Options of ptxas by a short name.
OPTIONS = {
    "O3": ["-O3"],
    "O0": ["-O0"],
    "c": ["-c"],
    "O1": ["-O1"],
    "O2": ["-O2"],
    "g": ["-g"],
    "spill": ["--maxrregcount", "24"],
    "lineinfo": ["-lineinfo"],
    "bounds": ["-sp-bounds-check"],
    "preserve": ["-c", "-O0", "-preserve-relocs"],
    "suppress": ["-suppress-debug-info", "-g"],
}
#: The options that differ most from the others.
SHORT = ("O3", "g", "c", "spill")


#: SMs without their own files, and whose files they use.
FAMILY = {
    "86": "80",
    "87": "80",
    "88": "80",
    "89": "80",
    "103a": "100a",
    "107a": "100a",
    "110a": "100a",
    "121a": "120a",
}


def compile_files(out: Path, sm: str, files: list[Path], options: tuple[str, ...] = tuple(OPTIONS)) -> tuple[int, int]:
    """Compile the files with each set of options into ``out``; (cubins, refusals by ptxas)."""
    out.mkdir(parents=True, exist_ok=True)
    ptxas = str(oracle.find(oracle.tool_for(sm)))
    path = out / "in.ptx"
    good = bad = 0
    for k, file in enumerate(files):
        text = re.sub(r"^\s*\.target\s+(?:sm|compute)_\d+[af]?", f".target sm_{sm}", file.read_text(), flags=re.M)
        if ptx_version(sm) > "9.0":
            text = re.sub(r"^\s*\.version\s+[\d.]+", f".version {ptx_version(sm)}", text, flags=re.M)
        path.write_text(text)
        for name in options:
            cubin = out / f"f{k:04d}_{name}.cubin"
            done = subprocess.run(
                [ptxas, f"-arch=sm_{sm}", *OPTIONS[name], str(path), "-o", str(cubin)], capture_output=True, check=False
            )
            good, bad = good + (done.returncode == 0), bad + (done.returncode != 0)
    return good, bad


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--sm", default="90a")
    parser.add_argument("--short", action="store_true")
    args = parser.parse_args()
    print(
        args.sm,
        compile_files(
            args.out,
            args.sm,
            args.files or ptx_files(FAMILY.get(args.sm, args.sm)),
            SHORT if args.short else tuple(OPTIONS),
        ),
    )


if __name__ == "__main__":
    main()
