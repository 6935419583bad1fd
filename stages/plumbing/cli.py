"""The Typer command line that every stage between `parse` and `elf` has."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Annotated

import typer

from ir_format import wire
from ir_format.diag import StreamError
from stages.plumbing.application import new_app
from stages.plumbing.files import write_file
from stages.plumbing.runner import Flags, Stage, read_upto, run_stage, set_limit


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
        only: Annotated[str, typer.Option(help="run these optional passes only (comma list)")] = "",
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
        raise typer.Exit(run_files(stage, stream, output, flags))

    return app


def run_files(stage: Stage, stream: Path | None, output: Path | None, flags: Flags) -> int:
    """Run a stage over files or the standard streams. An output file appears whole or not at all."""
    try:
        inp = sys.stdin.buffer if stream is None or str(stream) == "-" else open(stream, "rb")
    except OSError as e:
        sys.stderr.write(f"orias-{stage.name}: can't read '{stream}': {e.strerror}\n")
        return 1
    if output is None:
        return run_stage(stage, inp, sys.stdout.buffer, flags)
    made = io.BytesIO()
    code = run_stage(stage, inp, made, flags)
    data = made.getvalue()
    if code > 1 or not ended(data):
        return code
    try:
        write_file(str(output), data)
    except OSError as e:
        sys.stderr.write(f"orias-{stage.name}: can't write '{output}': {e.strerror}\n")
        return 1
    return code


def ended(data: bytes) -> bool:
    """Whether a stage wrote its stream to the end (the stream of a refused input ends early)."""
    try:
        for _ in wire.frames(io.BytesIO(data)):
            pass
    except StreamError:
        return False
    return True
