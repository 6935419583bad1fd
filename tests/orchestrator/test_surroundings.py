"""The environment of a program: signals, closed and full standard streams, few descriptors and processes, odd names and
numbers. One line and the right exit code, never a traceback, and no process left running."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from orchestrator import driver, processes
from orchestrator.options import read
from orchestrator.processes import NoProcess, Step, start

ROOT = Path(__file__).parents[2]
ORIAS = [sys.executable, "-P", "-m", "orchestrator"]
PTX = ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry k() { ret; }\n"
#: Streams are buffered, as for a user, no matter how the tests run.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"} | {"PYTHONPATH": str(ROOT)}


def run(
    command: list[str | bytes], folder: Path, environment: Mapping[str, str] = MappingProxyType({}), **more: Any
) -> subprocess.CompletedProcess[bytes]:
    (folder / "k.ptx").write_text(PTX)
    more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, **more}
    got = subprocess.run(command, cwd=folder, env={**ENVIRONMENT, **environment}, timeout=60, check=False, **more)
    assert b"Traceback" not in (got.stderr or b"") and b"Exception" not in (got.stderr or b"")
    return got


def shell(line: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """A command line with redirections; ORIAS stands for the program."""
    return run(
        ["bash", "-c", line.replace("ORIAS", " ".join(ORIAS)).replace("STAGE", f"{sys.executable} -P -m stages")],
        folder,
        environment,
    )


def alive(mark: str) -> list[str]:
    """Processes with this word in their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark in path.read_bytes().decode("utf-8", "replace"):
                found.append(path.parent.name)
        except OSError:
            pass
    return found


