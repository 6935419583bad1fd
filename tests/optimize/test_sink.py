"""Sinking: values and loads move to where they are read, past tests at which threads end or part."""

from __future__ import annotations

import pytest

from ir_format.flow import is_guarded
from ir_format.isa import target
from ir_format.model import Header, Inst
from orchestrator.api import compile_ptx
from stages.disasm.cubin import read_cubin
from stages.disasm.listing import decode_section
from stages.optimize.passes import PASSES
from stages.plumbing.runner import Context, Flags
from tests.lower.helpers import kernel, lower_text

START = (
    "mov.u32 %r1, %tid.x; ld.param.u32 %r2, [n]; ld.param.u64 %rd1, [p]; cvta.to.global.u64 %rd1, %rd1; "
    "mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; "
)


def _optimized(text: str, sm: str) -> list[Inst]:
    (unit,) = lower_text(text, sm)
    ctx = Context(Header("ori", sm), None, Flags())
    for p in PASSES:
        p.run(unit, ctx)
    return [i for b in unit.functions[0].blocks for i in b.insts]


def _flat(body: str, sm: str) -> list[Inst]:
    return _optimized(kernel(body, sm), sm)


def _test(insts: list[Inst]) -> int:
    """The first test at which threads end."""
    return next(n for n, i in enumerate(insts) if i.op == "EXIT" and is_guarded(i))


@pytest.mark.parametrize("sm", ["sm_80", "sm_90", "sm_120"])
def test_what_only_those_need_that_go_on_is_computed_by_them(sm: str) -> None:
    """Three products before the test at which most threads end, as ptxas: behind it."""
    body = (
        START + "mad.lo.s32 %r3, %r1, %r1, 5; mad.lo.s32 %r4, %r3, %r1, 9; mad.lo.s32 %r5, %r4, %r3, %r1;"
        "setp.ge.u32 %p1, %r1, %r2; @%p1 ret; st.global.u32 [%rd3], %r5; ret;"
    )
    insts = _flat(body, sm)
    products = [n for n, i in enumerate(insts) if i.op == "IMAD" and "WIDE" not in i.mods]
    assert len(products) == 3 and min(products) > _test(insts)


def test_what_both_ways_need_stays() -> None:
    """The product is stored on either way; a register that the block overwrites afterwards holds its reader."""
    body = (
        START + "mad.lo.s32 %r3, %r1, %r1, 5; setp.ge.u32 %p1, %r1, %r2; @%p1 bra A;"
        "st.global.u32 [%rd3], %r3; bar.sync 0; st.global.u32 [%rd3+4], %r1; ret;"
        "A: st.global.u32 [%rd3+8], %r3; bar.sync 0; ret;"
    )
    insts = _flat(body, "sm_80")
    branch = next(n for n, i in enumerate(insts) if is_guarded(i))
    assert [n for n, i in enumerate(insts) if i.op == "IMAD" and "WIDE" not in i.mods and n < branch]


def test_a_branch_in_a_loop_does_not_wait_for_a_load_that_its_arm_reads() -> None:
    """The mask of the loaded word, which only the arm needs, is made there, behind the arm's own load, as in ptxas's
    code: both loads are under way together. What waits for nothing stays: it fills the cycles before the branch."""
    body = (
        '.pragma "nounroll"; .reg .b32 %k<4>; mov.u32 %k2, 0;' + START + "ld.param.u32 %r5, [n]; mov.u32 %r6, 0;"
        "L: ld.global.nc.u32 %r7, [%rd3]; and.b32 %r8, %r7, 63; mad.lo.s32 %k1, %r6, %r6, 3;"
        "setp.gt.u32 %p1, %r1, 17; @%p1 bra E;"
        "ld.global.nc.u32 %r9, [%rd3+4096]; mov.u32 %r10, %r1;"
        "M: add.s32 %r10, %r10, %r8; shl.b32 %r11, %r10, 2; and.b32 %r11, %r11, 1020; cvt.u64.u32 %rd4, %r11;"
        "add.s64 %rd4, %rd1, %rd4; add.s32 %r12, %r9, %k1; st.global.u32 [%rd4], %r12; setp.lt.u32 %p2, %r10, 900;"
        "@%p2 bra M;"
        "E: bar.sync 0; add.s64 %rd3, %rd3, 4; add.s32 %r6, %r6, 1; setp.lt.s32 %p3, %r6, %r5; @%p3 bra L; ret;"
    )
    (section,) = read_cubin(compile_ptx(kernel(body, "sm_90"), "sm_90")).sections
    ops = [item.inst.op for item in decode_section(section, target(90)) if item.inst is not None]
    branch = next(n for n in range(ops.index("LDG"), len(ops)) if ops[n] == "BRA")
    second = ops.index("LDG", branch)
    assert "IMAD" in ops[ops.index("LDG") : branch] and "LOP3" not in ops[ops.index("LDG") : second]
    assert "LOP3" in ops[second:]


def test_uniform_words_are_loaded_by_threads_that_go_on() -> None:
    """A word of the constant bank that only the store's address needs comes behind the first test, one that the test
    reads in front of it."""
    body = (
        "mov.u32 %r1, %tid.x; ld.param.u32 %r2, [n]; setp.ge.u32 %p1, %r1, %r2; @%p1 ret; "
        "ld.param.u64 %rd1, [p]; cvta.to.global.u64 %rd1, %rd1; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;"
        "st.global.u32 [%rd3], %r1; ret;"
    )
    insts = _flat(body, "sm_90")
    words = [n for n, i in enumerate(insts) if i.op in ("ULDC", "LDCU")]
    end = _test(insts)
    assert [n for n in words if n < end] and [n for n in words if n > end]
    assert not [n for n in words if n < end and "64" in insts[n].mods]  # the descriptor, for the store alone


def test_no_more_words_are_loaded_before_the_first_test_than_it_hides() -> None:
    """Twelve parameters that only threads read that go on: those that the wait for the thread's number hides stay, the
    others are loaded behind the test."""
    params = ", ".join(f".param .u64 a{n}" for n in range(12))
    loads = "".join(f"ld.param.u64 %a{n}, [a{n}]; cvta.to.global.u64 %a{n}, %a{n};" for n in range(12))
    stores = "".join(f"add.s64 %b, %a{n}, %o; st.global.u32 [%b], %t;" for n in range(12))
    text = (
        f".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k({params}, .param .u32 n)\n"
        "{ .reg .b64 %a<12>, %b, %o; .reg .b32 %t, %n, %c, %d; .reg .pred %p; "
        f"{loads} mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %d, %ntid.x; mad.lo.s32 %t, %c, %d, %t;"
        f"ld.param.u32 %n, [n]; setp.ge.s32 %p, %t, %n; @%p ret; mul.wide.u32 %o, %t, 4; {stores} ret; }}\n"
    )
    insts = _optimized(text, "sm_90")
    end = _test(insts)
    assert sum(i.op in ("LDC", "S2R") for i in insts[:end]) <= 6 < sum(i.op == "LDC" for i in insts)
