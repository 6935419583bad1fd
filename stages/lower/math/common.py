"""Common code of the floating-point rules: modifier names, operand negation, comparison tables, predicates of PTX
instructions."""

from __future__ import annotations

from ir_format import ptx
from ir_format.model import ABS, NEG, PT, RZ, ZERO, AttrValue, Imm, Reg
from ir_format.ptx import PtxInst
from ir_format.typed import Final
from stages.lower.builder import Builder

Val = Reg | Imm

SIGN: Final = {
    "f16": 0x8000,
    "bf16": 0x8000,
    "f16x2": 0x80008000,
    "bf16x2": 0x80008000,
    "f32": 0x80000000,
    "f64": 1 << 63,
}
ONE: Final = {"f16": 0x3C00, "bf16": 0x3F80, "f32": 0x3F800000, "f64": 0x3FF0000000000000}
NEG_RZ: Final = RZ._replace(flags=NEG)

# PTX rounding modes; the value is the suffix of a SASS opcode.
ROUND: Final = {"rn": "", "rz": ".RZ", "rm": ".RM", "rp": ".RP"}

BOOL_OPS: Final = frozenset(("and", "or", "xor"))
# Comparisons of floats are spelled alike in PTX and SASS; these four are PTX's names for the unsigned comparisons of
# integers.
_INT_CMP: Final = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
COMPARE: Final = frozenset(
    ["eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan", "lo", "ls", "hi", "hs"]
)


def rounding(inst: PtxInst) -> str:
    """The PTX rounding mode written in the instruction, ``rn`` if none is."""
    for m in inst.mods:
        if m in ROUND:
            return m
    return "rn"


def contractible(b: Builder, inst: PtxInst) -> dict[str, AttrValue] | None:
    """The mark of a product or sum that may be rounded together with another one: no rounding mode is written, and
    -fmad is on as by default."""
    if b.ctx.contracts and not any(m in ROUND for m in inst.mods):
        return {"contract": 1}
    return None


def ftz(inst: PtxInst) -> str:
    """``.FTZ`` or nothing."""
    return ".FTZ" if "ftz" in inst.mods else ""


def arith_mods(inst: PtxInst) -> str:
    """``.FTZ``, rounding and ``.SAT`` in print order."""
    return ftz(inst) + ROUND[rounding(inst)] + (".SAT" if "sat" in inst.mods else "")


def negate(x: Val, t: str) -> Val:
    """The operand ``-x``; an immediate is folded."""
    if type(x) is Imm:
        return Imm("I", x.value ^ SIGN[t])
    return x._replace(flags=x.flags ^ NEG)


def absolute(x: Val, t: str) -> Val:
    """The operand ``|x|``; an immediate is folded."""
    if type(x) is Imm:
        return Imm("I", x.value & ~SIGN[t])
    return x._replace(flags=(x.flags | ABS) & ~NEG)


def signed(b: Builder, x: Val, t: str) -> Val:
    """An operand of .xorsign, which reads its sign besides ``|x|``: a negative constant can't be folded (ptxas keeps it
    in a register too)."""
    return b.in_reg(x) if type(x) is Imm and x.value & SIGN[t] else x


def never(b: Builder, d: Reg) -> None:
    """A predicate that is false."""
    b.emit("PLOP3.LUT", (d, PT), (PT, PT, PT, Imm("I", 0), Imm("I", 0)))


def float_imm(value: int) -> Imm:
    """An immediate from its bit pattern."""
    return Imm("I", value)


def comparison(inst: PtxInst) -> tuple[str, str]:
    """(comparison, Boolean operator) of setp or set, as SASS names."""
    cmp = next(m for m in inst.mods if m in COMPARE)
    bop = next((m for m in inst.mods if m in BOOL_OPS), "and")
    return _INT_CMP.get(cmp, cmp).upper(), bop.upper()


def pred_src(b: Builder, x: ptx.Operand) -> Reg:
    """A predicate source operand."""
    p = b.src(x, "pred")
    assert isinstance(p, Reg)
    return p


def combine_pred(b: Builder, inst: PtxInst, first: int) -> Reg:
    """The predicate that setp or set combines with, at operand ``first``; PT if there is none."""
    return pred_src(b, inst.operands[first]) if len(inst.operands) > first else PT


def pred_dsts(b: Builder, x: ptx.Operand) -> tuple[Reg, Reg]:
    """The destination predicates of setp: ``p`` or ``p|q``."""
    if type(x) is ptx.Pair:
        return b.dst(x.first, "pred"), b.dst(x.second, "pred")
    return b.dst(x, "pred"), PT


def store_int(b: Builder, x: ptx.Operand, t: str, value: Reg) -> None:
    """Write a 32-bit value, extended from PTX type ``t`` already, to a destination register of any width."""
    d = b.dst(x, "b32")
    if d.num == ZERO:
        return
    b.copy(d._replace(width=1), value)
    if d.width > 1:
        high: Val = RZ
        if t[0] == "s":
            high = b.r()
            b.emit("SHF.R.S32.HI", high, (RZ, Imm("I", 31), value))
        b.copy(b.hi_r(d), high)
