"""Verdict and first line of the whole chain: measured on ptxas's full compilation, which refuses and accepts cases that
its parse-only mode does not show."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import oracle
from tests.parse.full import arch_of, ours, theirs

OVERFLOW = "ptxas FILE, line 6; error   : Constant overflow"
ZERO = "ptxas FILE, line 6; fatal   : Constant expression has division by zero"
MMA = (
    "mma.sync.aligned.kind::mxf8f6f4.block_scale.m16n8k32.row.col.f32.e4m3.e5m2.f32.ue8m0 {%f2,%f3,%f4,%f5}, "
    "{%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f1,%f1,%f1,%f1}, "
)
NO_32 = "ptxas warning : Program uses 32-bit address on line '6' which is conflicting with .address_size 64"
NO_SIZE = "ptxas warning :  64 Bit host architecture (--machine) being used mismatches with .address_size of 32 bits"


def kernel(
    body: str,
    before: str = "",
    hints: str = "",
    size: str = ".address_size 64",
    version: str = "9.0",
    target: str = "sm_90",
) -> str:
    """A module with one kernel; `before` and the header share lines 1 to 5, the body is line 6."""
    regs = ".reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<8>; .reg .f64 %fd<8>; .reg .b16 %h<8>;"
    return (
        f".version {version}\n.target {target}\n{size}\n{before} .visible .entry k(.param .u64 p) {hints}\n{{ "
        f"{regs}\n{body}\nret; }}\n"
    )


def module(text: str, version: str = "9.0", target: str = "sm_90") -> str:
    return f".version {version}\n.target {target}\n.address_size 64\n{text}\n.visible .entry k() {{ ret; }}\n"


#: name -> (text, first line; "" if it is accepted silently)
RANGES = {
    "range": (
        kernel(
            ".param .u64 %P<2>; st.param.u64 [%P0], %rd1; .shared .u32 S<3>, T; st.shared.u32 [S2], %r1; "
            ".local .v2 .b32 L<4>; st.local.u32 [L03], %r1;"
        ),
        "",
    ),
    "range_end": (
        kernel(".shared .u64 S<2>; st.shared.u64 [S2], %rd1;"),
        "ptxas FILE, line 6; error   : Illegal operand type to instruction 'st'",
    ),
    "range_module": (
        kernel("st.global.u32 [G1], %r1; ld.const.u32 %r2, [C1];", ".visible .global .u32 G<2>; .const .u32 C<2>;"),
        "",
    ),
    "range_init": (
        module(".global .u32 G<2> = 5;"),
        "ptxas FILE, line 4; fatal   : Parsing error near '=': syntax error",
    ),
    "range_array": (
        module(".global .u32 G<2>[3];"),
        "ptxas FILE, line 4; fatal   : Parsing error near '[': syntax error",
    ),
    "range_huge": (kernel(".local .b32 S<4294967296>;"), OVERFLOW),
    "range_twice": (
        kernel(".local .b32 S<4>; .shared .b32 S<4>;"),
        "ptxas FILE, line 6; error   : Duplicate definition of variable 'S<'",
    ),
    "range_and_names": (
        kernel(".reg .b32 S3; .shared .b32 S2; .shared .b32 S<4>;"),
        "ptxas FILE, line 6; error   : Duplicate definition of variable 'S2'",
    ),
    "range_module_names": (
        module(".global .u32 S1; .global .u32 S<4>;"),
        "ptxas FILE, line 4; error   : Duplicate definition of variable 'S1'",
    ),
}
DECLARATIONS = {
    "no_semicolon": (module('.visible .func f()\n.file 1 "a.c"\n.visible .func f() { ret; }'), ""),
    "no_semicolon_params": (
        module(
            (
                ".func (.param .s32 r) f (.param .s32 p)\n.func (.param .s32 r) f (.param .s32 p) { "
                "st.param.s32 [r], 5; ret; }"
            ),
            "2.3",
            "sm_20",
        ),
        "",
    ),
    "no_semicolon_entry": (
        module(".entry f()"),
        "ptxas FILE, line 5; fatal   : Parsing error near '.visible': syntax error",
    ),
    "size_twice": (
        module(".address_size 64"),
        "ptxas FILE, line 4; fatal   : Parsing error near '.address_size': syntax error",
    ),
    "negative_data": (
        module(".section .debug_str { .b8 5, -61 }", "7.4", "sm_80"),
        (
            "ptxas FILE, line 4; error   : Feature 'Negative numbers in dwarf section' requires PTX ISA "
            ".version 7.5 or later"
        ),
    ),
}
CONSTANTS = {
    "zero": (kernel("mov.u32 %r1, 0 ? 1/0 : 5;"), ZERO),
    "zero_unsigned": (kernel("mov.u32 %r1, 5U % (1-1);"), ZERO),
    "zero_float": (kernel("mov.f32 %f1, 1.0/0.0;"), ZERO),
    "zero_data": (
        module(".global .u32 a[2] = {1, 1/0};"),
        "ptxas FILE, line 4; fatal   : Constant expression has division by zero",
    ),
    "float_large": (kernel("mov.f64 %fd1, 1e999;"), OVERFLOW),
    "float_small": (kernel("mov.f32 %f1, 1e-400;"), OVERFLOW),
    "float_denormal": (kernel("mov.f64 %fd1, 2.2e-308;"), OVERFLOW),
    "float_normal": (
        kernel(
            "mov.f64 %fd1, 2.3e-308; mov.f64 %fd1, 0.0e-999; mov.f64 %fd1, 0e999; mov.f32 %f1, 1e39; "
            "mov.f64 %fd1, 1e308*10.0;"
        ),
        "",
    ),
    "wide_decimal": (kernel("mov.u64 %rd1, 36893488147419103232; ld.global.u32 %r1, [%rd1+18446744073709551616];"), ""),
    "wide_decimal_lost": (kernel("mov.u64 %rd1, 184467440737095516159;"), OVERFLOW),
    "wide_hexadecimal": (kernel("mov.u64 %rd1, 0x10000000000000000; mov.u64 %rd1, 02000000000000000000000;"), ""),
    "wide_hexadecimal_lost": (kernel("mov.u64 %rd1, 0x99999999999999999;"), OVERFLOW),
    "column": (kernel(".loc 1 2 4294967296\nmov.u32 %r1, 5;", '.file 1 "a"'), OVERFLOW),
    "column_wrapped": (kernel(".loc 1 2 18446744073709551616\nmov.u32 %r1, 5;", '.file 1 "a"'), ""),
    "offsets": (
        kernel(
            (
                "ld.shared.u32 %r1, [s+16777216]; ld.shared.u32 %r1, [s+4294967296]; ld.const.u32 %r2, "
                "[c+65536]; ld.const.u32 %r2, [c+-4]; ld.param.u32 %r2, [p+65536]; .local .u32 l; "
                "ld.local.u32 %r3, [l+16777216];"
            ),
            ".shared .u32 s; .const .u32 c;",
        ),
        "",
    ),
}
ADDRESSES = {
    "narrow": (kernel("ld.global.u32 %r1, [%r2];"), NO_32),
    "narrow_generic": (kernel("st.u32 [%r1], 5;"), NO_32),
    "narrow_atomic": (kernel("atom.global.add.u32 %r1, [%r2], 5;"), NO_32),
    "narrow_prefetch": (kernel("prefetchu.L1 [%r2];"), NO_32),
    "narrow_multimem": (kernel("multimem.ld_reduce.global.add.u32 %r1, [%r2];"), NO_32),
    "narrow_mbarrier": (kernel("mbarrier.init.b64 [%r1], 5;"), NO_32),
    "narrow_cvta": (kernel("cvta.to.shared.u32 %r1, %r2;"), NO_32),
    "narrow_name": (kernel("mov.u32 %r1, g;", ".global .u32 g;"), NO_32),
    "narrow_unsaid": (kernel("ld.global.u32 %r1, [%r2]; ld.global.u32 %r1, [%rd2];", size=""), NO_SIZE),
    "narrow_16": (kernel("ld.global.u32 %r1, [%h1];"), NO_32.replace("32-bit", "16-bit")),
    "narrow_elsewhere": (
        kernel(
            (
                "ld.shared.u32 %r1, [%r2]; ld.const.u32 %r1, [%r2]; ld.local.u32 %r1, [%r2]; "
                "cp.async.ca.shared.global [%r1], [%r2], 4; mov.u32 %r1, g+4; mbarrier.init.shared.b64 [%r1], "
                "5;"
            ),
            ".global .u32 g;",
        ),
        "",
    ),
}
SUMS = {
    "sum": (
        kernel(
            "st.global.u32 [%rd1], %r1 + 1; add.u32 %r1, %r2+(2), %r3+1+1; atom.global.add.u32 %r1, "
            "[%rd1], %r2+-1; bar.sync %r1+1; st.global.u32 [%rd1], %laneid+1;"
        ),
        "",
    ),
    "sum_of_variable": (
        kernel("add.u64 %rd1, g+1, 1; st.global.u32 [%rd1], s+1;", ".global .u32 g; .shared .u32 s;"),
        "",
    ),
    "sum_of_function": (
        kernel("st.global.u64 [%rd1], f+1;", ".func f () { ret; }"),
        "ptxas fatal   : Line No: 6: Cannot take address of function 'f' in arithmetic expressions",
    ),
    "sum_as_result": (
        kernel("mov.u32 %r1+1, 5;"),
        "ptxas FILE, line 6; error   : Result register required for instruction 'mov'",
    ),
    "sum_in_vector": (
        kernel("st.global.v2.u32 [%rd1], {%r2 + 1, %r3};"),
        "ptxas FILE, line 6; fatal   : Parsing error near '+': syntax error",
    ),
    "sum_of_component": (
        kernel("mov.u32 %r1, %tid.x+1;"),
        "ptxas FILE, line 6; fatal   : Parsing error near '+': syntax error",
    ),
    "sum_float": (
        kernel("mov.u32 %r1, %r2+1.0;"),
        "ptxas FILE, line 6; error   : Integer constant expression expected",
    ),
    "difference": (
        kernel("mov.u32 %r1, %r2 - 1;"),
        "ptxas FILE, line 6; fatal   : Parsing error near '-': syntax error",
    ),
}
BOUNDS = {
    "registers": (
        kernel("", hints=".maxnreg 10"),
        "ptxas warning : For entry k adjusting per thread register count of 10 to lower bound of 24",
    ),
    "registers_many": (
        kernel("", hints=".maxnreg 256"),
        "ptxas warning : Too many maxnreg specified for entry k, will be ignored",
    ),
    "blocks": (
        kernel("", hints=".maxntid 32 .minnctapersm 33"),
        "ptxas warning : Value of minnctapersm for entry k is out of range. minnctapersm will be ignored",
    ),
    "threads": (
        kernel("", hints=".reqntid 1024 .minnctapersm 3"),
        "ptxas warning : Value of threads per SM for entry k is out of range. .minnctapersm will be ignored",
    ),
    "threads_fit": (kernel("", hints=".maxntid 1024 .minnctapersm 2"), ""),
    "blocks_zero": (
        kernel("", hints=".maxntid 32 .minnctapersm 0"),
        "ptxas FILE, line 4; error   : Positive non-zero value expected for minnctapersm",
    ),
    "words": (kernel("", hints=".maxnreg 4294967297"), "ptxas FILE, line 4; error   : Constant overflow"),
    "last_first": (
        module(".entry a() .maxnreg 300 { ret; }\n.entry b() .maxnreg 5 { ret; }"),
        "ptxas warning : For entry b adjusting per thread register count of 5 to lower bound of 24",
    ),
}
OPERANDS = {
    "movmatrix_layout": (kernel("movmatrix.sync.row.aligned.m8n8.trans.b16 %r1, %r2;"), ""),
    "layout_elsewhere": (
        kernel("rsqrt.approx.row.f32 %f1, %f2;"),
        "ptxas FILE, line 6; error   : Illegal modifier '.alayout or .blayout' for instruction 'rsqrt'",
    ),
    "half_register": (
        kernel(".reg .f16x2 %x; cvt.rn.f16x2.e4m3x2 %x, %h1; cvt.rn.satfinite.e5m2x2.f16x2 %h1, %x;"),
        "",
    ),
    "half_register_narrow": (
        kernel(
            (
                ".reg .f16x2 %x; .reg .b8 %b; cvt.rn.satfinite.relu.e2m1x2.f16x2 %b, %x; "
                "cvt.rn.f16x2.e2m1x2 %x, %b; cvt.rp.ue8m0x2.bf16x2 %h1, %x;"
            ),
            target="sm_100a",
        ),
        "",
    ),
    "narrow_rounds_finite": (
        kernel(".reg .f16x2 %x; .reg .b8 %b; cvt.rn.e2m1x2.f16x2 %b, %x;", target="sm_100a"),
        (
            "ptxas FILE, line 6; error   : '.satfinite' modifier required for instruction 'cvt' with "
            "destination type '.e2m1x2'"
        ),
    ),
    "scales": (kernel(MMA + "{%r7}, {%h1, %h2}, {%r6}, {1, 3};", target="sm_120a"), ""),
    "scales_mixed": (kernel(MMA + "%r7, {2, 1}, {%f6}, {%h1, 0};", target="sm_120a"), ""),
    "scales_byte": (
        kernel(MMA + "{%r7}, {5, %h1}, {%r6}, {0, 0};", target="sm_120a"),
        (
            "ptxas FILE, line 6; error   : Argument 5 of instruction 'mma': value '5' out of range, "
            "expected to be in range [0..3]"
        ),
    ),
    "scales_thread": (
        kernel(MMA + "{%r7}, {0, 2}, {%r6}, {0, 0};", target="sm_120a"),
        (
            "ptxas FILE, line 6; error   : Argument 5 of instruction 'mma': value '2' out of range, "
            "expected to be in range [0..1]"
        ),
    ),
    "scales_constant": (
        kernel(MMA + "{5}, {0, 1}, {%r6}, {0, 0};", target="sm_120a"),
        "ptxas FILE, line 6; error   : Arguments mismatch for instruction 'mma'",
    ),
    "collector": (
        kernel(
            "tcgen05.mma.cta_group::1.kind::f16.collector::a::use.ashift [%r1], [%r2], %rd1, %r3, %p1;",
            target="sm_100a",
        ),
        "ptxas FILE, line 6; error   : Modifier '.collector::a::use' cannot be combined with modifier '.ashift'",
    ),
    "graph": (kernel("mov.u64 %rd1, %current_graph_exec; st.global.u64 [%rd2], %rd1;"), ""),
}
PRAGMAS = {
    "spilling_old": (
        kernel('.pragma "enable_smem_spilling";', version="8.6"),
        "ptxas FILE, line 6; error   : Feature 'enable_smem_spilling' requires PTX ISA .version 8.7 or later",
    ),
    "spilling_dynamic": (
        kernel('.pragma "enable_smem_spilling"; st.shared.u32 [d], %r1;', ".extern .shared .u32 d[];"),
        "ptxas fatal   : Pragma 'enable_smem_spilling' is not allowed for dynamic SMEM",
    ),
    "spilling_function": (
        module('.func f() { .pragma "enable_smem_spilling"; ret; }'),
        "ptxas FILE, line 4; error   : Pragma 'enable_smem_spilling' cannot be specified for device functions",
    ),
    "frequency": (kernel('.pragma "frequency 5";'), ""),
    "frequency_none": (
        kernel('.pragma "frequency";'),
        "ptxas error   : Argument(s) to pragma 'frequency' cannot be empty",
    ),
    "frequency_word": (
        kernel('.pragma "frequency abc";'),
        "ptxas error   : Invalid value 'abc' specified for .pragma 'frequency abc'",
    ),
}
SIZES = {
    "constants": (
        module(".const .b8 c[65000]; .const .b8 d[65000];"),
        "ptxas error   : File uses too much global constant data (0x1fbd0 bytes, 0x10000 max)",
    ),
    "shared": (
        kernel(".shared .b8 s[49153]; st.shared.u8 [s+9], %r1;"),
        "ptxas error   : Entry function 'k' uses too much shared data (0xc001 bytes, 0xc000 max)",
    ),
    "shared_most": (kernel(".shared .b8 s[232448]; st.shared.u8 [s+9], %r1;", target="sm_90a"), ""),
    "shared_more": (
        kernel(".shared .b8 s[232452]; st.shared.u8 [s+9], %r1;", target="sm_90a"),
        "ptxas error   : Entry function 'k' uses too much shared data (0x38c04 bytes, 0x38c00 max)",
    ),
    "shared_120": (
        kernel(".shared .b8 s[101377]; st.shared.u8 [s+9], %r1;", target="sm_120a"),
        "ptxas error   : Entry function 'k' uses too much shared data (0x18c01 bytes, 0x18c00 max)",
    ),
    "shared_family": (
        kernel(".shared .b8 s[50000]; st.shared.u8 [s+9], %r1;", target="sm_103f"),
        "ptxas error   : Entry function 'k' uses too much shared data (0xc350 bytes, 0xc000 max)",
    ),
    "noreturn": (
        module(".func f() .noreturn;\n.func f() { trap; }"),
        "ptxas FILE, line 5; error   : Inconsistent redefinition of variable 'f'",
    ),
    "lasting": (
        kernel(
            (
                ".global .u32 g = 5; { .const .u32 g = 6; ld.const.u32 %r1, [g]; } cvta.global.u64 %rd2, g; "
                ".shared .align 16 .b8 s[16]; .global .align 16 .b8 h[16]; cp.async.ca.shared.global [s], [h], "
                "16; st.global.u64 [%rd1], %rd2;"
            ),
            ".global .u32 g = 4;",
        ),
        "",
    ),
}


def old_texture(declared: str, coordinates: str, version: str = "1.4", target: str = "sm_13") -> str:
    """A kernel that reads `p` as PTX 1.x does; the declaration is on line 3, the access on line 6."""
    return (
        f".version {version}\n.target {target}\n{declared}\n.entry k (.param .u64 out)\n{{ .reg .f32 "
        f"%f<9>; .reg .u64 %d<3>;\n"
        f"tex.2d.v4.f32.f32 {{%f5,%f6,%f7,%f8}}, [p, {{{coordinates}}}];\nld.param.u64 %d1, [out]; "
        f"st.global.f32 [%d1], %f5; exit; }}\n"
    )


TEXTURES = {
    "old": (old_texture(".tex .u64 p, q;", "%f1,%f2,%f3,%f3"), ""),
    "old_short": (old_texture(".visible .tex .u32 p;", "%f1,%f2"), ""),
    "old_type": (
        old_texture(".tex .b64 p;", "%f1,%f2"),
        "ptxas FILE, line 3; error   : Variable 'p' must be type .u32 or .u64",
    ),
    "old_gone": (
        old_texture(".tex .u64 p;", "%f1,%f2", "3.2", "sm_20"),
        "ptxas FILE, line 3; error   : Deprecated feature: '.tex' not supported as of PTX version 1.5",
    ),
    "handle": (
        kernel(
            (
                "mov.u64 %rd2, t; tex.1d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%rd2, {%f1}]; st.global.f32 [%rd1], "
                "%f1; mov.u64 %rd3, s; st.global.u64 [%rd1], %rd3;"
            ),
            ".global .texref t; .global .surfref s;",
        ),
        "",
    ),
    "names": (module(".global .texref T<2>;"), ""),
}
#: Contents that nothing reads, or that only debuggers use, cause no error.
UNREAD = {
    "products": (
        kernel(
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1,%f2,%f3,%f4}, %rd1, %rd2, 1, 1, 1, 0, 0;",
            target="sm_90a",
        ),
        "",
    ),
    "prefetch": (kernel("ld.param.u64 %rd1, [p]; prefetch.L2::evict_normal [%rd1];"), ""),
    "invalid": (kernel("ld.param.u64 %rd1, [p]; mbarrier.inval.b64 [%rd1];", target="sm_80"), ""),
}
CASES = {
    **UNREAD,
    **RANGES,
    **DECLARATIONS,
    **CONSTANTS,
    **ADDRESSES,
    **SUMS,
    **BOUNDS,
    **OPERANDS,
    **PRAGMAS,
    **SIZES,
    **TEXTURES,
}
#: Accepted with a warning.
WARNED = frozenset(("registers", "registers_many", "blocks", "threads", "last_first", "narrow_16"))


def options(text: str) -> list[str]:
    return ["-arch", arch_of("", text.encode())]


@pytest.mark.parametrize("name", CASES)
def test_verdict_and_first_line(name: str) -> None:
    text, first = CASES[name]
    got = ours(text.encode(), options(text))
    assert (got.taken, got.first) == (not first or name in WARNED, first)


@pytest.mark.oracle
def test_ptxas_says_the_same(tmp_path: Path) -> None:
    oracle.require("ptxas")
    for name, (text, first) in CASES.items():
        got = theirs(text.encode(), options(text), tmp_path)
        assert (name, got.taken, got.first) == (name, not first or name in WARNED, first)


NEWER = module(".global .u32 g;", "9.9")


@pytest.mark.parametrize("text, line", [(NEWER, 1), (module("") + "\0\0", 6), (NEWER + "\0", 1)])
def test_newer_text_is_taken_on_request(text: str, line: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused as by ptxas; with the option, or its environment variable, accepted with a warning."""
    plain = ours(text.encode(), ["-arch", "sm_90"])
    assert not plain.taken
    asked = ours(text.encode(), ["-arch", "sm_90", "--accept-newer-ptx"])
    assert asked.taken
    assert any(said.startswith(f"ptxas FILE, line {line}; warning : ") for said in asked.lines)
    monkeypatch.setenv("ORIAS_ACCEPT_NEWER_PTX", "1")
    assert ours(text.encode(), ["-arch", "sm_90"]) == asked
    assert not ours(text.encode(), ["-arch", "sm_90", "-Werror"]).taken
    monkeypatch.setenv("ORIAS_ACCEPT_NEWER_PTX", "0")
    assert ours(text.encode(), ["-arch", "sm_90"]) == plain


