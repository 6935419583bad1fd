"""Instructions of PTX 9.1 to 9.5: values of our cubin and of ptxas 13.5's in the simulator, and the interpreter's,
against Python's integers."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from orchestrator.api import ChainError, compile_ptx
from stages.interpret.launch import Module
from stages.simulate import Device
from tests import oracle

M64 = (1 << 64) - 1
THREADS = 64
Fn = Callable[[int, int, int], int]


def lanes(bits: int, signed: bool, fn: Callable[[int, int], int], clamp: bool = False) -> Fn:
    """A function of elements, applied to those of a word."""

    def element(x: int, at: int) -> int:
        v = x >> at & (1 << bits) - 1
        return v - (1 << bits) if signed and v >> bits - 1 else v

    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)

    def whole(a: int, b: int, c: int) -> int:
        out = 0
        for at in range(0, 32, bits):
            r = fn(element(a, at), element(b, at))
            r = min(max(r, low), high) if clamp else r
            out |= (r & (1 << bits) - 1) << at
        return out

    return whole


def polynomial(a: int, b: int) -> int:
    """Product over GF(2)."""
    out = 0
    for i in range(64):
        out ^= (a << i) * (b >> i & 1)
    return out


def brains(format_: str, scaled: bool, relu: bool = False, finite: bool = False) -> Fn:
    """Two codes (ml_dtypes', or eighths of eighths), times powers of two, as bfloat16 of ml_dtypes."""

    def one(code: int, power: int) -> int:
        if format_ == "s2f6":
            x = (code - 256 if code & 128 else code) / 64
        else:
            x = float(np.array([code], np.uint8).view(getattr(ml_dtypes, format_))[0])
        x *= math.nan if power == 255 else 2.0 ** (power - 127)
        x = 0.0 if relu and x <= 0 else x
        with np.errstate(over="ignore"):
            bits = int(np.array([x]).astype(ml_dtypes.bfloat16).view(np.uint16)[0])
        if finite and bits & 0x7FFF == 0x7F80:
            bits -= 1
        return 0x7FFF if math.isnan(x) else bits

    def whole(a: int, b: int, c: int) -> int:
        powers = (b & 255, b >> 8 & 255) if scaled else (127, 127)
        return one(a & 255, powers[0]) | one(a >> 8 & 255, powers[1]) << 16

    return whole


@cache
def values_of(format_: str) -> dict[int, float]:
    """The numbers of a narrow format by code: ml_dtypes', or five bits of exponent and three of mantissa."""
    if format_ == "ue5m3":
        return {c: (c % 8 / 8 + (c > 7)) * 2.0 ** (max(c >> 3, 1) - 15) for c in range(255)}
    kind = getattr(ml_dtypes, {"e4m3": "float8_e4m3fn", "e2m1": "float4_e2m1fn"}.get(format_, f"float8_{format_}"))
    codes = range(16 if format_ == "e2m1" else 256)
    found = {c: float(np.array([c], np.uint8).view(kind)[0]) for c in codes}
    return {c: x for c, x in found.items() if math.isfinite(x)}


def nearest(x: float, format_: str, mode: str = "rn", positive: bool = False) -> int:
    """The code of a number, with overflow to the largest: by search among all numbers of the format."""
    table = values_of(format_)
    if math.isnan(x):
        return {"e2m1": 7, "ue5m3": 255}.get(format_, 0x7F)
    x = abs(x) if format_ == "ue5m3" else x
    top = max(table.values())
    x = math.copysign(min(abs(x), top), x)
    same = [c for c, v in table.items() if math.copysign(1, v) == math.copysign(1, x)]
    if mode == "rz":
        code = max((c for c in same if abs(table[c]) <= abs(x)), key=lambda c: abs(table[c]))
    else:  # ties to the even code
        code = min(same, key=lambda c: (abs(Fraction(table[c]) - Fraction(x)), c & 1))
    return 0 if positive and table[code] == 0 else code


def single(bits: int) -> float:
    return float(np.array([bits & 0xFFFFFFFF], np.uint32).view(np.float32)[0])


def narrowed(format_: str, mode: str = "rn", positive: bool = False, scaled: bool = False) -> Fn:
    """Two floats (the first above the second) as codes, divided by the power of two in the third word's low byte."""

    def one(x: float, power: int) -> int:
        if scaled:
            x = math.nan if power == 255 else (0.0 * x if abs(x) < 2.0**-126 else x) * 2.0 ** (127 - power)
        return nearest(x, format_, mode, positive)

    bits = 4 if format_ == "e2m1" else 8
    return lambda a, b, c: one(single(a), c & 255) << bits | one(single(b), c & 255)


def rounded(x: Fraction | float) -> int:
    """Bits of the nearest float32 of an exact number."""
    if isinstance(x, float):  # not finite
        return 0x7FFFFFFF if math.isnan(x) else 0x7F800000 | (x < 0) << 31
    with np.errstate(over="ignore"):
        near = np.float32(float(x)) if abs(x) < 2**128 else np.float32(math.copysign(math.inf, float(x > 0) - 0.5))
    around = [near, np.nextafter(near, np.float32(-math.inf)), np.nextafter(near, np.float32(math.inf))]
    finite = [y for y in around if np.isfinite(y)]
    best = min(finite, key=lambda y: (abs(Fraction(float(y)) - x), int(y.view(np.uint32)) & 1))
    return int((near if abs(x) >= (2**25 - 1) * 2**103 else best).view(np.uint32))


def mixed_pairs(kind: str, fn: Callable[..., Fraction | float]) -> Fn:
    """A function of a half and one or two floats, on pairs."""
    half = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}[kind]

    def one(first: int, *others: int) -> int:
        values = [float(np.array([first], np.uint16).view(half)[0]), *[single(x) for x in others]]
        if all(map(math.isfinite, values)):
            exact = fn(*map(Fraction, values))
            if exact:
                return rounded(exact)
        with np.errstate(all="ignore"):
            r = float(fn(*[np.float64(v) for v in values]))
        return rounded(r) if not math.isfinite(r) else int(np.float32(r).view(np.uint32))

    return lambda a, b, c: one(a & 0xFFFF, b, c) | one(a >> 16 & 0xFFFF, b >> 32, c >> 32) << 32


