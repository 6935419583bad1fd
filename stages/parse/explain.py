"""Longer diagnostics for `--explain`: the source line, a caret, and a hint."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher, get_close_matches

from ir_format.diag import Diagnostic
from ir_format.framing import MAGIC
from stages.parse import table
from stages.parse.hints import Judge, allowing, nearest_register, wrong_operand
from stages.parse.sregs import SREGS

_QUOTED = re.compile(r"'([^']+)'")
_UNKNOWN_NAME = re.compile(r"Not a name of any known instruction: '([^']+)'")
_UNKNOWN_MODIFIER = re.compile(r"Unknown modifier '\.([^']+)'")
_UNKNOWN_SYMBOL = re.compile(r"Unknown symbol '(%[^']+)'")
_VERSION = re.compile(r"requires PTX ISA \.version ([0-9.]+)")
_TARGET = re.compile(r"requires \.target (sm_[0-9]+)")
_MISMATCH = re.compile(r"Arguments mismatch for instruction '([^']+)'")


def explain(diagnostics: list[Diagnostic], text: str, filename: str, judge: Judge) -> list[Diagnostic]:
    """The same diagnostics with the source line, a caret and a hint appended to each message."""
    lines = text.split("\n")
    return [_explain(d, lines, filename, judge) for d in diagnostics]


def _explain(d: Diagnostic, lines: list[str], filename: str, judge: Judge) -> Diagnostic:
    extra: list[str] = []
    if d.file == filename and 0 < d.line <= len(lines):
        line = lines[d.line - 1].replace("\t", " ").rstrip("\r")
        number = f"{d.line:>6} | "
        column = column_of(d.message, line)
        extra.append(f"    --> {d.file}:{d.line}:{column + 1}")
        extra.append(number + line)
        extra.append(" " * (len(number) - 2) + "| " + " " * column + "^")
    hint = hint_of(d.message, lines, d.line, judge)
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


def hint_of(message: str, lines: Sequence[str], number: int, judge: Judge) -> str:
    """How the fault in line ``number`` (from 1) of the source may be mended, or ''."""
    if message.startswith("Parsing error near"):
        return _semicolon(lines, number)
    if message.startswith("Missing .version directive"):
        return _other_language(lines)
    line = lines[number - 1] if 0 < number <= len(lines) else ""
    if " not supported on .target" in message and line:
        return allowing(message, lines, number, judge)
    m = _UNKNOWN_SYMBOL.search(message)
    near = nearest_register(m.group(1), lines) if m else ""
    if near:
        return f"did you mean {near}? Registers are declared with .reg"
    wrong = wrong_operand(line, lines) if _MISMATCH.search(message) else ""
    return wrong or _of_message(message)


def _semicolon(lines: Sequence[str], number: int) -> str:
    """Where the statement before a syntax error lacks its end."""
    for at in range(number - 1, 0, -1):
        text = lines[at - 1].partition("//")[0].strip()
        if text:
            ends = text[-1] in ";{}:,(" or text[0] in ".)@" and " " not in text
            directive = text.startswith(
                (".version", ".target", ".address_size", ".visible", ".entry", ".func", ".file")
            )
            return "" if ends or directive or text.startswith((".loc", ".pragma")) else f"line {at} does not end in ';'"
    return ""


def _other_language(lines: Sequence[str]) -> str:
    """What a text without .version is instead of PTX."""
    text = "\n".join(lines[:200])
    if text.lstrip("\0\xdc\xdd\x82\x92\x93\x94\x95\xc4").startswith(MAGIC) or MAGIC in text[:64]:
        return "this is a saved stream: continue from it with --start-from"
    if text.startswith("\x7fELF"):
        return "this is a cubin or an object: orias-disasm shows it"
    if re.search(r"__global__|__device__|^\s*#\s*include", text, re.M):
        return "this is CUDA C++: nvcc -ptx or clang -S --cuda-device-only make PTX of it"
    if re.search(r"^target triple|^define .*\{", text, re.M):
        return "this is LLVM IR: llc -march=nvptx64 makes PTX of it"
    return "PTX begins with .version, .target and .address_size"


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
    "d": "register", "d_": "register or _", "s": "source", "x": "source", "i": "constant", "m": "[address]",
    "mt": "[map, {coordinates}]", "mh": "[endpoint, offset]", "mhc": "[endpoint, offset, counter]",
    "dp": "predicate", "dpp": "predicate or pair", "ps": "predicate", "l": "label", "tx": "[texture, {coordinates}]",
}  # fmt: skip


def _describe(spec: table.OperandSpec) -> str:
    word = _WORDS.get(spec.role, spec.role)
    if spec.vector > 0:
        word = f"vector of {spec.vector}"
    return f"[{word}]" if spec.optional or spec.when else word
