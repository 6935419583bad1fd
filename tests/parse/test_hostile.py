"""Bad input of every kind: a diagnostic, in bounded time and memory, never an exception."""

from __future__ import annotations

import io
import random
import string
import time

import pytest

from stages.parse import parse_sources, parse_text, table
from stages.plumbing.front_end import parse_to_stream
from tests.parse import hostile
from tests.parse.generate import modifier_lists, opcode_text, type_tuples
from tests.parse.helpers import corpus, kernel


def refuse_or_take(text: str) -> None:
    """Parses; the only claim is an orderly end: a module, or at least one error."""
    start = time.process_time()
    module, _, diagnostics = parse_text(text, "t.ptx", "sm_90a")
    assert module is not None or any(d.severity in ("error", "fatal") for d in diagnostics)
    assert time.process_time() - start < 5


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
    words = [
        ".reg",
        ".b32",
        ".pred",
        "%r1",
        "%p1",
        "add.u32",
        "mov",
        "bra",
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        ",",
        ";",
        ":",
        "@",
        "!",
        "|",
        "+",
        "-",
        "1",
        "0f3F800000",
        "1.5",
        ".global",
        ".param",
        "x",
        "L1",
        ".loc",
        ".align",
        "=",
        "<",
    ]
    rng = random.Random(4)
    for _ in range(300):
        refuse_or_take(kernel(" ".join(rng.choice(words) for _ in range(rng.randrange(60)))))


@pytest.mark.parametrize("name", list(hostile.INPUTS))
def test_long_or_nested_in_one_dimension(name: str) -> None:
    refuse_or_take(hostile.INPUTS[name](150_000))


def test_nested_as_far_as_it_goes() -> None:
    module, _, _ = parse_text(hostile.body("{" * 900 + "}" * 900), "t.ptx", "sm_90")
    assert module is not None


def test_many_kernels_that_reach_much_are_refused() -> None:
    """Each kernel has a separate list of what it reaches; a product of two large numbers is an error, not a hang."""
    for name in ("functions of many kernels", "data of many kernels", "branches by one table"):
        module, _, diagnostics = parse_text(hostile.INPUTS[name](200_000), "t.ptx", "sm_90")
        assert module is None and "more than" in diagnostics[-1].message.lower(), name


def test_ten_megabytes() -> None:
    line = "add.s32 %r1, %r2, %r3;\n"
    text = kernel(line * 90_000)
    start = time.process_time()
    module, units, _ = parse_text(text, "t.ptx", "sm_90")
    assert module is not None and len(units[0].functions[0].body) == 90_001
    assert time.process_time() - start < 20


def test_a_file_name_may_be_any_bytes() -> None:
    """The stream's header is UTF-8; a name on the command line need not be."""
    out = io.BytesIO()
    text = kernel("ret;")
    assert parse_to_stream([("\udcff\udcfe.ptx", text.encode())], "sm_90", {}, out.write) == 0
    assert b"\\xff\\xfe.ptx" in out.getvalue()


def test_no_operands_at_all() -> None:
    """Every instruction is refused in words, or taken, without operands: what the matcher knows of each, alone."""
    for row in [table.rows(name)[0] for name in table.names()]:
        line = f"{opcode_text(row, modifier_lists(row)[0], type_tuples(row)[0])};"
        refuse_or_take(f".version 9.0\n.target sm_90a\n.entry k()\n{{\n{line}\nret;\n}}\n")
