"""Many files in one call: `orias --batch LIST`, or several PTX files with `--output-dir`.

Each file is compiled by a fork of this process, which has the modules and tables in memory, so one failure touches no
other file. Files are started by size, largest first; messages come in the order of the list. `--report` writes the
outcome of each as JSON. With `--jobserver` each file but the first waits for one of make's tokens.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence

from ir_format.diag import Diagnostic
from ir_format.record import Record
from ir_format.typed import BinaryIO, Final
from orchestrator.conflicts import UsageError
from orchestrator.jobserver import Tokens
from orchestrator.options import CommandLine, find

FAILED: Final = 255
_OURS: Final = frozenset({"batch", "output-dir", "report", "output-file"})
_LIST: Final = 1 << 26  # bytes of a list
_WAIT: Final = 0.05  # seconds between two looks for a token


class File(Record):
    """One file of a batch. ``code``: its exit code, negative for a signal; None while it isn't done."""

    source: str
    output: str
    argv: list[str]
    size: int = 0
    code: int | None = None
    said: str = ""
    began: float = 0.0
    seconds: float = 0.0


def largest_last(files: Sequence[File]) -> list[int]:
    """Indices of the files in the order in which they are popped to be compiled: the largest first, equal ones as
    listed."""
    return sorted(range(len(files)), key=lambda i: (files[i].size, -i))


def finish(file: File, code: int, said: str, seconds: float) -> None:
    """Note how the compile of a file ended."""
    file.code, file.said, file.seconds = code, said, seconds
    if code < 0:
        file.said += Diagnostic("fatal", f"the compile of '{file.source}' died (signal {-code})").render() + "\n"


class Messages:
    """Writes what is said of files in their order, each once all before it are done."""

    def __init__(self, files: Sequence[File]) -> None:
        self.files = files
        self.shown = 0

    def show(self, before: str = "") -> None:
        """Write what can be written; ``before``: in front of each text."""
        while self.shown < len(self.files) and self.files[self.shown].code is not None:
            said = self.files[self.shown].said
            if said:
                sys.stderr.write(before + said)
            self.shown += 1


class Running(Record):
    """A file at work: its place in the list, its message stream, and its token."""

    index: int
    said: BinaryIO
    token: bytes


def split_arguments(argv: Sequence[str]) -> tuple[list[str], list[str], str]:
    """The options of a command line without those of the batch, the files, and the value of `-o`. Raises UsageError."""
    options: list[str] = []
    names: list[str] = []
    output = ""
    words = iter(argv)
    for word in words:
        if word == "-" or not word.startswith("-"):
            names.append(word)
            continue
        option, name, value, given = find(word)
        whole = [word]
        if option.kind not in ("flag", "maybe") and not given and name != "-O":
            value = next(words, "")
            whole.append(value)
        if option.long == "output-file":
            output = value
        if option.long not in _OURS:
            options += whole
    return options, names, output


def _target_of(source: str, folder: str) -> str:
    stem = source.removesuffix(".ptx") + ".cubin"
    return os.path.join(folder, os.path.basename(stem)) if folder else stem


def _listed(cl: CommandLine, options: list[str]) -> list[File]:
    """The files of the list: a line is a file name, with options for it alone."""
    path = cl.values["batch"]
    try:
        with sys.stdin.buffer if path == "-" else open(path, "rb") as f:
            data = f.read(_LIST + 1)
    except (OSError, ValueError):
        raise UsageError(f"Could not open the list '{path}'") from None
    if len(data) > _LIST:
        raise UsageError(f"the list '{path}' has more than {_LIST} bytes")
    out: list[File] = []
    for number, line in enumerate(data.decode("utf-8", "surrogateescape").splitlines(), 1):
        try:
            words = shlex.split(line, comments=True)
        except ValueError as e:
            raise UsageError(f"line {number} of '{path}': {e}") from None
        if not words:
            continue
        own, names, output = split_arguments(words)
        if (
            len(names) != 1
            or names[0] == "-"
            or any(w.startswith(("--batch", "--report", "--output-dir")) for w in words)
        ):
            raise UsageError(f"line {number} of '{path}': expected one PTX file, and options of its own")
        output = output or _target_of(names[0], cl.values.get("output-dir", ""))
        out.append(File(names[0], output, [*options, *own, names[0], "-o", output]))
    return out


def files_of(cl: CommandLine, argv: Sequence[str]) -> list[File]:
    """The files that a command line asks for. Raises UsageError."""
    options, names, output = split_arguments(argv)
    if output:
        raise UsageError("'--output-file' names one file: use '--output-dir', or '-o' in the lines of the list")
    if len(names) != len(cl.inputs) or "-" in names:
        raise UsageError("the files of a batch are on the command line or in the list")
    folder = cl.values.get("output-dir", "")
    files = [File(n, _target_of(n, folder), [*options, n, "-o", _target_of(n, folder)]) for n in names]
    if cl.flag("batch"):
        files += _listed(cl, options)
    seen: dict[str, str] = {}
    for f in files:
        other = seen.setdefault(os.path.abspath(f.output), f.source)
        if other is not f.source:
            raise UsageError(f"'{other}' and '{f.source}' have the same output file '{f.output}'")
        try:
            f.size = os.stat(f.source).st_size
        except (OSError, ValueError):
            pass
    return files


