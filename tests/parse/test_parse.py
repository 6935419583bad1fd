"""The IR of parsed PTX, checked against values computed by hand from the PTX manual."""

from __future__ import annotations

import pytest

from ir_format.ptx import (
    Addr,
    Bracket,
    CallTarget,
    Imm,
    ImmF32,
    ImmF64,
    LabelList,
    LabelRef,
    NotPred,
    Pair,
    Part,
    PtxInst,
    PtxLabel,
    PtxPragma,
    Reg,
    Sink,
    SReg,
    Sym,
    Vec,
)
from stages.parse import parse_sources, parse_text
from tests.parse.helpers import kernel, parse_ok


def insts(body: str, **kw: str) -> list[PtxInst]:
    _, units = parse_ok(kernel(body, **kw))
    return [i for i in units[0].functions[0].body if isinstance(i, PtxInst)][:-1]


def one(body: str, **kw: str) -> PtxInst:
    return insts(body, **kw)[-1]


def test_plain_instruction() -> None:
    i = one("add.s32 %r3, %r1, -5;")
    assert (i.op, i.mods, i.types, i.guard) == ("add", ("s32",), ("s32",), None)
    assert i.operands == (Reg(0), Reg(1), Imm(-5))
    assert i.line == 8


@pytest.mark.parametrize("text", ["add.f32.rn.ftz", "add.ftz.f32.rn", "add.rn.ftz.f32"])
def test_modifiers_come_in_canonical_order(text: str) -> None:
    assert one(f"{text} %f1, %f2, %f3;").mods == ("rn", "ftz", "f32")


def test_types_destination_first() -> None:
    assert one("cvt.rn.f32.s32 %f1, %r1;").types == ("f32", "s32")


def test_guards() -> None:
    a, b = insts("@%p1 mov.u32 %r1, 1; @!%p2 mov.u32 %r1, 2;")
    _, units = parse_ok(kernel("@%p1 mov.u32 %r1, 1; @!%p2 mov.u32 %r1, 2;"))
    names = [r.name for r in units[0].functions[0].regs]
    assert a.guard == (names.index("%p1"), False)
    assert b.guard == (names.index("%p2"), True)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0x10", 16), ("0X1F", 31), ("017", 15), ("0b101", 5), ("7U", 7), ("-1", -1), ("~0", -1), ("!3", 0), ("3+4*2",
        11),
        ("(3+4)*2", 14), ("1<<4|1", 17), ("7/2", 3), ("-7/2", -3), ("-7 % 2", -1), ("5>3?1:2", 1), ("1.5>1.0", 1),
        ("WARP_SZ", 32),
        ("0xffffffffffffffff", 2**64 - 1), ("(.s64)0xffffffffffffffff", -1), ("1==1&&0", 0),
    ],
)  # fmt: skip
def test_integer_constants(text: str, value: int) -> None:
    assert one(f"mov.u32 %r1, {text};").operands[1] == Imm(value)


@pytest.mark.parametrize(
    ("text", "bits"),
    [("1.0", 0x3F800000), ("0f3F800000", 0x3F800000), (".5", 0x3F000000), ("1e10", 0x501502F9), ("-2.5", 0xC0200000)],
)
def test_f32_constants(text: str, bits: int) -> None:
    assert one(f"mov.f32 %f1, {text};").operands[1] == ImmF32(bits)


def test_f64_constants() -> None:
    assert one("mov.f64 %fd1, 1.5;").operands[1] == ImmF64(0x3FF8000000000000)
    assert one("add.f64 %fd1, %fd1, 0f3F800000;").operands[2] == ImmF64(0x3FF0000000000000)


def test_addresses() -> None:
    body = "ld.global.u32 %r1, [%rd1+-8]; ld.global.u32 %r1, [g+4]; ld.param.u64 %rd1, [p]; ld.global.u32 %r1, g[12];"
    a, b, c, d = insts(body, before=".global .u32 g[4];")
    assert a.operands[1] == Addr(Reg(1), -8)
    assert b.operands[1] == Addr(Sym("g"), 4)
    assert c.operands[1] == Addr(Sym("p"), 0)
    assert d.operands[1] == Addr(Sym("g"), 48)


