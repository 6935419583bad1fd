"""Small local arrays in registers: what is left of accesses at known places and at places known at run time."""

from __future__ import annotations

import pytest

from tests.optimize.test_passes import HEAD, of, optimized

SMS = ("sm_75", "sm_120")


def _array(words: int, body: str) -> str:
    stores = "".join(f"st.local.u32 [%rd4+{4 * n}], %r{1 + n % 2};" for n in range(words))
    return f".local .align 16 .b8 a[{4 * words}]; " + HEAD + "mov.u64 %rd4, a; " + stores + body + " ret;"


PLACE = "ld.global.u32 %r3, [%rd3]; and.b32 %r3, %r3, {mask}; mul.wide.u32 %rd5, %r3, 4; add.s64 %rd6, %rd4, %rd5; "
STORE = "st.global.u32 [%rd3], %r4;"
LOAD = "ld.local.u32 %r4, [%rd6]; " + STORE


@pytest.mark.parametrize("target", SMS)
@pytest.mark.parametrize(
    ("words", "body", "choices", "tests"),
    [
        # a tree of choices: one less than the words, whose bits are tested once for all
        (4, PLACE.format(mask=3) + LOAD, 3, 0),
        # bits that are known to be 0 leave words out
        (8, PLACE.format(mask=3) + LOAD, 3, 0),
        (8, PLACE.format(mask=7) + LOAD, 7, 0),
        # a store compares the place with every word
        (4, PLACE.format(mask=3) + "st.local.u32 [%rd6], %r3; ld.local.u32 %r4, [%rd4+8]; " + STORE, 0, 4),
        # known places only: copies, which go
        (4, "ld.local.u32 %r4, [%rd4+8]; " + STORE, 0, 0),
    ],
)
def test_arrays_in_registers(words: int, body: str, choices: int, tests: int, target: str) -> None:
    unit, _ = optimized(_array(words, body), target)
    assert not of(unit, "LDL") and not of(unit, "STL")
    assert unit.functions[0].frame == 0
    assert len(of(unit, "SEL")) <= choices
    assert len([i for i in of(unit, "ISETP") if "EQ" in i.mods]) <= tests
    assert (len(of(unit, "SEL")) > 0) == (choices > 0)


@pytest.mark.parametrize(
    ("words", "body"),
    [
        # too many words, many accesses, a part of a word, an address that is stored, a call's worth of unknown
        (100, PLACE.format(mask=63) + LOAD),
        (32, (PLACE.format(mask=31) + LOAD) * 6),
        (4, PLACE.format(mask=3) + LOAD + "ld.local.u8 %r4, [%rd6+1]; st.global.u32 [%rd3+4], %r4;"),
        (4, PLACE.format(mask=3) + LOAD + "st.global.u64 [%rd3+8], %rd6;"),
    ],
)
def test_arrays_that_stay(words: int, body: str) -> None:
    unit, _ = optimized(_array(words, body), "sm_90")
    assert of(unit, "LDL") and unit.functions[0].frame


def test_words_in_a_loop() -> None:
    """A pointer that runs through the array is an offset that does."""
    body = (
        "mov.u64 %rd5, %rd4; mov.u32 %r5, 0; L: ld.local.u32 %r4, [%rd5]; add.u32 %r5, %r5, %r4; "
        "add.s64 %rd5, %rd5, 4; st.global.u32 [%rd3], %r5; "
        "ld.volatile.global.u32 %r6, [%rd1]; setp.lt.u32 %p1, %r6, %r2; @%p1 bra L;"
    )
    unit, stats = optimized(_array(4, body), "sm_90")
    assert not of(unit, "LDL") and stats["local words in registers"] == 4
