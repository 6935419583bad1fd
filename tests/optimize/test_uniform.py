"""Words in uniform registers, and the return register of private functions."""

from __future__ import annotations

import numpy as np
import pytest

from ir_format.model import Reg
from orchestrator.api import compile_ptx
from stages.simulate import Device
from tests.lower.helpers import insts, kernel, lower_text
from tests.optimize.test_passes import HEAD, of, ops, optimized

CALLEE = (
    ".func (.param .b32 o) {name} (.param .b32 a) {{ .reg .b32 %x<3>; ld.param.u32 %x0, [a]; "
    "{body} st.param.b32 [o], %x0; ret; }}\n"
)
CALL = "{{ .param .b32 q; .param .b32 w; st.param.b32 [q], %r1; call.uni (w), {name}, (q); ld.param.b32 %r1, [w]; }}"


@pytest.mark.parametrize(("target", "load"), [("sm_90", "ULDC"), ("sm_120", "LDCU")])
def test_parameters_are_read_from_uniform_registers(target: str, load: str) -> None:
    unit, stats = optimized(
        HEAD + "mad.lo.u32 %r3, %r1, %r2, %r1; setp.gt.u32 %p1, %r2, %r3; @%p1 st.global.u32 [%rd3], %r3; ret;", target
    )
    assert stats["words in uniform registers"] == 1
    (d,) = (i.dsts[0] for i in of(unit, load) if not i.mods)
    assert type(d) is Reg and d.file == "UR"
    readers = [i.op for i in insts(unit) if any(type(o) is Reg and o.file == "UR" and o.num == d.num for o in i.srcs)]
    assert sorted(readers) == ["IMAD", "ISETP"]
    assert of(unit, "ISETP")[0].mods[0] == "LT"  # n > x is x < n


@pytest.mark.parametrize("target", ["sm_75", "sm_80"])
def test_constant_operands_stay_where_there_are_some(target: str) -> None:
    unit, stats = optimized(HEAD + "mad.lo.u32 %r3, %r1, %r2, %r1; st.global.u32 [%rd3], %r3; ret;", target)
    assert "words in uniform registers" not in stats


def test_block_indices_are_uniform() -> None:
    unit, _ = optimized(
        HEAD
        + "mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mad.lo.u32 %r3, %r3, %r4, %r1; st.global.u32 [%rd3], %r3; ret;",
        "sm_90",
    )
    assert "S2UR" in ops(unit)
    (product,) = (i for i in of(unit, "IMAD") if not i.mods)
    assert [type(o) is Reg and o.file for o in product.srcs[:3]] == ["R", "UR", "R"]


def test_a_word_with_another_reader_stays() -> None:
    """A store accepts no uniform register: one load for all readers."""
    unit, stats = optimized(
        HEAD + "add.s32 %r3, %r1, %r2; st.global.u32 [%rd3], %r3; st.global.u32 [%rd3+4], %r2; ret;", "sm_90"
    )
    assert "words in uniform registers" not in stats
    assert len([i for i in of(unit, "LDC") if not i.mods]) == 2  # the other is R1's


def _with_function(body: str, call: str, name: str = "g") -> str:
    return kernel(HEAD + call + "st.global.u32 [%rd3], %r1; ret;", "sm_90", head=CALLEE.format(name=name, body=body))


def test_words_are_loaded_again_after_calls() -> None:
    """Calls of functions that have uniform registers destroy them: a word that is read before and after is loaded
    twice."""
    from ir_format.model import Header
    from stages.optimize.passes import PASSES
    from stages.plumbing.runner import Context, Flags

    call = CALL.format(name="g")
    (unit,) = lower_text(
        _with_function(
            "mov.u32 %x1, %ctaid.x; mul.lo.s32 %x0, %x0, %x1;",
            "add.s32 %r1, %r1, %r2;" + call + "mul.lo.s32 %r1, %r1, %r2;",
        ),
        "sm_90",
    )
    ctx = Context(Header("ori", "sm_90"), None, Flags())
    for p in PASSES:
        p.run(unit, ctx)
    order = [i.op for i in insts(unit) if i.op == "CALL" or (i.op == "ULDC" and not i.mods)]
    assert order == ["ULDC", "CALL", "ULDC"]


@pytest.mark.parametrize(
    ("body", "lowered"),
    [
        ("mul.lo.s32 %x0, %x0, %x0;", True),
        (
            "{ .param .b32 q; .param .b32 w; st.param.b32 [q], %x0; call.uni (w), g, (q); ld.param.b32 %x0, [w]; }",
            False,
        ),  # recursion keeps the convention
    ],
)
def test_private_functions_return_through_a_low_register(body: str, lowered: bool) -> None:
    from ir_format.model import Header
    from stages.optimize.late.return_register import lower_return_register
    from stages.plumbing.runner import Context, Flags

    (unit,) = lower_text(_with_function(body, CALL.format(name="g")), "sm_90")
    lower_return_register(unit, Context(Header("ori", "sm_90"), None, Flags()))
    places = {v.fixed for f in unit.functions for v in f.vregs if v.file == "R" and v.fixed > 1}
    assert (20 in places) is not lowered
    assert {6} <= places if lowered else 6 not in places  # R4 or R5 hold the argument and the result


