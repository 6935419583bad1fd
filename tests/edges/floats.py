"""Float instructions: C of the host in its four rounding modes, numpy, ml_dtypes for narrow formats, exact fractions,
and the manual's tables of special values."""

from __future__ import annotations

import ctypes
import math
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from tests.edges.form import Form, bits
from tests.edges.integers import clamp, num, sg, un

C: Final = "C on the host"
NUMPY: Final = "numpy"
NARROW: Final = "ml_dtypes"
EXACT: Final = "exact fractions"
TABLE: Final = "the manual's table"
_MODES: Final = {"rn": 0, "rz": 1, "rm": 2, "rp": 3}
_OPS: Final = {"add": 0, "sub": 1, "mul": 2, "fma": 3, "div": 4, "sqrt": 5, "rint": 6}
#: Exponent mask, sign, the canonical NaN of results.
_PARTS: Final = {
    "f16": (0x7C00, 0x8000, 0x7FFF),
    "bf16": (0x7F80, 0x8000, 0x7FFF),
    "f32": (0x7F800000, 1 << 31, 0x7FFFFFFF),
    "f64": (0x7FF << 52, 1 << 63, 0x7FF8 << 48),
}
_NUMPY: Final[dict[str, Any]] = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


@cache
def host() -> Any:
    """The library of `host.c`."""
    folder = tempfile.mkdtemp()
    out = Path(folder) / "host.so"
    subprocess.run(
        [
            "cc",
            "-O1",
            "-frounding-math",
            "-ffp-contract=off",
            "-fPIC",
            "-shared",
            str(Path(__file__).with_name("host.c")),
            "-o",
            str(out),
            "-lm",
        ],
        check=True,
        timeout=60,
    )
    lib = ctypes.CDLL(str(out))
    for name in ("f32_op", "f64_op"):
        getattr(lib, name).restype = ctypes.c_uint64
        getattr(lib, name).argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64]
    lib.convert.restype = ctypes.c_uint64
    lib.convert.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_uint64]
    return lib


def is_nan(x: int, t: str) -> bool:
    exponent, sign, _ = _PARTS[t]
    return x & (sign - 1) > exponent


def is_small(x: int, t: str) -> bool:
    """Subnormal or zero."""
    return not x & _PARTS[t][0]


def flushed(x: int, t: str) -> int:
    """Subnormal numbers to zeros of their sign."""
    return x & _PARTS[t][1] if is_small(x, t) else x


def number(x: int, t: str) -> Any:
    """Bits as a float of Python (no subtleties lost: f64 holds them all)."""
    if t == "bf16":
        return float(np.array(x << 16, np.uint32).view(np.float32))
    return float(np.array(x, f"u{bits(t) // 8}").view(_NUMPY[t]))


def saturated(x: int, t: str) -> int:
    """.sat: [0, 1], NaN gives +0."""
    one = {"f32": 0x3F800000, "f64": 0x3FF0 << 48, "f16": 0x3C00}[t]
    return 0 if is_nan(x, t) or x & _PARTS[t][1] else min(x, one)


def _arith(op: str, t: str, mode: str, ftz: bool, sat: bool) -> Callable[..., int]:
    def answer(a: int, b: int = 0, c: int = 0) -> int:
        args = [flushed(x, t) for x in (a, b, c)] if ftz else [a, b, c]
        r = getattr(host(), f"{t}_op")(_OPS[op], _MODES[mode], *args)
        if is_nan(r, t):
            r = _PARTS[t][2]
        r = flushed(r, t) if ftz else r
        return saturated(r, t) if sat else r

    return answer


def _arithmetic() -> Iterator[Form]:
    for t in ("f32", "f64"):
        for op, count in (("add", 2), ("sub", 2), ("mul", 2), ("fma", 3), ("div", 2), ("sqrt", 1), ("rcp", 1)):
            for mode in _MODES:
                for tail in ("", ".ftz", ".ftz.sat", ".sat") if t == "f32" else ("",):
                    if "sat" in tail and op in ("div", "sqrt", "rcp"):
                        continue
                    names = ", ".join("{" + x + "}" for x in "abc"[:count])
                    f = _arith("div" if op == "rcp" else op, t, mode, "ftz" in tail, "sat" in tail)
                    one = 0x3F800000 if t == "f32" else 0x3FF0 << 48
                    answer = (lambda a, f=f, one=one: f(one, a)) if op == "rcp" else f
                    suffix = "" if not tail else " " + tail.replace(".", " .").strip()
                    yield Form(
                        f"{op} {t}{suffix}",
                        f"{op}.{mode}{tail}.{t} {{d}}, {names};",
                        (t,) * count,
                        (t,),
                        answer,
                        C,
                        floats=t,
                    )