@pytest.mark.parametrize(
    "text, message",
    [
        (module(".global .u32 g;", "9.9", "sm_930"), "Unsupported .target 'sm_930'"),
        (module(".newer .u32 g;", "10.0"), "Parsing error near '.newer'"),
        (module("", "8.9"), "Unsupported .version 8.9"),
        (module("").replace("ret", "\0ret"), "Unexpected EOF"),
    ],
)
def test_newer_text_must_be_known(text: str, message: str) -> None:
    got = ours(text.encode(), ["-arch", "sm_90", "--accept-newer-ptx"])
    assert not got.taken
    assert any(message in said for said in got.lines)


@pytest.mark.parametrize("count, crowded", [(8191, False), (8200, True)])
def test_more_globals_than_addresses(count: int, crowded: bool, tmp_path: Path) -> None:
    """Addresses that no code uses take no place in bank 4; ptxas says that it changes its mode."""
    text = kernel(
        "ld.global.u32 %r1, [g8000]; st.global.u32 [g5], %r1;", "".join(f".global .u32 g{n};" for n in range(count))
    )
    got = ours(text.encode(), ["-arch", "sm_90"])
    words = (
        "ptxas info    : Disabling default position-independent-code(pic) compilation mode as program requires "
        "more resources than allowed."
    )
    assert (got.taken, got.first) == (True, words if crowded else "")
    if oracle.find("ptxas") is not None:
        assert theirs(text.encode(), ["-arch", "sm_90"], tmp_path) == got


