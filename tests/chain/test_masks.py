"""Warp-wide operations under masks in registers, reached by threads with several masks together: each mask is a
separate operation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from orchestrator.api import compile_ptx
from stages.interpret.launch import Module
from stages.simulate import Device
from tests import oracle

HEAD = """.version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in)
{
.reg .b32 %r<40>; .reg .b64 %l<4>; .reg .pred %p<9>;
ld.param.u64 %l0,[out]; ld.param.u64 %l1,[in];
mov.u32 %r0,%tid.x; mad.wide.u32 %l0,%r0,64,%l0; mad.wide.u32 %l1,%r0,8,%l1;
ld.global.v2.u32 {%r1,%r2},[%l1];
and.b32 %r3,%r1,3; setp.gt.s32 %p0,%r2,5;
match.any.sync.b32 %r4,%r3,0xffffffff;
"""
VOTES = """vote.sync.ballot.b32 %r5,%p0,%r4;
vote.sync.any.pred %p1,%p0,%r4; vote.sync.all.pred %p2,%p0,%r4; vote.sync.uni.pred %p3,%p0,%r4;
selp.u32 %r6,1,0,%p1; @%p2 add.u32 %r6,%r6,2; @%p3 add.u32 %r6,%r6,4;
match.any.sync.b32 %r7,%r2,%r4; match.all.sync.b32 %r8|%p4,%r2,%r4;
@%p4 add.u32 %r6,%r6,8;
st.global.v4.u32 [%l0],{%r5,%r6,%r7,%r8};
"""
SUMS = """redux.sync.add.u32 %r5,%r2,%r4; redux.sync.min.s32 %r6,%r2,%r4; redux.sync.max.u32 %r7,%r2,%r4; \
redux.sync.xor.b32 %r8,%r2,%r4;
redux.sync.and.b32 %r9,%r2,%r4; redux.sync.or.b32 %r10,%r2,%r4;
st.global.v4.u32 [%l0+16],{%r5,%r6,%r7,%r8}; st.global.v2.u32 [%l0+32],{%r9,%r10};
"""
ALONE = """mov.u32 %r4,%lanemask_eq; mov.u32 %r11,7;
ROUND: redux.sync.add.u32 %r12,%r2,%r4; add.u32 %r2,%r12,%r11; and.b32 %r13,%r2,3; setp.ne.u32 %p5,%r13,0; \
sub.u32 %r11,%r11,1; setp.gt.and.s32 %p5,%r11,0,%p5; @%p5 bra ROUND;
st.global.u32 [%l0+40],%r2;
"""
Arr = NDArray[Any]


def text(sm: int) -> str:
    return HEAD.replace("sm_75", f"sm_{min(sm, 80)}") + VOTES + (SUMS + ALONE if sm >= 80 else "") + "ret;\n}\n"


def data(seed: int) -> Arr:
    """Groups of one thread to a whole warp; few different values."""
    rng = np.random.default_rng(seed)
    values = rng.integers(-8, 12, (64, 2)).astype(np.int32).view(np.uint32)
    values[:, 0] = rng.integers(0, (1, 2, 4)[seed % 3], 64)
    values[seed % 2 :: 7, 1] = 9
    if seed % 4 == 3:
        values[:, 1] = values[:, 0]
    return values


def wanted(values: Arr, sm: int) -> Arr:
    """The results by the manual."""
    out = np.zeros((64, 16), np.uint32)
    for i in range(64):
        warp = i // 32 * 32
        same = [j for j in range(warp, warp + 32) if values[j, 0] & 3 == values[i, 0] & 3]
        x = values[same, 1]
        yes = x.view(np.int32) > 5
        bits = np.array([1 << (j - warp) for j in same], np.uint64)
        alike = len(set(x.tolist())) == 1
        out[i, 0] = int(bits[yes].sum())
        out[i, 1] = yes.any() + 2 * yes.all() + 4 * (yes.all() or not yes.any()) + 8 * alike
        out[i, 2] = int(bits[x == values[i, 1]].sum())
        out[i, 3] = int(bits.sum()) if alike else 0
        if sm >= 80:
            out[i, 4] = int(x.astype(np.uint64).sum()) & 0xFFFFFFFF
            out[i, 5] = np.uint32(int(x.view(np.int32).min()) & 0xFFFFFFFF)
            out[i, 6], out[i, 7] = x.max(), np.bitwise_xor.reduce(x)
            out[i, 8], out[i, 9] = np.bitwise_and.reduce(x), np.bitwise_or.reduce(x)
            v, n = int(values[i, 1]), 7
            while True:
                v = (v + n) & 0xFFFFFFFF
                n -= 1
                if n <= 0 or not v & 3:
                    break
            out[i, 10] = v
    return out


@pytest.mark.parametrize("sm", [75, 80])
def test_interpreter(sm: int) -> None:
    for seed in range(4):
        out = np.zeros((64, 16), np.uint32)
        Module(text(sm), f"sm_{sm}").launch("k", (1, 1, 1), (64, 1, 1), [out, data(seed)])
        np.testing.assert_array_equal(out, wanted(data(seed), sm))


def _runs(cubin: bytes, sm: int) -> None:
    for seed in range(4):
        out = np.zeros((64, 16), np.uint32)
        Device(cubin).launch("k", 1, 64, [out, data(seed)])
        np.testing.assert_array_equal(out, wanted(data(seed), sm))


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("sm", [75, 80, 90, 120])
def test_our_masked_operations(sm: int, level: int) -> None:
    _runs(compile_ptx(text(sm), f"sm_{sm}", {"opt-level": level}), sm)


@pytest.mark.oracle
@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("sm", [75, 80, 90, 120])
def test_ptxas_masked_operations(sm: int, level: int) -> None:
    """The simulator on ptxas's implementations: BRA.DIV under a guard, WARPSYNC.EXCLUSIVE and .COLLECTIVE."""
    oracle.require("ptxas")
    made = oracle.compile_ptx(text(sm), str(sm), f"-O{level}")
    assert not isinstance(made, oracle.ToolError)
    _runs(made.read_bytes(), sm)
