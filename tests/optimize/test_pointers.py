"""Pointers that advance in step through a loop (strength reduction): which share one register, that values stay, and
that cheap results move after a wait."""

from __future__ import annotations

import pytest

from ir_format.model import Header, Unit
from stages.optimize.passes import PASSES
from stages.plumbing.runner import Context, Flags
from tests.lower.helpers import lower_text
from tests.optimize.loop_kernels import SMS, differences, text
from tests.optimize.test_loops_licm import in_loops
from tests.optimize.test_passes import of

COUNTS = (0, 1, 2, 5)
ROWS = 24
OPTIONS = {"maxrregcount": "48"}  # so that 24 pairs are too many
END = "st.global.u32 [%rd5], %r4; ret;"


def optimized(body: str, target: str, *skip: str) -> tuple[Unit, dict[str, int]]:
    """The unit after all passes but some, under the register limit of OPTIONS, and the statistics."""
    (unit,) = lower_text(text(body, target), target)
    header = Header("ori", target)
    header.options.update(OPTIONS)
    ctx = Context(header, None, Flags())
    for p in PASSES:
        if p.name not in skip:
            p.run(unit, ctx)
    return unit, ctx.stats


def rows(
    sum_of: str = "add.s32",
    more: str = "",
    step: object = 128,
    read: str = "ld.global.u32 %v{n}, [%q{n}];",
    begin: str = "%rd1",
    kind: str = "s32",
) -> str:
    """A loop over ROWS pointers `begin + (row + k) * pitch * 4`; ``step``: the same for all, or a function of the
    number; ``read``: the use of one pointer in the loop."""
    head = (
        f".reg .b64 %q<{ROWS}>; .reg .b64 %a<{ROWS}>; .reg .b32 %v<{ROWS}>; .reg .b32 %t<{ROWS}>; shl.b32 %r5, "
        f"%r1, 5; and.b32 %r5, %r5, 32; and.b32 %r6, %r1, 7; add.u32 %r6, %r6, 3;"
    )
    start = "".join(
        (
            f"{sum_of} %t{n}, %r5, {n}; mul.lo.s32 %t{n}, %t{n}, %r6; mul.wide.{kind} %a{n}, %t{n}, 4; "
            f"add.s64 %q{n}, {begin}, %a{n};{more.format(n=n)}"
        )
        for n in range(ROWS)
    )
    body = "".join(read.format(n=n) + f"xor.b32 %r4, %r4, %v{n}; add.u32 %r4, %r4, {n};" for n in range(ROWS))
    steps = "".join(f"add.s64 %q{n}, %q{n}, {step(n) if callable(step) else step};" for n in range(ROWS))
    return (
            f"{head} {start} mov.u32 %r3, 0; mov.u32 %r4, 0; setp.eq.u32 %p1, %r2, 0; @%p1 bra D; L: .pragma "
            f"\"nounroll\"; {body} {steps}"
        f"add.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, %r2; @%p1 bra L; D: {END}"
    )  # fmt: skip


@pytest.mark.parametrize("target", SMS)
def test_pointers_share_one(target: str) -> None:
    body = rows()
    unit, stats = optimized(body, target)
    assert stats["pointers that share one"] == ROWS
    grow = [i for i in in_loops(unit) if i.mods in (("X",), ("64",)) and i.op in ("IADD3", "IADD")]
    assert len(grow) == 1  # the shared one
    assert differences(body, target, COUNTS, **OPTIONS) == []


@pytest.mark.parametrize(
    "change",
    [
        {"sum_of": "or.b32"},  # the row's lowest bits are 0
        {"more": "add.s64 %q{n}, %q{n}, 64;"},
        {"kind": "u32"},
        {"step": -4, "more": "add.s64 %q{n}, %q{n}, 64;"},
        {"begin": "%rd3"},
        {"read": "add.s64 %a{n}, %q{n}, %rd2; ld.global.u32 %v{n}, [%a{n}+8];"},
        {"read": "setp.gt.u32 %p2, %r1, {n}; mov.u32 %v{n}, 9; @%p2 ld.global.u32 %v{n}, [%q{n}+4];"},
    ],
    ids=lambda c: next(iter(c)) + " " + str(next(iter(c.values())))[:12],
)
@pytest.mark.parametrize("target", SMS)
def test_forms_of_pointers_that_share_one(change: dict[str, str], target: str) -> None:
    body = rows(**change)
    _, stats = optimized(body, target)
    assert stats["pointers that share one"] == ROWS
    assert differences(body, target, COUNTS, **OPTIONS) == []


@pytest.mark.parametrize("target", SMS)
def test_steps_that_differ(target: str) -> None:
    """Three groups; a pointer with a different step is in no group."""
    body = rows(step=lambda n: 4096 if n == 5 else 64 + 4 * (n % 3))
    _, stats = optimized(body, target)
    assert stats["pointers that share one"] == ROWS - 1
    assert differences(body, target, (0, 1, 2), **OPTIONS) == []


