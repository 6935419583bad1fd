"""The resident server (`orias --serve SOCKET`, or started by the first client that finds none; docs/speed.md).

The modules and tables that a compile needs are in its memory. Each job runs in a fresh fork, with the client's command
line, environment, folder, limits and standard streams, so nothing is carried from job to job and a crash ends that job
alone. The server never reads PTX itself. It ends when it was idle for a while, and when the program's files changed.
"""

from __future__ import annotations

import ast
import fcntl
import gc
import os
import selectors
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable

from ir_format.typed import Any, Final
from orchestrator.client import DONE, GO, HELLO, ROOT, private_folder

IDLE: Final = 300.0  # seconds, unless ORIAS_SERVER_IDLE says otherwise
_MOST: Final = 1 << 24  # bytes of a request
_PATIENCE: Final = 5.0  # seconds that a client may take to send its request

#: What warms the tables of a target: loads, stores, arithmetic, a branch, a barrier.
_WARM: Final = """.version {version}
.target {target}
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n)
{{
  .reg .b64 %d<8>; .reg .b32 %r<8>; .reg .f32 %f<8>; .reg .pred %p<3>;
  .shared .align 4 .b8 s[128];
  ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b]; ld.param.u32 %r1, [n];
  cvta.to.global.u64 %d1, %d1; cvta.to.global.u64 %d2, %d2;
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.s32 %p1, %r5, %r1;
  @%p1 bra E;
  mul.wide.s32 %d3, %r5, 4; add.s64 %d4, %d1, %d3; add.s64 %d5, %d2, %d3;
  ld.global.f32 %f1, [%d4]; fma.rn.f32 %f2, %f1, %f1, 0f3F800000; add.f32 %f3, %f2, %f1; mul.f32 %f4, %f3, %f2;
  mov.u32 %r6, s; st.shared.f32 [%r6], %f4; bar.sync 0; ld.shared.f32 %f5, [%r6];
  cvt.rn.f32.s32 %f6, %r5; add.f32 %f7, %f5, %f6; shl.b32 %r7, %r5, 2; and.b32 %r7, %r7, 255;
  st.global.f32 [%d5], %f7; st.global.u32 [%d5+4], %r7;
E: ret;
}}
"""


class Job:
    """A job that runs: its process and its client."""

    __slots__ = ("handle", "link", "pid")

    def __init__(self, pid: int, handle: int, link: socket.socket) -> None:
        self.pid = pid
        self.handle = handle
        self.link = link


