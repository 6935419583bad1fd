"""Bad input of every kind: a diagnostic, in bounded time and memory, never an exception."""

from __future__ import annotations

import random
import string
import time

import pytest

from stages.parse import parse_sources, parse_text
from tests.parse.helpers import corpus, kernel

_HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"


def refuse_or_take(text: str) -> None:
    """Parses; the only claim is an orderly end: a module, or at least one error."""
    start = time.monotonic()
    module, _, diagnostics = parse_text(text, "t.ptx", "sm_90a")
    assert module is not None or any(d.severity in ("error", "fatal") for d in diagnostics)
    assert time.monotonic() - start < 5


def _mutate(rng: random.Random, text: str) -> str:
    for _ in range(rng.randint(1, 4)):
        a, b = sorted((rng.randrange(len(text)), rng.randrange(len(text))))
        b = min(b, a + rng.choice((1, 1, 3, 20, 200)))
        kind = rng.randrange(5)
        if kind == 0:
            text = text[:a] + text[b:]
        elif kind == 1:
            text = text[:a] + text[a:b] + text[a:]
        elif kind == 2:
            text = text[:a] + rng.choice("{}[]();,.:@!|<>%_+-*/\"'#0x\0\xff$") + text[a:]
        elif kind == 3:
            c = rng.randrange(len(text))
            text = text[:a] + text[c : c + b - a] + text[b:]
        else:
            text = text[:a] + "".join(rng.choice(string.printable) for _ in range(b - a)) + text[b:]
    return text


@pytest.mark.parametrize("seed", range(6))
def test_mutated_files(seed: int) -> None:
    files = [p.read_text() for p in corpus()[seed::6] if p.stat().st_size < 12000]
    rng = random.Random(seed)
    for _ in range(60):
        refuse_or_take(_mutate(rng, rng.choice(files)))


def test_random_bytes() -> None:
    rng = random.Random(3)
    for _ in range(300):
        data = bytes(rng.randrange(256) for _ in range(rng.randrange(200)))
        result = parse_sources([("t.ptx", data)], "sm_90", {})
        assert result.module is None and result.diagnostics


def test_random_tokens() -> None:
    words = [".reg", ".b32", ".pred", "%r1", "%p1", "add.u32", "mov", "bra", "{", "}", "[", "]", "(", ")", ",", ";", ":", "@", "!", "|", "+", "-", "1", "0f3F800000", "1.5", ".global", ".param", "x", "L1", ".loc", ".align", "=", "<"]
    rng = random.Random(4)
    for _ in range(300):
        refuse_or_take(kernel(" ".join(rng.choice(words) for _ in range(rng.randrange(60)))))


@pytest.mark.parametrize(
    "text",
    [
        kernel("{" * 100_000),
        kernel("{" * 900 + "}" * 900),
        kernel("mov.u32 %r1, " + "(" * 100_000 + "1" + ")" * 100_000 + ";"),
        kernel("mov.u32 %r1, " + "-" * 100_000 + "1;"),
        kernel("mov.u32 %r1, " + "1+" * 50_000 + "1;"),
        kernel("mov.u32 %r1, " + "1?" * 50_000 + "1" + ":1" * 50_000 + ";"),
        kernel("mov.u32 %r1, " + "9" * 100_000 + ";"),
        kernel("mov.u32 %r1, 0x" + "f" * 100_000 + ";"),
        kernel("mov.u32 %r1, %r" + "9" * 100_000 + ";"),
        kernel("mov.b64 %rd1, " + "{" * 50_000),
        kernel("ld.global.u32 %r1, " + "[" * 50_000),
        kernel("mov.b64 %rd1, {" + "%r1, " * 50_000 + "%r1};"),
        kernel("add" + ".u32" * 50_000 + " %r1, %r2, %r3;"),
        kernel("a" * 200_000 + ";"),
        kernel(".reg .b32 %big<2147483647>; mov.u32 %big2147483646, 1;"),
        kernel(".reg .b32 %big<99999999999999999999>;"),
        kernel("\n".join(f"L{k}: bra L{k};" for k in range(20_000))),
        kernel("\n".join(f"bra L{k};" for k in range(5_000))),
        _HEAD + ".global .b8 a[99999999999][99999999999][99999999999];\n.entry k() { ret; }\n",
        _HEAD + ".global .b8 a[4000000000] = {1};\n.entry k() { ret; }\n",
        _HEAD + ".global .b8 a" + "[1]" * 10_000 + ";\n.entry k() { ret; }\n",
        _HEAD + ".global .b8 a[2] = " + "{" * 50_000 + ";\n",
        _HEAD + ".entry k(" + ".param .u32 a," * 20_000,
        _HEAD + "/*" * 100_000,
        _HEAD + "//" * 100_000,
        _HEAD + '.file 1 "' + "a" * 100_000,
        _HEAD + "\n" * 1_000_000,
        _HEAD + ".section .debug_str {" + ".b8 1\n" * 50_000 + "}",
        ".version " + "9" * 10_000 + ".0\n",
        ".version 9.0\n.target sm_" + "9" * 10_000 + "\n",
    ],
    ids=range(30),
)
def test_huge_in_one_dimension(text: str) -> None:
    refuse_or_take(text)


def test_ten_megabytes() -> None:
    line = "add.s32 %r1, %r2, %r3;\n"
    text = kernel(line * 90_000)
    start = time.monotonic()
    module, units, _ = parse_text(text, "t.ptx", "sm_90")
    assert module is not None and len(units[0].functions[0].body) == 90_001
    assert time.monotonic() - start < 20
