"""Checks PTX files that compilers wrote: accepted as by ptxas, printed and parsed to the same IR, and to the same
code.

    python -m tests.parse.corpus_check [--code] FOLDER_OR_FILE...

With `--code` ptxas compiles each file and its printed form, and the sections of code and constants must be equal.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from pathlib import Path

from stages.parse import parse_text
from stages.parse.printer import print_module
from tests import oracle
from tests.parse.agreement import _ptxas
from tests.parse.gates import architecture
from tests.parse.helpers import without_lines


def _code(text: str, arch: str, folder: Path) -> dict[str, bytes] | None:
    from elftools.elf.elffile import ELFFile

    cubin = oracle.compile_ptx(text, arch)
    if not isinstance(cubin, Path):
        return None
    with cubin.open("rb") as f:
        return {
            s.name: s.data()
            for s in ELFFile(f).iter_sections()
            if s.name.startswith((".text", ".nv.constant", ".nv.global"))
        }


def check(path: Path, code: bool, folder: Path) -> tuple[str, int]:
    """What is wrong with a file ("" if nothing), and its number of lines."""
    text = path.read_text()
    found = re.search(r"^\s*\.target\s+(sm_\w+)", text, re.MULTILINE)
    arch = architecture(found.group(1)) if found else "compute_90"
    theirs = [m for m in _ptxas(text, arch) if m[1] in ("error", "fatal")]
    module, units, diagnostics = parse_text(text, "k.ptx", arch)
    errors = [d for d in diagnostics if d.severity in ("error", "fatal")]
    lines = text.count("\n")
    if bool(theirs) != bool(errors):
        return f"verdict: ptxas {theirs[:1]}, ours {[(d.line, d.message) for d in errors[:2]]}", lines
    if module is None:
        return "", lines
    printed = print_module(module, units)
    again, units_again, problems = parse_text(printed, "k.ptx", arch)
    if again is None:
        return f"printed form refused: {problems[0].message}", lines
    if without_lines(again) != without_lines(module) or without_lines(units_again) != without_lines(units):
        return "printed form has another IR", lines
    if code:
        number = arch.removeprefix("compute_")
        if _code(text, number, folder) != _code(printed, number, folder):
            return "printed form has other code", lines
    return "", lines


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--code", action="store_true")
    args = parser.parse_args()
    files = [f for p in args.paths for f in (sorted(p.glob("**/*.ptx")) if p.is_dir() else [p])]
    wrong = total = 0
    with tempfile.TemporaryDirectory() as folder:
        for path in files:
            said, lines = check(path, args.code, Path(folder))
            total += lines
            if said:
                wrong += 1
                print(f"{path}: {said}")
    print(f"{len(files)} files, {total} lines, {len(files) - wrong} in order")


if __name__ == "__main__":
    main()
