"""Checks the register counts of a kernel with setmaxnreg (:mod:`stages.analysis.register_counts`) after allocation.

If the allocation uses more registers than exist somewhere, all changes of the unit are removed, with a note: they only
serve speed.
"""

from __future__ import annotations

from ir_format.flow import Cfg, build_cfg, is_guarded, read_regs, written_regs
from ir_format.model import ZERO, Function, Inst, Reg, Unit
from stages.analysis.abi import callee
from stages.analysis.register_counts import asked, changes_count, first_count, stretches
from stages.analysis.register_limits import last_register


def check_counts(unit: Unit, limit: int) -> int:
    """Set ``regcount`` of a unit that changes its count, or remove the changes. Returns the number of removed ones."""
    funcs = [f for f in unit.functions if changes_count(f)]
    if not funcs:
        return 0
    if len(funcs) == 1 and _fits(funcs[0], limit, _needed(unit)):
        unit.attrs["regcount"] = first_count(funcs[0], limit)
        return 0
    taken = 0
    for f in funcs:
        for block in f.blocks:
            if any(i.op == "USETMAXREG" and "TRY_ALLOC" in i.mods for i in block.insts) and block.insts[-1].op == "BRA":
                del block.insts[-1]  # the repetition of the request
            before = len(block.insts)
            block.insts = [i for i in block.insts if i.op != "USETMAXREG"]
            taken += before - len(block.insts)
    unit.attrs.pop("reg_reconfig", None)
    unit.diags.append(
        (
            "info",
            "(C7507) Potential Performance Loss: 'setmaxnreg' ignored to maintain minimum register requirements.",
            0,
        )
    )
    return taken


def _needed(unit: Unit) -> dict[str, int]:
    """The highest register that each function of the unit names, with what it calls; none for a function that calls
    another unit's."""
    own = {f.name: max((_highest(i) for b in f.blocks for i in b.insts), default=0) for f in unit.functions}
    calls = {f.name: {callee(i) for b in f.blocks for i in b.insts if _is_own_call(i)} for f in unit.functions}
    found: dict[str, int] = {}
    for name in own:
        seen = {name}
        work = [name]
        while work:
            for other in calls.get(work.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    work.append(other)
        if seen <= own.keys():
            found[name] = max(own[n] for n in seen)
    return found


def _is_own_call(inst: Inst) -> bool:
    """Whether an instruction calls a function of the program. For those of the driver, which are called by an absolute
    address, each kernel has enough registers (ptxas lets 24 suffice)."""
    return inst.op == "CALL" and "ABS" not in inst.mods


def _fits(func: Function, limit: int, needed: dict[str, int]) -> bool:
    """Whether all registers that an instruction names, or a function that it calls, exist, on every path, and none that
    goes is needed later."""
    if _lost(func):
        return False
    insts = [i for b in func.blocks for i in b.insts]

    def highest(i: Inst) -> int:
        return max(_highest(i), needed.get(callee(i), 1 << 16)) if _is_own_call(i) else _highest(i)

    return all(
        highest(i) <= last_register(count) for low, high, count in stretches(func, limit) for i in insts[low:high]
    )


def _lost(func: Function) -> bool:
    """Whether a register is live where it is given away: it has lost its value when it comes back."""
    cfg = build_cfg(func)
    needed = _live(func, cfg)
    for pos in cfg.rpo:
        live = 0
        for succ in cfg.succs[pos]:
            live |= needed[succ]
        for inst in reversed(func.blocks[pos].insts):
            if inst.op == "USETMAXREG" and live >> last_register(asked(inst)) + 1:
                return True
            live = _before(inst, live)
    return False


def _live(func: Function, cfg: Cfg) -> list[int]:
    """The vector registers that are live at the begin of each block, as masks."""
    needed = [0] * len(func.blocks)
    changed = True
    while changed:
        changed = False
        for pos in reversed(cfg.rpo):
            live = 0
            for succ in cfg.succs[pos]:
                live |= needed[succ]
            for inst in reversed(func.blocks[pos].insts):
                live = _before(inst, live)
            changed |= live != needed[pos]
            needed[pos] = live
    return needed


def _before(inst: Inst, live: int) -> int:
    """What is live in front of an instruction."""
    if not is_guarded(inst):
        live &= ~_mask(written_regs(inst))
    return live | _mask(read_regs(inst))


def _mask(regs: list[Reg]) -> int:
    mask = 0
    for r in regs:
        if r.file == "R" and r.num != ZERO:
            mask |= (1 << r.width) - 1 << r.num
    return mask


def _highest(inst: Inst) -> int:
    return max(
        (r.num + r.width - 1 for r in (*read_regs(inst), *written_regs(inst)) if r.file == "R" and r.num != ZERO),
        default=0,
    )
