"""Rules that merge one instruction into another: what remains, and the values by simulator and PTX interpreter."""

from __future__ import annotations

from pathlib import Path

import pytest

from ir_format.model import Header, Imm, Inst, Reg, Unit
from stages.optimize.passes import PASSES
from stages.optimize.values import Values
from stages.plumbing.runner import Context, Flags
from tests.lower.helpers import lower_text
from tests.optimize.loop_kernels import SMS, differences
from tests.optimize.loop_kernels import text as loop_text
from tests.optimize.test_loops_licm import optimized as looped

ROOT = Path(__file__).parents[2]


def of(unit: Unit, op: str) -> list[Inst]:
    return [i for b in unit.functions[0].blocks for i in b.insts if i.op == op]


def from_text(source: str, target: str) -> Unit:
    """A module's unit after all passes."""
    (unit,) = lower_text(source, target)
    ctx = Context(Header("ori", target), None, Flags())
    for p in PASSES:
        p.run(unit, ctx)
    return unit


@pytest.mark.parametrize("target", SMS)
@pytest.mark.parametrize(
    ("text", "op"),
    [
        ("setp.lt.u32 %p1, %r1, %r2; selp.u32 %r3, 1, 0, %p1; shl.b32 %r3, %r3, 2;", "SHF"),
        ("setp.lt.u32 %p1, %r1, %r2; selp.u32 %r3, 0, 1, %p1; mul.lo.u32 %r3, %r3, 12;", "IMAD"),
        ("setp.lt.u32 %p1, %r1, %r2; selp.u32 %r3, 5, 5, %p1;", "SEL"),
        ("mul.lo.u32 %r3, %r1, 5; add.u32 %r3, %r3, %r9;", "IADD3"),
        ("cvt.u64.u32 %rd6, %r2; shl.b64 %rd6, %rd6, 40; cvt.u32.u64 %r3, %rd6;", "SHF"),
    ],
)
def test_what_needs_no_instruction(text: str, op: str, target: str) -> None:
    """Selects between multiples, sums with a product, words that a shift leaves empty."""
    body = f"{text} st.global.u32 [%rd5], %r3; ret;"
    unit, _ = looped(body, target)
    plain, _ = looped("st.global.u32 [%rd5], %r1; ret;", target)
    assert len(of(unit, op)) <= len(of(plain, op))
    assert differences(body, target, (0, 7, 40)) == []


@pytest.mark.parametrize("target", SMS)
def test_upper_words_of_local_addresses(target: str) -> None:
    """An address in local memory has 32 bits: products and sums of it are of words, also around a loop."""
    body = (
        "cvt.u64.u32 %rd7, %r9; mov.u64 %rd6, buf; mul.wide.u32 %rd8, %r9, 4; add.s64 %rd6, %rd6, %rd8; "
        "mov.u32 %r3, 0; "
        "L: st.local.u32 [%rd6], %r3; ld.local.u32 %r4, [%rd6]; add.s64 %rd6, %rd6, 4; add.u32 %r3, %r3, "
        "1; setp.lt.u32 %p1, %r3, %r2; @%p1 bra L; st.global.u32 [%rd5], %r4; ret;"
    )
    source = loop_text(body, target).replace("\n{ .shared", "\n{ .local .align 8 .b8 buf[512]; .shared")
    unit = from_text(source, target)
    assert of(unit, "STL") and of(unit, "LDL")
    assert not [i for b in unit.functions[0].blocks for i in b.insts if i.op == "IADD3" and "X" in i.mods]


@pytest.mark.parametrize("target", SMS)
def test_signs_of_doubles(target: str) -> None:
    """-x and |x| in f64 arithmetic and comparisons cost nothing; if the number itself is stored it is computed."""
    body = (
        "{ .reg .f64 x, y, n, a, z; .reg .b32 w; ld.global.u32 w, [%rd5]; cvt.rn.f64.u32 x, w; "
        "cvt.rn.f64.s32 y, %r9; neg.f64 n, x; fma.rn.f64 z, n, y, n; abs.f64 a, n; mul.rn.f64 z, z, a; "
        "neg.f64 z, z; "
        "add.rn.f64 z, z, n; abs.f64 z, z; setp.lt.f64 %p1, n, z; @%p1 add.rn.f64 z, z, a; "
    )
    end = "cvt.rn.f32.f64 %f1, z; st.global.f32 [%rd5], %f1; ret; }"
    unit, _ = looped(body + end, target)
    made = of(unit, "DADD")
    assert [len(i.srcs) for i in of(unit, "DFMA")] == [3] and len(made) == 3, (
        made
    )  # the sums, and |z|, which two paths bring to F2F
    assert differences(body + end, target, (0, 7)) == []
    unit, _ = looped(body + "cvt.rn.f32.f64 %f1, n; st.global.f32 [%rd5], %f1; ret; }", target)
    assert of(unit, "DADD")


