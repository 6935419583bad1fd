"""Spilling: the choice of the values that leave their register file, and the spill code.

A spilled vreg changes its file: R to M (memory), P to R, UR to R, UP to UR, B to R. Every instruction that names it
gets a short-lived vreg of the old file, which a COPY before it loads and a COPY after it stores. A value that comes
from one instruction without register operands (a constant, a parameter, a special register) is rematerialized at each
use.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import accumulate

from ir_format.flow import is_guarded, read_regs, written_regs
from ir_format.isa import facts
from ir_format.isa.sregs import INVARIANT
from ir_format.model import Const, Function, Imm, Inst, Name, Reg, VReg
from ir_format.rename import rename
from ir_format.target import STACK_REG
from ir_format.typed import Final
from stages.regalloc.coalescing import Group
from stages.regalloc.live_ranges import Ranges, is_plain, overlap
from stages.regalloc.load_tree import LoadTree

HOME: Final = {"R": "M", "P": "R", "UR": "R", "UP": "UR", "B": "R"}  # where a spilled value of each file lives

REMAT_OPS: Final = facts.having("constant")
RUN_GAP: Final = 64  # instructions between two accesses that share a temporary
REMAT_COST: Final = 0.4  # against a load


class SpillState:
    """The state from iteration to iteration. ``temps`` are vregs that must not be spilled, because spilling made them;
    ``shared`` are temporaries of several accesses, which may be spilled again, access by access; ``gone`` are original
    instructions that rematerialization replaced; ``room`` is the number of registers of the file that spills. Split
    values, both halves: ``saved`` over calls, ``parted`` at changes of the register count."""

    __slots__ = ("gone", "parted", "room", "saved", "shared", "temps")

    def __init__(self) -> None:
        self.temps: set[int] = set()
        self.shared: set[int] = set()
        self.saved: set[int] = set()
        self.parted: set[int] = set()
        self.room = 0
        self.gone: list[Inst] = []


def remat_source(ranges: Ranges, vreg: int) -> int:
    """The number of the instruction that can rematerialize ``vreg`` anywhere, or -1."""
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
    if (
        inst.op not in REMAT_OPS
        or is_guarded(inst)
        or read_regs(inst)
        or inst.defs
        or inst.uses
        or len(inst.dsts) != 1
        or not inst.srcs
    ):
        return -1
    dst = inst.dsts[0]
    if type(dst) is not Reg or dst.width != func.vregs[vreg].width:
        return -1
    source = inst.srcs[0]
    if type(source) is Name:
        steady = inst.op in ("S2R", "S2UR") and source.name.startswith(INVARIANT)
    elif type(source) is Const:
        steady = inst.op not in ("S2R", "S2UR")
    else:
        steady = (
            type(source) in (Imm, Reg)
            and inst.op in ("MOV", "COPY", "UMOV")
            and not (type(source) is Imm and source.fmt == "ret")
        )
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
    """Register pressure: the number of live cells of the file at each point, without the stack pointer."""
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
    """Choose vregs to spill so that register pressure stays within ``capacity`` (``at_call[i]``: the capacity for
    values that are live across call i).

    One sweep over the points. Where the pressure is too high, it spills the value with the least cost per overfull
    point that it frees.
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
    waiting: list[tuple[float, int]] = []  # a heap of (score, register), with some that are active no more
    extra: dict[int, int] = {}  # instruction -> registers for the temporaries of spilled values
    chosen: set[int] = set()
    live = 0
    for point in range(len(total)):
        for change, vreg in events[point]:
            if vreg not in chosen:
                before = active.get(vreg, 0)
                if not before and vreg in score:
                    heappush(waiting, (score[vreg], vreg))
                active[vreg] = before + change
                live += change
                if not active[vreg]:
                    del active[vreg]
        i = point >> 1
        room = capacity if not point & 1 else at_call.get(i, capacity)
        while live + extra.get(i, 0) > room:
            best = _cheapest(ranges, waiting, active, i)
            if best < 0:
                break
            chosen.add(best)
            live -= active.pop(best)
            width = ranges.func.vregs[best].width
            for at in ranges.touches[best]:
                extra[at] = extra.get(at, 0) + width
    return _keep_some(ranges, chosen, total, capacity, at_call) or chosen


