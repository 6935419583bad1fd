"""The work of `orias-parse`, for any reader of its command line."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ir_format.model import AttrValue


def run_parse(
    files: Sequence[str], arch: str, level: int, output: str | None, option: Sequence[str], explain: bool
) -> int:
    """Parse PTX files into one module and write its stream; returns the exit code."""
    from ir_format.target import targets
    from stages.plumbing.files import write_file
    from stages.plumbing.front_end import parse_to_stream

    if arch not in targets():
        sys.stderr.write(f"orias-parse: '{arch}' is no target; known: {', '.join(targets())}\n")
        return 1
    options: dict[str, AttrValue] = {"opt-level": max(level, 0)}
    for kv in option:
        key, _, value = kv.partition("=")
        options[key] = int(value) if value.lstrip("-").isdigit() else value or 1
    if explain:
        options["explain"] = 1
    sources = []
    for name in files or ["-"]:
        try:
            if name == "-":
                sources.append(("<stdin>", sys.stdin.buffer.read()))
            else:
                with open(name, "rb") as f:
                    sources.append((name, f.read()))
        except OSError:
            sys.stderr.write(f"ptxas fatal   : Input file '{name}' could not be opened\n")
            return 1
    if output is None:
        return parse_to_stream(sources, arch, options, sys.stdout.buffer.write, sys.stdout.buffer.flush)
    parts: list[bytes] = []
    code = parse_to_stream(sources, arch, options, parts.append)
    if code == 0:
        try:
            write_file(output, b"".join(parts))
        except OSError as e:
            sys.stderr.write(f"orias-parse: can't write '{output}': {e.strerror}\n")
            return 1
    return code