def _least(a: int, b: int, t: str, mods: str, greatest: bool) -> int:
    """min and max: of a number and a NaN the number (.NaN: the NaN); -0 below +0; .xorsign: sign of the product; .abs:
    of magnitudes."""
    _, sign, canonical = _PARTS[t]
    if ".ftz" in mods:
        a, b = flushed(a, t), flushed(b, t)
    flip = (a ^ b) & sign if ".xorsign" in mods else 0
    if ".abs" in mods:
        a, b = a & ~sign, b & ~sign
    if is_nan(a, t) and is_nan(b, t) or ".NaN" in mods and (is_nan(a, t) or is_nan(b, t)):
        return canonical
    if is_nan(a, t) or is_nan(b, t):
        r = b if is_nan(a, t) else a
    else:
        key = [(number(x, t), not x & sign) for x in (a, b)]
        r = (a if key[0] >= key[1] else b) if greatest else (a if key[0] <= key[1] else b)
    return r & ~sign | flip if ".xorsign" in mods else r


def _extremes() -> Iterator[Form]:
    for t, most in (
        ("f32", ("", ".ftz", ".NaN", ".xorsign.abs", ".ftz.NaN.xorsign.abs")),
        ("f64", ("",)),
        ("f16", ("", ".ftz", ".NaN")),
        ("bf16", ("", ".NaN")),
    ):
        for mods in most:
            for op in ("min", "max"):
                sm = 75 if t in ("f32", "f64") and mods in ("", ".ftz") else 86 if "xorsign" in mods else 80
                suffix = " " + mods.replace(".", " .").strip() if mods else ""
                yield Form(
                    f"min max {t}{suffix}",
                    f"{op}{mods}.{t} {{d}}, {{a}}, {{b}};",
                    (t, t),
                    (t,),
                    lambda a, b, t=t, m=mods, g=op == "max": _least(a, b, t, m, g),
                    "the manual, by numpy",
                    sm,
                    t,
                )


_TESTS: Final[dict[str, Callable[[float, float], bool]]] = {
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
}


def _compare(name: str, x: float, y: float) -> int:
    bad = math.isnan(x) or math.isnan(y)
    if name in ("num", "nan"):
        return int(bad == (name == "nan"))
    return int(
        bad
        if bad and name.endswith("u")
        else not bad and _TESTS[name.removesuffix("u") if name[-1] == "u" else name](x, y)
    )


def _comparisons() -> Iterator[Form]:
    for t in ("f32", "f64", "f16", "bf16"):
        for name in (*_TESTS, "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"):
            yield Form(
                f"setp {t}",
                f"setp.{name}.{t} {{d}}, {{a}}, {{b}};",
                (t, t),
                ("pred",),
                lambda a, b, t=t, n=name: _compare(n, number(a, t), number(b, t)),
                NUMPY,
                90 if t == "bf16" else 75,
            )
    for name in ("eq", "lt", "geu"):
        yield Form(
            "setp f32 .ftz",
            f"setp.{name}.ftz.f32 {{d}}, {{a}}, {{b}};",
            ("f32", "f32"),
            ("pred",),
            lambda a, b, n=name: _compare(n, number(flushed(a, "f32"), "f32"), number(flushed(b, "f32"), "f32")),
            NUMPY,
        )
    tests: dict[str, Callable[[int, str], bool]] = {
        "finite": lambda x, t: x & _PARTS[t][0] != _PARTS[t][0], "infinite": lambda x,
        t: x & (_PARTS[t][1] - 1) == _PARTS[t][0], "number": lambda x, t: not is_nan(x, t),
        # zeros are normal, says the manual
        "notanumber": is_nan, "normal": lambda x,
        t: x & _PARTS[t][0] not in (0, _PARTS[t][0]) or not x & (_PARTS[t][1] - 1),
        "subnormal": lambda x, t: is_small(x, t) and bool(x & (_PARTS[t][1] - 1)),
    }  # fmt: skip
    for t in ("f32", "f64"):
        for name, f in tests.items():
            yield Form(
                "testp",
                f"testp.{name}.{t} {{d}}, {{a}};",
                (t,),
                ("pred",),
                lambda a, t=t, f=f: int(f(a, t)),
                "the format's bits",
            )
        sign = _PARTS[t][1]
        yield Form(
            "copysign",
            f"copysign.{t} {{d}}, {{a}}, {{b}};",
            (t, t),
            (t,),
            lambda a, b, s=sign: b & s - 1 | a & s,
            "the format's bits",
        )
    for mod in ("", ".ftz"):
        yield Form(
            "slct f32",
            f"slct{mod}.b32.f32 {{d}}, {{a}}, {{b}}, {{c}};",
            ("32", "32", "f32"),
            ("32",),
            lambda a, b, c: a if number(c, "f32") >= 0 else b,
            NUMPY,
            only=(lambda a, b, c: not is_small(c, "f32") or c in (0, 1 << 31)) if mod else None,
        )


