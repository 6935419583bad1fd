"""Kernels whose threads diverge and reconverge: they end, their values are right, and they execute no more instructions
than ptxas's code."""

from __future__ import annotations

import re

import numpy as np
import pytest

from orchestrator.api import compile_ptx
from stages.simulate import Device
from tests import oracle

SMS = (75, 80, 90, 100, 120)
HEAD = """.version 8.7
.target sm_%d
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in)
{
.reg .b32 %%r<60>; .reg .b64 %%l<6>; .reg .pred %%p<20>; .shared .b32 word[64];
ld.param.u64 %%l0,[out]; ld.param.u64 %%l1,[in]; mov.u32 %%r0,%%tid.x; mad.wide.u32 %%l0,%%r0,16,%%l0;
mad.wide.u32 %%l1,%%r0,4,%%l1;
ld.global.u32 %%r1,[%%l1]; mov.u32 %%r9,word; mad.lo.u32 %%r9,%%r0,4,%%r9;
"""
# nvcc's shape for sm_120: two kinds of `return` share one tail each, barriers between them.
EXITS = """st.shared.u32 [%r9],%r1; bar.sync 0; setp.lt.u32 %p0,%r1,8; @%p0 bra END;
bar.sync 0; and.b32 %r2,%r1,3; setp.eq.u32 %p1,%r2,0; @%p1 bra TAIL; add.u32 %r1,%r1,10;
bar.sync 0; setp.eq.u32 %p2,%r2,1; @%p2 bra TAIL; add.u32 %r1,%r1,100;
bar.sync 0; setp.eq.u32 %p3,%r2,2; @%p3 bra TAIL; st.global.u32 [%l0+4],%r1; bra.uni END;
TAIL: st.global.u32 [%l0],%r1;
END: ret; }
"""
LOCK = """setp.ne.u32 %p0,%r0,0; @%p0 bra L1; mov.u32 %r2,0; st.shared.u32 [word],%r2; st.shared.u32 [word+4],%r2;
L1: bar.sync 0;
L2: atom.relaxed.shared.cas.b32 %r3,[word],0,1; setp.ne.u32 %p1,%r3,0; @%p1 bra L2;
ld.volatile.shared.u32 %r4,[word+4]; add.u32 %r4,%r4,%r1; st.volatile.shared.u32 [word+4],%r4; membar.cta;
atom.shared.exch.b32 %r5,[word],0;
bar.sync 0; ld.shared.u32 %r6,[word+4]; st.global.u32 [%l0],%r6; ret; }
"""
FLAG = """setp.ne.u32 %p0,%r0,3; mov.u32 %r2,0; st.shared.u32 [%r9],%r2; bar.sync 0; @%p0 bra L1;
st.shared.u32 [word+4],%r1; membar.cta; mov.u32 %r2,1; st.volatile.shared.u32 [word],%r2; bra L3;
L1: ld.volatile.shared.u32 %r3,[word]; setp.eq.u32 %p1,%r3,0; @%p1 bra L1;
ld.volatile.shared.u32 %r1,[word+4];
L3: st.global.u32 [%l0],%r1; ret; }
"""
#: Needs the whole warp, under a branch that some threads do not take: those exit meanwhile. `%r20` is the mask.
WHOLE = {
    "vote": "vote.sync.ballot.b32 %r3,%p1,MASK;", "shfl": "shfl.sync.bfly.b32 %r3,%r1,1,31,MASK;",
    "match": "match.any.sync.b32 %r3,%r1,MASK;", "warp": "bar.warp.sync MASK; mov.u32 %r3,5;",
    "bar": "bar.sync 0; mov.u32 %r3,5;", "barrier": "barrier.sync 1; mov.u32 %r3,5;",
    "redux": "redux.sync.add.u32 %r3,%r1,MASK;", "elect": "elect.sync _|%p2,MASK; selp.u32 %r3,1,2,%p2;",
}  # fmt: skip
UNDER = """mov.b32 %r20,-1; and.b32 %r2,%r1,1; setp.eq.u32 %p0,%r2,0; setp.gt.u32 %p1,%r1,20; mov.u32 %r3,77;
@%p0 bra L;
st.global.u32 [%l0+4],%r1; OP st.global.u32 [%l0+8],%r3; ld.global.u32 %r4,[%l1]; add.u32 %r1,%r1,%r4;
st.global.u32 [%l0+12],%r4;
L: st.global.u32 [%l0],%r1; ret; }
"""


