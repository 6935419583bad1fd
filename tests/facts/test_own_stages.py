"""Stages of one's own: the examples of docs/own-stage.md, user passes among ours, the text form, parts of stages."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import orias.stage
from ir_format import wire
from orchestrator.__main__ import _run
from orchestrator.api import compile_ptx
from stages.plumbing.chain import stage as row
from stages.plumbing.runner import Context, Flags, run_stage
from stages.show.cli import app as show
from tests.facts.own_stages import PTX, ROOT, SMS, allocated, findings, in_cpp, in_python, in_rust, kernels

#: All kernels on one target, some on the others; all of them: `python -m tests.facts.own_stages`.
SOME = ("vadd", "scan", "call_twice")


def test_the_examples_schedule_the_kernels(tmp_path: Path) -> None:
    cpp = in_cpp(tmp_path)
    if cpp is None:
        pytest.skip("no C++ compiler on PATH")
    for sm in SMS:
        for kernel in kernels(sm) if sm == "sm_90" else SOME:
            stream = allocated(sm, kernel)
            assert findings(cpp, stream) == [], (sm, kernel)
            if kernel in SOME[:1]:
                assert findings(in_python, stream) == [], (sm, kernel)


def test_the_example_in_rust_schedules_the_kernels(tmp_path: Path) -> None:
    """It writes the same as the one in C++, except for its name; if that is not available, every judge checks it."""
    rust, cpp = in_rust(tmp_path), in_cpp(tmp_path)
    if rust is None:
        pytest.skip("no Rust compiler on PATH")

    def units(data: bytes) -> list[Any]:
        return [body for tag, body in wire.records(io.BytesIO(data)) if tag == "unit"]

    for sm in SMS:
        for kernel in kernels(sm) if sm == "sm_90" else SOME:
            stream = allocated(sm, kernel)
            if cpp is None or kernel == SOME[0]:
                assert findings(rust, stream) == [], (sm, kernel)
            else:
                assert units(rust(stream)) == units(cpp(stream)), (sm, kernel)


def test_the_stable_module_has_what_the_page_says() -> None:
    text = (ROOT / "docs/own-stage.md").read_text()
    assert all(hasattr(orias.stage, name) for name in orias.stage.__all__)
    for name in ("stage", "access", "facts", "dependences", "control_words", "parse_unit", "print_unit"):
        assert name in orias.stage.__all__ and f"`{name}" in text


def nothing(unit: object, ctx: Context) -> None:
    """A pass that changes nothing."""
    ctx.count("passes of one's own")


@pytest.mark.parametrize("what", ["cat", "tests.facts.test_own_stages:nothing"])
def test_a_pass_of_ones_own_runs_among_ours(tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    file = PTX / "sm_90/vadd.ptx"
    plain, out = tmp_path / "plain.cubin", tmp_path / "out.cubin"
    assert _run([str(file), "-arch", "sm_90", "-o", str(plain)]) == 0
    places = ("optimize:after=dce", "regalloc:after=allocate", "schedule:before=control", "schedule:after=control")
    words = [w for place in places for w in ("--pass", f"{place}:{what}")]
    assert _run([str(file), "-arch", "sm_90", *words, "-o", str(out)]) == 0
    assert out.read_bytes() == plain.read_bytes()


def test_a_pass_that_breaks_is_blamed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = str(PTX / "sm_90/vadd.ptx")
    for what, said in (
        ("exit 3", "pass 'exit 3' of stage optimize ended with exit code 3"),
        ("echo x", "pass 'echo x' of stage optimize wrote no valid stream"),
        ("os.path:nope", "pass 'os.path:nope': module 'posixpath' has no attribute 'nope'"),
    ):
        words = ["--pass", f"optimize:after=dce:{what}", "-o", str(tmp_path / "x")]
        assert _run([file, "-arch", "sm_90", *words]) != 0
        assert said in capfd.readouterr().err


@pytest.mark.parametrize(
    ("stage", "before", "place"),
    [("optimize", "lower", "dce"), ("regalloc", "optimize", "allocate"), ("schedule", "regalloc", "list-schedule")],
)
def test_a_stage_continues_where_it_was_stopped(stage: str, before: str, place: str) -> None:
    """--stop-after and --start-after split a stage; --upto PASS:N is the limit counted from the pass on."""
    streams: dict[str, bytes] = {}
    compile_ptx((PTX / "sm_90/vadd.ptx").read_text(), "sm_90", streams=streams)

    def run(data: bytes, **flags: Any) -> bytes:
        out = io.BytesIO()
        assert run_stage(row(stage), io.BytesIO(data), out, Flags(quiet=True, **flags)) == 0
        return out.getvalue()

    def units(data: bytes) -> list[Any]:
        return [body for tag, body in wire.records(io.BytesIO(data)) if tag == "unit"]

    half = run(streams[before], stop_after=place)
    assert units(half) != units(streams[stage]) or place == "allocate"  # the others have nothing to do here
    assert units(run(half, start_after=place)) == units(streams[stage])
    assert run(streams[before], upto=(place, 0)) == run(streams[before], upto=(place, 0))


def test_text_is_read_back(tmp_path: Path) -> None:
    streams: dict[str, bytes] = {}
    compile_ptx((PTX / "sm_90/call_twice.ptx").read_text(), "sm_90", streams=streams)
    for stage in ("lower", "regalloc", "schedule", "encode"):
        ori, text, back = (tmp_path / f"{stage}.{end}" for end in ("ori", "txt", "back"))
        ori.write_bytes(streams[stage])
        text.write_text(CliRunner().invoke(show, [str(ori)]).output)
        assert CliRunner().invoke(show, ["--read", str(text), "--like", str(ori), "-o", str(back)]).exit_code == 0
        assert back.read_bytes() == streams[stage]
        assert CliRunner().invoke(show, ["--read", str(text), "-o", str(back)]).exit_code == 0
        assert CliRunner().invoke(show, [str(back)]).output == text.read_text()
    text.write_text("nonsense")
    assert CliRunner().invoke(show, ["--read", str(text)]).exit_code == 2


def test_a_cubin_is_scheduled_again(tmp_path: Path) -> None:
    """Lifted code of any compiler goes through `schedule`: the same values, and no finding in the new order."""
    from stages.check.cli import app as check
    from stages.disasm.cli import app as disasm
    from stages.plumbing.chain import SCHEDULE
    from stages.plumbing.cli import stage_app

    cubin, lifted, again = (tmp_path / name for name in ("a.cubin", "lifted.ori", "again.ori"))
    cubin.write_bytes(compile_ptx((PTX / "sm_90/scan.ptx").read_text(), "sm_90"))
    assert CliRunner().invoke(disasm, [str(cubin), "--unscheduled", "-o", str(lifted)]).exit_code == 0
    assert CliRunner().invoke(stage_app(SCHEDULE), [str(lifted), "-o", str(again)]).exit_code == 0
    done = CliRunner().invoke(check, [str(again), "--before", str(lifted)])
    assert done.exit_code == 0 and "0 findings" in done.output, done.output
