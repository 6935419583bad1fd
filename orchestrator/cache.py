"""The cache of compiled code (`--cache DIR`, ORIAS_CACHE): a folder of entries, one file each.

An entry is found by a digest of everything that its content depends on. Its file holds that digest again, and a keyed
digest of both: a file that is torn, was altered, renamed, or written by a program that does not know the folder's key,
counts as absent and is removed. The folder, each sub-folder and each file must belong to the user and be closed to
others (0700); else nothing in it is used. Files are written under another name and renamed, so that many writers can
share a folder. A failure to write, as on a full disk, loses the entry and nothing else.

The 16 sub-folders share the size limit; what was used least recently goes first.
"""

from __future__ import annotations

import os
import stat
import time
from _blake2 import blake2b  # as hashlib has it, whose import takes as long as a hit
from collections.abc import Iterable

from ir_format.typed import Final
from orchestrator.client import ROOT as _ROOT
from orchestrator.client import why_open
from stages.plumbing import files

MAGIC: Final = b"orias cache 1\n"
DIGEST: Final = 32
LIMIT: Final = 1 << 30  # bytes, unless ORIAS_CACHE_SIZE says otherwise
_BUCKETS: Final = "0123456789abcdef"
_ASIDE: Final = frozenset("__pycache__ bisect diff disasm facts interpret reduce show simulate".split())  # noqa: SIM905
_SECRET: Final = "key"
_ABANDONED: Final = 600  # seconds after which a half-written file has no writer any more
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


class Unusable(Exception):
    """The folder can't be a cache; the text says why."""


def digest(*parts: bytes | str) -> bytes:
    """A digest of parts; the limits between them count."""
    h = blake2b(digest_size=DIGEST)
    for part in parts:
        data = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        h.update(b"%d:" % len(data))
        h.update(data)
    return h.digest()


def code_state() -> bytes:
    """A digest that changes when a file of the program does: names, sizes and times of all its files but those of tools
    that take no part in a compile, since a checkout changes while its version stays."""
    said: list[str] = []
    work = [os.path.join(_ROOT, name) for name in ("ir_format", "orchestrator", "stages")]
    for folder in work:  # grows while it is read
        with os.scandir(folder) as found:
            for one in sorted(found, key=lambda e: e.name):
                if one.is_dir(follow_symlinks=False):
                    if one.name not in _ASIDE:
                        work.append(one.path)
                elif not one.name.endswith(".pyc"):
                    s = one.stat()
                    said.append(f"{one.path} {s.st_size} {s.st_mtime_ns} {s.st_ctime_ns} {s.st_ino}")
    return digest("\n".join(said))


class Cache:
    """An open cache folder. Raises Unusable."""

    def __init__(self, folder: str, limit: int = LIMIT) -> None:
        self.folder = folder
        self.share = limit // len(_BUCKETS)
        self.written: set[str] = set()
        try:
            parent = os.path.dirname(os.path.abspath(folder))
            os.makedirs(parent, exist_ok=True)
            for path in (folder, *(os.path.join(folder, b) for b in _BUCKETS)):
                _private(path)
            self.secret = self._secret()
        except (OSError, ValueError) as e:
            raise Unusable(getattr(e, "strerror", None) or str(e)) from None

    def _secret(self) -> bytes:
        """The folder's key, made by the first process that needs it."""
        path = os.path.join(self.folder, _SECRET)
        for _ in range(2):
            data = _read(path)
            if data is not None and len(data) == DIGEST:
                return data
            if data is not None:
                os.unlink(path)
            part = f"{path}.{os.urandom(8).hex()}"
            try:
                _write(part, os.urandom(DIGEST))
                try:
                    os.link(part, path)
                except FileExistsError:
                    pass
            finally:
                try:
                    os.unlink(part)
                except FileNotFoundError:
                    pass
        data = _read(path)
        if data is None or len(data) != DIGEST:
            raise Unusable("its key can't be read")
        return data

    def _path(self, key: bytes) -> str:
        name = key.hex()
        return os.path.join(self.folder, name[0], name[1:])

    def _seal(self, key: bytes, content: bytes) -> bytes:
        return blake2b(key + content, key=self.secret, digest_size=DIGEST).digest()

    def get(self, key: bytes) -> bytes | None:
        """The content of an entry, or None."""
        path = self._path(key)
        try:
            data = _read(path)
            if data is None:
                return None
            head = len(MAGIC) + 2 * DIGEST
            content = data[head:]
            sealed = data[len(MAGIC) + DIGEST : head]
            if data[: len(MAGIC) + DIGEST] == MAGIC + key and sealed == self._seal(key, content):
                os.utime(path)
                return content
            os.unlink(path)
        except OSError:
            pass
        return None

    def put(self, key: bytes, content: bytes) -> None:
        """Keep an entry if it can be kept."""
        path = self._path(key)
        data = b"".join((MAGIC, key, self._seal(key, content), content))
        if len(data) > self.share:
            return
        part = os.path.join(os.path.dirname(path), f".{os.urandom(8).hex()}")
        files.pending.add(part)
        try:
            _write(part, data)
            os.replace(part, path)
            self.written.add(os.path.dirname(path))
        except OSError:
            try:
                os.unlink(part)
            except OSError:
                pass
        finally:
            files.pending.discard(part)

    def trim(self) -> None:
        """Bring the sub-folders that were written to within their share of the limit."""
        for folder in self.written:
            try:
                _trim(folder, self.share)
            except OSError:
                pass
        self.written.clear()


def _private(path: str) -> None:
    """Make a folder, or see that it is the user's own and closed to others. Raises Unusable, OSError."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    s = os.stat(path, follow_symlinks=False)
    why = "it is a link" if stat.S_ISLNK(s.st_mode) else why_open(s)
    if why:
        raise Unusable(why)


def _read(path: str) -> bytes | None:
    """The bytes of a regular file of the user's own that no other user may write; None if there is none."""
    try:
        fd = os.open(path, _READ | os.O_NONBLOCK)
    except OSError:
        return None
    with open(fd, "rb", buffering=0) as f:
        s = os.fstat(fd)
        if not stat.S_ISREG(s.st_mode) or s.st_uid != os.geteuid() or s.st_mode & 0o022 or s.st_nlink != 1:
            return None
        return f.read()


def _write(path: str, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
    finally:
        os.close(fd)


def _trim(folder: str, share: int) -> None:
    entries: list[tuple[float, int, str]] = []
    now = time.time()
    with os.scandir(folder) as found:
        for one in found:
            s = one.stat(follow_symlinks=False)
            if one.name.startswith(".") and now - s.st_mtime < _ABANDONED:
                continue
            entries.append((0.0 if one.name.startswith(".") else s.st_mtime, s.st_size, one.path))
    _remove(sorted(entries), sum(size for _, size, _ in entries) - share)


def _remove(entries: Iterable[tuple[float, int, str]], excess: int) -> None:
    for used, size, path in entries:
        if used and excess <= 0:
            return
        try:
            os.unlink(path)
        except OSError:
            continue
        excess -= size
