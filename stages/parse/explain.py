"""Longer diagnostics for `--explain`: the source line, a caret, and a hint."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher, get_close_matches

from ir_format.diag import Diagnostic
from stages.parse import table
from stages.parse.sregs import SREGS

_QUOTED = re.compile(r"'([^']+)'")
_UNKNOWN_NAME = re.compile(r"Not a name of any known instruction: '([^']+)'")
_UNKNOWN_MODIFIER = re.compile(r"Unknown modifier '\.([^']+)'")
_UNKNOWN_SYMBOL = re.compile(r"Unknown symbol '(%[^']+)'")
_VERSION = re.compile(r"requires PTX ISA \.version ([0-9.]+)")
_TARGET = re.compile(r"requires \.target (sm_[0-9]+)")
_MISMATCH = re.compile(r"Arguments mismatch for instruction '([^']+)'")


def explain(diagnostics: list[Diagnostic], text: str, filename: str) -> list[Diagnostic]:
    """The same diagnostics with the source line, a caret and a hint appended to each message."""
    lines = text.split("\n")
    return [_explain(d, lines, filename) for d in diagnostics]


def _explain(d: Diagnostic, lines: list[str], filename: str) -> Diagnostic:
    extra: list[str] = []
    if d.file == filename and 0 < d.line <= len(lines):
        line = lines[d.line - 1].replace("\t", " ").rstrip("\r")
        number = f"{d.line:>6} | "
        extra.append(number + line)
        column = column_of(d.message, line)
        extra.append(" " * (len(number) - 2) + "| " + " " * column + "^")
    hint = hint_of(d.message, lines, d.line)
    if hint:
        extra.append(f"        hint: {hint}")
    return d._replace(message="\n".join([d.message, *extra])) if extra else d


def column_of(message: str, line: str) -> int:
    """Where in a line the message points to, from 0: what it quotes, else the first word."""
    for word in _QUOTED.findall(message):
        at = line.find(word)
        if at >= 0:
            return at
    return len(line) - len(line.lstrip())


def hint_of(message: str, lines: Sequence[str], number: int) -> str:
    """How the fault in line ``number`` (from 1) of the source may be mended, or ''."""
    return _of_message(message)


def _of_message(message: str) -> str:
    m = _UNKNOWN_NAME.search(message)
    if m:
        near = _nearest(m.group(1), {n.split(".")[0] for n in table.names()}, 3)
        return f"did you mean {' or '.join(near)}?" if near else ""
    m = _UNKNOWN_MODIFIER.search(message)
    if m:
        near = _nearest(m.group(1), table.modifiers(), 3)
        return f"did you mean .{' or .'.join(near)}?" if near else ""
    m = _UNKNOWN_SYMBOL.search(message)
    if m:
        near = get_close_matches(m.group(1), sorted(SREGS), 1)
        return (
            f"registers are declared with .reg; did you mean {near[0]}?" if near else "registers are declared with .reg"
        )
    m = _VERSION.search(message)
    if m:
        return f"write .version {m.group(1)} or later at the top of the file"
    m = _TARGET.search(message)
    if m:
        return f"write .target {m.group(1)} or later, and compile for such an architecture"
    m = _MISMATCH.search(message)
    if m:
        return _forms(m.group(1))
    return ""


def _nearest(word: str, known: Iterable[str], most: int) -> list[str]:
    """The closest names; of equally close ones first those that begin alike."""
    near = get_close_matches(word, sorted(set(known)), 8)
    near.sort(key=lambda n: (-round(SequenceMatcher(None, word, n).ratio(), 2), n[:1] != word[:1], n))
    return near[:most]


def _forms(name: str) -> str:
    """The operand lists that an instruction takes."""
    if name not in table.names():
        return ""
    seen: list[str] = []
    for row in table.rows(name):
        roles = ", ".join([_describe(o) for o in row.operands]) or "no operands"
        if roles not in seen:
            seen.append(roles)
    shown = "; or ".join(seen[:3])
    return f"{name} takes: {shown}"


_WORDS = {
    "d": "register", "d_": "register or _", "s": "source", "x": "source", "i": "constant", "m": "[address]", "mt": "[map, {coordinates}]",
    "dp": "predicate", "dpp": "predicate or pair", "ps": "predicate", "l": "label", "tx": "[texture, {coordinates}]",
}  # fmt: skip


def _describe(spec: table.OperandSpec) -> str:
    word = _WORDS.get(spec.role, spec.role)
    if spec.vector > 0:
        word = f"vector of {spec.vector}"
    return f"[{word}]" if spec.optional or spec.when else word