def fours(formats: tuple[str, ...], bits: tuple[int, ...], fn: Callable[..., float]) -> Fn:
    """A function of four narrow numbers, clamped into the first format; distances of the numbers in their registers."""

    def whole(*words: int) -> int:
        out = 0
        for k in range(4):
            x = []
            for word, name, apart in zip(words, formats[1:], bits, strict=False):
                code = word >> apart * k & (15 if name == "e2m1" else 255)
                table = values_of(name)
                special = math.inf * (-1) ** (code >> 7) if name == "e5m2" and code & 127 == 124 else math.nan
                x.append(table.get(code, special))
            with np.errstate(invalid="ignore"):
                r = float(fn(*map(np.float64, x)))
            out |= nearest(r, formats[0]) << 8 * k
        return out

    return whole


def narrow(form: str) -> str:
    """A conversion of the lower half of a word, by that of another form."""
    return f"cvt.u16.u32 %x, {{1}}; cvt.u16.u32 %y, {{2}}; cvt.rn.{form}"


def widened(form: str) -> str:
    """A conversion to a pair of codes, as a word."""
    return f"cvt.{form}; cvt.u32.u16 {{0}}, %x"


# Instruction, registers (d, a, b, c), the value, targets.
_ADD, _SUB = (lambda x, y: x + y), (lambda x, y: x - y)
R, D = ("%r0", "%r1", "%r2", "%r3"), ("%rd0", "%rd1", "%rd2", "%rd3")
PACKED, NARROW = ("120a", "107a"), ("107a", "120a")
FORMS: dict[str, tuple[tuple[str, ...], Fn, tuple[str, ...]]] = {
    "add.u8x4 {0}, {1}, {2}": (R, lanes(8, False, _ADD), PACKED),
    "add.sat.u8x4 {0}, {1}, {2}": (R, lanes(8, False, _ADD, True), PACKED),
    "add.sat.s8x4 {0}, {1}, {2}": (R, lanes(8, True, _ADD, True), PACKED),
    "sub.s8x4 {0}, {1}, {2}": (R, lanes(8, True, _SUB), PACKED),
    "sub.sat.u8x4 {0}, {1}, {2}": (R, lanes(8, False, _SUB, True), PACKED),
    "sub.sat.s8x4 {0}, {1}, {2}": (R, lanes(8, True, _SUB, True), PACKED),
    "add.sat.u16x2 {0}, {1}, {2}": (R, lanes(16, False, _ADD, True), PACKED),
    "add.sat.s16x2 {0}, {1}, {2}": (R, lanes(16, True, _ADD, True), PACKED),
    "add.sat.u32 {0}, {1}, {2}": (R, lanes(32, False, _ADD, True), PACKED),
    "min.u8x4 {0}, {1}, {2}": (R, lanes(8, False, min), PACKED),
    "max.s8x4 {0}, {1}, {2}": (R, lanes(8, True, max), PACKED),
    "min.relu.s8x4 {0}, {1}, {2}": (R, lanes(8, True, lambda x, y: max(0, min(x, y))), PACKED),
    "max.u8x4 {0}, {1}, {2}": (R, lanes(8, False, max), PACKED),
    "neg.s8x4 {0}, {1}": (R, lanes(8, True, lambda x, y: -x), PACKED),
    "clmad.lo.u64 {0}, {1}, {2}, {3}": (D, lambda a, b, c: polynomial(a, b) & M64 ^ c, ("80", "90", "100a", "120a")),
    "clmad.hi.u64 {0}, {1}, {2}, {3}": (D, lambda a, b, c: polynomial(a, b) >> 64 ^ c, ("80", "90", "107a")),
    "clmad.hi.u64 {0}, {1}, {2}, 7": (D, lambda a, b, c: polynomial(a, b) >> 64 ^ 7, ("90", "120a")),
    narrow("bf16x2.e4m3x2 {0}, %x"): (R, brains("float8_e4m3fn", False), NARROW),
    narrow("relu.bf16x2.e5m2x2 {0}, %x"): (R, brains("float8_e5m2", False, relu=True), NARROW),
    narrow("scaled::n2::ue8m0.bf16x2.e4m3x2 {0}, %x, %y"): (R, brains("float8_e4m3fn", True), NARROW),
    narrow("satfinite.relu.scaled::n2::ue8m0.bf16x2.e5m2x2 {0}, %x, %y"): (
        R, brains("float8_e5m2", True, True, True), NARROW
    ),
    narrow("scaled::n2::ue8m0.bf16x2.s2f6x2 {0}, %x, %y"): (R, brains("s2f6", True), NARROW),
    "set.lt.s8x4 {0}, {1}, {2}": (R, lanes(8, True, lambda x, y: -(x < y)), ("107a",)),
    "set.hs.u16x2 {0}, {1}, {2}": (R, lanes(16, False, lambda x, y: -(x >= y)), ("107a",)),
    "add.rn.f32x2.f16x2.f32x2 {0}, %r1, {2}": (D, mixed_pairs("f16", lambda x, y, _: x + y), ("107a",)),
    "sub.f32x2.bf16x2.f32x2 {0}, %r1, {2}": (D, mixed_pairs("bf16", lambda x, y, _: x - y), ("107a",)),
    "fma.rn.f32x2.f16x2.f32x2.f32x2 {0}, %r1, {2}, {3}": (D, mixed_pairs("f16", lambda x, y, z: x * y + z), ("107a",)),
    widened("rz.satfinite.e4m3x2.f32 %x, {1}, {2}"): (R, narrowed("e4m3", "rz"), ("107a",)),
    widened("rn.satfinite.pzo.e5m2x2.f32 %x, {1}, {2}"): (R, narrowed("e5m2", "rn", True), ("107a",)),
    widened("rn.satfinite.ue5m3x2.f32 %x, {1}, {2}"): (R, narrowed("ue5m3"), ("107a",)),
    "cvt.u8.u32 %z, {3}; " + widened("rz.satfinite.pzo.scaled::n1::ue8m0.e4m3x2.f32 %x, {1}, {2}, %z"): (
        R, narrowed("e4m3", "rz", True, True), ("107a",)
    ),
    "add.rn.satfinite.e4m3x4.e5m2x4 {0}, {1}, {2}": (
        R, fours(("e4m3", "e5m2", "e4m3"), (8, 8), lambda x, y: x + y), ("100a",)
    ),
    "sub.satfinite.e5m2x4.e2m1p4x4 {0}, {1}, {2}": (
        R, fours(("e5m2", "e2m1", "e5m2"), (8, 8), lambda x, y: x - y), ("100a",)
    ),
    "fma.rn.satfinite.e4m3x4.e4m3x4.e2m1p4x4 {0}, {1}, {2}, {3}": (
        R, fours(("e4m3", "e4m3", "e2m1", "e4m3"), (8, 8, 8), lambda x, y, z: x * y + z), ("100a",)
    ),
    "ld.proxy::readonly.u32 {0}, [%rd8+8]": (R, lambda a, b, c: b, ("90", *NARROW)),
}  # fmt: skip


