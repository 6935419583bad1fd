"""Operands of one instruction in uniform registers: addresses, descriptors and cache policies of the copy unit and of
tensor cores."""

from __future__ import annotations

from ir_format.model import Imm, Mem, Operand, Reg
from stages.lower.builder import Builder
from stages.lower.rules.integer import Val


class Uniform:
    """Uniform register operands of one instruction. In each iteration the elected thread fills them."""

    __slots__ = ("b", "turn")

    def __init__(self, b: Builder, turn: Reg | None) -> None:
        self.b = b
        self.turn = turn

    def block(self, words: list[Val]) -> Reg:
        """Words in neighbouring registers, with ptxas's alignment: 4 for up to four words, else 8."""
        b = self.b
        n = len(words)
        align = 1 if n == 1 else 2 if n == 2 else 4 if n <= 4 else 8
        to = b.fn.new_vreg("UR", n, align, -1, 1)
        if self.turn is not None:
            b.emit("UNDEF", to, ())
        for i, w in enumerate(words):
            part = to._replace(sub=i, width=1)
            if type(w) is Imm:
                b.emit("COPY", part, (w,))
            else:
                b.emit("R2UR", part, (b.in_reg(w),), self.turn)
        return to

    def pair(self, x: Reg) -> Reg:
        """A 64-bit value."""
        return self.block([self.b.word(x, 0), self.b.word(x, 1)])

    def at(self, words: list[Val]) -> Mem:
        """``[UR]``."""
        return Mem("M", None, self.block(words))

    def at_pair(self, x: Reg) -> Mem:
        return Mem("M", None, self.pair(x))

    def policy(self, x: Reg | None) -> list[Operand]:
        """``desc[UR]`` if there is a cache policy."""
        return [] if x is None else [Mem("M", None, None, 0, self.pair(x))]
