"""Coverage of the ISA rows on cubins: decode every distinct word, compare text with nvdisasm and bits after encoding.

    python -m tests.isa.coverage --sm 90 FOLDER_OR_CUBIN...

Prints distinct words, wrong (text or bits differ) and refused, and the first examples grouped by mnemonic.
"""

from __future__ import annotations

import argparse
import re
import struct
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from ir_format import isa
from ir_format.diag import CompileError
from ir_format.isa.machine import Refusal, Target
from tests.isa.probe import BATCH, texts


def code_words(cubin: Path) -> Iterable[int]:
    """Every instruction word of the executable sections of a 64-bit ELF file."""
    data = cubin.read_bytes()
    (table,) = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    for i in range(count):
        _, kind, flags, _, offset, length = struct.unpack_from("<IIQQQQ", data, table + i * size)
        if kind == 1 and flags & 4:
            for at in range(offset, offset + length, 16):
                yield int.from_bytes(data[at : at + 16], "little")


def distinct_words(paths: Iterable[Path]) -> list[int]:
    """Distinct words of cubins and folders of cubins, in first-seen order."""
    seen: dict[int, None] = {}
    for path in paths:
        files = sorted(path.glob("*.cubin")) if path.is_dir() else [path]
        for file in files:
            seen.update(dict.fromkeys(code_words(file)))
    return list(seen)


class Report:
    """What :func:`check` found: counts and (mnemonic -> examples)."""

    def __init__(self) -> None:
        self.words = self.wrong = self.refused = self.undefined = 0
        self.examples: dict[str, list[str]] = defaultdict(list)


def spaces(text: str) -> str:
    """The text with one blank where nvdisasm pads."""
    return re.sub(r"\s+", " ", text).rstrip()


def fault(target: Target, word: int, pc: int, text: str) -> str:
    """What is wrong with our reading of a word that nvdisasm prints as ``text`` ('' = refuses): '' if nothing is.
    Refusals are not wrong."""
    found = target.decode_plan(word, pc)
    if isinstance(found, Refusal):
        return ""
    inst, plan = found
    ours = target.format(inst, pc, plan)
    if spaces(ours) != spaces(text):
        return f"text {word:032x} {spaces(text) or '-'} | {ours}"
    try:
        again = target.encode(inst, pc)
    except CompileError as error:
        return f"encode {word:032x} {text} | {error}"
    if again != word:
        return f"bits {word:032x} {text} | {again ^ word:#x}"
    return ""


def check(words: list[int], sm: int | str) -> Report:
    """Compare our decode, print, encode with nvdisasm's text and the words themselves."""
    target = isa.target(sm)
    report = Report()
    report.words = len(words)
    for i, (word, text) in enumerate(zip(words, texts(words, sm))):
        pc = 16 * (i % BATCH)
        found = target.decode_plan(word, pc)
        name = (re.sub(r"^@\S+ ", "", text).split(" ")[0] or "?").partition(".")[0]
        if isinstance(found, Refusal):
            report.refused += 1
            report.undefined += not text
            report.examples[name].append(f"refused {word:032x} {text or '(nvdisasm too)'} | {found.reason}")
            continue
        why = fault(target, word, pc, text)
        if why:
            report.wrong += 1
            report.examples[name].append(why)
    return report


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--sm", required=True)
    parser.add_argument("--show", type=int, default=2)
    parser.add_argument("--op", default="")
    parser.add_argument("--full", action="store_true")
    args = parser.parse_args()
    report = check(distinct_words(args.paths), args.sm)
    for name in sorted(report.examples, key=lambda n: -len(report.examples[n])):
        if args.op and name not in args.op.split(","):
            continue
        print(f"{name}: {len(report.examples[name])}")
        forms: set[str] = set()
        for example in report.examples[name]:
            key = (
                example[:4]
                + re.sub(r"@\S+ ", "", example).split(" ")[2]
                + (re.sub(r"U?[RP]\d+|0x[0-9a-f]+", "", example.split("|")[-1]) if args.full else "")
            )
            if key not in forms and len(forms) < args.show:
                forms.add(key)
                print("   ", example[:230])
    print(
        f"sm_{args.sm}: {report.words} words, {report.wrong} wrong, {report.refused} refused ({report.undefined} by "
        f"nvdisasm too)"
    )


if __name__ == "__main__":
    main()
