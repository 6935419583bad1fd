"""`orias-encode`: the command line of the encode stage."""

from __future__ import annotations

import sys

from ir_format import kept


def main() -> None:
    """Run the stage."""
    kept.use()
    from stages.plumbing.chain import ENCODE
    from stages.plumbing.stage_main import main as run

    sys.exit(run(ENCODE))


if __name__ == "__main__":
    main()
