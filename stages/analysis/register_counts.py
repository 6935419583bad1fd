"""Register counts that change while a kernel runs (setmaxnreg): which number of registers exists where.

The kernel starts with the count of its launch bounds. It reports this count even if it uses fewer registers, because
the pool that the warps share is computed from it. After ``USETMAXREG.DEALLOC n`` only the first ``n`` registers exist.
"""

from __future__ import annotations

from ir_format.flow import build_cfg
from ir_format.model import Function, Imm, Inst
from ir_format.target import REG_CEILING


def changes_count(func: Function) -> bool:
    """Whether the function changes its register count."""
    return any(i.op == "USETMAXREG" for b in func.blocks for i in b.insts)


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
        min(asked(i), REG_CEILING)
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
                count = asked(inst)
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
                start, count = at, asked(inst)
            at += 1
        found.append((start, at, count))
    return [f for f in found if f[0] < f[1]]


def asked(inst: Inst) -> int:
    """The count that a USETMAXREG asks for."""
    n = inst.srcs[0]
    assert isinstance(n, Imm)
    return n.value


def counts_of_blocks(func: Function, limit: int) -> list[int]:
    """The fewest registers that exist in each block."""
    least = [first_count(func, limit)] * len(func.blocks)
    seen = bytearray(len(func.blocks))
    spans = stretches(func, limit)
    at = 0
    first = 0
    for pos, block in enumerate(func.blocks):
        stop = first + len(block.insts)
        while at < len(spans) and spans[at][0] < stop:
            least[pos] = min(least[pos], spans[at][2]) if seen[pos] else spans[at][2]
            seen[pos] = 1
            at += 1
        first = stop
    return least
