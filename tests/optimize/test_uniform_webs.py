"""Counters of loops move to uniform registers where the whole warp counts, and stay where threads count for
themselves."""

from __future__ import annotations

import numpy as np
import pytest

from ir_format import isa
from ir_format.model import Inst, Mem
from orchestrator.api import compile_ptx
from stages.disasm.cubin import read_cubin
from stages.simulate import Device
from stages.simulate.orders import ORDERS
from tests.optimize.test_passes import HEAD, of, optimized

_SUM = (
    "mov.u32 %r4, tile; mov.u32 %r5, 0; mov.u32 %r6, 0;\n{skip}L: shl.b32 %r7, %r5, 2; add.u32 %r7, %r4, %r7; "
    "ld.shared.u32 %r8, [%r7]; add.u32 %r6, %r6, %r8; add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, {bound}; @%p1 bra L;\n"
    "S: st.global.u32 [%rd3], %r6; ret;"
)
_TILE = ".shared .align 4 .b8 tile[4096];\n"


def _text(skip: str = "", bound: str = "%r2") -> str:
    return HEAD + _TILE + _SUM.format(skip=skip, bound=bound)


@pytest.mark.parametrize("target", ["sm_90", "sm_100", "sm_120"])
def test_counter_and_addresses_are_uniform(target: str) -> None:
    """As in ptxas's code: UIADD3 counts, and loads take their addresses from uniform registers."""
    unit, stats = optimized(_text(), target)
    assert stats["uniform webs"] >= 2
    assert of(unit, "UIADD3") or of(unit, "UIADD3.64")
    loads = of(unit, "LDS")
    assert loads and all(type(m) is Mem and m.base is None and m.ubase is not None for i in loads for m in i.srcs[:1])


@pytest.mark.parametrize(
    "text",
    [
        _text(bound="%r1"),  # threads leave the loop in different iterations
        _text(skip="setp.gt.u32 %p2, %r1, 7; @%p2 bra S;\n"),  # only some threads of the warp execute the loop
    ],
)
def test_counters_of_diverged_threads_stay(text: str) -> None:
    _, stats = optimized(text, "sm_90")
    assert "uniform webs" not in stats


_KERNEL = """.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {
.reg .pred %p<5>;
.reg .b32 %r<20>;
.reg .b64 %rd<5>;
.shared .align 4 .b8 tile[1024];
ld.param.u64 %rd1, [out];
mov.u32 %r1, %tid.x;
mov.u32 %r3, tile;
shl.b32 %r4, %r1, 2;
add.u32 %r5, %r3, %r4;
mad.lo.u32 %r6, %r1, 7, 3;
st.shared.u32 [%r5], %r6;
bar.sync 0;
ld.shared.u32 %r2, [tile+56];
mov.u32 %r7, 0;
mov.u32 %r8, 0;
L:
and.b32 %r9, %r7, 63;
shl.b32 %r9, %r9, 2;
add.u32 %r9, %r3, %r9;
ld.shared.u32 %r10, [%r9];
and.b32 %r11, %r1, 1;
setp.ne.u32 %p2, %r11, 0;
@%p2 bra ODD;
mad.lo.u32 %r8, %r10, %r7, %r8;
mad.lo.u32 %r8, %r8, %r8, %r7;
mad.lo.u32 %r8, %r8, 9, %r10;
mad.lo.u32 %r8, %r8, %r8, %r10;
mad.lo.u32 %r8, %r8, %r10, %r7;
mad.lo.u32 %r8, %r8, %r8, %r7;
mad.lo.u32 %r8, %r8, %r10, %r7;
mad.lo.u32 %r8, %r8, %r8, %r7;
mad.lo.u32 %r8, %r8, %r10, %r7;
ODD:
add.u32 %r8, %r8, %r10;
add.u32 %r7, %r7, 3;
setp.lt.u32 %p1, %r7, %r2;
@%p1 bra L;
mul.wide.u32 %rd2, %r1, 4;
add.u64 %rd3, %rd1, %rd2;
st.global.u32 [%rd3], %r8;
ret;
}
"""


def _code(cubin: bytes, sm: int) -> list[Inst]:
    target = isa.target(sm)
    found = [target.decode(w, 0) for section in read_cubin(cubin).sections for w in section.words]
    return [i for i in found if isinstance(i, Inst)]


@pytest.mark.parametrize(("target", "order"), [("sm_90", ""), ("sm_120", ORDERS[1])])
def test_readers_in_divergent_code_see_the_counter(target: str, order: str) -> None:
    """Half of the threads read the counter in a branch; Python computes what they must get."""
    cubin = compile_ptx(_KERNEL, target, {})
    assert any(i.op == "UIADD3" for i in _code(cubin, int(target[3:])))
    words = np.zeros(64, np.uint32)
    Device(cubin).launch("k", 1, 64, [words], strict=True, order=order)
    want = []
    for t in range(64):
        total = 0
        for i in range(0, 101, 3):
            x = (i % 64) * 7 + 3
            if t % 2 == 0:
                total += x * i
                total = total * total + i
                total = total * 9 + x
                total = total * total + x
                total = total * x + i
                total = total * total + i
                total = total * x + i
                total = total * total + i
                total = total * x + i
            total = (total + x) & 0xFFFFFFFF
        want.append(total)
    assert words.tolist() == want