RECURSION = """.version 7.4
.target sm_80
.address_size 64
.func g();
.func f() { call g; ret; }
.func g() { call f; ret; }
.entry plain() { ret; }
.entry deep() { call f; ret; }
.entry pointer(.param .u64 q) { .reg .u64 %r; ld.param.u64 %r, [q]; P: .callprototype _ (); call %r, P; ret; }
"""
STACK = "ptxas warning : Stack size for entry function 'deep' cannot be statically determined"


@pytest.mark.parametrize("release", ["13.0", "13.5"])
@pytest.mark.parametrize(
    "words, warned",
    [("-g", True), ("", None), ("-g -suppress-stack-size-warning", False), ("-g -c", False), ("-g -w", False)],
)
def test_stacks_of_unknown_size(words: str, warned: bool | None, release: str, tmp_path: Path) -> None:
    """13.5 warns without -g too, and then about `alloca` and `stackrestore` as well."""
    asked = ["-arch", "sm_80", *words.split()]
    warned = release == "13.5" if warned is None else warned
    tool = "ptxas" if release == "13.0" else oracle.NEWER
    text = RECURSION + ".entry moves() { .reg .u64 %s; stackrestore.u64 %s; ret; }\n"
    expected = [STACK] * warned
    if warned and not words:
        expected.append(STACK.replace("deep", "moves"))
    got = ours(text.encode(), [*asked, "--release", release])
    assert sorted(said for said in got.lines if "Stack" in said) == sorted(expected)
    if oracle.find(tool) is not None:
        told = theirs(text.encode(), asked, tmp_path, tool)
        assert [said for said in told.lines if "Stack" in said] == [said for said in got.lines if "Stack" in said]