def _cheapest(ranges: Ranges, waiting: list[tuple[float, int]], active: dict[int, int], i: int) -> int:
    """The register of the least score that is active and that instruction ``i`` doesn't name; -1: none. It leaves the
    heap."""
    named: list[tuple[float, int]] = []
    best = -1
    while waiting:
        entry = heappop(waiting)
        while waiting and waiting[0] == entry:  # it became active twice
            heappop(waiting)
        if entry[1] not in active:
            continue
        if _names(ranges, entry[1], i):
            named.append(entry)
            continue
        best = entry[1]
        break
    for entry in named:
        heappush(waiting, entry)
    return best


def _without(ranges: Ranges, victims: Iterable[int], total: list[int]) -> list[int]:
    """The register pressure without the victims, but with a temporary at each of their accesses. ``total``: with
    them."""
    delta = [0] * (len(total) + 1)
    for vreg in victims:
        for cell in cells_of(ranges, vreg):
            for start, stop in ranges.segs[cell]:
                delta[start] -= 1
                delta[stop] += 1
        width = ranges.func.vregs[vreg].width
        for i in ranges.touches[vreg]:
            delta[2 * i] += width
            delta[2 * i + 2] -= width
    return [n + change for n, change in zip(total, accumulate(delta), strict=False)]


def _keep_some(ranges: Ranges, chosen: set[int], total: list[int], capacity: int, at_call: dict[int, int]) -> set[int]:
    """Undo choices that later ones made needless, the costliest first: the sweep can't look ahead."""
    tree = LoadTree(_without(ranges, chosen, total))
    calls = sorted(at_call)
    left = set(chosen)
    for vreg in sorted(chosen, key=lambda v: (-ranges.weight[v], v)):
        width = ranges.func.vregs[vreg].width
        segs = [seg for cell in cells_of(ranges, vreg) for seg in ranges.segs[cell]]
        for i in ranges.touches[vreg]:  # without its temporaries
            tree.add(2 * i, 2 * i + 2, -width)
        crosses = any(bisect_left(calls, start >> 1) < bisect_left(calls, stop >> 1) for start, stop in segs)
        if not crosses and all(tree.most(start, stop) + width <= capacity for start, stop in segs):
            for start, stop in segs:
                tree.add(start, stop, 1)
            left.discard(vreg)
        else:
            for i in ranges.touches[vreg]:
                tree.add(2 * i, 2 * i + 2, width)
    return left


def _names(ranges: Ranges, vreg: int, i: int) -> bool:
    touches = ranges.touches[vreg]
    at = bisect_left(touches, i)
    return at < len(touches) and touches[at] == i


def evict(
    ranges: Ranges, state: SpillState, failed: list[Group], groups: list[Group], usable: Sequence[int]
) -> set[int]:
    """Choose vregs to spill because ``failed`` groups found no place: for each the group itself, or the groups that
    occupy the base where that is cheapest. The group takes the base, so that the next one sees it."""
    chosen: set[int] = set()
    out: set[int] = set()  # identities of groups that leave
    allowed = frozenset(usable)
    for group in failed:
        itself = group.weight if _may_leave(ranges, state, group) else INFINITE
        cost, base, leaving = min(
            ((INFINITE, -1, []), *_places(ranges, state, group, [g for g in groups if id(g) not in out], allowed)),
            key=lambda p: p[:2],
        )
        if itself <= cost:
            leaving = [group] if itself < INFINITE else []
        else:
            group.base = base
        for other in leaving:
            out.add(id(other))
            chosen.update(v for v, _ in other.members if spillable(ranges, state, v))
    return chosen


INFINITE: Final = 1e30


def _may_leave(ranges: Ranges, state: SpillState, group: Group) -> bool:
    """Whether the group falls apart when all members that can be spilled are spilled."""
    return group.fixed < 0 and any(spillable(ranges, state, v) for v, _ in group.members)


def _places(
    ranges: Ranges, state: SpillState, group: Group, groups: list[Group], allowed: frozenset[int]
) -> Iterator[tuple[float, int, list[Group]]]:
    """(cost, base, groups to spill) for every base that the group could take."""
    blockers: dict[
        int, list[tuple[Group, int]]
    ] = {}  # register -> groups there, and the slot of the group that meets them as a bit set
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


class _Plan:
    """The instructions that one call of :func:`rewrite` inserts, and their places."""

    __slots__ = ("after", "before", "drop", "load", "ranges", "remat", "room", "state")

    def __init__(self, ranges: Ranges, state: SpillState, room: int) -> None:
        self.ranges = ranges
        self.state = state
        self.room = room
        self.before: dict[int, list[Inst]] = {}
        self.after: dict[int, list[Inst]] = {}
        self.drop: set[int] = set()  # numbers of instructions that rematerialization replaces
        self.remat: dict[int, int] = {}  # vreg -> number of the instruction that makes it
        self.load: dict[str, list[int]] = {}  # file -> registers in use at each point once the victims are gone


