"""Single instructions against values computed by hand from the PTX manual, and the interpreter's refusals."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest

from stages.interpret.launch import InterpreterError, Module
from tests.cosim.forms.base import Form, module_text

F32_NAN = 0x7FFFFFFF


def f32(x: float) -> int:
    """Bits of a float."""
    return int(struct.unpack("<I", struct.pack("<f", x))[0])


def f64(x: float) -> int:
    """Bits of a double."""
    return int(struct.unpack("<Q", struct.pack("<d", x))[0])


def evaluate(opcode: str, *sources: int, dest: str = "r", widths: str = "") -> int:
    """The result of one instruction: registers by letter (h 16, r 32, d 64, p predicate), all of one kind unless
    `widths` says otherwise."""
    widths = widths or dest * len(sources)
    loads = {"h": "b16", "r": "b32", "d": "b64"}
    body = [f"ld.global.{loads[w]} %{w}{k}, [%in+{8 * k}];" for k, w in enumerate(widths)]
    operands = ", ".join(f"%{w}{k}" for k, w in enumerate(widths))
    body.append(
        f"{opcode} %{dest}30, {operands};"
        if "@" not in opcode
        else opcode.replace("@", operands).replace("$", f"%{dest}30")
    )
    body.append(
        "selp.u32 %t1, 1, 0, %p30; st.global.u32 [%out], %t1;"
        if dest == "p"
        else f"st.global.{loads[dest]} [%out], %{dest}30;"
    )
    n = max(len(sources), 1)
    form = Form(opcode, opcode, "\n".join(body), ["b64"] * n, ["b64"], "")
    module = Module(module_text([form], "sm_90"), "sm_90")
    data = np.array([[s & (1 << 64) - 1 for s in sources] or [0]], np.uint64)
    out = np.zeros((1, 1), np.uint64)
    module.launch("k0", (1, 1, 1), (1, 1, 1), [data, out, np.zeros(64, np.uint8)])
    return int(out[0, 0]) & {"p": 1, "h": 0xFFFF, "r": 0xFFFFFFFF, "d": (1 << 64) - 1}[dest]


INTEGER = [
    ("add.sat.s32", (0x7FFFFFFF, 1), 0x7FFFFFFF),
    ("sub.sat.s32", (0x80000000, 1), 0x80000000),
    ("mul.hi.s32", (0xFFFFFFFF, 2), 0xFFFFFFFF),
    ("mul.hi.u32", (0xFFFFFFFF, 2), 1),
    ("mul24.hi.u32", (0xFFFFFF, 0xFFFFFF), 0xFFFFFE00),
    ("mul24.lo.s32", (0xFFFFFF, 5), 0xFFFFFFFB),
    ("mad.hi.sat.s32", (0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF), 0x7FFFFFFF),
    ("sad.s32", (0xFFFFFFFE, 3, 10), 15),
    ("sad.u32", (0xFFFFFFFE, 3, 10), 0x5),
    ("div.s32", (0xFFFFFFF9, 2), 0xFFFFFFFD),
    ("rem.s32", (0xFFFFFFF9, 2), 0xFFFFFFFF),
    ("div.u32", (0xFFFFFFF9, 2), 0x7FFFFFFC),
    ("abs.s32", (0x80000000,), 0x80000000),
    ("clz.b32", (0,), 32),
    ("bfind.s32", (0xFFFFFFFF,), 0xFFFFFFFF),
    ("bfind.shiftamt.u32", (1,), 31),
    ("brev.b32", (1,), 0x80000000),
    ("fns.b32", (0b10110, 1, 2), 2),
    ("fns.b32", (0b10110, 4, 0xFFFFFFFE), 2),
    ("bfe.s32", (0xF0, 4, 4), 0xFFFFFFFF),
    ("bfe.s32", (0x80000000, 28, 8), 0xFFFFFFF8),
    ("bfe.u32", (0xABCD, 40, 4), 0),
    ("bfe.s32", (0x80000000, 40, 4), 0xFFFFFFFF),
    ("bfi.b32", (0xFF, 0, 28, 8), 0xF0000000),
    ("bfi.b32", (0xFF, 0x55, 3, 0), 0x55),
    ("szext.clamp.s32", (0x80, 8), 0xFFFFFF80),
    ("szext.wrap.u32", (0xFFFFFFFF, 32), 0),
    ("szext.clamp.u32", (0xFFFFFFFF, 32), 0xFFFFFFFF),
    ("bmsk.clamp.b32", (4, 8), 0xFF0),
    ("bmsk.clamp.b32", (32, 8), 0),
    ("bmsk.wrap.b32", (28, 8), 0xF0000000),
    ("shl.b32", (1, 32), 0),
    ("shr.s32", (0x80000000, 100), 0xFFFFFFFF),
    ("shf.l.clamp.b32", (0x12345678, 0x9ABCDEF0, 40), 0x12345678),
    ("shf.l.wrap.b32", (0x12345678, 0x9ABCDEF0, 40), 0xBCDEF012),
    ("shf.r.wrap.b32", (0x12345678, 0x9ABCDEF0, 8), 0xF0123456),
    ("prmt.b32", (0x33221100, 0x77665544, 0x8D40), 0x00004400),
    ("prmt.b32.f4e", (0x33221100, 0x77665544, 1), 0x44332211),
    ("prmt.b32.b4e", (0x33221100, 0x77665544, 1), 0x66770011),
    ("prmt.b32.ecl", (0x33221100, 0, 2), 0x33222222),
    ("prmt.b32.ecr", (0x33221100, 0, 1), 0x11111100),
    ("prmt.b32.rc16", (0x33221100, 0, 1), 0x33223322),
    ("cnot.b32", (0,), 1),
    ("dp4a.s32.s32", (0x80FF0102, 0x01010101, 100), (100 - 128 - 1 + 1 + 2) & 0xFFFFFFFF),
    ("dp2a.hi.u32.u32", (0x00020003, 0x0405FFFF, 1), 1 + 2 * 4 + 3 * 5),
    ("max.s16x2", (0x80000005, 0x00010004), 0x00010005),
    ("vadd.s32.s32.s32.sat", (0x7FFFFFFF, 1), 0x7FFFFFFF),
    ("vavrg4.u32.u32.u32", (0x01020304, 0x03040506, 0), 0x02030405),
    ("vabsdiff2.u32.u32.u32.add", (0x00050001, 0x00010005, 10), 18),
]  # fmt: skip


@pytest.mark.parametrize(("opcode", "sources", "want"), INTEGER)
def test_integer_instructions(opcode: str, sources: tuple[int, ...], want: int) -> None:
    """32-bit integer instructions."""
    assert evaluate(opcode, *sources) == want


SMALLEST = 2.0**-149
FLOAT = [
    ("add.f32", (f32(1.0), f32(2.0**-24)), f32(1.0)),
    ("add.rp.f32", (f32(1.0), f32(SMALLEST)), f32(1.0) + 1),
    ("add.rm.f32", (f32(1.0), f32(-1.0)), 0x80000000),
    ("add.rm.f32", (f32(1.0), f32(-SMALLEST)), f32(1.0) - 1),
    ("sub.rz.f32", (f32(-1.0), f32(SMALLEST)), f32(-1.0)),
    ("mul.rz.f32", (f32(3.4e38), f32(2.0)), 0x7F7FFFFF),
    ("mul.rn.f32", (f32(3.4e38), f32(-2.0)), 0xFF800000),
    ("mul.ftz.f32", (f32(2.0**-100), f32(-(2.0**-40))), 0x80000000),
    ("add.ftz.f32", (f32(SMALLEST), 0x80000001), 0),
    ("add.sat.f32", (f32(1.0), f32(0.5)), f32(1.0)),
    ("add.sat.f32", (f32(-1.0), f32(0.5)), 0),
    ("add.sat.f32", (F32_NAN, f32(0.5)), 0),
    ("fma.rn.f32", (f32(1 + 2.0**-23), f32(1 - 2.0**-23), f32(-1.0)), f32(-(2.0**-46))),
    ("div.rn.f32", (f32(1.0), f32(3.0)), 0x3EAAAAAB),
    ("div.rz.f32", (f32(1.0), f32(3.0)), 0x3EAAAAAA),
    ("div.rn.f32", (f32(SMALLEST), f32(2.0)), 0),
    ("div.rp.f32", (f32(SMALLEST), f32(2.0)), 1),
    ("div.rn.f32", (f32(0.0), f32(-0.0)), F32_NAN),
    ("sqrt.rn.f32", (f32(2.0),), 0x3FB504F3),
    ("sqrt.rp.f32", (f32(2.0),), 0x3FB504F4),
    ("sqrt.rn.f32", (f32(-0.0),), 0x80000000),
    ("rcp.rm.f32", (f32(3.0),), 0x3EAAAAAA),
    ("min.f32", (f32(-0.0), f32(0.0)), 0x80000000),
    ("max.f32", (F32_NAN, f32(2.0)), f32(2.0)),
    ("max.NaN.f32", (F32_NAN, f32(2.0)), F32_NAN),
    ("max.xorsign.abs.f32", (f32(-3.0), f32(2.0)), f32(-3.0)),
    ("copysign.f32", (f32(-1.0), f32(2.0)), f32(-2.0)),
    ("cvt.rni.s32.f32", (f32(2.5),), 2),
    ("cvt.rni.s32.f32", (f32(3.5),), 4),
    ("cvt.rzi.s32.f32", (f32(3e9),), 0x7FFFFFFF),
    ("cvt.rzi.u32.f32", (f32(-1.0),), 0),
    ("cvt.rzi.s32.f32", (F32_NAN,), 0),
    ("cvt.rn.f32.s32", (16777217,), f32(16777216.0)),
    ("cvt.rp.f32.s32", (16777217,), f32(16777218.0)),
    ("cvt.rna.tf32.f32", (0x3F801000,), 0x3F802000),
    ("fma.rn.f16x2", (0x3C004000, 0x42003C00, 0x00003C00), 0x42004200),
    ("slct.s32.s32", (1, 2, 0xFFFFFFFF), 2),
    ("slct.f32.f32", (1, 2, F32_NAN), 2),
    ("slct.f32.f32", (1, 2, 0x80000000), 1),
    ("set.lt.f32.s32", (0xFFFFFFFF, 1), f32(1.0)),
    ("ex2.approx.f32", (f32(3.0),), f32(8.0)),
]  # fmt: skip


@pytest.mark.parametrize(("opcode", "sources", "want"), FLOAT)
def test_float_instructions(opcode: str, sources: tuple[int, ...], want: int) -> None:
    """32-bit floats and conversions."""
    assert evaluate(opcode, *sources) == want


WIDE = [
    ("add.rp.f64", (f64(1.0), f64(5e-324)), "dd", "d", f64(1.0) + 1),
    ("fma.rn.f64", (f64(1 + 2.0**-52), f64(1 - 2.0**-52), f64(-1.0)), "ddd", "d", f64(-(2.0**-104))),
    ("div.rm.f64", (f64(1.0), f64(3.0)), "dd", "d", 0x3FD5555555555555),
    ("sqrt.rp.f64", (f64(2.0),), "d", "d", f64(math.sqrt(2.0)) + (0 if math.sqrt(2.0) ** 2 > 2 else 1)),
    ("cvt.rzi.s64.f32", (F32_NAN,), "r", "d", 1 << 63),
    ("cvt.rzi.s32.f64", (0x7FF8000000000000,), "d", "r", 0x80000000),
    ("cvt.rn.f32.u64", ((1 << 63) + (1 << 39) + 1,), "d", "r", f32(2.0**63) + 1),
    ("cvt.rn.f64.u64", ((1 << 64) - 1,), "d", "d", f64(2.0**64)),
    ("cvt.rz.f64.u64", ((1 << 64) - 1,), "d", "d", f64(2.0**64) - 1),
    ("cvt.s64.s16", (0x8000,), "h", "d", 0xFFFFFFFFFFFF8000),
    ("cvt.sat.u8.s32", (0xFFFFFFFF,), "r", "h", 0),
    ("cvt.sat.s8.s32", (1000,), "r", "h", 127),
    ("cvt.rn.f16.f32", (f32(65520.0),), "r", "h", 0x7C00),
    ("cvt.rz.f16.f32", (f32(65520.0),), "r", "h", 0x7BFF),
    ("cvt.rn.satfinite.e4m3x2.f32", (f32(1e9), f32(-0.5)), "rr", "h", 0x7EB0),
    ("cvt.rn.f16x2.e5m2x2", (0x3CC0,), "h", "r", 0x3C00C000),
    ("mul.wide.s16", (0x8000, 0x8000), "hh", "r", 0x40000000),
    ("mul.hi.s64", ((1 << 64) - 1, 2), "dd", "d", (1 << 64) - 1),
    ("mul.hi.u64", ((1 << 64) - 1, 2), "dd", "d", 1),
    ("bfe.s64", (1 << 63, 60, 8), "drr", "d", (1 << 64) - 8),
    ("popc.b64", ((1 << 64) - 1,), "d", "r", 64),
    ("max.bf16", (0xBF80, 0x7FC0), "hh", "h", 0xBF80),
    ("testp.normal.f32", (0,), "r", "p", 1),
    ("testp.subnormal.f32", (1,), "r", "p", 1),
    ("setp.ltu.f32", (F32_NAN, 0), "rr", "p", 1),
    ("setp.hi.u32", (0xFFFFFFFF, 1), "rr", "p", 1),
    ("setp.eq.ftz.f32", (1, 0x80000001), "rr", "p", 1),
]  # fmt: skip


@pytest.mark.parametrize(("opcode", "sources", "widths", "dest", "want"), WIDE)
def test_other_widths(opcode: str, sources: tuple[int, ...], widths: str, dest: str, want: int) -> None:
    """Instructions with operands of other or mixed widths."""
    assert evaluate(opcode, *sources, widths=widths, dest=dest) == want


def test_carry_chain() -> None:
    """add.cc, addc.cc, addc over 96 bits; sub.cc and subc borrow."""
    body = "add.cc.u32 %r3, %r0, %r0; addc.cc.u32 %r4, %r1, %r0; addc.u32 $, %r2, 0;"
    assert evaluate(body + " // @", 0xFFFFFFFF, 0, 7, widths="rrr") == 8
    body = "sub.cc.u32 %r3, %r0, %r1; subc.u32 $, %r2, %r0;"
    assert evaluate(body + " // @", 1, 2, 10, widths="rrr") == 8


HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"


def run(
    body: str, threads: int = 32, before: str = "", regs: str = "", words: int = 64, **options: object
) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    """A kernel with an output buffer of words at %out; returns it."""
    text = (
        f"{HEAD}{before}\n.visible .entry k(.param .u64 p)\n{{\n.reg .pred %p<9>; .reg .b32 %r<9>; "
        f".reg .b64 %d<9>, %out; {regs}\n"
        f"ld.param.u64 %out, [p]; mov.u32 %r0, %tid.x; mad.wide.u32 %d0, %r0, 4, %out;\n{body}\nret;\n}}\n"
    )
    out = np.zeros(words, np.uint32)
    Module(text).launch("k", (1, 1, 1), (threads, 1, 1), [out], **options)  # type: ignore[arg-type]
    return out


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("ld.global.u32 %r1, [%out+100000];", "address"),
        ("ld.global.u32 %r1, [%out+2];", "address"),
        ("L: bra L;", "limit"),
        ("trap;", "trap"),
        ("setp.eq.u32 %p1, %r0, 0; @%p1 bra A; bar.sync 0; bar.sync 1; ret; A: bar.sync 1; bar.sync 0;", "deadlock"),
        ("setp.eq.u32 %p1, %r0, 0; @%p1 bar.warp.sync 2;", "undefined"),
    ],
)
def test_faults(body: str, kind: str) -> None:
    """A forbidden action is refused with its kind and line, and never hangs."""
    with pytest.raises(InterpreterError) as caught:
        run(body, limit=20000)
    assert caught.value.kind == kind
    assert caught.value.line > 0


def test_recursion() -> None:
    """A function that calls itself to different depths in different threads."""
    before = """
    .func (.reg .b32 %ret) fact(.reg .b32 %n)
    { .reg .pred %q; .reg .b32 %m, %k;
      setp.le.u32 %q, %n, 1; mov.u32 %ret, 1; @%q ret;
      sub.u32 %m, %n, 1; call (%k), fact, (%m); mul.lo.u32 %ret, %k, %n; ret; }"""
    out = run("rem.u32 %r1, %r0, 8; call (%r2), fact, (%r1); st.global.u32 [%d0], %r2;", before=before)
    assert out[:8].tolist() == [1, 1, 2, 6, 24, 120, 720, 5040]


def test_threads_wait_for_each_other() -> None:
    """Every thread of a warp takes a lock in turn: spinning threads must not block the holder."""
    before = ".global .u32 lock; .global .u32 total;"
    body = """
    mov.u64 %d1, lock; mov.u64 %d2, total;
    L: atom.global.cas.b32 %r1, [%d1], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L;
    ld.volatile.global.u32 %r2, [%d2]; add.u32 %r2, %r2, 1; st.volatile.global.u32 [%d2], %r2;
    atom.global.exch.b32 %r1, [%d1], 0; st.global.u32 [%d0], %r2;"""
    assert sorted(run(body, before=before)[:32].tolist()) == list(range(1, 33))


def test_divergent_shuffle_and_vote() -> None:
    """Halves of a warp at different instructions: member masks keep them separate."""
    body = """
    setp.lt.u32 %p1, %r0, 16; @%p1 bra A;
    shfl.sync.bfly.b32 %r1, %r0, 1, 31, 0xFFFF0000; bra B;
    A: shfl.sync.down.b32 %r1, %r0, 2, 31, 0xFFFF;
    B: vote.sync.ballot.b32 %r2, %p1, 0xFFFFFFFF; add.u32 %r1, %r1, %r2; st.global.u32 [%d0], %r1;"""
    out = run(body)[:32].astype(np.int64) - 0xFFFF
    assert out[16:].tolist() == [k ^ 1 for k in range(16, 32)]
    assert out[:14].tolist() == [k + 2 for k in range(14)]


def test_indirect_call() -> None:
    """Functions by address: each thread calls its own."""
    before = """
    .func (.reg .b32 %o) twice(.reg .b32 %x)
    { add.u32 %o, %x, %x; ret; }
    .func (.reg .b32 %o) plus9(.reg .b32 %x)
    { add.u32 %o, %x, 9; ret; }"""
    body = """
    and.b32 %r1, %r0, 1; setp.eq.u32 %p1, %r1, 0; mov.u64 %d1, twice; mov.u64 %d2, plus9; selp.b64 %d3, %d1, %d2, %p1;
    P: .callprototype (.reg .b32 _) _ (.reg .b32 _);
    call (%r2), %d3, (%r0), P; st.global.u32 [%d0], %r2;"""
    assert run(body, before=before)[:32].tolist() == [2 * k if k % 2 == 0 else k + 9 for k in range(32)]


def test_a_copy_of_sixteen_bytes_needs_their_alignment() -> None:
    """However few bytes it reads (the manual): the hardware takes the low bits of the address as a count."""
    body = "add.s64 %d2, %out, 8; mov.u32 %r1, buffer; "
    copy = "cp.async.cg.shared.global [%r1], [%d2], 16, %r2;"
    head = ".shared .align 16 .b8 buffer[16];\n"
    with pytest.raises(InterpreterError, match="misaligned copy of 16 bytes"):
        run(body + "mov.u32 %r2, 8; " + copy, before=head)
    run(body + "mov.u32 %r2, 0; " + copy, before=head)  # nothing is read


def test_an_order_in_which_the_first_of_threads_wins() -> None:
    """32 threads store to one address: which of them wins is undefined."""
    body = "mov.u32 %r1, %tid.x; st.global.u32 [%out], %r1;"
    assert run(body, threads=32)[0] == 31
    assert run(body, threads=32, shuffled=1)[0] == 0


def test_sums_of_products_that_cancel_out_are_open() -> None:
    """1 * 1 + (-1) * 1 in the first row: the manual leaves the rounding of sums open, so a small number is also
    right."""
    regs = ".reg .f32 %f<9>;"
    body = """mov.u32 %r1, %tid.x; mov.b32 %r2, 0; setp.eq.u32 %p1, %r1, 0; selp.b32 %r2, 0xbc003c00, 0, %p1;
    mov.b32 %r3, 0x3c003c00; mov.f32 %f1, 0f00000000;
    mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f2, %f3, %f4, %f5}, {%r2, %r2}, {%r3}, {%f1, %f1, %f1, %f1};
    mov.b32 %r4, %f2; setp.eq.u32 %p1, %r1, 0; @%p1 st.global.u32 [%out], %r4;"""
    assert run(body, regs=regs)[0] == 0
    other = np.array([run(body, regs=regs, errors=1)[0]], np.uint32).view(np.float32)[0]
    assert 0 < abs(other) < 2.0**-19
