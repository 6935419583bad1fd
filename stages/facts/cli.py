"""The Typer command line of the facts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from stages.plumbing.application import new_app

app = new_app()


@app.command(
    help="What is known about an SM, as JSON: instructions with their rows, effects and hazard classes, pipes, "
    "scoreboards, least distances with their "
    "provenance, features, limits. With --annotate a filter: it reads a stream of level ori or later and "
    "adds to each instruction what a scheduler needs "
    "(attributes hz.*; docs/own-stage.md); --strip removes them again."
)
def run(
    what: Annotated[
        str, typer.Argument(help="target such as sm_90; with --annotate or --strip the stream, '-' for standard input")
    ] = "-",
    annotate: Annotated[bool, typer.Option("--annotate", help="add facts to the instructions of a stream")] = False,
    strip: Annotated[bool, typer.Option("--strip", help="remove added facts from a stream")] = False,
    out: Annotated[Path | None, typer.Option("-o", "--output", help="where to write (standard output)")] = None,
    indent: Annotated[int, typer.Option(help="spaces of indentation of the JSON; 0 for one line", min=0, max=8)] = 1,
) -> None:
    from ir_format.diag import OriasError
    from stages.facts.annotate import annotated
    from stages.facts.collect import as_json
    from stages.plumbing.files import write_output

    if annotate and strip:
        raise typer.BadParameter("--annotate and --strip exclude each other")
    try:
        if annotate or strip:
            stream = sys.stdin.buffer if what == "-" else open(what, "rb")
            data = annotated(stream, strip)
        elif what == "-":
            raise typer.BadParameter("which target? For example orias-facts sm_90")
        else:
            data = as_json(what, indent).encode()
        write_output(out, data)
    except OriasError as e:
        sys.stderr.write(f"orias-facts: {e}\n")
        raise typer.Exit(2) from None
    except OSError as e:
        sys.stderr.write(f"orias-facts: can't use '{e.filename or what}': {e.strerror}\n")
        raise typer.Exit(2) from None
