"""`orias-optimize`: the command line of the optimize stage."""

from __future__ import annotations

import sys

from ir_format import kept


def main() -> None:
    """Run the stage."""
    kept.use()
    from stages.plumbing.chain import OPTIMIZE
    from stages.plumbing.stage_main import main as run

    sys.exit(run(OPTIMIZE))


if __name__ == "__main__":
    main()