def module(target: str) -> tuple[str, list[str]]:
    """A kernel with every form of a target: inputs in groups of four quadwords, one output quadword for each form."""
    forms = [f for f, (_, _, targets) in FORMS.items() if target in targets]
    body = ""
    for k, form in enumerate(forms):
        d, *inputs = FORMS[form][0]
        body += f"{form.format(d, *inputs)};\n"
        body += (
            f"st.global.u64 [%rd9+{8 * k}], {d};\n"
            if d[2] == "d"
            else f"cvt.u64.u32 %rd0, {d}; st.global.u64 [%rd9+{8 * k}], %rd0;\n"
        )
    text = f""".version 9.5
.target sm_{target}
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 q) {{
.reg .b32 %r<8>; .reg .b64 %rd<12>; .reg .b16 %x, %y; .reg .b8 %z;
ld.param.u64 %rd8, [p]; ld.param.u64 %rd9, [q]; mov.u32 %r7, %tid.x;
mad.wide.u32 %rd8, %r7, 32, %rd8; mad.wide.u32 %rd9, %r7, {8 * len(forms)}, %rd9;
ld.global.v2.u64 {{%rd1, %rd2}}, [%rd8]; ld.global.u64 %rd3, [%rd8+16];
cvt.u32.u64 %r1, %rd1; cvt.u32.u64 %r2, %rd2; cvt.u32.u64 %r3, %rd3;
{body}ret; }}
"""
    return text, forms


