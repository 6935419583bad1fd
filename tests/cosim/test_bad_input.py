"""`orias-check --cosim` on bad input: one clear line, exit status 2 (nothing to judge) or 1 (a cubin that can't do what
the PTX asks), in bounded time."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from orchestrator.api import compile_ptx
from stages.check import files
from stages.check.command import check_file

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
GOOD = HEAD + (
    ".visible .entry k(.param .u64 p) { .reg .b64 %d<2>; .reg .b32 %r<2>; ld.param.u64 %d0, [p]; "
    "mov.u32 %r0, 7; st.global.u32 [%d0], %r0; ret; }\n"
)
ENDLESS = GOOD.replace("mov.u32 %r0, 7;", "L: add.u32 %r0, %r0, 1; st.global.u32 [%d0], %r0; bra L;")
TWO = GOOD.replace("(.param .u64 p)", "(.param .u64 p, .param .u64 q)")
OTHER = GOOD.replace(".entry k(", ".entry other(")


def cubin(text: str, arch: str = "sm_90") -> bytes:
    """Ours."""
    return compile_ptx(text.replace("sm_90", arch), arch, {})


def check(
    folder: Path, text: str, image: bytes | None = None, arch: str = "sm_90", kernels: tuple[str, ...] = ()
) -> int:
    """The exit status for a PTX text, with a given cubin instead of ours."""
    source, other = folder / "k.ptx", folder / "k.cubin"
    source.write_text(text)
    if image is not None:
        other.write_bytes(image)
    return check_file(source, arch, kernels, 2, None, other if image is not None else None)


@pytest.mark.parametrize(
    ("image", "says"),
    [
        (lambda: Path(sys.executable).resolve().read_bytes(), "is not CUDA"),
        (lambda: cubin(GOOD)[:1500], "truncated"),
        (lambda: cubin(GOOD)[:40], "not an ELF file"),
        (lambda: random.Random(1).randbytes(5000), "not an ELF file"),
        (lambda: b"", "not an ELF file"),
        (lambda: cubin(GOOD, "sm_80"), "the cubin is for sm_80, not for sm_90"),
    ],
    ids=["foreign", "truncated", "header", "noise", "empty", "wrong SM"],
)
def test_files_that_are_no_cubin(tmp_path: Path, capsys: pytest.CaptureFixture[str], image: object, says: str) -> None:
    """Not judged, and why."""
    assert callable(image)
    assert check(tmp_path, GOOD, image()) == 2
    out = capsys.readouterr().out
    assert f"not judged: cubin: {says}" in out or says in out
    assert "0 differences (no cubins)" in out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (OTHER, "no kernel 'k' in the module (it has: other)"),
        (TWO, "kernel 'k' takes 2 arguments, not 1"),
        (ENDLESS, "warp instructions"),
    ],
    ids=["missing kernel", "argument count", "endless"],
)
def test_cubins_of_something_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, text: str, says: str
) -> None:
    """A cubin without the kernel, with another signature, or that does not end, fails once."""
    monkeypatch.setattr("stages.check.executors.SIM_LIMIT", 50_000)
    assert check(tmp_path, GOOD, cubin(text)) == 1
    out = capsys.readouterr().out
    assert out.count("failed") == 1 and says in out


def test_truncations_and_flips(tmp_path: Path) -> None:
    """A damaged cubin never causes a traceback."""
    image = cubin(GOOD)
    rng = random.Random(7)
    for _ in range(40):
        bad = bytearray(image)
        for _ in range(rng.randrange(1, 6)):
            bad[rng.randrange(len(bad))] = rng.randrange(256)
        assert check(tmp_path, GOOD, bytes(bad[: rng.randrange(len(bad))] if rng.random() < 0.4 else bad)) in (0, 1, 2)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (ENDLESS, "more than"),
        (GOOD.replace("{ .reg", "{ .local .b8 l[1000000000]; .reg"), "bytes of local memory"),
        (GOOD.replace(".visible", ".global .b8 g[3000000000];\n.visible"), "bytes of global memory"),
    ],
    ids=["endless", "local memory", "global memory"],
)
def test_launches_without_bounds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, text: str, says: str
) -> None:
    """PTX that does not end, or needs more memory than there is, is not judged."""
    monkeypatch.setattr("stages.check.cosim.STEP_LIMIT", 4000)
    assert check(tmp_path, text, cubin(GOOD)) == 2
    out = capsys.readouterr().out
    assert says in out and out.startswith("k: cubin: not judged, because ")


def test_names_and_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown kernel, a wrong architecture, bad PTX, a file that is too long."""
    assert check(tmp_path, GOOD, kernels=("nothing",)) == 2
    assert "no such kernel in the module (it has: k)" in capsys.readouterr().out
    assert check(tmp_path, GOOD, arch="sm_80") == 2
    assert "ptxas fatal" in capsys.readouterr().err
    assert check(tmp_path, "nonsense") == 2
    monkeypatch.setattr(files, "MOST", 10)
    assert check(tmp_path, GOOD) == 2
    assert "more than 10 bytes" in capsys.readouterr().err
