"""The driver: live ranges, coalescing and assignment for one function, repeated until nothing needs to be spilled."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate

from ir_format.diag import CompileError
from ir_format.flow import read_regs, written_regs
from ir_format.model import ZERO, AttrValue, Const, Function, Header, Imm, Inst, Reg, Unit
from ir_format.target import CALLEE_SAVED, REG_CEILING, SM_RESIDENCY, STACK_REG, Target
from ir_format.target import target as find_target
from ir_format.typed import Final
from stages.analysis import abi
from stages.analysis.register_counts import changes_count, first_count, most_registers, stretches
from stages.analysis.register_limits import FILE_SIZES, FIRST_UR, REGISTERS_PER_SM, last_register, register_limit
from stages.regalloc import spill, splitting
from stages.regalloc.assign import ORDERS, Bank, assign, masks_of
from stages.regalloc.coalescing import Group, Grouping, coalesce, hints_only
from stages.regalloc.divergent_ranges import WARP_FILES, widen
from stages.regalloc.finish import finish_function
from stages.regalloc.live_ranges import Ranges
from stages.regalloc.parallel_copies import split_parallel
from stages.regalloc.remarks import Say, explain
from stages.regalloc.variables import keep

FILES: Final = frozenset({"R", "UR", "P", "UP", "B", "M"})
MAX_ROUNDS: Final = 60
LARGE: Final = 5_000  # instructions; for larger functions only one order is tried
RETRIES: Final = 8
FEWER: Final = 3
APART: Final = 6  # registers too many in use, where the values fit in number but not side by side
ROOM_WORTH: Final = 2.0
MAX_SLOTS: Final = 1 << 20


class Job:
    """Data that the functions of a unit share. ``limit`` is the REGCOUNT limit; ``sure`` the alignment of the stack
    pointer; ``clobbers`` maps a function name to the registers that a call destroys, by file."""

    __slots__ = ("clobbers", "counted", "limit", "naive", "say", "standard", "sure", "target")

    def __init__(self, target: Target, limit: int, naive: bool = False, sure: int = 16) -> None:
        self.target = target
        self.sure = sure
        self.limit = limit
        self.naive = naive
        self.standard: set[str] = set()
        self.clobbers: dict[str, dict[str, int]] = {}
        self.say: Say | None = None
        self.counted = False  # whether each place has the number of registers that setmaxnreg leaves it

    def clobber(self, inst: Inst) -> dict[str, int]:
        """Registers that a CALL destroys, per file."""
        return self.clobbers.get(abi.callee(inst), abi.ABI_CLOBBER)


def allocate_unit(
    unit: Unit,
    header: Header,
    options: Mapping[str, AttrValue] | None = None,
    limit: int = 0,
    say: Say | None = None,
) -> Unit:
    """Allocate every function of ``unit`` in place (level `ori` to `allocated`) and return it.

    ``options`` are ptxas's by long name (default: the header's), and ``allocator``: ``naive`` to spill everything.
    ``limit`` overrides the REGCOUNT limit (tests). ``say`` hears of spilled values. CompileError when a limit can't be
    met.
    """
    options = header.options if options is None else options
    target = find_target(header.target)
    job = Job(
        target,
        limit or register_limit(unit, target.sm, options),
        options.get("allocator") == "naive",
        8 if unit.kind == "func" else 16,  # what another compiler's callers keep
    )
    job.say = say
    order, job.standard = abi.plan(unit)
    gone: list[AttrValue] = []
    for func in order:
        dropped = allocate_function(func, job)
        if dropped:
            gone.append((func.name, dropped))
    if gone:
        unit.sections["regalloc"] = tuple(gone)
    return unit


def allocate_function(func: Function, job: Job) -> tuple[int, ...]:
    """Allocate one function whose callees are allocated. Returns the numbers (in layout order) of the original
    instructions that vanished."""
    _check(func)
    number = {id(inst): i for i, inst in enumerate(i for b in func.blocks for i in b.insts)}
    # keeps the objects alive, so that identities stay unique
    originals = [inst for b in func.blocks for inst in b.insts]
    split_parallel(func)
    state = spill.SpillState()
    if job.naive:
        ranges = Ranges(func)
        victims = {
            v
            for v, reg in enumerate(func.vregs)
            if reg.file == "R" and spill.spillable(ranges, state, v) and ranges.touches[v]
        }
        spill.rewrite(ranges, state, victims, may_remat=False)
    slack = 0
    fewer = 0  # how often values were split for a smaller number of registers
    job.counted = not job.naive and changes_count(func)
    kept = not job.naive and "variables" in func.attrs
    apart = True  # barriers of both paths of a branch interfere, as long as there are enough registers
    for attempt in range(MAX_ROUNDS):
        ranges = Ranges(func)
        widen(ranges, state.temps, WARP_FILES if apart else WARP_FILES - {"B"})
        kept = kept and keep(ranges)
        grouping = Grouping(ranges)
        if job.naive:
            hints_only(grouping)
        else:
            coalesce(grouping, FILES, state.saved | state.parted)
        grouping.finish()
        _ban(grouping, job)
        victims = _iterate(grouping, job, state, func, slack)
        if not victims:
            if fewer == FEWER or job.naive or not ranges.calls or not _split_for_fewer(grouping, job, state, fewer):
                break
            fewer += 1
            continue
        if apart and all(func.vregs[v].file == "B" for v in victims):
            apart = False
            continue
        if kept:
            kept = False  # what a debugger would like to see is not worth a spilled value
            continue
        if not job.naive:
            split = job.counted and splitting.at_counts(ranges, state, victims)
            split = split or splitting.over_calls(ranges, state, victims)
            if split:
                continue
        if job.counted and any(
            func.vregs[v].file == "R" and spill.remat_source(ranges, v) < 0 and _is_short(ranges, job, v)
            for v in victims
        ):
            job.counted = False  # the counts serve speed; what they cost is dearer
            state.parted.clear()
            continue
        if job.say is not None:
            explain(ranges, state, victims, job.say)
        spill.rewrite(ranges, state, victims, room=state.room)
        if attempt % 4 == 3:
            slack += 1
    else:
        raise _insufficient(func, job, ranges)
    saved = finish_function(
        func, job.target.sm, grouping, func.name in job.standard, _calls_clobber(func, job), job.sure
    )
    job.clobbers[func.name] = abi.ABI_CLOBBER if func.name in job.standard else saved
    vanished = [number[id(inst)] for inst in state.gone if id(inst) in number]
    del originals
    return tuple(sorted(vanished))


def _split_for_fewer(grouping: Grouping, job: Job, state: spill.SpillState, attempt: int) -> bool:
    """See :func:`splitting.for_fewer_registers`."""

    def destroyed(inst: Inst) -> int:
        return job.clobber(inst).get("R", 0)

    peak = _peak(grouping, [g for g in grouping.groups if g.file == "R"])
    free = REGISTERS_PER_SM // (SM_RESIDENCY.get(job.target.sm, (64, 32))[0] * 32)
    return bool(splitting.for_fewer_registers(grouping.ranges, state, grouping, destroyed, peak, free, attempt))


def _calls_clobber(func: Function, job: Job) -> dict[str, int]:
    total = dict.fromkeys(abi.ABI_CLOBBER, 0)
    for block in func.blocks:
        for inst in block.insts:
            if inst.op == "CALL":
                for file, mask in job.clobber(inst).items():
                    total[file] |= mask
    return total


def _check(func: Function) -> None:
    """Refuse code that the model does not allow and that the allocator would get wrong."""
    if not func.blocks:
        raise CompileError(f"Function '{func.name}' has no blocks")
    for number, vreg in enumerate(func.vregs):
        if vreg.file not in FILES or vreg.file == "M":
            raise CompileError(f"Virtual register {number} of '{func.name}' is of unknown file '{vreg.file}'")
        if (
            vreg.width < 1
            or vreg.align < 1
            or vreg.align & (vreg.align - 1)
            or (vreg.file not in ("R", "UR") and vreg.width != 1)
        ):
            raise CompileError(f"Virtual register {number} of '{func.name}' has an impossible width or alignment")
        if vreg.width > REG_CEILING:
            raise CompileError(f"Virtual register {number} of '{func.name}' is wider than the register file")
    fine: set[Reg] = set()
    for block in func.blocks:
        for inst in block.insts:
            for reg in (*read_regs(inst), *written_regs(inst)):
                if reg in fine:
                    continue
                if not 0 <= reg.num < len(func.vregs):
                    raise CompileError(f"{inst.op} names a virtual register that does not exist", inst.line)
                vreg = func.vregs[reg.num]
                if vreg.file != reg.file or reg.sub < 0 or reg.width < 1 or reg.sub + reg.width > vreg.width:
                    raise CompileError(f"Register operand of {inst.op} is outside of its virtual register", inst.line)
                fine.add(reg)
            if inst.op in ("COPY", "PCOPY"):
                _check_copy(inst)


def _check_copy(inst: Inst) -> None:
    if len(inst.dsts) != len(inst.srcs) or (inst.op == "COPY" and len(inst.dsts) != 1):
        raise CompileError(f"{inst.op} has {len(inst.dsts)} destinations and {len(inst.srcs)} sources", inst.line)
    for dst, src in zip(inst.dsts, inst.srcs):
        if type(dst) is not Reg or type(src) not in (Reg, Imm, Const):
            raise CompileError(f"{inst.op} of an operand that can't be copied", inst.line)
        if type(src) is Reg and src.num != ZERO and src.width != dst.width:
            raise CompileError(f"{inst.op} between registers of different widths", inst.line)


def _preference(file: str, func: Function, job: Job) -> Sequence[int]:
    """The registers of a file in the order in which they are given out."""
    if file == "R":
        limit = most_registers(func, job.limit) if job.counted else job.limit
        numbers = [r for r in range(last_register(limit) + 1) if r != STACK_REG]
        if func.name in job.standard:  # registers that need no saving first
            numbers = [r for r in numbers if r not in CALLEE_SAVED] + [r for r in numbers if r in CALLEE_SAVED]
        return numbers
    if file == "UR":
        return range(FIRST_UR, job.target.ur_count)
    return range(FILE_SIZES[file]) if file != "M" else range(MAX_SLOTS)


def _ban(grouping: Grouping, job: Job) -> None:
    """Fill ``Group.banned``: the registers that calls inside the live range of each slot destroy."""
    ranges = grouping.ranges
    if job.counted:
        _count(grouping, job)
    if not ranges.calls:
        return
    kinds: dict[int, list[int]] = {}  # identity of a clobber set -> calls with it
    sets: dict[int, dict[str, int]] = {}
    for i in ranges.calls:
        clobber = job.clobber(ranges.insts[i])
        kinds.setdefault(id(clobber), []).append(i)
        sets[id(clobber)] = clobber
    for group in grouping.groups:
        banned = [0] * group.width
        for slot, segs in enumerate(group.segs):
            for key, calls in kinds.items():
                mask = sets[key].get(group.file, 0)
                if mask and any(_crosses(calls, start, stop) for start, stop in segs):
                    banned[slot] |= mask
        if any(banned):
            group.banned = [a | b for a, b in zip(banned, group.banned or [0] * group.width)]
            if group.fixed >= 0:
                for slot, mask in enumerate(banned):
                    if mask >> (group.fixed + slot) & 1:
                        raise CompileError(
                            f"Register {group.file}{group.fixed + slot} is needed across a call that destroys it"
                        )


def _count(grouping: Grouping, job: Job) -> None:
    """Ban the registers that do not exist somewhere in the life of a value."""
    func = grouping.ranges.func
    most = most_registers(func, job.limit)
    missing = [
        (2 * low, 2 * high, (1 << last_register(most) + 1) - (1 << last_register(count) + 1))
        for low, high, count in stretches(func, job.limit)
        if count < most
    ]
    for group in grouping.groups:
        if group.file == "R" and group.fixed < 0:
            banned = [0] * group.width
            for slot, segs in enumerate(group.segs):
                for low, high, mask in missing:
                    if any(start < high and low < stop for start, stop in segs):
                        banned[slot] |= mask
            if any(banned):
                group.banned = banned


def _is_short(ranges: Ranges, job: Job, vreg: int) -> bool:
    """Whether a register lives where setmaxnreg leaves fewer registers than the kernel begins with."""
    first = first_count(ranges.func, job.limit)
    segs = [seg for c in spill.cells_of(ranges, vreg) for seg in ranges.segs[c]]
    return any(
        count < first and any(start < 2 * high and 2 * low < stop for start, stop in segs)
        for low, high, count in stretches(ranges.func, job.limit)
    )


def _crosses(calls: list[int], start: int, stop: int) -> bool:
    """Whether a call reads at or after ``start`` and writes before ``stop``: the value is live across it."""
    at = bisect_left(calls, (start + 1) // 2)
    return at < len(calls) and 2 * calls[at] + 1 < stop


def _iterate(grouping: Grouping, job: Job, state: spill.SpillState, func: Function, slack: int) -> set[int]:
    """Assign all files. Returns the vregs to spill, or an empty set if every vreg has a place."""
    by_file: dict[str, list[Group]] = {}
    for group in grouping.groups:
        by_file.setdefault(group.file, []).append(group)
    for file in ("P", "UP", "B", "UR", "R", "M"):
        groups = by_file.get(file)
        if groups:
            victims = _assign_file(grouping, job, state, func, file, groups, slack)
            if victims:
                return victims
    return set()


def _assign_file(
    grouping: Grouping, job: Job, state: spill.SpillState, func: Function, file: str, groups: list[Group], slack: int
) -> set[int]:
    ranges = grouping.ranges
    fixed = [g for g in groups if g.fixed >= 0]
    free = [g for g in groups if g.fixed < 0]
    order = _preference(file, func, job)
    peak = _peak(grouping, groups) if file != "M" else 0
    crowded = peak > len(order)
    if not crowded and _place_all(grouping, job, func, file, fixed, free, peak):
        return set()
    if file == "M":
        raise CompileError(f"Too many spilled values in function '{func.name}'")
    usable = frozenset(order)
    state.room = len(order) - slack
    at_call = {
        i: len(usable) - sum(1 for r in usable if job.clobber(ranges.insts[i]).get(file, 0) >> r & 1)
        for i in ranges.calls
    }
    victims = spill.choose(ranges, state, file, len(usable) - slack, at_call)
    if not victims:
        if crowded:
            _place_all(grouping, job, func, file, fixed, free, peak)
        victims = spill.evict(ranges, state, [g for g in free if g.base < 0], groups, order)
        fewer = spill.choose(ranges, state, file, len(usable) - slack - APART, at_call) if file == "R" else set()
        if fewer and sum(ranges.weight[v] for v in fewer) <= sum(ranges.weight[v] for v in victims) * ROOM_WORTH:
            victims = fewer
    if not victims:
        raise _insufficient(func, job, ranges, file)
    return victims


def _peak(grouping: Grouping, groups: list[Group]) -> int:
    """The highest register pressure of one file at any point, without the stack pointer."""
    delta = [0] * (2 * len(grouping.ranges.insts) + 2)
    for group in groups:
        if group.file == "R" and group.fixed == STACK_REG:
            continue
        for segs in group.segs:
            for start, stop in segs:
                delta[start] += 1
                delta[stop] -= 1
    return max(accumulate(delta))


def _place_all(
    grouping: Grouping, job: Job, func: Function, file: str, fixed: list[Group], free: list[Group], peak: int
) -> bool:
    """Place the groups of one file: try several orders and keep the one that needs the fewest registers. If every order
    fails, the next tries begin with the groups that found no place. If these fail too, the places are those of the try
    that left the fewest registers out, and the groups without a place have base -1. ``peak`` is :func:`_peak`."""
    # No order needs fewer registers than the peak (R1 lies below the third register): keep the first that reaches it.
    least = peak + (peak > 1) if all(g.fixed == STACK_REG for g in fixed) else 0
    nearest: tuple[int, list[int]] | None = None
    registers = _preference(file, func, job)
    points = 2 * len(grouping.ranges.insts) + 2
    bank = Bank(file, registers, points)

    def attempt(order: list[Group], below: int = 0) -> list[Group]:
        nonlocal nearest, bank
        bank = Bank(file, registers, points)
        _place_fixed(bank, fixed)
        lost = assign(grouping, bank, order, below)
        words = sum(g.width for g in lost)
        if lost and (nearest is None or words < nearest[0]):
            nearest = words, [g.base for g in free]
        return lost

    best: tuple[int, list[int], Bank] | None = None
    missed: list[Group] = []
    order: list[Group] = []
    for key in ORDERS:
        now = sorted(free, key=key)
        lost = attempt(now, best[0] if best is not None else 0)
        if not lost:
            used = max((g.base + g.width for g in free), default=0)
            if best is None or used < best[0]:
                best = (used, [g.base for g in free], bank)
        elif not order or len(lost) < len(missed):
            missed, order = lost, now
        if file != "R" or len(grouping.ranges.insts) > LARGE or (best is not None and best[0] <= least):
            break
    if best is not None:
        for group, base in zip(free, best[1]):
            group.base = base
        if file in ("R", "P"):
            best[2].spread(free, func.name not in job.standard)
        return True
    for _ in range(RETRIES):
        first = {id(g) for g in missed}
        order = missed + [g for g in order if id(g) not in first]
        missed = attempt(order)
        if not missed:
            return True
    if nearest is not None:
        for group, base in zip(free, nearest[1]):
            group.base = base
    return False


def _place_fixed(bank: Bank, fixed: list[Group]) -> None:
    top = 256
    for group in sorted(fixed, key=lambda g: (g.start, g.order)):
        if group.fixed + group.width > top:
            raise CompileError(f"No register {bank.file}{group.fixed}")
        group.base = group.fixed
        if bank.file == "R" and group.fixed == STACK_REG:
            continue
        if not group.masks:
            group.masks = [masks_of(segs) for segs in group.segs]
        for slot, masks in enumerate(group.masks):
            if not bank.is_free(group.fixed + slot, masks):
                raise CompileError(f"Register {bank.file}{group.fixed + slot} is asked for twice at the same time")
            bank.take(group.fixed + slot, masks)


def _insufficient(func: Function, job: Job, ranges: Ranges, file: str = "R") -> CompileError:
    total = spill.pressure(ranges, file)
    worst = max(range(len(total)), key=lambda p: total[p])
    line = ranges.insts[min(worst >> 1, len(ranges.insts) - 1)].line
    if file != "R":
        return CompileError(
            f"Insufficient {file} registers to compile instruction in function '{func.name}'", line, "fatal"
        )
    return CompileError(
        f"(C7602) Insufficient registers ({job.limit}) to compile instruction at line {line} in function {func.name}. "
        f"Try to compile with register target of {total[worst] + 4} or higher.",
        0,
        "fatal",
    )
