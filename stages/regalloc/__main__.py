"""`orias-regalloc`: the command line of the regalloc stage."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the stage."""
    from stages.plumbing.chain import REGALLOC
    from stages.plumbing.stage_main import main as run

    sys.exit(run(REGALLOC))


if __name__ == "__main__":
    main()
