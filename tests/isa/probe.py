"""Probe encodings with nvdisasm: flip bits of a known word, read what changes.

    python -m tests.isa.probe flip 90 000e620002000c0000000000020272381 [--bits 72-104]
    python -m tests.isa.probe field 90 WORD 73-75        (every value of a field)

A flip that nvdisasm refuses shows as ``-``; one that changes nothing shows as ``=``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from tests import oracle

#: Words of one nvdisasm call.
BATCH = 16384


def texts(words: Iterable[int], sm: int | str, batch: int = BATCH) -> list[str]:
    """nvdisasm's text of each word, '' if refused. Word i is at address ``16 * (i % batch)``."""
    return oracle.disasm_batches(list(words), sm, batch)


def parse_range(text: str) -> list[int]:
    """``72-104,111`` as a list of bits."""
    out: list[int] = []
    for part in text.split(","):
        low, _, high = part.partition("-")
        out += range(int(low), int(high or low) + 1)
    return out


def flip(sm: str, word: int, bits: list[int]) -> list[str]:
    """Lines ``bit: text`` for each flipped bit."""
    got = texts([word, *(word ^ 1 << b for b in bits)], sm)
    lines = [f"sm_{sm} {word:032x} {got[0]}"]
    lines += [f"  {b}: {'-' if not t else '=' if t == got[0] else t}" for b, t in zip(bits, got[1:])]
    return lines


def field(sm: str, word: int, bits: list[int]) -> list[str]:
    """Lines ``value: text`` for each value of a field (bits least significant first)."""
    mask = sum(1 << b for b in bits)
    values = []
    for v in range(1 << len(bits)):
        values.append((word & ~mask) | sum(1 << b for i, b in enumerate(bits) if v >> i & 1))
    got = texts(values, sm)
    return [f"  {v:#x}: {t or '-'}" for v, t in enumerate(got)]


def main() -> None:
    """Command line."""
    command, sm, word, *rest = sys.argv[1:]
    if command == "flip":
        bits = parse_range(rest[0]) if rest else parse_range("9-11,62-63,72-104,122-125")
        print("\n".join(flip(sm, int(word, 16), bits)))
    else:
        print("\n".join(field(sm, int(word, 16), parse_range(rest[0]))))


if __name__ == "__main__":
    main()
