"""Functions that only this unit calls return through the lowest register that their arguments allow.

Lowering uses the measured convention everywhere: arguments from R4 up, the return address in R20:R21. Where every call
is direct and inside the unit nothing else depends on that, and a kernel with a short helper need not report 24
registers; ptxas's private copies of functions have conventions of their own too (measured: the return address in R4,
R6, R8).

Pre: a unit at level `ori`. Post: the same unit with another `VReg.fixed` for the return address, in every function
alike. The rest of the convention stays: allocation looks at `fixed` alone, and knows which registers a private function
destroys.
"""

from __future__ import annotations

from ir_format.flow import read_regs, written_regs
from ir_format.model import Inst, Unit
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


def _private(call: Inst, own: set[str]) -> bool:
    return abi.callee(call) in own and not any(r.file != "R" for r in (*read_regs(call), *written_regs(call)))
