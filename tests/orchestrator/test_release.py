"""Which ptxas orias stands in for: `--release` and what hangs on it. Expected values are what ptxas 13.0.88 and 13.5.37
answer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ir_format.release import PTX_VERSIONS, RELEASES
from ir_format.target import LISTED, numbers
from orchestrator.__main__ import _run
from orchestrator.conflicts import UsageError
from orchestrator.help import usage
from orchestrator.options import read
from tests import oracle
from tests.parse.full import Verdict, ours, theirs

TOOLS = {"13.0": "ptxas", "13.5": oracle.NEWER}


def module(version: str, target: str) -> bytes:
    """An empty kernel."""
    return f".version {version}\n.target {target}\n.address_size 64\n.entry k() {{ ret; }}\n".encode()


def test_versions_and_targets_of_each_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """9.1 to 9.5 and sm_107 came after 13.0."""
    assert not ours(module("9.1", "sm_90"), ["-arch", "sm_90", "--release", "13.0"]).taken
    for version in ("9.1", "9.2", "9.3", "9.4", "9.5"):
        assert ours(module(version, "sm_90"), ["-arch", "sm_90"]) == Verdict(True, ())
    said = ours(module("9.6", "sm_90"), ["-arch", "sm_90"])
    assert said.first == "ptxas FILE, line 1; fatal   : Unsupported .version 9.6; current version is '9.5'"
    assert ours(module("9.4", "sm_107"), ["-arch", "sm_107"]).taken
    with pytest.raises(UsageError, match="Value 'sm_107a' is not defined for option 'gpu-name'"):
        read(["-arch", "sm_107a", "--release=13.0"])
    monkeypatch.setenv("ORIAS_RELEASE", "13.0")
    assert not ours(module("9.1", "sm_90"), ["-arch", "sm_90"]).taken
    assert ours(module("9.1", "sm_90"), ["-arch", "sm_90", "--release", "13.5"]).taken  # the command line wins


@pytest.mark.parametrize("release", RELEASES)
def test_what_callers_read(release: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Triton looks for `release N.N`, XLA for `VN.N.N`; a list of versions ends with the newest."""
    assert _run(["--release", release, "-V"]) == 0
    assert re.search(rf"release {release}, V{release}\.\d+$", capsys.readouterr().out.strip())
    assert _run(["--release", release, "--list-version"]) == 0
    listed = capsys.readouterr().out.split()
    assert listed[-1] == {"13.0": "9.0", "13.5": "9.5"}[release]
    assert listed == [f"{a}.{b}" for a, b in PTX_VERSIONS][: len(listed)]


@pytest.mark.oracle
@pytest.mark.parametrize("release", RELEASES)
def test_lists_are_those_of_ptxas(release: str, capsys: pytest.CaptureFixture[str]) -> None:
    oracle.require(TOOLS[release])
    for option in ("--list-version",) if release == "13.0" else ("--list-version", "--list-arch"):
        assert _run(["--release", release, option]) == 0
        assert capsys.readouterr().out == oracle.run_tool(TOOLS[release], option)
    assert sorted(LISTED) == list(numbers())


OPTIONS = (
    [], ["-pic=true"], ["-pic=false"], ["-pic=true", "--suppress-position-independent-code-warning"],
    ["--enable-func-clone-sc=true"], ["--enable-func-clone-sc=true", "-c"], ["--gno-fabric-access-check"],
    ["--gno-fabric-access-check", "-w"], ["-v2", "-c"], ["--jobserver", "--split-compile=2"],
    ["--jobserver", "--split-compile=1"], ["--apply-controls=/nonexistent"], ["--apply-controls=/dev/null"],
    ["--cuda-api-version=13.0"], ["--cuda-api-version=13.4"], ["--cuda-api-version=13.6"], ["--list-arch"],
)  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("release", RELEASES)
def test_options_of_each_release(release: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Taken or refused, with the same first line."""
    monkeypatch.delenv("MAKEFLAGS", raising=False)
    oracle.require(TOOLS[release])
    for words in OPTIONS[:-1] if release == "13.5" else OPTIONS:
        for arch in ("sm_90", "sm_100"):
            mine = ours(module("9.0", arch), [*words, "-arch", arch, "--release", release])
            told = theirs(module("9.0", arch), [*words, "-arch", arch], tmp_path, TOOLS[release])
            assert (mine.taken, mine.first) == (told.taken, told.first), (words, arch)
    # The .target of the text counts, not -arch.
    words = ["--gno-fabric-access-check", "-arch", "sm_100"]
    if release == "13.5":
        mine, told = (
            ours(module("9.0", "sm_90"), words),
            theirs(module("9.0", "sm_90"), words, tmp_path, TOOLS[release]),
        )
        assert mine == told and told.lines
    monkeypatch.setenv("MAKEFLAGS", "-j2 --jobserver-auth=98,99")
    words = ["-arch", "sm_90", "--jobserver", "--split-compile=2"]
    mine = ours(module("9.0", "sm_90"), [*words, "--release", release])
    assert mine.first == theirs(module("9.0", "sm_90"), words, tmp_path, TOOLS[release]).first


def test_help_names_what_the_release_has() -> None:
    """13.0 knows neither the options nor the targets that came after it."""
    old, new = usage(RELEASES["13.0"]), usage(RELEASES["13.5"])
    for word in ("--list-arch", "--verbose2", "'sm_107a'", "--enable-func-clone-sc", "--gno-fabric-access-check"):
        assert word in new and word not in old
