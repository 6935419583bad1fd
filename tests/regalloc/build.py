"""Small units written by hand."""

from __future__ import annotations

import copy

from ir_format.model import RZ, AttrValue, Function, Header, Inst, Operand, Reg, Unit, cbank, imm
from stages.regalloc.allocate import allocate_unit
from stages.regalloc.checker.checker import check_allocation


class Kernel:
    """A kernel of one block under construction; more blocks may be appended to ``fn.blocks``."""

    def __init__(self, name: str = "k") -> None:
        from ir_format.model import Block

        self.fn = Function(name)
        self.fn.blocks.append(Block(0))
        self.r1 = self.fn.new_vreg("R", 1, 1, 1)
        self.emit("MOV", (self.r1,), (cbank(0, 0x28),))
        self.emit("IADD3", (self.r1,), (self.r1, imm(0), RZ), attrs={"frame": -1})

    def emit(
        self,
        op: str,
        dsts: tuple[Operand, ...] = (),
        srcs: tuple[Operand, ...] = (),
        guard: Reg | None = None,
        attrs: dict[str, AttrValue] | None = None,
    ) -> Inst:
        name, *mods = op.split(".")
        inst = Inst(name, tuple(mods), dsts, srcs, guard, attrs=attrs)
        self.fn.blocks[-1].insts.append(inst)
        return inst

    def reg(self, file: str = "R", width: int = 1, fixed: int = -1) -> Reg:
        return self.fn.new_vreg(file, width, fixed=fixed)

    def load(self, width: int = 1) -> Reg:
        """A value that cannot be rematerialized."""
        reg = self.reg("R", width)
        self.emit("LDS" + {1: "", 2: ".64", 4: ".128"}[width], (reg,), (imm(0),))
        return reg

    def unit(self) -> Unit:
        if not self.fn.blocks[-1].insts or self.fn.blocks[-1].insts[-1].op != "EXIT":
            self.emit("EXIT")
        unit = Unit(self.fn.name)
        unit.functions = [self.fn]
        return unit


def allocated(unit: Unit, limit: int = 255, sm: str = "sm_90", naive: bool = False) -> Unit:
    """A checked allocation of a copy of the unit."""
    after = copy.deepcopy(unit)
    options: dict[str, AttrValue] = {"allocator": "naive"} if naive else {}
    allocate_unit(after, Header("ori", sm), options, limit=limit)
    findings = check_allocation(unit, after)
    assert not findings, "\n".join(f.render() for f in findings)
    return after


def ops(unit: Unit) -> list[str]:
    """Opcodes of the first function in order."""
    return [i.op for b in unit.functions[0].blocks for i in b.insts]
