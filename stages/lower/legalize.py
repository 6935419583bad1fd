"""Legal operand forms: fill all slots of every instruction, and move operands that no form of the SM has to registers.

COPY moves immediates that do not fit; LDC moves constant-bank operands (or MOV, if arithmetic has constant operands). A
negated or complemented operand moves without its sign, which stays at the use.
"""

from __future__ import annotations

from functools import cache

from ir_format import isa
from ir_format.diag import CompileError
from ir_format.model import ABS, INV, NEG, PSEUDO, ZERO, Const, Function, Imm, Inst, Mem, Operand, Reg
from ir_format.ptx import PtxFunction, PtxInst
from ir_format.typed import TYPE_CHECKING
from stages.lower.unit import UnitContext

if TYPE_CHECKING:
    from ir_format.isa.machine import Target

    Template = list[int | Operand]
    Shape = tuple[str, tuple[str, ...], tuple[object, ...], tuple[object, ...]]


_MOST = 1 << 14  # cached answers


def legalize(fn: Function, ctx: UnitContext, pf: PtxFunction) -> None:
    """Complete and legalize every instruction of a function; CompileError names the PTX instruction that needs a form
    the SM lacks."""
    forms = _forms(ctx.sm)
    for block in fn.blocks:
        out: list[Inst] = []
        for inst in block.insts:
            if inst.op in PSEUDO:
                out.append(inst)
                continue
            if not forms.complete(inst) and not _moved(fn, ctx, forms, inst, out):
                raise _refused(inst, ctx, pf)
            out.append(inst)
        block.insts = out


@cache
def _forms(sm: int) -> Forms:
    return Forms(isa.target(sm))


class Forms:
    """Queries the instruction set for operand forms. Answers are cached for operands that differ only in register
    numbers."""

    __slots__ = ("known", "machine")

    def __init__(self, machine: Target) -> None:
        self.machine = machine
        self.known: dict[Shape, tuple[Template, Template, bool] | None] = {}

    def complete(self, inst: Inst) -> bool:
        """Fill the omitted slots of the instruction. Returns whether a form matches it then (False also if no row has
        such operands)."""
        shape = (inst.op, inst.mods, tuple([_shape(o) for o in inst.dsts]), tuple([_shape(o) for o in inst.srcs]))
        if shape in self.known:
            got = self.known[shape]
        else:
            if len(self.known) > _MOST:
                self.known.clear()
            got = self.known[shape] = self._ask(inst)
        if got is None:
            return False
        if len(got[0]) != len(inst.dsts):
            inst.dsts = tuple([inst.dsts[x] if type(x) is int else x for x in got[0]])  # type: ignore[misc]
        if len(got[1]) != len(inst.srcs):
            inst.srcs = tuple([inst.srcs[x] if type(x) is int else x for x in got[1]])  # type: ignore[misc]
        return got[2]

    def _ask(self, inst: Inst) -> tuple[Template, Template, bool] | None:
        # New objects, so that a default is not confused with a given operand that equals it.
        dsts, srcs = [_bare(o) for o in inst.dsts], [_bare(o) for o in inst.srcs]
        given = tuple([type(o)(*o) for o in dsts]), tuple([type(o)(*o) for o in srcs])
        try:
            full, rest, ok = self.machine.completed(inst.op, inst.mods, *given)
        except CompileError:
            return None
        return _template(given[0], full), _template(given[1], rest), ok

    def takes(self, inst: Inst, srcs: tuple[Operand, ...]) -> bool:
        """Whether a form matches the completed instruction with these sources."""
        return self.machine.match(Inst(inst.op, inst.mods, inst.dsts, srcs)) is not None


def _template(given: tuple[Operand, ...], full: tuple[Operand, ...]) -> Template:
    """For each slot, the index of the given operand, or the default that `complete` inserted."""
    at = {id(o): i for i, o in enumerate(given)}
    return [at.get(id(o), o) for o in full]


def _shape(o: Operand) -> object:
    """What tells operands apart that differ in more than the number of a register."""
    k = type(o)
    if k is Reg:
        return o if o[1] == ZERO else (o[0], o[3], o[4], o[5])  # type: ignore[misc]
    return _bare(o) if k is Mem or k is Const else o


def _reg(r: Reg | None) -> Reg | None:
    return r if r is None or r[1] == ZERO else Reg(r[0], 0, 0, r[3], r[4], r[5])


def _bare(o: Operand) -> Operand:
    """The operand with its registers replaced by register 0."""
    k = type(o)
    if k is Reg:
        return _reg(o)  # type: ignore[arg-type,return-value]
    if k is Mem:
        return Mem("M", _reg(o[1]), _reg(o[2]), o[3], _reg(o[4]), o[5])  # type: ignore[arg-type,misc]
    if k is Const and o[4] is not None:  # type: ignore[misc]
        return o._replace(ireg=_reg(o.ireg))  # type: ignore[union-attr,call-arg]
    return o


def _refused(inst: Inst, ctx: UnitContext, pf: PtxFunction) -> CompileError:
    name = next((i.opcode for i in pf.body if type(i) is PtxInst and i.line == inst.line), pf.name)
    sass = ".".join((inst.op, *inst.mods))
    return CompileError(
        f"Instruction '{name}' not supported by orias on .target '{ctx.target_name}' (no encoding of {sass})", inst.line
    )


def _moved(fn: Function, ctx: UnitContext, forms: Forms, inst: Inst, out: list[Inst]) -> bool:
    """Move operands to registers until a form matches the instruction; False if none does."""
    original = inst.srcs
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
            return True
    return False


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
            moves.append(
                Inst("MOV", (), (d._replace(sub=k, width=1),), (part, Imm("I", 15)), None, inst.line, inst.loc)
            )
    else:
        moves.append(Inst("LDC", ("64",) if o.width == 2 else (), (d,), (plain,), None, inst.line, inst.loc))
    return d._replace(flags=flags)
