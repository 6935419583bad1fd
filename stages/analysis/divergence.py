"""Divergent branches: where the threads of a warp may take different paths."""

from __future__ import annotations

from ir_format.flow import JUMPS, is_guarded
from ir_format.model import ZERO, Inst, Reg, VReg


def may_diverge(vregs: list[VReg], inst: Inst) -> bool:
    """Whether the threads of a warp may take different paths at the instruction."""
    if inst.op not in JUMPS:
        return False
    if "U" in inst.mods or inst.op in ("BRXU", "JMXU"):
        return False
    conditions = [inst.guard] if is_guarded(inst) and inst.guard is not None else []
    conditions += [o for o in (*inst.dsts, *inst.srcs) if type(o) is Reg]
    return any(r.file in ("P", "R") and r.num != ZERO and not vregs[r.num].uniform for r in conditions)
