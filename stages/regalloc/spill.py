"""Spilling: which values leave their file, and the code that brings them back.

A spilled vreg changes its file: R to M (memory), P to R, UR to R, UP to UR, B to R. Every instruction that names it gets a short-lived
vreg of the old file instead, filled by a COPY before and emptied by a COPY after. A value that one instruction without register operands makes
(a constant, a parameter, a special register) is made again at each use instead (rematerialization).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final

from ir_format.flow import is_guarded, read_regs, written_regs
from ir_format.model import Const, Function, Imm, Inst, Name, Reg, VReg
from ir_format.target import STACK_REG

from .groups import Group
from .operands import rename
from .ranges import Ranges, is_plain, overlap

HOME: Final = {"R": "M", "P": "R", "UR": "R", "UP": "UR", "B": "R"}  # where a spilled value of each file lives

REMAT_OPS: Final = frozenset({"MOV", "COPY", "S2R", "S2UR", "LDC", "ULDC", "LDCU", "UMOV"})
# Special registers that hold the same value all through a kernel.
REMAT_SPECIAL: Final = ("SR_TID", "SR_CTAID", "SR_LANEID", "SR_NTID", "SR_NCTAID", "SR_LANEMASK", "SRZ", "SR_CgaCtaId", "SR_SWINHI")
REMAT_COST: Final = 0.4  # against a load


class SpillState:
    """What survives from round to round. ``temps``: vregs that must not be spilled (they came from spilling); ``gone``: original instructions
    that rematerialization made superfluous, by identity."""

    __slots__ = ("gone", "temps")

    def __init__(self) -> None:
        self.temps: set[int] = set()
        self.gone: list[Inst] = []


def remat_source(ranges: Ranges, vreg: int) -> int:
    """Number of the instruction that can make ``vreg`` again anywhere, or -1."""
    func = ranges.func
    found = -1
    for i in ranges.touches[vreg]:
        inst = ranges.insts[i]
        if any(reg.num == vreg for reg in written_regs(inst)):
            if found >= 0:
                return -1
            found = i
    if found < 0:
        return -1
    inst = ranges.insts[found]
    if inst.op not in REMAT_OPS or is_guarded(inst) or read_regs(inst) or inst.defs or inst.uses or len(inst.dsts) != 1 or not inst.srcs:
        return -1
    dst = inst.dsts[0]
    if type(dst) is not Reg or dst.width != func.vregs[vreg].width:
        return -1
    source = inst.srcs[0]
    if type(source) is Name:
        steady = inst.op in ("S2R", "S2UR") and source.name.startswith(REMAT_SPECIAL)
    elif type(source) is Const:
        steady = inst.op not in ("S2R", "S2UR")
    else:
        steady = type(source) in (Imm, Reg) and inst.op in ("MOV", "COPY", "UMOV") and not (type(source) is Imm and source.fmt == "ret")
    if not steady:
        return -1
    return found


def spillable(ranges: Ranges, state: SpillState, vreg: int) -> bool:
    """Whether spilling the vreg can free a register anywhere."""
    if vreg in state.temps:
        return False
    reg = ranges.func.vregs[vreg]
    return reg.fixed < 0 and reg.file in HOME


def cells_of(ranges: Ranges, vreg: int) -> range:
    """The vreg's cells."""
    base = ranges.cells.base
    assert base is not None
    return range(base[vreg], base[vreg] + ranges.func.vregs[vreg].width)


def _is_stack(reg: VReg) -> bool:
    return reg.file == "R" and reg.fixed == STACK_REG


def pressure(ranges: Ranges, file: str) -> list[int]:
    """Cells of the file that are live at each point, the stack pointer left out."""
    delta = [0] * (2 * len(ranges.insts) + 2)
    for vreg, reg in enumerate(ranges.func.vregs):
        if reg.file == file and not _is_stack(reg):
            for cell in cells_of(ranges, vreg):
                for start, stop in ranges.segs[cell]:
                    delta[start] += 1
                    delta[stop] -= 1
    total = 0
    for point, change in enumerate(delta):
        total += change
        delta[point] = total
    return delta