def given() -> np.ndarray:
    """Bytes at their limits, and random ones."""
    rng = random.Random(7)
    special = (0, M64, 0x8080808080808080, 0x7F7F7F7F7F7F7F7F, 0x0180FF7F00017FFE, 1, 1 << 63)
    word = lambda: rng.choice(special) if rng.random() < 0.3 else rng.getrandbits(64)  # noqa: E731
    return np.array([word() for _ in range(4 * THREADS)], np.uint64)


def check(target: str, run: Callable[[str, np.ndarray, np.ndarray], None]) -> None:
    """Run the kernel somehow and compare with Python's integers."""
    text, forms = module(target)
    data = given()
    out = np.zeros(THREADS * len(forms), np.uint64)
    run(text, data, out)
    for k, form in enumerate(forms):
        fn = FORMS[form][1]
        mask = M64 if FORMS[form][0] is D else (1 << 32) - 1
        for t in range(THREADS):
            a, b, c = (int(x) & mask for x in data[4 * t : 4 * t + 3])
            assert int(out[t * len(forms) + k]) == fn(a, b, c) & mask, (form, t, hex(a), hex(b), hex(c))


TARGETS = ("80", "90", "100a", "107a", "120a")


@pytest.mark.parametrize("target", TARGETS)
def test_values_of_ours(target: str) -> None:
    def run(text: str, data: np.ndarray, out: np.ndarray) -> None:
        image = compile_ptx(text, f"sm_{target}")
        Device(image).launch("k", 1, THREADS, [data, out], strict=True)

    check(target, run)


