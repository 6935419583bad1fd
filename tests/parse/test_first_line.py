"""The first message about a wrong instruction is ptxas's: pairs of modifiers, vectors, addresses, gates."""

from __future__ import annotations

import pytest

from stages.parse.sources import parse_text
from stages.plumbing.front_end import parse_to_stream
from tests.oracle import find
from tests.parse.agreement import Messages, judge, oracle, ours
from tests.parse.generate import kernel

R8 = "{%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}"
F8 = R8.replace("%r", "%f")
R4, F4 = "{%r1, %r2, %r3, %r4}", "{%f1, %f2, %f3, %f4}"
LINES = {
    "sm_75": (
        "wgmma.wait_group.aligned 0",
        "tcgen05.wait::ld.sync",
        "tcgen05.mma.ws.cta_group::1.kind::f16 [%r1], %ud9, %ud17, [%r25], %u33, %p2",
        "tcgen05.shift.cta_group::1.down [gm]",
        "tcgen05.st.m8n8k4.sync.16x64b.x1.b32 [%r1], {%r1}",
        f"mma.sync.aligned.row.m16n8k16.f32.f16.f16.f32 {F4}, {R4}, {{%r1, %r2}}, {F4}",
        f"mma.sp.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {R4}, {{%r1, %r2}}, {{%r1, %r2}}, {R4}, %r33, [gm]",
        "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [sm], 5, [sm]",
        "multimem.st.e5m2x2 [%rd1], {%h9, %h10}",
        "st.mmio.relaxed.v8.u64 [%rd1], {%ud1, %ud2, %ud3, %ud4, %ud5, %ud6, %ud7, %ud8}",
        "mbarrier.expect_tx.cluster.b64 [%rd1], %u9",
        "tex.1d.v2.f32.s32 %r4, [tx, {%s1}]",
        "tex.base.1d.f32.f32 %f1, [tx, {%f1}]",
        "wgmma.fence.sync.aligned.row",
    ),
    "sm_100a": (
        "lop3.b32",
        "and.b32 %r1, %r2, {%r4, %r5}",
        "and.b64 %rd1, %rd2, {%r4, %r5}",
        "st.b64 [%rd1], {%r4, %r5}",
        "red.and.b64 [%rd4], {%r4, %r5}",
        "fns.b32 %r1, %r9, {%r4, %r5}, %r25",
        "shfl.sync.up.b32 %r1, %r4, gm, %r4, %r5",
        "cvt.pack.sat.u16.s32 %u1, [gm], %u17",
        "redux.sync.and.b32 %r1, %f4, %r17",
        "mbarrier.arrive.b64 %fd4, [%rd9], %u17",
        "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 5, [sm]",
        "vadd2.s32.s32.s32 {%r4, %r5}, %r9, %r17, %r25",
        "vset4.s32.s32.eq %r1, %r9, %r17, gm",
        "vadd2.s32.s32.s32.min %r1, %r9, %r17, %r25",
        f"wmma.mma.sync.aligned.row.row.m16n16k16.f16.f32 %r4, {R8}, {R8}, {F8}",
        f"wmma.mma.and.sync.aligned.row.row.m16n16k16.f16.f16 {R4}, {R8}, {R8}, {R4}",
        "wmma.load.b.sync.aligned.row.m32n8k16.shared::cta.u8 %s4, [sm]",
        f"mma.sync.aligned.m16n8k16.f32.f16.f16.f32 {F4}, {R4}, {{%r1, %r2}}, {F4}",
        "ldmatrix.sync.aligned.m8n8.x2.b16 %r4, [%rd9]",
        "ldmatrix.sync.aligned.m16n16.x1.shared.b8 {%r1, %r2}, [sm]",
        "tcgen05.ld.sync.16x64b.x4.b32 {%r1, %r2, %r3, %r4}, [%r9], 7",
        "tcgen05.ld.sync.x1.b32 {%r1}, [%r9]",
        "tcgen05.cp.cta_group::1.64x128b [%r1], %ud9",
        "tcgen05.cp.cta_group::1.128x256b.b8x16 [%r1], %ud9",
        "tcgen05.mma.cta_group::1.kind::mxf8f6f4.scale_vec::1X [%r1], %ud9, %ud17, %u25, [%r33], [%r41], %p2",
        "tcgen05.mma.cta_group::1.block_scale [%r1], %ud9, %ud17, %u25, [%r33], [%r41], %p2",
        "atom.relaxed.and.b32 %r1, [%rd9], %r17, 7",
        "atom.add.bf16 %h1, [%rd1], %h2",
        "ld.mmio.b16 %h1, [%rd9]",
        "ld.nc.b32 %r1, [%rd9]",
        "ld.cta.const.b16 %h1, [cm]",
        "ld.acquire.gpu.ca.b32 %r1, [%rd1]",
        "red.async.add.u32 [%rd1], %u9",
        "red.async.mmio.release.add.u32 [%rd1], %u9",
        "fence.mbarrier_init.cluster",
        "fence.proxy.async::generic.acquire",
        "fence.proxy.tensormap::generic.cta [%rd1], 128",
        "multimem.ld_reduce.min.bf16 %h1, [%rd9]",
        "max.abs.bf16 %h1, %h9, %h17",
        "max.relu.u16 %h1, %h2, %h3",
        "mad24.hi.sat.s32.satfinite %s1, %s9, %s17, %s25",
        "div.approx.rn.f32 %f1, %f2, %f3",
        "rcp.approx.f64 %fd1, %fd9",
        "tex.level.a1d.f32.f32.global %f1, [tx, {%r1, %f2}], %f17",
        "tex.level.a1d.f32.f32.x4 %f1, [tx, {%r1, %f2}], %f17",
        "tex.1d.v4.f32.s32 {%r4, %r5}, [tx, {%s1}]",
        "red.relaxed.gpu.add.noftz.v4.bf16x2 [%rd1], %tid.x",
        "tex.a2d.2d.f16x2.f32 %r1, [tx, {%r1, %f2, %f3, %f4}]",
        "cp.async.ca.global [sm], [gm], 4",
        "cp.async.ca.shared::cta.global [sm], [gm], 4, 7",
        "cp.async.bulk.tensor.1d.global.tile::gather4.mbarrier::complete_tx::bytes [sm], [%rd1, {%r1}], [sm]",
        "redux.sync.add.add.s32 %s1, %s9, %r17",
        "vote.uni.sync.all.pred %p1, %p2, %r17",
        "tcgen05.alloc.shared.cta_group::1.sync.aligned.b32 [%rd1], %u9",
        "cvt.rn.satfinite.bf16x2.e2m3x2 %r1, %h9",
        "tcgen05.st.sync.aligned.16x64b.x1.b32 [%r1], 5",
        "cvt.rn.satfinite.bf16x2.ue8m0x2 %r1, %h9",
        "cvt.rn.satfinite.f16x2.e4m3x2 %r1, %h9",
        # modifiers that an instruction has no use for: classes of them, before types, before the number of operands
        "and.b32.L1::evict_last %r1, %r2, %r3",
        "and.b32.a1d %r1, %r2, %r3",
        "and.b32.3d %r1, %r2, %r3",
        "and.b32.width %r1, %r2, %r3",
        "and.b32.rc8 %r1, %r2, %r3",
        "and.b32.shr7 %r1, %r2, %r3",
        "tex.exch.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [tx, {%f1}]",
        "and.b32.geom %r1, %r2, %r3",
        "add.rs.f32 %f1, %f2, %f3",
        "add.satfinite.e4m3 %r1, %r2, %r3",
        "and.b32.sync %r1, %r2",
        "mul.e5m2x4.ue8m0x4.e4m3x4 %r1, %r2, %r3",
        "ld.release.b32 %r1, [gm]",
        "st.acq_rel.b32 [gm], %r1",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster::16b "
        "[sm], [gm], %u17, [sm], %uh33",
        # words that are ignored on some instructions
        "ldmatrix.sync.aligned.row.m8n8.x1.shared.b16 {%r1}, [sm]",
        "cp.async.bulk.cta.global.shared::cta.bulk_group [gm], [sm], %u17",
        "bar.sync.any 0",
        # one class twice: as it is read, in the order of the text; some when all is read
        "ld.v2.v4.foo.u32 %r1, [gm]",
        "ld.ca.ca.v2.v4.u32 %r1, [gm]",
        "ld.v2.v4.ca.ca.volatile.volatile.u32 %r1, [gm]",
        "add.sat.satfinite.foo.f32 %f1, %f2, %f3",
        "vote.sync.any.all.foo.pred %p1, %p2, 1",
        "vote.sync.any.uni.foo.pred %p1, %p2, 1",
        "ld.L1::evict_last.L1::evict_last.u32 %r1, [gm]",
        "ld.L2::64B.L2::128B.u32 %r1, [gm]",
        "createpolicy.range.L2::evict_first.L2::evict_last.b64 %rd1, [gm], %r1, %r2",
        "griddepcontrol.wait.launch_dependents",
        "fence.proxy.async.async",
        "prefetch.L1.L1 [gm]",
        "tex.a1d.a1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [tx, {%f1}]",
        "prmt.b32.f4e.b4e %r1, %r2, %r3, %r4",
        "txq.width.width.b32 %r1, [tx]",
        "tcgen05.mma.cta_group::1.cta_group::2.kind::f16 [%r1], %ud9, %ud17, %u25, %p1",
        "mma.xor.xor.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32 {%r1, %r2}, {%r1}, {%r1}, {%r1, %r2}",
        "cp.async.bulk.tensor.1d.shared::cluster.global.tile.im2col.mbarrier::complete_tx::bytes "
        "[sm], [%rd1, {%r1}], [sm]",
        # forms of operands before what modifiers ask of each other; spaces of loads before their orders
        "tex.grad.1d.s32.f32 %s1, [tx, {%f1}], 1.5, {%f1}",
        "tex.base.acube.v2.s32.s32 %s1, [tx, {%r1, %s2, %s3, %s4}]",
        "ld.volatile.const.u16 %uh1, [%f4]",
        "ld.volatile.const.u16 {%uh1, %uh2}, [cm]",
        "ld.L1::evict_last.shared.u16 %r4, [gm]",
        "ld.volatile.gpu.const.f64 %fd9, [cm]",
        "ld.v2.tf32 {%f1, %f2}, [gm]",
        "ld.global.s8 [gm], [gm]",
        "st.s8 [p0], %sb9",
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group gm, [sm]",
        "mov.nc.v4.u64 {%ud1, %ud2, %ud3, %ud4}, {%ud9, %ud10, %ud11, %ud12}",
        "mbarrier.arrive_drop.release.cluster.noComplete.b64 %rd1, [%rd9], %u17",
        "setp.leu.u16 %p1, %uh9, %uh17",
        "mad.hi.cc.u16 %uh1, %uh9, %uh17, %uh25",
        "subc.cc.sat.s32 %s1, %s9, %s17",
        "cvt.rn.bf16x2.f32 %r1, %f9, %q4",
        "cvt.rn.f16x2.f32 %r1, %f9, %q4",
        "movmatrix.sync.aligned.m8n8.trans.b16 %s4, %f9",
        "movmatrix.sync.aligned.m8n8.trans.b16 %r4, [gm]",
        "ldmatrix.sync.aligned.m8n8.x1.b16 %p4, [%rd9]",
        "cp.async.bulk.prefetch.global.L2::evict_last [gm], %u9",
        "st.volatile.param::func.b32 [p0], %r9",
        "ld.L2::evict_first.u64.abs %ud9, [%rd1]",
        "ld.L2::evict_first.u64.sync %ud9, [%rd1]",
        "tex.level.1d.v2.u32.s32 {%u1, %u2}, [tx, {%s1}], gm",
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1,%f2,%f3,%f4}, %f1, {%r1,%r2}, {%f1,%f2,%f3,%f4}",
        "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor {%s1,%s2,%s3,%s4}, {%r1,%r2,%r3,%r4}, {%r1,%r2}, "
        "{%s1,%s2,%s3,%s4}",
        f"wmma.mma.sync.aligned.row.row.m8n32k16.satfinite.f16.ca.f16 {R4}, {R8}, {R8}, {R4}",
        # operations whose type they do not have
        "atom.and.u32 %r1, [%rd9], %r17",
        "atom.exch.f32 %f1, [%rd9], %f17",
        "atom.add.b32 %r1, [%rd9], %r17",
        "atom.cas.u32 %r1, [%rd9], %r17, %r18",
        "red.inc.u64 [%rd9], %ud17",
        "redux.sync.and.s32 %r1, %r9, %r17",
        "redux.sync.NaN.min.s32 %r1, %r9, %r17",
        "red.async.relaxed.cluster.mbarrier::complete_tx::bytes.and.u32 [%rd1], %u9",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.or.u64 [gm], [sm], %u17",
        "multimem.ld_reduce.and.u32 %u1, [%rd1]",
        "sqrt.rp.f64.approx %fd1, %fd9",
        "st.param.relaxed.cta.local.b128 [lm], %q9",
        "cvt.satfinite.e2m1x4.f32 %h1, {%f1, %f2, %f3, %f4}, %r17",
        "mapa.u32.shared %u1, %u9, %u2",
        "fabric.wait",
    ),
    "sm_80": (
        "cvta.gpu.shared::cluster.u32 %u1, %u9",
        "mbarrier.arrive.release.clamp.b64 %rd1, [%rd9], %u17",
        "mbarrier.arrive.release.x4.noComplete.b64 %rd1, [%rd9], %u17",
        "mbarrier.test_wait.parity.m16n8k16.cluster.b64 %p1, [%rd9], %u17",
        "mbarrier.init.cluster.b64 [%rd1], %u9",
        "mbarrier.arrive_drop.cta.shared::cluster.b64 _, [sm]",
        "mbarrier.arrive.cta.b64 %rd1, [%rd9], %r1",
        "mbarrier.test_wait.parity.cluster.b64 %p1, [%rd9], %u17",
        "cp.async.bulk.weak.global.shared::cta.bulk_group [gm], [sm], %u17",
        "ld.global.v2.u32 %tid.x, [gm]",
        "bra %tid.x",
        "tld4.r.3d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [tx, {%f1,%f2,%f3,%f4}]",
        "brx.idx %r1, %tid.x",
        "red.async.relaxed.cluster.inc.u32 [%rd1], %u9",
        "tex.grad.1d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [tx, {%f1}], %tid.x, {%f1}",
        "tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [tx, {%f1,%f2}], %tid.x",
        "st.global.v2.b32 [gm], %clock",
        "st.global.v2.b32 [gm], {%tid.x, %r1}",
        "mov.b64 %rd1, {%tid.x, %tid.y}",
        "sust.b.2d.v2.b32.trap [sf, {%r1,%r2}], %tid.x",
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 [sm], [sm]",
        "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 [gm], {%r1,%r2},{%r1},{%f1,%f2,%f3,%f4}",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 [gm], {%r1,%r2,%r3,%r4},{%r1,%r2},{%f1,%f2,%f3,%f4}",
        "wgmma.commit_group.sync.aligned.rn",
        "tld4.r.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [tx, {%f1,%f2}]",
    ),
    "sm_90a": (
        "tex.a2d.s32.f32 5, [tx, {%r1, %f2, %f3, %f4}]",
        "cvt.relu.satfinite.f16.f32 %h1, %f9",
        "mapa.shared::cluster.u64 %ud1, [gm], %u1",
        "multimem.ld_reduce.global.add.v2.f32 %tid.x, [gm]",
        "stmatrix.sync.aligned.m8n8.x4.shared.b16 [sm], 5",
        "getctarank.u64 %ud1, [lm]",
        "mapa.u64 %ud1, [sm], %u1",
    ),
}


