"""Numbers as nvdisasm prints them, and back."""

from __future__ import annotations

import struct


def f32_text(bits: int) -> str:
    """A 32-bit float pattern: 20 significant digits, trailing zeros cut (measured)."""
    exponent, fraction = bits >> 23 & 0xFF, bits & 0x7FFFFF
    sign = "-" if bits >> 31 else "+"
    if exponent == 0xFF:
        if fraction == 0:
            return sign + "INF "
        return sign + ("QNAN " if fraction >> 22 else "SNAN ")
    return f64_digits(struct.unpack("<f", struct.pack("<I", bits))[0])


def f64_digits(value: float) -> str:
    """A finite value: ``%.20g`` below 1e9, ``%.20e`` from there on (measured)."""
    if value == 0:
        return "0" if str(value)[0] != "-" else "-0.0 "
    return "%.20e" % value if abs(value) >= 1e9 else "%.20g" % value


def f64_text(high: int) -> str:
    """The double whose high word is ``high`` and whose low word is 0."""
    exponent, fraction = high >> 20 & 0x7FF, high & 0xFFFFF
    sign = "-" if high >> 31 else "+"
    if exponent == 0x7FF:
        if fraction == 0:
            return sign + "INF "
        return sign + ("QNAN " if fraction >> 19 else "SNAN ")
    return f64_digits(struct.unpack("<d", struct.pack("<Q", high << 32))[0])


def f16_text(bits: int) -> str:
    """A half pattern."""
    exponent, fraction = bits >> 10 & 31, bits & 0x3FF
    sign = "-" if bits >> 15 else "+"
    if exponent == 31:
        if fraction == 0:
            return sign + "INF "
        return sign + ("QNAN " if fraction >> 9 else "SNAN ")
    return f64_digits(struct.unpack("<e", struct.pack("<H", bits))[0])


def format_imm(value: int, style: str, size: int) -> str:
    """``style``: s signed hex, u unsigned hex, f32, f64 (high word), f16x2 and bf16x2 (low half printed last)."""
    if style == "s":
        if value >= 1 << (size - 1):
            value -= 1 << size
        return f"-{-value:#x}" if value < 0 else f"{value:#x}"
    if style == "f32":
        return f32_text(value)
    if style == "f64":
        return f64_text(value)
    if style == "f16x2":
        return f"{f16_text(value >> 16)}, {f16_text(value & 0xFFFF)}"
    if style == "bf16x2":
        return f"{f32_text(value >> 16 << 16)}, {f32_text((value & 0xFFFF) << 16)}"
    if style == "f16":
        return f16_text(value & 0xFFFF)
    if style == "bf16":
        return f32_text(value << 16)
    if style == "d":
        return str(value)
    return f"{value:#x}"
