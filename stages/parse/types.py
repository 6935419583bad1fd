"""Scalar types of PTX: width, kind, natural alignment."""

from __future__ import annotations

from typing import Final

# name -> (bits, kind); kind: b untyped, u unsigned, s signed, f float, p predicate, x packed or alternate float, o opaque.
SCALARS: Final[dict[str, tuple[int, str]]] = {
    "pred": (1, "p"),
    "b8": (8, "b"), "b16": (16, "b"), "b32": (32, "b"), "b64": (64, "b"), "b128": (128, "b"),
    "u8": (8, "u"), "u16": (16, "u"), "u32": (32, "u"), "u64": (64, "u"),
    "s8": (8, "s"), "s16": (16, "s"), "s32": (32, "s"), "s64": (64, "s"),
    "f16": (16, "f"), "f32": (32, "f"), "f64": (64, "f"), "f16x2": (32, "f"),
    "texref": (64, "o"), "samplerref": (64, "o"), "surfref": (64, "o"),
}  # fmt: skip

LINKAGES: Final = (".visible", ".extern", ".weak", ".common")
SPACES: Final = (".global", ".const", ".shared", ".local", ".param", ".tex")


def bits(name: str) -> int:
    """Width of a scalar type in bits."""
    return SCALARS[name][0]


def size(name: str) -> int:
    """Size of a scalar type in memory, bytes."""
    return max(1, SCALARS[name][0] // 8)
