"""`orias-facts`: the command line."""

from __future__ import annotations


def main() -> None:
    """Run the Typer command line."""
    from stages.facts.cli import app

    app()


if __name__ == "__main__":
    main()
