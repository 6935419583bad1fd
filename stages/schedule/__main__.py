"""`orias-schedule`: the command line of the schedule stage."""

from __future__ import annotations

import sys

from ir_format import kept


def main() -> None:
    """Run the stage."""
    kept.use()
    from stages.plumbing.chain import SCHEDULE
    from stages.plumbing.stage_main import main as run

    sys.exit(run(SCHEDULE))


if __name__ == "__main__":
    main()