@pytest.mark.parametrize("target", SMS)
def test_a_read_between_the_updates(target: str) -> None:
    """A pointer that is read between the updates of others is left out."""
    body = rows().replace(
        "add.s64 %q10, %q10, 128;",
        (
            "add.s64 %q10, %q10, 128; ld.volatile.global.u32 %r7, [%q3]; ld.volatile.global.u32 %r8, [%q20]; "
            "sub.u32 %r4, %r4, %r7; xor.b32 %r4, %r4, %r8;"
        ),
    )
    _, stats = optimized(body, target)
    assert stats["pointers that share one"] == ROWS - 2
    assert differences(body, target, COUNTS, **OPTIONS) == []


@pytest.mark.parametrize("target", SMS)
def test_a_pointer_that_is_read_after_the_loop(target: str) -> None:
    body = rows().replace("D: ", "ld.global.u32 %r7, [%q3]; xor.b32 %r4, %r4, %r7; D: ")
    _, stats = optimized(body, target)
    assert stats["pointers that share one"] == ROWS - 1
    assert differences(body, target, COUNTS, **OPTIONS) == []


@pytest.mark.parametrize("target", SMS)
def test_pointers_of_an_inner_loop_that_go_on(target: str) -> None:
    """Set once, before both loops: the shared pointer must not restart in the second iteration of the outer
    loop."""
    body = (
        rows()
        .replace("L: .pragma", "mov.u32 %r8, 0; M: mov.u32 %r3, 0; L: .pragma")
        .replace("D: ", "add.u32 %r8, %r8, 1; setp.lt.u32 %p1, %r8, 2; @%p1 bra M; D: ")
    )
    _, stats = optimized(body, target)
    assert stats["pointers that share one"] == ROWS
    assert differences(body, target, COUNTS, **OPTIONS) == []


@pytest.mark.parametrize("target", SMS)
def test_nothing_changes_where_registers_suffice(target: str) -> None:
    body = rows()
    (unit,) = lower_text(text(body, target), target)
    ctx = Context(Header("ori", target), None, Flags())
    for p in PASSES:
        p.run(unit, ctx)
    assert "pointers that share one" not in ctx.stats


#: 40 addresses before a barrier and a wait, for loads after it; the values they are computed from grow from iteration
#: to round.
_WAIT = (
    (
        ".reg .b64 %a<40>; .reg .b32 %v<40>; and.b32 %r5, %r1, 31; mov.u32 %r4, 0; mov.u32 %r10, 0; "
        'mov.b64 %rd7, %rd3; M: .pragma "nounroll";'
    )
    + "".join(f"mul.wide.u32 %rd6, %r5, {4 * n + 4}; add.s64 %a{n}, %rd7, %rd6;" for n in range(40))
    + "st.shared.u32 [sh], %r2; bar.sync 0; W: ld.volatile.shared.u32 %r6, [sh]; setp.ne.u32 %p1, %r6, %r2; @%p1 bra W;"
    + "".join(f"ld.global.u32 %v{n}, [%a{39 - n}];" for n in range(40))
    + "".join(f"add.u32 %r4, %r4, %v{n}; xor.b32 %r4, %r4, {n};" for n in range(40))
    + "add.s64 %rd7, %rd7, 4; add.u32 %r5, %r5, 3; add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, 3; @%p1 bra M;"
    + END
)


@pytest.mark.parametrize("target", SMS)
def test_addresses_move_after_a_wait(target: str) -> None:
    unit, stats = optimized(_WAIT, target)
    assert stats["cheap values sunk"] >= 30
    waiting = {id(i) for i in in_loops(unit)}
    first = next(n for n, b in enumerate(unit.functions[0].blocks) if any(id(i) in waiting for i in b.insts))
    before = [i for b in unit.functions[0].blocks[:first] for i in b.insts]
    assert (
        sum(i.op == "IMAD" and "WIDE" in i.mods for i in before)
        < 10
        < len([i for i in of(unit, "IMAD") if "WIDE" in i.mods])
    )
    assert differences(_WAIT, target, COUNTS, **OPTIONS) == []


@pytest.mark.parametrize("target", SMS)
def test_addresses_with_changing_operands_stay(target: str) -> None:
    """The values from which an address is computed grow in the waiting loop."""
    body = _WAIT.replace("W: ", "mov.u32 %r7, 0; W: add.u32 %r5, %r5, 1; add.u32 %r7, %r7, 1;").replace(
        "@%p1 bra W;", "setp.lt.u32 %p2, %r7, 3; @%p1 bra W; @%p2 bra W;"
    )
    _, stats = optimized(body, target)
    assert "cheap values sunk" not in stats
    assert differences(body, target, COUNTS, **OPTIONS) == []
