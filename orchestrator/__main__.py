"""`orias`: PTX in, cubin out, with ptxas's command line."""

from __future__ import annotations

import gc
import os
import sys


def main() -> None:
    """Entry point."""
    gc.disable()  # a short life: collections while modules load find nothing
    from orchestrator.conflicts import UsageError
    from orchestrator.options import read, usage

    try:
        cl = read(sys.argv[1:])
    except UsageError as e:
        sys.stderr.write(e.render())
        sys.exit(255)
    if cl.flag("version"):
        from stages.runner import VERSION

        # The last line is what callers of ptxas read from it (Triton "release N.N", XLA "VN.N.N"): the release whose PTX and cubins these are.
        sys.stdout.write(f"orias: an open PTX optimizing assembler\nVersion {VERSION}\nIn place of: Cuda compilation tools, release 13.0, V13.0.88\n")
    elif cl.flag("list-version"):
        from stages.parse.targets import VERSIONS

        ordered = sorted(VERSIONS, key=lambda v: tuple(map(int, v.split("."))))
        sys.stdout.write("".join(f"{v}\n" for v in ordered))
    elif cl.flag("help") or not (cl.inputs or cl.lists.get("input-as-string") or "start-from" in cl.values):
        sys.stdout.write(usage())
    else:
        from orchestrator.driver import run

        code = run(cl)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # taking the modules apart again would take longer than a stage


if __name__ == "__main__":
    main()
