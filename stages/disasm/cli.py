"""The Typer command line of `orias-disasm`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from stages.plumbing.application import new_app

app = new_app()


@app.command(help="Disassemble a cubin; or put edited code back into it.")
def run(
    cubin: Annotated[Path, typer.Argument(help="the cubin")],
    hex_words: Annotated[bool, typer.Option("--hex", "-hex", help="print the words beside the text")] = False,
    exact: Annotated[
        bool, typer.Option("--exact", help="add notes behind the text: what it leaves out, and the control word")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="write JSON")] = False,
    ori: Annotated[
        bool, typer.Option("--ori", help="lift to an Ori stream at level scheduled (binary: use -o)")
    ] = False,
    unscheduled: Annotated[
        bool, typer.Option("--unscheduled", help="the same at level allocated, for orias-schedule to read")
    ] = False,
    patch: Annotated[
        Path | None, typer.Option("--patch", help="a listing or an Ori stream whose code goes into the cubin (use -o)")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="output file (default: standard output)")
    ] = None,
) -> None:
    from ir_format.diag import CompileError, OriasError
    from stages.disasm import work
    from stages.plumbing.files import write_file

    try:
        data = work.run(cubin, hex_words, as_json, ori, patch, exact, unscheduled)
        if output is None:
            sys.stdout.buffer.write(data)
        else:
            write_file(str(output), data)
    except CompileError as e:
        sys.stderr.write(f"orias-disasm: {e.message}{f' (line {e.line})' if e.line else ''}\n")
        raise typer.Exit(1) from None
    except OriasError as e:
        sys.stderr.write(f"orias-disasm: {e}\n")
        raise typer.Exit(1) from None
    except OSError as e:
        sys.stderr.write(f"orias-disasm: '{e.filename or output or 'standard output'}': {e.strerror}\n")
        raise typer.Exit(1) from None
