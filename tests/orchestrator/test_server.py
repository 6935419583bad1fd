"""The resident server: the same results as without one, whatever happens to it."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.client import private_folder

ROOT = Path(__file__).parents[2]
PTX = ROOT / "tests/kernels/ptx/sm_90"


def _orias(args: list[str], server: Path | None, cwd: Path, **more: object) -> tuple[int, bytes, bytes]:
    environment = {k: v for k, v in os.environ.items() if k != "ORIAS_SERVER"} | {"PYTHONPATH": str(ROOT)}
    if server is not None:
        environment["ORIAS_SERVER"] = str(server)
    done = subprocess.run(
        [sys.executable, "-m", "orchestrator", "-arch", "sm_90", *args],
        cwd=cwd,
        env=environment,
        capture_output=True,
        **more,  # type: ignore[call-overload]
    )
    return done.returncode, done.stdout, done.stderr


def _serve(path: Path, idle: str = "60") -> subprocess.Popen[bytes]:
    environment = os.environ | {"ORIAS_SERVER_IDLE": idle, "PYTHONPATH": str(ROOT)}
    program = [sys.executable, "-m", "orchestrator", "--serve", str(path)]
    process = subprocess.Popen(program, env=environment, stderr=subprocess.PIPE)
    end = time.monotonic() + 30
    while not path.exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    return process


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, int]]:
    folder = tmp_path_factory.mktemp("s", numbered=True)
    folder.chmod(0o700)
    process = _serve(folder / "s")
    yield folder / "s", process.pid
    process.terminate()
    assert process.wait(10) == 0 and not (folder / "s").exists()


def _jobs(pid: int) -> list[int]:
    """Processor ticks of a server's finished jobs."""
    return [int(n) for n in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[13:15]]


def test_same_results(server: tuple[Path, int], tmp_path: Path) -> None:
    """Cubins, messages and exit codes, of compiles that succeed, warn and fail; relative names, standard input."""
    bad = tmp_path / "bad.ptx"
    bad.write_text((PTX / "vadd.ptx").read_text().replace("add.f32", "odd.f32").replace("add.rn.f32", "odd.f32"))
    (tmp_path / "two.ptx").write_text((PTX / "saxpy.ptx").read_text())
    vadd = (PTX / "vadd.ptx").read_bytes()
    cases: list[tuple[list[str], bytes]] = [
        ([str(PTX / "vadd.ptx"), "-v"], b""),
        (["two.ptx", "-maxrregcount", "8"], b""),
        (["bad.ptx"], b""),
        (["absent.ptx"], b""),
        (["-"], vadd),
        (["--no-such"], b""),
        (["--version"], b""),
        (["two.ptx", "--stage", "schedule=exit 3"], b""),
    ]
    before = _jobs(server[1])
    for args, data in cases:
        results = []
        for where in (None, server[0]):
            out = tmp_path / "o"
            out.unlink(missing_ok=True)
            code, said, errors = _orias([*args, "-o", "o"], where, tmp_path, input=data)
            errors = b"\n".join([line for line in errors.split(b"\n") if b"Compile time" not in line])
            results.append((code, said, errors, out.read_bytes() if out.exists() else None))
        assert results[0] == results[1], args
    assert sum(_jobs(server[1])) > sum(before)


def test_mask_and_environment(server: tuple[Path, int], tmp_path: Path) -> None:
    """A job has its client's umask, environment and limits."""
    program = f"umask 077; ORIAS_SERVER={server[0]} ORIAS_RELEASE=13.0 {sys.executable} -m orchestrator "
    done = subprocess.run(
        f"{program} --version; {program} -arch sm_90 {PTX}/vadd.ptx -o {tmp_path}/o; "
        f"ulimit -f 0; {program} -arch sm_90 {PTX}/vadd.ptx -o {tmp_path}/p",
        shell=True,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert "release 13.0" in done.stdout
    assert (tmp_path / "o").stat().st_mode & 0o777 == 0o600
    assert done.returncode == 255 and not (tmp_path / "p").exists(), done.stderr


def test_killed_client_ends_its_job(server: tuple[Path, int], tmp_path: Path) -> None:
    args = [sys.executable, "-m", "orchestrator", "-arch", "sm_90", str(PTX / "vadd.ptx"), "--stage"]
    client = subprocess.Popen(
        [*args, f"lower=echo $$ >{tmp_path}/pid; exec sleep 60"],
        cwd=ROOT,
        env=os.environ | {"ORIAS_SERVER": str(server[0])},
    )
    end = time.monotonic() + 20
    while not ((tmp_path / "pid").exists() and (tmp_path / "pid").read_text()) and time.monotonic() < end:
        time.sleep(0.02)
    stage = int((tmp_path / "pid").read_text())
    client.kill()
    client.wait()
    while Path(f"/proc/{stage}").exists() and time.monotonic() < end:
        time.sleep(0.02)
    assert not Path(f"/proc/{stage}").exists()
    assert _orias([str(PTX / "vadd.ptx"), "-o", "o"], server[0], tmp_path) == (0, b"", b"")


def test_bypassed(tmp_path: Path) -> None:
    """No server, a socket without a listener, a mute or lying server, one in an open folder: the client compiles
    itself."""
    tmp_path.chmod(0o700)
    args = [str(PTX / "vadd.ptx"), "-o", "o"]
    _orias(args, None, tmp_path)
    data = (tmp_path / "o").read_bytes()
    for kind in ("dead", "mute", "lying", "open", "file"):
        path = tmp_path / kind / "s"
        path.parent.mkdir(mode=0o700)
        lock = os.open(f"{path}.lock", os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)  # so that no server is started
        listener = socket.socket(socket.AF_UNIX)
        if kind == "file":
            path.write_text("")
        else:
            listener.bind(str(path))
            path.chmod(0o600)
        child = 0
        if kind in ("mute", "lying", "open"):
            listener.listen()
            child = os.fork()
            if not child:
                link, _ = listener.accept()
                link.recv(10)
                if kind == "lying":
                    link.sendall(b"G")
                os._exit(0)
        listener.close()
        if kind == "open":
            path.parent.chmod(0o755)
            assert "open to others" in private_folder(str(path))
        (tmp_path / "o").unlink()
        assert _orias(args, path, tmp_path) == (0, b"", b"") and (tmp_path / "o").read_bytes() == data, kind
        if child:
            if kind == "open":
                os.kill(child, signal.SIGKILL)  # no client came
            assert (os.waitpid(child, 0)[1] != 0) == (kind == "open")
        os.close(lock)


def test_started_on_demand_and_ends_idle(tmp_path: Path) -> None:
    path = tmp_path / "d/s"
    os.environ["ORIAS_SERVER_IDLE"] = "1"
    try:
        assert _orias([str(PTX / "vadd.ptx"), "-o", "o"], path, tmp_path) == (0, b"", b"")
    finally:
        del os.environ["ORIAS_SERVER_IDLE"]
    end = time.monotonic() + 30
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.02)
    assert path.exists() and path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    while path.exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not path.exists()


def test_refused_sockets(server: tuple[Path, int], tmp_path: Path) -> None:
    """A second server, and one in an open folder, do not start."""
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o755)
    for path, why in ((server[0], "has a server"), (tmp_path / "open/s", "open to others")):
        code, _, said = _orias(["--serve", str(path)], None, tmp_path)
        assert code == 255 and why in said.decode()