def _whole(x: float, mode: str) -> int:
    """A finite number to an integer."""
    f = Fraction(x)
    return {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}[mode](f)


def _to_integer(a: int, t: str, u: str, mode: str, ftz: bool) -> int:
    """The manual: NaN gives 0, or 1 << (width - 1) where either side has 64 bits; what is beyond the range, its
    ends."""
    n = int(u[1:])
    x = number(flushed(a, t) if ftz else a, t)
    if math.isnan(x):
        return 1 << n - 1 if t == "f64" or n == 64 else 0
    return clamp((1 << 80) * (1 if x > 0 else -1) if math.isinf(x) else _whole(x, mode), u)


def _conversions() -> Iterator[Form]:
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
            for mode, m in _MODES.items():
                op = (1 if u[0] == "s" else 3) + k
                yield Form(
                    "cvt integers to floats",
                    f"cvt.{mode}.{t}.{u} {{d}}, {{a}};",
                    (u[1:],),
                    (t,),
                    lambda a, u=u, op=op, m=m: host().convert(op, m, num(a, u) & (1 << 64) - 1),
                    C,
                )
    for mode, m in _MODES.items():
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
                _arith("rint", k, mode, False, False),
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


def to_half(x: float | Fraction, mode: str) -> int:
    """Bits of f16 nearest to a number in a direction, by exact fractions."""
    if not isinstance(x, Fraction) and (math.isnan(x) or math.isinf(x)):
        return 0x7FFF if math.isnan(x) else 0x7C00 if x > 0 else 0xFC00
    sign = 0x8000 if (x < 0 or (not isinstance(x, Fraction) and math.copysign(1.0, x) < 0)) else 0
    f = abs(Fraction(x))
    exponent = -14
    while f >= Fraction(2) ** (exponent + 1):
        exponent += 1
    step = Fraction(2) ** (exponent - 10)
    q = f / step
    whole = math.floor(q)
    up = {
        "rn": q - whole > Fraction(1, 2) or (q - whole == Fraction(1, 2) and whole % 2 == 1),
        "rz": False,
        "rm": bool(sign) and q != whole,
        "rp": not sign and q != whole,
    }[mode]
    v = (whole + up) * step
    top = Fraction(65504)
    if v > top:
        return sign | (0x7BFF if mode == "rz" or (mode == "rm" and not sign) or (mode == "rp" and sign) else 0x7C00)
    return sign | int(np.array(float(v), np.float16).view(np.uint16))


def _narrow() -> Iterator[Form]:
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
        """.satfinite: what is beyond the range, infinity too, becomes the greatest number."""
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


