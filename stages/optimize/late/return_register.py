"""Functions that only this unit calls return through the lowest register that their arguments allow.

Lowering uses the measured convention everywhere: arguments from R4 up, the return address in R20:R21. Where every call
is direct and inside the unit nothing else depends on that, and a kernel with a short helper need not report 24
registers; ptxas's private copies of functions have conventions of their own too (measured: the return address in R4,
R6, R8). The upper half of such an address is 0, and RET alone reads it: as in ptxas's code it is written in front of
RET, so that neither the caller nor the function keeps a register for it.

Pre: a unit at level `ori`. Post: the same unit with another `VReg.fixed` for the return address, in every function
alike. The rest of the convention stays: allocation looks at `fixed` alone, and knows which registers a private function
destroys.
"""

from __future__ import annotations

from ir_format.flow import read_regs, written_regs
from ir_format.model import Function, Imm, Inst, Operand, Reg, Unit
from ir_format.target import RETURN_REG
from stages.analysis import abi
from stages.plumbing.runner import Context


def lower_return_register(unit: Unit, ctx: Context) -> None:
    """The pass."""
    if len(unit.functions) < 2 or unit.kind != "entry":
        return
    own = {f.name for f in unit.functions}
    calls = [i for f in unit.functions for b in f.blocks for i in b.insts if i.op == "CALL"]
    if not calls or not all(_private(i, own) for i in calls) or abi.plan(unit)[1]:
        return
    used = [v for f in unit.functions for v in f.vregs if v.file == "R" and v.fixed > 1]
    if any(
        v.fixed == RETURN_REG and v.width != 2 or v.fixed + v.width > RETURN_REG and v.fixed < RETURN_REG for v in used
    ):
        return
    top = max((v.fixed + v.width for v in used if v.fixed < RETURN_REG), default=0)
    place = max(2, top + top % 2)
    if place >= RETURN_REG or not ctx.allow():
        return
    ctx.count("return registers lowered")
    for f in unit.functions:
        f.vregs = [v._replace(fixed=place) if v.file == "R" and v.fixed == RETURN_REG else v for v in f.vregs]
    chains = [_addresses(f, place) for f in unit.functions]
    if None not in chains:
        for f, chain in zip(unit.functions, chains):
            _write_late(f, chain or set())


def _addresses(f: Function, place: int) -> set[int] | None:
    """The registers that hold return addresses; None where their upper halves are not 0, or something else reads
    them."""
    chain = {n for n, v in enumerate(f.vregs) if v.file == "R" and v.fixed == place and v.width == 2}
    copies = [i for b in f.blocks for i in b.insts if i.op == "COPY" and type(i.srcs[0]) is Reg]
    chain |= {r.num for i in copies for r in (*i.dsts, *i.srcs) if type(r) is Reg and r.width == 2 and _names(i, chain)}
    for block in f.blocks:
        for inst in block.insts:
            if _names(inst, chain) and not _is_plain(inst, chain):
                return None
    return chain


def _names(inst: Inst, chain: set[int]) -> bool:
    return any([r.num in chain for r in (*read_regs(inst), *written_regs(inst))])


def _is_plain(inst: Inst, chain: set[int]) -> bool:
    """Whether an instruction passes an address on, or makes one with a constant upper half."""
    if inst.guard is not None or inst.op in ("FENTRY", "CALL", "RET"):
        return inst.guard is None
    dst, src = inst.dsts[0], inst.srcs[0]
    if inst.op == "COPY":
        return type(src) is Reg and type(dst) is Reg and {src.num, dst.num} <= chain and src.width == dst.width == 2
    if inst.op != "MOV" or type(src) is not Imm or type(dst) is not Reg or dst.width != 1:
        return False
    return dst.sub == 0 or src == Imm("I", 0)


def _write_late(f: Function, chain: set[int]) -> None:
    """Drop the upper halves but for those that RET reads, which are written in front of it."""

    def low(r: Operand) -> Operand:
        return r._replace(width=1) if type(r) is Reg and r.num in chain else r

    for block in f.blocks:
        out: list[Inst] = []
        for inst in block.insts:
            if inst.op == "RET":
                found = [r for r in inst.srcs if type(r) is Reg and r.num in chain]
                out += [
                    Inst("COPY", (), (r._replace(sub=1, width=1),), (Imm("I", 0),), None, inst.line, inst.loc)
                    for r in found
                ]
            elif _names(inst, chain):
                dst = inst.dsts[0] if inst.dsts else None
                if inst.op == "MOV" and type(dst) is Reg and dst.sub:
                    continue
                if inst.op == "COPY":
                    inst.dsts, inst.srcs = (low(inst.dsts[0]),), (low(inst.srcs[0]),)
                inst.uses, inst.defs = tuple(map(low, inst.uses)), tuple(map(low, inst.defs))
            out.append(inst)
        block.insts = out


def _private(call: Inst, own: set[str]) -> bool:
    return abi.callee(call) in own and not any(r.file != "R" for r in (*read_regs(call), *written_regs(call)))
