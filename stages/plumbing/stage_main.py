"""The program of a stage between `parse` and `elf`."""

from __future__ import annotations

import sys

from ir_format.typed import NoReturn
from stages.plumbing.runner import Flags, Stage, run_files, run_stage


def main(stage: Stage) -> NoReturn:
    """The command line of a stage. Typer isn't imported for a plain one (:mod:`stages.plumbing.plain`)."""
    import gc

    from stages.plumbing.console import run_tool

    # The tree of a stage lives as long as its process: a collection finds nothing, and collections take a third of the
    # time.
    gc.disable()

    def body() -> int:
        from stages.plumbing.plain import completing, path, read

        if len(sys.argv) == 1 and not completing():
            return run_stage(stage, sys.stdin.buffer, sys.stdout.buffer, Flags())
        plain = read(sys.argv[1:], {"-o": "output", "--output": "output"}, most=1)
        if plain is not None:
            output = plain.last("output")
            return run_files(stage, path(plain.files[0]) if plain.files else None, output and path(output), Flags())
        from stages.plumbing.cli import stage_app

        stage_app(stage)()
        return 0

    run_tool(f"orias-{stage.name}", body)
