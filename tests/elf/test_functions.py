"""Functions of objects (-c) that were once wrong or refused. Values by hand or from Python's integers; ptxas's objects
are on the other side of the call."""

from __future__ import annotations

import tempfile
from collections.abc import Callable

import numpy as np
import pytest

from stages.simulate import Device
from tests import oracle
from tests.fuzz.links import linked, module, ours, theirs

ARCHES = ("75", "80", "90", "100", "120")
MASK = (1 << 64) - 1

_KERNEL = """.visible .entry k(.param .u64 in, .param .u64 out)
{{ .reg .b64 %in, %out, %x, %y; .reg .b32 %a, %b, %r<32>; ld.param.u64 %in, [in]; ld.param.u64 %out, [out];
{body} ret; }}
"""

# A 64-bit value of which only one half is ever written to a separate register.
GRAY = """.visible .func (.param .u64 r) f (.param .u64 a)
{ .reg .u64 %d<20>; ld.param.u64 %d0, [a];
shr.u64 %d1, %d0, 32; xor.b64 %d2, %d1, %d0; shr.u64 %d3, %d2, 16; xor.b64 %d4, %d3, %d2; st.param.u64 [r], %d4; ret; }
"""
PRODUCT = """.visible .func (.param .u64 r) f (.param .u64 a)
{ .reg .u64 %d<20>; .reg .u32 %r<4>; ld.param.u64 %d0, [a]; mov.b64 {%r0, %r1}, %d0;
cvt.s64.s32 %d1, %r0; cvt.s64.s32 %d2, %r1; mul.lo.s64 %d3, %d1, %d2; st.param.u64 [r], %d3; ret; }
"""
CALL_64 = """.extern .func (.param .u64 r) f (.param .u64 a);
""" + _KERNEL.format(
    body="""ld.global.b64 %x, [%in]; { .param .b64 p, q; st.param.b64 [p], %x; call (q), f, (p); \
ld.param.b64 %y, [q]; } st.global.b64 [%out], %y;"""
)


def _gray(x: int) -> int:
    x ^= x >> 32
    return x ^ x >> 16


def _product(x: int) -> int:
    low, high = ((w ^ 1 << 31) - (1 << 31) for w in (x & 0xFFFFFFFF, x >> 32))
    return low * high & MASK


def _run(image: bytes, given: np.ndarray, words: int) -> list[int]:  # type: ignore[type-arg]
    out = np.zeros(words, np.uint32)
    Device(image).launch("k", 1, 1, [given, out])
    return [int(x) for x in out]


@pytest.mark.oracle
@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(("text", "value"), [(GRAY, _gray), (PRODUCT, _product)], ids=["gray", "product"])
def test_one_half_of_a_pair(text: str, value: Callable[[int], int], arch: str) -> None:
    """Short live ranges are moved among the registers in use; a pair whose first register is unused stays in place."""
    oracle.require("ptxas", "nvlink")
    x = 0x89ABCDEF_80000001
    caller = theirs(CALL_64, arch, 3)
    for level in range(4):
        with tempfile.TemporaryDirectory() as folder:
            got = _run(linked([caller, ours(text, arch, level)], arch, folder), np.array([x], np.uint64), 2)
        assert got[0] | got[1] << 32 == value(x)


@pytest.mark.parametrize("arch", ARCHES)
def test_one_half_of_a_pair_compiles(arch: str) -> None:
    for level in (1, 3):
        assert ours(GRAY, arch, level) and ours(PRODUCT, arch, level)


LARGE = """.visible .func (.param .align ALIGN .b8 ret[80]) f (.param .b32 a, .param .bBITS b)
{ .reg .b32 %a, %r, %b32; .reg .b64 %b64; ld.param.b32 %r, [a]; ld.param.bBITS %bBITS, [b]; NARROW
STORES ret; }
"""
LARGE_CALLER = """.extern .func (.param .align ALIGN .b8 ret[80]) f (.param .b32 a, .param .bBITS b);
""" + _KERNEL.format(
    body="""ld.global.b32 %a, [%in]; ld.global.b32 %b, [%in+4]; cvt.u64.u32 %x, %b;
{ .param .b32 p; .param .bBITS q; .param .align ALIGN .b8 s[80]; st.param.b32 [p], %a; st.param.bBITS [q], SOURCE; \
call (s), f, (p, q);
LOADS }"""
)