def test_debug_frame_names_the_return_register() -> None:
    """The rule of the function's CIE names the register that RET reads."""
    import io

    from elftools.elf.elffile import ELFFile

    from stages.elf.frame import R, uleb
    from tests.kernels import run

    image = run.COMPILERS["orias"](run.ptx_for(run.SETS["all"]["call_twice"], "90"), "90", [])
    assert isinstance(image, bytes)
    section = ELFFile(io.BytesIO(image)).get_section_by_name(".debug_frame")
    assert section is not None
    frame = section.data()
    assert uleb(R | 20) not in frame
    assert frame.count(uleb(R | 8)) == 2  # arguments and results of its function take R4 to R6


@pytest.mark.parametrize("target", ["sm_90", "sm_120"])
def test_far_parameters_are_loaded_where_they_are_read(target: str) -> None:
    """The pointer of the last store is loaded after the long arm; one that is read close by stays."""
    work = "mad.lo.s32 %r3, %r3, %r1, %r3; xor.b32 %r3, %r3, %r1;" * 30
    body = HEAD + (
        f"mov.u32 %r3, %r1; ld.param.u64 %rd5, [p]; setp.ge.u32 %p1, %r1, %r2; @%p1 bra J; {work} J: "
        f"st.global.u32 [%rd5+64], %r3; ret;"
    )
    unit, stats = optimized(body, target)
    assert stats["loads sunk"] == 1
    (f,) = unit.functions
    assert [sum(i.op == "LDC" and i.mods == ("64",) for i in b.insts) for b in f.blocks][-1] == 1
    near, stats = optimized(body.replace(work, "add.s32 %r3, %r3, %r1;" * 10), target)
    assert "loads sunk" not in stats


def test_divergent_groups_share_no_uniform_registers() -> None:
    """A loop with two entries has no barrier: its threads may run in groups, and one group would see the other's
    uniform registers."""
    loop = (
        "setp.lt.u32 %p1, %r1, 7; @%p1 bra A; B: mad.lo.u32 %r3, %r3, %r2, %r1; A: mad.lo.u32 %r3, %r3, %r2, "
        "%r3; setp.lt.u32 %p2, %r3, %r1; @%p2 bra B;"
    )
    unit, stats = optimized(HEAD + "mov.u32 %r3, %r1;" + loop + "st.global.u32 [%rd3], %r3; ret;", "sm_90")
    assert "words in uniform registers" not in stats
    _, stats = optimized(
        HEAD + "mov.u32 %r3, %r1;" + loop.replace("@%p1 bra A;", "") + "st.global.u32 [%rd3], %r3; ret;", "sm_90"
    )
    assert stats["words in uniform registers"] == 1


def test_slow_paths_leave_uniform_registers_alone() -> None:
    """A word that a loop reads behind a division: the division's slow path has no uniform registers."""
    unit, stats = optimized(
        HEAD + "mov.b32 %f1, %r1; mov.b32 %f2, %r2; L: div.rn.f32 %f1, %f1, %f1; add.f32 %f1, %f1, %f2;"
        "setp.gt.f32 %p1, %f1, %f2; @%p1 bra L; st.global.f32 [%rd3], %f1; ret;",
        "sm_90",
    )
    assert stats["words in uniform registers"] >= 1
    assert any(i.op == "ULDC" and not i.mods for i in insts(unit))


def test_divisions_leave_most_registers_to_their_callers() -> None:
    """17 values and an address are alive over a slow path, which has nine registers, and one for the lower half of the
    return address: 32 in all with R1 and the two that each kernel reports; before, 34."""
    from benchmarks.cubin_facts import kernel_facts
    from orchestrator.api import compile_ptx

    live = 17
    loads = "".join(f"ld.global.u32 %r{n + 10}, [%rd3+{4 * n + 8}];\n" for n in range(live))
    uses = "".join(f"mad.lo.u32 %r1, %r1, %r{n + 10}, %r{(n + 1) % live + 10};\n" for n in range(live))
    body = "ld.global.f32 %f1, [%rd3]; ld.global.f32 %f2, [%rd3+4];\n" + loads
    body += "div.rn.f32 %f1, %f1, %f2; mov.b32 %r1, %f1;\n" + uses + "st.global.u32 [%rd3], %r1; ret;"
    text = kernel(HEAD + body, "sm_90")
    assert kernel_facts(compile_ptx(text, "sm_90", {}, name="t.ptx"))["k"].registers <= 32


@pytest.mark.parametrize("target", ["sm_90", "sm_100", "sm_120"])
def test_parameters_as_shared_addresses(target: str) -> None:
    """A parameter that is the base of an address moves to a uniform register there too."""
    text = f""".version 8.7\n.target {target}\n.address_size 64\n.shared .align 16 .b8 s[1024];
.visible .entry k(.param .u64 p, .param .u32 a, .param .u32 b) {{ .reg .b32 %r<8>; .reg .b64 %d;
    ld.param.u64 %d, [p]; ld.param.u32 %r1, [a]; ld.param.u32 %r2, [b]; mov.u32 %r0, %tid.x;
    add.u32 %r0, %r0, 77; st.shared.u32 [%r1], %r0; ld.shared.u32 %r4, [%r2+4];
    st.global.u32 [%d], %r4; ret; }}\n"""
    out = np.zeros(1, np.uint32)
    Device(compile_ptx(text, target)).launch("k", 1, 1, [out, np.uint32(16), np.uint32(12)], strict=True)
    assert out[0] == 77
