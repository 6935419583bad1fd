"""Constant evaluation: what an instruction computes if its operands are known. One evaluator for all passes; the
simulator and the PTX interpreter, which judge the code, have their own.

Pre: an instruction at level `ori`. Post: exactly the bits that the hardware computes, in the instruction's rounding
mode, or nothing. An instruction with a modifier that its evaluator does not know gives nothing.
"""

from __future__ import annotations

from ir_format.isa import facts
from ir_format.model import ZERO, Inst, Reg
from ir_format.typed import Final
from stages.optimize.evaluate import conversions, floating, integers
from stages.optimize.evaluate.integers import Evaluator
from stages.optimize.evaluate.operands import Answer, Known, Reader, Unknown, is_predicate

_BASE: Final = {**integers.TABLE, **floating.TABLE, **conversions.TABLE}
_ROWS: Final = facts.mnemonics()
#: Mnemonic -> its evaluator, and the modifiers that it knows; those of the uniform datapath compute the same.
EVALUATORS: Final[dict[str, tuple[Evaluator, frozenset[str]]]] = {
    name: (run, frozenset(mods))
    for op, (run, mods) in _BASE.items()
    for name in (op, "U" + op)
    if name == op or name in _ROWS
}


def evaluate(inst: Inst, known: Known) -> Answer | None:
    """The results of an instruction from what is known of its register operands; None if they are not known."""
    entry = EVALUATORS.get(inst.op)
    if entry is None:
        return None
    run, mods = entry
    if not mods.issuperset(inst.mods):
        return None
    try:
        return run(Reader(inst, known))
    except Unknown:
        return None


def results(inst: Inst, answer: Answer) -> list[tuple[Reg, int]] | None:
    """The lanes that an instruction writes, with what it writes into them; None if the answer lacks one."""
    value, predicates = answer
    found: list[tuple[Reg, int]] = []
    n = 0
    for d in inst.dsts:
        if type(d) is not Reg:
            return None
        if is_predicate(d):
            if d.num != ZERO:
                if n >= len(predicates):
                    return None
                found.append((d, int(predicates[n])))
            n += 1
        elif d.num != ZERO:
            if value is None:
                return None
            for k in range(d.width):
                found.append((Reg(d.file, d.num, d.sub + k), value >> 32 * k & 0xFFFFFFFF))
    return found