@pytest.mark.parametrize("target", SMS)
def test_signs_and_saturation(target: str) -> None:
    """|x|, -x and clamping to [0, 1] need no separate instruction."""
    body = (
        "mov.b32 %f1, %r9; cvt.rn.f32.u32 %f1, %r9; neg.f32 %f2, %f1; fma.rn.f32 %f3, %f2, %f1, 0f3F800000; "
        "cvt.sat.f32.f32 %f3, %f3; abs.f32 %f4, %f2; mul.f32 %f4, %f4, %f3; st.global.f32 [%rd5], %f4; ret;"
    )
    unit, _ = looped(body, target)
    assert not of(unit, "FADD") and [i.mods for i in of(unit, "FFMA")] == [("SAT",)]
    assert differences(body, target, (1,)) == []


@pytest.mark.parametrize("target", SMS)
def test_minima_and_conditions(target: str) -> None:
    """A sum in a minimum, a minimum of three, a condition that is added, the sign of a byte: as few instructions as in
    ptxas's code if the SM has them, and the program's values everywhere."""
    body = (
        "setp.lt.u32 %p1, %r1, 5; selp.u32 %r3, 1, 0, %p1; add.s32 %r3, %r3, %r9; add.s32 %r4, %r1, -7; "
        "min.s32 %r4, %r4, %r3; max.s32 %r5, %r1, %r9; max.s32 %r5, %r5, %r3; xor.b32 %r4, %r4, %r5; "
        "st.global.u32 [%rd5], %r4; ret;"
    )
    unit, _ = looped(body, target)
    assert not of(unit, "SEL")
    if target == "sm_90":
        assert len(of(unit, "VIADDMNMX")) == len(of(unit, "VIMNMX3")) == 1 and not of(unit, "VIMNMX")
    assert differences(body, target, (0, 7, 40)) == []
    signs = (
        ".reg .b16 %c<3>; ld.global.u8 %c1, [%rd5]; cvt.s32.s16 %r3, %c1; ld.global.s8 %c2, [%rd5]; "
        "cvt.s32.s8 %r4, %c2; "
        "add.s32 %r3, %r3, %r4; st.global.u32 [%rd5], %r3; ret;"
    )
    assert differences(signs, target, (0, 7, 40)) == []


@pytest.mark.parametrize("target", SMS)
def test_halves_are_selected_by_their_readers(target: str) -> None:
    """Conversions, a product, a comparison of halves of two words: no PRMT, shift or mask moves a half, as in ptxas's
    code; two shifts and masks by hand too."""
    body = (
        ".reg .b16 %c<8>; .reg .f32 %z<3>; ld.global.u32 %r3, [%rd5]; xor.b32 %r4, %r3, 4660; mov.b32 {%c1, %c2}, %r3; "
        "mov.b32 {%c3, %c4}, %r4; shr.u32 %r6, %r4, 16; cvt.u16.u32 %c6, %r6; and.b32 %r7, %r3, 65535; "
        "cvt.u16.u32 %c7, %r7; cvt.f32.f16 %z1, %c1; cvt.f32.f16 %z2, %c2; fma.rn.f32 %z1, %z1, %z2, %z1; "
        "mul.f16 %c5, %c3, %c4; fma.rn.f16 %c5, %c5, %c6, %c7; setp.lt.f16 %p1, %c2, %c4; "
        "cvt.rzi.s32.f32 %r8, %z1; cvt.u32.u16 %r9, %c5; xor.b32 %r8, %r8, %r9; @%p1 add.s32 %r8, %r8, 1; "
        "st.global.u32 [%rd5], %r8; ret;"
    )
    unit, _ = looped(body, target)
    assert not of(unit, "SHF") and not [i for i in of(unit, "LOP3") if Imm("I", 0xC0) in i.srcs]
    assert not [i for i in of(unit, "PRMT") if i.srcs[1] == Imm("I", 0x4432)]
    selected = [s for op in ("HADD2", "HMUL2", "HFMA2", "HSETP2") for i in of(unit, op) for s in i.srcs]
    assert any(type(s) is Reg and s.mod == "H1_H1" for s in selected)
    assert differences(body, target, (0, 7, 40)) == []


