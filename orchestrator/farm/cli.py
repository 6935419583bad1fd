"""The Typer command line of orias-farm."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from stages.plumbing.application import new_app

app = new_app()


@app.command(
    # Options of orias are written with one dash (`-arch`, which holds an `h`): none of ours is short.
    context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]},
    help="Compile many PTX files on a Dask cluster, as orias --batch does on one machine: the same command line, list "
    "(--batch), folder (--output-dir), report (--report) and bytes. Needs the extra `farm` of the package.",
)
def run(
    words: Annotated[
        list[str] | None, typer.Argument(help="PTX files and options of orias", metavar="[FILES AND OPTIONS]...")
    ] = None,
    scheduler: Annotated[str, typer.Option("--scheduler", help="address of a Dask scheduler (tcp://HOST:8786)")] = "",
    workers: Annotated[
        int, typer.Option("--workers", min=0, help="without --scheduler: processes on this machine (0: a core each)")
    ] = 0,
    retries: Annotated[
        int, typer.Option("--retries", min=0, help="times that a job is sent again if its workers die")
    ] = 3,
) -> None:
    import importlib.util

    if importlib.util.find_spec("distributed") is None:
        sys.stderr.write("orias-farm: the package 'distributed' is missing: pip install 'orias[farm]'\n")
        raise typer.Exit(255)
    from orchestrator.farm.cluster import Settings
    from orchestrator.farm.run import run_farm

    raise typer.Exit(run_farm(words or [], Settings(scheduler, workers, retries)))
