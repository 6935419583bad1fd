"""Reads of undefined words are found at level `ori`, together with the cause."""

from __future__ import annotations

import copy
import io
import random
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ir_format.flow import is_guarded, read_regs, written_regs
from ir_format.model import Function, Inst, Reg, Unit
from orchestrator.api import compile_ptx
from stages.bisect.bisect import bisect
from stages.bisect.chain import Chain
from stages.bisect.judges import CubinJudge
from stages.bisect.report import report, undefined_by
from stages.bisect.search import Verdict
from stages.check.cli import app
from stages.check.undefined import newly_undefined, surely_undefined, undefined_reads
from stages.optimize.control import if_conversion
from stages.plumbing.front_end import parse_to_stream
from stages.simulate import Device
from tests.lower.helpers import insts, kernel, lower_text
from tests.optimize.test_passes import HEAD, optimized

#: Only the arm reads the low half of %rd5, and also writes it; the high half stays live. %r5 is written under the
#: guard, so values computed from it are guarded too.
HALF = """.version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out)
{
.reg .b32 %r<9>;
.reg .b64 %rd<9>;
.reg .pred %p<3>;
ld.param.u64 %rd1, [in];
ld.param.u64 %rd2, [out];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd3, %r1, 16;
add.s64 %rd1, %rd1, %rd3;
add.s64 %rd2, %rd2, %rd3;
ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd1];
mov.b64 %rd5, {%r2, %r3};
add.s64 %rd5, %rd5, 12345;
cvt.u32.u64 %r6, %rd5;
setp.gt.u32 %p1, %r4, %r5;
@%p1 bra X;
sub.u32 %r5, %r5, 5;
popc.b32 %r7, %r5;
cvt.u64.u32 %rd6, %r7;
xor.b64 %rd5, %rd5, %rd6;
cvt.u32.u64 %r6, %rd5;
X:
shr.u64 %rd7, %rd5, 32;
cvt.u32.u64 %r8, %rd7;
st.global.v4.u32 [%rd2], {%r6, %r8, %r5, %r4};
ret;
}
"""


def _careless(
    self: if_conversion._Converter, i: Inst, written: list[Reg], wanted: set[int], loose: set[int]
) -> list[Inst]:
    """If-conversion that asks only what is live after the instruction."""
    first = self.cells.first
    return [
        Inst("UNDEF", (), (r,), (), None, i.line, i.loc)
        for r in written
        if (wanted | loose).isdisjoint(range(first(r), first(r) + r.width))
    ]


def _chain(text: str = HALF, arch: str = "sm_80") -> Chain:
    out = io.BytesIO()
    assert parse_to_stream([("k.ptx", text.encode())], arch, {"opt-level": 3, "fmad": 0}, out.write) == 0
    return Chain(out.getvalue())


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_120"])
@pytest.mark.parametrize("level", [1, 3])
def test_the_half_that_only_the_arm_reads(arch: str, level: int) -> None:
    """Values, checked with Python integers."""
    rng = random.Random(1)
    given = np.array([[rng.getrandbits(32) for _ in range(4)] for _ in range(32)], np.uint32)
    out = np.zeros_like(given)
    Device(compile_ptx(HALF, arch, {"opt-level": level})).launch("k", 1, 32, [given.reshape(-1), out.reshape(-1)])
    for row, got in zip(given.tolist(), out.tolist(), strict=True):
        low, high, c, d = row
        pair = (low | high << 32) + 12345 & (1 << 64) - 1
        if c <= d:
            d = d - 5 & 0xFFFFFFFF
            pair ^= d.bit_count()
        assert got == [pair & 0xFFFFFFFF, pair >> 32, d, c]


