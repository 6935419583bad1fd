"""Loops of a function: natural loops with their preheaders, and the memory accesses of a loop.

Every loop has one header, which dominates its blocks (cycles with several entries are not loops and are left alone).
``func.attrs["nounroll"]`` names the blocks that held `.pragma "nounroll"`.
"""

from __future__ import annotations

from ir_format.flow import Cfg, Loop, falls_through, is_terminator, jump_targets, loops
from ir_format.isa import facts
from ir_format.model import Block, Function, Inst, Label, Mem, label
from ir_format.typed import Final
from stages.analysis.dependences import WALLS, fences, ordered

_JUMPS: Final = frozenset(("BRA", "EXIT"))
#: Accesses that change nothing: constant banks, and what the caches keep.
_QUIET: Final = facts.reading("const") | facts.with_value("effect", "cache")
#: Instructions that write memory, and where.
_SPACE: Final = {**facts.stores(), **facts.atomics(), **facts.copies()}
LOADS: Final = {op: space for op, space in facts.loads().items() if op not in facts.having("convergent")}


def find_loops(f: Function, cfg: Cfg, idom: list[int] | None = None) -> list[Loop]:
    """Natural loops, inner ones before those around them; nothing is computed where no block jumps backwards."""
    if not any(s <= p for p in cfg.rpo for s in cfg.succs[p]):
        return []
    return sorted(loops(cfg, idom), key=lambda x: (len(x.body), x.header))


def has_loops(f: Function) -> bool:
    """Whether any jump goes to its own block or one before it in the layout; quick. A cycle needs such a jump."""
    index = {b.id: n for n, b in enumerate(f.blocks)}
    return any(index.get(t, n + 1) <= n for n, b in enumerate(f.blocks) if b.insts for t in jump_targets(b.insts[-1]))


class Stores:
    """What the blocks of a loop may do to memory. ``spaces``: those written; ``barred``: nothing but read-only data may
    be read earlier."""

    __slots__ = ("barred", "calls", "spaces")

    def __init__(self, blocks: list[Block]) -> None:
        self.spaces: set[str] = set()
        self.barred = self.calls = False
        for b in blocks:
            for i in b.insts:
                op = i.op
                if op in _SPACE:
                    self.spaces.add(_SPACE[op])
                    self.barred = self.barred or ordered(i) or op.startswith(("ATOM", "RED"))
                elif op in LOADS:
                    self.barred = self.barred or ordered(i)
                elif op in _JUMPS or op in _QUIET:
                    continue
                elif fences(i) or op in WALLS or any(type(o) is Mem for o in (*i.dsts, *i.srcs)):
                    self.barred = True
                    self.calls = self.calls or op == "CALL"

    def may_change(self, i: Inst) -> bool:
        """Whether the value that a load reads may differ between iterations; True for whatever is no plain load."""
        if i.op not in LOADS or i.uses or i.defs or ordered(i):
            return True
        if any(m.startswith("CONSTANT") for m in i.mods):
            return False
        space = LOADS[i.op]
        if self.barred or "generic" in self.spaces:
            return True
        return bool(self.spaces) if space == "generic" else space in self.spaces


def preheader(f: Function, cfg: Cfg, loop: Loop) -> int | None:
    """Position of the loop's preheader, a block whose only successor is the header; -1 where :func:`make_preheaders`
    can make one, None where a loop can't have one."""
    blocks = f.blocks
    header = blocks[loop.header]
    body = set(loop.body)
    outside = [p for p in cfg.preds[loop.header] if p not in body]
    if not outside:
        return None
    if (
        len(outside) == 1
        and len(cfg.succs[outside[0]]) == 1
        and (not blocks[outside[0]].insts or blocks[outside[0]].insts[-1].op not in ("BRX", "BRXU"))
    ):
        return outside[0]
    before = loop.header - 1
    if before in body and falls_through(blocks[before]):
        return None
    for p in outside:
        last = blocks[p].insts[-1] if blocks[p].insts else None
        jumps = last is not None and header.id in jump_targets(last)
        if (jumps and last.op != "BRA") or not (jumps or p == before):  # type: ignore[union-attr]
            return None
    return -1


def make_preheaders(f: Function, cfg: Cfg, found: list[Loop]) -> dict[int, Block]:
    """Make a preheader for each of the loops (those for which :func:`preheader` is -1). Returns them by the
    header's position; positions change."""
    blocks = f.blocks
    made: dict[int, Block] = {}
    number = max(b.id for b in blocks) + 1
    for loop in found:
        header = blocks[loop.header]
        body = set(loop.body)
        new = made[loop.header] = Block(number, [], max(0, header.depth - 1))
        number += 1
        for p in cfg.preds[loop.header]:
            last = blocks[p].insts[-1] if p not in body and blocks[p].insts else None
            if last is not None and header.id in jump_targets(last):
                last.srcs = tuple(label(new.id) if type(o) is Label and o.block == header.id else o for o in last.srcs)
    f.blocks = [x for n, b in enumerate(blocks) for x in ((made[n], b) if n in made else (b,))]
    return made


def put_last(block: Block, insts: list[Inst]) -> None:
    """Put instructions at the end of a block, before its jump."""
    at = len(block.insts)
    if block.insts and is_terminator(block.insts[-1]):
        at -= 1
    block.insts[at:at] = insts
