"""Plain command lines, read without Typer: importing Typer, click and rich takes longer than a stage of a small kernel.

:func:`read` takes what a pass-through in a pipe is made of: file names, and options with one value or none. Everything
else (help, errors, abbreviations, a value that looks like an option) makes it return None, and the caller hands the
command line to its Typer application. What it takes it reads as Typer does (tests/chain/test_plain.py compares them).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from ir_format.record import Record, fresh


class Plain(Record):
    """A command line: ``values`` by option name, in order where one is repeated; ``files``; ``flags`` that are in
    it."""

    values: dict[str, list[str]] = fresh(default_factory=dict)
    files: list[str] = fresh(default_factory=list)
    flags: set[str] = fresh(default_factory=set)

    def last(self, name: str) -> str | None:
        """The value of an option; of several the last one counts."""
        given = self.values.get(name)
        return given[-1] if given else None


def completing() -> bool:
    """Whether a shell asks for completions: Typer reads the words from the environment then."""
    return any([name.startswith("_ORIAS_") and name.endswith("_COMPLETE") for name in os.environ])


def read(
    argv: Sequence[str], options: Mapping[str, str], flags: Sequence[str] = (), most: int = 1 << 30
) -> Plain | None:
    """Read a command line. ``options`` maps each spelling of an option with a value to the option's name, ``most`` is
    the highest number of files. Returns None where Typer has to read it."""
    if completing():
        return None
    out = Plain()
    words = iter(argv)
    for word in words:
        if word == "-" or not word.startswith("-"):
            if not word:
                return None
            out.files.append(word)
            continue
        if word in flags:
            out.flags.add(word)
            continue
        name, eq, value = word.partition("=")
        if not word.startswith("--"):  # -O3 and -O 3; what is after a short name is its value, '=' too
            name, value = word[:2], word[2:]
            eq = value
        if name not in options:
            return None
        if not eq:
            value = next(words, "")
        if not value or (value.startswith("-") and value != "-"):
            return None
        out.values.setdefault(options[name], []).append(value)
    return out if len(out.files) <= most else None


def path(name: str) -> str:
    """A file name as :class:`pathlib.Path` spells it: a stream's header tells it, and bytes must not depend on who
    read the command line."""
    if not name.startswith(".") and "//" not in name and "/." not in name and not name.endswith("/"):
        return name
    from pathlib import Path

    return str(Path(name))
