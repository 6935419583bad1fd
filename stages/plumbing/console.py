"""Start and end of every command line: standard streams that may be closed, full or broken, and signals.

A signal ends a tool at once, without a traceback. A message that can't be written is lost, as in any C program. Output
that can't be written is reported in one line, with the tool's exit code for failure.
"""

from __future__ import annotations

import io
import os
import sys

# What `signal` is made of: its own names are enumerations, whose import takes as long as a small stage.
from _signal import SIG_DFL, SIGINT, default_int_handler, getsignal, signal  # type: ignore[import-not-found]
from collections.abc import Callable

from ir_format import kept
from ir_format.typed import Final, NoReturn
from stages.plumbing import files

#: How /dev/null replaces a closed standard stream: reading the first and writing the second fail, messages are
#: dropped.
_CLOSED: Final = (os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)


class _StandardError(io.TextIOWrapper):
    """Standard error. If it is a full disk or a closed pipe, messages are lost and nothing else changes."""

    tool = ""  # replaces `ptxas` at the start of messages
    record: list[str] | None = None  # takes what is written from now on

    def write(self, text: str) -> int:
        if self.record is not None:
            self.record.append(text)
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
    """Make sure that the standard streams exist, and that an interrupt has its default action."""
    if getsignal(SIGINT) is default_int_handler:
        signal(SIGINT, SIG_DFL)
    for fd, mode in enumerate(_CLOSED):
        try:
            os.fstat(fd)
        except OSError:
            files.closed.add(fd)
            os.open(os.devnull, mode)  # gets this descriptor, the lowest free one; else the next pipe would get it
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8")
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8")
    if sys.stderr is None or type(sys.stderr) is io.TextIOWrapper:
        # File names are bytes: a name that is not UTF-8 is printed as it was given.
        sys.stderr = _StandardError(
            io.BufferedWriter(io.FileIO(2, "w", closefd=False)),
            encoding="utf-8",
            errors="surrogateescape",
            line_buffering=True,
        )


def set_tool_name(tool: str) -> None:
    """Begin messages with this name, as --tool-name asks."""
    if isinstance(sys.stderr, _StandardError):
        sys.stderr.tool = tool


def recorded() -> list[str] | None:
    """A list that messages are added to from now on; None where standard error is not ours."""
    if not isinstance(sys.stderr, _StandardError):
        return None
    sys.stderr.record = []
    return sys.stderr.record


def exit_process(name: str, code: int, failure: int, error: OSError | None = None) -> NoReturn:
    """Flush the standard streams and end the process. ``failure`` is the exit code if output can't be written, or could
    not be (``error``)."""
    try:
        sys.stdout.flush()
    except OSError as e:
        error = error or (None if e.errno in files.reported else e)
        code = code or failure
    if error is not None:
        code = code or failure
        if not isinstance(error, BrokenPipeError):
            what = f"'{error.filename}'" if error.filename else "can't write to standard output"
            sys.stderr.write(f"{name}: {what}: {error.strerror or error}\n")
    sys.stderr.flush()
    kept.save()
    os._exit(code)  # the interpreter's orderly end would take longer than a stage


def run_tool(name: str, body: Callable[[], object]) -> NoReturn:
    """Run the command line of a tool and end the process. ``body`` may return an exit code or raise SystemExit."""
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
        exit_process(name, 1, 1, e)
    except MemoryError:
        sys.stderr.write(f"{name}: out of memory\n")
        code = 1
    exit_process(name, code, 1)
