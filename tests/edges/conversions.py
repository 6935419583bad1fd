"""Conversions between floats, integers and narrow formats."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from tests.edges.form import Form
from tests.edges.formats import (
    EXACT,
    MODES,
    NARROW,
    NUMPY,
    C,
    arith,
    flushed,
    host,
    is_nan,
    number,
    saturated,
    to_half,
)
from tests.edges.integers import clamp, num


def _whole(x: float, mode: str) -> int:
    """A finite number as an integer."""
    f = Fraction(x)
    return {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}[mode](f)


def _to_integer(a: int, t: str, u: str, mode: str, ftz: bool) -> int:
    """The manual: NaN gives 0, or 1 << (width - 1) if either side has 64 bits; a value beyond the range gives the
    nearest end."""
    n = int(u[1:])
    x = number(flushed(a, t) if ftz else a, t)
    if math.isnan(x):
        return 1 << n - 1 if t == "f64" or n == 64 else 0
    return clamp((1 << 80) * (1 if x > 0 else -1) if math.isinf(x) else _whole(x, mode), u)


def conversions() -> Iterator[Form]:
    for t in ("f32", "f64", "f16"):
        for u in ("s16", "u16", "s32", "u32", "s64", "u64", "u8", "s8"):
            for mode in ("rni", "rzi", "rmi", "rpi"):
                yield Form(
                    f"cvt {t} to integers",
                    f"cvt.{mode}.{u}.{t} {{d}}, {{a}};",
                    (t,),
                    (u[1:],),
                    lambda a, t=t, u=u, m=mode: _to_integer(a, t, u, m, False),
                    EXACT,
                )
    yield Form(
        "cvt f32 to integers .ftz",
        "cvt.rpi.ftz.s32.f32 {d}, {a};",
        ("f32",),
        ("32",),
        lambda a: _to_integer(a, "f32", "s32", "rpi", True),
        EXACT,
    )
    for u in ("s32", "u32", "s64", "u64", "s16", "u8"):
        for k, t in enumerate(("f32", "f64")):
            for mode, m in MODES.items():
                op = (1 if u[0] == "s" else 3) + k
                yield Form(
                    "cvt integers to floats",
                    f"cvt.{mode}.{t}.{u} {{d}}, {{a}};",
                    (u[1:],),
                    (t,),
                    lambda a, u=u, op=op, m=m: host().convert(op, m, num(a, u) & (1 << 64) - 1),
                    C,
                )
    for mode, m in MODES.items():
        for ftz in ("", ".ftz"):
            yield Form(
                f"cvt f64 to f32{' .ftz' if ftz else ''}",
                f"cvt.{mode}{ftz}.f32.f64 {{d}}, {{a}};",
                ("f64",),
                ("f32",),
                lambda a, m=m, z=bool(ftz): (
                    a >> 32 & 1 << 31 if z and abs(number(a, "f64")) < 2.0**-126 else host().convert(0, m, a)
                ),
                C + (", flushed before rounding as in ptxas's code" if ftz else ""),
                floats="f32",
            )
        yield Form(
            "cvt f32 to f16",
            f"cvt.{mode}.f16.f32 {{d}}, {{a}};",
            ("f32",),
            ("f16",),
            lambda a, m=mode: to_half(number(a, "f32"), m),
            EXACT,
            floats="f16",
        )
        t = {"rn": "rni", "rz": "rzi", "rm": "rmi", "rp": "rpi"}[mode]
        for k in ("f32", "f64"):
            yield Form(
                "cvt to integral values",
                f"cvt.{t}.{k}.{k} {{d}}, {{a}};",
                (k,),
                (k,),
                arith("rint", k, mode, False, False),
                C,
                floats=k,
            )
    yield Form(
        "cvt f32 to f64",
        "cvt.f64.f32 {d}, {a};",
        ("f32",),
        ("f64",),
        lambda a: host().convert(5, 0, a),
        C,
        floats="f64",
    )
    yield Form(
        "cvt f16 to f32",
        "cvt.f32.f16 {d}, {a};",
        ("f16",),
        ("f32",),
        lambda a: int(np.array(a, np.uint16).view(np.float16).astype(np.float32).view(np.uint32)),
        NUMPY,
        floats="f32",
    )
    yield Form(
        "cvt .sat",
        "cvt.sat.f32.f32 {d}, {a};",
        ("f32",),
        ("f32",),
        lambda a: saturated(a, "f32"),
        "the manual",
        floats="f32",
    )
    yield Form(
        "cvt .sat",
        "cvt.rn.sat.f16.f32 {d}, {a};",
        ("f32",),
        ("f16",),
        lambda a: saturated(to_half(number(a, "f32"), "rn"), "f16"),
        EXACT,
        floats="f16",
    )


def narrow() -> Iterator[Form]:
    import ml_dtypes  # type: ignore[import-not-found,unused-ignore]

    def cast(a: int, kind: Any) -> int:
        return int(
            np.array(a, np.uint32)
            .view(np.float32)
            .astype(kind)
            .view(np.uint16 if np.dtype(kind).itemsize == 2 else np.uint8)
        )

    def bf16(a: int) -> int:
        return 0x7FFF if is_nan(a, "f32") else cast(a, ml_dtypes.bfloat16)

    yield Form("cvt f32 to bf16", "cvt.rn.bf16.f32 {d}, {a};", ("f32",), ("bf16",), bf16, NARROW, 80, "bf16")
    yield Form(
        "cvt f32 to bf16",
        "cvt.rz.bf16.f32 {d}, {a};",
        ("f32",),
        ("bf16",),
        lambda a: 0x7FFF if is_nan(a, "f32") else a >> 16,
        "the format's bits",
        80,
        "bf16",
    )
    yield Form(
        "cvt f32 to bf16",
        "cvt.rn.relu.bf16.f32 {d}, {a};",
        ("f32",),
        ("bf16",),
        lambda a: 0x7FFF if is_nan(a, "f32") else 0 if a >> 31 else bf16(a),
        NARROW,
        80,
        "bf16",
    )
    yield Form(
        "cvt f32 to bf16",
        "cvt.rn.bf16x2.f32 {d}, {a}, {b};",
        ("f32", "f32"),
        ("32",),
        lambda a, b: bf16(a) << 16 | bf16(b),
        NARROW,
        80,
    )
    yield Form(
        "cvt f32 to f16",
        "cvt.rn.f16x2.f32 {d}, {a}, {b};",
        ("f32", "f32"),
        ("32",),
        lambda a, b: to_half(number(a, "f32"), "rn") << 16 | to_half(number(b, "f32"), "rn"),
        EXACT,
        80,
    )
    yield Form(
        "cvt f32 to f16",
        "cvt.rn.relu.f16x2.f32 {d}, {a}, {b};",
        ("f32", "f32"),
        ("32",),
        lambda a, b: _relu(to_half(number(a, "f32"), "rn")) << 16 | _relu(to_half(number(b, "f32"), "rn")),
        EXACT,
        80,
    )
    yield Form(
        "cvt f32 to tf32",
        "cvt.rna.tf32.f32 {d}, {a};",
        ("f32",),
        ("32",),
        lambda a: a + 0x1000 & 0xFFFFE000,
        EXACT,
        80,
        only=lambda a: not is_nan(a, "f32"),
    )
    yield Form(
        "cvt bf16 to f32",
        "cvt.f32.bf16 {d}, {a};",
        ("bf16",),
        ("f32",),
        lambda a: a << 16,
        "the format's bits",
        90,
        "f32",
    )
    kinds = {"e4m3x2": (ml_dtypes.float8_e4m3fn, 0x7E), "e5m2x2": (ml_dtypes.float8_e5m2, 0x7B)}

    def to8(a: int, name: str, relu: bool = False) -> int:
        """.satfinite: values beyond the range, including infinity, become the greatest number."""
        kind, top = kinds[name]
        if is_nan(a, "f32"):
            return 0x7F
        x = number(a, "f32")
        if relu and a >> 31:
            return 0
        most = float(np.array(top, np.uint8).view(kind).astype(np.float32))
        return top | (0x80 if x < 0 else 0) if abs(x) > most else cast(a, kind)

    for name, (kind, _) in kinds.items():
        for relu in ("", ".relu"):
            yield Form(
                f"cvt f32 to {name[:-2]}",
                f"cvt.rn.satfinite{relu}.{name}.f32 {{d}}, {{a}}, {{b}};",
                ("f32", "f32"),
                ("16",),
                lambda a, b, n=name, r=bool(relu): to8(a, n, r) << 8 | to8(b, n, r),
                NARROW,
                89,
            )

        def half(x: int, kind: Any = kind) -> int:
            r = int(np.array(x, np.uint8).view(kind).astype(np.float16).view(np.uint16))
            return 0x7FFF if is_nan(r, "f16") else r

        yield Form(
            f"cvt {name[:-2]} to f16",
            f"cvt.rn.f16x2.{name} {{d}}, {{a}};",
            ("16",),
            ("32",),
            lambda a, f=half: f(a & 255) | f(a >> 8) << 16,
            NARROW,
            89,
        )
    sub: dict[str, tuple[Any, int]] = {
        "e2m3x2": (ml_dtypes.float6_e2m3fn, 0x1F),
        "e3m2x2": (ml_dtypes.float6_e3m2fn, 0x1F),
        "e2m1x2": (ml_dtypes.float4_e2m1fn, 0x7),
    }
    for name, (kind, top) in sub.items():
        small = name == "e2m1x2"

        def tiny(a: int, kind: Any = kind, top: int = top) -> int:
            sign = top + 1
            if is_nan(a, "f32"):
                return top  # the formats have no NaN
            x = number(a, "f32")
            most = float(np.array(top, np.uint8).view(kind).astype(np.float32))
            return (
                top | (sign if x < 0 else 0)
                if abs(x) > most
                else int(np.array(x, np.float32).astype(kind).view(np.uint8))
            )

        if small:
            text = "{{ .reg .b8 %y; cvt.rn.satfinite.e2m1x2.f32 %y, {a}, {b}; cvt.u32.u8 {d}, %y; }}"
            yield Form(
                "cvt f32 to e2m1",
                text,
                ("f32", "f32"),
                ("32",),
                lambda a, b, f=tiny: f(a) << 4 | f(b),
                NARROW,
                100,
                suffix="a",
            )
        else:
            yield Form(
                f"cvt f32 to {name[:-2]}",
                f"cvt.rn.satfinite.{name}.f32 {{d}}, {{a}}, {{b}};",
                ("f32", "f32"),
                ("16",),
                lambda a, b, f=tiny: f(a) << 8 | f(b),
                NARROW,
                100,
                suffix="a",
            )


def _relu(h: int) -> int:
    return 0 if h & 0x8000 and not is_nan(h, "f16") else h
