"""The Typer command line of the elf stage."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from stages.plumbing.application import new_app

app = new_app()


@app.command(help="Stage elf: reads an Ori stream at level 'encoded', writes a cubin.")
def run(
    stream: Annotated[Path | None, typer.Argument(help="input stream (default: standard input)")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="cubin (default: standard output)")] = None,
) -> None:
    from stages.plumbing.back_end import elf_from_stream
    from stages.plumbing.files import write_file

    parts: list[bytes] = []
    try:
        if stream is None or str(stream) == "-":
            code = elf_from_stream(sys.stdin.buffer, parts.append, quiet=True)
        else:
            with open(stream, "rb") as inp:
                code = elf_from_stream(inp, parts.append, quiet=True)
        if code == 0 and output is not None:
            write_file(str(output), b"".join(parts))
        elif code == 0:
            sys.stdout.buffer.write(b"".join(parts))
    except OSError as e:
        sys.stderr.write(f"orias-elf: {e.filename or output or 'standard output'}: {e.strerror}\n")
        code = 1
    raise typer.Exit(code)
