"""Operations that a warp executes one time, where PTX has one for each thread: what the threads share is brought to
uniform registers once, and one elected thread needs neither loop nor branch."""

from __future__ import annotations

import numpy as np

from orchestrator.api import compile_ptx
from stages.simulate.device import Device
from tests.lower.helpers import insts, lower_text

_HEAD = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p)
{
.reg .pred %p<9>;
.reg .b32 %r<9>;
.reg .b64 %rd<9>;
.shared .align 16 .b8 s[64];
ld.param.u64 %rd1, [p];
mov.u32 %r1, %tid.x;
mov.u32 %r2, s;
"""
_COPY = "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r2], 16;\n"
_END = "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nret;\n}\n"
#: Threads 3, 2, 1, 0 of four come in turn, each with a count of its own rounds.
_LATE = (
    "mov.u32 %r3, 0;\nmov.u32 %r4, 0;\nnot.b32 %r5, %r1;\nand.b32 %r5, %r5, 3;\nL:\nsetp.gt.u32 %p1, %r5, %r4;\n"
    "@%p1 bra M;\nadd.u32 %r3, %r3, 1;\nmul.wide.u32 %rd3, %r3, 16;\nadd.u64 %rd2, %rd1, %rd3;\n"
    + _COPY
    + "M:\nadd.u32 %r4, %r4, 1;\nsetp.lt.u32 %p2, %r4, 4;\n@%p2 bra L;\n"
)
#: A counter that one thread alone keeps, in a loop.
_ALONE = (
    "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra M;\nmov.u32 %r3, 0;\nL:\nmul.wide.u32 %rd3, %r3, 16;\n"
    "add.u64 %rd2, %rd1, %rd3;\n" + _COPY + "add.u32 %r3, %r3, 1;\nsetp.lt.u32 %p2, %r3, 3;\n@%p2 bra L;\nM:\n"
)
_ELECTED = "elect.sync %r3|%p1, -1;\nmov.u64 %rd2, %rd1;\n@%p1 " + _COPY


def _found(body: str) -> list[tuple[str, str]]:
    """(mnemonic, file of the guard) of the instructions after lowering."""
    (unit,) = lower_text(_HEAD + body + _END, "sm_90a")
    return [(i.op, i.guard.file if i.guard is not None else "") for i in insts(unit)]


def _stored(body: str) -> list[int]:
    """Which 16 bytes of the output are written, in the simulator."""
    fill = "st.shared.u32 [%r2], 1;\nbar.sync 0;\nfence.proxy.async;\n"
    out = np.zeros(32, np.uint32)
    Device(compile_ptx(_HEAD + fill + body + _END, "sm_90a", {}, name="t.ptx")).launch("k", (1,), (4, 1, 1), [out])
    return [n for n in range(8) if out[4 * n]]


def test_shared_operands_leave_the_loop() -> None:
    """A counter of one thread is shared by the threads of the group, which is one thread."""
    assert {g for op, g in _found(_ALONE) if op == "R2UR"} == {""}
    assert _stored(_ALONE) == [0, 1, 2]


def test_counters_that_threads_keep_apart_stay_in_the_loop() -> None:
    """A branch in a loop that other threads take each time: the counters differ, and each thread has its copy."""
    assert "P" in {g for op, g in _found(_LATE) if op == "R2UR"}
    assert _stored(_LATE) == [1, 2, 3, 4]


def test_an_elected_thread_has_no_loop() -> None:
    """As in ptxas's code: VOTEU and a uniform guard."""
    seen = _found(_ELECTED)
    assert ("UBLKCP", "UP") in seen and "BRA" not in {op for op, _ in seen}
    assert _stored(_ELECTED) == [0]
