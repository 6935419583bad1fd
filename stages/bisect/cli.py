"""The Typer command line of orias-bisect."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from stages.plumbing.application import new_app

app = new_app()


@app.command(
    help="Find the stage, the pass and the rewrite that make a cubin wrong. Judge is co-simulation with the PTX interpreter, or a command (--test). "
    "Exit code 0: found, 1: the cubin is right, 2: can't be judged."
)
def run(
    file: Annotated[Path, typer.Argument(help="PTX, or a saved stream (then --test is needed)")],
    test: Annotated[
        str,
        typer.Option(
            "--test",
            help="shell command, given the cubin's path for {} or at its end: exit 0 right, 125 can't tell, else wrong",
        ),
    ] = "",
    arch: Annotated[str, typer.Option("--arch", "-arch", help="architecture, such as sm_90")] = "sm_90",
    opt_level: Annotated[int, typer.Option("-O", min=0, max=3, help="optimization level")] = 3,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", help="KEY=VALUE, one of ptxas's options by its long name, such as maxrregcount=32"),
    ] = None,
    kernel: Annotated[
        list[str] | None, typer.Option("--kernel", help="co-simulate only this kernel (may be repeated)")
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="launches a kernel")] = 8,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.1, help="seconds after which the command counts as wrong")
    ] = 60.0,
    keep: Annotated[
        Path | None,
        typer.Option("--keep", help="folder for right.cubin, wrong.cubin and the streams behind the guilty part"),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="only the result")] = False,
) -> None:
    from stages.bisect.command import Request, run_file

    said = (lambda text: None) if quiet else (lambda text: print(text, file=sys.stderr, flush=True))
    raise typer.Exit(
        run_file(
            Request(file, test, arch, opt_level, tuple(option or ()), tuple(kernel or ()), seeds, timeout, keep), said
        )
    )
