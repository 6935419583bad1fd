"""What a worker of the farm does: one compile in a process of its own. Its host needs orias, and no Dask code is here.

The compile goes through a resident server of the worker's host (:mod:`orchestrator.client`), so that only the first
one loads the tables; without a server the process compiles by itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from typing import Final

from ir_format.record import NamedTuple
from orchestrator.client import own_program

#: The exit code of a worker whose orias is another one than the client's.
OTHER: Final = 254


class Job(NamedTuple):
    """One file. ``options``: without the file and `-o`. ``folder``: the client's, in which relative names of options
    are looked up where the worker's host has it. ``version``: of the client."""

    source: str
    text: bytes
    options: tuple[str, ...]
    folder: str
    version: str


class Result(NamedTuple):
    """``code``: exit code, negative for a signal. ``said``: messages. ``cubin``: empty after a failure."""

    code: int
    said: str
    cubin: bytes
    seconds: float
    host: str


def compile_job(job: tuple[str, bytes, tuple[str, ...], str, str]) -> tuple[int, str, bytes, float, str]:
    """Compile one file: a :class:`Job` as a plain tuple in, a :class:`Result` as a plain tuple out, since the classes
    may have another module name at the other side."""
    from stages.plumbing.version import VERSION

    given = Job(*job)
    host = f"{os.uname().nodename}:{os.getpid()}"
    if given.version != VERSION:
        text = f"ptxas fatal   : the worker {host} has orias {VERSION}, the farm orias {given.version}\n"
        return OTHER, text, b"", 0.0, host
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="orias-farm-") as scratch:
        # The name of the source is in the messages: its last part stays, the folder is put back below.
        made = os.path.join(scratch, "cubin")
        folder = os.path.join(scratch, "ptx")
        os.mkdir(folder)
        source = os.path.join(folder, os.path.basename(given.source))
        with open(source, "wb") as f:
            f.write(given.text)
        command = own_program("orchestrator.__main__", "main", "main()")
        done = subprocess.run(
            [*command, *given.options, source, "-o", made],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=given.folder if os.path.isdir(given.folder) else scratch,
            env=os.environ | {"ORIAS_SERVER": os.environ.get("ORIAS_SERVER") or _socket()},
            check=False,
        )
        said = done.stderr.decode("utf-8", "surrogateescape").replace(source, given.source)
        cubin = b""
        if done.returncode == 0:
            try:
                with open(made, "rb") as f:
                    cubin = f.read()
            except OSError:
                pass  # an option asked for something else than a cubin
    return done.returncode, said, cubin, time.monotonic() - began, host


def _socket() -> str:
    """Where the servers of this user's workers listen; the client checks that the folder is private."""
    return os.path.join(tempfile.gettempdir(), f"orias-farm-{os.geteuid()}-{sys.version_info[1]}", "socket")
