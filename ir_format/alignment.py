"""Alignment of offsets and sizes."""

from __future__ import annotations


def align_up(value: int, align: int) -> int:
    """The least multiple of ``align`` that is not below ``value``; ``value`` itself where ``align`` is 0."""
    return -(-value // align) * align if align else value
