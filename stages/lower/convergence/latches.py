"""A block for latches that share a loop (`continue`), so that its threads can reconverge before the next iteration.

The block exists for the analysis of convergence. If no barrier uses it, it is removed again; otherwise it
follows the last of the latches in the layout, as in ptxas's code.
"""

from __future__ import annotations

from ir_format.flow import falls_through, jump_targets
from ir_format.model import INV, Block, Function, Inst, Label


def add_latches(fn: Function, shared_latches: dict[int, list[int]]) -> dict[int, int]:
    """Add the blocks at the function's end. ``shared_latches``: position of a header -> positions of its latches.
    Returns the ids of the new blocks, and for each the id of the last latch in the layout."""
    blocks = list(fn.blocks)
    next_id = max(b.id for b in blocks) + 1
    added: dict[int, int] = {}
    between: dict[int, Block] = {}  # position -> block after it
    for head, ends in sorted(shared_latches.items()):
        to, last = blocks[head].id, blocks[max(ends)]
        new = Block(next_id, [_jump(last, to)])
        next_id += 1
        fn.blocks.append(new)
        added[new.id] = last.id
        for pos in ends:
            b = blocks[pos]
            falls = pos == head - 1 and falls_through(b)
            if b.insts:
                retarget(b.insts[-1], {to: new.id})
            if falls and b.insts and jump_targets(b.insts[-1]):
                between[pos] = Block(next_id, [_jump(b, new.id)])
                next_id += 1
            elif falls:
                b.insts.append(_jump(b, new.id))
    if between:
        after = {blocks[pos].id: b for pos, b in between.items()}
        fn.blocks = [x for b in fn.blocks for x in ((b, after[b.id]) if b.id in after else (b,))]
    return added


def place_latches(fn: Function, added: dict[int, int]) -> None:
    """Remove the blocks without a barrier, and move the others, with the blocks inserted before them, after the last
    latch."""
    gone: dict[int, int] = {}
    groups: dict[int, list[Block]] = {}  # id of a latch -> what follows it
    rest: list[Block] = []
    start = 0  # in `rest`: after the last block that does not fall through
    for b in fn.blocks:
        rest.append(b)
        if falls_through(b):
            continue
        if b.id in added:
            if start == len(rest) - 1:
                gone[b.id] = jump_targets(b.insts[0])[0]
            else:
                groups[added[b.id]] = rest[start:]
            del rest[start:]
        start = len(rest)
    if gone:
        for b in (*rest, *(b for group in groups.values() for b in group)):
            if b.insts:
                retarget(b.insts[-1], gone)
    fn.blocks = []
    for b, after in zip(rest, [*rest[1:], None], strict=True):
        fn.blocks.append(b)
        if b.id in groups and _falls_into(b, groups[b.id][0], after):
            fn.blocks += groups.pop(b.id)
    for group in groups.values():
        fn.blocks += group


def _falls_into(b: Block, first: Block, after: Block | None) -> bool:
    """Let a block whose branch goes to ``first`` fall through to it instead, if it can; ``after``: where it falls
    through to now. False if it can't."""
    last = b.insts[-1] if b.insts else None
    if last is None or last.op != "BRA" or last.uses or last.mods or jump_targets(last) != (first.id,):
        return not falls_through(b)
    if last.guard is None:
        b.insts.pop()
        return True
    if after is None or len(last.srcs) != 1:
        return False
    last.guard = last.guard._replace(flags=last.guard.flags ^ INV)
    last.srcs = (Label("L", after.id),)
    return True


def _jump(after: Block, to: int) -> Inst:
    """A jump with the line of a block's end."""
    last = after.insts[-1] if after.insts else None
    return Inst("BRA", (), (), (Label("L", to),), None, last.line if last else 0, last.loc if last else -1)


def retarget(inst: Inst, moved: dict[int, int]) -> None:
    """Replace block ids in a jump."""
    inst.srcs = tuple(Label("L", moved.get(o.block, o.block)) if type(o) is Label else o for o in inst.srcs)
    inst.uses = tuple(Label("L", moved.get(o.block, o.block)) if type(o) is Label else o for o in inst.uses)