def run(cubin: bytes, threads: int, data: np.ndarray, order: int = 0) -> tuple[np.ndarray, int]:
    """Results of a block (4 words per thread) and the number of executed warp instructions."""
    out = np.zeros((threads, 4), np.uint32)
    stats = Device(cubin).launch("k", 1, threads, [out, data], seed=order, limit=100_000)
    return out, stats.instructions


def ours(body: str, sm: int, level: int = 3) -> bytes:
    return compile_ptx(HEAD % sm + body, f"sm_{sm}", {"opt-level": level})


@pytest.mark.parametrize("level", (0, 3))
@pytest.mark.parametrize("sm", SMS)
def test_early_exits_between_barriers(sm: int, level: int) -> None:
    x = np.random.default_rng(1).integers(0, 40, 64, np.uint32)
    want = np.zeros((64, 4), np.uint32)
    for t, v in enumerate(x.tolist()):
        kind = v & 3
        if v >= 8:
            want[t, int(kind == 3)] = v + (0, 10, 110, 110)[kind]
    cubin = ours(EXITS, sm, level)
    for order in range(3):
        assert np.array_equal(run(cubin, 64, x, order)[0], want)


@pytest.mark.parametrize("body", (LOCK, FLAG), ids=("lock", "flag"))
@pytest.mark.parametrize("sm", SMS)
def test_threads_that_wait_for_others_of_the_warp(sm: int, body: str) -> None:
    x = np.arange(5, 11, dtype=np.uint32)
    got, _ = run(ours(body, sm), 6, x)
    assert (got[:, 0] == (x.sum() if body is LOCK else x[3])).all()


@pytest.mark.parametrize("sm", (100, 120))
def test_waiting_loops_have_plain_barriers(sm: int) -> None:
    """.RECONVERGENT would block the thread that has the lock (ptxas uses plain barriers there: measured)."""
    for body in (LOCK, FLAG):
        assert not re.search(rb"BSSY\.RE|BSYNC\.RE", listing(ours(body, sm)))


def listing(cubin: bytes) -> bytes:
    from ir_format import isa
    from stages.disasm.cubin import read_cubin
    from stages.disasm.listing import decode_section

    c = read_cubin(cubin)
    return b"\n".join(
        ".".join((item.inst.op, *item.inst.mods)).encode()
        for s in c.sections
        if s.name.startswith(".text")
        for item in decode_section(s, isa.target(c.sm))
        if item.inst is not None
    )


@pytest.mark.parametrize("mask", ("0xffffffff", "%r20"))
@pytest.mark.parametrize("op", WHOLE)
@pytest.mark.parametrize("sm", SMS)
def test_whole_warp_under_a_branch(sm: int, op: str, mask: str) -> None:
    """Threads that take the other path must not wait for those that wait for the whole warp: they exit, which releases
    the others."""
    if (op == "redux" and sm < 80) or (op == "elect" and sm < 90) or (mask != "0xffffffff" and "MASK" not in WHOLE[op]):
        pytest.skip("no such instruction, or no mask")
    x = np.random.default_rng(2).integers(0, 40, 32, np.uint32)
    got, _ = run(ours(UNDER.replace("OP", WHOLE[op].replace("MASK", mask)), sm), 32, x)
    odd = x & 1 == 1
    assert np.array_equal(got[:, 0], np.where(odd, 2 * x, x)) and np.array_equal(got[:, 1], np.where(odd, x, 0))


def chain(exits: int) -> str:
    """A loop whose body has many ways to its end, like an unrolled insertion sort; the work follows them."""
    steps = "".join(
        f"add.u32 %r2,%r2,%r1; and.b32 %r4,%r2,{(n % 5) + 1}; setp.eq.u32 %p1,%r4,1; @%p1 bra J;\n"
        for n in range(exits)
    )
    work = "".join(f"mad.lo.u32 %r5,%r5,%r2,{n}; xor.b32 %r5,%r5,%r1; st.global.u32 [%l0],%r5;\n" for n in range(8))
    return (
        f"mov.u32 %r3,0; mov.u32 %r2,0; mov.u32 %r5,1; L: {steps} add.u32 %r2,%r2,7;\nJ: {work} add.u32 "
        f"%r3,%r3,1; setp.lt.u32 %p2,%r3,6; @%p2 bra L; ret; }}"
    )


