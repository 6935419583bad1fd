"""Scalar types of PTX: width, kind, natural alignment."""

from __future__ import annotations

from ir_format.ptx_types import TYPE_BITS
from ir_format.typed import Final

# Kind -> types: b untyped, u unsigned, s signed, f float, p predicate.
_KINDS: Final = {
    "p": "pred", "b": "b8 b16 b32 b64 b128", "u": "u8 u16 u32 u64", "s": "s8 s16 s32 s64", "f": "f16 f32 f64 f16x2",
}  # fmt: skip
_OPAQUE: Final = ("texref", "samplerref", "surfref")
#: Name -> (bits, kind); kind o: opaque.
SCALARS: Final[dict[str, tuple[int, str]]] = {
    **{name: (TYPE_BITS[name], kind) for kind, names in _KINDS.items() for name in names.split()},
    **{name: (64, "o") for name in _OPAQUE},
}

LINKAGES: Final = (".visible", ".extern", ".weak", ".common")
SPACES: Final = (".global", ".const", ".shared", ".local", ".param", ".tex")


def bits(name: str) -> int:
    """Width of a scalar type in bits."""
    return SCALARS[name][0]


def size(name: str) -> int:
    """Size of a scalar type in memory, bytes."""
    return max(1, SCALARS[name][0] // 8)
