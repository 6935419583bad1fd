"""Loads of neighbouring words of shared memory (load vectorizer): which are joined, which are not, and the values by
simulator and PTX interpreter."""

from __future__ import annotations

import pytest

from ir_format.model import Inst, Unit
from tests.optimize.loop_kernels import SMS, differences
from tests.optimize.test_loops_licm import optimized

#: sh contains 64 different words; %r7 = its address.
FILL = (
    "mov.u32 %r7, sh; shl.b32 %r8, %r1, 2; add.u32 %r8, %r7, %r8; ld.global.u32 %r6, [%rd3]; "
    "st.shared.u32 [%r8], %r6; bar.sync 0;"
)
ROW = "and.b32 %r8, %r9, 3; shl.b32 %r8, %r8, 4; add.u32 %r7, %r7, %r8;"
SUM = (
    "mad.lo.u32 %r10, %r11, 3, %r12; mad.lo.u32 %r10, %r10, 5, %r13; mad.lo.u32 %r10, %r10, 7, %r14; "
    "st.global.u32 [%rd5], %r10; ret;"
)


def loads(unit: Unit) -> list[Inst]:
    return [i for b in unit.functions[0].blocks for i in b.insts if i.op == "LDS"]


def sizes(unit: Unit) -> list[str]:
    return sorted(next((m for m in i.mods if m in ("64", "128")), "32") for i in loads(unit))


def four(*offsets: int, between: str = "") -> str:
    words = [f"ld.shared.u32 %r{11 + n}, [%r7+{o}];" for n, o in enumerate(offsets)]
    return FILL + ROW + between.join(words) + SUM


@pytest.mark.parametrize("target", SMS)
@pytest.mark.parametrize(
    ("offsets", "wanted"),
    [
        ((0, 4, 8, 12), ["128"]),
        ((12, 0, 8, 4), ["128"]),
        ((16, 20, 28, 24), ["128"]),
        ((4, 8, 12, 16), ["32", "32", "64"]),
        ((8, 12, 32, 36), ["64", "64"]),
        ((0, 4, 12, 32), ["32", "32", "64"]),
        ((1 * 4, 3 * 4, 5 * 4, 7 * 4), ["32"] * 4),
    ],
)
def test_words_of_a_row(offsets: tuple[int, ...], wanted: list[str], target: str) -> None:
    """Rows of 16 bytes from an aligned array: as many words as are adjacent on a boundary of their size."""
    body = four(*offsets)
    unit, _ = optimized(body, target)
    assert sizes(unit) == wanted
    assert differences(body, target, (1,)) == []


@pytest.mark.parametrize("target", SMS)
@pytest.mark.parametrize("shift", [2, 3])
def test_what_is_known_of_the_base(shift: int, target: str) -> None:
    """A base that is a multiple of 8 allows pairs, one of 4 nothing."""
    body = four(0, 4, 8, 12).replace("shl.b32 %r8, %r8, 4", f"shl.b32 %r8, %r8, {shift}")
    unit, _ = optimized(body, target)
    assert sizes(unit) == (["32"] * 4 if shift == 2 else ["64", "64"])
    assert differences(body, target, (1,)) == []


@pytest.mark.parametrize("target", SMS)
@pytest.mark.parametrize(
    "between",
    [
        "st.shared.u32 [%r6+64], %r1;",  # another base: a constant distance of the rows would be seen
        "bar.sync 0;",
        "atom.shared.add.u32 %r15, [%r8+64], 1;",
        "membar.cta;",
        "add.u32 %r7, %r7, 4;",
        "st.u32 [%rd5+64], %r1;",
    ],
)
def test_what_prevents_vector_loads(between: str, target: str) -> None:
    """Stores, barriers, fences, another base."""
    body = four(0, 4, 8, 12, between=between)
    unit, _ = optimized(body, target)
    assert sizes(unit) == ["32"] * 4


@pytest.mark.parametrize("target", SMS)
def test_a_word_twice(target: str) -> None:
    """The second load of a word stays in addition to the wide one."""
    body = (
        FILL
        + ROW
        + (
            "ld.shared.u32 %r11, [%r7]; ld.shared.u32 %r12, [%r7+4]; ld.shared.u32 %r13, [%r7]; "
            "ld.shared.u32 %r14, [%r7+4]; xor.b32 %r11, %r11, 5;"
        )
        + SUM
    )
    assert differences(body, target, (1,)) == []


@pytest.mark.parametrize("target", SMS)
def test_unrolled_iterations_share_a_vector_load(target: str) -> None:
    """Four iterations next to each other: their words are one load; registers that are written several times keep their
    values."""
    body = (
        FILL
        + ROW
        + (
            "mov.u32 %r3, 0; mov.u32 %r10, 1; L: ld.shared.u32 %r11, [%r7]; mad.lo.u32 %r10, %r10, 3, %r11; "
            "add.u32 %r7, %r7, 4; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 8; @%p1 bra L; "
            "st.global.u32 [%rd5], %r10; ret;"
        )
    )
    unit, _ = optimized(body, target)
    assert sizes(unit) == ["128", "128"]
    assert differences(body, target, (1,)) == []