def leaving() -> str:
    """Three ways out of two loops, to three places that merge again."""
    return """mov.u32 %r2,0; mov.u32 %r5,1; A: and.b32 %r3,%r1,7; B: add.u32 %r5,%r5,%r3; xor.b32 %r5,%r5,%r1;
and.b32 %r4,%r5,15; setp.eq.u32 %p0,%r4,3; @%p0 bra X; setp.eq.u32 %p1,%r4,5; @%p1 bra Y;
sub.u32 %r3,%r3,1; setp.gt.s32 %p2,%r3,0; @%p2 bra B; ld.global.u32 %r6,[%l1]; mad.lo.u32 %r5,%r5,3,%r6;
st.global.u32 [%l0+4],%r5; ld.global.u32 %r7,[%l1]; add.u32 %r5,%r5,%r7; st.global.u32 [%l0+8],%r5;
Y: add.u32 %r5,%r5,%r2; add.u32 %r2,%r2,1; setp.lt.u32 %p3,%r2,9; @%p3 bra A;
X: mad.lo.u32 %r5,%r5,%r5,7; st.global.u32 [%l0],%r5; ld.global.u32 %r7,[%l1]; add.u32 %r5,%r5,%r7;
st.global.u32 [%l0+12],%r5; ret; }"""


CALLED = """.func (.param .b32 y) f(.param .b32 x)
{ .reg .b32 %r<4>; .reg .pred %p<3>; ld.param.u32 %r1,[x];
L: mad.lo.u32 %r1,%r1,3,1; and.b32 %r2,%r1,7; setp.gt.u32 %p1,%r2,3; @%p1 bra L; st.param.b32 [y],%r1; ret; }
.visible .entry k"""


def calling() -> str:
    """A function under a branch of a loop; before and after it threads leave the loop for good."""
    return """mov.u32 %r2,0; mov.u32 %r5,1;
A: add.u32 %r5,%r5,%r1; and.b32 %r4,%r5,15; setp.eq.u32 %p0,%r4,3; @%p0 bra X; and.b32 %r4,%r5,1;
setp.eq.u32 %p1,%r4,0; @%p1 bra E; and.b32 %r4,%r5,12; setp.eq.u32 %p2,%r4,0; @%p2 bra X; { .param .b32 a;
.param .b32 v; st.param.b32 [a],%r5; call (v),f,(a); ld.param.b32 %r5,[v]; } bra M;
E: xor.b32 %r5,%r5,%r2; st.global.u32 [%l0+4],%r5;
M: ld.global.u32 %r6,[%l1]; mad.lo.u32 %r5,%r5,3,%r6; st.global.u32 [%l0+4],%r5; ld.global.u32 %r7,[%l1];
add.u32 %r5,%r5,%r7; st.global.u32 [%l0+8],%r5; mul.lo.u32 %r5,%r5,5; st.global.u32 [%l0+8],%r5;
shr.u32 %r7,%r5,3; xor.b32 %r5,%r5,%r7; and.b32 %r4,%r5,31; setp.eq.u32 %p3,%r4,9; @%p3 bra X;
add.u32 %r2,%r2,1; setp.lt.u32 %p3,%r2,9; @%p3 bra A;
X: mad.lo.u32 %r5,%r5,%r5,7; st.global.u32 [%l0],%r5; and.b32 %r4,%r5,3; setp.eq.u32 %p3,%r4,0; @%p3 bra X;
st.global.u32 [%l0+12],%r5; ret; }"""


