"""The end of allocation: rename operands to physical registers, turn copies into instructions, lay out the frame, save
callee-saved registers."""

from __future__ import annotations

from ir_format.diag import CompileError
from ir_format.model import RZ, ZERO, Function, Imm, Inst, Mem, Operand, Reg, imm, mem
from ir_format.rename import rename
from ir_format.target import CALLEE_SAVED
from ir_format.typed import Final
from stages.analysis.abi import SAVED_B
from stages.regalloc.coalescing import Grouping
from stages.regalloc.moves import R1, Mover
from stages.regalloc.variables import Marker, events

R0: Final = Reg("R", 0)
_COUNTED: Final = ("R", "UR", "P", "UP", "B")


def finish_function(
    func: Function, sm: int, grouping: Grouping, standard: bool, called: dict[str, int], sure: int = 16
) -> dict[str, int]:
    """Rewrite ``func`` to physical registers. ``called``: what its calls destroy. Returns file -> registers that a call
    of it destroys when it does not follow the standard convention. ``sure``: what the stack pointer is a multiple
    of at the entry."""
    slots = 0
    for group in grouping.groups:
        if group.file == "M":
            slots = max(slots, group.base + group.width)
    base = (func.frame + 7) // 8 * 8 if slots else func.frame
    mover = Mover(sm, base)
    place = _places(func, grouping)
    known: dict[Reg, Reg] = {}

    def physical(reg: Reg) -> Reg:
        found = known.get(reg)
        if found is None:
            found = known[reg] = Reg(reg.file, place[reg.num] + reg.sub, 0, reg.width, reg.flags, reg.mod)
        return found

    debugged = "variables" in func.attrs
    found = events(func, grouping, place) if debugged else {}
    # Identity of an instruction -> number of the one that it came from; the object keeps its identity unique.
    origin: dict[int, tuple[int, Inst]] = {}
    stores = loads = 0
    number = -1
    for block in func.blocks:
        out: list[Inst] = []
        for inst in block.insts:
            op = inst.op
            number += 1
            made = [inst]
            if op == "UNDEF":
                continue
            rename(inst, physical)
            if op == "COPY":
                dst = inst.dsts[0]
                assert isinstance(dst, Reg)
                made = mover.copy(inst, dst, inst.srcs[0]) if dst.num != ZERO else []
                for move in made:
                    stores += 4 * _width(move) if move.op == "STL" else 0
                    loads += 4 * _width(move) if move.op == "LDL" else 0
            out.extend(made)
            if debugged:
                origin.update((id(x), (number, x)) for x in made)
        block.insts = out
    func.vregs = []
    written = _written(func)
    destroyed = {file: written.get(file, 0) | called.get(file, 0) for file in _COUNTED}
    saved: list[Reg] = []
    if standard:
        saved = [Reg("R", r) for r in CALLEE_SAVED if destroyed["R"] >> r & 1]
        saved += [Reg("B", b) for b in SAVED_B if destroyed["B"] >> b & 1]
    saves_at = (base + 4 * slots + 7) // 8 * 8
    # Local variables are laid out for a stack that is a multiple of that, here and in what is called.
    unit = sure if func.frame or any(i.op == "CALL" for b in func.blocks for i in b.insts) else 8
    frame = (saves_at + 4 * len(saved) + unit - 1) // unit * unit
    _frame_code(func, frame, saves_at, saved)
    if debugged:
        marker = Marker(found)
        for block in func.blocks:
            for inst in block.insts:
                if id(inst) in origin:
                    marker.mark(inst, origin[id(inst)][0])
    func.frame = frame
    returns = sum(i.op == "RET" for b in func.blocks for i in b.insts)
    func.spills = (
        stores + 4 * len(saved),
        loads + 4 * len(saved) * returns,
    )  # registers saved for the caller count (measured)
    func.regs = _highest(func)
    destroyed["R"] &= ~(1 << R1.num)
    return destroyed


def _width(inst: Inst) -> int:
    return 2 if "64" in inst.mods else 1


def _places(func: Function, grouping: Grouping) -> list[int]:
    """vreg -> first physical register. A vreg without a live range is written for nothing: it gets register 0 of its
    file, or its fixed one."""
    place: list[int] = []
    for vreg, reg in enumerate(func.vregs):
        group, offset = grouping.of[vreg]
        if group.base >= 0:
            place.append(group.base + offset)
        else:
            place.append(max(reg.fixed, 0))
    return place


