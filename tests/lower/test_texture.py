"""Textures and surfaces: operand layout as in ptxas's code, header words, refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ir_format.diag import CompileError
from ir_format.model import Mem, Name, Reg
from orchestrator.api import compile_ptx
from stages.simulate import Device
from tests import oracle
from tests.isa import corpus_texture as corpus
from tests.isa.coverage import check, code_words
from tests.lower import texture_trace
from tests.lower.helpers import insts, lower_text

#: Refused forms, by the words of the message: everything else must be lowered.
REFUSED = (
    "derivatives of 3d and cube textures",
    "does not run here",
)
SMS = ("75", "80", "90", "100", "120", "107a")


def _kernel(body: str, sm: str = "90", options: str = "") -> str:
    regs = ".reg .b64 %h<4>; .reg .f32 %f<20>; .reg .b32 %r<20>; .reg .pred %p<4>;"
    names = ".global .texref tex0;\n.global .surfref surf0;\n" + (".global .samplerref samp0;\n" if options else "")
    return (
        f".version 9.0\n.target sm_{sm}{options}\n.address_size 64\n{names}.visible .entry k(.param .u64 ph, "
        f".param .u64 po)\n{{ {regs}\nld.param.u64 %h0, [ph]; ld.param.u64 %h1, [po];\n{body}\nret; }}\n"
    )


def test_vectors() -> None:
    """A fetch from an array of 2d textures: index and coordinates in one block of three, the rest in another, the
    handle in a uniform pair."""
    text = _kernel(
        "tex.level.a2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%h0, {%r0, %f4, %f5, %f5}], %f6;\nst.global.v4.f32 [%h1], "
        "{%f0, %f1, %f2, %f3};"
    )
    (unit,) = lower_text(text, "sm_90")
    fetch = next(i for i in insts(unit) if i.op == "TEX")
    assert fetch.mods == ("LL",)
    assert Name("N", "ARRAY_2D") in fetch.srcs
    widths = {k: o.width for k, o in enumerate(fetch.srcs) if isinstance(o, Reg)}
    assert widths == {0: 3, 1: 1, 2: 2}
    assert [o.width for o in fetch.dsts[1:] if isinstance(o, Reg)] == [2, 2]


def test_unread_components_are_not_fetched() -> None:
    """Components that nothing reads are not fetched."""
    (unit,) = lower_text(
        _kernel("tex.2d.v4.f32.f32 {%f0, _, %f2, %f3}, [%h0, {%f4, %f5}];\nst.global.f32 [%h1], %f2;"), "sm_90"
    )
    fetch = next(i for i in insts(unit) if i.op == "TEX")
    assert fetch.srcs[-1].value == 0b0100  # type: ignore[union-attr]


def test_surface_address() -> None:
    """Coordinates, then the array index; a 128-bit access has four registers."""
    (unit,) = lower_text(_kernel("sust.b.a2d.v4.b32.trap [%h0, {%r0, %r1, %r2, %r2}], {%r3, %r4, %r5, %r6};"), "sm_90")
    store = next(i for i in insts(unit) if i.op == "SUST")
    assert store.mods == ("D", "BA", "2D_ARRAY", "128", "STRONG", "SM", "TRAP")
    at = store.srcs[0]
    assert isinstance(at, Mem)
    assert at.base is not None
    assert at.base.width == 3


@pytest.mark.parametrize(("sm", "options", "want"), [
    ("75", "", (("texture", "tex0", 0x170), ("surface", "surf0", 0x174))),
    ("90", "", (("texture", "tex0", 0x220), ("surface", "surf0", 0x224))),
    ("80", ", texmode_independent", (("texture", "tex0", 0x170), ("sampler", "samp0", 0x170), ("surface", "surf0",
        0x174))),
    ("120", ", texmode_independent", (("texture", "tex0", 0x390), ("sampler", "samp0", 0x394), ("surface", "surf0",
        0x398))),
])  # fmt: skip
def test_header_words(sm: str, options: str, want: tuple[object, ...]) -> None:
    """Each name has one word after the parameters."""
    sampler = "samp0, " if options else ""
    body = (
        f"tex.2d.v4.f32.f32 {{%f0, %f1, %f2, %f3}}, [tex0, {sampler}{{%f4, %f5}}];\n" * 2
        + "sust.b.1d.b32.zero [surf0, {%r0}], %r1;"
    )
    (unit,) = lower_text(_kernel(body, sm, options), f"sm_{sm}")
    assert unit.attrs["headers"] == want


@pytest.mark.parametrize(("sm", "body", "words"), [
    ("80", "tex.grad.3d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%h0, {%f4,%f5,%f6,%f6}], {%f7,%f8,%f9,%f9}, {%f7,%f8,%f9,%f9};",
        "derivatives of 3d"),
])  # fmt: skip
def test_refused_by_name(sm: str, body: str, words: str) -> None:
    with pytest.raises(CompileError, match=words) as caught:
        lower_text(_kernel(body, sm), f"sm_{sm}")
    assert caught.value.line == 9


def test_forged_header_words() -> None:
    """A stream with nonsense in the attribute is refused with a message."""
    from stages.elf.headers import header_words

    (unit,) = lower_text(_kernel("sust.b.1d.b32.zero [surf0, {%r0}], %r1;"), "sm_90")
    for value in (
        3,
        ("surface",),
        (("surface", "surf0", 3),),
        (("ghost", "surf0", 4),),
        (("surface", "surf0", 4), ("surface", "surf0", 4)),
    ):
        unit.attrs["headers"] = value
        with pytest.raises(CompileError, match="headers"):
            header_words(unit, True)


@pytest.mark.oracle
@pytest.mark.parametrize("sm", SMS)
@pytest.mark.parametrize("handle", ["memory", "direct"])
def test_operands_are_ptxas(sm: str, handle: str, tmp_path: Path) -> None:
    """Every value of every operand, and the result registers, as in ptxas's code; the forms cover every geometry. On
    sm_107 these are the arguments and results of the driver's functions."""
    oracle.require(oracle.tool_for(sm))
    for family, step in (("texture", 61), ("texture-independent", 67), ("surface", 97)):
        forms = list(corpus.forms(family))[SMS.index(sm) :: step]
        equal, different, refused = texture_trace.compare(family, sm, forms, handle, tmp_path)
        assert not different, different[0]
        assert equal
        assert all(any(r in text for r in REFUSED) for text in refused), refused


