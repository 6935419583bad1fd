"""Special values of approximations, by the manual's tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.edges.form import Form
from tests.edges.formats import (
    TABLE,
    is_nan,
)

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


def special_values() -> Iterator[Form]:
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
