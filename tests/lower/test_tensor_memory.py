"""Tensor memory, asynchronous stores and reductions, launch control: the same instructions as ptxas's, in the same
order.

python -m tests.lower.test_tensor_memory [--arch 100a]      one kernel for each line (the tests put several into one)
"""

from __future__ import annotations

import argparse

import pytest

from tests import oracle
from tests.lower.instruction_text import both

PATTERN = "UTC|LDTM|STTM|FENCE|UGET|STAS|REDAS|ARRIVES|QSPC"

LOADS = """
tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1,%r2},[%r3];
tcgen05.ld.sync.aligned.16x64b.x1.b32 {%r4},[%r3+4];
tcgen05.ld.sync.aligned.16x32bx2.x2.b32 {%r5,%r6},[%r3],8;
tcgen05.ld.sync.aligned.16x32bx2.x2.pack::16b.b32 {%r7,%r8},[%r3+4],8;
tcgen05.ld.sync.aligned.16x256b.x1.pack::16b.b32 {%r9,%r10,%r11,%r12},[%r3];
tcgen05.wait::ld.sync.aligned;
tcgen05.st.sync.aligned.32x32b.x2.b32 [%r3],{%r1,%r2};
tcgen05.st.sync.aligned.16x32bx2.x1.unpack::16b.b32 [%r3],16,{%r4};
tcgen05.wait::st.sync.aligned;
"""
COPIES = """
tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%rd1];
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r1];
tcgen05.cp.cta_group::1.128x256b [%r1],%rd1;
tcgen05.cp.cta_group::1.4x256b [%r1],%rd1;
tcgen05.cp.cta_group::1.128x128b [%r1],%rd1;
tcgen05.cp.cta_group::1.64x128b.warpx2::02_13 [%r1+8],%rd1;
tcgen05.cp.cta_group::1.64x128b.warpx2::01_23.b8x16.b6x16_p32 [%r1],%rd1;
tcgen05.shift.cta_group::1.down [%r1];
"""
PRODUCTS = """
tcgen05.mma.cta_group::1.kind::f16 [%r1],%rd1,%rd2,%r2,%p1;
tcgen05.mma.cta_group::1.kind::f16 [%r1],[%r3],%rd2,%r2,%p1;
tcgen05.mma.cta_group::1.kind::f16 [%r1],%rd1,%rd2,%r2,1;
tcgen05.mma.cta_group::1.kind::f16.ashift [%r1],[%r3],%rd2,%r2,%p1;
tcgen05.mma.cta_group::1.kind::f16 [%r1],%rd1,%rd2,%r2,{%r3,%r4,%r5,%r6},%p1;
tcgen05.mma.cta_group::1.kind::tf32 [%r1],%rd1,%rd2,%r2,%p1,3;
tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X [%r1],%rd1,%rd2,%r2,[%r3],[%r4],%p1;
tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::2X [%r1],%rd1,%rd2,%r2,[%r3],[%r4],%p1;
tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X [%r1],%rd1,%rd2,%r2,[%r3],[%r4],%p1;
tcgen05.mma.sp.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X [%r1],%rd1,%rd2,[%r5],%r2,[%r3],[%r4],%p1;
tcgen05.mma.sp.cta_group::1.kind::f16 [%r1],%rd1,%rd2,[%r3],%r2,%p1;
"""
COLLECTORS = """
tcgen05.mma.cta_group::1.kind::f16.collector::a::fill [%r1],%rd1,%rd2,%r2,%p1;
tcgen05.mma.cta_group::1.kind::f16.collector::a::use [%r1],%rd1,%rd2,%r2,%p1;
tcgen05.mma.cta_group::1.kind::f16.collector::a::lastuse [%r1],%rd1,%rd2,%r2,%p1;
tcgen05.mma.cta_group::1.kind::f16.collector::a::discard [%r1],%rd1,%rd2,%r2,%p1;
tcgen05.mma.ws.cta_group::1.kind::f16 [%r1],%rd1,%rd2,%r2,%p1;
tcgen05.mma.ws.cta_group::1.kind::f8f6f4.collector::b0::use [%r1],%rd1,%rd2,%r2,%p1;
tcgen05.mma.ws.cta_group::1.kind::tf32.collector::b2::lastuse [%r1],%rd1,%rd2,%r2,%p1;
tcgen05.mma.ws.cta_group::1.kind::f16.collector::b1::fill [%r1],%rd1,%rd2,%r2,%p1,%rd3;
tcgen05.mma.ws.sp.cta_group::1.kind::f16 [%r1],[%r3],%rd2,[%r4],%r2,%p1;
"""
PAIRS = """
tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r1],%h1;
tcgen05.cp.cta_group::2.32x128b.warpx4.b8x16.b4x16_p64 [%r1],%rd1;
tcgen05.mma.cta_group::2.kind::f16 [%r1],%rd1,%rd2,%r2,{%r3,%r4,%r5,%r6,%r7,%r8,%r9,%r10},%p1;
tcgen05.mma.cta_group::2.kind::f8f6f4 [%r1],%rd1,%rd2,%r2,%p1;
"""
INTEGERS = """
tcgen05.mma.cta_group::1.kind::i8 [%r1],%rd1,%rd2,%r2,%p1;
tcgen05.mma.ws.cta_group::1.kind::i8 [%r1],[%r3],%rd2,%r2,%p1,%rd3;
"""
EXTREMES = """
tcgen05.ld.red.sync.aligned.32x32b.x2.min.f32 {%r1,%r2},%r3,[%r4];
tcgen05.ld.red.sync.aligned.16x32bx2.x2.max.abs.NaN.f32 {%r5,%r6},%r7,[%r4],8;
tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16 [%r1],%rd1,%rd2,%r2,[%r3],[%r4],%p1;
"""
LAUNCH = """
clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r1],[%r2];
clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.b128 [%rd1],[%rd2];
"""
REMOTE = """
st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r1],%r2,[%r3];
st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r1+4],{%r2,%r4,%r5,%r6},[%r3];
st.async.weak.mbarrier::complete_tx::bytes.b64 [%rd1],%rd2,[%rd3];
red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r1],%r2,[%r3];
red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u64 [%r1],%rd2,[%r3];
red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.min.s32 [%r1],%r2,[%r3];
red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.inc.u32 [%r1],%r2,[%r3];
red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.and.b32 [%r1],%r2,[%r3];
cp.async.mbarrier.arrive.shared.b64 [%r1];
cp.async.mbarrier.arrive.noinc.shared.b64 [%r1];
isspacep.shared::cluster %p1,%rd1;
"""
CASES = [
    ("100a", "loads", LOADS), ("100a", "copies", COPIES), ("100a", "products", PRODUCTS),
    ("100a", "collectors", COLLECTORS),
    ("100a", "pairs", PAIRS), ("110a", "integers", INTEGERS), ("103a", "extremes", EXTREMES),
    ("120a", "launch", LAUNCH), ("90a", "remote", REMOTE), ("100a", "launch", LAUNCH),
]  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize(("arch", "name", "lines"), CASES, ids=[f"{n}-{a}" for a, n, _ in CASES])
def test_same_instructions(arch: str, name: str, lines: str) -> None:
    oracle.require("ptxas", "nvdisasm")
    ours, theirs = both(lines, arch, PATTERN)
    assert ours and ours == theirs


