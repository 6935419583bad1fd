"""The ptxas release that orias replaces: `--release` and what depends on it. Expected values are the answers of ptxas
13.0.88 and 13.5.37."""

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
from tests.parse.test_full import kernel

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


UNKNOWN = "error   : Unknown modifier '.{}'"
#: The first message of ptxas 13.0 for forms that came later, on sm_120a.
LATER = {
    "add.u8x4 %r1, %r2, %r3;": UNKNOWN.format("u8x4"),
    "add.sat.u32 %r1, %r2, %r3;": "error   : Modifier '.sat' does not apply to '.u32' type",
    "clmad.lo.u64 %rd1, %rd2, %rd3, %rd4;": "error   : Not a name of any known instruction: 'clmad.lo'",
    "sin.approx.ftz.2pi.f32 %f1, %f2;": "fatal   : Parsing error near 'pi': syntax error",
    "multimem.cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], %r2;": UNKNOWN.format("bulk"),
    "mbarrier.init.layout::v1.b64 [%rd1], %r2;": UNKNOWN.format("layout::v1"),
    "mbarrier.check_layout.layout::v1.b64 %p1, [%rd1];": UNKNOWN.format("check_layout"),
    "cvt.rn.satfinite.s2f6x2.f32 %h1, %f1, %f2;": UNKNOWN.format("s2f6x2"),
    "cvt.rn.satfinite.e4m3x2.bf16x2 %h1, %r1;": "error   : Unexpected instruction types specified for 'cvt'",
    "prefetch.global.L1::32B.valid_addr [%rd1];": UNKNOWN.format("L1::32B"),
    "atom.global.add.noftz.f32 %f1, [%rd1], %f2;": "error   : Illegal modifier '.noftz' for instruction 'atom'",
    "multimem.st.async.release.sys.global.b32 [%rd1], %r1;": (
        "error   : Illegal modifier '.async' for instruction 'multimem.st'"
    ),
    "ld.volatile.local.b32 %r1, [%rd1];": "error   : Modifier '.volatile' cannot be applied to '.local' space",
    "ld.proxy::readonly.global.b32 %r1, [%rd1];": UNKNOWN.format("proxy::readonly"),
    "add.bf16x2.ignore_oob %r1, %r2, %r3;": UNKNOWN.format("ignore_oob"),
}


def test_what_13_0_does_not_know(tmp_path: Path) -> None:
    for body, want in LATER.items():
        text = kernel(body, target="sm_120a").encode()
        got = ours(text, ["-arch", "sm_120a", "--release", "13.0"])
        assert (got.taken, got.first) == (False, f"ptxas FILE, line 6; {want}"), body
        if oracle.find("ptxas") is not None:
            assert theirs(text, ["-arch", "sm_120a"], tmp_path).first == got.first, body
    assert ours(
        kernel("add.sat.u32 %r1, %r2, %r3;", version="9.2", target="sm_120a").encode(), ["-arch", "sm_120a"]
    ).taken