def choose(ranges: Ranges, state: SpillState, file: str, capacity: int, at_call: dict[int, int]) -> set[int]:
    """Vregs to spill so that no point needs more than ``capacity`` registers (``at_call[i]``: capacity for values that live through call i).

    One sweep over the points; where there are too many, the value with the least cost for the overfull points it would free goes.
    """
    total = pressure(ranges, file)
    over = [0] * (len(total) + 1)
    for point, value in enumerate(total):
        room = capacity if not point & 1 else at_call.get(point >> 1, capacity)
        over[point + 1] = over[point] + (1 if value > room else 0)
    if not over[-1]:
        return set()
    events: list[list[tuple[int, int]]] = [[] for _ in range(len(total) + 1)]
    score: dict[int, float] = {}
    for vreg, reg in enumerate(ranges.func.vregs):
        if reg.file != file or _is_stack(reg):
            continue
        freed = 0
        for cell in cells_of(ranges, vreg):
            for start, stop in ranges.segs[cell]:
                events[start].append((1, vreg))
                events[stop].append((-1, vreg))
                freed += over[stop] - over[start]
        if freed and spillable(ranges, state, vreg):
            cost = ranges.weight[vreg]
            if remat_source(ranges, vreg) >= 0:
                cost *= REMAT_COST
            score[vreg] = cost / freed
    active: dict[int, int] = {}
    extra: dict[int, int] = {}  # instruction -> registers for the temporaries of spilled values
    chosen: set[int] = set()
    live = 0
    for point in range(len(total)):
        for change, vreg in events[point]:
            if vreg not in chosen:
                active[vreg] = active.get(vreg, 0) + change
                live += change
                if not active[vreg]:
                    del active[vreg]
        i = point >> 1
        room = capacity if not point & 1 else at_call.get(i, capacity)
        while live + extra.get(i, 0) > room:
            best = -1
            best_score = 0.0
            for vreg in active:
                mine = score.get(vreg)
                if mine is None or (best >= 0 and (mine, vreg) >= (best_score, best)) or _names(ranges, vreg, i):
                    continue
                best, best_score = vreg, mine
            if best < 0:
                break
            chosen.add(best)
            live -= active.pop(best)
            width = ranges.func.vregs[best].width
            for at in ranges.touches[best]:
                extra[at] = extra.get(at, 0) + width
    return chosen


def _names(ranges: Ranges, vreg: int, i: int) -> bool:
    touches = ranges.touches[vreg]
    at = bisect_left(touches, i)
    return at < len(touches) and touches[at] == i


def evict(ranges: Ranges, state: SpillState, failed: list[Group], groups: list[Group], usable: Sequence[int]) -> set[int]:
    """Vregs to spill because ``failed`` groups found no place: for each the group itself, or whatever stands in its way at the base where that is
    cheapest. The group takes the place, so that the next one sees it."""
    chosen: set[int] = set()
    out: set[int] = set()  # identities of groups that leave
    allowed = frozenset(usable)
    for group in failed:
        itself = group.weight if _may_leave(ranges, state, group) else INFINITE
        cost, base, leaving = min(
            ((INFINITE, -1, []), *_places(ranges, state, group, [g for g in groups if id(g) not in out], allowed)), key=lambda p: p[:2]
        )
        if itself <= cost:
            leaving = [group] if itself < INFINITE else []
        else:
            group.base = base
        for other in leaving:
            out.add(id(other))
            chosen.update(v for v, _ in other.members)
    return chosen


INFINITE: Final = 1e30


def _may_leave(ranges: Ranges, state: SpillState, group: Group) -> bool:
    return group.fixed < 0 and all(spillable(ranges, state, v) for v, _ in group.members)


def _places(
    ranges: Ranges, state: SpillState, group: Group, groups: list[Group], allowed: frozenset[int]
) -> Iterator[tuple[float, int, list[Group]]]:
    """(cost, base, groups to spill) for every base where the group could stand."""
    blockers: dict[int, list[tuple[Group, int]]] = {}  # register -> groups there, and the slot of the group that meets them as a bit set
    for other in groups:
        if other is group or other.base < 0 or other.file != group.file:
            continue
        for slot, segs in enumerate(other.segs):
            meets = 0
            for mine, own in enumerate(group.segs):
                if segs and own and overlap(segs, own):
                    meets |= 1 << mine
            if meets:
                blockers.setdefault(other.base + slot, []).append((other, meets))
    cost: dict[int, float] = {}
    for base in sorted(allowed):
        if base % group.align != group.residue or any(base + slot not in allowed for slot in range(group.width)):
            continue
        if group.banned and any(mask >> (base + slot) & 1 for slot, mask in enumerate(group.banned)):
            continue
        leaving: dict[int, Group] = {}
        total = 0.0
        for slot in range(group.width):
            for other, meets in blockers.get(base + slot, ()):
                if meets >> slot & 1 and id(other) not in leaving:
                    if id(other) not in cost:
                        cost[id(other)] = other.weight if _may_leave(ranges, state, other) else INFINITE
                    leaving[id(other)] = other
                    total += cost[id(other)]
        if total < INFINITE:
            yield total, base, list(leaving.values())