@pytest.mark.oracle
@pytest.mark.parametrize("sm", SMS)
def test_tools_take_it(sm: str, tmp_path: Path) -> None:
    """nvdisasm prints every word as we do, nvlink links the cubin, the schedule checker finds nothing."""
    from stages.check.schedule_checker import check_bytes

    oracle.require("nvdisasm", "nvlink")
    forms = [
        f
        for f in list(corpus.forms("texture"))[::40] + list(corpus.forms("surface"))[::60]
        if "grad" not in f.text and f.text[2] != "q"
    ]
    forms += [
        f
        for f in corpus.forms("texture")
        if f.text.startswith(("tex.grad.2d.v4.f32.f32", "txq.width")) and not f.text.endswith(", z")
    ]
    image = compile_ptx(texture_trace.module_text("texture", sm, forms, "direct"), f"sm_{sm}", {})
    path = tmp_path / "t.cubin"
    path.write_bytes(image)
    report = check(sorted(set(code_words(path))), sm)
    assert (report.wrong, report.refused) == (0, 0)
    if sm != "107a":  # which nvlink 13.0 does not know
        linked = oracle.run_tool("nvlink", f"-arch=sm_{sm}", str(path), "-o", str(tmp_path / "linked.cubin"))
        assert not isinstance(linked, oracle.ToolError), linked
    assert check_bytes(image).findings == []


def test_called_by_a_part_of_a_warp() -> None:
    """Functions of the driver, called by some threads of a warp and in a function of the module: the others keep their
    values, and none is waited for. The driver's results are those of the stand-in."""
    text = (
        ".version 9.4\n.target sm_107a\n.address_size 64\n.func (.reg .b32 out) f(.reg .b64 t, .reg .b32 x) "
        "{ .reg .b32 r<5>; suld.b.1d.v4.b32.trap {r1, r2, r3, r4}, [t, {x}]; add.u32 out, r2, x; ret; }\n"
        ".visible .entry k(.param .u64 po, .param .u64 ph) { .reg .b32 r<9>; .reg .b64 o, h, a; .reg .pred p;\n"
        "ld.param.u64 o, [po]; ld.param.u64 h, [ph]; mov.u32 r1, %tid.x; mad.wide.u32 o, r1, 16, o; and.b32 r5, r1, 3;"
        "setp.eq.u32 p, r5, 3; mov.u32 r2, 7; mov.u32 r3, 8; mov.u32 r4, 9;\n@!p bra L;\n"
        "suld.b.2d.v2.b32.trap {r2, r3}, [h, {r1, r5}];\nL: @p sust.b.1d.b32.clamp [h, {r1}], r5;\n"
        "st.global.v2.u32 [o], {r2, r3}; shfl.sync.bfly.b32 r4, r2, 1, 31, -1; call (r6), f, (h, r1);\n"
        "st.global.v2.u32 [o+8], {r4, r6}; ret; }\n"
    )
    image = compile_ptx(text, "sm_107a")
    out = np.zeros((64, 4), np.uint32)
    with texture_trace.stand_in() as trace:
        Device(image).launch("k", 1, 64, [out, np.uint64(0x1234)], strict=True)
    assert sorted(name.rsplit("_", 1)[-1] for name, _ in trace) == ["suld", "suld", "sust"]
    some = np.arange(64) % 4 == 3
    first = np.where(some, 0xD0000000, 7)
    expected = [first, np.where(some, 0xD0000001, 8), first[np.arange(64) ^ 1], np.arange(64) + 0xD0000001]
    assert np.array_equal(out, np.stack(expected, 1).astype(np.uint32))


def test_halves_of_a_texture_compile_on_every_sm() -> None:
    """sm_89 spells F2FP as sm_90 does; textures that give halves were refused there."""
    text = (
        ".version 8.5\n.target sm_75\n.address_size 64\n.global .texref t;\n.visible .entry k(.param .u64 o) {\n.reg "
        ".b64 a; .reg .b32 v<4>; .reg .f32 x;\n"
        "ld.param.u64 a, [o]; mov.f32 x, 0f00000000; tex.2d.v2.f16x2.f32 {v0, v1}, [t, {x, x}];\nst.global.v2.b32 "
        "[a], {v0, v1};\nret;\n}\n"
    )
    for sm in (75, 80, 86, 89, 90, 100, 120):
        assert compile_ptx(text, f"sm_{sm}")
