"""Value checks: ranges and multiples of constants, named by the table's last column.

Each takes the instruction's name, modifiers and operands, and gives messages.  Ranges measured on ptxas 13.0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ir_format.ptx import Imm, ImmF32, ImmF64, Operand

Check = Callable[[str, tuple[str, ...], tuple[Operand, ...]], list[str]]
_U64 = (1 << 64) - 1


def _constant(operands: tuple[Operand, ...], index: int) -> int | None:
    if index < len(operands):
        x = operands[index]
        if isinstance(x, Imm):
            return x.value
    return None


def barrier(name: str, mods: tuple[str, ...], operands: tuple[Operand, ...]) -> list[str]:
    """Barrier number 0 to 15; thread count a multiple of the warp size."""
    first = 1 if "red" in name else 0
    out: list[str] = []
    number = _constant(operands, first)
    if number is not None and not 0 <= number <= 15:
        out.append(f"Barrier number '{number & _U64}' out of range, expected to be in range [0..15]")
    count = _constant(operands, first + 1)
    last = len(operands) - 1 if "red" in name else len(operands)
    if count is not None and first + 1 < last and count % 32:
        out.append("Number of threads participating in barrier must be in multiple of warp size")
    return out


def _within(index: int, low: int, high: int) -> Check:
    def check(name: str, mods: tuple[str, ...], operands: tuple[Operand, ...]) -> list[str]:
        value = _constant(operands, index)
        if value is None or low <= value <= high:
            return []
        return [f"Argument {index} of instruction '{name}': value '{value}' out of range, expected to be in range [{low}..{high}]"]

    return check


def _among(index: int, *values: int) -> Check:
    def check(name: str, mods: tuple[str, ...], operands: tuple[Operand, ...]) -> list[str]:
        value = _constant(operands, index)
        if value is None or value in values:
            return []
        allowed = " or ".join([str(v) for v in values])
        return [f"Argument {index} of instruction '{name}': unexpected value '{value}', expected to be {allowed}"]

    return check


def maxnreg(name: str, mods: tuple[str, ...], operands: tuple[Operand, ...]) -> list[str]:
    """Register count 24 to 256 in steps of 8."""
    value = _constant(operands, 0)
    if value is None:
        return []
    if value % 8:
        return [f"Argument 1 of instruction '{name}': unexpected value '{value}', expected to be multiple of 8"]
    if not 24 <= value <= 256:
        return [f"Argument 1 of instruction '{name}': value '{value}' out of range, expected to be in range [24..256]"]
    return []


def bit_field(name: str, mods: tuple[str, ...], operands: tuple[Operand, ...]) -> list[str]:
    """Position and length of a bit field: 0 to 255."""
    return _within(2, 0, 255)(name, mods, operands) + _within(3, 0, 255)(name, mods, operands)


def fraction(name: str, mods: tuple[str, ...], operands: tuple[Operand, ...]) -> list[str]:
    """A fraction above 0, at most 1."""
    from stages.parse.expr import f32_value, f64_from_bits

    if len(operands) < 2:
        return []
    x = operands[1]
    if isinstance(x, ImmF32):
        value = f32_value(x.bits)
    elif isinstance(x, ImmF64):
        value = f64_from_bits(x.bits)
    else:
        return []
    if 0 < value <= 1:
        return []
    return [f"Argument 2 of instruction '{name}': value '{value:f}' out of range, expected to be in range (0.000000 .. 1.000000]"]


def sparse(name: str, mods: tuple[str, ...], operands: tuple[Operand, ...]) -> list[str]:
    """The sparsity selector of mma.sp."""
    value = _constant(operands, 5)
    if value is None or 0 <= value <= 3:
        return []
    return [f"Argument 6 of instruction 'Sparse mma': value '{value}' out of range, expected to be in range [0..3]"]


CHECKS: Final[dict[str, Check]] = {
    "barrier": barrier,
    "maxnreg": maxnreg,
    "bitfield": bit_field,
    "fraction": fraction,
    "sparse": sparse,
    "pmevent": _within(0, 0, 15),
    "pmmask": _within(0, 0, 65535),
    "lut": lambda name, mods, operands: [],
    "size128": _among(1, 128),
    "fence128": _among(2, 128),
    "zero2": _among(2, 0),
    "cpsize": _among(2, 4, 8, 16),
    "cpsize16": _among(2, 16),
}
