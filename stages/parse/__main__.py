"""`orias-parse`: PTX text to an Ori stream at level `ptx`."""

from __future__ import annotations


def main() -> None:
    """Run the Typer command line."""
    from stages.plumbing.console import run_tool

    def body() -> None:
        from stages.parse.cli import app

        app()

    run_tool("orias-parse", body)


if __name__ == "__main__":
    main()
