"""`orias-show`: the command line."""

from __future__ import annotations


def main() -> None:
    """Run the stage's Typer command line."""
    from stages.show.cli import app

    app()


if __name__ == "__main__":
    main()