def test_a_lock_with_a_reconvergent_barrier_in_the_same_register() -> None:
    """The other warp is in a loop that it leaves by BREAK.RELIABLE, with the same B register."""
    lock = """setp.ne.u32 %p0,%r0,0; @%p0 bra L1; mov.u32 %r2,0; st.shared.u32 [word],%r2; L1: bar.sync 0;
and.b32 %r2,%r0,15; setp.ne.u32 %p0,%r2,12; @%p0 bra J; L2: atom.shared.cas.b32 %r3,[word],0,1; setp.ne.u32 %p1,%r3,0;
@%p1 bra L2; ld.volatile.shared.u32 %r4,[word+4]; add.u32 %r4,%r4,1; st.volatile.shared.u32 [word+4],%r4; membar.cta;
atom.shared.exch.b32 %r5,[word],0; J:\n"""
    x = np.random.default_rng(3).integers(0, 1 << 30, 64, np.uint32)
    assert np.array_equal(run(ours(lock + leaving(), 120), 64, x, 2)[0], run(ours(leaving(), 120), 64, x)[0])


@pytest.mark.oracle
@pytest.mark.parametrize("sm", (75, 90, 120))
def test_executed_instructions_around_a_call(sm: int) -> None:
    """A barrier that threads leave by BREAK while others are in a function that uses other barriers."""
    oracle.require("ptxas")
    text = HEAD.replace(".visible .entry k", CALLED.replace("%", "%%")) % sm + calling()
    x = np.random.default_rng(3).integers(0, 1 << 30, 64, np.uint32)
    theirs = oracle.compile_ptx(text, sm)
    assert not isinstance(theirs, oracle.ToolError)
    want, most = run(theirs.read_bytes(), 64, x)
    got, executed = run(compile_ptx(text, f"sm_{sm}", {}), 64, x)
    assert np.array_equal(got, want)
    assert executed <= 1.25 * most, (executed, most)


@pytest.mark.oracle
@pytest.mark.parametrize("name", ("chain 4", "chain 12", "chain 33", "leaving"))
@pytest.mark.parametrize("sm", (75, 90, 120))
def test_executed_instructions(sm: int, name: str) -> None:
    """Lost reconvergence shows as instructions that groups of threads execute one after another: without a barrier at
    the end of the chain there were 3 to 17 times as many."""
    oracle.require("ptxas")
    body = leaving() if name == "leaving" else chain(int(name.split()[1]))
    x = np.random.default_rng(3).integers(0, 1 << 30, 64, np.uint32)
    theirs = oracle.compile_ptx(HEAD % sm + body, sm)
    assert not isinstance(theirs, oracle.ToolError)
    want, most = run(theirs.read_bytes(), 64, x)
    got, executed = run(ours(body, sm), 64, x)
    assert np.array_equal(got, want)
    assert executed <= 1.25 * most


