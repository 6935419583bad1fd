"""Output files: through devices, FIFOs and links; ordinary files completely or not at all."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from stages.plumbing import files
from stages.plumbing.files import write_file

ROOT = Path(__file__).parents[2]


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_a_new_file_has_the_mode_that_the_umask_allows(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        write_file(str(tmp_path / "new"), b"data")
    finally:
        os.umask(old)
    assert (tmp_path / "new").read_bytes() == b"data"
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    assert names(tmp_path) == ["new"]


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o4711])
def test_an_old_file_is_replaced_at_once_and_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "old"
    path.write_bytes(b"before")
    path.chmod(mode)
    with path.open("rb") as reader:  # a process that has it open reads the old file to its end
        write_file(str(path), b"after")
        assert reader.read() == b"before"
    assert path.read_bytes() == b"after" and stat.S_IMODE(path.stat().st_mode) == mode
    assert names(tmp_path) == ["old"]


def test_links_are_written_through(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_bytes(b"before")
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("there/file")
    write_file(str(tmp_path / "one"), b"after")
    assert (tmp_path / "one").is_symlink() and (tmp_path / "two").is_symlink()
    assert (tmp_path / "there" / "file").read_bytes() == b"after"
    (tmp_path / "dangling").symlink_to("there/new")
    write_file(str(tmp_path / "dangling"), b"made")
    assert (tmp_path / "dangling").is_symlink() and (tmp_path / "there" / "new").read_bytes() == b"made"
    assert names(tmp_path / "there") == ["file", "new"]
    (tmp_path / "ring").symlink_to("ring")
    with pytest.raises(OSError):
        write_file(str(tmp_path / "ring"), b"x")


def test_a_fifo_stays_one(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()))
    reader.start()
    write_file(str(path), b"x" * 100_000)
    reader.join(20)
    assert got == [b"x" * 100_000] and stat.S_ISFIFO(path.stat().st_mode) and names(tmp_path) == ["fifo"]


def test_devices_stay_devices() -> None:
    write_file("/dev/null", b"x")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with pytest.raises(OSError) as e:
        write_file("/dev/full", b"x")
    assert files.why(e.value) == "No space left on device"
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_open_descriptors_are_written_to(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before, and longer")
    fd = os.open(path, os.O_WRONLY)
    try:
        write_file(f"/proc/self/fd/{fd}", b"after")
        inode = os.fstat(fd).st_ino
    finally:
        os.close(fd)
    assert path.stat().st_ino == inode and path.read_bytes() == b"after"
    r, w = os.pipe()
    write_file(f"/dev/fd/{w}", b"piped")
    os.close(w)
    assert os.read(r, 100) == b"piped"
    os.close(r)


def test_long_names(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 250)
    write_file(str(path), b"1")
    write_file(str(path), b"2")
    assert path.read_bytes() == b"2" and len(names(tmp_path)) == 1
    with pytest.raises(OSError):
        write_file(str(tmp_path / ("n" * 256)), b"1")
    assert len(names(tmp_path)) == 1


def test_the_temporary_file_is_nobody_elses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file or a link in place of the temporary file is neither followed nor overwritten."""
    monkeypatch.setattr(os, "urandom", lambda n: bytes(n))
    part = tmp_path / f".orias-{bytes(8).hex()}"
    part.symlink_to("victim")
    (tmp_path / "victim").write_bytes(b"safe")
    with pytest.raises(FileExistsError):
        write_file(str(tmp_path / "out"), b"x")
    assert (tmp_path / "victim").read_bytes() == b"safe" and part.is_symlink() and not (tmp_path / "out").exists()


def test_a_failed_write_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, os.strerror(28))))
    with pytest.raises(OSError):
        write_file(str(path), b"after")
    assert path.read_bytes() == b"before" and names(tmp_path) == ["file"] and not files.pending


@pytest.mark.parametrize("place", ["", "folder", "missing/file", "file/below"])
def test_places_where_no_file_can_be(tmp_path: Path, place: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError):
        write_file(str(tmp_path / place) if place else "", b"x")
    assert names(tmp_path) == ["file", "folder"]


PTX = ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry k() { ret; }\n"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("-o /dev/null", 0, ""),
        (
            "-o /dev/full",
            255,
            r"ptxas fatal   : Output file '/dev/full' could not be written: No space left on device\n",
        ),
        ("-o folder", 255, r"ptxas fatal   : Output file 'folder' could not be opened\n"),
        ("-o no/such", 255, r"ptxas fatal   : Output file 'no/such' could not be opened\n"),
        ("-o /dev/stdout", 0, ""),
    ],
)
def test_the_command_line(tmp_path: Path, words: str, code: int, said: str) -> None:
    (tmp_path / "k.ptx").write_text(PTX)
    (tmp_path / "folder").mkdir()
    got = subprocess.run(
        [sys.executable, "-P", "-m", "orchestrator", "k.ptx", *words.split()], cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert got.returncode == code and re.fullmatch(said, got.stderr.decode()), got.stderr
    assert got.stdout[:4] == (b"\x7fELF" if "stdout" in words else b"")
    assert names(tmp_path) == ["folder", "k.ptx"] and stat.S_ISCHR(os.stat("/dev/null").st_mode)
