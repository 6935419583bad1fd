"""The Typer command line of the elf stage."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stages.plumbing.application import new_app

app = new_app()


@app.command(help="Stage elf: reads an Ori stream at level 'encoded', writes a cubin.")
def run(
    stream: Annotated[Path | None, typer.Argument(help="input stream (default: standard input)")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="cubin (default: standard output)")] = None,
) -> None:
    from stages.elf.work import run_elf

    raise typer.Exit(run_elf(None if stream is None else str(stream), None if output is None else str(output)))
