"""Modifiers that nvdisasm derives from operands: they have no bits of their own (measured, the same on all SMs)."""

from __future__ import annotations

from collections.abc import Callable

from ir_format.model import NEG, ZERO, Imm, Operand, Reg

#: (form letters, modifiers, operands: d, a, b, c, ...) -> the name is printed
Rule = Callable[[str, tuple[str, ...], list[Operand]], bool]


def _rz(o: Operand, signed: bool = False) -> bool:
    return isinstance(o, Reg) and o.file == "R" and o.num == ZERO and (signed or not o.flags & NEG)


def imad_mov(letters: str, mods: tuple[str, ...], ops: list[Operand]) -> bool:
    """One factor is zero (or one, and nothing is added): only c or a is left."""
    if "X" in mods or letters not in ("rr", "ri", "ir", "rk", "kr"):
        return False
    a, b, c = ops[1], ops[2], ops[3]
    if _rz(a):
        return True
    if isinstance(b, Imm):
        return b.value == 0 or (b.value == 1 and _rz(c, True))
    return _rz(b)


def imad_shl(letters: str, mods: tuple[str, ...], ops: list[Operand]) -> bool:
    """b is a power of two above 1, nothing is added; 2**16 and 2**31 are left out."""
    b = ops[2]
    if "X" in mods or not isinstance(b, Imm) or not _rz(ops[3], True):
        return False
    return b.value > 1 and b.value & (b.value - 1) == 0 and b.value not in (0x10000, 0x80000000)


def imad_iadd(letters: str, mods: tuple[str, ...], ops: list[Operand]) -> bool:
    """b is 1."""
    b = ops[2]
    return "X" not in mods and isinstance(b, Imm) and b.value == 1


RULES: dict[str, Rule] = {"mov": imad_mov, "shl": imad_shl, "iadd": imad_iadd}
