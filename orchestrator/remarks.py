"""Remarks of passes as text, in clang's form, and as YAML, as LLVM's -fsave-optimization-record writes them, so that
tools like opt-viewer read them: documents tagged `!Passed`, `!Missed` and `!Analysis` with Pass, Name, DebugLoc,
Function and Args."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ir_format.typed import Final
from stages.plumbing.observe import Remark, Seen

_FLAG: Final = {"passed": "-Rpass", "missed": "-Rpass-missed", "analysis": "-Rpass-analysis"}
#: An instruction of PTX and its first operand, which it writes.
_FIRST: Final = re.compile(r"\s*(?:@!?%\w+\s+)?[a-z][\w.:]*\s+[{(]?(%[\w$.]+)")


class _Places:
    """Finds the column of a line's first word."""

    def __init__(self, sources: Sequence[tuple[str, bytes]]) -> None:
        self.name = sources[0][0] if sources else "<unknown>"
        self.lines = sources[0][1].decode("latin-1").split("\n") if sources else []

    def column(self, line: int) -> int:
        """From 1; 0 where the line is not known."""
        if not 0 < line <= len(self.lines):
            return 0
        text = self.lines[line - 1]
        return len(text) - len(text.lstrip()) + 1

    def value(self, line: int) -> str:
        """The register that the instruction of a line makes, '' where that is not seen."""
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        found = _FIRST.match(text)
        return found[1] if found else ""


def resolved(seen: Sequence[Seen], sources: Sequence[tuple[str, bytes]]) -> list[list[Remark]]:
    """The remarks of each unit, with the names of values that only the PTX tells."""
    places = _Places(sources)
    return [[r._replace(value=places.value(r.line)) if r.value == "?" else r for r in unit.remarks] for unit in seen]


def _all(seen: Sequence[Seen], sources: Sequence[tuple[str, bytes]]) -> Iterator[Remark]:
    """In the order of units, in each as the passes said them."""
    for remarks in resolved(seen, sources):
        yield from remarks


def sentence(r: Remark) -> str:
    """What the remark says, with the name of its value."""
    return f"{r.message} [value {r.value}]" if r.value else r.message


def as_text(seen: Sequence[Seen], sources: Sequence[tuple[str, bytes]]) -> str:
    """A line for each: `file:line:column: remark: what [flag=pass]`, with `in function` where there is no line."""
    places = _Places(sources)
    out = []
    for r in _all(seen, sources):
        where = f"{places.name}:{r.line}:{places.column(r.line)}" if r.line else f"{places.name}: in {r.function}"
        out.append(f"{where}: remark: {sentence(r)} [{_FLAG[r.kind]}={r.pass_name}]\n")
    return "".join(out)


def _quoted(text: str) -> str:
    """A YAML scalar in single quotes, as LLVM writes strings."""
    return "'" + text.replace("'", "''") + "'"


def as_yaml(seen: Sequence[Seen], sources: Sequence[tuple[str, bytes]]) -> str:
    """One document for each."""
    places = _Places(sources)
    out = []
    for r in _all(seen, sources):
        out.append(f"--- !{r.kind.capitalize()}\nPass:            {r.pass_name}\nName:            {r.name}\n")
        if r.line:
            place = f"File: {_quoted(places.name)}, Line: {r.line}, Column: {places.column(r.line)}"
            out.append(f"DebugLoc:        {{ {place} }}\n")
        out.append(f"Function:        {_quoted(r.function)}\nArgs:\n  - String:          {_quoted(r.message)}\n")
        if r.value:
            out.append(f"  - Value:           {_quoted(r.value)}\n")
        out.append("...\n")
    return "".join(out)
