"""The Typer command line of orias-bisect: its own options, and those of `orias`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from stages.plumbing.application import new_app

app = new_app()


class _WithOrias(TyperCommand):
    """Removes the options of `orias` from the command line before the others are parsed."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Split the words."""
        from orchestrator.conflicts import UsageError
        from orchestrator.options import find

        own = {"-h", "--help", *(name for p in self.params for name in p.opts)}
        mine: list[str] = []
        theirs: list[str] = []
        at = 0
        while at < len(args):
            word = args[at]
            at += 1
            if not word.startswith("-") or word == "-" or word.partition("=")[0] in own or word[:2] == "-O":
                mine.append(word)
                continue
            try:
                opt, _, _, given = find(word)
            except UsageError:
                mine.append(word)
                continue
            theirs.append(word)
            if opt.kind != "flag" and not given and at < len(args):
                theirs.append(args[at])
                at += 1
        ctx.obj = theirs
        return list(super().parse_args(ctx, mine))


@app.command(
    cls=_WithOrias,
    help="Find the stage, the pass and the rewrite that make a cubin wrong. Judges: "
    "those that need no test look first; then co-simulation with the PTX interpreter, "
    "a command (--test), or whether there is a cubin (--crash). Takes every option of orias as well as its own. "
    "Exit code 0: found, 1: nothing is wrong, 2: bad input, 3: can't be judged, 4: wrong, "
    "but no culprit could be named, 5: the test command does not run.",
)
def run(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="PTX, or a saved stream (then --test or --crash is needed)")],
    test: Annotated[
        str,
        typer.Option(
            "--test",
            help="shell command, given the cubin's path for {} or at its end: exit 0 right, 125 can't tell, else wrong",
        ),
    ] = "",
    crash: Annotated[
        bool, typer.Option("--crash", help="the fault is that the chain crashes, refuses or does not end")
    ] = False,
    message: Annotated[str, typer.Option("--message", help="with --crash: text that its message must contain")] = "",
    metric: Annotated[
        str, typer.Option("--metric", help="print the number that this command prints for the cubin, part by part")
    ] = "",
    ptxas: Annotated[str, typer.Option("--ptxas", help="with --metric: another compiler to compare with")] = "",
    arch: Annotated[str, typer.Option("--arch", "-arch", help="architecture (otherwise the file's .target)")] = "",
    opt_level: Annotated[int, typer.Option("-O", min=0, max=3, help="optimization level")] = 3,
    option: Annotated[
        list[str] | None, typer.Option("--option", help="KEY=VALUE: an option of orias, by its long name")
    ] = None,
    kernel: Annotated[
        list[str] | None, typer.Option("--kernel", help="co-simulate only this kernel (may be repeated)")
    ] = None,
    seeds: Annotated[int | None, typer.Option("--seeds", min=1, help="launches a kernel")] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            min=0.1,
            help=(
                "seconds after which the chain, or a judge, counts as hanging (60 for a command; "
                "otherwise by the size of the file)"
            ),
        ),
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option("--without", help="STAGE:PASS to disable in every run (may be repeated)")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="continue after the first culprit")] = False,
    table: Annotated[bool, typer.Option("--table", help="also the verdicts over -O levels and targets")] = False,
    html: Annotated[
        Path | None, typer.Option("--html", help="the report as a page, the two streams side by side")
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option("--keep", help="folder for right.cubin, wrong.cubin and the streams after the guilty part"),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", help="folder for all that a bug report needs: the lines, the page, the table, the reduced PTX"
        ),
    ] = None,
    vendor: Annotated[
        Path | None,
        typer.Option("--vendor", help="judge this compiler, with ptxas's command line, instead of ours"),
    ] = None,
    witness: Annotated[
        Path | None, typer.Option("--witness", help="with --vendor: one more compiler, as a witness against it")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="only the result")] = False,
) -> None:
    from stages.bisect.command import Request, run_file

    words = [*(ctx.obj or []), f"-O{opt_level}"]
    words += ["-arch", arch] if arch else []
    for text in option or []:
        key, eq, value = text.partition("=")
        if not eq or not key:
            sys.stderr.write(f"orias-bisect: '{text}': expected KEY=VALUE\n")
            raise typer.Exit(2)
        words.append(f"--{key}={value}")
    said = (lambda text: None) if quiet else (lambda text: print(text, file=sys.stderr, flush=True))
    wanted = message if crash or message else None
    request = Request(file, words, test, wanted, metric, ptxas, tuple(kernel or ()), seeds, timeout, keep, html,
                      tuple(without or ()), every, table, report, vendor, witness)  # fmt: skip
    raise typer.Exit(run_file(request, said))
