"""`orias-elf`: an Ori stream at level `encoded` to a cubin."""

from __future__ import annotations


def main() -> None:
    """Run the stage's Typer command line."""
    from stages.elf.cli import app

    app()


if __name__ == "__main__":
    main()
