"""Rules for what is known although it is not one word: carries of constant sums, constant-bank loads from constant
addresses.

PTX takes addresses of parameters and adds to them in 64 bits (CUTLASS loads all its parameters so); without these the
loads would go through an index register."""

from __future__ import annotations

from ir_format.model import NOT_PT, PT, RZ, Const, Imm, Inst, Operand, Reg
from ir_format.typed import TYPE_CHECKING, Final
from stages.optimize.evaluate.operands import WORD
from stages.optimize.scalar.fold import copy_of, is_pt, plus_constant

if TYPE_CHECKING:
    from stages.optimize.scalar.combine import Combiner

BANK_END: Final = (
    1 << 16
)  # bytes of a constant bank that an instruction's offset reaches (measured B3: 14 bits of words)
INDEXED_END: Final = 1 << 15  # ... beside an index register, to which it is added as a signed number


def known_carry(s: Combiner, i: Inst) -> Inst | None:
    """a + b + c + carries where the carries are PT or !PT and at most two terms are not known: a sum with a known carry
    needs none. A flag on a term would mean ~x here: left alone."""
    if i.mods != ("X",) or i.dsts[1:] != (PT, PT) or not all(o in (PT, NOT_PT) for o in i.srcs[3:5]):
        return None
    total = sum(map(is_pt, i.srcs[3:5]))
    rest: list[Operand] = []
    for o in i.srcs[:3]:
        v = s.constant(o)
        if v is not None:
            total += v
        elif getattr(o, "flags", 0):
            return None
        else:
            rest.append(o)
    total &= WORD
    if total:
        rest.insert(1, Imm("I", total))
    rest += [RZ] * (3 - len(rest))
    return s.build(i, "IADD3", (), (i.dsts[0],), tuple(rest)) if len(rest) == 3 else None


def constant_index(s: Combiner, i: Inst) -> Inst | None:
    """LDC with an index that is known, or known up to a sum: the offset takes it. Without an index it is a plain
    constant operand where arithmetic has those."""
    o = i.srcs[0]
    if (
        type(o) is not Const
        or o.ireg is None
        or i.guard is not None
        or o.flags
        or o.sym
        or o.ireg.flags
        or o.ireg.mod
        or o.ireg.file != "R"
    ):
        return None
    at = s.constant(o.ireg)
    index: Reg | None = None
    if at is None:
        sum_ = plus_constant(s, o.ireg)
        if sum_ is None:
            return None
        index, at = sum_
    offset = o.offset + at
    if not 0 <= offset < (BANK_END if index is None else INDEXED_END):
        return None
    new = o._replace(ireg=index, offset=offset)
    d = i.dsts[0]
    if (
        index is None
        and s.alu_const
        and i.mods in ((), ("64",))
        and type(d) is Reg
        and offset % (4 * d.width) == 0
        and d.width == new.width
    ):
        return copy_of(i, d, new)
    made = Inst("LDC", i.mods, i.dsts, (new,), i.guard, i.line, i.loc)
    return made if s.legal(made) else None
