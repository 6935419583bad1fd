"""The Typer command line of orias-reduce."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from stages.plumbing.application import new_app

app = new_app()


@app.command(
    help="Find the smallest PTX that still shows a fault: kernels, instructions, operands and declarations are removed "
    "out as long as the judge sees it. Judges: co-simulation with the PTX interpreter, or what the chain fails with; "
    "--crash; a command (--test); --same. Programs that read registers which nothing wrote are refused. "
    "Exit code 0: reduced, 1: the file does not show the fault, 2: bad input."
)
def run(
    file: Annotated[Path, typer.Argument(help="PTX")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="where to write (standard output)")] = None,
    test: Annotated[
        str,
        typer.Option(
            "--test", help="shell command, given the PTX's path for {} or at its end: 0 says that the fault is there"
        ),
    ] = "",
    crash: Annotated[bool, typer.Option("--crash", help="the fault is that there is no cubin")] = False,
    message: Annotated[str, typer.Option("--message", help="with --crash: text that the message must contain")] = "",
    same: Annotated[
        bool, typer.Option("--same", help="the fault is that orias-bisect names the same stage and pass (slow)")
    ] = False,
    arch: Annotated[str, typer.Option("--arch", "-arch", help="architecture (otherwise the file's .target)")] = "",
    opt_level: Annotated[int, typer.Option("-O", min=0, max=3, help="optimization level")] = 3,
    jobs: Annotated[
        int, typer.Option("-j", "--jobs", min=0, help="candidates judged at once (0: number of cores)")
    ] = 0,
    timeout: Annotated[float, typer.Option("--timeout", min=0.1, help="seconds for a judge")] = 20.0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="print no progress")] = False,
) -> None:
    from ir_format.diag import OriasError
    from ir_format.model import AttrValue
    from ir_format.target import fitting_target
    from stages.plumbing.files import write_file
    from stages.reduce.judges import ByChain, Command
    from stages.reduce.reduce import Reducer

    def said(text: str) -> None:
        if not quiet:
            print(text, file=sys.stderr, flush=True)

    try:
        data = file.read_bytes()
    except OSError as e:
        sys.stderr.write(f"orias-reduce: {file}: {e.strerror}\n")
        raise typer.Exit(2) from None
    text = data.decode("latin-1")
    target = arch or fitting_target(data)
    options: dict[str, AttrValue] = {"opt-level": opt_level, "fmad": 0}
    wanted = message if crash or message else None
    try:
        judge: Any = Command(test, timeout) if test else ByChain(target, options, wanted, same, timeout)
        if not test:
            said(f"reducing what this is: {judge.begin(text)}")
        made = Reducer(text, target, judge, jobs or os.cpu_count() or 1, said).run()
        if output is not None:
            write_file(str(output), made.encode("latin-1", "replace"))
        else:
            print(made, end="")
    except OriasError as e:
        sys.stderr.write(f"orias-reduce: {e}\n")
        raise typer.Exit(1) from None
    except OSError as e:
        sys.stderr.write(f"orias-reduce: {e.filename or output}: {e.strerror}\n")
        raise typer.Exit(2) from None
