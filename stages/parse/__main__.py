"""`orias-parse`: PTX text to an Ori stream at level `ptx`."""

from __future__ import annotations


def main() -> None:
    """Run the stage's Typer command line."""
    from stages.parse.cli import app

    app()


if __name__ == "__main__":
    main()
