"""Damaged and random words: nvdisasm must accept every word that the decoder accepts, with the same text.

    python -m tests.isa.randomwords --sm 90 --count 40 [--body 1000] [--random 100000] [--files half,tensor] [--missed]

``--count`` words of every form get one to three flipped bits; ``--body`` words of every opcode get random operands and
modifiers; ``--random`` words are uniform. ``--missed`` reverses the question: it lists, by mnemonic, words that
nvdisasm prints without an undefined value and our decoder refuses, unless some row writes that text (the word is then
another spelling: bits that nvdisasm ignores).
"""

from __future__ import annotations

import argparse
import random
import re
from collections import defaultdict
from collections.abc import Iterator

from ir_format import isa
from ir_format.diag import CompileError
from ir_format.isa import rows
from ir_format.isa.machine import Refusal, Target
from tests.isa.coverage import spaces
from tests.isa.generate import CTL, random_word
from tests.isa.probe import texts

BATCH = 8192
BODY = (1 << 92) - (1 << 12)
MODIFIERS = (1 << 92) - (1 << 72) | (1 << 64) - (1 << 40)
FIELDS = [*range(9, 12), *range(16, 105), *range(122, 126)]


def mnemonics_of(files: str) -> set[str]:
    """Mnemonics with rows in the named row files (``half,tensor``)."""
    out: set[str] = set()
    for name in files.split(","):
        out.update(re.findall(r"^([A-Z][A-Z0-9_]*)[.\w]*\s+[0-9a-f]{3}", getattr(rows, name).TEXT, re.M))
    return out


def flipped_words(target: Target, count: int, seed: int, ops: set[str]) -> Iterator[int]:
    """Words of every form with one to three bits flipped outside guard and control."""
    rng = random.Random(seed)
    for op in target.mnemonics():
        if ops and op not in ops:
            continue
        for form in target.forms(op):
            for _ in range(count):
                word = random_word(form, rng)
                if word is None:
                    continue
                for _ in range(rng.randrange(1, 4)):
                    word ^= 1 << rng.choice(FIELDS)
                yield word


def body_words(target: Target, count: int, seed: int, ops: set[str]) -> Iterator[int]:
    """Random operand and modifier bits with every known opcode, ``count`` each: few of them are defined, all look
    alike."""
    rng = random.Random(seed)
    opcodes = sorted({f.opcode for op in target.mnemonics() if not ops or op in ops for f in target.forms(op)})
    for opcode in opcodes:
        for _ in range(count):
            word = rng.getrandbits(128) & BODY
            for _ in range(rng.randrange(4)):
                # fewer ones if another bit more often makes a word undefined
                word &= ~(rng.getrandbits(128) & MODIFIERS)
            yield word | opcode | CTL | rng.getrandbits(3) << 122 & rng.getrandbits(128)


def undefined(text: str) -> bool:
    """nvdisasm prints the word, but names a value that the instruction set does not define."""
    return not text or "INVALID" in text or "???" in text


def written(target: Target, text: str, pc: int) -> bool:
    """Whether some row writes this text."""
    try:
        return spaces(target.format(target.parse(text, pc), pc)) == spaces(text)
    except CompileError:
        return False


def compare(
    target: Target, words: list[int], wrong: dict[str, list[str]], missed: dict[str, list[str]] | None = None
) -> int:
    """Number of words that the decoder accepts; those that nvdisasm reads differently go to ``wrong``, words that only
    nvdisasm reads to ``missed``."""
    taken = 0
    for start in range(0, len(words), BATCH):
        part = words[start : start + BATCH]
        if missed is None:
            part = [w for w in part if target.decode_plan(w)]
        for k, (word, text) in enumerate(zip(part, texts(part, target.sm, BATCH))):
            found = target.decode_plan(word, 16 * k)
            if isinstance(found, Refusal):
                if missed is not None and not undefined(text) and not written(target, text, 16 * k):
                    missed[re.sub(r"^@\S+ ", "", text).split(" ")[0].split(".")[0]].append(
                        f"{word:032x} {spaces(text)} | {found.reason}"
                    )
                continue
            taken += 1
            inst, plan = found
            ours = target.format(inst, 16 * k, plan)
            if spaces(ours).rstrip() != spaces(text):
                wrong[f"{plan.form.row.name}/{plan.form.letters}"].append(f"{word:032x} {spaces(text) or '-'} | {ours}")
            elif target.encode(inst, 16 * k) != word:
                wrong[f"{plan.form.row.name}/{plan.form.letters}"].append(
                    f"{word:032x} {spaces(text)} | bits {target.encode(inst, 16 * k) ^ word:#x}"
                )
    return taken


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sm", required=True)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--body", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", default="")
    parser.add_argument("--op", default="")
    parser.add_argument("--show", type=int, default=2)
    parser.add_argument("--missed", action="store_true")
    args = parser.parse_args()
    target = isa.target(args.sm)
    ops = mnemonics_of(args.files) if args.files else set(filter(None, args.op.split(",")))
    rng = random.Random(args.seed)
    words = [*flipped_words(target, args.count, args.seed, ops), *body_words(target, args.body, args.seed, ops)]
    words += [rng.getrandbits(128) for _ in range(args.random)]
    wrong: dict[str, list[str]] = defaultdict(list)
    missed: dict[str, list[str]] | None = defaultdict(list) if args.missed else None
    taken = compare(target, words, wrong, missed)
    for title, table in (("wrong", wrong), ("missed", missed or {})):
        for name, items in table.items():
            print(f"{title} {name}: {len(items)}")
            for item in items[: args.show]:
                print("   ", re.sub(r" {2,}", " ", item)[:250])
    print(
        f"sm_{args.sm}: {len(words)} words, {taken} taken, {sum(map(len, wrong.values()))} wrong in {len(wrong)} forms"
    )


if __name__ == "__main__":
    main()
