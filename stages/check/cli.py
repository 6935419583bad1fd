"""The Typer command line of the judges."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(help="Judges: co-simulation of PTX (--cosim).")
def run(
    file: Annotated[Path, typer.Argument(help="PTX")],
    cosim: Annotated[bool, typer.Option("--cosim", help="run the PTX interpreter and cubins side by side")] = False,
    arch: Annotated[str, typer.Option("--arch", "-arch", help="architecture, such as sm_90")] = "sm_90",
    kernel: Annotated[list[str] | None, typer.Option("--kernel", help="only this kernel (may be repeated)")] = None,
    seeds: Annotated[int, typer.Option("--seeds", help="launches a kernel")] = 4,
    ptxas: Annotated[Path | None, typer.Option("--ptxas", help="another compiler with ptxas's command line, to be judged too")] = None,
    cubin: Annotated[Path | None, typer.Option("--cubin", help="a cubin to judge instead of the one that the chain makes")] = None,
    opt_level: Annotated[int, typer.Option("-O", help="optimization level of the compilers")] = 3,
) -> None:
    from stages.check.command import check_file

    if not cosim:
        sys.stderr.write("orias-check: say what to check: --cosim\n")
        raise typer.Exit(2)
    raise typer.Exit(check_file(file, arch, kernel or [], seeds, ptxas, cubin, opt_level))
