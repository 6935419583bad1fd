"""Rules for halves of registers: instructions on f16 and bf16 select the half of a source themselves (H0_H0, H1_H1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ir_format.model import RZ, ZERO, Inst, Operand, Reg

if TYPE_CHECKING:
    from stages.optimize.scalar.combine import Combiner

_SELECTED: Final = {"H0_H0": 0, "H1_H1": 1}
_NAMES: Final = ("H0_H0", "H1_H1")
#: LOP3's table of a & b.
_AND: Final = 0xC0


def select_half(s: Combiner, i: Inst) -> Inst | None:
    """A source that both lanes read one half of, which was moved there from a half of another register: that half."""
    srcs = list(i.srcs)
    for n, o in enumerate(srcs):
        if type(o) is not Reg or o.num == ZERO or o.mod not in _SELECTED:
            continue
        found = _half(s, o)
        if found is not None:
            x, half = found
            srcs[n] = x._replace(flags=o.flags, mod=_NAMES[half])
    return s.build(i, i.op, i.mods, i.dsts, tuple(srcs)) if tuple(srcs) != i.srcs else None


def _half(s: Combiner, o: Reg) -> tuple[Reg, int] | None:
    """The register and its half that a half of another register was made of."""
    plain = o._replace(flags=0, mod="")
    which = _SELECTED[o.mod]
    m = s.made_by(plain, "PRMT")
    x: Operand
    if m is not None:
        sel = s.constant(m.srcs[1])
        if m.mods or sel is None:
            return None
        low, high = sel >> 8 * which & 15, sel >> 8 * which + 4 & 15
        if low & 1 or high != low + 1 or low > 7:
            return None
        x, half = m.srcs[0 if low < 4 else 2], low >> 1 & 1
    elif which == 0 and (m := s.made_by(plain, "SHF")) is not None:
        if m.mods not in (("R", "U32", "HI"), ("R", "S32", "HI")) or m.srcs[0] != RZ or s.constant(m.srcs[1]) != 16:
            return None
        x, half = m.srcs[2], 1
    elif which == 0 and (m := s.made_by(plain, "LOP3")) is not None:
        if m.mods != ("LUT",) or s.constant(m.srcs[1]) != 0xFFFF or s.constant(m.srcs[3]) != _AND:
            return None
        x, half = m.srcs[0], 0
    else:
        return None
    if type(x) is not Reg or x.num == ZERO or x.file != "R" or x.flags or x.mod or not s.unchanged(m, x):
        return None
    return x, half
