"""Output files: whole or not at all, and through whatever stands at the path.

An ordinary file is replaced at once by a new one with the same mode bits, where a symbolic link leads; so nobody sees
half a file, and a failed compile leaves what was there. A device, a FIFO and a descriptor (`/dev/stdout`,
`/proc/self/fd/N`) are written to: replacing them would take them away from everybody else. The file that is being
written has a random name of its own, is made exclusively, and follows no link.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Final

#: Temporary files that exist now: a signal that ends the process removes them.
pending: set[str] = set()
#: Standard streams that were closed when the process began: nothing can be written through them.
closed: set[int] = set()
#: Error numbers that a message of this process named: what is still in a buffer fails again for the same reason, which
#: is no news.
told: set[int | None] = set()
_LINKS: Final = 40  # as many as the kernel follows


def _target(path: str) -> str:
    """The path behind all symbolic links; '' where one of them stands for an open descriptor, which has no path to be
    replaced under."""
    for _ in range(_LINKS):
        try:
            link = os.readlink(path)
        except OSError:  # no link, or nothing there yet
            return path
        folder = os.path.realpath(os.path.dirname(path) or ".")
        if folder.startswith("/proc/"):
            if os.path.basename(path) in map(str, closed):
                raise OSError(errno.EBADF, os.strerror(errno.EBADF), path)
            return ""
        path = os.path.join(folder, link)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _through(path: str, data: bytes) -> None:
    """Write to what is there."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        _write(fd, data)
    finally:
        os.close(fd)


def _owned(fd: int, old: os.stat_result) -> None:
    """Give a new file the owner and the mode bits of the one whose place it takes."""
    if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
        try:
            os.fchown(fd, old.st_uid, old.st_gid)
        except OSError:
            pass  # only root may; the file is ours then, as with any other program that replaces files
    os.fchmod(fd, stat.S_IMODE(old.st_mode))


def _replace(path: str, data: bytes, old: os.stat_result | None) -> None:
    """Put a new file in the place of ``path``."""
    folder = os.path.dirname(path)
    part = os.path.join(folder, f".orias-{os.urandom(8).hex()}")
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666 if old is None else 0o600)
    pending.add(part)
    try:
        try:
            _write(fd, data)
            if old is not None:
                _owned(fd, old)
        finally:
            os.close(fd)
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise
    finally:
        pending.discard(part)


def write_file(path: str, data: bytes) -> None:
    """Write ``data`` to ``path``. Raises OSError; an ordinary file is then as it was."""
    real = _target(path)
    try:
        old: os.stat_result | None = os.stat(path)
    except FileNotFoundError:
        old = None
    if not real or (old is not None and not stat.S_ISREG(old.st_mode)):
        _through(path, data)
        return
    if old is not None and not os.access(path, os.W_OK):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), path)
    if not os.access(os.path.dirname(real) or ".", os.W_OK | os.X_OK) and old is not None:
        _through(path, data)  # a folder where nothing new may be made, and a file in it that is ours to write
        return
    _replace(real, data, old)


def why(error: OSError) -> str:
    """What stopped a write, for the user: '' where the file could not be opened at all, which has a message of its
    own."""
    return (
        error.strerror or type(error).__name__
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EPIPE)
        else ""
    )