def _first(messages: Messages) -> tuple[str, str] | tuple[()]:
    return messages[0] if messages else ()


@pytest.mark.parametrize("target", LINES)
def test_first_message(target: str) -> None:
    if find("ptxas") is None:
        pytest.skip("ptxas is not installed")
    lines = [f"{line};" for line in LINES[target]]
    pairs = zip(lines, oracle(lines, "9.0", target), ours(lines, "9.0", target), strict=True)
    assert not [(line, a, b) for line, a, b in pairs if _first(a) != _first(b)]


def test_bare_addresses_of_a_tensor_copy() -> None:
    """ptxas takes a register without brackets as the address of a tensor copy."""
    line = "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes %r4, [%rd1, {%r1}], %r5;"

    def run(text: str) -> list[tuple[int, str, str]]:
        return [(d.line, d.severity, d.message) for d in parse_text(text, "k.ptx", "sm_100a")[2]]

    assert judge([line], lambda part: kernel(part, "9.0", "sm_100a"), run) == [[]]


@pytest.mark.parametrize(
    ("option", "line"),
    [
        (
            "suppress-sparse-mma-advisory-info",
            f"mma.sp.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {R4}, {{%r1, %r2}}, {{%r1, %r2}}, {R4}, %r33, 0;",
        ),
        (
            "suppress-async-bulk-multicast-advisory-warning",
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
            "[sm], [gm], %r5, [sm], %uh25;",
        ),
    ],
)
def test_advice_can_be_switched_off(option: str, line: str) -> None:
    text = kernel([line], "9.0", "sm_90")[0].encode()
    for options in ({}, {option: 1}):
        said: list[str] = []
        assert parse_to_stream([("k.ptx", text)], "sm_90", dict(options), lambda data: None, say=said.append) == 0
        assert ("Advisory" in "".join(said)) is not bool(options)


@pytest.mark.parametrize(
    ("body", "said"), [("foo.b32 %r1;", "Not a name"), ("mov.b32 %r1 %r2;", "Parsing error near '%r2'")]
)
def test_faults_of_the_text_come_before_its_target(body: str, said: str) -> None:
    """ptxas compares the target with the architecture when it has read the text (measured on 13.0, two cases)."""
    head = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { .reg .b32 %r<3>;\n"
    assert parse_text(f"{head}{body}\nret; }}\n", "k.ptx", "sm_80")[2][0].message.startswith(said)
    right = parse_text(f"{head}mov.b32 %r1, %r2;\nret; }}\n", "k.ptx", "sm_80")
    assert "higher than default" in right[2][0].message
