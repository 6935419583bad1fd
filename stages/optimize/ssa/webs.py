"""What SSA form records besides the instructions: which values share a register after it.

A *web* is a set of values that came from one register and are joined by PHIs, guarded writes or instructions that write
in place. Its members are never live at the same time (conventional SSA), so that leaving the form is renaming alone. A
pass keeps that if it never lengthens the life of a web's member; a value that is alone in its web may live as long as a
pass likes.
"""

from __future__ import annotations

from ir_format.model import Inst, Operand, Reg
from ir_format.typed import Final

#: Suffix of an operand in ``Inst.uses``: the value that a guarded write, or a write in place, may leave where it is. It
#: dies in the write.
TIED: Final = "tied"


class Webs:
    """``top[v]``: the register that the web of ``v`` becomes; ``shared[v]``: 1 where the web has other members.
    Registers made later are alone. ``first``: the first register that construction added."""

    __slots__ = ("count", "first", "shared", "top")

    def __init__(self, top: list[int], first: int) -> None:
        self.top = top
        self.count = len(top)
        self.first = first
        self.shared = bytearray(len(top))
        for v, t in enumerate(top):
            if t != v:
                self.shared[v] = self.shared[t] = 1

    def of(self, v: int) -> int:
        """The web of a register, named by the register that it becomes."""
        return self.top[v] if v < self.count else v


def is_tie(o: Operand) -> bool:
    """Whether an operand of ``Inst.uses`` is the old value of a guarded write."""
    return type(o) is Reg and o.mod == TIED


def has_ties(inst: Inst) -> bool:
    """Whether all that an instruction uses beside its operands are old values of what it writes."""
    return bool(inst.uses) and all(map(is_tie, inst.uses))