class Batch:
    """A batch at work. ``work``: run one command line and end the process."""

    def __init__(self, files: list[File], jobs: int, tokens: Tokens, work: Callable[[list[str]], None]) -> None:
        self.files = files
        self.work = work
        self.jobs = jobs
        self.tokens = tokens
        self.running: dict[int, Running] = {}
        self.messages = Messages(files)

    def run(self) -> None:
        """Compile every file."""
        signal.signal(signal.SIGTERM, self._ended)
        waiting = largest_last(self.files)
        try:
            while waiting or self.running:
                while waiting and len(self.running) < self.jobs:
                    token = self.tokens.take() if self.running else b""
                    if token is None:
                        break
                    self._start(waiting.pop(), token)
                self._wait(bool(waiting) and len(self.running) < self.jobs)
        finally:
            for one in self.running.values():
                self.tokens.give(one.token)

    def _ended(self, number: int, frame: object) -> None:
        for pid, one in self.running.items():
            os.kill(pid, signal.SIGTERM)
            self.tokens.give(one.token)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def _start(self, index: int, token: bytes) -> None:
        file = self.files[index]
        file.began = time.monotonic()
        said = tempfile.TemporaryFile()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid:
            self.running[pid] = Running(index, said, token)
            return
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.dup2(said.fileno(), 2)
            self.work(file.argv)
        finally:
            os._exit(FAILED)

    def _wait(self, poll: bool) -> None:
        """Wait until a file ends; ``poll``: only briefly, since a token may come first."""
        pid, status = os.waitpid(-1, os.WNOHANG if poll else 0)
        if not pid:
            time.sleep(_WAIT)
            return
        one = self.running.pop(pid)
        self.tokens.give(one.token)
        file = self.files[one.index]
        with one.said as f:
            f.seek(0)
            said = f.read().decode("utf-8", "surrogateescape")
        finish(file, os.waitstatus_to_exitcode(status), said, time.monotonic() - file.began)
        self.messages.show()


def make_folder(cl: CommandLine) -> None:
    """Make the folder of `--output-dir`. Raises UsageError."""
    folder = cl.values.get("output-dir", "")
    if folder:
        try:
            os.makedirs(folder, exist_ok=True)
        except (OSError, ValueError):
            raise UsageError(f"Output folder '{folder}' could not be made") from None


def write_report(path: str, files: Sequence[File], more: Sequence[dict[str, object]] | None = None) -> bool:
    """Write the report (``-``: to standard output); False after a message that it could not be. ``more``: further
    entries of each file."""
    from stages.plumbing.files import write_output

    try:
        write_output(None if path == "-" else path, report(files, more).encode())
    except OSError as e:
        sys.stderr.write(Diagnostic("fatal", f"Report '{path}' could not be written: {e.strerror}").render() + "\n")
        return False
    return True


def report(files: Sequence[File], more: Sequence[dict[str, object]] | None = None) -> str:
    """The outcome of each file, as JSON."""
    rows: list[dict[str, object]] = [
        {
            "input": f.source,
            "output": f.output if f.code == 0 else None,
            "exit": f.code,
            "seconds": round(f.seconds, 4),
            "messages": f.said.splitlines(),
        }
        for f in files
    ]
    for row, entries in zip(rows, more or ()):
        row.update(entries)
    return json.dumps(rows, indent=1, ensure_ascii=True) + "\n"


def run_batch(cl: CommandLine, argv: Sequence[str], work: Callable[[list[str]], None]) -> int:
    """Run a batch, whose files are compiled by ``work`` in forks of this process; returns the exit code: 0 if every
    file was compiled."""
    from orchestrator.one_process import warm

    try:
        if not (cl.flag("batch") or cl.flag("output-dir")):
            raise UsageError("'--report' goes with '--batch' or '--output-dir'")
        files = files_of(cl, argv)
        make_folder(cl)
        jobs = cl.number("jobs", 0) or os.cpu_count() or 1
        tokens = Tokens.of_make(os.environ.get("MAKEFLAGS", "")) if cl.flag("jobserver") else Tokens()
    except UsageError as e:
        sys.stderr.write(e.render())
        return FAILED
    if jobs > 1:
        for f in files:
            f.argv += ["--jobs", "1"]
    warm()
    Batch(files, jobs, tokens, work).run()
    path = cl.values.get("report")
    if path is not None and not write_report(path, files):
        return FAILED
    return 0 if all(f.code == 0 for f in files) else FAILED
