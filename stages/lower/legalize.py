"""Legal operand forms: every instruction gets all its slots, and an operand that no form of the SM takes moves to a register.

Immediate operands that do not fit move by COPY; constant-bank operands by LDC (or MOV where arithmetic has constant operands); a negated or
complemented operand that must move is moved plain and keeps its sign at the use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ir_format import isa
from ir_format.diag import CompileError
from ir_format.model import ABS, INV, NEG, PSEUDO, ZERO, Const, Function, Imm, Inst, Mem, Operand, Reg

from .unit import UnitContext

if TYPE_CHECKING:
    from ir_format.isa.machine import Target

    Shape = tuple[str, tuple[str, ...], tuple[Operand, ...], tuple[Operand, ...]]


def legalize(fn: Function, ctx: UnitContext) -> None:
    """Complete and legalize every instruction of a function."""
    forms = Forms(isa.target(ctx.sm))
    for block in fn.blocks:
        out: list[Inst] = []
        for inst in block.insts:
            if inst.op in PSEUDO:
                out.append(inst)
                continue
            try:
                inst.dsts, inst.srcs = forms.machine.complete(inst.op, inst.mods, inst.dsts, inst.srcs)
            except CompileError as e:
                raise CompileError(e.message, inst.line) from e
            _legal(fn, ctx, forms, inst, out)
            out.append(inst)
        block.insts = out


class Forms:
    """Asks the instruction set whether a form exists; remembers the answer for operands that differ in register numbers only."""

    __slots__ = ("known", "machine")

    def __init__(self, machine: Target) -> None:
        self.machine = machine
        self.known: dict[Shape, bool] = {}

    def takes(self, inst: Inst, srcs: tuple[Operand, ...]) -> bool:
        """Whether some form takes the instruction with these sources."""
        shape = (inst.op, inst.mods, tuple([_bare(o) for o in inst.dsts]), tuple([_bare(o) for o in srcs]))
        got = self.known.get(shape)
        if got is None:
            got = self.known[shape] = self.machine.match(Inst(inst.op, inst.mods, shape[2], shape[3])) is not None
        return got


def _reg(r: Reg | None) -> Reg | None:
    return r if r is None or r.num == ZERO else r._replace(num=0, sub=0)


def _bare(o: Operand) -> Operand:
    """The operand with register 0 in place of its registers."""
    k = type(o)
    if k is Reg:
        return o if o.num == ZERO else o._replace(num=0, sub=0)  # type: ignore[union-attr,call-arg]
    if k is Mem:
        return o._replace(base=_reg(o.base), ubase=_reg(o.ubase), desc=_reg(o.desc))  # type: ignore[union-attr,call-arg]
    if k is Const:
        return o._replace(ireg=_reg(o.ireg))  # type: ignore[union-attr,call-arg]
    return o


def _legal(fn: Function, ctx: UnitContext, forms: Forms, inst: Inst, out: list[Inst]) -> None:
    original = inst.srcs
    if forms.takes(inst, original):
        return
    movable = [i for i, o in enumerate(original) if type(o) is Imm or type(o) is Const]
    # one operand at a time, the last first; then all of them
    for chosen in (*([i] for i in reversed(movable)), movable):
        trial = list(original)
        moves: list[Inst] = []
        for i in chosen:
            trial[i] = _move(fn, ctx, original[i], inst, moves)
        if chosen and forms.takes(inst, tuple(trial)):
            inst.srcs = tuple(trial)
            out.extend(moves)
            return
    raise CompileError(f"Instruction '{'.'.join((inst.op, *inst.mods))}' has no legal form on .target '{ctx.target_name}'", inst.line)


def _move(fn: Function, ctx: UnitContext, o: Operand, inst: Inst, moves: list[Inst]) -> Reg:
    if type(o) is Imm:
        d = fn.new_vreg("R")
        moves.append(Inst("COPY", (), (d,), (o,), None, inst.line, inst.loc))
        return d
    assert type(o) is Const
    d = fn.new_vreg("R", o.width)
    flags = o.flags & (NEG | ABS | INV)
    plain = o._replace(flags=0)
    if ctx.target.alu_const and o.ireg is None:
        for k in range(o.width):
            part = plain._replace(offset=plain.offset + 4 * k, width=1)
            moves.append(Inst("MOV", (), (d._replace(sub=k, width=1),), (part, Imm("I", 15)), None, inst.line, inst.loc))
    else:
        moves.append(Inst("LDC", ("64",) if o.width == 2 else (), (d,), (plain,), None, inst.line, inst.loc))
    return d._replace(flags=flags)
