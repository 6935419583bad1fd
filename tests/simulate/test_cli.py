"""orias-run from the command line, and hostile files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from stages.simulate import Device, ImageError
from stages.simulate.argspec import ArgError, parse_arg, parse_dim
from tests.simulate.minicubin import elf

GENERATOR = np.random.default_rng(0)


def orias_run(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "stages.simulate", *args], capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("i32=-5", np.int32(-5)), ("u32=0xffffffff", np.uint32(0xFFFFFFFF)), ("f32=1.5", np.float32(1.5)), ("f64=inf",
        np.float64("inf")),
        ("i32=4294967295", np.int32(-1)), ("buf:i32[3]=iota", np.arange(3, dtype=np.int32)), ("buf:f32[2]=2.5",
        np.full(2, 2.5, np.float32)),
        ("buf:u8[2]", np.zeros(2, np.uint8)),
    ],
)  # fmt: skip
def test_arguments(text: str, want: object) -> None:
    got = parse_arg(text, GENERATOR)
    assert got.dtype == want.dtype and np.array_equal(got, want)  # type: ignore[attr-defined]


def test_random_bounds() -> None:
    got = parse_arg("buf:i32[200]=random:-3:3", GENERATOR)
    assert got.min() >= -3 and got.max() <= 3 and len(set(got)) > 3


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "i33=1",
        "i32=x",
        "buf:i32[-1]",
        "buf:i32[3]=random:1",
        "u8=256",
        "buf:missing.npy",
        "buf:f32[999999999999]",
    ],
)
def test_bad_arguments(text: str) -> None:
    with pytest.raises(ArgError):
        parse_arg(text, GENERATOR)


@pytest.mark.parametrize("text", ["", "0", "1,2,3,4", "a", "1,-1"])
def test_bad_extent(text: str) -> None:
    with pytest.raises(ArgError):
        parse_dim(text)


GOOD = elf(bytes(64))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not an ELF"), (b"hello, this is no ELF file at all" * 4, "not an ELF"), (GOOD[:100], "truncated"),
        (GOOD[:-1], "truncated"),
        (elf(bytes(64), machine=62), "machine 62"), (elf(bytes(64), sm=13), "sm_13"), (elf(bytes(64), kind=1),
        "relocatable"),
    ],
)  # fmt: skip
def test_bad_files(data: bytes, message: str) -> None:
    with pytest.raises(ImageError, match=message):
        Device(data)


def test_mutated_files_never_crash() -> None:
    """Flipped bytes and truncations give an error of ours, or a file that still loads."""
    generator = np.random.default_rng(4)
    for _ in range(400):
        data = bytearray(GOOD)
        for _ in range(int(generator.integers(1, 6))):
            data[int(generator.integers(0, len(data)))] = int(generator.integers(0, 256))
        if generator.random() < 0.2:
            data = data[: int(generator.integers(0, len(data)))]
        try:
            Device(bytes(data))
        except ImageError:
            pass


def test_cli_errors_are_one_line(tmp_path: Path) -> None:
    bad = tmp_path / "bad.cubin"
    bad.write_bytes(b"garbage")
    done = orias_run(str(bad))
    assert done.returncode == 2 and done.stderr.startswith("orias-run: error:") and done.stderr.count("\n") == 1
    done = orias_run(str(tmp_path / "missing.cubin"))
    assert done.returncode == 2 and "missing.cubin" in done.stderr and "Traceback" not in done.stderr
