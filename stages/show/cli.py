"""The Typer command line of the show stage."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from stages.plumbing.application import new_app


class Format(StrEnum):
    """What to make of the stream."""

    text = "text"
    dot = "dot"
    html = "html"


app = new_app()


@app.command(
    help="Show saved Ori streams: text, a DOT graph, or one HTML page with a column per stream. '-' is standard input."
)
def run(
    streams: Annotated[list[Path], typer.Argument(help="streams; several make several columns of the HTML page")],
    format: Annotated[Format, typer.Option("--format", "-f", help="what to write")] = Format.text,
    unit: Annotated[str, typer.Option(help="only this unit")] = "",
) -> None:
    from ir_format.diag import OriasError
    from stages.show.show import show

    try:
        for part in show([str(s) for s in streams], format.value, unit):
            sys.stdout.write(part)
    except OriasError as e:
        sys.stderr.write(f"orias-show: {e}\n")
        raise typer.Exit(1) from None
    except OSError as e:
        sys.stderr.write(f"orias-show: can't read '{e.filename}': {e.strerror}\n")
        raise typer.Exit(1) from None
