"""`orias-check --cosim` says first, of each kernel, whether it is equal, different or not judged and why; in the time that a kernel has."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from orchestrator.api import compile_ptx
from stages.check.cosim import Cosim
from stages.check.sides import Outcome
from stages.simulate import Device
from tests.cosim.test_bad_input import GOOD, check, cubin

AWAY = GOOD.replace("st.global.u32 [%d0], %r0;", "st.global.u32 [%d0+1073741824], %r0;")
#: Many turns for each thread: a launch of many threads takes minutes, warp by warp.
LONG = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 n) { .reg .b64 %d<3>; .reg .b32 %r<6>; .reg .pred %q; ld.param.u64 %d0, [p]; ld.param.u32 %r0, [n]; mov.u32 %r1, %tid.x;
mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mad.lo.u32 %r1, %r3, %r4, %r1; and.b32 %r1, %r1, 4095; mul.wide.u32 %d1, %r1, 4; add.u64 %d0, %d0, %d1; shl.b32 %r0, %r0, 6; mov.u32 %r2, 0;
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
    """Instructions that it does not have, and its own limit where that is less than the program may take."""
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


def test_a_kernel_has_its_time() -> None:
    """Launches, loop counts and orders are fitted to it."""
    device = Device(compile_ptx(LONG, "sm_90", {}))
    began = time.process_time()
    report = Cosim(LONG, "sm_90", {"ours": device}, seconds=1.5).run()
    assert [v.word for v in report.verdicts] == ["equal"]
    assert time.process_time() - began < 4
