"""Output files: they appear whole or not at all, and existing devices and links are kept.

An ordinary file, or the file that a symbolic link leads to, is replaced atomically by a new file with the same mode
bits. So no reader sees half a file, and a failed compile leaves the old file. A device, a FIFO or a descriptor
(`/dev/stdout`, `/proc/self/fd/N`) is written to, because replacing it would take it away from other programs. The
temporary file has a random name; it is created exclusively, without following links.
"""

from __future__ import annotations

import errno
import os
import stat
import sys

from ir_format.typed import Final

#: Temporary files that exist now; the signal handler removes them.
pending: set[str] = set()
#: Standard streams that were closed when the process began: nothing can be written through them.
closed: set[int] = set()
#: Error numbers that this process has reported. A buffer that is flushed later fails for the same reason, which is not
#: reported again.
reported: set[int | None] = set()
_LINKS: Final = 40  # the kernel follows as many


def _target(path: str) -> str:
    """The path that all symbolic links lead to; '' if one of them is an open descriptor, which has no path that
    could be replaced."""
    for _ in range(_LINKS):
        try:
            link = os.readlink(path)
        except OSError:  # no link, or no file yet
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


def _write_through(path: str, data: bytes) -> None:
    """Write to the existing file, device or FIFO."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        _write(fd, data)
    finally:
        os.close(fd)


def _owned(fd: int, old: os.stat_result) -> None:
    """Give a new file the owner and the mode bits of the file that it replaces."""
    if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
        try:
            os.fchown(fd, old.st_uid, old.st_gid)
        except OSError:
            pass  # only root may; the file is ours then, as with every program that replaces files
    os.fchmod(fd, stat.S_IMODE(old.st_mode))


def _replace(path: str, data: bytes, old: os.stat_result | None) -> None:
    """Replace ``path`` by a new file."""
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
    """Write ``data`` to ``path``. If it raises OSError, an ordinary file is unchanged."""
    real = _target(path)
    try:
        old: os.stat_result | None = os.stat(path)
    except FileNotFoundError:
        old = None
    if not real or (old is not None and not stat.S_ISREG(old.st_mode)):
        _write_through(path, data)
        return
    if old is not None and not os.access(path, os.W_OK):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), path)
    if not os.access(os.path.dirname(real) or ".", os.W_OK | os.X_OK) and old is not None:
        _write_through(path, data)  # we may write the file, but not create one in its folder
        return
    _replace(real, data, old)


def write_output(path: str | os.PathLike[str] | None, data: bytes) -> None:
    """Write ``data`` to a file as :func:`write_file` does, or to standard output if there is no path."""
    if path is not None:
        write_file(os.fspath(path), data)
        return
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def why(error: OSError) -> str:
    """The reason why a write failed, for the user; '' if the file could not be opened, which has its own message."""
    return (
        error.strerror or type(error).__name__
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EPIPE)
        else ""
    )
