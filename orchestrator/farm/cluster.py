"""A batch over a Dask cluster: jobs go out largest first and not too many at once, results come back in any order.

Each output file is written by this process alone, once, from the first result that comes back for it, so a job that
ran twice because its worker was lost makes no second file. A job whose workers die is sent again.
"""

from __future__ import annotations

import os
import queue
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

from ir_format.diag import Diagnostic
from ir_format.record import Record
from orchestrator.batch import FAILED, File, Messages, finish, largest_last
from orchestrator.farm.work import Job, Result, compile_job
from orchestrator.progress import AFTER, CLEAR, EACH
from stages.plumbing.files import write_output
from stages.plumbing.version import VERSION

_AHEAD: Final = 4  # jobs sent for each thread of the cluster: none waits for the network, and few are in memory
_GONE: Final = 30.0  # seconds without a scheduler, or without any worker, until the rest is given up


class Lost(Exception):
    """The cluster is gone; the text says how."""


class Settings(Record, frozen=True):
    """``scheduler``: address of a cluster, '' for one of ``workers`` processes on this machine (0: one for each core).
    ``retries``: how often a job is sent again when its workers died."""

    scheduler: str = ""
    workers: int = 0
    retries: int = 3


def open_cluster(settings: Settings) -> tuple[Any, Any]:
    """(client, local cluster or None). Raises Lost."""
    import logging

    import dask
    from distributed import Client, LocalCluster

    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters is said by the farm
    # A worker's death is no reason to suspect its job; the farm counts for itself.
    dask.config.set({"distributed.scheduler.allowed-failures": settings.retries})
    try:
        if settings.scheduler:
            return Client(settings.scheduler, timeout=_GONE, set_as_default=False), None
        local = LocalCluster(
            n_workers=settings.workers or os.cpu_count() or 1,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        )
        return Client(local, set_as_default=False), local
    except (OSError, ValueError, RuntimeError) as e:
        where = settings.scheduler or "on this machine"
        raise Lost(f"no cluster at '{where}': {str(e).splitlines()[0] if str(e) else type(e).__name__}") from None


class Farm:
    """A batch at work over a cluster."""

    def __init__(self, files: Sequence[File], client: Any, settings: Settings) -> None:
        self.files = files
        self.client = client
        self.settings = settings
        self.ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.sent: dict[str, tuple[int, Any]] = {}  # key of a future -> index of its file, and the future
        self.attempts = [0] * len(files)
        self.hosts = [""] * len(files)
        self.done = 0
        self.messages = Messages(files)
        self.began = time.monotonic()
        self.line = 0.0
        self.terminal = sys.stderr.isatty()

    def run(self) -> None:
        """Compile every file. Raises Lost, with the files that were done as they are."""
        waiting = largest_last(self.files)
        alive = time.monotonic()
        try:
            while waiting or self.sent:
                threads = sum(self.client.nthreads().values()) if self.client.status == "running" else 0
                if threads:
                    alive = time.monotonic()
                elif time.monotonic() - alive > _GONE:
                    raise Lost("the scheduler is gone" if self.client.status != "running" else "there are no workers")
                while waiting and len(self.sent) < _AHEAD * threads:
                    self._send(waiting.pop())
                self._take()
                self._progress(threads)
        finally:
            if self.line:
                sys.stderr.write(CLEAR)
            for _, future in self.sent.values():
                future.cancel()

    def _send(self, index: int) -> None:
        file = self.files[index]
        self.attempts[index] += 1
        try:
            with open(file.source, "rb") as f:
                text = f.read()
        except (OSError, ValueError):
            said = Diagnostic("fatal", f"Input file '{file.source}' could not be opened").render() + "\n"
            self._finish(index, Result(FAILED, said, b"", 0.0, ""))
            return
        job = Job(file.source, text, tuple(file.argv), os.getcwd(), VERSION)
        future = self.client.submit(compile_job, tuple(job), key=f"orias-{index}-{self.attempts[index]}", pure=False)
        self.sent[future.key] = index, future
        future.add_done_callback(self.ended.put)

    def _take(self) -> None:
        """Wait a moment for results, and take those that are there."""
        try:
            future = self.ended.get(timeout=EACH)
            while True:
                self._ended(future)
                future = self.ended.get_nowait()
        except queue.Empty:
            pass

    def _ended(self, future: Any) -> None:
        index, _ = self.sent.pop(future.key, (-1, None))
        if index < 0:
            return
        if future.status == "finished":
            self._finish(index, Result(*future.result()))
            return
        why = future.exception() if future.status == "error" else None
        again = why is None or type(why).__name__ == "KilledWorker"
        if again and self.attempts[index] <= self.settings.retries:
            self._send(index)
            return
        what = "its workers died" if again else f"a worker failed: {type(why).__name__}: {why}"
        text = f"the compile of '{self.files[index].source}' was given up after {self.attempts[index]} attempts: {what}"
        self._finish(index, Result(FAILED, Diagnostic("fatal", text).render() + "\n", b"", 0.0, ""))

    def _finish(self, index: int, got: Result) -> None:
        file = self.files[index]
        finish(file, got.code, got.said, got.seconds)
        self.hosts[index] = got.host
        if got.code == 0 and got.cubin:
            try:
                write_output(file.output, got.cubin)
            except OSError as e:
                text = f"Output file '{file.output}' could not be written: {e.strerror}"
                file.code = FAILED
                file.said += Diagnostic("fatal", text).render() + "\n"
        self.done += 1
        self.messages.show(CLEAR if self.line else "")

    def _progress(self, threads: int) -> None:
        """On a terminal, the line of progress."""
        now = time.monotonic()
        if not self.terminal or now - self.began < AFTER or now - self.line < EACH:
            return
        self.line = now
        text = f"orias-farm: {self.done} of {len(self.files)} files, {threads} workers' threads"
        failed = sum([f.code not in (None, 0) for f in self.files])
        if failed:
            text += f", {failed} failed"
        if self.done:
            text += f", about {(now - self.began) * (len(self.files) - self.done) / self.done:.0f} s left"
        sys.stderr.write(CLEAR + text)
        sys.stderr.flush()
