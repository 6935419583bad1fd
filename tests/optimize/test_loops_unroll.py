"""Unrolled and rotated loops: shapes, and values by simulator and PTX interpreter over many iteration counts."""

from __future__ import annotations

import random

import pytest

from ir_format.flow import build_cfg, loops
from ir_format.model import Block, Imm, Inst, Mem, Reg, Unit
from stages.optimize.loops.induction import Count, fold_steps, trip_count
from stages.optimize.loops.unroll import factor, limit_whole
from stages.optimize.ssa.webs import Webs
from tests.optimize.loop_kernels import SMS, differences
from tests.optimize.test_loops_licm import in_loops, ops, optimized

COUNTS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 30)
END = "st.global.u32 [%rd5], %r4; st.global.u32 [%rd5+8192], %r3; ret;"
BODY = "ld.global.u32 %r5, [%rd3]; xor.b32 %r4, %r4, %r5; mad.lo.u32 %r4, %r4, 5, %r3; add.s64 %rd3, %rd3, 4;"


def counted(start: str, step: int, test: str, body: str = BODY, jump: str = "@%p1 bra L;") -> str:
    """A loop that counts in %r3."""
    return f"mov.u32 %r4, 1; {start} L: {body} add.s32 %r3, %r3, {step}; {test} {jump} {END}"


def all_of(unit: Unit, op: str) -> list[Inst]:
    return [i for b in unit.functions[0].blocks for i in b.insts if i.op == op]


@pytest.mark.parametrize("target", SMS)
def test_four_loads_in_flight(target: str) -> None:
    """The main loop has four loads of one base before their users, one step of base and counter, one test; seven copies
    in all, as in ptxas's code."""
    body = counted("mov.u32 %r3, 0;", 1, "setp.lt.s32 %p1, %r3, %r2;")
    unit, stats = optimized(body, target)
    assert stats["loops unrolled by four"] == 1
    inside = in_loops(unit)
    loads = [i for i in inside if i.op == "LDG"]
    places = [o for i in loads for o in i.srcs if type(o) is Mem]
    assert sorted(m.offset for m in places) == [0, 4, 8, 12] and len({m.base for m in places}) == 1
    assert [i.op for i in inside].count("ISETP") == 1 and [i.op for i in inside].count("BRA") == 1
    last = max(n for n, i in enumerate(inside) if i.op == "LDG")
    assert all(n > last for n, i in enumerate(inside) if i.op in ("LOP3", "IMAD"))
    assert len(all_of(unit, "LDG")) == 7
    assert not {"BSSY", "BSYNC"} & {i.op for b in unit.functions[0].blocks for i in b.insts}
    assert differences(body, target, COUNTS) == []


@pytest.mark.parametrize(
    ("unit", "most"),
    [
        ("mad.lo.u32 %r4, %r4, %r5, 7;", 18),
        ("shr.u32 %r6, %r4, 3; add.u32 %r4, %r6, %r5;", 9),
        ("shl.b32 %r6, %r4, 3; add.u32 %r4, %r6, %r5;", 9),
        ("add.u32 %r6, %r4, %r3; add.u32 %r4, %r6, %r5;", 9),
        ("add.s64 %rd3, %rd3, %rd5;", 18),
    ],
)
def test_longest_body(unit: str, most: int) -> None:
    """The limits count steps, not the merged instructions: they are those of ptxas 13.0 for the same loops."""
    for times in (most, most + 1):
        body = counted("mov.u32 %r3, 0; mov.u32 %r5, %r9;", 1, "setp.lt.s32 %p1, %r3, %r2;", unit * times).replace(
            END, "st.global.u64 [%rd5+16], %rd3; " + END
        )
        _, stats = optimized(body, "sm_90")
        assert ("loops unrolled by four" in stats) == (times == most), times


