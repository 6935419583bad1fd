"""The Typer command line of orias-diff."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from stages.plumbing.application import new_app


class Format(StrEnum):
    """What to write."""

    text = "text"
    html = "html"


app = new_app()


@app.command(
    help="Compare two compilations: cubins (of anyone), or streams of level ori, allocated or scheduled. Instructions "
    "are aligned; registers, control words, estimated cycles by instruction and PTX line, and what they are for. "
    "Exit code 0: the same, 1: they differ, 2: bad input."
)
def run(
    first: Annotated[Path, typer.Argument(help="cubin or stream")],
    second: Annotated[Path, typer.Argument(help="cubin or stream")],
    format: Annotated[Format, typer.Option("--format", "-f", help="what to write")] = Format.text,
    everything: Annotated[bool, typer.Option("--all", help="also the instructions that are the same")] = False,
) -> None:
    from ir_format.diag import OriasError
    from stages.diff.diff import page, paired, text
    from stages.diff.timed import read_codes

    codes = []
    for path in (first, second):
        try:
            codes.append(read_codes(path.read_bytes()))
        except OSError as e:
            sys.stderr.write(f"orias-diff: can't read '{path}': {e.strerror}\n")
            raise typer.Exit(2) from None
        except OriasError as e:
            sys.stderr.write(f"orias-diff: {path}: {e}\n")
            raise typer.Exit(2) from None
    pairs = paired(codes[0], codes[1])
    if format is Format.html:
        sys.stdout.write(page(pairs, (str(first), str(second))))
    else:
        for line in text(pairs, everything):
            print(line)
    raise typer.Exit(int(not all(p.same for p in pairs)))