def listen() -> None:
    """In a child: restore the default actions of signals, also if the tests run in the background, which ignores
    interrupts."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


def wait_until_asleep(pid: int) -> None:
    """Wait until a process sleeps for good: its imports are done, it is at the first read."""
    quiet = 0
    end = time.monotonic() + 20
    while quiet < 10 and time.monotonic() < end:
        time.sleep(0.03)
        quiet = quiet + 1 if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S" else 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGKILL])
def test_a_signal_ends_every_stage_and_what_it_started(tmp_path: Path, number: int) -> None:
    (tmp_path / "k.ptx").write_text(PTX)
    mark = f"3{os.getpid()}{int(number)}"
    command = [
        *ORIAS,
        "k.ptx",
        "--stage",
        f"optimize=touch started; sleep {mark} & sleep {mark} | sleep {mark}; cat",
        "-o",
        "out",
    ]
    job = subprocess.Popen(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE, preexec_fn=listen
    )
    end = time.monotonic() + 40
    while not ((tmp_path / "started").exists() and len(alive(mark)) >= 5) and time.monotonic() < end:
        time.sleep(0.02)
    assert len(alive(mark)) >= 5
    job.send_signal(number)
    said = job.communicate(timeout=20)[1]
    assert job.returncode == -number and said == b""
    end = time.monotonic() + 5
    while alive(mark) and time.monotonic() < end:
        time.sleep(0.02)
    assert not alive(mark)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["k.ptx", "started"]


def test_a_hang_up_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    got = shell("trap '' HUP; ORIAS k.ptx --stage 'optimize=kill -HUP $PPID; cat' -o out", tmp_path)
    assert got.returncode == 0 and (tmp_path / "out").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("name", ["parse", "lower", "elf", "show", "check"])
def test_an_interrupt_ends_a_tool_without_a_traceback(tmp_path: Path, name: str, number: int) -> None:
    if number == signal.SIGTERM and name != "lower":
        pytest.skip("the default action of every program")
    os.mkfifo(tmp_path / "fifo")
    words = ["fifo"] if name in ("show", "check") else []
    job = subprocess.Popen(
        [sys.executable, "-P", "-m", f"stages.{name}", *words], cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stdin=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=listen,
    )  # fmt: skip
    wait_until_asleep(job.pid)
    job.send_signal(number)
    said = job.communicate(timeout=20)[1]
    assert job.returncode == -number and said == b""


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("ORIAS k.ptx -o out >&-", 0, ""),
        ("ORIAS k.ptx -v -o out 2>&-", 0, ""),
        ("ORIAS k.ptx -o out <&- >&- 2>&-", 0, ""),
        ("ORIAS k.ptx -v -o out 2>/dev/full", 0, ""),
        ("ORIAS nosuch.ptx -o out 2>/dev/full", 255, ""),
        (
            "ORIAS - <&-",
            255,
            r"ptxas fatal   : Input file '-' could not be opened\nptxas fatal   : Ptx assembly aborted due to errors\n",
        ),
        ("ORIAS -h >&-", 255, r"orias: can't write to standard output: Bad file descriptor\n"),
        ("ORIAS -h >/dev/full", 255, r"orias: can't write to standard output: No space left on device\n"),
        ("ORIAS --version >/dev/full", 255, r"orias: can't write to standard output: No space left on device\n"),
        ("ORIAS -h | true", 0, ""),
        ("ORIAS k.ptx -o /dev/stdout >&-", 255, r"ptxas fatal   : Output file '/dev/stdout' could not be opened\n"),
        ("STAGE.parse k.ptx >/dev/full", 1, r"orias-parse: .*No space left on device\n"),
        ("STAGE.parse k.ptx >&-", 1, r"orias-parse: .*Bad file descriptor\n"),
        ("STAGE.parse k.ptx | STAGE.lower >/dev/full", 1, r"orias-lower: .*No space left on device\n"),
        (
            "STAGE.parse k.ptx | STAGE.lower -o /dev/full",
            1,
            r"orias-lower: can't write '/dev/full': No space left on device\n",
        ),
        ("STAGE.lower <&-", 1, r"orias-lower: .*\n"),
        ("STAGE.elf <&-", 1, r"orias-elf: .*\n"),
        ("STAGE.show nosuch", 2, r"orias-show: .*nosuch.*No such file.*\n"),
    ],
)
def test_standard_streams(tmp_path: Path, line: str, code: int, said: str) -> None:
    got = shell(line, tmp_path)
    assert got.returncode == code and re.fullmatch(said, got.stderr.decode()), (got.returncode, got.stderr)
    assert (tmp_path / "out").exists() == (code == 0 and "-o out" in line)


@pytest.mark.parametrize(
    ("kernels", "unbuffered"),
    [(0, ""), (0, "1"), (300, "")],
    ids=["in the buffer", "no buffer", "more than the buffer"],
)
def test_a_full_disk_is_reported_once(tmp_path: Path, kernels: int, unbuffered: str) -> None:
    """The stage reports the failing write; the rest of the stream's buffer fails again when the process ends."""
    text = PTX + "".join([f".visible .entry k{i}() {{ ret; }}\n" for i in range(kernels)])
    (tmp_path / "many.ptx").write_text(text)
    shell("STAGE.parse many.ptx > many.ori", tmp_path)
    for line in ("STAGE.parse many.ptx", "STAGE.lower many.ori", "STAGE.show many.ori", "STAGE.check many.ori"):
        got = shell(f"{line} >/dev/full", tmp_path, PYTHONUNBUFFERED=unbuffered)
        assert got.returncode == 1 and re.fullmatch(rb"orias-\w+: .*No space left on device\n", got.stderr), (line, got)


def test_few_descriptors(tmp_path: Path) -> None:
    """From a limit at which Python barely starts, upward: a cubin, or one line."""
    codes = set()
    for limit in (8, 12, 16, 20, 40):
        got = shell(f"ulimit -n {limit}; ORIAS k.ptx -o out{limit}", tmp_path)
        lines = got.stderr.decode().splitlines()
        assert (got.returncode == 0 and not lines) or (
            got.returncode == 255 and len(lines) <= 2 and "Too many open files" in lines[0]
        ), (limit, got.stderr)
        assert (tmp_path / f"out{limit}").exists() == (got.returncode == 0)
        codes.add(got.returncode)
    assert 0 in codes


