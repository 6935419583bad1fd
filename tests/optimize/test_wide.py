"""64-bit sums and known bits: the shape of small kernels, and their values by the simulator against the interpreter."""

from __future__ import annotations

import pytest

from ir_format.model import Const, Header, Inst, Mem, Unit
from orchestrator.api import compile_ptx
from stages.check.cosim import Cosim
from stages.optimize.passes import PASSES
from stages.plumbing.runner import Context, Flags
from stages.simulate import Device
from tests.lower.helpers import insts, kernel, lower_text
from tests.optimize.test_passes import HEAD as WORDS
from tests.optimize.test_passes import SMS, of, ops

HEAD = (
    WORDS.replace("%r1, 4;", "%r1, 8;")
    + "ld.param.u64 %rd20, [q]; cvta.to.global.u64 %rd20, %rd20; add.s64 %rd21, %rd20, %rd2;"
)
PARAMS = ".param .u64 p, .param .u32 n, .param .u64 q"
STORE = "st.global.u64 [%rd3], %rd4; ret;"


def optimized(body: str, target: str) -> tuple[Unit, dict[str, int]]:
    """Like that of test_passes, for a kernel with another pointer."""
    (unit,) = lower_text(kernel(body, target, PARAMS), target)
    ctx = Context(Header("ori", target), None, Flags())
    for p in PASSES:
        p.run(unit, ctx)
    return unit, ctx.stats


def full(op: Inst) -> str:
    return ".".join((op.op, *op.mods))


def sums(unit: Unit) -> list[str]:
    """The sums and products of a unit, without those of the two first addresses (one IMAD.WIDE each)."""
    names = [
        full(i)
        for op in ("IADD3", "IADD", "IMAD", "LEA", "SHF")
        for i in of(unit, op)
        if not (i.attrs and "frame" in i.attrs)
    ]
    names.remove("IMAD.WIDE.U32")
    names.remove("IMAD.WIDE.U32")
    return sorted(names)


#: name -> (body after HEAD, sums up to sm_110, sums from sm_120 on). %r1: thread, %r2: the parameter n, %rd1: p, %rd3:
#: p + 8 * thread.
SHAPES = {
    "words": ("ld.global.u64 %rd5, [%rd21+8]; ld.global.u64 %rd6, [%rd21+16]; add.s64 %rd4, %rd5, %rd6;",
    ["IADD3", "IADD3.X"], ["IADD.64"]),
    "difference": ("ld.global.u64 %rd5, [%rd21+8]; ld.global.u64 %rd6, [%rd21+16]; sub.s64 %rd4, %rd5, %rd6;",
    ["IADD3", "IADD3.X"], ["IADD.64"]),
    "constant": ("ld.global.u64 %rd5, [%rd21+8]; add.s64 %rd4, %rd5, -9;", ["IADD3", "IADD3.X"], ["IADD.64"]),
    "large constant": ("ld.global.u64 %rd5, [%rd21+8]; add.s64 %rd4, %rd5, 0x80000000;", ["IADD3", "IADD3.X"],
    ["IADD3", "IADD3.X"]),
    "three": (
        "ld.global.u64 %rd5, [%rd21+8]; ld.global.u64 %rd6, [%rd21+16]; ld.global.u64 %rd7, [%rd21+24]; add.s64 "
        "%rd8, %rd6, %rd7; add.s64 %rd4, %rd5, %rd8;",
              ["IADD3", "IADD3.X"], ["IADD.64", "IADD.64"]),
    "signed word": (
        "ld.global.u32 %r3, [%rd21+8]; ld.global.u64 %rd6, [%rd21+16]; cvt.s64.s32 %rd5, %r3; add.s64 %rd4, %rd6, "
        "%rd5;", ["IMAD.WIDE"], ["IMAD.WIDE"]),
    "unsigned word": (
        "ld.global.u32 %r3, [%rd21+8]; ld.global.u64 %rd6, [%rd21+16]; cvt.u64.u32 %rd5, %r3; add.s64 %rd4, %rd6, "
        "%rd5;", ["IMAD.WIDE.U32"], ["IMAD.WIDE.U32"]),
    "shifted word": (
        "ld.global.u32 %r3, [%rd21+8]; ld.global.u64 %rd6, [%rd21+16]; cvt.s64.s32 %rd5, %r3; shl.b64 %rd7, %rd5, 3; "
        "add.s64 %rd4, %rd6, %rd7;", ["IMAD.WIDE"], ["IMAD.WIDE"]),
    "shifted pair": (
        "ld.global.u64 %rd5, [%rd21+8]; ld.global.u64 %rd6, [%rd21+16]; shl.b64 %rd7, %rd5, 3; add.s64 %rd4, %rd6, "
        "%rd7;", ["LEA", "LEA.HI.X"], ["LEA", "LEA.HI.X"]),
    "loop": (
        "ld.global.u64 %rd4, [%rd21+8]; ld.global.u64 %rd6, [%rd21+16]; mov.u32 %r3, 0; L: .pragma \"nounroll\"; "
        "add.s64 %rd4, %rd4, %rd6; add.s32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 5; @%p1 bra L;",
             ["IADD3", "IADD3", "IADD3.X"], ["IADD.64", "IADD3"]),
    "product in a loop": (
        "ld.global.u64 %rd4, [%rd21+8]; mul.wide.s32 %rd5, %r2, %r1; mov.u32 %r3, 0; L: .pragma \"nounroll\"; "
        "add.s64 %rd4, %rd4, %rd5; add.s32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 5; @%p1 bra L;",
                          ["IADD3", "IMAD.WIDE"], ["IADD3", "IMAD.WIDE"]),
}  # fmt: skip