def test_subscripts_count_elements() -> None:
    """tinygrad writes `mov.u64 %a, local[0]`; the manual has it too. Only elements of vectors and of inner arrays count
    (measured)."""
    before = ".global .u32 g[4]; .global .v2 .u16 v[4]; .global .u64 h[2][3];"
    text = (
        "mov.u64 %rd1, g[3]; mov.u64 %rd1, g[-1]; mov.u64 %rd1, v[3]; cvta.global.u64 %rd1, h[1]; "
        "ld.global.u32 %r1, g[2]; st.global.u32 g[1+2], %r1;"
    )
    a, b, c, d, e, f = insts(text, before=before)
    assert [x.operands[1] for x in (a, b, c, d)] == [Sym("g", 12), Sym("g", -4), Sym("v", 6), Sym("h", 8)]
    assert (e.operands[1], f.operands[0]) == (Addr(Sym("g"), 8), Addr(Sym("g"), 12))


def test_vectors_pairs_and_sinks() -> None:
    i = one("ld.global.v4.u32 {%r1, %r2, _, %r3}, [%rd1];")
    assert i.operands[0] == Vec((Reg(0), Reg(1), Sink(), Reg(2)))
    assert one("setp.eq.s32 %p1|%p2, %r1, %r2;").operands[0] == Pair(Reg(0), Reg(1))
    assert one("setp.eq.and.s32 %p1, %r1, %r2, !%p3;").operands[3] == NotPred(3)


def test_texture_operand() -> None:
    i = one("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f5, %f6}];", before=".global .texref t;")
    assert i.operands[1] == Bracket((Addr(Sym("t"), 0), Vec((Reg(4), Reg(5)))))


def test_video_selector() -> None:
    assert one("vadd.s32.u32.s32 %r1, %r2.b3, %r3;").operands[1] == Part(Reg(1), "b3")


def test_special_registers() -> None:
    assert one("mov.u32 %r1, %tid.x;").operands[1] == SReg("%tid.x")


def test_labels_are_scoped() -> None:
    text = kernel("bra A; { bra A; A: mov.u32 %r1, 1; } A: bra A;")
    _, units = parse_ok(text)
    f = units[0].functions[0]
    assert f.labels == ["A", "A$1"]
    branches = [i.operands[0] for i in f.body if isinstance(i, PtxInst) and i.op == "bra"]
    assert branches == [LabelRef(1), LabelRef(0), LabelRef(1)]


def test_scoped_names_are_made_unique() -> None:
    _, units = parse_ok(kernel("{ .reg .b32 %x; mov.u32 %x, 1; } { .reg .f32 %x; mov.f32 %x, 1.0; }"))
    f = units[0].functions[0]
    assert [(r.name, r.type) for r in f.regs] == [("%x", "b32"), ("%x$1", "f32")]


def test_registers_appear_when_used() -> None:
    _, units = parse_ok(kernel("mov.u32 %r7, %r2;", before=""))
    assert [r.name for r in units[0].functions[0].regs] == ["%r7", "%r2"]


def test_vector_register_is_split() -> None:
    _, units = parse_ok(kernel(".reg .v2 .f32 %v; mov.f32 %v.y, 1.0; mov.v2.f32 %v, {%f1, %f2};"))
    f = units[0].functions[0]
    assert [(r.name, r.vec) for r in f.regs[:2]] == [("%v.x", 2), ("%v.y", 2)]
    moves = [i for i in f.body if isinstance(i, PtxInst) and i.op == "mov"]
    assert moves[0].operands[0] == Reg(1)
    assert moves[1].operands[0] == Vec((Reg(0), Reg(1)))


