"""Small local arrays in registers: what is left of accesses at known places and at places known at run time."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.api import compile_ptx
from stages.simulate import Device
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


def test_arguments_on_the_stack_are_the_callers() -> None:
    """A function whose arguments come in on the stack reads them through R1 as well: they are no words of its array."""
    words = 12
    loads = "".join(f"ld.param.u32 %r2, [p+{4 * n}]; mad.lo.u32 %r1, %r1, 3, %r2; " for n in range(words))
    stores = "".join(f"st.param.u32 [q+{4 * n}], %r{1 + n % 2}; " for n in range(words))
    local = "".join(f"st.local.u32 [%rd1+{4 * n}], {7 * n + 5}; " for n in range(words))
    text = (
        ".version 8.0\n.target sm_90\n.address_size 64\n"
        ".func (.param .u32 r) f (.param .u64 x, .param .align 4 .b8 p[48]) {\n.reg .b32 %r<6>; .reg .b64 %rd<6>;\n"
        ".local .align 16 .b8 a[48];\nmov.u64 %rd1, a; ld.param.u64 %rd2, [x]; " + local + "mov.u32 %r1, 1; " + loads +
        "and.b64 %rd2, %rd2, 3; shl.b64 %rd2, %rd2, 2; add.s64 %rd3, %rd1, %rd2; ld.local.u32 %r3, [%rd3];\n"
        "add.u32 %r1, %r1, %r3; st.param.u32 [r], %r1; ret; }\n"
        ".visible .entry k (.param .u64 out) {\n.reg .b32 %r<6>; .reg .b64 %rd<6>;\n"
        "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mad.lo.u32 %r2, %r1, %r1, 9; cvt.u64.u32 %rd2, %r1;\n"
        "{ .param .u64 y; .param .align 4 .b8 q[48]; .param .u32 s; st.param.u64 [y], %rd2; " + stores +
        "call (s), f, (y, q); ld.param.u32 %r3, [s]; }\n"
        "mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd1, %rd3; st.global.u32 [%rd4], %r3; ret; }\n"
    )  # fmt: skip
    out = np.zeros(32, np.uint32)
    Device(compile_ptx(text, "sm_90")).launch("k", 1, 32, [out])
    want = []
    for t in range(32):
        total = 1
        for n in range(words):
            total = (3 * total + (t if n % 2 == 0 else t * t + 9)) % 2**32
        want.append((total + 7 * (t % 4) + 5) % 2**32)
    assert out.tolist() == want
