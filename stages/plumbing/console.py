"""What every command line of ours does first and last: standard streams that may be closed, full or broken, and
signals.

A signal ends a tool at once, without a traceback. A message that can't be written is lost, as with any C program;
output that can't be written is an error of one line with the exit code of the tool.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable
from typing import Final, NoReturn

from stages.plumbing import files

_CLOSED: Final = (
    os.O_WRONLY,
    os.O_RDONLY,
    os.O_WRONLY,
)  # reading from the first and writing to the second must fail; what is said goes nowhere


class _Said(io.TextIOWrapper):
    """Standard error: a full disk or a closed pipe behind it changes nothing but that nobody reads it."""

    tool = ""  # what stands for `ptxas` in front of messages

    def write(self, text: str) -> int:
        if self.tool:
            text = "".join(
                [self.tool + line[5:] if line.startswith("ptxas ") else line for line in text.splitlines(True)]
            )
        try:
            return super().write(text)
        except (OSError, ValueError):
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except (OSError, ValueError):
            pass


def prepare() -> None:
    """Standard streams that exist, and the default action for an interrupt."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    for fd, mode in enumerate(_CLOSED):
        try:
            os.fstat(fd)
        except OSError:
            files.closed.add(fd)
            os.open(os.devnull, mode)  # the lowest free descriptor: this one; else the next pipe would take its place
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8")
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8")
    if sys.stderr is None or type(sys.stderr) is io.TextIOWrapper:
        # Names of files are bytes: what is no UTF-8 is printed as it was given.
        sys.stderr = _Said(
            io.BufferedWriter(io.FileIO(2, "w", closefd=False)),
            encoding="utf-8",
            errors="surrogateescape",
            line_buffering=True,
        )


def call(tool: str) -> None:
    """Put this name in front of messages, as --tool-name asks."""
    if isinstance(sys.stderr, _Said):
        sys.stderr.tool = tool


def leave(name: str, code: int, failure: int, error: OSError | None = None) -> NoReturn:
    """End the process with what it printed written out; ``failure`` is the exit code where that can't be done, or could
    not (``error``)."""
    try:
        sys.stdout.flush()
    except OSError as e:
        error = error or (None if e.errno in files.told else e)
        code = code or failure
    if error is not None:
        code = code or failure
        if not isinstance(error, BrokenPipeError):
            what = f"'{error.filename}'" if error.filename else "can't write to standard output"
            sys.stderr.write(f"{name}: {what}: {error.strerror or error}\n")
    sys.stderr.flush()
    os._exit(code)  # taking the modules apart again would take longer than a stage


def run_tool(name: str, body: Callable[[], object]) -> NoReturn:
    """Run a tool's command line to its end. ``body`` may return an exit code or raise SystemExit."""
    prepare()
    code = 0
    try:
        got = body()
        code = got if isinstance(got, int) else 0
    except SystemExit as e:
        if isinstance(e.code, str):
            sys.stderr.write(f"{e.code}\n")
        code = e.code if isinstance(e.code, int) else int(e.code is not None)
    except OSError as e:
        leave(name, 1, 1, e)
    except MemoryError:
        sys.stderr.write(f"{name}: out of memory\n")
        code = 1
    leave(name, code, 1)
