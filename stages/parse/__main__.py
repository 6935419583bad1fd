"""`orias-parse`: PTX text to an Ori stream at level `ptx`."""

from __future__ import annotations

import sys

from ir_format import kept
from ir_format.typed import Final

_OPTIONS: Final = {
    "--arch": "arch",
    "-O": "level",
    "--opt-level": "level",
    "-o": "output",
    "--output": "output",
    "--option": "option",
}


def main() -> None:
    """Run the command line: a plain one at once, any other by Typer's application."""
    import gc

    kept.use()
    from stages.plumbing.console import run_tool

    gc.disable()  # as in stages.plumbing.stage_main.main

    def body() -> int:
        from stages.plumbing.plain import read

        plain = read(sys.argv[1:], _OPTIONS, ("--explain",))
        level = (plain.last("level") if plain is not None else None) or "3"
        if plain is None or not (level.isascii() and level.isdigit()):
            from stages.parse.cli import app

            app()
            return 0
        from stages.parse.work import run_parse
        from stages.plumbing.plain import path

        output = plain.last("output")
        return run_parse(
            [path(name) for name in plain.files],
            plain.last("arch") or "sm_75",
            int(level),
            output and path(output),
            plain.values.get("option", []),
            bool(plain.flags),
        )

    run_tool("orias-parse", body)


if __name__ == "__main__":
    main()