@pytest.mark.parametrize("target", ("90", "100a", "107a", "120a"))
def test_values_of_the_interpreter(target: str) -> None:
    def run(text: str, data: np.ndarray, out: np.ndarray) -> None:
        Module(text, f"sm_{target}").launch("k", (1, 1, 1), (THREADS, 1, 1), [data, out])

    check(target, run)


@pytest.mark.oracle
@pytest.mark.parametrize("target", TARGETS)
def test_values_of_ptxas(target: str) -> None:
    oracle.require(oracle.NEWER)

    def run(text: str, data: np.ndarray, out: np.ndarray) -> None:
        cubin = oracle.compile_ptx(text, target, tool=oracle.NEWER)
        assert isinstance(cubin, Path), cubin
        Device(cubin.read_bytes()).launch("k", 1, THREADS, [data, out])

    check(target, run)


def test_nibbles_with_their_sign() -> None:
    """ldmatrix `.s8.s4`: thread 4g + t has columns 4t to 4t + 3 of row g of each matrix; a row has eight bytes."""
    text = """.version 9.4
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 q) {
.reg .b32 r<8>; .reg .b64 a, b, w; .shared .align 16 .b8 s[256];
ld.param.u64 a, [p]; ld.param.u64 b, [q]; mov.u32 r0, %tid.x; mul.wide.u32 w, r0, 8; add.u64 a, a, w;
ld.global.u64 w, [a]; mov.u32 r1, s; mad.lo.u32 r1, r0, 8, r1; st.shared.u64 [r1], w; bar.sync 0;
ldmatrix.sync.aligned.m8n16.x4.shared.s8.s4 {r2, r3, r4, r5}, [r1];
mad.wide.u32 b, r0, 16, b; st.global.v4.u32 [b], {r2, r3, r4, r5}; ret; }
"""
    rows = given()[:32]
    nibbles = (rows[:, None] >> np.arange(0, 64, 4, dtype=np.uint64) & np.uint64(15)).astype(np.int8)
    nibbles = np.where(nibbles > 7, nibbles - 16, nibbles).astype(np.int8)
    words = np.ascontiguousarray(nibbles).view(np.uint32).reshape(4, 32)  # matrix, thread
    for run in ("simulator", "interpreter"):
        out = np.zeros((32, 4), np.uint32)
        if run == "simulator":
            Device(compile_ptx(text, "sm_90a")).launch("k", 1, 32, [rows, out], strict=True)
        else:
            Module(text, "sm_90a").launch("k", (1, 1, 1), (32, 1, 1), [rows, out])
        assert np.array_equal(out, words.T), run


def test_angles_in_turns() -> None:
    """`.2pi` of PTX 9.5: MUFU takes turns, so nothing is multiplied (as in ptxas 13.5's code)."""
    text = """.version 9.5
.target sm_90
.address_size 64
.entry k(.param .u64 p) { .reg .b64 %p; .reg .f32 %f<3>; .reg .b32 %t; ld.param.u64 %p, [p]; mov.u32 %t, %tid.x;
mad.wide.u32 %p, %t, 12, %p; ld.global.f32 %f0, [%p]; sin.approx.ftz.2pi.f32 %f1, %f0; cos.approx.ftz.2pi.f32 %f2, %f0;
st.global.f32 [%p+4], %f1; st.global.f32 [%p+8], %f2; ret; }
"""
    for run in (
        lambda data: Device(compile_ptx(text, "sm_90")).launch("k", 1, 32, [data], strict=True),
        lambda data: Module(text, "sm_90").launch("k", (1, 1, 1), (32, 1, 1), [data]),
    ):
        data = np.zeros((32, 3), np.float32)
        data[:, 0] = np.arange(32) / 16 - 1
        run(data)
        angle = 2 * np.pi * data[:, 0].astype(np.float64)
        assert np.abs(data[:, 1] - np.sin(angle)).max() < 1e-5
        assert np.abs(data[:, 2] - np.cos(angle)).max() < 1e-5


