"""Tokens of GNU make's jobserver, as its manual describes the protocol: a byte read from a pipe or FIFO is the right to
run one job more than the one that the caller is, and goes back there when the job ends."""

from __future__ import annotations

import os


def _given(flags: str, names: tuple[str, ...]) -> str:
    """The last of the options in MAKEFLAGS that have one of these names; '' without one."""
    given = ""
    for word in flags.split():
        name, _, value = word.partition("=")
        if name in names:
            given = value
    return given


def broken(flags: str) -> bool | None:
    """Whether the jobserver that MAKEFLAGS names cannot be used, which ends a compile in parts; None where it names
    none. ptxas knows the newer of the two spellings only."""
    if not _given(flags, ("--jobserver-auth",)):
        return None
    tokens = Tokens.of_make(flags)
    if tokens.source < 0:
        return True
    tokens.close()
    return False


class Tokens:
    """Where tokens come from; without descriptors there are always some."""

    def __init__(self, source: int = -1, sink: int = -1) -> None:
        self.source = source
        self.sink = sink

    @staticmethod
    def of_make(flags: str) -> Tokens:
        """The jobserver that MAKEFLAGS names; without one, tokens for everybody."""
        given = _given(flags, ("--jobserver-auth", "--jobserver-fds"))
        try:
            if given.startswith("fifo:"):
                source = os.open(given[5:], os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
                return Tokens(source, os.open(given[5:], os.O_WRONLY | os.O_CLOEXEC))
            read, _, write = given.partition(",")
            if read.isdigit() and write.isdigit():
                os.fstat(int(write))
                # A description of our own: whether a read waits is a matter of all that share one.
                return Tokens(os.open(f"/proc/self/fd/{read}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), int(write))
        except OSError:
            pass
        return Tokens()

    def close(self) -> None:
        """Give back what was opened."""
        os.close(self.source)

    def take(self) -> bytes | None:
        """A token, or None if there is none now."""
        if self.source < 0:
            return b""
        try:
            return os.read(self.source, 1) or None
        except OSError:  # none there, or interrupted
            return None

    def give(self, token: bytes) -> None:
        """Give a token back."""
        if token:
            os.write(self.sink, token)