@pytest.mark.parametrize("target", SMS)
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_of_sums(shape: str, target: str) -> None:
    body, before, after = SHAPES[shape]
    unit, _ = optimized(HEAD + body + STORE, target)
    assert sums(unit) == (after if target == "sm_120" else before)


#: name -> (body that computes %r4 from %r1 and %r2, mnemonics that may remain besides those of HEAD and the store)
BITS = {
    "mask of a choice": ("setp.lt.u32 %p1, %r1, %r2; selp.u32 %r3, 1, 0, %p1; and.b32 %r4, %r3, 0xffff;",
    {"SEL", "ISETP"}),
    "distance to a multiple of 16": (
        "shl.b32 %r3, %r2, 4; and.b32 %r3, %r3, 16; sub.u32 %r4, 16, %r3; and.b32 %r4, %r4, 15;", set()),
    "sign of a thread": ("shr.s32 %r4, %r1, 31;", set()),
    "thread below 1024": ("setp.gt.u32 %p1, %r1, 1023; selp.u32 %r4, %r2, 5, %p1;", set()),
    "mask of constants": ("bfi.b32 %r4, 1, 2, 1, 1;", set()),
    "quotient of a thread": ("shr.s32 %r3, %r1, 31; shr.u32 %r3, %r3, 27; add.s32 %r3, %r1, %r3; shr.s32 %r4, %r3, 5;",
    {"SHF"}),
    "carry": (
        "mov.b64 %rd5, {%r1, %r2}; mov.b64 %rd6, 0x500000000; add.s64 %rd5, %rd5, %rd6; mov.b64 {%r3, %r4}, %rd5;",
        {"IADD3"}),
    "sum of a shift": ("ld.global.u32 %r3, [%rd21]; shr.u32 %r4, %r3, 29; add.u32 %r4, %r4, %r2;", {"LEA", "LDG"}),
    "sum of a signed shift": ("ld.global.u32 %r3, [%rd21]; shr.s32 %r4, %r3, 7; add.u32 %r4, %r4, %r2;",
    {"LEA", "LDG"}),
    "bit of a shifted word": (
        "shl.b32 %r3, %r2, 3; and.b32 %r3, %r3, 16; setp.ne.u32 %p1, %r3, 0; selp.u32 %r4, 1, 0, %p1;",
        {"LOP3", "SEL"}),
}  # fmt: skip
AROUND = {"S2R", "MOV", "COPY", "LDC", "ULDC", "LDCU", "IMAD", "STG", "EXIT", "UNDEF"}


@pytest.mark.parametrize("target", SMS)
@pytest.mark.parametrize("case", BITS)
def test_known_bits(case: str, target: str) -> None:
    body, left = BITS[case]
    unit, _ = optimized(HEAD + body + "st.global.u32 [%rd3], %r4; ret;", target)
    assert {i.op for i in insts(unit) if not (i.attrs and "frame" in i.attrs)} - AROUND == left


def test_a_parameter_at_a_computed_place() -> None:
    """The address of a parameter plus a constant: the word of the bank itself."""
    unit, _ = optimized(
        HEAD + "mov.u64 %rd5, p; add.s64 %rd6, %rd5, 8; ld.param.u32 %r4, [%rd6]; st.global.u32 [%rd3], %r4; ret;",
        "sm_80",
    )
    assert "LDC" not in ops(unit)
    assert not any(type(o) is Const and o.ireg is not None for i in of(unit, "COPY") for o in i.srcs)


def test_constants_are_compared_in_the_second_place() -> None:
    unit, _ = optimized(HEAD + "setp.lt.s32 %p1, %r2, %r1; @%p1 st.global.u32 [%rd3], %r1; ret;", "sm_80")
    (test,) = of(unit, "ISETP")
    assert test.mods[0] == "GT" and type(test.srcs[1]) is Const


def test_addresses_keep_their_constants() -> None:
    """A constant after a sum of two pairs is the offset of the access, on every SM."""
    for target in SMS:
        unit, _ = optimized(
            HEAD
            + (
                "ld.global.u64 %rd5, [%rd21]; add.s64 %rd6, %rd5, %rd1; add.s64 %rd6, %rd6, 48; "
                "st.global.u32 [%rd6+8], %r1; ret;"
            ),
            target,
        )
        (store,) = of(unit, "STG")
        assert next(o.offset for o in (*store.dsts, *store.srcs) if type(o) is Mem) == 56


def test_half_of_a_pair_dies() -> None:
    """The zero that extends a word is not computed if nothing reads it."""
    unit, _ = optimized(
        HEAD
        + (
            "ld.global.u32 %r3, [%rd21]; cvt.u64.u32 %rd5, %r3; add.s64 %rd6, %rd5, %rd1; "
            "st.global.u32 [%rd6], %r3; ret;"
        ),
        "sm_80",
    )
    assert not [i for i in of(unit, "COPY") if any(getattr(d, "sub", 0) == 1 for d in i.dsts)]


@pytest.mark.parametrize("target", SMS)
def test_values(target: str) -> None:
    """Every shape above, executed: the cubin in the simulator against the PTX interpreter."""
    for name in (*SHAPES, *BITS):
        body = SHAPES[name][0] if name in SHAPES else BITS[name][0]
        store = STORE if name in SHAPES else "st.global.u32 [%rd3], %r4; ret;"
        text = kernel(HEAD + body + store, target, PARAMS)
        report = Cosim(text, target, {"ours": Device(compile_ptx(text, target, {}))}, 2).run()
        assert report.findings == [], name
        assert report.judged["ours"] == 2, name
