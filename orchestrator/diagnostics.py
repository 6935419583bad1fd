"""Diagnostics for programs: ptxas's text read back into severity, place and message, with the column and a hint, and
written as JSON or SARIF.

The text is the one form that all stages write, each in its own process. What makes it exact: a message is on one
line, and what follows without ptxas's lead belongs to it.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Callable, Sequence

from ir_format.record import Record
from ir_format.typed import Any, Final

_LINE: Final = re.compile(r"ptxas (?:(?P<file>.+?), line (?P<line>\d+); )?(?P<severity>info|warning|error|fatal) *: ")
FORMATS: Final = ("json", "sarif")
_LEVELS: Final = {"info": "note", "warning": "warning", "error": "error", "fatal": "error"}


class Finding(Record, frozen=True):
    """One message. ``severity``: info, warning, error, fatal. ``line`` and ``column`` count from 1, and are 0 where
    there is no place. ``source``: the text of the line. ``hint``: how it may be mended, or ''. ``text``: as ptxas
    prints it."""

    severity: str
    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    source: str = ""
    hint: str = ""
    text: str = ""


def read_back(text: str, sources: Sequence[tuple[str, bytes]]) -> list[Finding]:
    """The messages of a text; ``sources``: (name, bytes) of the PTX. Lines of other form are messages without place."""
    lines = {name: data.decode("latin-1").split("\n") for name, data in sources}
    found: list[list[str]] = []
    for line in text.splitlines():
        if found and line[:1] in (" ", "\t"):
            found[-1].append(line)
        else:
            found.append([line])
    return [_finding(said, lines) for said in found]


def _finding(said: list[str], lines: dict[str, list[str]]) -> Finding:
    from stages.parse.explain import column_of, hint_of
    from stages.parse.sources import judged

    text = "\n".join(said)
    m = _LINE.match(text)
    if m is None:
        return Finding("info" if text.startswith("orias: ") else "error", text, text=text)
    file, number, message = m["file"] or "", int(m["line"] or 0), text[m.end() :]
    body = lines.get(file, [])
    source = body[number - 1].rstrip("\r") if 0 < number <= len(body) else ""
    column = column_of(message, source) + 1 if source else 0
    return Finding(m["severity"], message, file, number, column, source, hint_of(message, body, number, judged), text)


def _places(f: Finding) -> dict[str, Any]:
    return {"file": f.file, "line": f.line, "column": f.column} if f.file else {}


def as_json(found: Sequence[Finding]) -> str:
    """One JSON array: severity, message, and where there are any file, line, column, source and hint."""
    rows = []
    for f in found:
        row: dict[str, Any] = {"severity": f.severity, "message": f.message, **_places(f)}
        row |= {k: v for k, v in (("source", f.source), ("hint", f.hint)) if v}
        rows.append(row)
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"


def as_sarif(found: Sequence[Finding], version: str) -> str:
    """A SARIF 2.1.0 log with one run."""
    results = []
    for f in found:
        text = f.message + (f"\nhint: {f.hint}" if f.hint else "")
        row: dict[str, Any] = {"level": _LEVELS[f.severity], "message": {"text": text}}
        if f.file:
            region: dict[str, Any] = {"startLine": max(f.line, 1)}
            if f.column:
                region["startColumn"] = f.column
            if f.source:
                region["snippet"] = {"text": f.source}
            row["locations"] = [{"physicalLocation": {"artifactLocation": {"uri": f.file}, "region": region}}]
        results.append(row)
    driver = {"name": "orias", "version": version, "rules": []}
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    return json.dumps(log, indent=1, ensure_ascii=False) + "\n"


def reported(form: str, inputs: Sequence[str], version: str, work: Callable[[], int]) -> int:
    """Run ``work``, and write what it says on standard error in one of :data:`FORMATS`."""
    said, kept = io.StringIO(), sys.stderr
    sys.stderr = said
    # What a stage's process says goes through its descriptor, which this process reads.
    os.register_at_fork(after_in_child=lambda: setattr(sys, "stderr", kept))
    try:
        code = work()
    finally:
        sys.stderr = kept
    sources = []
    for path in inputs:
        try:
            if os.path.isfile(path):
                with open(path, "rb") as f:
                    sources.append((path, f.read()))
        except OSError:
            pass  # it has been reported
    found = read_back(said.getvalue(), sources)
    sys.stderr.write(as_sarif(found, version) if form == "sarif" else as_json(found))
    return code