@pytest.mark.oracle
@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(("align", "bits"), [(4, 32), (8, 64), (16, 32)])
def test_a_result_in_memory(align: int, bits: int, arch: str) -> None:
    """Its address takes only R4: the first argument is in R5, a following 64-bit one begins at R6."""
    oracle.require("ptxas", "nvlink")
    words = {
        "ALIGN": str(align), "BITS": str(bits), "SOURCE": "%x" if bits == 64 else "%b",
        "NARROW": "cvt.u32.u64 %a, %b64;" if bits == 64 else "mov.b32 %a, %b32;",
        "STORES": "".join([f"mad.lo.u32 %r, %r, {n + 3}, %a; st.param.b32 [ret+{4 * n}], %r;\n" for n in range(20)]),
        "LOADS": "".join([
            f"ld.param.b32 %r{n}, [s+{4 * n}]; st.global.b32 [%out+{4 * n}], %r{n};\n" for n in range(20)]),
    }  # fmt: skip
    caller, callee = LARGE_CALLER, LARGE
    for name, value in words.items():
        caller, callee = caller.replace(name, value), callee.replace(name, value)
    want, r = [], 5
    for n in range(20):
        r = (r * (n + 3) + 7) & 0xFFFFFFFF
        want.append(r)
    given = np.array([5, 7], np.uint32)
    for first, second in ((ours, theirs), (theirs, ours), (ours, ours), (theirs, theirs)):
        with tempfile.TemporaryDirectory() as folder:
            assert _run(linked([first(caller, arch, 3), second(callee, arch, 3)], arch, folder), given, 20) == want


NARROW = """.visible .func (.param .align ALIGN .b8 ret[SIZE]) fSIZE (.param .b32 a, .param .align ALIGN .b8 t[SIZE])
{ .reg .b32 %r; .reg .b16 %h; ld.param.b32 %r, [a];
STORES ret; }
"""


