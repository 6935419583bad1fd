"""Legal operand forms: every instruction gets all its slots, and an operand that no form of the SM takes moves to a register.

Immediate operands that do not fit move by COPY; constant-bank operands by LDC (or MOV where arithmetic has constant operands); a negated or
complemented operand that must move is moved plain and keeps its sign at the use.
"""

from __future__ import annotations

from ir_format import isa
from ir_format.diag import CompileError
from ir_format.model import ABS, INV, NEG, PSEUDO, Const, Function, Imm, Inst, Operand, Reg

from .unit import UnitContext


def legalize(fn: Function, ctx: UnitContext) -> None:
    """Complete and legalize every instruction of a function."""
    machine = isa.target(ctx.sm)
    known: dict[tuple, bool] = {}  # type: ignore[type-arg]
    for block in fn.blocks:
        out: list[Inst] = []
        for inst in block.insts:
            if inst.op in PSEUDO:
                out.append(inst)
                continue
            try:
                inst.dsts, inst.srcs = machine.complete(inst.op, inst.mods, inst.dsts, inst.srcs)
            except CompileError as e:
                raise CompileError(e.message, inst.line) from e
            _legal(fn, ctx, machine, inst, out)
            out.append(inst)
        block.insts = out


def _legal(fn: Function, ctx: UnitContext, machine, inst: Inst, out: list[Inst]) -> None:  # type: ignore[no-untyped-def]
    if machine.match(inst) is not None:
        return
    original = inst.srcs
    movable = [i for i, o in enumerate(original) if type(o) is Imm or type(o) is Const]
    # one operand at a time, the last first; then all of them
    for chosen in (*([i] for i in reversed(movable)), movable):
        trial = list(original)
        moves: list[Inst] = []
        for i in chosen:
            trial[i] = _move(fn, ctx, original[i], inst, moves)
        inst.srcs = tuple(trial)
        if chosen and machine.match(inst) is not None:
            out.extend(moves)
            return
        inst.srcs = original
    raise CompileError(f"Instruction '{'.'.join((inst.op, *inst.mods))}' has no legal form on .target '{ctx.target_name}'", inst.line)


def _move(fn: Function, ctx: UnitContext, o: Operand, inst: Inst, moves: list[Inst]) -> Reg:
    if type(o) is Imm:
        width = 1
        d = fn.new_vreg("R", width)
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