def _halves() -> Iterator[Form]:
    """f16 and bf16 arithmetic: one rounding of the exact result."""

    def exact(op: str, xs: list[int], t: str, mode: str = "") -> int:
        if t == "f16" and ".ftz" in mode:
            xs = [flushed(x, t) for x in xs]
        v = [number(x, t) for x in xs]
        if any(math.isnan(x) for x in v):
            r = 0x7FFF
        elif any(math.isinf(x) for x in v):
            with np.errstate(all="ignore"):
                y = {
                    "add": lambda: v[0] + v[1],
                    "sub": lambda: v[0] - v[1],
                    "mul": lambda: v[0] * v[1],
                    "fma": lambda: v[0] * v[1] + v[2],
                }[op]()
            r = 0x7FFF if math.isnan(y) else to_half(y, "rn") if t == "f16" else (0x7F80 | (0x8000 if y < 0 else 0))
        else:
            f = [Fraction(x) for x in v]
            y2 = {
                "add": lambda: f[0] + f[1],
                "sub": lambda: f[0] - f[1],
                "mul": lambda: f[0] * f[1],
                "fma": lambda: f[0] * f[1] + f[2],
            }[op]()
            r = _rounded(y2, t)
            if not y2:  # a zero's sign as the host's double has it
                y3 = {
                    "add": lambda: v[0] + v[1],
                    "sub": lambda: v[0] - v[1],
                    "mul": lambda: v[0] * v[1],
                    "fma": lambda: v[0] * v[1] + v[2],
                }[op]()
                r = 0x8000 if math.copysign(1.0, y3) < 0 else 0
        if ".ftz" in mode:
            r = flushed(r, t)
        if ".relu" in mode:
            r = _relu16(r, t)
        return saturated(r, t) if ".sat" in mode else r

    for op, count in (("add", 2), ("sub", 2), ("mul", 2), ("fma", 3)):
        names = ", ".join("{" + x + "}" for x in "abc"[:count])
        for mode in ("", ".ftz", ".sat", ".relu") if op == "fma" else ("", ".ftz", ".sat"):
            for t in ("f16", "f16x2"):
                sm = 80 if mode == ".relu" else 75
                yield Form(
                    f"{op} f16{' ' + mode if mode else ''}",
                    f"{op}.rn{mode}.{t} {{d}}, {names};",
                    (t,) * count,
                    (t,),
                    _by_halves(lambda xs, op=op, m=mode: exact(op, xs, "f16", m), t),
                    EXACT,
                    sm,
                    t,
                )
        for t in ("bf16", "bf16x2"):
            yield Form(
                f"{op} bf16",
                f"{op}.rn.{t} {{d}}, {names};",
                (t,) * count,
                (t,),
                _by_halves(lambda xs, op=op: exact(op, xs, "bf16"), t),
                EXACT,
                80 if op == "fma" else 90,
                t,
            )


def _by_halves(f: Callable[[list[int]], int], t: str) -> Callable[..., int]:
    if not t.endswith("x2"):
        return lambda *xs: f(list(xs))
    return lambda *xs: f([x & 65535 for x in xs]) | f([x >> 16 for x in xs]) << 16


def _relu16(r: int, t: str) -> int:
    return 0 if r & 0x8000 and not is_nan(r, t) else r


def _rounded(f: Fraction, t: str) -> int:
    """An exact value to f16 or bf16, to nearest."""
    if t == "f16":
        return to_half(f, "rn")
    sign, f = (0x8000 if f < 0 else 0), abs(f)
    exponent = -126
    while f >= Fraction(2) ** (exponent + 1):
        exponent += 1
    step = Fraction(2) ** (exponent - 7)
    q = f / step
    whole = math.floor(q)
    whole += q - whole > Fraction(1, 2) or (q - whole == Fraction(1, 2) and whole % 2 == 1)
    if whole * step >= Fraction(2) ** 128:
        return sign | 0x7F80
    return sign | int(np.array(float(whole * step), np.float32).view(np.uint32)) >> 16


