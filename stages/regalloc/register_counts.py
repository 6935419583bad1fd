"""Register counts that change while a kernel runs (setmaxnreg).

The kernel starts with the count of its launch bounds. It reports this count even if it uses fewer registers, because
the pool that the warps share is computed from it. After ``USETMAXREG.DEALLOC n`` only the first ``n`` registers exist.
If the allocation uses more there, all changes of the unit are removed, with a note: they only serve speed.
"""

from __future__ import annotations

from ir_format.flow import Cfg, build_cfg, is_guarded, read_regs, written_regs
from ir_format.model import ZERO, Function, Imm, Inst, Reg, Unit
from ir_format.target import REG_CEILING
from stages.analysis.abi import callee
from stages.analysis.register_limits import last_register


def check_counts(unit: Unit, limit: int) -> int:
    """Set ``regcount`` of a unit that changes its count, or remove the changes. Returns the number of removed ones."""
    funcs = [f for f in unit.functions if any(i.op == "USETMAXREG" for b in f.blocks for i in b.insts)]
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


def first_count(func: Function, limit: int) -> int:
    """The count that a kernel starts with: that of its launch bounds, or the largest request (measured: 256 threads
    that ask for 240 start with 240, 384 with 168)."""
    asked = _requests(func)
    return min(limit, max(asked)) if asked else limit


def most_registers(func: Function, limit: int) -> int:
    """The largest count in a function."""
    return max([first_count(func, limit), *_requests(func)])


def _requests(func: Function) -> list[int]:
    return [
        min(_asked(i), REG_CEILING)
        for b in func.blocks
        for i in b.insts
        if i.op == "USETMAXREG" and "TRY_ALLOC" in i.mods
    ]


def stretches(func: Function, limit: int) -> list[tuple[int, int, int]]:
    """(first instruction, the one after the last, count) in layout order: the number of registers of each range."""
    cfg = build_cfg(func)
    limit = first_count(func, limit)
    entry: dict[int, int] = {cfg.rpo[0]: limit} if cfg.rpo else {}
    work = list(cfg.rpo[:1])
    while work:
        pos = work.pop()
        count = entry[pos]
        for inst in func.blocks[pos].insts:
            if inst.op == "USETMAXREG":
                count = _asked(inst)
        for succ in cfg.succs[pos]:
            if count < entry.get(succ, 1 << 16):
                entry[succ] = count
                work.append(succ)
    found: list[tuple[int, int, int]] = []
    at = 0
    for pos, block in enumerate(func.blocks):
        count = entry.get(pos, limit)
        start = at
        for inst in block.insts:
            if inst.op == "USETMAXREG":
                found.append((start, at, count))
                start, count = at, _asked(inst)
            at += 1
        found.append((start, at, count))
    return [f for f in found if f[0] < f[1]]


def _asked(inst: Inst) -> int:
    n = inst.srcs[0]
    assert isinstance(n, Imm)
    return n.value


def _needed(unit: Unit) -> dict[str, int]:
    """The highest register that each function of the unit names, with what it calls; none for a function that calls
    another unit's."""
    own = {f.name: max((_highest(i) for b in f.blocks for i in b.insts), default=0) for f in unit.functions}
    calls = {f.name: {callee(i) for b in f.blocks for i in b.insts if i.op == "CALL"} for f in unit.functions}
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


def _fits(func: Function, limit: int, needed: dict[str, int]) -> bool:
    """Whether all registers that an instruction names, or a function that it calls, exist, on every path, and none that
    goes is needed later."""
    if _lost(func):
        return False
    insts = [i for b in func.blocks for i in b.insts]

    def highest(i: Inst) -> int:
        return max(_highest(i), needed.get(callee(i), 1 << 16)) if i.op == "CALL" else _highest(i)

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
            if inst.op == "USETMAXREG" and live >> last_register(_asked(inst)) + 1:
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
