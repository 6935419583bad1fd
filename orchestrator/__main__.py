"""`orias`: PTX in, cubin out, with ptxas's command line."""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False  # a client of a server imports no more than it needs

if TYPE_CHECKING:
    from orchestrator.options import CommandLine

FAILED = 255  # ptxas's exit code for every failure


def main() -> None:
    """Entry point."""
    if sys.argv[1:2] == ["farm"]:
        from orchestrator.farm.__main__ import main as farm

        farm(sys.argv[2:])
    gc.disable()  # a short life: collections while modules load find nothing
    server = os.environ.get("ORIAS_SERVER", "")
    if server:
        from orchestrator.client import through_server

        through_server(server, sys.argv[1:])
    run_here(sys.argv[1:])


def run_here(argv: list[str], resident: bool = False) -> None:
    """Run a command line and end the process. ``resident``: it is a fork of a server."""
    from ir_format import kept

    kept.use()
    from stages.plumbing.console import exit_process, prepare

    gc.disable()
    prepare()
    try:
        code = _run(argv, resident)
    except OSError as e:  # of standard output: files and processes have their own messages
        exit_process("orias", FAILED, FAILED, e)
    exit_process("orias", code, FAILED)


def serve(path: str) -> int:
    """Compile for others at a socket until idle; returns the exit code."""
    from orchestrator import server

    return server.serve(path, lambda argv: run_here(argv, resident=True))


def _many(cl: CommandLine) -> bool:
    """Whether several files are compiled, each by itself."""
    report = cl.values.get("report", "")
    page = report.endswith((".html", ".htm"))  # of the one file
    return "batch" in cl.values or "output-dir" in cl.values or (bool(report) and not page)


def _run(argv: list[str], resident: bool = False) -> int:
    from orchestrator.conflicts import UsageError
    from orchestrator.options import read, release_of

    try:
        cl = read(argv)
    except UsageError as e:
        sys.stderr.write(e.render())
        return FAILED
    if cl.flag("tool-name"):
        from stages.plumbing.console import set_tool_name

        set_tool_name(cl.values["tool-name"])
    stands_for = release_of(cl)
    if cl.flag("version"):
        from stages.plumbing.runner import VERSION

        # The last line is what callers of ptxas read from it (Triton "release N.N", XLA "VN.N.N"): the release whose
        # PTX and cubins these are.
        sys.stdout.write(
            f"orias: an open PTX optimizing assembler\nVersion {VERSION}\n"
            f"In place of: Cuda compilation tools, release {stands_for.name}, {stands_for.build}\n"
        )
    elif cl.flag("show-completion"):
        from orchestrator.completion import script

        sys.stdout.write(script(cl.values["show-completion"]))
    elif cl.flag("list-version"):
        from ir_format.release import PTX_VERSIONS

        sys.stdout.write("".join(f"{v[0]}.{v[1]}\n" for v in PTX_VERSIONS if v <= stands_for.newest))
    elif cl.flag("list-arch"):
        from ir_format.target import LISTED

        sys.stdout.write("".join(f"{sm}\n" for sm in LISTED))
    elif cl.flag("serve"):
        return serve(cl.values["serve"])
    elif not cl.flag("help") and _many(cl):
        from orchestrator.batch import run_batch

        return run_batch(cl, argv, lambda line: run_here(line, resident=True))
    elif cl.flag("help") or not (cl.inputs or cl.lists.get("input-as-string") or "start-from" in cl.values):
        from orchestrator.help import usage

        sys.stdout.write(usage(stands_for))
    else:
        form = cl.values.get("diagnostics-format", "text")
        if form == "text" and ("cache" in cl.values or "ORIAS_CACHE" in os.environ):
            from orchestrator.reuse import written_from_cache

            if written_from_cache(cl):
                return 0
        from orchestrator.driver import run

        if form != "text":
            from orchestrator.diagnostics import reported
            from stages.plumbing.runner import VERSION

            cl.values.pop("explain", None)  # each message has its line and hint
            return reported(form, cl.inputs, VERSION, lambda: run(cl, resident))
        return run(cl, resident)
    return 0


if __name__ == "__main__":
    main()