@pytest.mark.oracle
def test_results_in_wider_registers() -> None:
    """The words of a destination above a conversion's result are zero, as in ptxas's code."""
    oracle.require(oracle.NEWER)
    text = """.version 9.0
.target sm_100
.address_size 64
.entry k(.param .u64 p) { .reg .b64 %p, %a, %x<4>; .reg .b128 %q; .reg .f64 %d; .reg .f32 %f; .reg .b16 %h;
.reg .b32 %t; ld.param.u64 %p, [p]; mov.u32 %t, %tid.x; mad.wide.u32 %p, %t, 48, %p; ld.global.u64 %a, [%p];
mov.b64 %d, %a; cvt.u16.u64 %h, %a; cvt.u32.u64 %t, %a; mov.b32 %f, %t;
cvt.rn.f32.f64 %x0, %d; cvt.rn.f32.u64 %x1, %a; cvt.f32.f16 %x2, %h; cvt.rn.f16.f32 %x3, %f;
st.global.v2.u64 [%p], {%x0, %x1}; st.global.v2.u64 [%p+16], {%x2, %x3}; ret; }
"""
    cubin = oracle.compile_ptx(text, "100a", tool=oracle.NEWER)
    assert isinstance(cubin, Path), cubin
    results = []
    for image in (compile_ptx(text, "sm_100"), cubin.read_bytes()):
        data = np.zeros((32, 6), np.uint64)
        data[:, 0] = [random.Random(t).getrandbits(64) for t in range(32)]
        Device(image).launch("k", 1, 32, [data])
        results.append(data)
    assert (results[0] == results[1]).all() and (results[0][:, 0] >> np.uint64(32) == 0).all()
    wide = text[: text.index("cvt.rn.f32.f64")] + "cvt.f64.f16 %q, %h; st.global.b128 [%p], %q; ret; }"
    data = np.full((32, 6), 0x7FFF3C00, np.uint64)
    Device(compile_ptx(wide, "sm_100")).launch("k", 1, 32, [data])
    assert data[0, :2].tolist() == [0x3FF0000000000000, 0]


@pytest.mark.parametrize(
    ("line", "target", "said"),
    [
        ("fabric.try_atom.async;", "sm_100a", "Instruction 'fabric.try_atom.async' not supported by orias"),
        # ptxas 13.5's words (its order of gates, and what it calls by types)
        (
            "{ .reg .b16 %h; cvt.rz.ue5m3x2.f32 %h, %f, %f; }",
            "sm_75",
            "Instruction 'cvt with .ue5m3x2' not supported on .target 'sm_75'",
        ),
        (
            "{ .reg .b8 %b; cvt.rz.satfinite.pzo.e2m1x2.f32 %b, %f, %f; }",
            "sm_90a",
            "line 4; error   : Feature 'cvt.e2m1x2.f32' not supported on .target 'sm_90a'",
        ),
        (
            "{ .reg .b32 %r; set.lt.s8x4 %r, %r, %r; }",
            "sm_80",
            "Instruction 'set.s8x4' not supported on .target 'sm_80'",
        ),
        (
            "{ .reg .b64 %d; .reg .b32 %r; .reg .pred %p; "
            "tcgen05.mma.cta_group::1.kind::f16.collector::b::fill [%r], %d, %d, %r, %p; }",
            "sm_100a",
            "Illegal modifier '.collector::b::fill' for instruction 'tcgen05.mma'",
        ),
        (
            "{ .reg .b32 %r; .reg .b64 %d; fabric.try_get.async.shared::cta.mbarrier::complete_tx::bytes."
            "mbarrier::report::fabric.relaxed.b128 [%r], [%r, %d], %r, [%r]; }",
            "sm_100a",
            "Modifier '.relaxed' requires scope with 'fabric.try_get.async' instruction",
        ),
        ("fabric.submit;", "sm_90", "Feature 'fabric.submit' not supported on .target 'sm_90'"),
        ("spcompress.x;", "sm_107a", "Instruction 'spcompress.x' not supported by orias"),
        ("add.alloc_class.f32 %f, %f, %f;", "sm_107a", "Modifier '.alloc_class' of 'add' not supported by orias"),
    ],
)
def test_refused_by_name(line: str, target: str, said: str) -> None:
    text = f".version 9.5\n.target {target}\n.address_size 64\n.entry k() {{ .reg .f32 %f; {line} ret; }}\n"
    with pytest.raises(ChainError, match=re.escape(said)):
        compile_ptx(text, target)


