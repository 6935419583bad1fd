"""Is a function in conventional SSA form? For tests, and for a pass that does not trust itself."""

from __future__ import annotations

from ir_format.flow import DominatorTree, bit_indices, build_cfg, dominators, read_regs, written_regs
from ir_format.model import Function
from stages.optimize.ssa.webs import Webs

Cell = tuple[int, int]


def faults(f: Function, webs: Webs) -> list[str]:
    """What breaks a rule: a lane made twice, a read that its definition does not dominate, two values of a web live at
    once. Opaque registers have no web and no rule."""
    found: list[str] = []
    cfg = build_cfg(f)
    tree = DominatorTree(cfg, dominators(cfg))
    made: dict[Cell, tuple[int, int]] = {}
    members = {v for v in range(webs.count) if webs.shared[v]}
    twice: set[int] = set()
    for pos in cfg.rpo:
        for n, i in enumerate(f.blocks[pos].insts):
            for r in written_regs(i):
                for c in range(r.sub, r.sub + r.width):
                    if (r.num, c) in made and f.vregs[r.num].fixed < 0 and r.file != "B":
                        twice.add(r.num)
                    made[r.num, c] = pos, n
    found += [f"register {v} is written more than once" for v in sorted(twice)]
    live = _live(f, webs, members)
    for pos in cfg.rpo:
        now = dict(live[pos])  # (web, lane) -> the value live in it, at the end of the block
        insts = f.blocks[pos].insts
        for n in range(len(insts) - 1, -1, -1):
            i = insts[n]
            for r in written_regs(i):
                if r.num in members:
                    for c in range(r.sub, r.sub + r.width):
                        got = now.pop((webs.of(r.num), c), None)
                        if got is not None and got != r.num:
                            found.append(f"block {f.blocks[pos].id}: {r.num} is made while {got} is alive in its web")
            if i.op == "PHI":
                continue
            for r in read_regs(i):
                for c in range(r.sub, r.sub + r.width):
                    at = made.get((r.num, c))
                    if r.num in members:
                        got = now.setdefault((webs.of(r.num), c), r.num)
                        if got != r.num:
                            found.append(f"block {f.blocks[pos].id}: {r.num} and {got} of one web are alive")
                        if at is not None and not (at < (pos, n) if at[0] == pos else tree.dominates(at[0], pos)):
                            found.append(f"block {f.blocks[pos].id}: a read of {r.num} is not dominated")
    return found


def _live(f: Function, webs: Webs, members: set[int]) -> list[dict[Cell, int]]:
    """Per block position, (web, lane) -> the member live there at the end; PHIs read at the ends of the blocks
    before."""
    cfg = build_cfg(f)
    cells: dict[Cell, int] = {}
    names: list[Cell] = []

    def bit(num: int, c: int) -> int:
        got = cells.get((num, c))
        if got is None:
            got = cells[num, c] = len(names)
            names.append((num, c))
        return 1 << got

    count = len(f.blocks)
    ends, gen, kill = [0] * count, [0] * count, [0] * count
    for pos, b in enumerate(f.blocks):
        for i in reversed(b.insts):
            for r in written_regs(i):
                if r.num in members:
                    for c in range(r.sub, r.sub + r.width):
                        kill[pos] |= bit(r.num, c)
                        gen[pos] &= ~bit(r.num, c)
            if i.op == "PHI":
                for p, r in zip(cfg.preds[pos], read_regs(i), strict=True):
                    if r.num in members:
                        ends[p] |= bit(r.num, r.sub)
                continue
            for r in read_regs(i):
                if r.num in members:
                    for c in range(r.sub, r.sub + r.width):
                        gen[pos] |= bit(r.num, c)
    out = [0] * count
    changed = True
    while changed:
        changed = False
        for pos in reversed(cfg.rpo):
            new = ends[pos]
            for s in cfg.succs[pos]:
                new |= gen[s] | (out[s] & ~kill[s])
            if new != out[pos]:
                out[pos] = new
                changed = True
    return [{(webs.of(names[n][0]), names[n][1]): names[n][0] for n in bit_indices(x)} for x in out]
