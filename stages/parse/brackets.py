"""Operands of several parts in brackets, other than those of textures."""

from __future__ import annotations

from stages.parse import compat


def is_handle(kind: str, offsets: int) -> bool:
    """A fabric's endpoint, and as many offsets: of its data, and of a counter."""
    parts = kind[3:].split(",")
    if kind[:3] != "a2:" or len(parts) != 1 + offsets or parts[0][:4] != "a:r:":
        return False
    wanted = ("u32", "u64", "u64")
    words = [parts[0][2:], *parts[1:]]
    return all(
        word[:2] == "r:" and word[2:] in compat.STRICT[t] for word, t in zip(words, wanted[: 1 + offsets], strict=True)
    )