def rewrite(ranges: Ranges, state: SpillState, victims: set[int], may_remat: bool = True) -> None:
    """Spill the victims: change their file and insert copies (or the making instruction) around every instruction that names them.

    ``ranges`` is out of date afterwards."""
    func = ranges.func
    before: dict[int, list[Inst]] = {}
    after: dict[int, list[Inst]] = {}
    drop: set[int] = set()
    work: dict[int, list[int]] = {}
    remat: dict[int, int] = {}
    for vreg in sorted(victims):
        source = remat_source(ranges, vreg) if may_remat else -1
        if source >= 0:
            remat[vreg] = source
            drop.add(source)
        else:
            old = func.vregs[vreg]
            func.vregs[vreg] = old._replace(file=HOME[old.file])
        for i in ranges.touches[vreg]:
            work.setdefault(i, []).append(vreg)
    for i in sorted(work):
        inst = ranges.insts[i]
        if i in drop:
            state.gone.append(inst)
            continue
        homes = [v for v in work[i] if v not in remat]
        if inst.op == "UNDEF":
            for vreg in homes:
                _change_file(inst, vreg, func.vregs[vreg].file)
            continue
        if len(work[i]) == 1 and homes and _is_direct(func, inst, homes[0]):
            _change_file(inst, homes[0], func.vregs[homes[0]].file)
            continue
        guard = inst.guard.num if inst.guard is not None else -1
        for vreg in sorted(work[i], key=lambda v: v != guard):  # the guard first: stores of the others are under its temporary
            pre, post = _around(ranges, state, inst, vreg, remat.get(vreg, -1))
            before.setdefault(i, []).extend(pre)
            after.setdefault(i, []).extend(post)
    for pos, block in enumerate(func.blocks):
        out: list[Inst] = []
        for i in range(ranges.starts[pos], ranges.starts[pos + 1]):
            out.extend(before.get(i, ()))
            if i not in drop:
                out.append(ranges.insts[i])
            out.extend(after.get(i, ()))
        block.insts = out


def _change_file(inst: Inst, vreg: int, file: str) -> None:
    rename(inst, lambda r: r._replace(file=file) if r.num == vreg else r)


def _is_direct(func: Function, inst: Inst, vreg: int) -> bool:
    """A plain COPY between the spilled vreg and a register of the file it came from: it is the load or the store itself."""
    if inst.op != "COPY" or len(inst.dsts) != 1:
        return False
    dst, src = inst.dsts[0], inst.srcs[0]
    if type(dst) is not Reg or not is_plain(src) or type(src) is not Reg or dst.width != src.width or dst.num == src.num:
        return False
    if vreg not in (dst.num, src.num) or (inst.guard is not None and inst.guard.num == vreg):
        return False
    other = src if dst.num == vreg else dst
    return func.vregs[other.num].file == other.file == (dst if other is src else src).file


def _around(ranges: Ranges, state: SpillState, inst: Inst, vreg: int, source: int) -> tuple[list[Inst], list[Inst]]:
    """Replace ``vreg`` in ``inst`` by a temporary; returns the instructions to put before and after."""
    func = ranges.func
    home = func.vregs[vreg]
    reads = [r for r in read_regs(inst) if r.num == vreg]
    writes = [r for r in written_regs(inst) if r.num == vreg]
    named = reads + writes
    low = min(r.sub for r in named)
    high = max(r.sub + r.width for r in named)
    file = named[0].file
    if source >= 0:
        low, high = 0, home.width
    align = min(home.align, max(1 << (r.width - 1).bit_length() for r in named))
    low -= low % align
    width = high - low
    temp = func.new_vreg(file, width, align, -1, home.uniform, home.name)
    state.temps.add(temp.num)
    guard = inst.guard
    rename(inst, lambda r: r._replace(num=temp.num, sub=r.sub - low) if r.num == vreg else r)
    before: list[Inst] = []
    after: list[Inst] = []
    if source >= 0:
        made = ranges.insts[source]
        before.append(Inst(made.op, made.mods, (temp,), made.srcs, None, inst.line, inst.loc, attrs={"ra": "remat"}))
        return before, after
    spans = _spans(reads)
    guarded = is_guarded(inst)
    if writes and guarded:
        assert guard is not None
        if any(r.num == guard.num and r.file == guard.file for r in written_regs(inst)) or guard.num == vreg:
            # The guard does not outlive the instruction: keep the old value and store unconditionally.
            spans = _spans(reads + writes)
            guarded = False
    if guarded and writes:  # a guarded result does not kill: without this the temporary would be live from its last use in a loop
        before.append(Inst("UNDEF", (), (temp,), (), None, inst.line, inst.loc))
    for at, count in spans:
        before.append(Inst("COPY", (), (temp._replace(sub=at - low, width=count),), (Reg(home.file, vreg, at, count),), None, inst.line, inst.loc))
    for at, count in _spans(writes):
        store = Inst("COPY", (), (Reg(home.file, vreg, at, count),), (temp._replace(sub=at - low, width=count),), None, inst.line, inst.loc)
        if guarded:
            store.guard = guard
        after.append(store)
    return before, after


def _spans(regs: list[Reg]) -> list[tuple[int, int]]:
    """Components named, as (first, count), joined where they touch."""
    parts = sorted({p for r in regs for p in range(r.sub, r.sub + r.width)})
    spans: list[tuple[int, int]] = []
    for part in parts:
        if spans and spans[-1][0] + spans[-1][1] == part:
            spans[-1] = (spans[-1][0], spans[-1][1] + 1)
        else:
            spans.append((part, 1))
    return spans