@pytest.mark.oracle
@pytest.mark.parametrize(("align", "sizes"), [(1, (49, 53)), (2, (50, 54)), (4, (49, 55))])
def test_a_result_in_memory_of_few_bytes(align: int, sizes: tuple[int, ...]) -> None:
    """The callee keeps to the result's alignment and size: the caller's place for it has no more (ptxas's callers
    put it after arguments on the stack)."""
    oracle.require("ptxas", "nvlink")
    callee, body, want = "", ".reg .b16 %h; ld.global.b32 %a, [%in];\n", []
    for n, size in enumerate(sizes):
        stores = [f"add.u32 %r, %r, {k + 1}; cvt.u16.u32 %h, %r; st.param.b8 [ret+{k}], %h;" for k in range(size)]
        one = NARROW.replace("ALIGN", str(align)).replace("SIZE", str(size))
        callee += one.replace("STORES", "\n".join(stores))
        body += f"{{ .param .b32 p; .param .align {align} .b8 s[{size}], t[{size}]; st.param.b32 [p], %a;\n"
        body += f"cvt.u16.u32 %h, %a; st.param.b8 [t+{size - 1}], %h; call (s), f{size}, (p, t);\n"
        for k in range(size):
            at = 4 * (n * sizes[0] + k)
            body += f"ld.param.b8 %h, [s+{k}]; cvt.u32.u16 %r0, %h; st.global.b32 [%out+{at}], %r0;\n"
            want.append(0x1241 + (k + 1) * (k + 2) // 2 & 0xFF)
        body += "}\n"
    caller = "".join([f".extern {line};\n" for line in callee.splitlines() if ".param .b32 a" in line])
    caller = caller.replace(".visible ", "") + _KERNEL.format(body=body)
    given = np.array([0x1241], np.uint32)
    for first, second in ((theirs, ours), (ours, theirs)):
        with tempfile.TemporaryDirectory() as folder:
            image = linked([first(caller, "90", 1), second(callee, "90", 1)], "90", folder)
            assert _run(image, given, len(want)) == want


SMALL = """.visible .func (.param .align 1 .b8 r[1]) f(.param .b32 a)
{ .reg .b32 %r<4>; .reg .b16 %h<4>; ld.param.b32 %r1, [a]; cvt.u16.u32 %h1, %r1; add.u16 %h2, %h1, 1; \
st.param.b8 [r+FIRST], %hA; st.param.b8 [r+SECOND], %hB; ret; }
"""
SMALL_CALLER = ".extern .func (.param .align 1 .b8 r[1]) f(.param .b32 a);\n" + _KERNEL.format(
    body=""".reg .b16 %h<4>; ld.global.b32 %a, [%in];
{ .param .b32 p; .param .align 1 .b8 q[1]; st.param.b32 [p], %a; call (q), f, (p); ld.param.b8 %h1, [q]; \
ld.param.b8 %h2, [q+1]; }
cvt.u32.u16 %r0, %h1; cvt.u32.u16 %r1, %h2; st.global.b32 [%out], %r0; st.global.b32 [%out+4], %r1;"""
)


@pytest.mark.oracle
@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("first", [0, 1])
def test_bytes_after_a_small_result(first: int, arch: str) -> None:
    """They are in the result's register and are kept, whichever comes first."""
    oracle.require("ptxas", "nvlink")
    text = (
        SMALL.replace("FIRST", str(first))
        .replace("SECOND", str(1 - first))
        .replace("%hA", f"%h{1 + first}")
        .replace("%hB", f"%h{2 - first}")
    )
    given = np.array([0x1241], np.uint32)
    for level in (0, 3):
        for one, other in ((ours, ours), (ours, theirs), (theirs, ours)):
            with tempfile.TemporaryDirectory() as folder:
                assert _run(
                    linked([one(SMALL_CALLER, arch, level), other(text, arch, level)], arch, folder), given, 2
                ) == [0x41, 0x42]


UNUSED = """.func (.param .b64 r) g (.param .b64 a)
{ .reg .b64 %a; ld.param.b64 %a, [a]; or.b64 %a, %a, 1; div.u64 %a, 77, %a; st.param.b64 [r], %a; ret; }
.global .align 8 .u64 pointer = g;
"""


@pytest.mark.oracle
@pytest.mark.parametrize("arch", ARCHES)
def test_the_linker_drops_a_function_with_a_helper(arch: str) -> None:
    """A division's routine is in its caller's section."""
    oracle.require("ptxas", "nvlink")
    x = 0x89ABCDEF_80000001
    with tempfile.TemporaryDirectory() as folder:
        got = _run(
            linked([ours(CALL_64, arch, 3), ours(GRAY + UNUSED, arch, 3)], arch, folder), np.array([x], np.uint64), 2
        )
    assert got[0] | got[1] << 32 == _gray(x)


def test_text_of_a_file() -> None:
    assert module("", "90").startswith(".version 8.0\n.target sm_90\n")


# A function called by pointer through a table, which calls a compiler-made routine.
POINTED = """.visible .func (.param .align 8 .b16 r[6]) f (.param .b32 p, .param .b8 q, .param .align 4 .b32 s[2], \
.param .f64 d)
{ .reg .b64 %x, %y; .reg .b32 %a, %b; .reg .b16 %h; ld.param.b32 %a, [p]; ld.param.b8 %h, [q]; cvt.u32.u16 %b, %h; \
add.u32 %a, %a, %b; ld.param.b32 %b, [s+4]; add.u32 %a, %a, %b;
ld.param.b64 %y, [d]; cvt.u64.u32 %x, %a; div.u64 %x, %y, %x; st.param.b64 [r], %x; ret; }
"""
BY_POINTER = """.extern .func (.param .align 8 .b16 r[6]) f (.param .b32 p, .param .b8 q, .param .align 4 .b32 s[2], \
.param .f64 d);
.global .u64 table[1] = {f};
""" + _KERNEL.format(
    body=""".reg .b16 %h; ld.global.b32 %a, [%in]; mov.u16 %h, 9; mov.b64 %y, 1000000007;
P: .callprototype (.param .align 8 .b16 _[6]) _ (.param .b32 _, .param .b8 _, .param .align 4 .b32 _[2], .param .f64 \
_); ld.global.u64 %x, [table];
{ .param .b32 p; .param .b8 q; .param .align 4 .b32 s[2]; .param .f64 d; .param .align 8 .b16 r[6]; \
st.param.b32 [p], %a; st.param.b8 [q], %h; st.param.b32 [s], %a; st.param.b32 [s+4], %a;
st.param.b64 [d], %y; call (r), %x, (p, q, s, d), P; ld.param.b64 %y, [r]; } st.global.b64 [%out], %y;"""
)


@pytest.mark.oracle
@pytest.mark.parametrize("arch", ARCHES)
def test_signatures_of_calls_by_pointer(arch: str) -> None:
    """The linker compares them as texts: if they differ it drops what the called function calls."""
    oracle.require("ptxas", "nvlink")
    for first, second in ((ours, theirs), (theirs, ours)):
        with tempfile.TemporaryDirectory() as folder:
            got = _run(
                linked([first(BY_POINTER, arch, 3), second(POINTED, arch, 3)], arch, folder),
                np.array([5], np.uint32),
                2,
            )
        assert got == [1000000007 // 19, 0]
