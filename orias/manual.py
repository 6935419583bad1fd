"""Man pages of all programs, made from their own tables of options: `python -m orias.manual FOLDER` writes them.

The pages of the repository (docs/man) are installed under `share/man`; a test holds that they are what this makes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from stages.plumbing.runner import VERSION

_OF_STAGES: Final = (
    (0, "done"),
    (1, "the input was refused, and messages say why (a stage between parse and elf still writes its stream)"),
    (2, "an unknown option, or an internal fault"),
)
_OF_READERS: Final = ((0, "done"), (2, "an unknown option, or a file that is not what it should be"))
#: Exit codes by program: 0 is right, 1 is "no" as an answer, 2 that there is no answer.
EXITS: Final[dict[str, tuple[tuple[int, str], ...]]] = {
    "orias": ((0, "done"), (255, "any failure, as ptxas has it; no output file is written")),
    "orias-farm": ((0, "every file was compiled"), (255, "any failure; the report names each file's")),
    **{f"orias-{s}": _OF_STAGES for s in ("parse", "lower", "optimize", "regalloc", "schedule", "encode", "elf")},
    **{f"orias-{s}": _OF_READERS for s in ("show", "facts", "disasm")},
    "orias-check": (
        (0, "nothing is wrong"),
        (1, "findings; with --cosim, results that differ"),
        (2, "an unknown option, a file that is not what it should be, or something that could not be judged"),
    ),
    "orias-run": (
        (0, "done"),
        (1, "the launch failed, or --strict, --races or --order found something"),
        (2, "an unknown option, a bad argument, or a file that is not what it should be"),
    ),
    "orias-diff": ((0, "the same"), (1, "they differ"), (2, "an unknown option, or bad input")),
    "orias-reduce": ((0, "reduced"), (1, "the file does not show the fault"), (2, "an unknown option, or bad input")),
    "orias-bisect": (
        (0, "found"),
        (1, "nothing is wrong"),
        (2, "an unknown option, or bad input"),
        (3, "it can't be judged"),
        (4, "it is wrong, but no culprit could be named"),
        (5, "the test command does not run"),
    ),
}


def _application(name: str) -> Any:
    """The Typer application of a program."""
    import importlib

    from stages.plumbing.chain import MIDDLE

    short = name.removeprefix("orias-")
    for stage in MIDDLE:
        if stage.name == short:
            from stages.plumbing.cli import stage_app

            return stage_app(stage)
    home = {"run": "stages.simulate.__main__", "farm": "orchestrator.farm.cli"}.get(short, f"stages.{short}.cli")
    return importlib.import_module(f"{__package__}.{home}").app


def _plain(text: str) -> str:
    """Text as roff reads it."""
    text = re.sub(r"\s+", " ", text.replace("\\", "\\e").replace("-", "\\-"))
    return "\\&" + text if text[:1] in (".", "'") else text


def _typer_options(name: str) -> tuple[str, str, list[tuple[str, str]]]:
    """(what it does, synopsis, options with their help) of a program with a Typer command line."""
    from typer.main import get_command

    command = get_command(_application(name))
    rows: list[tuple[str, str]] = []
    synopsis = [name, "[OPTIONS]"]
    for p in command.params:
        if p.param_type_name == "argument":
            word = (p.name or "").upper()
            synopsis.append(word if p.required else f"[{word}]")
            rows.append((word, getattr(p, "help", None) or ""))
            continue
        words = ", ".join(sorted([*p.opts, *p.secondary_opts], key=lambda o: (o.startswith("--"), o)))
        flag = getattr(p, "is_flag", False)
        rows.append((words if flag else f"{words} {p.metavar or 'VALUE'}", getattr(p, "help", None) or ""))
    return (command.help or "").strip(), " ".join(synopsis), rows


def _orias_options() -> tuple[str, str, list[tuple[str, str]]]:
    from orchestrator.options import GROUPS, OPTIONS

    value = {"flag": "", "maybe": "[=VALUE]", "bool": " true|false"}
    rows = []
    for o in OPTIONS:
        names = f"--{o.long}" + (f", -{o.short}" if o.short and o not in GROUPS[-1][1] else "")
        rows.append((names + value.get(o.kind, " VALUE"), o.help or "taken, without effect"))
    text = "Compiles PTX to a cubin, with ptxas's command line: seven stages in one program."
    return text, "orias [OPTIONS] FILE...", rows


def page(name: str) -> str:
    """The man page of a program."""
    what, synopsis, rows = _orias_options() if name == "orias" else _typer_options(name)
    first = re.split(r"(?<=[.:;]) ", what)[0].rstrip(".:;")
    out = [f'.TH {name.upper()} 1 "" "orias {VERSION}" "orias"', ".SH NAME", f"{_plain(name)} \\- {_plain(first)}"]
    out += [".SH SYNOPSIS", _plain(synopsis), ".SH DESCRIPTION", _plain(what), ".SH OPTIONS"]
    for words, text in rows:
        out += [".TP", f".B {_plain(words)}", _plain(text)]
    out.append(".SH EXIT STATUS")
    for code, text in EXITS[name]:
        out += [".TP", f".B {code}", _plain(text)]
    others = ", ".join([f"{_plain(other)}(1)" for other in EXITS if other != name])
    return "\n".join([*out, ".SH SEE ALSO", others]) + "\n"


def pages() -> Iterator[tuple[str, str]]:
    """(file name, text) of each."""
    for name in EXITS:
        yield f"{name}.1", page(name)


def main() -> None:
    """Write all of them into a folder."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit("python -m orias.manual FOLDER: write the man pages of all programs there")
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
