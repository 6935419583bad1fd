"""`orias-diff`: the command line."""

from __future__ import annotations


def main() -> None:
    """Run the Typer command line."""
    from stages.plumbing.console import run_tool

    def body() -> None:
        from stages.diff.cli import app

        app()

    run_tool("orias-diff", body)


if __name__ == "__main__":
    main()
