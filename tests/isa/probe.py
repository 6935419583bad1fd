"""Probe encodings with nvdisasm: flip bits of a known word, read what changes.

    python -m tests.isa.probe flip 90 000e620002000c0000000000020272381 [--bits 72-104]
    python -m tests.isa.probe field 90 WORD 73-75        (every value of a field)

A flip that nvdisasm refuses shows as ``-``; one that changes nothing shows as ``=``.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests import oracle

NOP = oracle.NOP_WORD
#: Words of one nvdisasm call.
BATCH = 16384
_LINE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s*(.*?)\s*;?\s*$")
_BAD = re.compile(r"at address 0x([0-9a-f]+)")


def texts(words: Iterable[int], sm: int | str, batch: int = BATCH) -> list[str]:
    """nvdisasm's text of each word, '' where refused. Word i stands at address ``16 * (i % batch)``.

    nvdisasm names every refused word of a file in one call (measured, 13.5), so a batch costs two calls of about 0.3 s.
    """
    items = list(words)
    return [text for i in range(0, len(items), batch) for text in _batch(items[i : i + batch], str(sm))]


def _batch(words: list[int], sm: str) -> list[str]:
    out = [""] * len(words)
    todo = list(words)
    bad: set[int] = set()
    tool = str(oracle.find("nvdisasm"))
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        path = Path(file.name)
        while True:
            path.write_bytes(b"".join(w.to_bytes(16, "little") for w in todo))
            done = subprocess.run([tool, "-b", "SM" + sm, "-ndf", file.name], capture_output=True, text=True, errors="replace", check=False)
            if done.returncode == 0:
                for line in done.stdout.splitlines():
                    m = _LINE.match(line)
                    if m:
                        out[int(m[1], 16) // 16] = m[2]
                for i in bad:
                    out[i] = ""
                return out
            found = {int(at, 16) // 16 for at in _BAD.findall(done.stderr)} - bad
            if not found:
                found = {i for i, word in enumerate(todo) if word == 0}  # refused without an address
            if not found:
                raise RuntimeError(done.stderr)
            bad |= found
            for i in found:
                todo[i] = NOP


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
