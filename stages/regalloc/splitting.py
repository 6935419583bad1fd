"""Live-range splitting: a value changes its register where another part of the program begins, in place of being
spilled.

Two borders are known. Over a *call* few registers keep their values: the value moves to one of them in front of the
call and back behind it (a caller save). Both copies lie beside the call, which is mostly out of the way (an assertion,
the slow path of a division), while spill code lies where the value is read. Behind a *change of the register count*
(setmaxnreg) another number of registers exists: a value that the part with few registers needs too lives there in a low
one, and in the other part in any.

A split may leave nothing behind: its copies are hints for the assignment, and vanish if both registers are the same.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence

from ir_format.flow import Cfg, build_cfg
from ir_format.model import Block, Function, Inst, Label, Reg
from ir_format.record import NamedTuple
from ir_format.rename import renumber
from ir_format.target import REG_RESERVED, STACK_REG
from ir_format.typed import Final
from stages.regalloc.coalescing import Group, Grouping
from stages.regalloc.live_ranges import LOOP_WEIGHT, MAX_DEPTH, Ranges, Seg, covers
from stages.regalloc.spill import REMAT_COST, SpillState, cells_of, move, remat_source, spans, spillable

#: The two copies of a word over a call, against an access to local memory.
_SAVE_COST: Final = {"R": 0.5}
_OTHER_COST: Final = 1.0  # to a general register and back
REG_UNIT: Final = 8  # registers of a thread are given out in these


def return_blocks(func: Function) -> None:
    """Where a call returns to a label (that of its LEPC) at which others arrive too, insert a block of its own: copies
    behind the call need a place."""
    if not any(i.op == "LEPC" for b in func.blocks for i in b.insts):
        return
    preds = build_cfg(func).preds
    blocks: list[Block] = []
    fresh = max(b.id for b in func.blocks) + 1
    for pos, block in enumerate(func.blocks):
        blocks.append(block)
        start = _label(block)
        if start is None or pos + 1 == len(func.blocks) or len(preds[pos + 1]) == 1:
            continue
        if start.srcs[0] == Label("L", func.blocks[pos + 1].id):
            start.srcs = (Label("L", fresh), *start.srcs[1:])
            blocks.append(Block(fresh, [], block.depth))
            fresh += 1
    func.blocks = blocks


def _label(block: Block) -> Inst | None:
    """The LEPC of the call at the end of a block, if it names a label."""
    if not block.insts or block.insts[-1].op != "CALL":
        return None
    for inst in reversed(block.insts[:-1]):
        if inst.op == "LEPC":
            return inst if inst.srcs and type(inst.srcs[0]) is Label else None
        if inst.op == "CALL":
            break
    return None


class _Copies:
    """Copies that a split inserts: in front of an instruction, behind it, and at the start of a block."""

    def __init__(self, ranges: Ranges) -> None:
        self.ranges = ranges
        self.before: dict[int, list[Inst]] = {}
        self.behind: dict[int, list[Inst]] = {}
        self.first: dict[int, list[Inst]] = {}  # by position of the block

    def insert(self) -> None:
        """Put them in. The live ranges are out of date afterwards."""
        ranges = self.ranges
        for pos, block in enumerate(ranges.func.blocks):
            out = self.first.get(pos, [])
            for i in range(ranges.starts[pos], ranges.starts[pos + 1]):
                out.extend(self.before.get(i, ()))
                out.append(ranges.insts[i])
                out.extend(self.behind.get(i, ()))
            block.insts = out


def over_calls(ranges: Ranges, state: SpillState, victims: Iterable[int]) -> set[int]:
    """Save victims over the calls that they are alive over, if that costs less than to spill them. Returns those."""
    copies = _Copies(ranges)
    done: set[int] = set()
    for vreg in sorted(victims):
        if vreg in state.saved or not spillable(ranges, state, vreg):
            continue
        crossed = [(i, words) for i in ranges.calls if (words := _alive_over(ranges, vreg, i))]
        if not crossed or any(_way_back(ranges, i) is None for i, _ in crossed):
            continue
        file = ranges.func.vregs[vreg].file
        cost = sum(_factor(ranges, i) * len(words) for i, words in crossed) * _SAVE_COST.get(file, _OTHER_COST)
        if cost >= ranges.weight[vreg] * (REMAT_COST if remat_source(ranges, vreg) >= 0 else 1):
            continue
        done.add(vreg)
        for i, words in crossed:
            _save(copies, state, vreg, i, words)
    if done:
        copies.insert()
    return done


def for_fewer_registers(
    ranges: Ranges,
    state: SpillState,
    grouping: Grouping,
    destroyed: Callable[[Inst], int],
    peak: int,
    free: int,
    attempt: int,
) -> set[int]:
    """Save values over calls on side ways (slow paths of divisions) if that may leave more warps resident: a value that
    may only have registers that the call preserves seldom fits between the others. ``destroyed``: what a call destroys;
    ``peak``: the most registers live at once; ``free``: so many cost no warp; ``attempt``: how often it was not
    enough. Returns the values that were split."""
    groups = [g for g in grouping.groups if g.file == "R" and g.fixed < 0]
    used = max([g.base + g.width for g in groups], default=0)
    least = max([peak + 1, *[_least(ranges, groups, i, destroyed(ranges.insts[i])) for i in ranges.calls]])
    if _units(used) <= max(_units(least + 1), free // REG_UNIT) or not all(_is_aside(ranges, i) for i in ranges.calls):
        return set()
    high = {v for g in groups if g.base + g.width > least - 2 * attempt for v, _ in g.members}
    return over_calls(ranges, state, high)


def _units(count: int) -> int:
    return -(-(count + REG_RESERVED) // REG_UNIT)


def _least(ranges: Ranges, groups: list[Group], call: int, destroyed: int) -> int:
    """The registers below which there are enough that a call preserves for what is alive over it."""
    alive = sum(_crosses(segs, call) for g in groups for segs in g.segs)
    number = 0
    while alive:
        if number != STACK_REG and not destroyed >> number & 1:
            alive -= 1
        number += 1
    return number


def _is_aside(ranges: Ranges, call: int) -> bool:
    """Whether another way leads around the block of a call."""
    pos = ranges.block_of[call]
    cfg = ranges.cfg
    return len(cfg.preds[pos]) == 1 and len(cfg.succs[cfg.preds[pos][0]]) > 1


def _factor(ranges: Ranges, i: int) -> float:
    return float(LOOP_WEIGHT ** min(ranges.depth[ranges.block_of[i]], MAX_DEPTH))


def _alive_over(ranges: Ranges, vreg: int, call: int) -> list[int]:
    """The words of a register that a call must preserve."""
    return [k for k, c in enumerate(cells_of(ranges, vreg)) if _crosses(ranges.segs[c], call)]


def _crosses(segs: Sequence[Seg], call: int) -> bool:
    at = bisect_left(segs, (2 * call + 1, 0)) - 1  # the last that begins in front of the results
    return at >= 0 and segs[at][1] > 2 * call + 1


def _way_back(ranges: Ranges, call: int) -> int | None:
    """The position of the block where a call returns; -1: behind it in its own block; None: no place for copies."""
    pos = ranges.block_of[call]
    block = ranges.func.blocks[pos]
    if _moves_stack(ranges, call):
        return None
    if not any(i.op == "LEPC" and i.srcs and type(i.srcs[0]) is Label for i in block.insts):
        return -1
    start = _label(block) if ranges.starts[pos + 1] == call + 1 else None
    if start is None or ranges.cfg.succs[pos] != (pos + 1,) or ranges.cfg.preds[pos + 1] != (pos,):
        return None
    return pos + 1 if start.srcs[0] == Label("L", ranges.func.blocks[pos + 1].id) else None


def _moves_stack(ranges: Ranges, call: int) -> bool:
    """Whether the stack pointer is set for a call alone (below what `alloca` took): a copy beside the call that is
    spilled in its turn would be stored outside the frame."""
    vregs = ranges.func.vregs
    for i in range(call - 1, ranges.starts[ranges.block_of[call]] - 1, -1):
        inst = ranges.insts[i]
        if inst.op == "CALL":
            return False
        if any(type(d) is Reg and d.file == "R" and d.num >= 0 and vregs[d.num].fixed == STACK_REG for d in inst.dsts):
            return inst.op != "LDC"  # a kernel's entry
    return False


def _save(copies: _Copies, state: SpillState, vreg: int, call: int, words: list[int]) -> None:
    ranges = copies.ranges
    home = ranges.func.vregs[vreg]
    saved = ranges.func.new_vreg(home.file, home.width, home.align, -1, home.uniform, home.name)
    state.saved.update((vreg, saved.num))
    origin = ranges.insts[call]
    there: list[Inst] = []
    back: list[Inst] = []
    for low, count in spans(words):
        mine = Reg(home.file, vreg, low, count)
        other = saved._replace(sub=low, width=count)
        there.append(move(other, mine, origin))
        back.append(move(mine, other, origin))
    copies.before.setdefault(call, []).extend(there)
    at = _way_back(ranges, call)
    assert at is not None
    if at < 0:
        copies.behind.setdefault(call, []).extend(back)
    else:
        copies.first.setdefault(at, []).extend(back)


class _Part(NamedTuple):
    """What a change of the register count governs alone: the numbers of its instructions, and the block at whose start
    it begins, or the instruction behind which it does (else -1)."""

    inside: frozenset[int]
    block: int
    behind: int


def at_counts(ranges: Ranges, state: SpillState, victims: Iterable[int]) -> set[int]:
    """Give victims a register of their own in each part behind a change of the register count, if nothing comes from
    there to other parts. Returns those that were split."""
    copies = _Copies(ranges)
    done: set[int] = set()
    wanted = sorted(v for v in victims if ranges.func.vregs[v].file == "R" and spillable(ranges, state, v))
    for part in _parts(ranges) if wanted else ():
        names: dict[int, int] = {}
        for vreg in wanted:
            own = _own_register(copies, part, vreg, state.parted)
            if own >= 0:
                names[vreg] = own
                state.parted.update((vreg, own))
        done |= names.keys()
        for i in sorted({i for v in names for i in ranges.touches[v] if i in part.inside}):
            renumber(ranges.insts[i], names)
    if done:
        copies.insert()
    return done


def _own_register(copies: _Copies, part: _Part, vreg: int, parted: set[int]) -> int:
    """Copy a register that is alive at the begin of a part, and is named there and elsewhere, to a new one; -1: not."""
    ranges = copies.ranges
    touches = ranges.touches[vreg]
    point = 2 * ranges.starts[part.block] if part.behind < 0 else 2 * part.behind + 1
    words = [k for k, c in enumerate(cells_of(ranges, vreg)) if covers(ranges.segs[c], point)]
    named = sum(i in part.inside for i in touches)
    again = any(i in part.inside and _is_split(ranges.insts[i], vreg, parted) for i in touches)
    if not words or not 0 < named < len(touches) or again:
        return -1
    home = ranges.func.vregs[vreg]
    own = ranges.func.new_vreg(home.file, home.width, home.align, -1, home.uniform, home.name)
    origin = ranges.insts[min(point >> 1, len(ranges.insts) - 1)]
    place = copies.first.setdefault(part.block, []) if part.behind < 0 else copies.behind.setdefault(part.behind, [])
    for low, count in spans(words):
        place.append(move(own._replace(sub=low, width=count), Reg(home.file, vreg, low, count), origin))
    return own.num


def _is_split(inst: Inst, vreg: int, parted: set[int]) -> bool:
    """Whether an instruction is the copy of an earlier split."""
    if inst.op != "COPY":
        return False
    dst, src = inst.dsts[0], inst.srcs[0]
    return type(dst) is Reg and type(src) is Reg and src.num == vreg and dst.num in parted


def _parts(ranges: Ranges) -> list[_Part]:
    """The parts behind changes of the register count from which no way leads back."""
    cfg = ranges.cfg
    found: list[_Part] = []
    for i, inst in enumerate(ranges.insts):
        if inst.op != "USETMAXREG":
            continue
        pos = ranges.block_of[i]
        ways = [s for s in cfg.succs[pos] if s != pos]
        again = pos in cfg.succs[pos]  # the request is repeated until it is granted
        if again and len(ways) != 1:
            continue
        inside = _reachable(cfg, ways, pos if again else -1)
        if pos in inside or any(p != pos and p not in inside for s in inside for p in cfg.preds[s]):
            continue
        numbers = {k for s in inside for k in range(ranges.starts[s], ranges.starts[s + 1])}
        if not again:
            numbers.update(range(i + 1, ranges.starts[pos + 1]))
        found.append(_Part(frozenset(numbers), ways[0] if again else -1, -1 if again else i))
    return found


def _reachable(cfg: Cfg, start: list[int], without: int) -> set[int]:
    seen = set(start)
    work = list(start)
    while work:
        for succ in cfg.succs[work.pop()]:
            if succ != without and succ not in seen:
                seen.add(succ)
                work.append(succ)
    return seen
