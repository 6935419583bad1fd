"""SSA destruction: every web becomes one register, PHIs and ties go.

Pre: a function in conventional SSA form (:mod:`stages.optimize.ssa.webs`). Post: level `ori` as documented in
docs/stream.md. No copy is ever needed, so no loop gains one; COPYs between values of one web disappear.
"""

from __future__ import annotations

from ir_format.flow import read_regs, written_regs
from ir_format.model import Function, Inst, Reg, VReg
from ir_format.rename import rename
from stages.optimize.ssa.webs import Webs, is_tie


def leave(f: Function, webs: Webs) -> None:
    """Bring a function out of SSA form."""
    name = webs.top + list(range(webs.count, len(f.vregs)))
    moved = _number(f, name, webs.first)

    def change(r: Reg) -> Reg:
        n = name[r.num]
        return r if n == r.num else Reg(r.file, n, r.sub, r.width, r.flags, r.mod)

    gone: set[int] = set()
    for i in moved:
        if i.uses:
            i.uses = tuple(o for o in i.uses if not is_tie(o))
        rename(i, change)
        if i.op == "COPY" and i.dsts[0] == i.srcs[0]:
            gone.add(id(i))
    for b in f.blocks:
        if gone or (b.insts and b.insts[0].op == "PHI"):
            b.insts = [i for i in b.insts if i.op != "PHI" and id(i) not in gone]


def _number(f: Function, name: list[int], first: int) -> list[Inst]:
    """Number the registers that were added in the order in which they are written; those that nothing names go, and
    upper lanes that nothing names. The instructions that name a register with another number now, or a tie."""
    new: dict[int, int] = {}
    unset: dict[int, None] = {}  # what is read only
    vregs = f.vregs
    kept = vregs[:first]
    wide = bytearray([v.width > 1 for v in vregs])
    other = bytearray([n != k or n >= first for k, n in enumerate(name)])
    lanes: dict[int, int] = {}
    moved: list[Inst] = []
    for b in f.blocks:
        for i in b.insts:
            if i.op == "PHI":
                continue
            touched = bool(i.uses)
            for r in written_regs(i):
                _, k, sub, width, _, _ = r
                if other[k]:
                    touched = True
                    n = name[k]
                    if n >= first and n not in new:
                        new[n] = len(kept)
                        kept.append(vregs[n])
                if wide[k] and sub + width > lanes.get(name[k], 0):
                    lanes[name[k]] = sub + width
            for r in read_regs(i):
                _, k, sub, width, _, _ = r
                if other[k]:
                    touched = True
                    if name[k] >= first:
                        unset[name[k]] = None
                if wide[k] and sub + width > lanes.get(name[k], 0):
                    lanes[name[k]] = sub + width
            if touched:
                moved.append(i)
    for n in unset:
        if n not in new:
            new[n] = len(kept)
            kept.append(vregs[n])
    for n, used in lanes.items():
        v = vregs[n]
        if used < v.width and v.fixed < 0:
            kept[new.get(n, n)] = VReg(v.file, used, min(v.align, 4 if used == 3 else used), -1, v.uniform, v.name)
    f.vregs = kept
    for k in range(len(name)):
        if other[k] and name[k] >= first:
            name[k] = new.get(name[k], -2)
    return moved
