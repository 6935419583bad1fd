"""The Typer command line of the judges."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stages.plumbing.application import new_app

app = new_app()


@app.command(
    help="Judges: the schedule of a cubin (every distance and scoreboard wait, over all paths), "
    "where its threads reconverge, and its records (recomputed from the code); "
    "a saved stream (rules of its level, reads of undefined words, "
    "with --before allocation or what optimize made undefined, schedule, convergence); "
    "with --cosim co-simulation of PTX."
)
def run(
    file: Annotated[Path, typer.Argument(help="cubin, saved stream, or PTX with --cosim")],
    cosim: Annotated[bool, typer.Option("--cosim", help="run the PTX interpreter and cubins, and compare")] = False,
    arch: Annotated[
        str, typer.Option("--arch", "-arch", help="architecture, such as sm_90 (otherwise the PTX file's own target)")
    ] = "",
    kernel: Annotated[list[str] | None, typer.Option("--kernel", help="only this kernel (may be repeated)")] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            "--seeds", min=1, help="launches per kernel (default: up to 48, as many as 10 s of processor time allow)"
        ),
    ] = None,
    thorough: Annotated[
        bool, typer.Option("--thorough", help="with --cosim: 16 to 48 launches per kernel, without a time limit")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="with --cosim: cubins run in the machine that honours the control words")
    ] = False,
    ptxas: Annotated[
        Path | None, typer.Option("--ptxas", help="judge another compiler with ptxas's command line too")
    ] = None,
    cubin: Annotated[Path | None, typer.Option("--cubin", help="a cubin to judge instead of the chain's")] = None,
    before: Annotated[
        Path | None,
        typer.Option(
            "--before",
            help=(
                "the stream that regalloc read: is this one it, allocated? Or the one that optimize read: "
                "is every word still defined?"
            ),
        ),
    ] = None,
    opt_level: Annotated[int, typer.Option("-O", help="optimization level of the compilers")] = 3,
) -> None:
    from stages.check.command import check_compiled, check_file

    if not cosim:
        raise typer.Exit(check_compiled(file, before))
    raise typer.Exit(check_file(file, arch, kernel or [], seeds, ptxas, cubin, opt_level, thorough, strict))