def test_call_operands() -> None:
    callee = (
        ".func (.param .b32 out) f(.param .b32 in, .reg .b64 w) { .reg .b32 %t; ld.param.b32 %t, [in]; "
        "st.param.b32 [out], %t; ret; }\n"
    )
    body = "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call.uni (b), f, (a, %rd1); }"
    _, units = parse_ok(kernel(body, before=callee))
    assert [f.name for f in units[0].functions] == ["k", "f"]
    call = next(i for i in units[0].functions[0].body if isinstance(i, PtxInst) and i.op == "call")
    assert call.operands == (CallTarget(Sym("f"), (Sym("b"),), (Sym("a"), Reg(1))),)
    f = units[0].functions[1]
    assert (f.params[0].space, f.params[1].space, f.params[1].reg) == ("param", "reg", 0)
    assert f.rets[0].name == "out"


def test_indirect_call_and_branch_table() -> None:
    body = "P: .callprototype (.param .b32 _) _ (.param .b64 _);\nT: .branchtargets A, B;\n"
    body += "{ .param .b64 a; .param .b32 b; call (b), %rd1, (a), P; } brx.idx %r1, T; A: B:"
    _, units = parse_ok(kernel(body))
    f = units[0].functions[0]
    ops = {i.op: i for i in f.body if isinstance(i, PtxInst)}
    assert ops["call"].operands == (CallTarget(Reg(0), (Sym("b"),), (Sym("a"),), "P"),)
    assert f.protos[0].name == "P" and f.protos[0].params[0].type == "b64"
    assert ops["brx"].operands[1] == LabelList((0, 1))


def test_initialiser_bytes() -> None:
    text = ".version 9.0\n.target sm_90\n.address_size 64\n"
    text += ".global .align 4 .u32 a[2][3] = {{1, 2}, {-1, 0x10, 7}};\n.const .f32 f[] = {1.0, 0f40000000};\n"
    text += ".global .u64 q[2] = {a+4, generic(a)};\n.global .u8 m[2] = {0xff(a), 0xff00(a)};\n.entry k() { ret; }\n"
    module, _ = parse_ok(text)
    a, f, q, m = module.variables
    assert (a.dims, a.size, a.align) == ((2, 3), 24, 4)
    assert a.init == b"".join(n.to_bytes(4, "little") for n in (1, 2, 0, 0xFFFFFFFF, 16, 7))
    assert f.init == bytes.fromhex("0000803f00000040") and f.dims == (2,)
    assert [(r.offset, r.symbol, r.addend, r.generic) for r in q.relocs] == [(0, "a", 4, False), (8, "a", 0, True)]
    assert [(r.size, r.mask) for r in m.relocs] == [(1, 0xFF), (1, 0xFF00)]


def test_parameter_layout() -> None:
    params = ".param .u8 a, .param .u64 .ptr .global .align 16 b, .param .align 4 .b8 c[10], .param .f64 d"
    _, units = parse_ok(kernel("", params=params))
    f = units[0].functions[0]
    assert [(p.offset, p.size, p.align) for p in f.params] == [(0, 1, 1), (8, 8, 8), (16, 10, 4), (32, 8, 8)]
    assert (f.params[1].ptr, f.params[1].ptr_space, f.params[1].ptr_align) == (True, "global", 16)


def test_performance_directives() -> None:
    text = kernel("").replace("(.param .u64 p)", "(.param .u64 p) .maxntid 128, 2 .minnctapersm 3 .maxnreg 64")
    d = parse_ok(text)[1][0].functions[0].directives
    assert (d.maxntid, d.minnctapersm, d.maxnreg, d.reqntid) == ((128, 2, 1), 3, 64, None)


def test_loc_tables() -> None:
    body = (
        ".loc 1 7 3\nmov.u32 %r1, 1;\n.loc 1 2 1, function_name inf, inlined_at 1 7 3\nmov.u32 %r1, 2;\nmov.u32 %r1, 3;"
    )
    text = kernel(body, before='.file 1 "a.cu"') + ".section .debug_str\n{\ninf:\n.b8 102, 0\n}\n"
    module, units = parse_ok(text)
    f = units[0].functions[0]
    a, b, c = [i for i in f.body if isinstance(i, PtxInst)][:3]
    assert a.loc == 0 and b.loc == c.loc == 1
    assert (f.locs[1].line, f.locs[1].inlined_at, f.locs[1].function) == (2, 0, ("inf", 0))
    assert module.sections[0].labels == (("inf", 0),) and module.sections[0].data == b"f\0"