def rewrite(ranges: Ranges, state: SpillState, victims: set[int], may_remat: bool = True, room: int = 0) -> None:
    """Spill the victims: change their file, and insert copies or the rematerialized instruction around every
    instruction that names them.

    Neighbouring accesses share one temporary if ``room`` registers suffice between them. ``ranges`` is out of date
    afterwards."""
    func = ranges.func
    plan = _Plan(ranges, state, room)
    work: dict[int, list[int]] = {}
    for vreg in sorted(victims):
        source = remat_source(ranges, vreg) if may_remat else -1
        if source >= 0:
            plan.remat[vreg] = source
            plan.drop.add(source)
        for i in ranges.touches[vreg]:
            work.setdefault(i, []).append(vreg)
    _measure(plan, victims)
    runs: dict[tuple[int, int], list[int]] = {}  # (first instruction, vreg) -> the accesses of the run
    inside: set[tuple[int, int]] = set()  # later members of runs
    for vreg in sorted(victims):
        for run in _runs(plan, vreg):
            runs[run[0], vreg] = run
            inside.update((i, vreg) for i in run)
        if vreg not in plan.remat:
            old = func.vregs[vreg]
            func.vregs[vreg] = old._replace(file=HOME[old.file])
    for i in sorted(work):
        inst = ranges.insts[i]
        if i in plan.drop:
            state.gone.append(inst)
            continue
        single = [v for v in work[i] if (i, v) not in inside]
        if inst.op == "UNDEF":
            for vreg in work[i]:
                _change_file(inst, vreg, func.vregs[vreg].file)
            continue
        if len(work[i]) == 1 and single and single[0] not in plan.remat and _is_direct(func, inst, single[0]):
            _change_file(inst, single[0], func.vregs[single[0]].file)
            continue
        guard = inst.guard.num if inst.guard is not None else -1
        for vreg in sorted(
            work[i], key=lambda v: v != guard
        ):  # the guard first: stores of the others are under its temporary
            if (i, vreg) in runs:
                _share(plan, runs[i, vreg], vreg)
            elif (i, vreg) not in inside:
                pre, post = _around(ranges, state, inst, vreg, plan.remat.get(vreg, -1))
                plan.before.setdefault(i, []).extend(pre)
                plan.after.setdefault(i, []).extend(post)
    for pos, block in enumerate(func.blocks):
        out: list[Inst] = []
        for i in range(ranges.starts[pos], ranges.starts[pos + 1]):
            out.extend(plan.before.get(i, ()))
            if i not in plan.drop:
                out.append(ranges.insts[i])
            out.extend(plan.after.get(i, ()))
        block.insts = out


def _measure(plan: _Plan, victims: set[int]) -> None:
    """Compute the register pressure without the victims, but with a temporary at each of their accesses."""
    ranges = plan.ranges
    for file in sorted({ranges.func.vregs[v].file for v in victims}):
        leaving = [v for v in victims if ranges.func.vregs[v].file == file]
        plan.load[file] = _without(ranges, leaving, pressure(ranges, file))


def _runs(plan: _Plan, vreg: int) -> list[list[int]]:
    """Runs of two and more accesses in one block that may share a temporary."""
    ranges = plan.ranges
    reg = ranges.func.vregs[vreg]
    if not plan.room or vreg in plan.state.shared:
        return []
    load = plan.load[reg.file]
    runs: list[list[int]] = []
    last = -1
    for i in ranges.touches[vreg]:
        inst = ranges.insts[i]
        if i in plan.drop or inst.op in ("UNDEF", "CALL"):
            last = -1
            continue
        gap = range(2 * last + 2, 2 * i)
        if (
            last >= 0
            and ranges.block_of[last] == ranges.block_of[i]
            and i - last <= RUN_GAP
            and (not gap or max(load[gap.start : gap.stop]) + reg.width < plan.room)
            and all(ranges.insts[k].op != "CALL" for k in range(last + 1, i))
        ):
            runs[-1].append(i)
            for point in gap:
                load[point] += reg.width
        else:
            runs.append([i])
        last = i
    return [run for run in runs if len(run) > 1]


