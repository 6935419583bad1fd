"""Run work that may crash or not end in a separate process: the chain under search, and its judges.

The child is forked, so it has everything that is loaded. It reports its progress, and is stopped when its time is
over."""

from __future__ import annotations

import math
import os
import pickle
import resource
import select
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, Final

from ir_format.diag import CompileError, OriasError
from ir_format.record import Record

#: Seconds between two messages that say that a job is still running.
BEAT: Final = 5.0
#: How many times its processor time a job may take on the clock, on a machine with other work.
PATIENCE: Final = 6.0
_CHUNK: Final = 1 << 16
_DIED: Final = "the process died"

#: Called with a job's progress (a text), or with something to keep no matter what happens later (a tuple).
Note = Callable[[str | tuple[Any, ...]], object]


class Failure(Record, frozen=True):
    """Why there is no result. ``kind``: crash, refused, hang; ``place``: the last progress note (`stage: pass`)."""

    kind: str
    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.kind} in {self.place or 'the beginning'}: {self.message}"


class Refused(OriasError):
    """A stage rejected its input with a diagnostic."""


def attempt(
    job: Callable[[Note], Any],
    seconds: float,
    beat: Callable[[str], object] | None = None,
    keep: Callable[[tuple[Any, ...]], object] = lambda got: None,
) -> Any:
    """The result of ``job`` (it is pickled on the way), or a Failure. ``seconds``: of processor time, and
    :data:`PATIENCE` times as many on the clock. ``beat``: called now and then with the progress; ``keep``: called with
    the tuples that the job noted."""
    sys.stdout.flush()
    sys.stderr.flush()
    inp, out = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(inp)
        _child(job, out, seconds)
    os.close(out)
    got: Any = None
    try:
        got = _wait(inp, seconds, beat, keep)
    finally:
        os.close(inp)
        for end in (os.killpg, os.kill):
            try:
                end(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
        _, status = os.waitpid(pid, 0)
    if isinstance(got, Failure) and got.message == _DIED:
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        if number == signal.SIGXCPU:
            return Failure("hang", got.place, f"does not end within {seconds:g} s")
        return Failure("crash", got.place, f"ended by signal {signal.Signals(number).name}" if number else _DIED)
    return got


def _child(job: Callable[[Note], Any], out: int, seconds: float) -> None:
    """Run the job; never returns."""
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        most = math.ceil(seconds)  # a new process has used none
        resource.setrlimit(resource.RLIMIT_CPU, (most, most + 5))
        signal.signal(signal.SIGXCPU, signal.SIG_DFL)
        quiet = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(quiet, fd)
        place = [""]

        def note(text: str | tuple[Any, ...]) -> None:
            if isinstance(text, str):
                place[0] = text
            _send(out, ("note", text))

        try:
            result = job(note)
        except Refused as e:
            result = Failure("refused", place[0], str(e))
        except CompileError as e:
            result = Failure("refused", place[0], e.message)
        except BaseException as e:
            result = Failure("crash", place[0], _said(e))
        _send(out, ("done", result))
    finally:
        os._exit(0)


def _said(e: BaseException) -> str:
    where = e.__traceback__
    while where is not None and where.tb_next is not None:
        where = where.tb_next
    file = os.path.basename(where.tb_frame.f_code.co_filename) if where is not None else "?"
    name = where.tb_frame.f_code.co_name if where is not None else "?"
    return f"{type(e).__name__}: {e} (in {name}, {file})"


def _send(out: int, what: Any) -> None:
    data = pickle.dumps(what)
    data = len(data).to_bytes(8, "little") + data
    while data:
        data = data[os.write(out, data[:_CHUNK]) :]


def _wait(
    inp: int, seconds: float, beat: Callable[[str], object] | None, keep: Callable[[tuple[Any, ...]], object]
) -> Any:
    place, held = "", bytearray()
    began = last = time.monotonic()
    while True:
        now = time.monotonic()
        if now - began > PATIENCE * seconds:
            return Failure("hang", place, f"does not end within {seconds:g} s")
        ready, _, _ = select.select([inp], [], [], 0.5)
        if beat is not None and now - last > BEAT:
            last = now
            beat(f"... {now - began:.0f} s: {place}")
        if not ready:
            continue
        data = os.read(inp, _CHUNK)
        if not data:
            return Failure("crash", place, _DIED)
        held += data
        while len(held) >= 8 and len(held) >= 8 + (size := int.from_bytes(held[:8], "little")):
            kind, value = pickle.loads(held[8 : 8 + size])
            del held[: 8 + size]
            if kind == "done":
                return value
            if isinstance(value, str):
                place = value
            else:
                keep(value)
