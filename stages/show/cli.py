"""The Typer command line of the show stage."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from stages.plumbing.application import new_app


class Format(StrEnum):
    """The output format."""

    text = "text"
    dot = "dot"
    html = "html"


app = new_app()


def _read(texts: list[Path], like: Path | None, output: Path | None) -> None:
    """Write the stream of a text. Raises OriasError, OSError."""
    from stages.plumbing.files import write_output
    from stages.show.read import from_text

    text = "".join([sys.stdin.read() if str(p) == "-" else p.read_text(encoding="utf-8") for p in texts])
    data = from_text(text, like.read_bytes() if like is not None else None)
    write_output(output, data)


@app.command(
    help="Show saved Ori streams: text, a DOT graph, or one HTML page with PTX, each stream next to the previous one, "
    "and the code and graph of the last. '-' is standard input."
)
def run(
    streams: Annotated[
        list[Path],
        typer.Argument(help="streams, in the order of the stages; one of level ptx puts PTX next to the code"),
    ],
    format: Annotated[Format, typer.Option("--format", "-f", help="what to write")] = Format.text,
    unit: Annotated[str, typer.Option(help="only this unit")] = "",
    read: Annotated[bool, typer.Option("--read", help="the reverse: the text form back into a stream")] = False,
    like: Annotated[
        Path | None, typer.Option("--like", help="with --read: a stream whose header and module record are copied")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="with --read: the stream (default: standard output)")
    ] = None,
) -> None:
    from ir_format.diag import OriasError
    from stages.show.show import show

    try:
        if read:
            _read(streams, like, output)
            return
        for part in show([str(s) for s in streams], format.value, unit):
            sys.stdout.write(part)
    except OriasError as e:
        sys.stderr.write(f"orias-show: {e}\n")
        raise typer.Exit(2) from None
    except OSError as e:
        if e.filename is None:  # of standard output
            raise
        sys.stderr.write(f"orias-show: can't read '{e.filename}': {e.strerror}\n")
        raise typer.Exit(2) from None
