"""Divergent branches: where the threads of a warp may take different paths."""

from __future__ import annotations

from ir_format.flow import JUMPS, Cfg, is_guarded
from ir_format.model import ZERO, Block, Function, Imm, Inst, Reg, VReg

_ALL = 0xFFFFFFFF


def may_diverge(vregs: list[VReg], inst: Inst) -> bool:
    """Whether the threads of a warp may take different paths at the instruction."""
    if inst.op not in JUMPS:
        return False
    if "U" in inst.mods or inst.op in ("BRXU", "JMXU"):
        return False
    conditions = [inst.guard] if is_guarded(inst) and inst.guard is not None else []
    conditions += [o for o in (*inst.dsts, *inst.srcs) if type(o) is Reg]
    return any(r.file in ("P", "R") and r.num != ZERO and not vregs[r.num].uniform for r in conditions)


def divergent_branches(f: Function, cfg: Cfg) -> list[int]:
    """Positions of the blocks that end in a branch at which threads may diverge, in reverse post-order."""
    blocks = f.blocks
    return [
        p for p in cfg.rpo if len(cfg.succs[p]) > 1 and blocks[p].insts and may_diverge(f.vregs, blocks[p].insts[-1])
    ]


def gathers(inst: Inst) -> bool:
    """Whether the whole warp has reconverged after the instruction: WARPSYNC of all threads. (With the attribute
    ``diverged`` it waits for none that are elsewhere: code has declared them exited.)"""
    if inst.op != "WARPSYNC" or is_guarded(inst) or (inst.attrs and "diverged" in inst.attrs):
        return False
    return inst.mods == ("ALL",) or any(type(o) is Imm and o.value & _ALL == _ALL for o in inst.srcs)


def divergent_paths(cfg: Cfg, blocks: list[Block], fork: int, join: int) -> list[set[int]]:
    """The blocks that each successor of a divergent branch may execute before reconvergence: up to the join, or to the
    first block in which the whole warp synchronizes (inclusive)."""
    found: list[set[int]] = []
    for succ in cfg.succs[fork]:
        side: set[int] = set()
        work = [succ]
        while work:
            pos = work.pop()
            if pos == join or pos in side:
                continue
            if blocks[pos].insts and gathers(blocks[pos].insts[0]):
                continue
            side.add(pos)
            if not any(map(gathers, blocks[pos].insts)):
                work.extend(cfg.succs[pos])
        found.append(side)
    return found


def blocks_of_divergent_paths(cfg: Cfg, blocks: list[Block], forks: list[int], join: list[int]) -> set[int]:
    """The blocks that diverged threads may execute. ``forks``: the divergent branches in reverse post-order, so that
    the paths from a branch are mostly covered by those from one around it."""
    found: set[int] = set()
    for fork in forks:
        if fork not in found or any(map(gathers, blocks[fork].insts)):
            found.update(*divergent_paths(cfg, blocks, fork, join[fork]))
    return found


def has_two_paths(cfg: Cfg, blocks: list[Block], fork: int, join: int) -> bool:
    """Whether at least two successors of a branch execute something before reconvergence."""
    paths = [s for s in cfg.succs[fork] if s != join and not (blocks[s].insts and gathers(blocks[s].insts[0]))]
    return len(paths) > 1
