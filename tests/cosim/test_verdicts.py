"""`orias-check --cosim` first says for each kernel whether it is equal, different or not judged and why; within the
kernel's time budget."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from orchestrator.api import compile_ptx
from stages.check.cosim import Cosim
from stages.check.executors import Outcome
from stages.simulate import Device
from tests.cosim.test_bad_input import GOOD, check, cubin

AWAY = GOOD.replace("st.global.u32 [%d0], %r0;", "st.global.u32 [%d0+1073741824], %r0;")
#: Many iterations for each thread: a launch of many threads takes minutes, warp by warp.
LONG = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 n) { .reg .b64 %d<3>; .reg .b32 %r<6>; .reg .pred %q; \
ld.param.u64 %d0, [p]; ld.param.u32 %r0, [n]; mov.u32 %r1, %tid.x;
mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mad.lo.u32 %r1, %r3, %r4, %r1; and.b32 %r1, %r1, 4095; \
mul.wide.u32 %d1, %r1, 4; add.u64 %d0, %d0, %d1; shl.b32 %r0, %r0, 6; mov.u32 %r2, 0;
L: mad.lo.u32 %r2, %r2, 5, %r1; sub.u32 %r0, %r0, 1; setp.gt.s32 %q, %r0, 0; @%q bra L; st.global.u32 [%d0], %r2; ret; }
"""


@pytest.mark.parametrize(
    ("text", "image", "code", "first"),
    [
        (GOOD, GOOD, 0, "k: cubin: equal ("),
        (GOOD, GOOD.replace("%r0, 7;", "%r0, 8;"), 1, "k: cubin: different: "),
        (AWAY, AWAY, 2, "k: cubin: not judged, because address: "),
    ],
    ids=["equal", "different", "not judged"],
)
def test_the_verdict_comes_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, image: str, code: int, first: str
) -> None:
    assert check(tmp_path, text, cubin(image)) == code
    assert capsys.readouterr().out.startswith(first)


def test_a_run_that_the_simulator_cannot_do_is_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Instructions that the simulator lacks, and its own limit if that is less than the program may take."""
    cosim = Cosim(GOOD, "sm_90", {"x": Device(cubin(GOOD))}, seeds=1)
    monkeypatch.setattr(
        "stages.check.cosim.simulate",
        lambda *a, **k: Outcome(error="instruction TEX is not supported by the simulator", kind="simulator"),
    )
    (verdict,) = cosim.run().verdicts
    assert verdict.word == "not judged" and "TEX" in verdict.why
    cosim = Cosim(GOOD, "sm_90", {"x": Device(cubin(GOOD))}, seeds=1)
    monkeypatch.setattr("stages.check.cosim.SIM_LIMIT", 100)
    monkeypatch.setattr(
        "stages.check.cosim.simulate",
        lambda *a, **k: Outcome(error="instruction limit of 100 warp instructions reached", kind="simulator"),
    )
    (verdict,) = cosim.run().verdicts
    assert verdict.word == "not judged" and "limit" in verdict.why


def test_a_kernel_stays_within_its_time_budget() -> None:
    """Launches, loop counts and orders are fitted to the time budget."""
    device = Device(compile_ptx(LONG, "sm_90", {}))
    began = time.process_time()
    report = Cosim(LONG, "sm_90", {"ours": device}, seconds=1.5).run()
    assert [v.word for v in report.verdicts] == ["equal"]
    assert time.process_time() - began < 4


#: A matrix product of a warp of less than 32 threads, and the value of a clock, are undefined; the other store is not.
#: Every thread's neighbours in other warps may or may not have stored.
OPEN = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 two) { .reg .b32 %r<9>; .reg .b64 %d<6>; ld.param.u64 %d1, [out];
mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r1, %r2, %r3, %r1; \
mul.wide.u32 %d2, %r1, 8;
and.b64 %d2, %d2, 65528; add.s64 %d1, %d1, %d2; BODY st.global.u32 [%d1], %r4; st.global.u32 [%d1+4], %r1; ret; }
"""
BODIES = {
    "clock": """\
mov.u64 %d3, %clock64; nanosleep.u32 20; mov.u64 %d4, %clock64; sub.s64 %d4, %d4, %d3; \
cvt.u32.u64 %r4, %d4;""",
    "product": """\
mov.u32 %r4, 0; mov.u32 %r5, 3; \
mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32 {%r4, %r6}, {%r5}, {%r1}, {%r4, %r4};""",
    "race": """\
ld.param.u64 %d3, [out]; mul.wide.u32 %d4, %r1, 40; and.b64 %d4, %d4, 2040; add.s64 %d3, %d3, %d4; \
ld.global.u32 %r4, [%d3+4];""",
}


@pytest.mark.parametrize("what", BODIES)
def test_what_the_manual_leaves_open_is_no_difference(what: str) -> None:
    text = OPEN.replace("BODY", BODIES[what])
    image = compile_ptx(text, "sm_80", {})
    (verdict,) = Cosim(text, "sm_80", {"x": Device(image)}, seeds=3).run().verdicts
    assert verdict.word == "equal", verdict
    changed = text.replace("[%d1+4], %r1", "[%d1+4], %r2")
    (verdict,) = Cosim(changed, "sm_80", {"x": Device(image)}, seeds=1).run().verdicts
    assert verdict.word == "different", verdict


#: Terms that cancel each other make errors of approximations arbitrarily great; sines of great angles have no
#: bound.
CANCEL = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out) { .reg .b32 %r<9>; .reg .b64 %d<6>; .reg .f32 %f<20>;
ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %d3, %r1, 4; add.s64 %d1, %d1, %d3;
add.s64 %d2, %d2, %d3; ld.global.f32 %f1, [%d1]; ld.global.f32 %f2, [%d1+4]; sin.approx.f32 %f3, %f1; \
div.full.f32 %f4, %f2, %f1;
mul.f32 %f5, %f4, %f3; sin.approx.f32 %f6, %f2; div.approx.f32 %f7, %f1, %f2; mul.f32 %f8, %f6, %f7; \
sub.f32 %f9, %f5, %f8;
ex2.approx.f32 %f10, %f3; lg2.approx.f32 %f11, %f10; sub.f32 %f12, %f11, %f3; mul.f32 %f12, %f12, 0f4F000000;
add.f32 %f9, %f9, %f12; st.global.f32 [%d2], %f9; ret; }
"""


def test_what_approximations_may_do_is_no_difference() -> None:
    image = compile_ptx(CANCEL, "sm_80", {"fmad": 0})
    for text, word in ((CANCEL, "equal"), (CANCEL.replace("sub.f32 %f9", "add.f32 %f9"), "different")):
        (verdict,) = Cosim(text, "sm_80", {"x": Device(image)}, seeds=2).run().verdicts
        assert verdict.word == word, verdict