def test_the_pass_that_makes_it_undefined_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A careless if-conversion: the allocation checker believes its UNDEF, this one does not, and the bisection names
    the pass."""
    monkeypatch.setattr(if_conversion._Converter, "_undefined", _careless)
    chain = _chain()
    last = max(n + 1 for n, p in enumerate(chain.parts) if p.stage == "optimize")
    before, after = tmp_path / "1.lower.ori", tmp_path / "2.optimize.ori"
    before.write_bytes(chain.on(0).streams["lower"])
    after.write_bytes(chain.stream(last, None))
    done = CliRunner().invoke(app, [str(after), "--before", str(before)])
    assert done.exit_code == 1
    assert "STG depends on %rd5" in done.stdout
    assert CliRunner().invoke(app, [str(before)]).exit_code == 0
    setting = chain.setting(len(chain.parts))
    setting.flags["regalloc"].verify = True
    assert chain.make(setting).failure is None  # the allocation checker finds nothing

    greedy = next(n + 1 for n, p in enumerate(chain.parts) if p.stage == "regalloc")
    right = {chain.on(n).cubin for n in range(greedy)}

    class Given(CubinJudge):
        """As if the value were lost only in the greedy allocator."""

        def __call__(self, cubin: bytes) -> Verdict:
            return Verdict.RIGHT if cubin in right else Verdict.WRONG

    guilt = bisect(chain, Given())
    assert [str(p) for p in guilt.parts] == ["optimize: if-conversion"]  # not regalloc, where the value is lost
    said = "\n".join(report(chain, guilt, "k.ptx"))
    assert "found by the undefined words" in said
    assert "STG depends on %rd5" in said


def test_sound_code_has_no_findings() -> None:
    chain = _chain()
    last = max(n + 1 for n, p in enumerate(chain.parts) if p.stage == "optimize")

    class Never(CubinJudge):
        def __call__(self, cubin: bytes) -> Verdict:
            return Verdict.WRONG

    assert undefined_by(chain, bisect(chain, Never())) == []
    assert chain.stream(last, None)


CASES = {
    "never written": ("st.global.u32 [%rd3], %r9; ret;", True, True),
    "through sums": ("add.u32 %r4, %r9, 1; xor.b32 %r5, %r4, %r1; st.global.u32 [%rd3], %r5; ret;", True, True),
    "an address": ("mul.wide.u32 %rd4, %r9, 4; add.s64 %rd5, %rd1, %rd4; st.global.u32 [%rd5], %r1; ret;", True, True),
    "on one path": ("setp.ge.u32 %p1, %r1, %r2; @%p1 bra J; mov.u32 %r9, 1; J: st.global.u32 [%rd3], %r9; ret;", True,
    False),
    "guarded, read under the guard": (
        "setp.ge.u32 %p1, %r1, %r2; @%p1 mov.u32 %r9, 1; @%p1 st.global.u32 [%rd3], %r9; ret;", False, False),
    "guarded, read under the other guard": (
        "setp.ge.u32 %p1, %r1, %r2; @%p1 mov.u32 %r9, 1; @!%p1 st.global.u32 [%rd3], %r9; ret;", True, False),
    "under both guards": (
        "setp.ge.u32 %p1, %r1, %r2; @%p1 mov.u32 %r9, 1; @!%p1 mov.u32 %r9, 2; st.global.u32 [%rd3], %r9; ret;",
        False, False),
    "behind the same test": (
        "setp.ge.u32 %p1, %r1, %r2; @%p1 bra J; mov.u32 %r9, 1; J: @%p1 bra K; st.global.u32 [%rd3], %r9; K: ret;",
        False, False),
    "chosen by the test": (
        "setp.ge.u32 %p1, %r1, %r2; @%p1 mov.u32 %r9, 1; selp.b32 %r4, %r9, 7, %p1; st.global.u32 [%rd3], %r4; ret;",
        False, False),
    "a test that follows": (
            "setp.ge.u32 %p1, %r1, %r2; @%p1 mov.u32 %r9, 1; setp.ge.and.u32 %p2, %r1, 5, %p1; @%p2 st.global.u32 "
            "[%rd3], %r9; ret;", False, False),
    "half of a pair": ("mov.b64 %rd5, {%r1, %r9}; cvt.u32.u64 %r4, %rd5; st.global.u32 [%rd3], %r4; ret;", False,
    False),
    "the other half": (
        "mov.b64 %rd5, {%r1, %r9}; shr.u64 %rd6, %rd5, 32; cvt.u32.u64 %r4, %rd6; st.global.u32 [%rd3], %r4; ret;",
        True, True),
    "in a later round": (
        "mov.u32 %r4, 0; L: setp.eq.u32 %p1, %r4, 0; @!%p1 st.global.u32 [%rd3], %r9; mov.u32 %r9, 1; add.u32 %r4, "
        "%r4, 1; setp.lt.u32 %p2, %r4, 3; @%p2 bra L; ret;",
                         True, False),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_is_undefined(name: str) -> None:
    """Small hand-written kernels: whether an effect may depend on %r9, and whether it surely does."""
    body, maybe, surely = CASES[name]
    (unit,) = lower_text(kernel(HEAD + body, "sm_90"), "sm_90")
    assert bool(undefined_reads(unit)) == maybe
    assert bool(list(surely_undefined(unit))) == surely


def _plant(unit: Unit, rng: random.Random) -> str:
    """Put an UNDEF before a read of a word that is not written in between; returns what it destroyed, '' if the chosen
    place has nothing."""
    places = [
        (b, n)
        for f in unit.functions
        for b in f.blocks
        for n, i in enumerate(b.insts)
        if i.op not in ("UNDEF", "EXIT", "BSSY", "BSYNC")
    ]
    block, n = rng.choice(places)
    f: Function = unit.functions[0]
    reads = [r for r in read_regs(block.insts[n]) if r.file == "R" and f.vregs[r.num].fixed < 0]
    if not reads:
        return ""
    r = rng.choice(reads)
    block.insts.insert(n, Inst("UNDEF", (), (r,), (), None, block.insts[n].line, -1))
    return f"{r} in front of {block.insts[n + 1].op}"


@pytest.mark.parametrize("arch", ["sm_80", "sm_120"])
def test_planted_undef(arch: str) -> None:
    """A word of optimized code made undefined before a reader is found, wherever it is: the optimizer leaves no
    reader without an effect after it."""
    body = HEAD + (
        "ld.global.u32 %r3, [%rd3]; mov.u32 %r4, 0; L: mad.lo.u32 %r3, %r3, %r2, %r4; add.u32 %r4, %r4, 1; "
        "setp.lt.u32 %p1, %r4, %r2; @%p1 bra L;"
        "ld.global.u32 %r5, [%rd3+4]; setp.gt.u32 %p2, %r3, %r1; @%p2 bra K; ld.global.u64 %rd5, [%rd3+8]; "
        "add.s64 %rd5, %rd5, %rd2; st.global.u64 [%rd3+16], %rd5; K: add.u32 %r3, %r3, %r5; "
        "st.global.u32 [%rd3], %r3; ret;"
    )
    unit, _ = optimized(body, arch)
    before = copy.deepcopy(unit)
    assert any(is_guarded(i) and written_regs(i) for i in insts(unit))
    rng, made = random.Random(3), 0
    for _ in range(120):
        wrong = copy.deepcopy(before)
        what = _plant(wrong, rng)
        if what:
            made += 1
            assert list(newly_undefined(before, wrong)), what
    assert made > 60