def _frame_code(func: Function, frame: int, saves_at: int, saved: list[Reg]) -> None:
    """Fill in the marked moves of R1. Spill code outside of them (arguments at the entry, the return address before
    RET) and the code that saves and restores callee-saved registers address the frame from the caller's R1."""
    if frame and not any(_sign(inst) == -1 for inst in func.blocks[0].insts):
        _add_frame_move(func)
    for pos, block in enumerate(func.blocks):
        out: list[Inst] = []
        inside = pos > 0
        for inst in block.insts:
            sign = _sign(inst)
            if sign:
                inside = sign < 0
                if frame:
                    inst.srcs = tuple(imm(sign * frame) if type(o) is Imm else o for o in inst.srcs)
                    out.append(inst)
                continue
            if not frame and inst.attrs and "frame_check" in inst.attrs:
                continue
            mark = inst.attrs.get("ra") if inst.attrs else None
            if not inside and mark in ("spill", "refill"):
                inst.srcs = tuple(o._replace(offset=o.offset - frame) if type(o) is Mem else o for o in inst.srcs)
            if inst.op == "FENTRY":
                for at, reg in enumerate(saved):
                    out.extend(_save(inst, reg, saves_at - frame + 4 * at))
                continue
            if inst.op == "RET":
                for at, reg in enumerate(saved):
                    out.extend(_restore(inst, reg, saves_at - frame + 4 * at))
            out.append(inst)
        block.insts = out


def _made(
    origin: Inst, op: str, mods: tuple[str, ...], dsts: tuple[Operand, ...], srcs: tuple[Operand, ...], mark: str
) -> Inst:
    return Inst(op, mods, dsts, srcs, origin.guard, origin.line, origin.loc, attrs={"ra": mark})


def _save(origin: Inst, reg: Reg, offset: int) -> list[Inst]:
    """Store a callee-saved register. A convergence barrier goes through R0, which is free at the entry and at RET: it
    is neither saved nor an argument."""
    if reg.file == "R":
        return [_made(origin, "STL", (), (), (mem(R1, offset), reg), "save")]
    return [
        _made(origin, "BMOV", ("32", "CLEAR"), (R0,), (reg,), "save"),
        _made(origin, "STL", (), (), (mem(R1, offset), R0), "save"),
    ]


def _restore(origin: Inst, reg: Reg, offset: int) -> list[Inst]:
    if reg.file == "R":
        return [_made(origin, "LDL", (), (reg,), (mem(R1, offset),), "restore")]
    return [
        _made(origin, "LDL", (), (R0,), (mem(R1, offset),), "restore"),
        _made(origin, "BMOV", ("32",), (reg,), (R0,), "restore"),
    ]


def _sign(inst: Inst) -> int:
    sign = inst.attrs.get("frame") if inst.attrs else None
    return sign if isinstance(sign, int) else 0


def _add_frame_move(func: Function) -> None:
    """Add a marked move of R1 to a kernel without one, after the instruction that sets R1."""
    if func.kind != "entry":
        raise CompileError(f"Function '{func.name}' needs a stack frame and does not move the stack pointer")
    insts = func.blocks[0].insts
    for at, inst in enumerate(insts):
        if any(type(o) is Reg and o.file == "R" and o.num == R1.num for o in inst.dsts):
            srcs = (R1, imm(0), RZ)
            insts.insert(
                at + 1, Inst("IADD3", (), (R1,), srcs, None, inst.line, inst.loc, attrs={"frame": -1, "ra": "frame"})
            )
            return
    raise CompileError(f"Function '{func.name}' needs a stack frame and does not set the stack pointer")


def _written(func: Function) -> dict[str, int]:
    masks: dict[str, int] = {}
    for block in func.blocks:
        for inst in block.insts:
            if inst.op == "FENTRY":
                continue
            for o in (*inst.dsts, *inst.defs):
                if type(o) is Reg and o.num != ZERO:
                    masks[o.file] = masks.get(o.file, 0) | ((1 << o.width) - 1) << o.num
    return masks


def _highest(func: Function) -> dict[str, int]:
    from ir_format.flow import read_regs, written_regs

    top: dict[str, int] = {}
    for block in func.blocks:
        for inst in block.insts:
            for reg in (*read_regs(inst), *written_regs(inst)):
                if reg.num + reg.width > top.get(reg.file, 0):
                    top[reg.file] = reg.num + reg.width
    return {file: top[file] for file in _COUNTED if file in top}