@pytest.mark.parametrize("sm", SMS)
def test_bssy_targets_the_instruction_after_its_bsync(sm: int) -> None:
    """As in all of ptxas's code."""
    from ir_format import isa
    from ir_format.model import Imm, Reg
    from stages.disasm.cubin import read_cubin
    from stages.disasm.listing import decode_section

    c = read_cubin(ours(chain(12), sm))
    items = [i for s in c.sections if s.name.startswith(".text") for i in decode_section(s, isa.target(c.sm))]
    found = 0
    for item in items:
        inst = item.inst
        if inst is not None and inst.op == "BSSY":
            target = next(o.value for o in inst.srcs if type(o) is Imm)
            barrier = next(o for o in (*inst.dsts, *inst.srcs) if type(o) is Reg and o.file == "B")
            before = items[target // 16 - 1].inst
            assert before is not None and before.op == "BSYNC" and barrier in before.srcs
            found += 1
    assert found


@pytest.mark.oracle
def test_many_ways_out_of_a_switch_in_a_loop() -> None:
    """One barrier for each of the ways out, and BREAKs of all others on each, cost 1.6 times ptxas's instructions."""
    oracle.require("ptxas")
    cases = "".join(
        f"setp.ne.u32 %p1,%r6,{n}; @%p1 bra N{n}; mad.lo.u32 %r5,%r5,5,{n}; and.b32 %r7,%r5,3; setp.eq.u32 "
        f"%p2,%r7,1; @%p2 bra W{n}; bra J; N{n}:\n"
        for n in range(8)
    )
    ways = "".join(
        f"W{n}: xor.b32 %r5,%r5,{77 * n}; st.global.u32 [%l0+4],%r5; "
        + f"mad.lo.u32 %r5,%r5,%r1,{n}; xor.b32 %r5,%r5,%r3; st.global.u32 [%l0+8],%r5; " * 4
        + "bra END;\n"
        for n in range(8)
    )
    body = (
        f"mov.u32 %r3,0; mov.u32 %r5,%r1; L: and.b32 %r6,%r5,7; {cases} J: add.u32 %r5,%r5,%r1; shr.u32 "
        f"%r5,%r5,1; add.u32 %r3,%r3,1; setp.lt.u32 %p3,%r3,6; @%p3 bra L;\nbra END; {ways}END: st.global.u32 "
        f"[%l0],%r5; ret; }}"
    )
    x = np.random.default_rng(4).integers(0, 1 << 30, 64, np.uint32)
    theirs = oracle.compile_ptx(HEAD % 80 + body, 80)
    assert not isinstance(theirs, oracle.ToolError)
    want, most = run(theirs.read_bytes(), 64, x)
    got, executed = run(ours(body, 80), 64, x)
    assert np.array_equal(got, want)
    assert executed <= 1.4 * most
    assert listing(ours(body, 80)).count(b"BREAK") <= 2 * 8  # at most one barrier that the eight ways leave


#: Bodies of a loop with several latches, with the barriers of ptxas's code (BSSY, BREAK): one whose own loop goes on to
#: one place heads an inner loop; the others meet before they go round again.
LATCHES = {
    "one after the other": ("H: W0 C1 @%p1 bra H; W1 C2 @%p2 bra H; W2 ret; }", 2, 0),
    "continue from an if": ("H: W0 C1 @%p1 bra M; W1 C2 @%p2 bra H; W2 M: W3 C3 @%p3 bra H; W4 ret; }", 2, 1),
    "continue after an exit": ("H: W0 C1 @%p1 bra X; W1 C2 @%p2 bra H; W2 C3 @%p3 bra H; X: W3 ret; }", 2, 1),
    "both arms": ("H: W0 C1 @%p1 bra A; W1 C2 @%p2 bra H; W2 bra X; A: W3 C3 @%p3 bra H; W4 X: W0 ret; }", 2, 2),
    "one place after two exits": ("H: W0 C1 @%p1 bra M; W1 C2 @%p2 bra H; M: W2 C3 @%p3 bra H; W3 ret; }", 2, 0),
    "inner loop and continue": (
        "H: W0 C4 @%p4 bra H; W1 C1 @%p1 bra M; W2 C2 @%p2 bra H; W3 M: W4 C3 @%p3 bra H; W0 ret; }", 3, 1
    ),
}  # fmt: skip


def latches(text: str) -> str:
    """W: some work; C: a condition for the predicate of that number; ends after 40 iterations at most."""
    for n in range(5):
        text = text.replace(f"W{n}", f"mad.lo.u32 %r1,%r1,%r1,{2 * n + 7}; st.global.u32 [%l0+4],%r1;\n")
        test = f"shr.u32 %r2,%r1,{n + 9}; add.u32 %r7,%r7,1; and.b32 %r2,%r2,3; "
        text = text.replace(f"C{n}", f"{test}setp.eq.u32 %p{n},%r2,0; setp.lt.and.u32 %p{n},%r7,40,%p{n};\n")
    return "mov.u32 %r7,0; " + text


@pytest.mark.oracle
@pytest.mark.parametrize("name", LATCHES)
def test_loops_with_several_latches(name: str) -> None:
    oracle.require("ptxas")
    body, bssy, breaks = latches(LATCHES[name][0]), *LATCHES[name][1:]
    x = np.random.default_rng(5).integers(0, 1 << 30, 64, np.uint32)
    theirs = oracle.compile_ptx(HEAD % 90 + body, 90)
    assert not isinstance(theirs, oracle.ToolError)
    want, most = run(theirs.read_bytes(), 64, x)
    made = ours(body, 90)
    got, executed = run(made, 64, x)
    assert np.array_equal(got, want)
    assert executed <= 1.05 * most, (executed, most)
    for cubin in (theirs.read_bytes(), made):
        assert (listing(cubin).count(b"BSSY"), listing(cubin).count(b"BREAK")) == (bssy, breaks)