@pytest.mark.parametrize("call", ["fork", "pipe"])
def test_no_process_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, call: str
) -> None:
    """The second stage of three cannot start: the first ends, the message names the second, no descriptor stays
    open."""
    real, calls = getattr(os, call), [0]

    def once(*args: Any) -> Any:
        calls[0] += 1
        if calls[0] == (3 if call == "fork" else 5):  # the guardian is the first process, the fourth pipe its own
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return real(*args)

    before = set(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(os, call, once)
    with pytest.raises(NoProcess, match="stage b could not be started: Resource temporarily unavailable"):
        start([Step("a", shell="sleep 600"), Step("b", shell="cat"), Step("c", shell="cat")], b"")
    monkeypatch.undo()
    assert set(os.listdir("/proc/self/fd")) == before and not processes._groups
    monkeypatch.setattr(os, "fork", lambda: (_ for _ in ()).throw(OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))))
    monkeypatch.setattr(driver, "end_with_stages", lambda: None)
    monkeypatch.setattr(driver, "SMALL", 0)  # a small input needs no process
    (tmp_path / "k.ptx").write_text(PTX)
    assert driver.run(read([str(tmp_path / "k.ptx"), "-o", str(tmp_path / "out")])) == 255
    assert (
        capsys.readouterr().err
        == "ptxas fatal   : stage parse could not be started: Resource temporarily unavailable\n"
    )


def test_a_mass_of_input_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "big.ptx").open("wb") as f:
        f.truncate(3 << 30)
    got = shell("ORIAS big.ptx -o out", tmp_path)
    assert got.returncode == 255 and re.fullmatch(
        rb"ptxas fatal   : Input file 'big.ptx' has more than \d+ bytes, which is not supported by orias\n", got.stderr
    )


@pytest.mark.parametrize("words", [[b"\xff.ptx"], [b"k.ptx", b"-o", b"\xfe"], [b"k.ptx", b"-e", b"\xff"], [b"k.ptx",
b"--save-temps", b"\xfd"], [b"-ias", b"\xff"], [b"nosuch\xff"],
                                   [b"--\xff"], [b"-arch", b"\xff"], [b"k.ptx", b"--stage", b"\xff"], [b"-optf",
                                   b"\xff"], [b"-optf", b"options"], [b"--start-from", b"\xff.ptx"]])  # fmt: skip
def test_names_that_are_no_utf8(tmp_path: Path, words: list[bytes]) -> None:
    with open(os.path.join(os.fsencode(tmp_path), b"\xff.ptx"), "wb") as f:
        f.write(PTX.encode().replace(b"ret;", b"bad;") if b"k" in words else PTX.encode())
    with open(tmp_path / "options", "wb") as f:
        f.write(b"k.ptx -o '\xfc'")
    got = run([*ORIAS, *words], tmp_path)
    assert got.returncode in (0, 255) and (got.returncode == 0) == (not got.stderr), got.stderr
    if b"-o" in words:
        assert os.path.exists(os.path.join(os.fsencode(tmp_path), b"\xfe"))
    if got.returncode:
        assert b"ptxas " in got.stderr and len(got.stderr.splitlines()) <= 2


def test_diagnostics_name_a_file_as_it_was_given(tmp_path: Path) -> None:
    with open(os.path.join(os.fsencode(tmp_path), b"\xff.ptx"), "wb") as f:
        f.write(PTX.replace("ret;", "foo;").encode())
    assert b"ptxas \xff.ptx, line 4; error" in run([*ORIAS, b"\xff.ptx"], tmp_path).stderr


@pytest.mark.parametrize("words", ["-j ²", "-j 99999999999999999999999", "-O -99999999999999999999",
    "-maxntid 99999999999999999999999,2,²", "-maxrregcount 18446744073709551616",
                                   "--stage-timeout 0", "--stage-timeout -1", "-j -1", "-split-compile 0x7fffffff",
                                       "--stage-option optimize:limit=99999999999999999999",
                                   f"-maxrregcount {'9' * 6000}", f"-e {'k' * 70000}"])  # fmt: skip
def test_numbers_of_every_size(tmp_path: Path, words: str) -> None:
    got = run([*ORIAS, "k.ptx", *words.split()], tmp_path)
    assert got.returncode in (0, 255) and len(got.stderr.splitlines()) <= 2, got.stderr[:500]


def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(PTX)
    got = shell(f"mkdir gone; cd gone; rmdir ../gone; ORIAS {tmp_path}/k.ptx -o {tmp_path}/out", tmp_path)
    assert got.returncode == 0 and (tmp_path / "out").exists(), got.stderr


def test_executables_import_nothing_from_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "msgpack.py").write_text("open('taken', 'w')\n")
    (tmp_path / "stages.py").write_text("open('taken', 'w')\n")
    got = run([*ORIAS, "k.ptx", "--exec", "-o", "out"], tmp_path)
    assert got.returncode == 0 and not (tmp_path / "taken").exists(), got.stderr