def directed(x: Fraction, mode: str) -> int:
    """A bfloat16 (no NaN, no infinity) by exact arithmetic: the neighbour of a number on one side, by bisection."""
    towards_zero = mode == "rz" or (mode == "rm") == (x >= 0)
    low, high = 0, 0x7F80  # magnitudes grow with their codes
    while high - low > 1:
        half = (low + high) // 2
        low, high = (half, high) if magnitude(half) <= abs(x) else (low, half)
    code = low if towards_zero or magnitude(low) == abs(x) else high
    return code | (0x8000 if x < 0 else 0)


def magnitude(code: int) -> Fraction:
    """The number of a positive bfloat16."""
    exponent, digits = code >> 7, code & 127
    return Fraction(digits + 128 * bool(exponent)) * Fraction(2) ** (max(exponent, 1) - 134)


@pytest.mark.parametrize("target", ("80", "107a"))
def test_directed_sums_of_brains(target: str) -> None:
    """fma.rz/.rm/.rp of bfloat16, scalar and in pairs: ptxas takes them, and computes something else."""
    forms = [f"{mode}{relu}" for mode in ("rz", "rm", "rp") for relu in ("", ".relu")]
    one = "".join(
        f"fma.{form}.bf16x2 %r4, %r0, %r1, %r2; st.global.b32 [%rd0+{8 * k + 12}], %r4;\n"
        f"fma.{form}.bf16 %h3, %h0, %h1, %h2; cvt.u32.u16 %r4, %h3; st.global.b32 [%rd0+{8 * k + 16}], %r4;\n"
        for k, form in enumerate(forms)
    )
    arch = f"sm_{target}"
    text = f""".version 9.4
.target {arch}
.address_size 64
.entry k(.param .u64 p) {{ .reg .b64 %rd0; .reg .b32 %r<5>; .reg .b16 %h<4>, %g; ld.param.u64 %rd0, [p];
mov.u32 %r3, %tid.x; mad.wide.u32 %rd0, %r3, {4 * (3 + 2 * len(forms))}, %rd0;
ld.global.b32 %r0, [%rd0]; ld.global.b32 %r1, [%rd0+4]; ld.global.b32 %r2, [%rd0+8];
mov.b32 {{%h0, %g}}, %r0; mov.b32 {{%h1, %g}}, %r1; mov.b32 {{%h2, %g}}, %r2;
{one} ret; }}
"""
    rng = random.Random(3)
    data = np.zeros((THREADS, 3 + 2 * len(forms)), np.uint32)

    def near() -> int:
        return rng.choice((0, 0x8000)) | rng.choice((rng.randrange(0x3F00, 0x4100), rng.randrange(0x2F00)))

    data[:, :3] = np.array([[near() | near() << 16 for _ in range(3)] for _ in range(THREADS)])
    given = data[:, :3].copy()
    Device(compile_ptx(text, arch)).launch("k", 1, THREADS, [data], strict=True)
    for t in range(THREADS):
        for k, form in enumerate(forms):
            for lane in range(2):
                a, b, c = (int(x) >> 16 * lane & 0xFFFF for x in given[t])
                x, y, z = (magnitude(v & 0x7FFF) * (-1 if v >> 15 else 1) for v in (a, b, c))
                want = directed(x * y + z, form[:2])
                if form.endswith("relu") and want >> 15:
                    want = 0
                if x * y + z:
                    assert int(data[t, 3 + 2 * k]) >> 16 * lane & 0xFFFF == want, (form, lane, hex(a), hex(b), hex(c))
                    assert lane or int(data[t, 4 + 2 * k]) == want, (form, hex(a), hex(b), hex(c))


