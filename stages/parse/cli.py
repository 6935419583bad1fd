"""The Typer command line of the parse stage."""

from __future__ import annotations

import sys
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
    from ir_format.model import AttrValue
    from ir_format.target import targets
    from stages.plumbing.files import write_file
    from stages.plumbing.front_end import parse_to_stream

    if arch not in targets():
        sys.stderr.write(f"orias-parse: '{arch}' is no target; known: {', '.join(targets())}\n")
        raise typer.Exit(1)
    options: dict[str, AttrValue] = {"opt-level": max(opt, 0)}
    for kv in option or []:
        key, _, value = kv.partition("=")
        options[key] = int(value) if value.lstrip("-").isdigit() else value or 1
    if explain:
        options["explain"] = 1
    sources = []
    for f in files or [Path("-")]:
        try:
            sources.append(("<stdin>", sys.stdin.buffer.read()) if str(f) == "-" else (str(f), f.read_bytes()))
        except OSError:
            sys.stderr.write(f"ptxas fatal   : Input file '{f}' could not be opened\n")
            raise typer.Exit(1) from None
    if output is None:
        raise typer.Exit(parse_to_stream(sources, arch, options, sys.stdout.buffer.write, sys.stdout.buffer.flush))
    parts: list[bytes] = []
    code = parse_to_stream(sources, arch, options, parts.append)
    if code == 0:
        try:
            write_file(str(output), b"".join(parts))
        except OSError as e:
            sys.stderr.write(f"orias-parse: can't write '{output}': {e.strerror}\n")
            raise typer.Exit(1) from None
    raise typer.Exit(code)