def test_pragma_keeps_its_place() -> None:
    _, units = parse_ok(kernel('A: .pragma "nounroll"; bra A;'))
    kinds = [type(i) for i in units[0].functions[0].body]
    assert kinds == [PtxLabel, PtxPragma, PtxInst, PtxInst]


def test_units_hold_what_they_reach() -> None:
    text = (
        ".version 9.0\n.target sm_90\n.address_size 64\n.global .u32 used; .global .u32 other; "
        ".global .u64 link = used;\n"
    )
    text += ".func h() { ret; }\n.func g() { .reg .b64 %d; mov.u64 %d, link; call h; ret; }\n.func unused() { ret; }\n"
    text += ".entry a() { call g; ret; }\n.entry b() { ret; }\n"
    _, units = parse_ok(text)
    assert [(u.name, [f.name for f in u.functions], u.variables) for u in units] == [
        ("a", ["a", "g", "h"], ["link", "used"]),
        ("b", ["b"], []),
    ]


def test_separate_units() -> None:
    text = ".version 9.0\n.target sm_90\n.address_size 64\n.func h() { ret; }\n.entry a() { call h; ret; }\n"
    _, units, _ = parse_text(text, "t.ptx", "sm_90", separate=True)
    assert [(u.name, [p.name for p in u.externs]) for u in units] == [("h", []), ("a", ["h"])]


def test_line_markers_rename_messages() -> None:
    _, _, diagnostics = parse_text(kernel('# 33 "foo.h"\nfrob.u32 %r1;'), "t.ptx", "sm_90")
    assert diagnostics[0].render() == "ptxas foo.h, line 33; error   : Not a name of any known instruction: 'frob'"


def test_several_sources() -> None:
    head = ".version 9.0\n.target sm_90\n.address_size 64\n"
    one_ = (head + ".extern .func f();\n.extern .global .u32 v;\n.entry k() { call f; ret; }\n").encode()
    two = (
        head + ".visible .global .u32 v = 3;\n.visible .func f() { .reg .b32 %r; ld.global.u32 %r, [v]; ret; }\n"
    ).encode()
    result = parse_sources([("a.ptx", one_), ("b.ptx", two)], "sm_90", {})
    assert [f.name for f in result.units[0].functions] == ["k", "f"]
    assert result.module is not None and [v.linkage for v in result.module.variables] == ["visible"]
    clash = parse_sources([("a.ptx", two), ("b.ptx", two)], "sm_90", {})
    assert clash.module is None and "Duplicate definition of function 'f'" in clash.diagnostics[0].message


def test_explain_shows_line_and_hint() -> None:
    text = kernel("ad.u32 %r1, %r2, %r3;").encode()
    message = parse_sources([("t.ptx", text)], "sm_90", {"explain": 1}).diagnostics[0].message
    assert "ad.u32 %r1" in message and "^" in message and "mad" in message


