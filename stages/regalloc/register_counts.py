"""Register counts that change while a kernel runs (setmaxnreg).

The kernel starts with the count of its launch bounds. It reports this count even if it uses fewer registers, because
the pool that the warps share is computed from it. After ``USETMAXREG.DEALLOC n`` only the first ``n`` registers exist.
If the allocation uses more there, all changes of the unit are removed, with a note: they only serve speed.
"""

from __future__ import annotations

from ir_format.flow import build_cfg, read_regs, written_regs
from ir_format.model import ZERO, Function, Imm, Inst, Unit
from stages.analysis.register_limits import last_register


def check_counts(unit: Unit, limit: int) -> int:
    """Set ``regcount`` of a unit that changes its count, or remove the changes. Returns the number of removed ones."""
    funcs = [f for f in unit.functions if any(i.op == "USETMAXREG" for b in f.blocks for i in b.insts)]
    if not funcs:
        return 0
    if all(_fits(f, limit) for f in funcs) and len(unit.functions) == 1:
        unit.attrs["regcount"] = limit
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


def _fits(func: Function, limit: int) -> bool:
    """Whether all registers that an instruction names exist, on every path."""
    cfg = build_cfg(func)
    entry: dict[int, int] = {cfg.rpo[0]: limit} if cfg.rpo else {}
    work = list(cfg.rpo[:1])
    while work:
        pos = work.pop()
        count = entry[pos]
        for inst in func.blocks[pos].insts:
            if inst.op == "USETMAXREG":
                n = inst.srcs[0]
                assert isinstance(n, Imm)
                count = n.value
            elif _highest(inst) > last_register(count):
                return False
        for succ in cfg.succs[pos]:
            if count < entry.get(succ, 1 << 16):
                entry[succ] = count
                work.append(succ)
    return True


def _highest(inst: Inst) -> int:
    return max(
        (r.num + r.width - 1 for r in (*read_regs(inst), *written_regs(inst)) if r.file == "R" and r.num != ZERO),
        default=0,
    )
