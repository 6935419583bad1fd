"""Many files in one call: each is compiled as if alone, whatever happens to the others; tokens of make's jobserver."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from orchestrator.jobserver import Tokens

ROOT = Path(__file__).parents[2]
PTX = ROOT / "tests/kernels/ptx/sm_90"
GOOD = ("vadd", "saxpy", "scan")


def _orias(args: list[str], cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | more
    return subprocess.run(
        [sys.executable, "-m", "orchestrator", *args], cwd=cwd, env=environment, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """PTX files, one of them wrong, and cubins of the good ones."""
    out = tmp_path_factory.mktemp("batch")
    for name in GOOD:
        shutil.copy(PTX / f"{name}.ptx", out)
        assert _orias(["-arch", "sm_90", f"{name}.ptx", "-o", f"{name}.alone"], out).returncode == 0
    (out / "bad.ptx").write_text((PTX / "vadd.ptx").read_text().replace("ret;", "rot;"))
    return out


def test_output_dir(folder: Path) -> None:
    """One failure and one missing file do not stop the others; the report lists each, in order."""
    names = ["vadd.ptx", "bad.ptx", "absent.ptx", "saxpy.ptx", "scan.ptx"]
    done = _orias(["-arch", "sm_90", *names, "--output-dir", "made/deep", "--report", "r.json"], folder)
    assert done.returncode == 255
    alone = _orias(["-arch", "sm_90", "bad.ptx"], folder)
    absent = _orias(["-arch", "sm_90", "absent.ptx"], folder)
    assert done.stderr == alone.stderr + absent.stderr
    rows = json.loads((folder / "r.json").read_text())
    assert [(r["input"], r["exit"]) for r in rows] == [(n, 255 if n[0] in "ba" else 0) for n in names]
    assert rows[1]["messages"] == alone.stderr.splitlines() and rows[1]["output"] is None
    for name in GOOD:
        assert (folder / f"made/deep/{name}.cubin").read_bytes() == (folder / f"{name}.alone").read_bytes()
    assert not (folder / "made/deep/bad.cubin").exists()


def test_batch_list(folder: Path) -> None:
    """Lines have their own options, comments and quotes; if a file's stage dies, that file fails."""
    shutil.copy(PTX / "vadd.ptx", folder / "a file.ptx")
    (folder / "list").write_text(
        "# a comment\nvadd.ptx -o one.cubin\n\n'a file.ptx'  # beside its source\n"
        "saxpy.ptx -O0\nscan.ptx --stage 'schedule=kill -9 $$'\n"
    )
    done = _orias(["-arch", "sm_90", "--batch", "list", "-j", "2", "--report", "-"], folder)
    rows = json.loads(done.stdout)
    assert [r["exit"] for r in rows] == [0, 0, 0, 255] and "signal 9" in done.stderr
    assert (folder / "one.cubin").read_bytes() == (folder / "vadd.alone").read_bytes()
    assert (folder / "a file.cubin").exists() and rows[1]["output"] == "a file.cubin"
    assert (folder / "saxpy.cubin").read_bytes() != (folder / "saxpy.alone").read_bytes()


@pytest.mark.parametrize(
    "args, why",
    (
        (["vadd.ptx", "x/vadd.ptx", "--output-dir", "d"], "same output file"),
        (["vadd.ptx", "--output-dir", "d", "-o", "x"], "'--output-file' names one file"),
        (["--batch", "absent"], "Could not open the list"),
        (["--batch", "two"], "expected one PTX file"),
        (["--batch", "quote"], "No closing quotation"),
        (["vadd.ptx", "--report", "r"], "goes with"),
        (["vadd.ptx", "--output-dir", "vadd.ptx"], "could not be made"),
    ),
)
def test_refused(folder: Path, args: list[str], why: str) -> None:
    (folder / "two").write_text("vadd.ptx saxpy.ptx\n")
    (folder / "quote").write_text("'vadd.ptx\n")
    done = _orias(["-arch", "sm_90", *args], folder)
    assert done.returncode == 255 and why in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_file_that_dies(folder: Path) -> None:
    """A killed process is reported, and the others are compiled; a killed batch ends its files."""
    (folder / "killed").write_text("vadd.ptx\nsaxpy.ptx --stage 'lower=kill -9 $PPID; sleep 9'\n")
    done = _orias(["-arch", "sm_90", "--batch", "killed", "--report", "-", "-j", "1"], folder)
    assert [r["exit"] for r in json.loads(done.stdout)] == [0, -9] and "died (signal 9)" in done.stderr
    (folder / "slow").write_text(f"vadd.ptx --stage 'lower=echo $$ >{folder}/pid; exec sleep 60'\n")
    program = [sys.executable, "-m", "orchestrator", "-arch", "sm_90", "--batch", str(folder / "slow")]
    batch = subprocess.Popen(program, cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)})
    end = time.monotonic() + 20
    while not ((folder / "pid").exists() and (folder / "pid").read_text()) and time.monotonic() < end:
        time.sleep(0.02)
    batch.terminate()
    assert batch.wait(10) == -signal.SIGTERM
    stage = Path("/proc", (folder / "pid").read_text().strip())
    while stage.exists() and time.monotonic() < end:
        time.sleep(0.02)
    assert not stage.exists()


@pytest.mark.parametrize("fifo", (False, True))
def test_jobserver(folder: Path, fifo: bool) -> None:
    """All tokens are returned at the end, also those of files that failed."""
    if fifo:
        os.mkfifo(folder / "fifo")
        source = sink = os.open(folder / "fifo", os.O_RDWR)
        flags = f"-j3 --jobserver-auth=fifo:{folder}/fifo"
    else:
        source, sink = os.pipe()
        os.set_inheritable(source, True)
        os.set_inheritable(sink, True)
        flags = f" -j --jobserver-auth={source},{sink}"
    os.write(sink, b"+-")
    program = [sys.executable, "-m", "orchestrator", "-arch", "sm_90", "vadd.ptx", "bad.ptx", "saxpy.ptx"]
    done = subprocess.run(
        [*program, "--output-dir", "j", "--jobserver", "-j", "8"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "MAKEFLAGS": flags},
        close_fds=False,
        capture_output=True,
    )
    assert done.returncode == 255 and (folder / "j/saxpy.cubin").exists()
    os.set_blocking(source, False)
    assert sorted(os.read(source, 9)) == sorted(b"+-")
    tokens = Tokens.of_make(flags)
    assert tokens.take() is None
    os.write(sink, b"x")
    assert tokens.take() == b"x" and tokens.take() is None
    tokens.give(b"x")
    assert os.read(source, 9) == b"x"


def test_no_jobserver() -> None:
    for flags in ("", "-j", "--jobserver-auth=99,98", "--jobserver-auth=fifo:/absent", "--jobserver-auth=a,b"):
        assert Tokens.of_make(flags).take() == b""
