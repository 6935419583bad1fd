"""Operands of the copy unit are computed on the uniform datapath, where that costs no more."""

from __future__ import annotations

from collections import Counter

from ir_format import isa
from orchestrator.api import compile_ptx
from stages.disasm.cubin import read_cubin

_HEAD = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 m, .param .u32 n)
{
.reg .pred %p<9>;
.reg .b32 %r<19>;
.reg .b64 %rd<9>;
.shared .align 128 .b8 s[16384];
.shared .align 8 .b8 bar[16];
ld.param.u64 %rd2, [m];
ld.param.u32 %r9, [n];
mov.u32 %r1, s;
mov.u32 %r2, bar;
elect.sync %r3|%p1, -1;
mov.u32 %r4, %ctaid.x;
shl.b32 %r5, %r4, 6;
"""
_LOAD = (
    "@%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
    "[%r{to}], [%rd2, {{%r{x}, %r5}}], [%r2];\n"
)


def _count(body: str) -> Counter[str]:
    """Mnemonics of our code for sm_90a."""
    cubin = read_cubin(compile_ptx(_HEAD + body + "st.shared.u32 [%r2+8], %r9;\nret;\n}\n", "sm_90a", {}, name="t.ptx"))
    target = isa.target(90)
    found = [target.decode(w, 0) for section in cubin.sections for w in section.words]
    return Counter(i.op for i in found if hasattr(i, "op"))


def test_no_word_passes_a_general_register() -> None:
    """Addresses, coordinates and constants: UMOV, UIADD3, USHF and ULEA; ptxas's code has no R2UR either."""
    more = "mov.u32 %r6, 64;\nadd.u32 %r7, %r1, 8192;\nmov.u32 %r8, 0;\n"
    seen = _count(more + _LOAD.format(to=1, x=8) + _LOAD.format(to=7, x=6))
    assert seen["UTMALDG"] == 2 and seen["R2UR"] <= 1 and seen["VOTEU"] == 2
    assert seen["BRA"] == 1 and seen["UIADD3"] and seen["USHF"]  # the branch behind the end


def test_a_word_that_a_loop_needs_comes_once() -> None:
    """The base of the loop's addresses is in a uniform register in front of it."""
    loop = (
        "ld.shared.u32 %r10, [%r2+8];\nmov.u32 %r8, 0;\nL:\nadd.u32 %r11, %r10, 4096;\n"
        + _LOAD.format(to=11, x=8)
        + "add.u32 %r8, %r8, 64;\nsetp.lt.u32 %p2, %r8, %r9;\n@%p2 bra L;\n"
    )
    assert _count(loop)["R2UR"] <= 3  # two addresses in front of the loop; the coordinate that changes


def test_a_vote_on_what_always_holds_goes() -> None:
    """A product that adds to its accumulators has no VOTEU for that."""
    body = (
        "mov.pred %p3, 1;\nmov.b64 %rd3, 0;\n.reg .f32 %f<9>;\nmov.f32 %f1, 0f00000000;\nmov.f32 %f2, %f1;\n"
        "mov.f32 %f3, %f1;\nmov.f32 %f4, %f1;\nmov.u32 %r12, 1;\nsetp.ne.u32 %p3, %r12, 0;\nwgmma.fence.sync.aligned;\n"
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, %rd3, %rd3, %p3, 1, 1, 0, 0;\n"
        "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\nst.shared.f32 [%r1], %f1;\n"
    )
    seen = _count(body)
    assert seen["HGMMA"] == 1 and not seen["VOTEU"]