class Server:
    """The server behind a bound socket."""

    def __init__(self, listener: socket.socket, path: str, work: Callable[[list[str]], None]) -> None:
        from orchestrator.cache import code_state

        self.work = work
        self.listener = listener
        self.path = path
        self.state = code_state()
        self.warm: set[str] = set()
        self.jobs = 0
        self.selector = selectors.DefaultSelector()

    def run(self, idle: float) -> None:
        """Take jobs until none came for ``idle`` seconds."""
        self.selector.register(self.listener, selectors.EVENT_READ, None)
        last = time.monotonic()
        while True:
            events = self.selector.select(None if self.jobs else max(0.0, last + idle - time.monotonic()))
            if not events and not self.jobs:
                return
            last = time.monotonic()
            for key, _ in events:
                if key.data is None:
                    if not self._accept():
                        return
                    continue
                job: Job = key.data
                if job.handle in self.selector.get_map():
                    self._event(job, key.fd == job.handle)

    def _accept(self) -> bool:
        """Take a job; False where the program has changed and the server has to end."""
        from orchestrator.cache import code_state

        try:
            link, _ = self.listener.accept()
        except OSError:
            return True
        fds: list[int] = []
        taken = False
        try:
            link.settimeout(_PATIENCE)
            peer = struct.unpack("3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            if peer[1] != os.geteuid():
                return True
            asked, fds = _receive(link)
            if asked is None or len(fds) != 4 or asked[0] != ROOT or asked[5] != sys.executable:
                return True
            if code_state() != self.state:
                return False
            self._warm_up(asked[1])
            pid = os.fork()
            if not pid:
                self.selector.close()
                self.listener.close()
                _work(asked, fds, link, self.work)
            link.sendall(GO)
            link.setblocking(False)
            job = Job(pid, os.pidfd_open(pid), link)
            self.selector.register(job.handle, selectors.EVENT_READ, job)
            self.selector.register(link, selectors.EVENT_READ, job)
            self.jobs += 1
            taken = True
        except (OSError, ValueError, SyntaxError, MemoryError):
            pass
        finally:
            for fd in fds:
                os.close(fd)
            if not taken:
                link.close()
        return True

    def _event(self, job: Job, ended: bool) -> None:
        """A job has ended, or its client has."""
        if not ended:
            try:
                os.kill(job.pid, signal.SIGTERM)  # ends its stages too
            except ProcessLookupError:
                pass
            self.selector.unregister(job.link)
            return
        _, status = os.waitpid(job.pid, 0)
        if os.WIFEXITED(status):
            try:
                job.link.sendall(DONE + bytes([os.WEXITSTATUS(status)]))
            except OSError:
                pass
        self.selector.unregister(job.handle)
        if job.link in self.selector.get_map():
            self.selector.unregister(job.link)
        job.link.close()  # a client that hears nothing compiles by itself
        os.close(job.handle)
        self.jobs -= 1

    def _warm_up(self, argv: list[str]) -> None:
        """Read the tables of the target that a command line names."""
        from ir_format.target import targets

        for word, after in zip(argv, [*argv[1:], ""]):
            name = word.partition("=")[2] if "=" in word else after
            if "arch" in word.partition("=")[0] or "gpu-name" in word:
                if name in targets() and name not in self.warm:
                    self.warm.add(name)
                    _compile(name)


def _compile(target: str) -> None:
    from ir_format.target import targets
    from orchestrator.api import compile_ptx

    newest = "%d.%d" % max(targets()[target].min_ptx, (7, 0))
    compile_ptx(_WARM.format(version=newest, target=target), target, {"verbose": 1})
    gc.freeze()


def _receive(link: socket.socket) -> tuple[Any, list[int]]:
    """The request and the descriptors that came with it; None for no request."""
    data, fds, _, _ = socket.recv_fds(link, 1 << 16, 4)
    try:
        while data.count(b"\n") < 2:
            more = link.recv(1 << 16)
            if not more:
                return None, fds
            data += more
        hello, size, body = data.split(b"\n", 2)
        if hello + b"\n" != HELLO or not size.isdigit() or int(size) > _MOST:
            return None, fds
        while len(body) < int(size):
            more = link.recv(1 << 16)
            if not more:
                return None, fds
            body += more
        return ast.literal_eval(body.decode("utf-8", "surrogateescape")), fds
    except (OSError, ValueError, SyntaxError):
        return None, fds


def _work(asked: Any, fds: list[int], link: socket.socket, run: Callable[[list[str]], None]) -> None:
    """Be the job; never returns."""
    code = 255
    try:
        import resource

        _, argv, environment, mask, bounds, _ = asked
        link.close()
        for number, fd in enumerate(fds[:3]):
            os.dup2(fd, number)
        os.fchdir(fds[3])
        for fd in fds:
            os.close(fd)
        os.umask(mask)
        for name, bound in bounds.items():
            resource.setrlimit(name, bound)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.environb.clear()
        os.environb.update(environment)
        sys.stdin = sys.stdout = sys.stderr = None
        run(list(argv))
    finally:
        os._exit(code)


def _listen(path: str) -> tuple[socket.socket, int]:
    """The socket, and the lock that keeps a second server away. Raises OSError."""
    lock = os.open(path + ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        os.unlink(path)  # of a server that died
    except FileNotFoundError:
        pass
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        listener.bind(path)
    finally:
        os.umask(mask)
    listener.listen(64)
    return listener, lock


def serve(path: str, work: Callable[[list[str]], None]) -> int:
    """Serve at ``path`` until idle; returns the exit code. ``work``: run a command line and end the process."""
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.lexists(folder):
        os.mkdir(folder, 0o700)
    why = private_folder(os.path.abspath(path))
    if why:
        sys.stderr.write(f"ptxas fatal   : the folder of the socket '{path}' can't be used: {why}\n")
        return 255
    try:
        listener, lock = _listen(path)
    except BlockingIOError:
        sys.stderr.write(f"ptxas fatal   : '{path}' has a server\n")
        return 255
    except OSError as e:
        sys.stderr.write(f"ptxas fatal   : the socket '{path}' can't be used: {e.strerror}\n")
        return 255
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
    gc.disable()
    given = os.environ.get("ORIAS_SERVER_IDLE", "")
    from orchestrator.one_process import warm

    warm()
    gc.freeze()
    try:
        Server(listener, path, work).run(float(given) if given.isascii() and given.isdigit() else IDLE)
    finally:
        try:
            os.unlink(path)
        except OSError:
            pass
        os.close(lock)
    return 0
