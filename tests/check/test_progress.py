"""Threads that leave early while others wait for the whole warp: ptxas's code ends only if a WARPSYNC releases threads
at a BSYNC; ours does not need that."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.api import compile_ptx
from stages.check.convergence_checker import check_bytes
from stages.simulate import Device, SimError
from tests import oracle

PTX = """.version 8.7
.target sm_{sm}
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out)
{{
    .reg .b32 %r<9>; .reg .b64 %d<6>; .reg .pred %p<5>;
    ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out];
    mov.u32 %r1, %tid.x; mul.wide.u32 %d3, %r1, 4; add.s64 %d1, %d1, %d3; add.s64 %d2, %d2, %d3;
    ld.global.u32 %r2, [%d1];
    and.b32 %r3, %r2, 2; setp.ne.u32 %p1, %r3, 0;
    @%p1 bra LEAVE;
    ld.global.u32 %r4, [%d1+128];
    and.b32 %r3, %r4, 2; setp.eq.u32 %p1, %r3, 0;
    @%p1 bra STAY;
LEAVE:
    st.global.u32 [%d2], %r2;
    ret;
STAY:
    {meet}
    st.global.u32 [%d2], 77;
    ret;
}}
"""
IN = (np.arange(64) * 7).astype(np.uint32)
WANT = np.where((IN[:32] & 2 != 0) | (IN[32:] & 2 != 0), IN[:32], 77).astype(np.uint32)


def run(cubin: bytes, progress: bool) -> tuple[np.ndarray, int]:
    out = np.zeros(32, np.uint32)
    stats = Device(cubin).launch("k", 1, 32, [IN, out], progress=progress)
    return out, stats.advanced


@pytest.mark.oracle
@pytest.mark.parametrize("sm", [75, 90, 120])
@pytest.mark.parametrize("meet", ["bar.warp.sync 0xffffffff;", "bar.sync 0;"])
def test_a_warpsync_lets_threads_go(sm: int, meet: str) -> None:
    oracle.require("ptxas")
    text = PTX.format(sm=sm, meet=meet)
    got = oracle.compile_ptx(text, sm, "-O3")
    assert not isinstance(got, oracle.ToolError), got
    theirs, ours = got.read_bytes(), compile_ptx(text, f"sm_{sm}")
    with pytest.raises(SimError, match="deadlock"):
        run(theirs, False)
    out, times = run(theirs, True)
    assert np.array_equal(out, WANT)
    assert times == 1
    report = check_bytes(theirs)
    assert not report.findings
    assert report.notes or sm == 75  # on sm_75 the wait is in a function of ptxas's library
    out, times = run(ours, True)
    assert np.array_equal(out, WANT)
    assert times == 0
    report = check_bytes(ours)
    assert not report.findings
    assert not report.notes


def test_progress_is_off_by_default() -> None:
    """A device made for another compiler's code; threads that wait only for a barrier of the block still deadlock."""
    cubin = compile_ptx(PTX.format(sm=80, meet="bar.sync 0, 64;"), "sm_80")
    with pytest.raises(SimError, match=r"deadlock: .* barrier 0"):
        Device(cubin, progress=True).launch("k", 1, 32, [IN, np.zeros(32, np.uint32)])
