"""Halves, pairs of halves, pairs of f32, sums of mixed precision: C of the host, exact fractions, numpy, ml_dtypes, the
manual's text."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Final

import numpy as np

from tests.edges.form import Form
from tests.edges.formats import (
    EXACT,
    MODES,
    NARROW,
    PARTS,
    TABLE,
    C,
    arith,
    flushed,
    is_nan,
    number,
    saturated,
    to_half,
)
from tests.edges.halves import by_halves, exact, least, rounded

_MANUAL: Final = "the manual, by numpy"
_BITS: Final = "the format's bits"


def _no_nan(t: str) -> Callable[..., bool]:
    """Rows without a NaN: the manual leaves the NaNs of neg and abs open."""
    if t.endswith("x2"):
        return lambda *xs: not any(is_nan(y, t[:-2]) for x in xs for y in (x & 65535, x >> 16))
    return lambda *xs: not any(is_nan(x, t) for x in xs)


def _signs() -> Iterator[Form]:
    for t in ("f16", "f16x2", "bf16", "bf16x2"):
        one = t.removesuffix("x2")
        for ftz in ("", ".ftz") if one == "f16" else ("",):
            for op, f in (("neg", lambda x: x ^ 0x8000), ("abs", lambda x: x & 0x7FFF)):
                yield Form(
                    "neg abs of halves",
                    f"{op}{ftz}.{t} {{d}}, {{a}};",
                    (t,),
                    (t,),
                    by_halves(lambda xs, f=f, z=ftz, u=one: f(flushed(xs[0], u) if z else xs[0]), t),
                    _BITS,
                    80 if one == "bf16" else 75,
                    only=_no_nan(t),
                )


def _extremes() -> Iterator[Form]:
    """min and max of pairs, of halves with .xorsign.abs, of three f32."""
    for t in ("f16", "f16x2", "bf16", "bf16x2"):
        one = t.removesuffix("x2")
        for mods in ("", ".ftz", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs", ".ftz.NaN.xorsign.abs"):
            if ".ftz" in mods and one == "bf16":
                continue
            for op in ("min", "max"):
                yield Form(
                    f"min max {one}, pairs and .xorsign.abs",
                    f"{op}{mods}.{t} {{d}}, {{a}}, {{b}};",
                    (t, t),
                    (t,),
                    by_halves(lambda xs, t=one, m=mods, g=op == "max": least(xs[0], xs[1], t, m, g), t),
                    _MANUAL,
                    86 if "xorsign" in mods else 80,
                    t,
                )
    for mods in ("", ".ftz", ".NaN", ".abs", ".ftz.NaN.abs"):
        for op in ("min", "max"):
            yield Form(
                "min max of three f32",
                f"{op}{mods}.f32 {{d}}, {{a}}, {{b}}, {{c}};",
                ("f32",) * 3,
                ("f32",),
                lambda a, b, c, m=mods, g=op == "max": least(least(a, b, "f32", m, g), c, "f32", m, g),
                _MANUAL,
                100,
                "f32",
                only=None if ".NaN" in mods else lambda a, b, c: not all(is_nan(x, "f32") for x in (a, b)),
            )


def _products() -> Iterator[Form]:
    """fma of halves with .relu, .ftz.relu, .oob; sums of mixed precision; pairs of f32."""
    for t in ("f16", "f16x2", "bf16", "bf16x2"):
        one = t.removesuffix("x2")
        for mods in (".relu", ".ftz.relu", ".ftz.sat", ".oob", ".oob.relu"):
            if one == "bf16" and ".ftz" in mods:
                continue
            yield Form(
                f"fma {one} .relu .oob",
                f"fma.rn{mods}.{t} {{d}}, {{a}}, {{b}}, {{c}};",
                (t,) * 3,
                (t,),
                by_halves(lambda xs, t=one, m=mods: _oob(xs, t, m), t),
                EXACT,
                90 if "oob" in mods else 80,
                t,
            )
    yield from _mixed()
    for op, count in (("add", 2), ("sub", 2), ("mul", 2), ("fma", 3)):
        for mode in MODES:
            for ftz in ("", ".ftz"):
                f = arith(op, "f32", mode, bool(ftz), False)
                names = "abc"[:count]
                text = (
                    f"{{{{ .reg .b64 %a0, %b0, %c0, %d0; .reg .b32 %u; mov.b64 %a0, {{{{{{a}}, {{b}}}}}}; "
                    f"mov.b64 %b0, {{{{{{b}}, {{c}}}}}}; mov.b64 %c0, {{{{{{c}}, {{a}}}}}}; "
                    f"{op}.{mode}{ftz}.f32x2 %d0, {', '.join('%' + x + '0' for x in names)}; "
                    f"mov.b64 {{{{{{d}}, {{e}}}}}}, %d0; }}}}"
                )
                yield Form(
                    "add sub mul fma f32x2",
                    text,
                    ("f32",) * 3,
                    ("f32", "f32"),
                    lambda a, b, c, f=f, n=count: (f(*(a, b, c)[:n]), f(*(b, c, a)[:n])),
                    C,
                    100,
                    "f32",
                )


def _mixed() -> Iterator[Form]:
    for half, mode, sat in itertools.product(("f16", "bf16"), MODES, ("", ".sat")):
        for op in ("add", "sub", "fma"):
            count = 2 if op == "fma" else 1
            names = ", ".join("{" + x + "}" for x in "abc"[: count + 1])
            yield Form(
                "add sub fma of f32 and halves",
                f"{op}.{mode}{sat}.f32.{half} {{d}}, {names};",
                (half,) * count + ("f32",),
                ("f32",),
                _with_halves(arith(op, "f32", mode, False, bool(sat)), half),
                C,
                100,
                "f32",
            )


def _with_halves(f: Callable[..., int], half: str) -> Callable[..., int]:
    """All operands but the last are halves."""
    return lambda *xs: f(*(widened(x, half) for x in xs[:-1]), xs[-1])


def widened(x: int, half: str) -> int:
    """A half as f32: exact."""
    if is_nan(x, half):
        return 0x7FFFFFFF
    return int(np.array(number(x, half), np.float32).view(np.uint32))


def _oob(xs: list[int], t: str, mods: str) -> int:
    """.oob: an operand that is the out-of-bounds NaN (all bits) makes the result zero."""
    if ".oob" in mods and 0xFFFF in xs[:2]:
        return 0
    return exact("fma", xs, t, mods.replace(".oob", ""))


def _narrowing() -> Iterator[Form]:
    """Conversions that the other table lacks."""
    for half in ("f16", "bf16"):
        for u in ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"):
            if half == "f16":
                continue
            yield Form(
                "cvt integers to bf16",
                f"cvt.rn.bf16.{u} {{d}}, {{a}};",
                (u[1:],),
                ("bf16",),
                lambda a, u=u: rounded(Fraction(_number(a, u)), "bf16"),
                EXACT,
                90,
            )
            for mode in ("rni", "rzi", "rmi", "rpi"):
                yield Form(
                    "cvt bf16 to integers",
                    f"cvt.{mode}.{u}.bf16 {{d}}, {{a}};",
                    ("bf16",),
                    (u[1:],),
                    lambda a, u=u, m=mode: _whole(number(a, "bf16"), u, m),
                    EXACT,
                    90,
                )
    for mode in MODES:
        for t in ("f32", "f64", "bf16"):
            yield Form(
                "cvt floats to f16",
                f"cvt.{mode}.f16.{t} {{d}}, {{a}};",
                (t,),
                ("f16",),
                lambda a, t=t, m=mode: to_half(number(a, t), m),
                EXACT,
                90 if t == "bf16" else 75,
                "f16",
            )
        for t in ("f16", "f64", "bf16"):
            yield Form(
                "cvt floats to bf16",
                f"cvt.{mode}.bf16.{t} {{d}}, {{a}};",
                (t,),
                ("bf16",),
                lambda a, t=t, m=mode: to_bf16(number(a, t), m),
                EXACT,
                90,
                "bf16",
            )
    yield Form(
        "cvt halves to wider floats", "cvt.f64.f16 {d}, {a};", ("f16",), ("f64",), lambda a: _double(a, "f16"), _BITS,
        floats="f64",
    )  # fmt: skip
    yield Form(
        "cvt halves to wider floats", "cvt.f64.bf16 {d}, {a};", ("bf16",), ("f64",), lambda a: _double(a, "bf16"),
        _BITS, 90, "f64",
    )  # fmt: skip
    yield Form(
        "cvt halves to wider floats", "cvt.ftz.f32.f16 {d}, {a};", ("f16",), ("f32",), lambda a: widened(a, "f16"),
        _BITS, floats="f32",
    )  # fmt: skip
    for t, mode in (("f16", "rn"), ("f16", "rz"), ("bf16", "rn"), ("bf16", "rz")):
        for relu in ("", ".relu"):
            for satfinite in ("", ".satfinite"):
                yield Form(
                    f"cvt f32 to {t}, .relu .satfinite",
                    f"cvt.{mode}{relu}{satfinite}.{t}.f32 {{d}}, {{a}};",
                    ("f32",),
                    (t,),
                    lambda a, t=t, m=mode, r=bool(relu), s=bool(satfinite): _cut(a, t, m, r, s),
                    EXACT,
                    80,
                    t,
                )
                yield Form(
                    f"cvt f32 to {t}, .relu .satfinite",
                    f"cvt.{mode}{relu}{satfinite}.{t}x2.f32 {{d}}, {{a}}, {{b}};",
                    ("f32", "f32"),
                    ("32",),
                    lambda a, b, t=t, m=mode, r=bool(relu), s=bool(satfinite): (
                        _cut(a, t, m, r, s) << 16 | _cut(b, t, m, r, s)
                    ),
                    EXACT,
                    80,
                )


def _number(a: int, u: str) -> int:
    n = int(u[1:])
    a &= (1 << n) - 1
    return a - (1 << n) if u[0] == "s" and a >> n - 1 else a


def _whole(x: float, u: str, mode: str) -> int:
    n = int(u[1:])
    if math.isnan(x):
        return 1 << n - 1 if n == 64 else 0
    low, high = (-(1 << n - 1), (1 << n - 1) - 1) if u[0] == "s" else (0, (1 << n) - 1)
    if math.isinf(x):
        return (high if x > 0 else low) & (1 << n) - 1
    f = Fraction(x)
    v = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}[mode](f)
    return max(low, min(high, v)) & (1 << n) - 1


def to_bf16(x: float, mode: str) -> int:
    """Bits of the bf16 nearest to a number in a rounding direction, by exact fractions."""
    if math.isnan(x):
        return 0x7FFF
    sign = 0x8000 if math.copysign(1.0, x) < 0 else 0
    if math.isinf(x):
        return sign | 0x7F80
    f = abs(Fraction(x))
    exponent = -126
    while f >= Fraction(2) ** (exponent + 1):
        exponent += 1
    q = f / Fraction(2) ** (exponent - 7)
    low = math.floor(q)
    up = {
        "rn": q - low > Fraction(1, 2) or (q - low == Fraction(1, 2) and low % 2 == 1),
        "rz": False,
        "rm": bool(sign) and q != low,
        "rp": not sign and q != low,
    }[mode]
    low += up
    bits = low if exponent == -126 else (exponent + 126 << 7) + low
    if bits >= 0x7F80 and not up:
        bits = 0x7F7F if mode == "rz" or (mode == "rm" and not sign) or (mode == "rp" and sign) else 0x7F80
    return sign | min(bits, 0x7F80)


def _double(a: int, t: str) -> int:
    return 0x7FF8 << 48 if is_nan(a, t) else int(np.array(number(a, t), np.float64).view(np.uint64))


def _cut(a: int, t: str, mode: str, relu: bool, satfinite: bool) -> int:
    x = number(a, "f32")
    r = to_half(x, mode) if t == "f16" else to_bf16(x, mode)
    if satfinite and r & 0x7FFF == PARTS[t][0]:
        r = r & 0x8000 | PARTS[t][0] - 1
    return 0 if relu and r & 0x8000 and not is_nan(r, t) else r


def _eights() -> Iterator[Form]:
    """Formats of 8 bits and less from and to halves; ml_dtypes."""
    import ml_dtypes  # type: ignore[import-not-found,unused-ignore]

    for name, kind, top in (("e4m3x2", ml_dtypes.float8_e4m3fn, 0x7E), ("e5m2x2", ml_dtypes.float8_e5m2, 0x7B)):
        for relu in ("", ".relu"):

            def one(h: int, kind: type = kind, top: int = top, r: bool = bool(relu)) -> int:
                if is_nan(h, "f16"):
                    return 0x7F
                if r and h & 0x8000:
                    return 0
                x = number(h, "f16")
                most = float(np.array(top, np.uint8).view(kind).astype(np.float32))
                if abs(x) > most:
                    return top | (0x80 if x < 0 else 0)
                return int(np.array(x, np.float32).astype(kind).view(np.uint8))

            yield Form(
                f"cvt f16x2 to {name[:-2]}",
                f"cvt.rn.satfinite{relu}.{name}.f16x2 {{d}}, {{a}};",
                ("f16x2",),
                ("16",),
                lambda a, f=one: f(a >> 16) << 8 | f(a & 65535),
                NARROW,
                89,
            )
    for name, kind in (
        ("e2m3x2", ml_dtypes.float6_e2m3fn),
        ("e3m2x2", ml_dtypes.float6_e3m2fn),
        ("e2m1x2", ml_dtypes.float4_e2m1fn),
    ):
        for relu in ("", ".relu"):

            def half(x: int, kind: type = kind, r: bool = bool(relu)) -> int:
                h = int(np.array(x, np.uint8).view(kind).astype(np.float16).view(np.uint16))
                return 0 if r and h & 0x8000 else h

            if name == "e2m1x2":
                text = f"{{{{ .reg .b8 %y, %z; mov.b16 {{{{%y, %z}}}}, {{a}}; cvt.rn{relu}.f16x2.e2m1x2 {{d}}, %y; }}}}"
                answer = lambda a, f=half: f(a & 15) | f(a >> 4 & 15) << 16  # noqa: E731
            else:
                text = f"cvt.rn{relu}.f16x2.{name} {{d}}, {{a}};"
                answer = lambda a, f=half: f(a & 63) | f(a >> 8 & 63) << 16  # noqa: E731
            yield Form(f"cvt {name[:-2]} to f16", text, ("16",), ("32",), answer, NARROW, 100, suffix="a")


def _ones() -> Iterator[Form]:
    """Special values of approximations of halves."""
    tanh = {0: 0, 0x8000: 0x8000, 0x7C00: 0x3C00, 0xFC00: 0xBC00}
    exp = {0: 0x3F80, 0x8000: 0x3F80, 0x7F80: 0x7F80, 0xFF80: 0, 0x3F80: 0x4000, 0xBF80: 0x3F00, 0x7FC0: 0x7FFF}
    bend = {0: 0, 0x8000: 0x8000, 0x7F80: 0x3F80, 0xFF80: 0xBF80, 0x7FC0: 0x7FFF}
    for text, t, known, sm in (
        ("tanh.approx.f16", "f16", tanh, 75),
        ("ex2.approx.ftz.bf16", "bf16", exp, 90),
        ("tanh.approx.bf16", "bf16", bend, 90),
    ):
        yield Form(
            "approximations, special values",
            f"{text} {{d}}, {{a}};",
            (t,),
            (t,),
            lambda a, k=known: k[a],
            TABLE,
            sm,
            t,
            only=lambda a, k=known: a in k,
        )
    top = 0x7FF << 52
    rcp = {0: top, 1 << 63: top | 1 << 63, top: 0, top | 1 << 63: 1 << 63, 0x7FF8 << 48: 0x7FF8 << 48}
    rsqrt = {0: top, 1 << 63: top | 1 << 63, top: 0, top | 1 << 63: 0x7FF8 << 48, 0xBFF0 << 48: 0x7FF8 << 48}
    for text, known64 in (("rcp.approx.ftz.f64", rcp), ("rsqrt.approx.ftz.f64", rsqrt), ("rsqrt.approx.f64", rsqrt)):
        yield Form(
            "approximations, special values",
            f"{text} {{d}}, {{a}};",
            ("f64",),
            ("f64",),
            lambda a, k=known64: k[a],
            TABLE,
            75,
            "f64",
            only=lambda a, k=known64: a in k,
        )


def forms() -> Iterator[Form]:
    """All of them."""
    yield from _signs()
    yield from _extremes()
    yield from _products()
    yield from _narrowing()
    yield from _eights()
    yield from _ones()


__all__ = ["forms", "saturated"]
