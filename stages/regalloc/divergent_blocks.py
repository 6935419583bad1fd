"""Blocks that a divergent group of the warp may execute: those between a divergent branch and its reconvergence point.
ptxas has separate messages for instructions that it adds to warpgroup products there."""

from __future__ import annotations

from ir_format.flow import build_cfg, post_dominators, read_regs, written_regs
from ir_format.isa import facts
from ir_format.model import ZERO, Function, Inst, Name
from ir_format.typed import Final

#: Values that may differ between the threads of a warp: thread numbers, and memory contents.
_NUMBERS: Final = ("SR_TID", "SR_LANEID", "SR_LTMASK", "SR_LEMASK", "SR_GTMASK", "SR_GEMASK", "SR_EQMASK")
_MEMORY: Final = facts.loads().keys() | facts.having("convergent")


def _varies(i: Inst) -> bool:
    if i.op in ("S2R", "CS2R"):
        return any(type(s) is Name and s.name.startswith(_NUMBERS) for s in i.srcs)
    return i.op in _MEMORY and not i.op.startswith(("LDC", "ULDC"))


def divergent_blocks(f: Function) -> frozenset[int]:
    """Ids of the blocks, at level `ori`."""
    varying: set[tuple[str, int]] = set()
    rows = [(i, read_regs(i), written_regs(i)) for b in f.blocks for i in b.insts]
    before = -1
    while before != len(varying):
        before = len(varying)
        for i, reads, writes in rows:
            if _varies(i) or any((r.file, r.num) in varying for r in reads):
                varying.update((w.file, w.num) for w in writes if w.num != ZERO)
    cfg = build_cfg(f)
    meet = post_dominators(cfg)
    found: set[int] = set()
    for pos, b in enumerate(f.blocks):
        if len(cfg.succs[pos]) < 2:
            continue
        if not any(i.guard is not None and (i.guard.file, i.guard.num) in varying for i in b.insts if i.op == "BRA"):
            continue
        work = [s for s in cfg.succs[pos] if s != meet[pos]]
        seen = set(work)
        while work:
            at = work.pop()
            found.add(f.blocks[at].id)
            for s in cfg.succs[at]:
                if s != meet[pos] and s not in seen:
                    seen.add(s)
                    work.append(s)
    return frozenset(found)
