"""Conversions into registers of more words than the rules of conversions write."""

from __future__ import annotations

from ir_format import ptx
from ir_format.ptx import PtxInst
from ir_format.record import replace
from stages.lower.builder import Builder, Rule, is_signed
from stages.lower.elements import fill_high

_RESULT = -1  # the index that no register of a program has


def is_wide(b: Builder, inst: PtxInst) -> bool:
    """True for a result of 128 bits, of `cvt.pack` of 64 too."""
    x = inst.operands[0]
    if type(x) is not ptx.Reg:
        return False
    return b.pf.regs[x.index].type == "b128" or (inst.has("pack") and b.reg(x.index).width > 1)


def convert_wide(b: Builder, inst: PtxInst, rule: Rule) -> None:
    """cvt: in the width of its type, then by its sign into the other words (as ptxas does)."""
    d, t = b.dst(inst.operands[0]), inst.types[0]
    b.regs[_RESULT] = result = b.r(2 if b.bits(t) == 64 else 1)
    rule(b, replace(inst, operands=(ptx.Reg(_RESULT), *inst.operands[1:])))
    del b.regs[_RESULT]
    b.copy(d._replace(width=result.width), result)
    for i in range(result.width, d.width):
        fill_high(b, d, i, is_signed(t) and not inst.has("pack"))
