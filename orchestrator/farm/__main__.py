"""`orias-farm`, also `orias farm`: the command line."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> None:
    """Run the Typer command line."""
    from stages.plumbing.console import run_tool

    def body() -> None:
        from orchestrator.farm.cli import app

        words = sys.argv[1:] if argv is None else argv
        app(["--help" if w == "-h" else w for w in words], prog_name="orias-farm")

    run_tool("orias-farm", body)


if __name__ == "__main__":
    main()
