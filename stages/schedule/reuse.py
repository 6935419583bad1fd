"""Reuse hints: an operand that the next instruction reads through the same slot stays in the operand cache, so the
register file is read only once.

The rule was measured on ptxas 13.0 (sm_75 to sm_120, the test kernels). ptxas sets the hint on 95 of 100 operands for
which all of this holds: the control word stays with the warp (bit 109); the instruction does not overwrite the
register; the next instruction reads the register through the same slot and waits for no scoreboard. One in three of
ptxas's hints is for an instruction further away. We set none of these, because it is not known what keeps an operand
cached over the instructions between.

Pre: level `scheduled`, order and control words final. Post: the same with `REUSE` flags; nothing else changes.
"""

from __future__ import annotations

from ir_format import isa
from ir_format.isa.codec import RegCodec
from ir_format.isa.machine import Target
from ir_format.model import REUSE, ZERO, Inst, Reg, Unit
from stages.plumbing.runner import Context


def set_reuse(unit: Unit, ctx: Context) -> None:
    """The pass."""
    target = isa.target(ctx.header.target)
    for f in unit.functions:
        for block in f.blocks:
            insts = block.insts
            following = None
            after: set[int] = set()
            for inst in reversed(insts):
                reads = {o.num for o in inst.srcs if type(o) is Reg and o.file == "R"}
                if following is not None and not reads.isdisjoint(after):
                    ctl, then = inst.ctl, following.ctl
                    shared = (reads & after) - {ZERO}
                    if shared and ctl is not None and then is not None and ctl.yield_ and not then.wait and ctx.allow():
                        _hint(inst, following, shared, target, ctx)
                following, after = inst, reads


def _hint(inst: Inst, following: Inst, shared: set[int], target: Target, ctx: Context) -> None:
    written = {
        r
        for o in inst.dsts
        if type(o) is Reg and o.file == "R" and o.num != ZERO
        for r in range(o.num, o.num + o.width)
    }
    mine, theirs = _slots(inst, shared, target), _slots(following, shared, target)
    for bit, n in mine.items():
        a = inst.srcs[n]
        b = following.srcs[theirs[bit]] if bit in theirs else None
        assert type(a) is Reg
        if (
            type(b) is Reg
            and a.num == b.num
            and a.width == b.width
            and written.isdisjoint(range(a.num, a.num + a.width))
        ):
            ctx.count("reuse hints")
            inst.srcs = (*inst.srcs[:n], a._replace(flags=a.flags | REUSE), *inst.srcs[n + 1 :])


def _slots(inst: Inst, wanted: set[int], target: Target) -> dict[int, int]:
    """For sources that are wanted registers: bit of the reuse hint -> index of the source."""
    plan = target.plan(inst)
    found: dict[int, int] = {}
    if plan is not None:
        for n, o in enumerate(inst.srcs):
            codec = plan.slots[plan.ndst + n].codec
            if (
                type(o) is Reg
                and o.num in wanted
                and o.file == "R"
                and isinstance(codec, RegCodec)
                and REUSE in codec.flags
            ):
                found[codec.flags[REUSE]] = n
    return found
