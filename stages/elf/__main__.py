"""`orias-elf`: an Ori stream at level `encoded` to a cubin."""

from __future__ import annotations

import sys

from ir_format import kept


def main() -> None:
    """Run the command line: a plain one at once, any other by Typer's application."""
    import gc

    kept.use()
    from stages.plumbing.console import run_tool

    gc.disable()  # as in stages.plumbing.stage_main.main

    def body() -> int:
        from stages.plumbing.plain import path, read

        plain = read(sys.argv[1:], {"-o": "output", "--output": "output"}, most=1)
        if plain is None:
            from stages.elf.cli import app

            app()
            return 0
        from stages.elf.work import run_elf

        output = plain.last("output")
        return run_elf(path(plain.files[0]) if plain.files else None, output and path(output))

    run_tool("orias-elf", body)


if __name__ == "__main__":
    main()
