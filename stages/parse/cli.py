"""The Typer command line of the parse stage."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stages.plumbing.application import new_app

app = new_app()


@app.command(help="Stage parse: reads PTX text, writes an Ori stream at level 'ptx'.")
def run(
    files: Annotated[
        list[Path] | None, typer.Argument(help="PTX files, merged into one module ('-' or none: standard input)")
    ] = None,
    arch: Annotated[str, typer.Option("--arch", help="target, e.g. sm_90")] = "sm_75",
    opt: Annotated[int, typer.Option("-O", "--opt-level", help="optimization level that later stages use")] = 3,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="output stream (default: standard output)")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option("--option", help="KEY=VALUE: an option for later stages by ptxas's long name")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="show the source line and a hint under each diagnostic")
    ] = False,
) -> None:
    from stages.parse.work import run_parse

    names = [str(f) for f in files or []]
    raise typer.Exit(run_parse(names, arch, opt, None if output is None else str(output), option or [], explain))