def test_a_property_that_is_not_named() -> None:
    """testp without a property, which ptxas takes: no number has it."""
    text = """.version 9.5
.target sm_90
.address_size 64
.entry k(.param .u64 p) { .reg .b64 %p; .reg .f32 %f; .reg .f64 %d; .reg .pred %q<2>; .reg .b32 %r;
ld.param.u64 %p, [p]; ld.global.f32 %f, [%p]; cvt.f64.f32 %d, %f; testp.f32 %q0, %f; testp.f64 %q1, %d;
selp.b32 %r, 1, 2, %q0; st.global.b32 [%p+4], %r; selp.b32 %r, 1, 2, %q1; st.global.b32 [%p+8], %r; ret; }
"""
    data = np.array([1.5, 0, 0], np.float32)
    Device(compile_ptx(text, "sm_90")).launch("k", 1, 1, [data], strict=True)
    assert list(data[1:].view(np.uint32)) == [2, 2]


@pytest.mark.oracle
def test_bulk_instructions_are_ptxas() -> None:
    """Bulk reductions of multicast memory, masks of 16 and 32 CTAs, priorities in the second cache, fabric fences: the
    instruction that ptxas 13.5 writes, register numbers left out."""
    oracle.require(oracle.NEWER, "nvdisasm")
    for target, lines in BULK.items():
        text = f""".version 9.5
.target sm_{target}
.address_size 64
.visible .entry k(.param .u64 p) {{ .reg .b64 %a, %d; .reg .b32 %r<6>; .reg .b16 %h; ld.param.u64 %a, [p];
ld.global.v4.u32 {{%r0, %r1, %r2, %r3}}, [%a]; ld.global.u64 %d, [%a+16]; ld.global.u16 %h, [%a+24];
{" ".join(lines)} ret; }}
"""
        cubin = oracle.compile_ptx(text, target, tool=oracle.NEWER)
        assert isinstance(cubin, Path), cubin
        found = []
        for image in (compile_ptx(text, f"sm_{target}"), cubin.read_bytes()):
            path = oracle._new_path("bulk", ".cubin")
            path.write_bytes(image)
            words = oracle.text_words(path, ".text.k")
            texts = [re.sub(r"UR\d+", "UR", t) for t in oracle.disasm_words(words, target)]
            found.append([t for t in texts if re.match(r"UBLK|UTMA|UTCBAR|CCTL|FENCE|MEMBAR", t)])
        assert found[0] == found[1], target


#: Target -> instructions, in an order that neither compiler changes.
BULK = {
    "100a": (
        "multimem.cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%a], [%r0], %r1;",
        "multimem.cp.reduce.async.bulk.global.shared::cta.bulk_group.min.s64 [%a], [%r0], %r1;",
        "multimem.cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16 [%a], [%r0], %r1;",
        "fence.proxy.fabric::generic.alias.acquire.sys;",
        "fabric.submit;",
    ),
    "90a": (
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster::16b [%r0], [%a], %r1, "
        "[%r2], %h;",
    ),
    "107a": (
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster::32b [%r0], [%a], %r1, "
        "[%r2], %r3;",
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster::32b [%r0], "
        "[%d, {%r1, %r2}], [%r3], %r1;",
        "applypriority.async.bulk.global.bulk_group.L2::evict_normal [%a], %r1;",
        "applypriority.async.bulk.tensor.2d.bulk_group.tile.L2::evict_normal [%d, {%r1, %r2}];",
        "cp.async.bulk.prefetch.L2.global.L2::evict_last [%a], %r1;",
        "tcgen05.commit.cta_group::1.sync_restrict::shared::read::mma::a.mbarrier::arrive::one.shared::cluster.b64 "
        "[%r0];",
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster::32b.b64 [%r0], %r1;",
    ),
}