@pytest.mark.parametrize("size", [20_000_000, 1_000_000_000, 4_000_000_000])
def test_frames_of_any_size(size: int) -> None:
    """Accepted, although no launch gives a thread so much; a frame beyond 31 bits is recorded as the largest, so that
    no launch fits it."""
    got = ours(
        kernel(f".local .b8 l[{size}]; mov.u64 %rd2, l; st.global.u64 [%rd1], %rd2;").encode(), ["-arch", "sm_90", "-v"]
    )
    assert got.taken
    frame = next(int(said.split()[0]) for said in got.lines if "bytes stack frame" in said)
    assert frame == size or 1 << 30 < frame < 1 << 31 < size


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-maxntid", "256", "-minnctapersm", "4"], ["Value of minnctapersm for entry k is out of range"]),
        (["-maxntid", "256", "-minnctapersm", "4", "-override-directive-values"], []),
        (
            ["-maxntid", "1024", "-minnctapersm", "40", "-override-directive-values"],
            ["Value of minnctapersm for entry k is out of range"],
        ),
    ],
)
def test_the_command_line_overrides_blocks(words: list[str], said: list[str], tmp_path: Path) -> None:
    """The command line's threads and blocks count where it overrides the directives: ptxas's messages are ours."""
    data = kernel("", hints=".maxntid 128 .minnctapersm 40", target="sm_80").encode("latin-1")
    mine = ours(data, ["-arch", "sm_80", *words, "--release", "13.0"])
    assert [line.partition(": ")[2].partition(". ")[0] for line in mine.lines] == said
    if oracle.find("ptxas"):
        assert theirs(data, ["-arch", "sm_80", *words], tmp_path) == mine
