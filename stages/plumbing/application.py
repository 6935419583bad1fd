"""The Typer application that all command lines are made from: the same help options, plain tracebacks, no options that
install shell completion."""

from __future__ import annotations

import typer


def new_app() -> typer.Typer:
    """An empty application with `-h` beside `--help`."""
    return typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]}
    )
