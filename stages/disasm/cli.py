"""The Typer command line of `orias-disasm`."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from stages.plumbing.application import new_app

app = new_app()


class LifeMode(StrEnum):
    """How life ranges look."""

    wide = "wide"
    narrow = "narrow"
    numbers = "count"


@app.command(help="Disassemble a cubin; or put edited code back into it.")
def run(
    cubin: Annotated[Path, typer.Argument(help="the cubin")],
    print_code: Annotated[bool, typer.Option("--print-code", "-c", help="only code (always so)")] = False,
    line_info: Annotated[bool, typer.Option("--print-line-info", "-g", help="with source lines")] = False,
    line_inline: Annotated[
        bool, typer.Option("--print-line-info-inline", "-gi", help="with source lines and the calls that were inlined")
    ] = False,
    line_ptx: Annotated[bool, typer.Option("--print-line-info-ptx", "-gp", help="with lines of the PTX")] = False,
    life: Annotated[
        bool, typer.Option("--print-life-ranges", "-plr", help="with columns that show which registers are live")
    ] = False,
    life_mode: Annotated[
        LifeMode | None, typer.Option("--life-range-mode", "-lrm", help="how the columns look; implies -plr")
    ] = None,
    graph: Annotated[
        bool, typer.Option("--output-control-flow-graph", "-cfg", help="the control-flow graph as DOT (hyperblocks)")
    ] = False,
    blocks: Annotated[
        bool,
        typer.Option("--output-control-flow-graph-with-basic-blocks", "-bbcfg", help="the same for basic blocks"),
    ] = False,
    functions: Annotated[
        str,
        typer.Option(
            "--cuda-function-index", "-fun", help="only these functions: names or numbers of symbols, comma list"
        ),
    ] = "",
    separate: Annotated[
        bool, typer.Option("--separate-functions", "-sf", help="with empty lines before each function")
    ] = False,
    hex_words: Annotated[bool, typer.Option("--hex", "-hex", help="print the words next to the text")] = False,
    exact: Annotated[
        bool, typer.Option("--exact", help="add notes after the text: what it omits, and the control word")
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
        lines = "ptx" if line_ptx else "inline" if line_inline else "source" if line_info else ""
        drawn = "blocks" if blocks else "hyperblocks" if graph else ""
        if life or life_mode is not None:
            ranges = (life_mode or LifeMode.wide).value
        else:
            ranges = ""
        view = work.View(hex_words, exact, lines, ranges, drawn, separate, functions)
        data = work.run(cubin, view, as_json, ori, patch, unscheduled)
        if output is None:
            if (ori or unscheduled or patch is not None) and sys.stdout.isatty():
                sys.stderr.write("orias-disasm: binary output is not written to a terminal: name a file with -o\n")
                raise typer.Exit(2)
            sys.stdout.buffer.write(data)
        else:
            write_file(str(output), data)
    except CompileError as e:
        sys.stderr.write(f"orias-disasm: {e.message}{f' (line {e.line})' if e.line else ''}\n")
        raise typer.Exit(2) from None
    except OriasError as e:
        sys.stderr.write(f"orias-disasm: '{cubin}': {e}\n")
        raise typer.Exit(2) from None
    except OSError as e:
        sys.stderr.write(f"orias-disasm: '{e.filename or output or 'standard output'}': {e.strerror}\n")
        raise typer.Exit(2) from None
