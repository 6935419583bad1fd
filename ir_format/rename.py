"""Renaming registers inside instructions."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ir_format.flow import written_regs
from ir_format.model import ZERO, Const, Function, Inst, Mem, Operand, Reg
from ir_format.typed import TypeAlias

Change: TypeAlias = Callable[[Reg], Reg]


def _inner(reg: Reg | None, change: Change) -> Reg | None:
    return change(reg) if reg is not None and reg.num != ZERO else reg


def map_operand(operand: Operand, change: Change) -> Operand:
    """The operand with ``change`` applied to every register in it except RZ and PT."""
    kind = type(operand)
    if kind is Reg:
        assert isinstance(operand, Reg)
        return change(operand) if operand.num != ZERO else operand
    if kind is Mem:
        assert isinstance(operand, Mem)
        return Mem(
            "M",
            _inner(operand.base, change),
            _inner(operand.ubase, change),
            operand.offset,
            _inner(operand.desc, change),
            operand.sym,
        )
    if kind is Const:
        assert isinstance(operand, Const)
        if operand.ireg is not None:
            return operand._replace(ireg=_inner(operand.ireg, change))
    return operand


def rename_reads(inst: Inst, change: Change) -> None:
    """Apply ``change`` to every register that the instruction reads (:func:`ir_format.flow.read_regs`)."""
    srcs: list[Operand] = []
    for o in inst.srcs:
        if type(o) is Reg:
            srcs.append(change(o) if o.num != ZERO else o)
        else:
            srcs.append(map_operand(o, change))
    inst.srcs = tuple(srcs)
    for o in inst.dsts:
        if type(o) is not Reg:  # an address printed on the left
            inst.dsts = tuple([o if type(o) is Reg else map_operand(o, change) for o in inst.dsts])
            break
    if inst.uses:
        inst.uses = tuple([map_operand(o, change) for o in inst.uses])
    if inst.guard is not None and inst.guard.num != ZERO:
        inst.guard = change(inst.guard)


def renumber_reads(inst: Inst, names: dict[int, int]) -> None:
    """Give registers that the instruction reads other numbers: old -> new."""
    rename_reads(inst, lambda r: r._replace(num=names[r.num]) if r.num in names else r)


def rename_writes(inst: Inst, change: Change) -> None:
    """Apply ``change`` to every register that the instruction writes (:func:`ir_format.flow.written_regs`)."""
    inst.dsts = tuple([map_operand(o, change) if type(o) is Reg else o for o in inst.dsts])
    if inst.defs:
        inst.defs = tuple([map_operand(o, change) for o in inst.defs])


def rename(inst: Inst, change: Change) -> None:
    """Apply ``change`` to every register that the instruction names."""
    rename_reads(inst, change)
    rename_writes(inst, change)


def renumber(inst: Inst, names: dict[int, int]) -> None:
    """Give all registers of an instruction other numbers: old -> new."""
    rename(inst, lambda r: r._replace(num=names[r.num]) if r.num in names else r)


def duplicate(inst: Inst) -> Inst:
    """A copy that may be changed. It has no control word."""
    attrs = dict(inst.attrs) if inst.attrs else inst.attrs
    return Inst(
        inst.op, inst.mods, inst.dsts, inst.srcs, inst.guard, inst.line, inst.loc, None, inst.uses, inst.defs, attrs
    )


def fresh_names(func: Function, insts: Iterable[Inst]) -> dict[int, int]:
    """Create a new virtual register for each register that the instructions write: old number -> new number."""
    names: dict[int, int] = {}
    for inst in insts:
        for r in written_regs(inst):
            if r.num not in names:
                names[r.num] = len(func.vregs)
                func.vregs.append(func.vregs[r.num])
    return names