# --------------------------------------------------------------------------- diagnostics, texts as measured on ptxas


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("add.u32 %r1, %r2;", "Arguments mismatch for instruction 'add'"),
        ("add.b32 %r1, %r2, %r3;", "Unexpected instruction types specified for 'add'"),
        ("sub.sat.u32 %r1, %r2, %r3;", "Modifier '.sat' does not apply to '.u32' type"),
        ("add.foo.u32 %r1, %r2, %r3;", "Unknown modifier '.foo'"),
        ("add.global.u32 %r1, %r2, %r3;", "No state space qualifier expected for instruction 'add'"),
        ("add.u32 1, %r2, %r3;", "Result register required for instruction 'add'"),
        ("cvt.f32.s32 %f1, %r1;", "Rounding modifier required for instruction 'cvt'"),
        ("setp.eq.s32 %p1, %r1, %r2, %p2;", "Boolean operation is required for instruction 'setp'"),
        ("bar.sync 16;", "Barrier number '16' out of range, expected to be in range [0..15]"),
        ("bra L;", "Unknown symbol 'L'"),
        ("@%r1 bra L; L:", "Predicate expression expected"),
        ("add.u32 %r1, %r2 %r3;", "Parsing error near '%r3': syntax error"),
        ("ld.global.v2.u32 {%r1, %r2, %r3}, [%rd1];", "Illegal vector size: 3"),
        ("ld.const.u32 %r1, [4];", "Immediate addresses allowed only for .local state space"),
        ("mov.u32 %tid.x, %r1;", "Read-only special register cannot be destination argument"),
        ("st.param.u64 [p], %rd1;", "Illegal to write to function input parameter 'p'"),
        ("tcgen05.wait::ld.sync.aligned;", "Instruction 'tcgen05.wait' not supported on .target 'sm_90'"),
        ("add.rn.f32x2 %rd1, %rd2, %rd3;", "Feature 'add.f32x2' requires .target sm_100 or higher"),
        ("shfl.bfly.b32 %r1, %r2, 1, 31;",
         "Instruction 'shfl' without '.sync' is not supported on .target sm_70 and higher from PTX ISA version 6.4"),
    ],
)  # fmt: skip
def test_messages(body: str, message: str) -> None:
    module, units, diagnostics = parse_text(kernel(body), "t.ptx", "sm_90")
    assert module is None and units == []
    assert diagnostics[0].message == message
    assert diagnostics[0].line == 8


def test_errors_accumulate_and_unknown_symbols_come_last() -> None:
    _, _, diagnostics = parse_text(kernel("add.u32 %r1, %zz, %r2;\nbra L;\nadd.u32 %r1, %r2;"), "t.ptx", "sm_90")
    assert [(d.line, d.message.split(" '")[0]) for d in diagnostics] == [
        (8, "Arguments mismatch for instruction"),
        (10, "Arguments mismatch for instruction"),
        (8, "Unknown symbol"),
        (9, "Unknown symbol"),
    ]


def test_syntax_error_is_the_last_message() -> None:
    _, _, diagnostics = parse_text(kernel("add.u32 %r1;\nadd.u32 %r1 %r2;\nadd.u32 %r1;"), "t.ptx", "sm_90")
    assert [d.severity for d in diagnostics] == ["error", "fatal"]


@pytest.mark.parametrize(
    ("target", "arch", "message"),
    [
        ("sm_90", "sm_80", "SM version specified by .target is higher than default SM version assumed"),
        ("sm_90a", "sm_90", "PTX with .target 'sm_90a' cannot be compiled for architecture 'sm_90'"),
        ("sm_90a", "sm_100", "Program with .target 'sm_90a' cannot be compiled to future architecture"),
        ("sm_100f", "sm_120", "Program with .target 'sm_100f' cannot be compiled to different SM-family architecture"),
        ("sm_100f", "sm_103a", None),
        ("sm_75", "sm_121f", None),
        ("sm_101a", "sm_110a", None),
        ("sm_90a", "sm_90a", None),
    ],
)
def test_target_against_architecture(target: str, arch: str, message: str | None) -> None:
    text = f".version 9.0\n.target {target}\n.address_size 64\n.entry k() {{ ret; }}\n"
    module, _, diagnostics = parse_text(text, "t.ptx", arch)
    assert (module is not None) == (message is None)
    assert [d.message for d in diagnostics] == ([] if message is None else [message])


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ({}, 0, "warning"),
        ({"disable-warnings": 1}, 0, ""),
        ({"warning-as-error": 1}, 1, "error"),
        ({"warning-as-error": 1, "disable-warnings": 1}, 0, ""),
    ],
)
def test_warnings_as_ptxas_treats_them(options: dict[str, int], code: int, said: str) -> None:
    """`-w` removes warnings before `-Werror` could make them errors (measured)."""
    from stages.plumbing.front_end import parse_to_stream

    text = kernel("shfl.bfly.b32 %r1, %r1, 1, 31;", version="6.0", target="sm_70")
    lines: list[str] = []
    assert (
        parse_to_stream([("k.ptx", text.encode())], "sm_75", dict(options), lambda data: None, say=lines.append) == code
    )
    assert all(said in line or "aborted" in line for line in lines)
    assert bool(lines) == bool(said)
