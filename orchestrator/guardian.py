"""A process that ends stages whose orchestrator was killed by a signal that it can't catch.

It holds the reading end of a pipe whose only writer is the orchestrator, and is told which process groups there are.
When the pipe ends it kills those that are left. It is in a session of its own, holds no other file, and ends with the
last group. Commands are watched so; a forked stage ends by itself when its pipes have no other end.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable

from ir_format.typed import Final

_SIZE: Final = 8  # bytes that name a group: negative once it is gone


class Guardian:
    """The guardian of the process that uses it; a forked child has its own."""

    __slots__ = ("_owner", "_pid", "fd")

    def __init__(self) -> None:
        self.fd = -1
        self._pid = 0
        self._owner = 0

    def start(self, quiet: Iterable[int]) -> None:
        """Be there, with ``quiet`` signals ignored."""
        if self._owner == os.getpid():
            return
        r, w = os.pipe()
        try:
            pid = os.fork()
        except OSError:
            os.close(r)
            os.close(w)
            raise
        if not pid:
            try:
                os.setsid()
                for number in quiet:
                    signal.signal(number, signal.SIG_IGN)
                os.dup2(r, 0)
                os.closerange(1, os.sysconf("SC_OPEN_MAX") if os.sysconf("SC_OPEN_MAX") > 0 else 1 << 16)
                _watch(0)
            finally:
                os._exit(0)
        os.close(r)
        self.fd, self._pid, self._owner = w, pid, os.getpid()

    def watch(self, group: int) -> None:
        """A group that is left must be killed. A new process tells it of itself, before it becomes another program."""
        os.write(self.fd, group.to_bytes(_SIZE, "little", signed=True))

    def forget(self, group: int) -> None:
        """It is gone."""
        if self._owner == os.getpid():
            os.write(self.fd, (-group).to_bytes(_SIZE, "little", signed=True))

    def end(self) -> None:
        """No group is left."""
        if self._owner == os.getpid():
            os.close(self.fd)
            os.waitpid(self._pid, 0)
            self.fd, self._owner = -1, 0


def _watch(fd: int) -> None:
    groups: set[int] = set()
    while said := os.read(fd, _SIZE):
        number = int.from_bytes(said, "little", signed=True)
        groups.add(number) if number > 0 else groups.discard(-number)
    for group in groups:
        try:
            os.killpg(group, signal.SIGKILL)
        except OSError:
            pass
