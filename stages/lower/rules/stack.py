"""alloca, stacksave, stackrestore: memory below the frame.

The ABI's stack pointer does not move, because it is the base of the frame. Another register of the function holds the
lower end of the dynamic stack, and during calls the stack pointer is below that (`abi/calls.py`, `LowStack`).
"""

from __future__ import annotations

from ir_format import ptx
from ir_format.model import RZ, Imm, Reg
from ir_format.ptx import PtxInst
from stages.lower.abi.frame import STACK
from stages.lower.builder import Builder, Rule
from stages.lower.rules.integer import add32, logic, negated

_DEFAULT_ALIGN = 8


def _give(b: Builder, x: ptx.Operand, t: str, v: Reg) -> None:
    d = b.dst(x, t)
    b.copy(b.lo_r(d), v)
    if d.width == 2:
        b.copy(b.hi_r(d), RZ)


def alloca(b: Builder, inst: PtxInst) -> None:
    align = _DEFAULT_ALIGN
    if len(inst.operands) > 2:
        x = inst.operands[2]
        if not isinstance(x, ptx.Imm):
            raise b.unsupported(inst, "alignment")
        align = max(align, x.value)
    if align & (align - 1):
        raise b.unsupported(inst, "alignment")
    t = inst.types[0]
    size = b.in_reg(b.lo(b.src(inst.operands[1], t)))
    s, low, d = b.cache[STACK], b.r(), b.r()
    add32(b, low, s, negated(size))
    logic(b, d, 0xC0, low, Imm("I", -align & 0xFFFFFFFF))
    b.copy(s, d)
    _give(b, inst.operands[0], t, d)


def stacksave(b: Builder, inst: PtxInst) -> None:
    _give(b, inst.operands[0], inst.types[0], b.cache[STACK])


def stackrestore(b: Builder, inst: PtxInst) -> None:
    b.copy(b.cache[STACK], b.lo(b.src(inst.operands[0], inst.types[0])))


RULES: dict[str, Rule] = {"alloca": alloca, "stacksave": stacksave, "stackrestore": stackrestore}