def _share(plan: _Plan, run: list[int], vreg: int) -> None:
    """One temporary for a run of accesses: loaded before the first access that needs it, stored after the last
    write."""
    ranges = plan.ranges
    func = ranges.func
    home = func.vregs[vreg]
    source = plan.remat.get(vreg, -1)
    need: list[Reg] = []  # read, or written under a guard, before the run has written it
    written: list[Reg] = []
    certain: set[int] = set()
    last_write = -1
    named: list[Reg] = []
    for i in run:
        inst = ranges.insts[i]
        reads = [r for r in read_regs(inst) if r.num == vreg]
        writes = [r for r in written_regs(inst) if r.num == vreg]
        named += reads + writes
        if is_guarded(inst):
            reads = reads + writes
        need.extend(r for r in reads if not certain.issuperset(range(r.sub, r.sub + r.width)))
        if writes:
            last_write = i
            written += writes
            if not is_guarded(inst):
                certain.update(p for r in writes for p in range(r.sub, r.sub + r.width))
    align = min(home.align, max(1 << (r.width - 1).bit_length() for r in named))
    low = min(r.sub for r in named) if source < 0 else 0
    high = max(r.sub + r.width for r in named) if source < 0 else home.width
    low -= low % align
    temp = func.new_vreg(named[0].file, high - low, align if source < 0 else home.align, -1, home.uniform, home.name)
    plan.state.shared.add(temp.num)
    first = ranges.insts[run[0]]
    before = plan.before.setdefault(run[0], [])
    if source >= 0:
        made = ranges.insts[source]
        before.append(Inst(made.op, made.mods, (temp,), made.srcs, None, first.line, first.loc, attrs={"ra": "remat"}))
    else:
        for at, count in _spans(need):
            before.append(move(temp._replace(sub=at - low, width=count), Reg(home.file, vreg, at, count), first))
    for i in run:
        rename(ranges.insts[i], lambda r: r._replace(num=temp.num, sub=r.sub - low) if r.num == vreg else r)
    if last_write >= 0:
        after = plan.after.setdefault(last_write, [])
        for at, count in _spans(written):
            after.append(
                move(
                    Reg(home.file, vreg, at, count), temp._replace(sub=at - low, width=count), ranges.insts[last_write]
                )
            )


def move(dst: Reg, src: Reg, origin: Inst) -> Inst:
    """A copy on behalf of an instruction."""
    return Inst("COPY", (), (dst,), (src,), None, origin.line, origin.loc)


def _change_file(inst: Inst, vreg: int, file: str) -> None:
    rename(inst, lambda r: r._replace(file=file) if r.num == vreg else r)


def _is_direct(func: Function, inst: Inst, vreg: int) -> bool:
    """Whether the instruction is a plain COPY between the spilled vreg and a register of its old file: this COPY is the
    load or the store."""
    if inst.op != "COPY" or len(inst.dsts) != 1:
        return False
    dst, src = inst.dsts[0], inst.srcs[0]
    if (
        type(dst) is not Reg
        or not is_plain(src)
        or type(src) is not Reg
        or dst.width != src.width
        or dst.num == src.num
    ):
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
    loads = _spans(reads)
    guarded = is_guarded(inst)
    if writes and guarded:
        assert guard is not None
        if any(r.num == guard.num and r.file == guard.file for r in written_regs(inst)) or guard.num == vreg:
            # The guard does not outlive the instruction: keep the old value and store unconditionally.
            loads = _spans(reads + writes)
            guarded = False
    if (
        guarded and writes
    ):  # a guarded result does not kill: without this the temporary would be live from its last use in a loop
        before.append(Inst("UNDEF", (), (temp,), (), None, inst.line, inst.loc))
    for at, count in loads:
        before.append(move(temp._replace(sub=at - low, width=count), Reg(home.file, vreg, at, count), inst))
    for at, count in _spans(writes):
        store = move(Reg(home.file, vreg, at, count), temp._replace(sub=at - low, width=count), inst)
        if guarded:
            store.guard = guard
        after.append(store)
    return before, after


def _spans(regs: list[Reg]) -> list[tuple[int, int]]:
    """Components named, as (first, count), joined where they touch."""
    return spans(p for r in regs for p in range(r.sub, r.sub + r.width))


def spans(parts: Iterable[int]) -> list[tuple[int, int]]:
    """Components as (first, count), joined where they touch."""
    found: list[tuple[int, int]] = []
    for part in sorted(set(parts)):
        if found and found[-1][0] + found[-1][1] == part:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((part, 1))
    return found
