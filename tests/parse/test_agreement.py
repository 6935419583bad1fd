"""Agreement with ptxas on a small sample; `python -m tests.parse.agreement` measures it in full."""

from __future__ import annotations

import random

import pytest

from stages.parse import table
from tests import oracle
from tests.parse import agreement, gates, tokens
from tests.parse.agreement import compare, compare_modules
from tests.parse.generate import accepted, mutated
from tests.parse.helpers import corpus


def test_every_row_can_be_read() -> None:
    names = table.names()
    rows = [row for name in names for row in table.rows(name)]
    assert len(names) > 220
    assert len({row.key for row in rows}) == len(rows)
    assert all(row.name == name for name in names for row in table.rows(name))


def test_every_row_makes_a_case() -> None:
    made = {case.row for case in accepted("sm_100a", 1)}
    skipped = ("call", "brx.idx", "ret", "exit")
    rows = [row for name in table.names() if name not in skipped for row in table.rows(name)]
    assert {row.key for row in rows if not row.gate.version_below and not row.gate.target_below} <= made


@pytest.mark.oracle
@pytest.mark.parametrize(("target", "release"), [("sm_80", "13.0"), ("sm_100a", "13.5")])
def test_instruction_verdicts_agree(target: str, release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    oracle.require("ptxas" if release == "13.0" else oracle.NEWER)
    monkeypatch.setattr(agreement, "RELEASE", release)
    cases = list(accepted(target, 2))[::4] + list(mutated(target, 11, 1500))
    counts = compare(cases)
    n = counts["cases"] - counts["oracle crashed"]
    assert counts["verdict equal"] >= 0.995 * n
    assert counts["first class equal"] >= 0.93 * counts["refused by both"]


#: What ptxas 13.5 says first of each is said here (text and order).
FIRST = """
clmad.lo.u64 %ud1, %ud9, %ud17, gm
nanosleep.u32 gm
multimem.st.async.gpu.s32 [%rd1], %s9
multimem.st.async.release.s32 [%rd1], %s9
multimem.st.async.s32 [%rd1], %s9
multimem.cp.async.bulk.weak.global.shared::cta [gm], [sm], %u17
multimem.cp.async.bulk.global.shared::cta.bulk_group.cp_mask [gm], [sm], %u17, %uh25
fence.proxy.alias.sys
fence.acquire.sync_restrict::shared::cta.cluster
fence.sync_restrict::shared::cluster.cluster
tcgen05.wait::ld.sync
tcgen05.wait::ld
tcgen05.ld.sync.16x64b.b32 {%r1}, [%r9]
tcgen05.shift.cta_group::1 [%r1]
cp.async.bulk.prefetch.tensor.1d.L2.global.im2col [%rd1, {%r1}]
cp.async.bulk.prefetch.tensor.1d.L2.global.im2col [%rd1, {%r1}], %r9
tanh.bf16 %h1, %h9
vsub4.u32.s32.s32.add.sat %r1, %r9, %r17, %r25
vmax4.s32.u32.s32 {%r4, %r5}, %r9, %r17, %r25
vmax4.s32.u32.s32 [gm], %r9, %r17, %r25
sured.b.1d.trap.u32 [sf, {%r1}], %u9
atom.add.s64 %sd1, [%rd9], %sd17
tex.a2d.v4.u32.s32.2d {%u1,%u2,%u3,%u4}, [tx, {%r1, %s2, %s3, %s4}]
suld.b.1d.2d.trap.b32 %r1, [sf, {%r1}]
cvt.rn.f16x2.e3m2x2 %r1, %h9
cvt.rz.ue8m0x2.f32 %h1, %f1, %f2
add.sat.u16x2 %r1, %r9, %r17
prefetch.L1::32B.valid_addr [%rd1]
testp.f32 %p1, %f9
atom.shared.add.L2::cache_hint.u32 %u1, [sm], %u17, %ud25
red.shared::cluster.add.noftz.L2::cache_hint.f32 [sm], %f17, %ud25
"""


@pytest.mark.oracle
@pytest.mark.parametrize(("version", "target"), [("9.2", "sm_80"), ("9.5", "sm_107a")])
def test_first_messages(version: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    oracle.require(oracle.NEWER)
    monkeypatch.setattr(agreement, "RELEASE", "13.5")
    lines = [line + ";" for line in FIRST.strip().splitlines()]
    theirs, mine = (side(lines, version, target) for side in (agreement.oracle, agreement.ours))
    for line, a, b in zip(lines, theirs, mine, strict=True):
        assert a[:1] == b[:1], line


@pytest.mark.oracle
def test_gates_agree() -> None:
    oracle.require("ptxas")
    found = dict(list(gates.forms(2).items())[::120])
    versions = ["1.4", "2.0", "3.1", "5.1", "6.3", "7.0", "7.8", "8.1", "8.6"]
    result = gates.compare(
        found,
        versions,
        ["sm_13", "sm_30", "sm_60", "sm_75", "sm_89", "sm_100f", "sm_110a", "sm_121"],
        (("8.0", "sm_89"),),
    )
    assert result.counts["cases"] > 500
    assert not result.counts["verdict differs"], result.wrong
    assert result.counts["first class equal"] >= 0.98 * result.counts["refused by both"]


@pytest.mark.oracle
def test_modules() -> None:
    oracle.require("ptxas")
    cases, equal, same = compare_modules(False)
    assert equal >= 0.995 * cases
    assert same >= 0.98 * cases


@pytest.mark.oracle
def test_one_token_faults() -> None:
    oracle.require("ptxas")
    rng = random.Random(21)
    files = [p.read_text() for p in corpus() if p.stat().st_size < 6000 and p.parent.name in ("sm_90", "hand")]
    counts, _ = tokens.compare([tokens.mutate(rng, rng.choice(files)) for _ in range(150)])
    assert counts["verdict equal"] >= 0.98 * counts["cases"]
    assert counts["line equal"] >= 0.97 * counts["refused by both"]
    assert counts["class equal"] >= 0.93 * counts["refused by both"]
