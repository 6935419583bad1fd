"""`orias-elf`: an Ori stream at level `encoded` to a cubin."""

from __future__ import annotations


def main() -> None:
    """Run the Typer command line."""
    from stages.plumbing.console import run_tool

    def body() -> None:
        from stages.elf.cli import app

        app()

    run_tool("orias-elf", body)


if __name__ == "__main__":
    main()
