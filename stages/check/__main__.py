"""`orias-check`: judges of compiled code."""

from __future__ import annotations


def main() -> None:
    """Run the Typer command line."""
    from stages.check.cli import app

    app()


if __name__ == "__main__":
    main()
