"""Stage processes and the pipes between them.

A process is forked from this warm one and calls the stage's function, or is exec'd (an installed executable, or a
user's shell command): both speak the same bytes. :func:`pump` moves the data of all pipelines at once and notices death
and stalling; nothing survives it.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence

from ir_format.record import Record, fresh
from ir_format.typed import BinaryIO, Final
from orchestrator.guardian import Guardian
from stages.plumbing import files

Body = Callable[[BinaryIO, BinaryIO], int]
READ = 1 << 16
MARK, END = b"\0orias at ", b"\0"  # stand before and after a note on standard error


def note(text: str) -> None:
    """Tell the parent what this process works on now: it shows life, and names the stage to blame."""
    sys.stderr.flush()
    os.write(2, MARK + text.encode() + END)


class Step(Record):
    """One stage to run: ``body`` in a forked process, or ``command`` through exec (``shell``: by /bin/sh)."""

    name: str
    body: Body | None = None
    command: Sequence[str] = ()
    shell: str = ""


class Process(Record):
    """A running stage. ``status``: as from waitpid, None while it runs. ``err``: what it wrote to standard error."""

    name: str
    pid: int
    err_fd: int
    err: bytearray = fresh(default_factory=bytearray)
    status: int | None = None

    @property
    def said(self) -> str:
        """Its standard error as text, without the notes."""
        first, *rest = self.err.split(MARK)
        return b"".join([first, *(part.partition(END)[2] for part in rest)]).decode("utf-8", "surrogateescape")

    @property
    def at(self) -> str:
        """The stage that it works on, as far as it told."""
        _, found, last = self.err.rpartition(MARK)
        return last.partition(END)[0].decode("utf-8", "replace") if found else self.name

    @property
    def failure(self) -> str:
        """Why it counts as failed, or ''."""
        if self.status is None:
            return "was stopped"
        if os.WIFSIGNALED(self.status):
            return f"died (signal {os.WTERMSIG(self.status)})"
        code = os.WEXITSTATUS(self.status)
        return f"exit code {code}" if code else ""

    @property
    def hard(self) -> bool:
        """Whether it broke, other than by refusing its input (exit code 1)."""
        return self.status is None or os.WIFSIGNALED(self.status) or os.WEXITSTATUS(self.status) > 1

    @property
    def victim(self) -> bool:
        """Whether it ended for want of a reader: by SIGPIPE, or as a shell says so of its command."""
        status = self.status
        if status is None:
            return False
        return (
            os.WTERMSIG(status) == signal.SIGPIPE
            if os.WIFSIGNALED(status)
            else os.WEXITSTATUS(status) == 128 + signal.SIGPIPE
        )


class Pipeline(Record):
    """Processes joined by pipes: ``feed`` goes into the first, ``result`` comes out of the last."""

    processes: list[Process]
    in_fd: int
    out_fd: int
    feed: memoryview
    result: bytearray = fresh(default_factory=bytearray)

    def failed(self) -> Process | None:
        """The process to blame: the first one that died of itself, else the first with a bad exit code; one whose
        reader is gone only where all are so."""
        bad = [p for p in self.processes if p.failure]
        bad = [p for p in bad if not p.victim] or bad
        return next((p for p in bad if p.hard), bad[0] if bad else None)


class Stalled(Exception):
    """No stage made progress for too long; names those that still ran."""


class NoProcess(Exception):
    """A stage could not be started: no process or no descriptor is left. The text says which, and why."""


_open: set[int] = set()  # pipe ends of this process that a child must close
_groups: dict[int, Process | None] = {}  # what a signal has to end: process groups of stages, and their leaders
_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_guardian: Final = Guardian()  # of commands


def end_with_stages() -> None:
    """From now on a signal that ends this process ends every stage first, with what a stage started, and removes files
    that are half written."""
    for number in _ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup leaves it
            signal.signal(number, _ended)


def _ended(number: int, frame: object) -> None:
    for pid, process in list(_groups.items()):
        _kill(pid, process is None or process.status is None)
    for path in list(files.pending):
        try:
            os.unlink(path)
        except OSError:
            pass
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _kill(pid: int, leader: bool) -> None:
    """Kill a process group; ``leader``: its first process too, which may not have made the group yet."""
    for kill in (os.killpg, os.kill) if leader else (os.killpg,):
        try:
            kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass


def _pipe() -> tuple[int, int]:
    r, w = os.pipe()
    _open.update((r, w))
    return r, w


def _close(fd: int) -> None:
    if fd in _open:
        _open.discard(fd)
        os.close(fd)


def start(steps: Sequence[Step], feed: bytes) -> Pipeline:
    """Start a pipeline. The first step reads ``feed``. Raises NoProcess, with nothing left running."""
    procs: list[Process] = []
    held: list[int] = []
    at = ""
    try:
        first_r, first_w = _pipe()
        src = first_r
        held = [first_r, first_w]
        for step in steps:
            at = step.name
            out_r, out_w = _pipe()
            held += [out_r, out_w]
            err_r, err_w = _pipe()
            held += [err_r, err_w]
            procs.append(_spawn(step, src, out_w, err_r, err_w))
            for fd in (src, out_w, err_w):
                _close(fd)
            src = out_r
        os.set_blocking(first_w, False)
    except OSError as e:
        stop([Pipeline(procs, -1, -1, memoryview(b""))])
        for fd in held:
            _close(fd)
        raise NoProcess(f"stage {at or steps[0].name} could not be started: {e.strerror}") from None
    return Pipeline(procs, first_w, src, memoryview(feed))


def _spawn(step: Step, src: int, dst: int, err_r: int, err: int) -> Process:
    sys.stdout.flush()
    sys.stderr.flush()
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)  # until the process is known to _ended
    try:
        if step.body is None:
            _guardian.start(_ENDING)
        pid = os.fork()
    except OSError:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
        raise
    if pid:
        process = _groups[pid] = Process(step.name, pid, err_r)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
        return process
    code = 2
    try:
        os.setsid()  # a group of its own, so that a foreign command's children die with it
        for number in (*_ENDING, *((signal.SIGPIPE,) if step.body is None else ())):
            if number == signal.SIGPIPE or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
        os.dup2(err, 2)
        if step.body is None:
            _guardian.watch(os.getpid())
            os.dup2(src, 0)
            os.dup2(dst, 1)
            for fd in _open:
                os.close(fd)
            os.close(_guardian.fd)
            argv = ["/bin/sh", "-c", step.shell] if step.shell else list(step.command)
            try:
                os.execvp(argv[0], argv)
            except OSError as e:
                os.write(2, f"can't run {argv[0]}: {e.strerror}\n".encode())
                os._exit(127)
        for fd in _open - {src, dst}:
            os.close(fd)
        if _guardian.fd >= 0:
            os.close(_guardian.fd)
        gc.disable()  # as in stages.plumbing.stage_main.main: the process ends before a collection could find anything
        with os.fdopen(src, "rb") as inp, os.fdopen(dst, "wb") as out:
            code = step.body(inp, out)
        sys.stderr.flush()
    except BrokenPipeError:
        code = 1
    except BaseException as e:
        try:
            os.write(2, f"orias-{step.name}: internal fault ({type(e).__name__}: {e})\n".encode())
        except OSError:
            pass
    os._exit(code)


_LOOK: Final = 0.25  # seconds between two calls of a watcher


def pump(
    pipelines: Sequence[Pipeline], timeout: float, watch: Callable[[Sequence[Pipeline]], object] | None = None
) -> None:
    """Run pipelines to their end. Raises Stalled after ``timeout`` seconds without a byte moved or a process ended.
    ``watch`` is called now and then.

    On any way out every process is dead and reaped, every pipe closed.
    """
    import selectors  # small inputs need none

    sel = selectors.DefaultSelector()
    try:
        for pl in pipelines:
            sel.register(pl.in_fd, selectors.EVENT_WRITE, ("in", pl, None))
            sel.register(pl.out_fd, selectors.EVENT_READ, ("out", pl, None))
            for p in pl.processes:
                sel.register(p.err_fd, selectors.EVENT_READ, ("err", pl, p))
        last = time.monotonic()
        while sel.get_map():
            left = max(0.0, last + timeout - time.monotonic())
            events = sel.select(timeout=left if watch is None else min(left, _LOOK))
            if watch is not None:
                watch(pipelines)
                if not events and time.monotonic() < last + timeout:
                    continue
            if not events:
                names = sorted({p.at for pl in pipelines for p in pl.processes if not _reap(p, False)})
                raise Stalled(", ".join(names))
            last = time.monotonic()
            for key, _ in events:
                kind, pl, p = key.data
                fd = key.fd
                if kind == "in":
                    if _write_some(pl):
                        continue
                else:
                    data = os.read(fd, READ)
                    if data:
                        (pl.result if kind == "out" else p.err).extend(data)
                        continue
                sel.unregister(fd)
                _close(fd)
        for pl in pipelines:
            for p in pl.processes:
                _wait(p, timeout)
    finally:
        sel.close()
        stop(pipelines)


def _write_some(pl: Pipeline) -> bool:
    """True while there is more to write."""
    if not pl.feed:
        return False
    try:
        n = os.write(pl.in_fd, pl.feed[:READ])
    except BlockingIOError:
        return True
    except BrokenPipeError:
        return False
    pl.feed = pl.feed[n:]
    return len(pl.feed) > 0


def _reap(p: Process, block: bool) -> bool:
    if p.status is None:
        pid, status = os.waitpid(p.pid, 0 if block else os.WNOHANG)
        if pid:
            p.status = status
    return p.status is not None


def _wait(p: Process, timeout: float) -> None:
    """Wait for a process whose pipes are closed."""
    end = time.monotonic() + timeout
    pause = 0.0005
    while not _reap(p, False):
        if time.monotonic() > end:
            raise Stalled(p.at)
        time.sleep(pause)
        pause = min(pause * 2, 0.05)


def stop(pipelines: Sequence[Pipeline]) -> None:
    """Kill what still runs, reap everything, close every pipe."""
    for pl in pipelines:
        for p in pl.processes:
            _kill(p.pid, p.status is None)  # with children that a foreign command left behind
            if p.status is None:
                _, p.status = os.waitpid(p.pid, 0)
            _groups.pop(p.pid, None)
            _guardian.forget(p.pid)
            _close(p.err_fd)
        _close(pl.in_fd)
        _close(pl.out_fd)
    if not _groups:
        _guardian.end()
