"""Planted allocation faults. Each takes an allocated unit and changes one thing in a copy of it; None if there is no
place for it."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable

from ir_format.model import ZERO, Inst, Mem, Operand, Reg, Unit

Place = tuple[int, int, int]  # function, block, instruction


def _places(unit: Unit, wanted: Callable[[Inst], bool]) -> list[Place]:
    return [
        (f, b, i)
        for f, func in enumerate(unit.functions)
        for b, block in enumerate(func.blocks)
        for i, inst in enumerate(block.insts)
        if wanted(inst)
    ]


def _mark(inst: Inst) -> str:
    return str(inst.attrs.get("ra", "")) if inst.attrs else ""


def _change(
    unit: Unit, rnd: random.Random, wanted: Callable[[Inst], bool], edit: Callable[[Unit, Place], bool]
) -> Unit | None:
    places = _places(unit, wanted)
    rnd.shuffle(places)
    for place in places[:5]:
        mutant = copy.deepcopy(unit)
        if edit(mutant, place):
            return mutant
    return None


def swap_registers(unit: Unit, rnd: random.Random) -> Unit | None:
    """One instruction names another register of the same file and width in one operand."""

    def edit(mutant: Unit, place: Place) -> bool:
        func = mutant.functions[place[0]]
        inst = func.blocks[place[1]].insts[place[2]]
        slots: list[tuple[str, int, Reg]] = []
        for side in ("dsts", "srcs"):
            for n, o in enumerate(getattr(inst, side)):
                if type(o) is Reg and o.num != ZERO and not (o.file == "R" and o.num == 1):
                    slots.append((side, n, o))
        if not slots:
            return False
        side, n, reg = rnd.choice(slots)
        step = reg.width if reg.width in (1, 2, 4) else 4
        others = [
            r for r in range(0, func.regs[reg.file] - reg.width + 1, step) if r != reg.num and (reg.file, r) != ("R", 1)
        ]
        if not others:
            return False
        operands: list[Operand] = list(getattr(inst, side))
        operands[n] = reg._replace(num=rnd.choice(others))
        setattr(inst, side, tuple(operands))
        return True

    return _change(unit, rnd, lambda i: i.op not in ("EXIT", "RET", "BSSY", "CALL"), edit)


def _drop(marks: tuple[str, ...]) -> Callable[[Unit, random.Random], Unit | None]:
    def edit(mutant: Unit, place: Place) -> bool:
        del mutant.functions[place[0]].blocks[place[1]].insts[place[2]]
        return True

    return lambda unit, rnd: _change(unit, rnd, lambda i: _mark(i) in marks, edit)


def share_slot(unit: Unit, rnd: random.Random) -> Unit | None:
    """All accesses to one spill slot go to another slot."""

    def edit(mutant: Unit, place: Place) -> bool:
        func = mutant.functions[place[0]]
        mine = func.blocks[place[1]].insts[place[2]]
        old = next(o.offset for o in mine.srcs if type(o) is Mem)
        spills = [
            (inst, o)
            for b in func.blocks
            for inst in b.insts
            if _mark(inst) in ("spill", "refill")
            for o in inst.srcs
            if type(o) is Mem
        ]
        others = sorted({o.offset for inst, o in spills if o.offset != old and inst.mods == mine.mods})
        if not others:
            return False
        new = rnd.choice(others)
        for inst, o in spills:
            if o.offset == old:
                inst.srcs = tuple(x._replace(offset=new) if type(x) is Mem else x for x in inst.srcs)
        return True

    return _change(unit, rnd, lambda i: _mark(i) == "spill", edit)


def swap_moves(unit: Unit, rnd: random.Random) -> Unit | None:
    """Two adjacent inserted instructions are exchanged."""

    def edit(mutant: Unit, place: Place) -> bool:
        insts = mutant.functions[place[0]].blocks[place[1]].insts
        i = place[2]
        if i + 1 >= len(insts) or not _mark(insts[i + 1]) or insts[i] == insts[i + 1]:
            return False
        insts[i], insts[i + 1] = insts[i + 1], insts[i]
        return True

    return _change(unit, rnd, lambda i: bool(_mark(i)), edit)


def invert_guard(unit: Unit, rnd: random.Random) -> Unit | None:
    """An inserted instruction runs under the opposite condition, or an unguarded one under P0."""

    def edit(mutant: Unit, place: Place) -> bool:
        inst = mutant.functions[place[0]].blocks[place[1]].insts[place[2]]
        inst.guard = Reg("P", 0) if inst.guard is None else inst.guard._replace(flags=inst.guard.flags ^ 4)
        return mutant.functions[place[0]].regs.get("P", 0) > 0

    return _change(unit, rnd, lambda i: bool(_mark(i)), edit)


KINDS: dict[str, Callable[[Unit, random.Random], Unit | None]] = {
    "swap registers": swap_registers,
    "drop a reload": _drop(("refill",)),
    "drop a spill store": _drop(("spill",)),
    "drop a move": _drop(("move", "remat")),
    "drop a save or restore": _drop(("save", "restore")),
    "share a slot": share_slot,
    "swap moves": swap_moves,
    "invert a guard": invert_guard,
}
