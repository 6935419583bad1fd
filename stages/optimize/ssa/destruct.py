"""SSA destruction: every web becomes one register, PHIs and ties go.

Pre: a function in conventional SSA form (:mod:`stages.optimize.ssa.webs`). Post: level `ori` as documented in docs/stream.md. No copy is ever needed, so no loop gains one;
COPYs between values of one web vanish.
"""

from __future__ import annotations

from ir_format.flow import read_regs, written_regs
from ir_format.model import Function, Inst, Reg, VReg
from ir_format.rename import rename
from stages.optimize.ssa.webs import Webs, is_tie


def leave(f: Function, webs: Webs) -> None:
    """Bring a function out of SSA form."""
    name = webs.top + list(range(webs.count, len(f.vregs)))
    _number(f, name, webs.first)
    if name == list(range(len(name))):
        return

    def change(r: Reg) -> Reg:
        n = name[r.num]
        return r if n == r.num else Reg(r.file, n, r.sub, r.width, r.flags, r.mod)

    for b in f.blocks:
        out: list[Inst] = []
        for i in b.insts:
            if i.op == "PHI":
                continue
            if i.uses and any(map(is_tie, i.uses)):
                i.uses = tuple(o for o in i.uses if not is_tie(o))
            rename(i, change)
            if i.op == "COPY" and i.dsts[0] == i.srcs[0]:
                continue
            out.append(i)
        b.insts = out


def _number(f: Function, name: list[int], first: int) -> None:
    """Number the registers that were added in the order in which they are written; those that nothing names go, and upper lanes that nothing names."""
    new: dict[int, int] = {}
    kept = f.vregs[:first]
    lanes = [0] * len(f.vregs)
    for read in (False, True):
        for b in f.blocks:
            for i in b.insts:
                if i.op == "PHI":
                    continue
                for r in read_regs(i) if read else written_regs(i):
                    n = name[r.num]
                    if r.sub + r.width > lanes[n]:
                        lanes[n] = r.sub + r.width
                    if n >= first and n not in new:
                        new[n] = len(kept)
                        kept.append(f.vregs[n])
    for n, v in enumerate(f.vregs):
        if lanes[n] < v.width and lanes[n] and v.fixed < 0:
            at = new.get(n, n)
            kept[at] = VReg(v.file, lanes[n], min(v.align, 4 if lanes[n] == 3 else lanes[n]), -1, v.uniform, v.name)
    f.vregs = kept
    for n, old in enumerate(name):
        if old >= first:
            name[n] = new.get(old, -2)