ALLOCATION = {
    "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1],64;": "UTCATOMSWS.FIND_AND_SET.ALIGN UP, UR, UR",
    "tcgen05.alloc.cta_group::2.sync.aligned.b32 [%rd1],%r1;": "UTCATOMSWS.2CTA.FIND_AND_SET.ALIGN UP, UR, UR",
    "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1,64;": "UTCATOMSWS.AND URZ, UR",
    "tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;": "UVIRTCOUNT.DEALLOC.SMPOOL 0x80",
}


@pytest.mark.oracle
@pytest.mark.parametrize("line", ALLOCATION)
def test_allocation(line: str) -> None:
    """The unit is used as ptxas uses it, and the bookkeeping is in the same words of shared memory."""
    oracle.require("ptxas", "nvdisasm")
    ours, theirs = both(line, "100a", "UTCATOMSWS|UVIRT")
    assert set(ours) == set(theirs) == {ALLOCATION[line]}
    ours, theirs = both(line, "100a", "ATOMS|STAS|STS.U8|SYNCS.ARRIVE")
    assert [t.replace("UR+", "R+") for t in sorted(ours)] == [t.replace("UR+", "R+") for t in sorted(theirs)]


def test_one_kind_of_group() -> None:
    """Single CTAs and pairs do not mix in a kernel (ptxas's message)."""
    from ir_format.diag import CompileError
    from tests.lower.helpers import lower_text
    from tests.lower.instruction_text import kernel

    lines = [line for line in COPIES.split("\n") if "shift" in line] + [
        line for line in PAIRS.split("\n") if "cp" in line
    ]
    with pytest.raises(CompileError, match="uses single CTA"):
        lower_text(kernel("\n".join(lines), "100a"), "sm_100a")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="One kernel a line, ours against ptxas's.")
    parser.add_argument("--arch", default="")
    options = parser.parse_args()
    bad = count = 0
    for arch, _, lines in CASES:
        if options.arch not in ("", arch):
            continue
        for line in lines.strip().split("\n"):
            ours, theirs = both(line, arch, PATTERN)
            count += 1
            if ours != theirs:
                bad += 1
                print(f"{arch} {line}\n  ours   {ours}\n  ptxas's {theirs}", flush=True)
    print(f"{bad} of {count} differ")


if __name__ == "__main__":
    main()
