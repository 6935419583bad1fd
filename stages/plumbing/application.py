"""The Typer application that all our command lines are made from: same help switches, no tracebacks in boxes, no shell
completion to install."""

from __future__ import annotations

import typer


def new_app() -> typer.Typer:
    """An empty application with `-h` beside `--help`."""
    return typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]}
    )
