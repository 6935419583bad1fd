"""Float instructions: C of the host in its four rounding modes, numpy, ml_dtypes for narrow formats, exact fractions,
and the manual's tables of special values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Final

from tests.edges import conversions, special_values
from tests.edges.form import Form
from tests.edges.formats import (
    EXACT,
    MODES,
    NUMPY,
    PARTS,
    C,
    arith,
    flushed,
    is_nan,
    is_small,
    number,
)
from tests.edges.halves import by_halves, exact, least
from tests.edges.integers import sg, un


def _arithmetic() -> Iterator[Form]:
    for t in ("f32", "f64"):
        for op, count in (("add", 2), ("sub", 2), ("mul", 2), ("fma", 3), ("div", 2), ("sqrt", 1), ("rcp", 1)):
            for mode in MODES:
                for tail in ("", ".ftz", ".ftz.sat", ".sat") if t == "f32" else ("",):
                    if "sat" in tail and op in ("div", "sqrt", "rcp"):
                        continue
                    names = ", ".join("{" + x + "}" for x in "abc"[:count])
                    f = arith("div" if op == "rcp" else op, t, mode, "ftz" in tail, "sat" in tail)
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
                    lambda a, b, t=t, m=mods, g=op == "max": least(a, b, t, m, g),
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


def compare(name: str, x: float, y: float) -> int:
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
                lambda a, b, t=t, n=name: compare(n, number(a, t), number(b, t)),
                NUMPY,
                90 if t == "bf16" else 75,
            )
    for name in ("eq", "lt", "geu"):
        yield Form(
            "setp f32 .ftz",
            f"setp.{name}.ftz.f32 {{d}}, {{a}}, {{b}};",
            ("f32", "f32"),
            ("pred",),
            lambda a, b, n=name: compare(n, number(flushed(a, "f32"), "f32"), number(flushed(b, "f32"), "f32")),
            NUMPY,
        )
    tests: dict[str, Callable[[int, str], bool]] = {
        "finite": lambda x, t: x & PARTS[t][0] != PARTS[t][0], "infinite": lambda x,
        t: x & (PARTS[t][1] - 1) == PARTS[t][0], "number": lambda x, t: not is_nan(x, t),
        # the manual counts zeros as normal
        "notanumber": is_nan, "normal": lambda x,
        t: x & PARTS[t][0] not in (0, PARTS[t][0]) or not x & (PARTS[t][1] - 1),
        "subnormal": lambda x, t: is_small(x, t) and bool(x & (PARTS[t][1] - 1)),
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
        sign = PARTS[t][1]
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


def _halves() -> Iterator[Form]:
    """f16 and bf16 arithmetic: one rounding of the exact result."""
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
                    by_halves(lambda xs, op=op, m=mode: exact(op, xs, "f16", m), t),
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
                by_halves(lambda xs, op=op: exact(op, xs, "bf16"), t),
                EXACT,
                80 if op == "fma" else 90,
                t,
            )


def forms() -> Iterator[Form]:
    """All of them."""
    yield from _arithmetic()
    yield from _extremes()
    yield from _comparisons()
    yield from conversions.conversions()
    yield from conversions.narrow()
    yield from _halves()
    yield from special_values.special_values()


__all__ = ["forms", "sg", "un"]