@pytest.mark.parametrize("target", SMS)
def test_two_halves_are_made_by_one_instruction(target: str) -> None:
    """Products and sums of the halves of two words, and two conversions, packed again: one instruction for two."""
    body = (
        ".reg .b16 %c<9>; .reg .f32 %z<3>; ld.global.u32 %r3, [%rd5]; xor.b32 %r4, %r3, 4660; mov.b32 {%c1, %c2}, %r3;"
        "mov.b32 {%c3, %c4}, %r4; mul.f16 %c5, %c1, %c3; mul.f16 %c6, %c2, %c4; fma.rn.f16 %c5, %c5, %c3, %c1;"
        "fma.rn.f16 %c6, %c6, %c4, %c2; mov.b32 %r6, {%c5, %c6}; cvt.rn.f32.u32 %z1, %r3; cvt.rn.f32.u32 %z2, %r1;"
        "cvt.rn.f16.f32 %c7, %z1; cvt.rn.f16.f32 %c8, %z2; mov.b32 %r7, {%c7, %c8}; xor.b32 %r7, %r7, %r6;"
        "st.global.u32 [%rd5], %r7; ret;"
    )
    unit, _ = looped(body, target)
    assert len(of(unit, "HMUL2")) == len(of(unit, "HFMA2")) == 1
    if target != "sm_75":
        assert len(of(unit, "F2FP")) == 1 and not of(unit, "PRMT")
    assert differences(body, target, (0, 7, 40)) == []


@pytest.mark.parametrize("target", SMS)
def test_rotations_choices_and_saturation(target: str) -> None:
    """A rotation and a shift of two words by hand, the choice of the greater, two bounds: one instruction each."""
    body = (
        ".reg .f32 %z<4>; ld.global.u32 %r3, [%rd5]; shl.b32 %r4, %r3, 7; shr.u32 %r6, %r3, 25; or.b32 %r4, %r4, %r6;"
        "shl.b32 %r6, %r1, 9; shr.u32 %r7, %r3, 23; add.s32 %r6, %r6, %r7; xor.b32 %r4, %r4, %r6;"
        "setp.gt.s32 %p1, %r3, %r1; selp.b32 %r8, %r3, %r1, %p1; xor.b32 %r4, %r4, %r8; setp.le.u32 %p2, %r3, 77;"
        "selp.b32 %r8, 77, %r3, %p2; add.s32 %r4, %r4, %r8; cvt.rn.f32.s32 %z1, %r3; mul.f32 %z1, %z1, 0f30000000;"
        "max.f32 %z2, %z1, 0f00000000; min.f32 %z2, %z2, 0f3F800000; mul.f32 %z2, %z2, 0f47000000;"
        "cvt.rzi.s32.f32 %r9, %z2; add.s32 %r4, %r4, %r9; st.global.u32 [%rd5], %r4; ret;"
    )
    unit, _ = looped(body, target)
    assert len(of(unit, "SHF")) == 2 and not of(unit, "LEA") and not of(unit, "ISETP") and not of(unit, "SEL")
    assert not of(unit, "FMNMX") and [i.mods for i in of(unit, "FMUL")].count(("SAT",)) == 1
    assert differences(body, target, (0, 7, 40)) == []


@pytest.mark.parametrize("kernel", ["matmul", "trig", "divrem64"])
def test_second_combining_run_visits_all_that_changed(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second run skips what has not changed since the first; the code equals that of a run that looks at
    everything."""
    source = (ROOT / "tests/kernels/ptx/sm_80" / f"{kernel}.ptx").read_text()
    some = from_text(source, "sm_80")
    plain = Values.start_notes

    def forget(self: Values) -> None:
        plain(self)
        self.combined = False

    monkeypatch.setattr(Values, "start_notes", forget)
    every = from_text(source, "sm_80")
    assert [f.blocks for f in some.functions] == [f.blocks for f in every.functions]
