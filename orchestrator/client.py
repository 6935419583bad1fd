"""The client of a resident server (ORIAS_SERVER): it sends its command line, environment, folder and standard streams,
and ends as the job ends. It imports very little, because its own start is most of the time of a small compile.

If anything is wrong (no server, a server of another user, of other code, or one that dies), :func:`through_server`
returns, and the caller compiles by itself. docs/speed.md describes the protocol.
"""

from __future__ import annotations

import os
import sys

HELLO = b"orias server 1\n"
GO, DONE = b"G", b"D"
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_PATIENCE = 5.0  # seconds that a server may take to accept a job


def private_folder(path: str) -> str:
    """Why a socket's folder can't be used; '' if it is the user's own and closed to others."""
    folder = os.path.dirname(path) or "."
    try:
        s = os.lstat(folder)
    except OSError as e:
        return e.strerror or "it can't be read"
    return why_open(s)


def why_open(s: os.stat_result) -> str:
    """Why what was found is no private folder; '' if it is one."""
    if s.st_mode & 0o170000 != 0o040000:
        return "it is no folder"
    if s.st_uid != os.geteuid():
        return "it belongs to another user"
    return "it is open to others (expected mode 0700)" if s.st_mode & 0o077 else ""


def own_program(module: str, name: str, call: str, before: str = "") -> list[str]:
    """The command that runs a function of ours in another Python: ``call`` calls ``name`` of ``module``. Nothing is
    imported from the current folder."""
    home = __name__.removesuffix("orchestrator.client")  # installed: "orias."
    top = os.path.dirname(ROOT) if home else ROOT
    program = f"import sys; sys.path.append({top!r}); {before}from {home}{module} import {name}; {call}"
    return [sys.executable, "-P", "-c", program]


def _numbers() -> list[int]:
    import resource

    return sorted({getattr(resource, n) for n in dir(resource) if n.startswith("RLIMIT_")})


def request(argv: list[str]) -> bytes:
    """The request: after HELLO a literal for the server to evaluate as such."""
    mask = os.umask(0o077)
    os.umask(mask)
    import resource

    bounds = {n: resource.getrlimit(n) for n in _numbers()}
    body = repr((ROOT, argv, dict(os.environb), mask, bounds, sys.executable)).encode("utf-8", "surrogateescape")
    return HELLO + b"%d\n" % len(body) + body


def through_server(path: str, argv: list[str]) -> None:
    """Run a command line by the server at ``path`` and end this process as the job ends; return if there is none."""
    import _socket
    import struct

    if "--serve" in argv or any(a.startswith("--serve=") for a in argv):
        return
    try:
        for fd in (0, 1, 2):
            os.fstat(fd)
        s = os.lstat(path)
    except OSError:
        _start(path)
        return
    if s.st_uid != os.geteuid() or s.st_mode & 0o170077 != 0o140000 or private_folder(path):
        return
    here = -1
    link = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        link.settimeout(_PATIENCE)
        try:
            link.connect(path)
        except OSError:  # left by one that died
            _start(path)
            return
        peer = struct.unpack("3i", link.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12))
        if peer[1] != os.geteuid():
            return
        here = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        passed = struct.pack("4i", 0, 1, 2, here)
        data = request(argv)
        sent = link.sendmsg([data], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, passed)])
        while sent < len(data):
            sent += link.send(data[sent:])
        if link.recv(1) != GO:
            return
        link.settimeout(None)
        end = link.recv(2)
        if len(end) == 2 and end[:1] == DONE:
            os._exit(end[1])
    except OSError:
        return
    finally:
        link.close()
        if here >= 0:
            os.close(here)


def _start(path: str) -> None:
    """Start a server for the next one; this process doesn't wait for it."""
    import fcntl

    folder = os.path.dirname(path)
    try:
        if folder and not os.path.lexists(folder):
            os.mkdir(folder, 0o700)
        if private_folder(path):
            return
        lock = os.open(path + ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # held by a server, and by one that is starting
        finally:
            os.close(lock)
        command = own_program("orchestrator.__main__", "serve", f"serve({os.path.abspath(path)!r})")
        os.posix_spawn(
            sys.executable,
            command,
            {k: v for k, v in os.environ.items() if k != "ORIAS_SERVER"},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
            setsid=True,
        )
    except OSError:
        pass