@pytest.mark.parametrize("target", SMS)
@pytest.mark.parametrize(
    ("start", "step", "test"),
    [
        ("mov.u32 %r3, %r9;", 1, "setp.lt.s32 %p1, %r3, %r2;"),
        ("mov.u32 %r3, 0;", 1, "setp.lt.u32 %p1, %r3, %r9;"),
        ("mov.u32 %r3, %r9;", 3, "setp.le.s32 %p1, %r3, %r2;"),
        ("add.u32 %r3, %r9, 1;", -1, "setp.ne.s32 %p1, %r3, 0;"),
        ("mul.lo.u32 %r3, %r9, 4; add.u32 %r3, %r3, 4;", -4, "setp.ne.s32 %p1, %r3, 0;"),
        ("add.u32 %r3, %r9, %r2;", -2, "setp.gt.s32 %p1, %r3, 3;"),
        ("add.u32 %r3, %r9, %r2;", -1, "setp.ge.s32 %p1, %r3, %r9;"),
    ],
)
def test_threads_diverge_and_reconverge(start: str, step: int, test: str, target: str) -> None:
    """Different iteration counts: the threads reconverge after the loop of four and after the remainder."""
    body = counted(start, step, test)
    unit, stats = optimized(body, target)
    assert stats["loops unrolled by four"] == 1
    assert len(all_of(unit, "BSSY")) == len(all_of(unit, "BSYNC")) >= 2
    assert differences(body, target, COUNTS[:10]) == []


#: start, step, test: the counter is near the end of its range, or reaches its bound only after wrapping, or never
#: says beforehand.
ODD = [
    ("add.u32 %r3, %r2, 0x7ffffff0;", 1, "setp.lt.s32 %p1, %r3, 0x7ffffffb;"),
    ("add.u32 %r3, %r2, 0x7ffffff8;", 4, "setp.gt.s32 %p1, %r3, 0;"),
    ("mov.u32 %r3, 0xfffffffd;", 1, "setp.ne.s32 %p1, %r3, %r2;"),
    ("sub.u32 %r3, %r2, 8;", 1, "setp.lt.u32 %p1, %r3, 0xfffffffe;"),
    ("mov.u32 %r3, 0xfffffff0;", 3, "setp.lt.u32 %p1, %r3, 0xffffffff;"),
    ("mov.u32 %r3, 0x80000003;", -1, "setp.gt.s32 %p1, %r3, 0x80000000;"),
    ("sub.u32 %r3, %r2, 0x7ffffff8;", -3, "setp.ge.s32 %p1, %r3, 0x80000004;"),
    ("mov.u32 %r3, 9;", -2, "setp.gt.u32 %p1, %r3, %r2;"),
    ("add.u32 %r3, %r2, 0x60000000;", 0x20000000, "setp.ne.s32 %p1, %r3, %r2;"),
    ("mov.u32 %r3, 0;", 1, "setp.lt.s32 %p1, %r3, -5;"),
]


@pytest.mark.parametrize(("start", "step", "test"), ODD)
def test_counters_at_their_ends(start: str, step: int, test: str) -> None:
    """Only values: the pass decides whether to unroll. A second bound keeps the iteration count small if the counter
    wraps."""
    counts = tuple(n for n in (0, 1, 2, 3, 4, 5, 8) if _rounds(start, step, test, n) <= 100)
    assert counts
    body = counted(start, step, test)
    for target in ("sm_75", "sm_90"):
        assert differences(body, target, counts) == [], target


