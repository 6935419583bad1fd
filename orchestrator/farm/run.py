"""From a command line to the outcome of all its files."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from ir_format.diag import Diagnostic
from orchestrator.batch import FAILED, File, files_of, make_folder, write_report
from orchestrator.conflicts import UsageError
from orchestrator.farm.cluster import Farm, Lost, Settings, open_cluster
from orchestrator.options import read


def _files(argv: Sequence[str]) -> tuple[list[File], str | None]:
    """The files, and where the report goes. Raises UsageError."""
    cl = read(list(argv))
    for name in ("jobs", "jobserver"):
        if name in cl.values:
            raise UsageError(f"'--{name}' is an option for one machine: the cluster has its workers")
    files = files_of(cl, argv)
    if not files:
        raise UsageError("there is no file to compile")
    make_folder(cl)
    for f in files:
        f.argv = [*f.argv[:-3], "--jobs", "1"]  # without the file, `-o` and its name
    return files, cl.values.get("report")


def run_farm(argv: Sequence[str], settings: Settings) -> int:
    """Compile the files of a command line on a cluster; returns the exit code: 0 if every file was compiled."""
    try:
        files, report = _files(argv)
    except UsageError as e:
        sys.stderr.write(e.render())
        return FAILED
    os.environ.setdefault("PYTHONPATH", os.pathsep.join(p for p in sys.path if p))  # of local workers
    farm = None
    try:
        client, _ = open_cluster(settings)
        farm = Farm(files, client, settings)
        farm.run()
    except Lost as e:
        left = sum([f.code is None for f in files])
        sys.stderr.write(Diagnostic("fatal", f"{e}; {left} of {len(files)} files were not compiled").render() + "\n")
    if report is not None:
        more = [{"host": h, "attempts": n} for h, n in zip(farm.hosts, farm.attempts)] if farm else None
        if not write_report(report, files, more):
            return FAILED
    return 0 if all(f.code == 0 for f in files) else FAILED
