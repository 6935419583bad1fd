"""Compile each of some PTX files for its own target, and keep nothing: `python -m orias.each [OPTIONS] FILE...`.

For hooks and CI, which want to know whether files compile. Options are those of `orias`. Exit code 1 if a file is
refused.
"""

from __future__ import annotations

import os
import re
import sys
from typing import Final

_TARGET: Final = re.compile(rb"^\s*\.target\s+(sm_\w+)", re.M)


def main() -> None:
    """Run the command line."""
    from orchestrator.__main__ import _run
    from stages.plumbing.console import prepare

    options = [w for w in sys.argv[1:] if w.startswith("-")]
    files = [w for w in sys.argv[1:] if not w.startswith("-")]
    prepare()
    bad = 0
    for name in files:
        try:
            with open(name, "rb") as f:
                found = _TARGET.search(f.read())
        except OSError as e:
            sys.stderr.write(f"orias.each: '{name}': {e.strerror}\n")
            bad += 1
            continue
        arch = ["-arch", found[1].decode()] if found else []
        bad += _run([*options, *arch, name, "-o", os.devnull]) != 0
    sys.stderr.flush()
    os._exit(1 if bad else 0)


if __name__ == "__main__":
    main()
