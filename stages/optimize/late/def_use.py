"""Where registers are defined and used in a function, and inserting instructions there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping, Sequence

from ir_format.flow import is_guarded, read_regs, written_regs
from ir_format.model import ZERO, Function, Inst, Reg

Place = tuple[int, int]  # block position, index


def single_definitions(f: Function, ops: Container[str], fits: Callable[[Inst], bool]) -> dict[int, tuple[Place, Inst]]:
    """Register -> the one instruction that writes it, where that is one of ``ops`` that ``fits``, has no guard and
    makes all of the register as its first result; none of fixed place."""
    found: dict[int, tuple[Place, Inst]] = {}
    for pos, block in enumerate(f.blocks):
        for n, inst in enumerate(block.insts):
            if inst.op in ops and fits(inst) and not is_guarded(inst):
                d = inst.dsts[0]
                if type(d) is Reg and d.num != ZERO and f.vregs[d.num].fixed < 0 and d.width == f.vregs[d.num].width:
                    found[d.num] = (pos, n), inst
    if not found:
        return found
    writers = dict.fromkeys(found, 0)
    for block in f.blocks:
        for inst in block.insts:
            if inst.defs:
                for r in written_regs(inst):
                    if r.num in writers:
                        writers[r.num] += 1
            else:
                for o in inst.dsts:
                    if type(o) is Reg and o.num in writers:
                        writers[o.num] += 1
    return {num: made for num, made in found.items() if writers[num] == 1}


def all_uses(f: Function) -> dict[int, list[Place]]:
    """Register -> the places that read it, in order."""
    found: dict[int, list[Place]] = {}
    for pos, block in enumerate(f.blocks):
        for n, inst in enumerate(block.insts):
            regs = read_regs(inst)
            if regs:
                place = (pos, n)
                for r in regs:
                    places = found.get(r.num)
                    if places is None:
                        found[r.num] = [place]
                    elif places[-1] is not place:
                        places.append(place)
    return found


def use_places(f: Function, wanted: Collection[int]) -> dict[int, list[Place]]:
    """Register among ``wanted`` -> the places that read it, in order."""
    found: dict[int, list[Place]] = {}
    for pos, block in enumerate(f.blocks):
        for n, inst in enumerate(block.insts):
            for r in read_regs(inst):
                if r.num in wanted:
                    places = found.setdefault(r.num, [])
                    if not places or places[-1] != (pos, n):
                        places.append((pos, n))
    return found


def insert(f: Function, before: Mapping[Place, Sequence[Inst]], gone: Collection[int] = ()) -> None:
    """Put instructions before places; those of identity ``gone`` leave theirs."""
    for pos, block in enumerate(f.blocks):
        out: list[Inst] = []
        for n, inst in enumerate(block.insts):
            out += before.get((pos, n), ())
            if id(inst) not in gone:
                out.append(inst)
        block.insts = out