_INF, _NINF, _NAN, _ONE, _Z, _NZ = 0x7F800000, 0xFF800000, 0x7FFFFFFF, 0x3F800000, 0, 1 << 31
#: The manual's tables: operand -> result. Subnormal operands with .ftz are zeros.
_SPECIAL: Final[dict[str, dict[int, int]]] = {
    "rcp.approx.ftz.f32": {_NINF: _NZ, 0x80000001: _NINF, _NZ: _NINF, _Z: _INF, 1: _INF, _INF: _Z, _NAN: _NAN,
    _ONE: _ONE, 0xBF800000: 0xBF800000, 0x40000000: 0x3F000000},
    "rcp.approx.f32": {_NINF: _NZ, _NZ: _NINF, _Z: _INF, _INF: _Z, _NAN: _NAN, _ONE: _ONE, 0x40000000: 0x3F000000},
    "sqrt.approx.ftz.f32": {_NINF: _NAN, 0xBF800000: _NAN, 0x80000001: _NZ, _NZ: _NZ, _Z: _Z, 1: _Z, _INF: _INF,
    _NAN: _NAN, _ONE: _ONE, 0x40800000: 0x40000000},
    "sqrt.approx.f32": {_NINF: _NAN, 0xBF800000: _NAN, _NZ: _NZ, _Z: _Z, _INF: _INF, _NAN: _NAN, _ONE: _ONE},
    "rsqrt.approx.ftz.f32": {_NINF: _NAN, 0xBF800000: _NAN, 0x80000001: _NINF, _NZ: _NINF, _Z: _INF, 1: _INF, _INF: _Z,
    _NAN: _NAN, _ONE: _ONE, 0x40800000: 0x3F000000},
    "rsqrt.approx.f32": {_NINF: _NAN, 0xBF800000: _NAN, _NZ: _NINF, _Z: _INF, _INF: _Z, _NAN: _NAN, _ONE: _ONE},
    "sin.approx.ftz.f32": {_NINF: _NAN, 0x80000001: _NZ, _NZ: _NZ, _Z: _Z, 1: _Z, _INF: _NAN, _NAN: _NAN},
    "cos.approx.ftz.f32": {_NINF: _NAN, 0x80000001: _ONE, _NZ: _ONE, _Z: _ONE, 1: _ONE, _INF: _NAN, _NAN: _NAN},
    "lg2.approx.ftz.f32": {_NINF: _NAN, 0x80000001: _NINF, _NZ: _NINF, _Z: _NINF, 1: _NINF, _INF: _INF, _NAN: _NAN,
    _ONE: _Z, 0x41000000: 0x40400000},
    "lg2.approx.f32": {_NINF: _NAN, _NZ: _NINF, _Z: _NINF, _INF: _INF, _NAN: _NAN, _ONE: _Z, 1: 0xC3150000},
    "ex2.approx.ftz.f32": {_NINF: _Z, 0x80000001: _ONE, _NZ: _ONE, _Z: _ONE, 1: _ONE, _INF: _INF, _NAN: _NAN,
    _ONE: 0x40000000, 0xC3000000: _Z},
    "ex2.approx.f32": {_NINF: _Z, _NZ: _ONE, _Z: _ONE, _INF: _INF, _NAN: _NAN, 0xC3000000: 0x200000},
    "tanh.approx.f32": {_NINF: 0xBF800000, _NZ: _NZ, _Z: _Z, _INF: _ONE, _NAN: _NAN},
}  # fmt: skip


def _specials() -> Iterator[Form]:
    for name, known in _SPECIAL.items():
        yield Form(
            "approximations, special values",
            f"{name} {{d}}, {{a}};",
            ("f32",),
            ("f32",),
            lambda a, k=known: k[_NAN if is_nan(a, "f32") else a],
            TABLE,
            75,
            "f32",
            only=lambda a, k=known: (_NAN if is_nan(a, "f32") else a) in k,
        )
    halves = {0: 0x3C00, 0x8000: 0x3C00, 0x7C00: 0x7C00, 0xFC00: 0, 0x3C00: 0x4000, 0xBC00: 0x3800, 0x7E00: 0x7FFF}
    yield Form(
        "approximations, special values",
        "ex2.approx.f16 {d}, {a};",
        ("f16",),
        ("f16",),
        lambda a: halves[a],
        TABLE,
        75,
        "f16",
        only=lambda a: a in halves,
    )
    quotients = {(_INF, _INF): _NAN, (_Z, _Z): _NAN, (_ONE, _Z): _INF, (_ONE, _INF): _Z, (0xBF800000, _Z): _NINF}
    yield Form(
        "approximations, special values",
        "div.approx.f32 {d}, {a}, {b};",
        ("f32", "f32"),
        ("f32",),
        lambda a, b: quotients[a, b],
        TABLE,
        75,
        "f32",
        only=lambda a, b: (a, b) in quotients,
    )
    yield Form(
        "approximations, special values",
        "div.full.f32 {d}, {a}, {b};",
        ("f32", "f32"),
        ("f32",),
        lambda a, b: quotients[a, b],
        TABLE,
        75,
        "f32",
        only=lambda a, b: (a, b) in quotients,
    )


def forms() -> Iterator[Form]:
    """All of them."""
    yield from _arithmetic()
    yield from _extremes()
    yield from _comparisons()
    yield from _conversions()
    yield from _narrow()
    yield from _halves()
    yield from _specials()


__all__ = ["forms", "sg", "un"]