def _rounds(start: str, step: int, test: str, n: int) -> int:
    """Iterations of a case of :data:`ODD`, at most 101, by counting."""
    op, _, rest = start.partition(" ")
    terms = [n if t.strip() == "%r2" else int(t, 0) for t in rest.rstrip(";").split(",")[1:]]
    x = (
        terms[0] if op.startswith("mov") else terms[0] + terms[1] if op.startswith("add") else terms[0] - terms[1]
    ) & 0xFFFFFFFF
    compare, kind = test.split()[0].split(".")[1:]
    word = test.rstrip(";").split(",")[-1].strip()
    bound = (n if word == "%r2" else int(word, 0)) & 0xFFFFFFFF
    made = 0
    while made <= 100:
        made += 1
        x = (x + step) & 0xFFFFFFFF
        a, b = ((v - ((v & 1 << 31) << 1)) if kind == "s32" else v for v in (x, bound))
        if not {"lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b, "ne": a != b}[compare]:
            break
    return made


@pytest.mark.parametrize("target", SMS)
@pytest.mark.parametrize("body", [
    "st.global.u32 [%rd3+8192], %r4; ld.global.u32 %r5, [%rd3]; add.u32 %r4, %r4, %r5; add.s64 %rd3, %rd3, 4;",
    ("and.b32 %r6, %r3, 1; setp.eq.u32 %p2, %r6, 0; @%p2 add.u32 %r4, %r4, %r3; @!%p2 xor.b32 %r4, %r4, 77; "
"mul.lo.u32 %r4, %r4, 3;"),
    "mov.u32 %r6, %r7; mov.u32 %r7, %r4; add.u32 %r4, %r6, %r7; add.u32 %r4, %r4, %r3;",
    ("bar.sync 0; mul.lo.u32 %r6, %r1, 4; mov.u32 %r8, sh; add.u32 %r6, %r6, %r8; st.shared.u32 [%r6], %r4; "
"bar.sync 0; ld.shared.u32 %r5, [sh]; add.u32 %r4, %r4, %r5;"),
    "shfl.sync.bfly.b32 %r5, %r4, 1, 31, 0xffffffff; mad.lo.u32 %r4, %r5, 3, %r3;",
    "atom.global.add.u32 %r5, [%rd5+512], %r3; add.u32 %r4, %r4, %r5;",
    "red.global.add.u32 [%rd5+512], %r3; add.u32 %r4, %r4, 1;",
])  # fmt: skip
def test_unrolled_bodies_keep_values_and_order(body: str, target: str) -> None:
    """Stores, guards, carried copies, barriers, shuffles, atomics: the same values in the same order."""
    source = counted("mov.u32 %r3, 0; mov.u32 %r7, 5;", 1, "setp.lt.s32 %p1, %r3, %r2;", body)
    _, stats = optimized(source, target)
    assert stats["loops unrolled by four"] == 1
    assert differences(source, target, (0, 1, 2, 3, 4, 7, 9)) == []


@pytest.mark.parametrize("target", SMS)
def test_known_trip_counts(target: str) -> None:
    """Few: no branch is left. Many: the remainder and a loop of copies."""
    few = counted("mov.u32 %r3, 0;", 1, "setp.ne.s32 %p1, %r3, 13;")
    unit, stats = optimized(few, target)
    assert stats["loops unrolled completely"] == 1 and not loops(build_cfg(unit.functions[0]))
    assert sorted(m.offset for i in all_of(unit, "LDG") for m in i.srcs if type(m) is Mem) == list(range(0, 52, 4))
    assert differences(few, target, (0,)) == []
    many = counted(
        "mov.u32 %r3, 7;",
        2,
        "setp.lt.u32 %p1, %r3, 1206;",
        "xor.b32 %r4, %r4, %r3; mul.lo.u32 %r4, %r4, %r9; shf.l.wrap.b32 %r4, %r4, %r4, 5; add.u32 %r4, %r4, %r1;" * 2,
    )
    unit, stats = optimized(many, target)
    assert stats["loops unrolled in part"] == 1
    assert ops(unit).count("SHF") % 600 in range(4, 33)
    assert differences(many, target, (0,)) == []


@pytest.mark.parametrize("target", SMS)
def test_loop_nest(target: str) -> None:
    """Known inner iteration count: the inner loop disappears, then the outer is a candidate."""
    body = (
        "mov.u32 %r4, 1; mov.u32 %r10, 0; M: mov.u32 %r3, 0; L: ld.global.u32 %r5, [%rd3]; mad.lo.u32 %r4, "
        "%r4, %r5, %r3; add.s64 %rd3, %rd3, 4; add.u32 %r3, %r3, 1; "
        "setp.ne.u32 %p1, %r3, 3; @%p1 bra L; add.u32 %r10, %r10, 1; setp.lt.s32 %p2, %r10, %r2; @%p2 bra M;" + END
    )
    unit, stats = optimized(body, target)
    assert stats["loops unrolled completely"] == 1 and stats["loops unrolled by four"] == 1
    assert len(loops(build_cfg(unit.functions[0]))) == 1
    assert differences(body, target, COUNTS) == []


def test_a_counter_that_is_set_before_the_outer_loop() -> None:
    """The inner counter continues from the previous run: its iteration count is unknown, though its start is known."""
    body = (
        "mov.u32 %r4, 1; mov.u32 %r3, 0; mov.u32 %r10, 0; M: mov.u32 %r11, 0; L: mad.lo.u32 %r4, %r4, 3, "
        "%r3; add.u32 %r3, %r3, 1; "
        "setp.lt.u32 %p1, %r3, 5; @%p1 bra L; add.u32 %r10, %r10, 1; setp.lt.s32 %p2, %r10, %r2; @%p2 bra M;" + END
    )
    _, stats = optimized(body, "sm_90")
    assert "loops unrolled completely" not in stats
    assert differences(body, "sm_90", COUNTS) == []


STAY = [
    ("L: {b} membar.gl; add.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, %r2; @%p1 bra L;", "a fence"),
    ('L: .pragma "nounroll"; {b} add.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, %r2; @%p1 bra L;', "the pragma"),
    (
        "L: {b} add.s32 %r3, %r3, %r9; add.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, %r2; @%p1 bra L;",
        "a step that is not known",
    ),
    ("L: {b} add.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, %r5; @%p1 bra L;", "a bound that changes"),
    ("L: {b} shl.b32 %r3, %r3, 1; add.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, %r2; @%p1 bra L;", "no counter"),
    (
        (
            "L: {b} setp.gt.u32 %p2, %r4, 0xf0000000; @%p2 add.s32 %r3, %r3, 1; add.s32 %r3, %r3, 1; "
            "setp.lt.s32 %p1, %r3, %r2; @%p1 bra L;"
        ),
        "a step under a guard",
    ),
    (
        (
            "L: {b} setp.gt.u32 %p2, %r4, 0xf0000000; @%p2 bra X; add.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, "
            "%r2; @%p1 bra L; X:"
        ),
        "a second way out",
    ),
    (
        (
            "L: {b} add.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, %r9; shfl.sync.bfly.b32 %r5, %r4, 1, 31, "
            "0xffffffff; @%p1 bra L;"
        ),
        "threads that meet in a loop they leave one by one",
    ),
    (
        "L: {b} "
        + "mad.lo.u32 %r4, %r4, %r4, %r3; xor.b32 %r4, %r4, %r9;" * 24
        + "add.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, %r2; @%p1 bra L;",
        "a long body",
    ),
]


@pytest.mark.parametrize(("loop", "why"), STAY)
def test_loops_that_are_not_unrolled(loop: str, why: str) -> None:
    body = "mov.u32 %r4, 1; mov.u32 %r3, 0; " + loop.replace("{b}", BODY) + END
    _, stats = optimized(body, "sm_90")
    assert not [k for k in stats if "unrolled" in k], why


@pytest.mark.parametrize("target", SMS)
@pytest.mark.parametrize("shape", [
    "bra T; L: {b} add.s32 %r3, %r3, 1; T: setp.lt.s32 %p1, %r3, %r2; @%p1 bra L;",
    "L: setp.ge.s32 %p1, %r3, %r2; @%p1 bra X; {b} add.s32 %r3, %r3, 1; bra L; X:",
    "L: setp.ge.s32 %p1, %r3, %r9; @%p1 bra X; {b} add.s32 %r3, %r3, 1; bra L; X:",
])  # fmt: skip
def test_rotation(shape: str, target: str) -> None:
    """The test moves to the end, and the loop is unrolled; zero iterations stay zero."""
    body = "mov.u32 %r4, 1; mov.u32 %r3, 0; " + shape.replace("{b}", BODY) + END
    unit, stats = optimized(body, target)
    assert stats["loops rotated"] == 1 and stats["loops unrolled by four"] == 1
    assert ops(unit).count("BRA") == 1
    assert differences(body, target, COUNTS) == []
    kept, stats = optimized(body.replace("L:", 'L: .pragma "nounroll";'), target)
    assert ops(kept).count("BRA") == 1 and "loops unrolled by four" not in stats


@pytest.mark.parametrize("target", SMS)
def test_tests_that_carry_values_stay(target: str) -> None:
    """The next iteration reads the test's result, or the test has effects: not rotated; values."""
    for test in (
        "add.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, %r2;",
        "atom.global.add.u32 %r6, [%rd5+4096], 1; setp.lt.s32 %p1, %r3, %r2;",
    ):
        body = f"mov.u32 %r4, 1; mov.u32 %r3, 0; bra T; L: {BODY} add.s32 %r3, %r3, 1; T: {test} @%p1 bra L;" + END
        _, stats = optimized(body, target)
        assert "loops rotated" not in stats
        assert differences(body, target, COUNTS) == []


def test_skipping_the_passes_works() -> None:
    body = counted("mov.u32 %r3, 0;", 1, "setp.lt.s32 %p1, %r3, %r2;")
    for skip in (("unroll",), ("licm",), ("rotate",), ("rotate", "licm", "unroll")):
        unit, _ = optimized(body, "sm_90", *skip)
        assert (len(all_of(unit, "LDG")) == 1) == ("unroll" in skip)


def test_the_same_twice() -> None:
    body = counted("mov.u32 %r3, 0;", 1, "setp.lt.s32 %p1, %r3, %r9;")
    first, second = optimized(body, "sm_75")[0], optimized(body, "sm_75")[0]
    assert first.functions == second.functions


# ------------------------------------------------------------------ parts


def test_trip_counts_against_simulation() -> None:
    """The closed form against a simulation, for numbers at the ends of their ranges."""
    rng = random.Random(5)
    ends = [0, 1, 2, 7, 0x7FFFFFFF, 0x7FFFFFFD, 0x80000000, 0x80000005, 0xFFFFFFFF, 0xFFFFFFF0]
    known = 0
    for _ in range(4000):
        step = rng.choice([1, 2, 3, 7, -1, -2, -5, 0x40000000, -0x30000000])
        start, bound = (
            (rng.choice(ends) + rng.choice([0, 0, rng.randrange(40)])) & 0xFFFFFFFF,
            (rng.choice(ends) + rng.randrange(40)) & 0xFFFFFFFF,
        )
        compare, signed, offset = (
            rng.choice(["LT", "LE", "GT", "GE", "NE"]),
            rng.random() < 0.5,
            rng.choice([0, step, 3]) & 0xFFFFFFFF,
        )
        count = Count(Reg("R", 1), step, offset, compare, signed, Imm("I", bound), Reg("P", 2))
        made = trip_count(count, start)
        if made is None or made > 300:
            continue
        known += 1
        x = start
        for n in range(1, made + 1):
            a, b = ((v - ((v & 1 << 31) << 1)) if signed else v for v in ((x + offset) & 0xFFFFFFFF, bound))
            x = (x + step) & 0xFFFFFFFF
            goes = {"LT": a < b, "LE": a <= b, "GT": a > b, "GE": a >= b, "NE": a != b}[compare]
            assert goes == (n < made), (count, start, made)
    assert known > 500


def test_limits() -> None:
    """Points measured on ptxas, and our own bounds."""
    assert [limit_whole(k) for k in (10, 20, 40, 60, 100)] == [120, 53, 13, 7, 3]
    assert limit_whole(12) * 12 <= 1200 and limit_whole(500) == 1
    assert [f + 4096 % f for k in (16, 20, 24, 30, 40, 50, 60, 74) for f in [factor(k, 4096)]] == [
        16,
        16,
        14,
        10,
        8,
        6,
        4,
        1,
    ]


def test_steps_fold() -> None:
    """Sums of sums fold; one whose base is written in between stays."""

    def add(d: int, s: int, by: int) -> Inst:
        from ir_format.model import NOT_PT, PT, RZ

        return Inst("IADD3", (), (Reg("R", d), PT, PT), (Reg("R", s), Imm("I", by & 0xFFFFFFFF), RZ, NOT_PT, NOT_PT))

    b = Block(0, [add(1, 0, 4), add(2, 1, 4), add(3, 2, -20), add(0, 3, 1), add(4, 2, 8), add(5, 4, 8)])
    assert fold_steps(b, Webs([0, 1, 2, 3, 4, 5], 6)) == 4
    assert [(i.srcs[0].num, i.srcs[1].value) for i in b.insts] == [
        (0, 4),
        (0, 8),
        (0, 0xFFFFFFF4),
        (0, 0xFFFFFFF5),
        (2, 8),
        (2, 16),
    ]  # type: ignore[union-attr]


def test_open_loops_with_loads_are_longer() -> None:
    """By four: 47 steps with a load among them, 18 without (as ptxas)."""
    for body, count, there in ((BODY, 16, True), (BODY, 24, False), ("", 7, True), ("", 10, False)):
        loop = "mad.lo.u32 %r4, %r4, %r4, %r3; xor.b32 %r4, %r4, %r9;" * count
        _, stats = optimized(
            f"mov.u32 %r4, 1; mov.u32 %r3, 0; L: {body} {loop} add.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, %r2; "
            "@%p1 bra L;" + END,
            "sm_90",
        )
        assert bool(stats.get("loops unrolled by four")) == there, (body, count)
