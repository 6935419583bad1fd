"""Modifiers that nvdisasm derives from operands: they have no bits of their own (measured on all SMs)."""

from __future__ import annotations

from collections.abc import Callable

from ir_format.model import ZERO, Imm, Operand, Reg

Rule = Callable[[str, tuple[str, ...], list[Operand]], bool]


def _rz(o: Operand) -> bool:
    return isinstance(o, Reg) and o.file == "R" and o.num == ZERO and not o.flags & 7


def imad_mov(letters: str, mods: tuple[str, ...], ops: list[Operand]) -> bool:
    """IMAD d, RZ, RZ, c is printed IMAD.MOV (not where c is uniform)."""
    return letters in ("rr", "ri", "rk") and _rz(ops[2]) and _rz(ops[3]) and "X" not in mods


def imad_shl(letters: str, mods: tuple[str, ...], ops: list[Operand]) -> bool:
    """IMAD d, a, 2**n, RZ with n > 0 is printed IMAD.SHL."""
    b = ops[3]
    return isinstance(b, Imm) and _rz(ops[4]) and b.value > 1 and b.value & (b.value - 1) == 0 and "X" not in mods


def imad_iadd(letters: str, mods: tuple[str, ...], ops: list[Operand]) -> bool:
    """IMAD d, a, 1, c is printed IMAD.IADD."""
    b = ops[3]
    return isinstance(b, Imm) and b.value == 1 and "X" not in mods


RULES: dict[str, Rule] = {"mov": imad_mov, "shl": imad_shl, "iadd": imad_iadd}
