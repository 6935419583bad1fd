"""The Typer command line that every stage between `parse` and `elf` has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ir_format.diag import StreamError
from stages.plumbing.application import new_app
from stages.plumbing.runner import Flags, Stage, read_upto, run_files, set_limit


def _names(text: str) -> tuple[str, ...]:
    return tuple(n for n in text.split(",") if n)


def stage_app(stage: Stage) -> typer.Typer:
    """The application of one stage."""
    app = new_app()

    @app.command(
        help=f"Stage {stage.name}: reads an Ori stream at level '{stage.reads}', writes one at level '{stage.writes}'."
    )
    def run(
        stream: Annotated[Path | None, typer.Argument(help="input stream (default: standard input)")] = None,
        output: Annotated[
            Path | None, typer.Option("-o", "--output", help="output stream (default: standard output)")
        ] = None,
        stop_after: Annotated[str, typer.Option(help="run no pass after this one")] = "",
        only: Annotated[str, typer.Option(help="run only these optional passes (comma list)")] = "",
        skip: Annotated[str, typer.Option(help="do not run these passes (comma list)")] = "",
        start_after: Annotated[str, typer.Option(help="run no pass up to this one (the stream stopped there)")] = "",
        upto: Annotated[
            str,
            typer.Option(metavar="PASS[:N]", help="run no pass after this one, and of this one N rewrites of a unit"),
        ] = "",
        limit: Annotated[
            str, typer.Option(metavar="[UNIT:]N", help="apply the first N rewrites of each unit only, or of one")
        ] = "",
        added: Annotated[
            list[str] | None,
            typer.Option("--pass", help="after=NAME:WHAT or before=NAME:WHAT: a pass of your own (module, command)"),
        ] = None,
        dump_after: Annotated[
            str, typer.Option(help="print the unit to standard error after these passes, or after all")
        ] = "",
        verify: Annotated[bool, typer.Option(help="check what is written")] = False,
        stats: Annotated[bool, typer.Option(help="print statistics to standard error")] = False,
        option: Annotated[list[str] | None, typer.Option("--option", help="KEY=VALUE for this stage")] = None,
        passes: Annotated[bool, typer.Option("--passes", help="list the passes and stop")] = False,
    ) -> None:
        if passes:
            for p in stage.passes():
                typer.echo(f"{p.name:24} -O{p.min_opt}{' required' if p.required else ''}")
            raise typer.Exit(0)
        extra = dict(kv.partition("=")[::2] for kv in option or [])
        flags = Flags(stop_after, _names(only), _names(skip), None, _names(dump_after), verify, stats, False, extra)
        flags.start_after, flags.added = start_after, tuple(added or ())
        try:
            if limit:
                set_limit(flags, limit)
            if upto:
                flags.upto = read_upto(upto)
        except StreamError as e:
            raise typer.BadParameter(str(e)) from None
        given, made = (None if p is None else str(p) for p in (stream, output))
        raise typer.Exit(run_files(stage, given, made, flags))

    return app
