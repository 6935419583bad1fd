"""Scoreboards: which of the six counters announces which result, and who waits.

Allocation walks a block in its final order. A counter may serve several instructions; who waits for it then waits for
all of them, so instructions share a counter when they are needed at about the same place. Only what somebody can miss
gets a counter: a read is announced when one of the registers read late may be overwritten before the result has been
waited for.

Waits come from a dataflow over the blocks: per counter the registers under way (results) and the registers still to be
read. A wait clears its counter. Waits are only ever added, so the iteration ends; :func:`add_waits` stops when a whole
sweep adds none.

SB0 belongs to LDGDEPBAR and UTMACMDFLUSH alone in a function that has one: DEPBAR counts their groups (ptxas has both
on SB0 too).
"""

from __future__ import annotations

from typing import Final

from ir_format.flow import Cfg
from ir_format.hazards import Access
from ir_format.isa import facts
from ir_format.model import Inst

COUNT: Final = 6
_FAR: Final = 1 << 30
#: Instructions under way on one counter before we wait: the counters have six bits as far as is known (guessed); far
#: from the limit.
_MOST: Final = 32
#: Nothing may be under way here: the other side knows nothing of our counters, or registers go away.
BOUNDARIES: Final = facts.having("boundary")
#: Estimated cycles until sources have been read.
_READ: Final = 16
#: What a free counter costs, in cycles of waiting, by the number in use (found by trials).
_SCARCE: Final = (0, 0, 0, 0, 1, 2, 2)
#: The same while reads are still to be announced: with counters of their own they wait for no result.
_KEPT: Final = (0, 0, 0, 1, 4, 32, 32)
#: Instructions whose groups DEPBAR counts.
_COUNTED: Final = facts.having("commit")
_DONE: Final = facts.with_value("effect", "cache") & facts.having("fence")


class Boarded:
    """A block with its counters: ``wr``/``rd``: per instruction the counter set or -1; ``waits``: wait mask per
    instruction."""

    __slots__ = ("accesses", "insts", "rd", "waits", "wr")

    def __init__(self, insts: list[Inst], accesses: list[Access]) -> None:
        self.insts = insts
        self.accesses = accesses
        self.wr = [-1] * len(insts)
        self.rd = [-1] * len(insts)
        self.waits = [0] * len(insts)


class _State:
    """Per counter: registers whose result it announces, registers whose reading it announces."""

    __slots__ = ("any", "reads", "results")

    def __init__(self) -> None:
        self.results = [0] * COUNT
        self.reads = [0] * COUNT
        self.any = 0  # counters that may be above zero

    def copy(self) -> _State:
        out = _State()
        out.results = list(self.results)
        out.reads = list(self.reads)
        out.any = self.any
        return out

    def join(self, other: _State) -> None:
        for k in range(COUNT):
            self.results[k] |= other.results[k]
            self.reads[k] |= other.reads[k]
        self.any |= other.any

    def same(self, other: _State) -> bool:
        return self.any == other.any and self.results == other.results and self.reads == other.reads

    def needed(self, inst: Inst, a: Access) -> int:
        """Counters the instruction must find at zero."""
        any_ = self.any
        if not any_:
            return 0
        if inst.op in BOUNDARIES:
            return any_
        wait = 0
        touched = a.read_mask | a.write_mask
        written = a.write_mask
        done = inst.op in _DONE
        meets = 0
        if done:
            meets |= _ACQUIRED
        if a.pipe == "mio" and a.klass not in _APART:
            meets |= _SIGNAL if a.klass in _IN_ORDER else _SIGNAL | _OBJECT
        for k in range(COUNT):
            if any_ >> k & 1 and (self.results[k] & (touched | meets) or self.reads[k] & (written | meets)):
                wait |= 1 << k
        return wait

    def clear(self, wait: int) -> None:
        for k in range(COUNT):
            if wait >> k & 1:
                self.results[k] = 0
                self.reads[k] = 0
        self.any &= ~wait

    def issue(self, inst: Inst, a: Access, wr: int, rd: int) -> None:
        """Take note of what the instruction sets under way."""
        if (
            a.klass == "membar"
        ):  # loads in front of a fence are done before accesses behind it start (measured: sm_90 waits for all counters)
            for k in range(COUNT):
                if self.results[k]:
                    self.results[k] |= _SIGNAL
        if wr >= 0 and a.board_w and a.klass in ("ldg", "atom") and any(m.startswith("STRONG") for m in inst.mods):
            # The cache invalidation of an acquire waits for its own access, the last strong one in front of it
            # (measured).
            for k in range(COUNT):
                self.results[k] &= ~_ACQUIRED
            self.results[wr] |= _ACQUIRED
        if wr >= 0:
            self.results[wr] |= a.write_mask | (_signal(a) if a.signals else _LOAD if a.board_w else 0)
            self.any |= 1 << wr
        if rd >= 0:
            self.reads[rd] |= a.late | (_signal(a) if a.signals else 0)
            self.any |= 1 << rd


_LOAD: Final = 1 << 600  # a counter in use, whether its instruction writes a register or not
_SIGNAL: Final = 1 << 601  # memory accesses and barriers wait for it
_ACQUIRED: Final = 1 << 602  # CCTL waits for it
_OBJECT: Final = 1 << 603  # barriers, fences and bulk copies wait for it
_APART: Final = frozenset(("ldc", "sreg", "errbar", "cgaerrbar"))
#: Accesses that come behind operations on barrier objects by the order of their pipe (measured: STS, LDS behind
#: SYNCS.EXCH, SYNCS.ARRIVE at any address).
_IN_ORDER: Final = frozenset(("lds", "ldg", "ldl", "stg", "sts", "atom", "red", "ldgsts", "syncs"))


def _signal(a: Access) -> int:
    return _OBJECT if a.klass == "syncs" else _SIGNAL


def assign(blocks: list[Boarded], cfg: Cfg) -> None:
    """Give counters to all blocks, then compute the waits."""
    reserved = any(i.op in _COUNTED for b in blocks for i in b.insts)
    later = _later_writes(blocks, cfg)
    order = layout_order(cfg)
    exits: dict[int, _State] = {}
    for pos in order:
        entry = _State()
        for pred in cfg.preds[pos]:
            if pred in exits:
                entry.join(exits[pred])
        exits[pos] = _allocate(blocks[pos], entry, later[pos], reserved)
    for pos in order:  # once more for loops: now it is known what is under way when they come round
        if pos in cfg.succs[pos] and exits[pos].any:
            entry = _State()
            for pred in cfg.preds[pos]:
                entry.join(exits[pred])
            _allocate(blocks[pos], entry, later[pos], reserved)
    add_waits(blocks, cfg)


def layout_order(cfg: Cfg) -> list[int]:
    """Reachable blocks in reverse postorder, then the others."""
    reached = set(cfg.rpo)
    return cfg.rpo + [p for p in range(len(cfg.succs)) if p not in reached]


def _later_writes(blocks: list[Boarded], cfg: Cfg) -> list[int]:
    """Per block, the registers that may be written after its end (all of them behind a call or return)."""
    own = []
    for b in blocks:
        mask = 0
        for inst, a in zip(b.insts, b.accesses):
            mask |= -1 if inst.op in BOUNDARIES else a.write_mask
        own.append(mask)
    later = [0] * len(blocks)
    order = layout_order(cfg)[::-1]
    changed = True
    while changed:
        changed = False
        for pos in order:
            mask = later[pos]
            for succ in cfg.succs[pos]:
                mask |= own[succ] | later[succ]
            if mask != later[pos]:
                later[pos] = mask
                changed = True
    return later


def _needs(block: Boarded, later: int) -> list[tuple[int, int]]:
    """Per instruction: index of the first instruction that waits for its result, and for its reads; _FAR: behind the
    block, -1: nobody."""
    count = len(block.insts)
    out = [(-1, -1)] * count
    touched: dict[int, int] = {}
    written: dict[int, int] = {}
    boundary = _FAR
    meeting = met = _FAR  # the next that waits for fences; for operations on barrier objects
    for i in range(count - 1, -1, -1):
        a = block.accesses[i]
        if a.board_w or a.board_r:
            result = -1
            if a.board_w:
                result = min((touched.get(c, _FAR) for c, _, _ in a.writes), default=_FAR)
                result = min(result, boundary, (met if a.klass == "syncs" else meeting) if a.signals else _FAR)
            read = -1
            if a.board_r:
                cells = a.late & ~(a.write_mask if a.board_w else 0)
                first = boundary
                for cell, _, _ in a.reads:
                    if cells >> cell & 1:
                        first = min(first, written.get(cell, _FAR))
                if first < _FAR or later & cells:
                    read = first
                if a.board_w and (result < _FAR and result <= first):
                    read = -1  # who waits for the result waits for the reads
                if a.signals:
                    read = min(first, met if a.klass == "syncs" else meeting)
            out[i] = (result, read)
        if block.insts[i].op in BOUNDARIES:
            boundary = i
        if a.pipe == "mio" and a.klass not in _APART:
            meeting = i
            if a.klass not in _IN_ORDER:
                met = i
        for cell, _, _ in a.writes:
            written[cell] = i
            touched[cell] = i
        for cell, _, _ in a.reads:
            touched[cell] = i
    return out


def _allocate(block: Boarded, entry: _State, later: int, reserved: bool) -> _State:
    needs = _needs(block, later)
    last_read = max((i for i, (_, read) in enumerate(needs) if read >= 0), default=-1)
    state = entry
    due = [_FAR] * COUNT  # index of the first instruction that waits for the counter
    counts = [0] * COUNT
    ready = [0] * COUNT  # estimated time at which it is zero again
    now = 0
    here = step = 0
    first_touch: dict[int, int] = {}
    if state.any:
        for i in range(len(block.insts) - 1, -1, -1):
            a = block.accesses[i]
            for cell, _, _ in (*a.writes, *a.reads):
                first_touch[cell] = i
        for k in range(COUNT):
            for cell, at in first_touch.items():
                if (state.results[k] | state.reads[k]) >> cell & 1 and at < due[k]:
                    due[k] = at
    usable = range(1 if reserved else 0, COUNT)

    def pick(i: int, due_at: int, done: int, other: int = -1) -> int:
        """A counter for an instruction whose result or reads are ``done`` at that time and waited for at index
        ``due_at``: free ones are the dearer the fewer are left, shared ones cost what one waits longer than needed. Not
        ``other``: one counter set twice would do, but no cubin was ever seen to do it."""
        best = -1
        best_cost = 1 << 40
        scarce = (_KEPT if i < last_read else _SCARCE)[state.any.bit_count()]
        for k in usable:
            if k == other:
                continue
            if not state.any >> k & 1:
                cost = scarce * 16 + k
            else:
                early = (
                    done - max(_when(due[k]), ready[k]) if due[k] < due_at else 0
                )  # who waits for what is there already, waits until then anyway
                late = ready[k] - max(_when(due_at), done) if due_at < due[k] else 0
                cost = (max(early, 0) + max(late, 0)) * 16 + k
                if counts[k] >= _MOST:
                    cost += 1 << 30
            if cost < best_cost:
                best_cost = cost
                best = k
        if state.any >> best & 1 and counts[best] >= _MOST:
            block.waits[i] |= 1 << best
            state.clear(1 << best)
        if not state.any >> best & 1:
            due[best] = _FAR
            counts[best] = 0
            ready[best] = 0
        due[best] = min(due[best], due_at)
        ready[best] = max(ready[best], done)
        counts[best] += 1
        return best

    def _when(index: int) -> int:
        return 1 << 20 if index >= _FAR else now + 2 * (index - here)

    for i, (inst, a) in enumerate(zip(block.insts, block.accesses)):
        wait = state.needed(inst, a)
        now += step
        step = max(2, a.interval)
        here = i
        if wait:
            now = max([now, *(ready[k] for k in range(COUNT) if wait >> k & 1)])
            state.clear(wait)
        result, read = needs[i]
        if inst.op == "LDGDEPBAR":
            block.wr[i] = 0
            state.issue(inst, a, 0, -1)
            continue
        if inst.op == "UTMACMDFLUSH":
            block.rd[i] = 0
            state.issue(inst, a, -1, 0)
            continue
        if result >= 0:
            k = pick(i, result, now + a.latency)
            block.wr[i] = k
        if read >= 0:
            block.rd[i] = pick(i, read, now + _READ, block.wr[i])
        state.issue(inst, a, block.wr[i], block.rd[i])
    return state


def add_waits(blocks: list[Boarded], cfg: Cfg) -> None:
    """Complete the wait masks: sweeps over the blocks until nothing changes, and once more without the waits that only
    looked needed while it was not yet known what is waited for when a loop comes round."""
    forced = [list(b.waits) for b in blocks]
    entries, again = _settle(blocks, cfg)
    stale = False
    for pos in again:
        block, state = blocks[pos], entries[pos]
        for i, (inst, a) in enumerate(zip(block.insts, block.accesses)):
            wait = forced[pos][i] | state.needed(inst, a)
            stale |= wait != block.waits[i]
            block.waits[i] = wait
            state.clear(wait)
            state.issue(inst, a, block.wr[i], block.rd[i])
    if stale:
        _settle(blocks, cfg)


def _settle(blocks: list[Boarded], cfg: Cfg) -> tuple[dict[int, _State], list[int]]:
    """Add waits until nothing changes; gives the states before the blocks, and those blocks that were looked at more
    than once."""
    order = layout_order(cfg)
    exits: list[_State | None] = [None] * len(blocks)
    entries: dict[int, _State] = {}
    again: dict[int, None] = {}
    dirty = set(order)
    while dirty:
        for pos in order:
            if pos not in dirty:
                continue
            dirty.discard(pos)
            state = _State()
            for pred in cfg.preds[pos]:
                before = exits[pred]
                if before is not None:
                    state.join(before)
            if pos in entries:
                again[pos] = None
            entries[pos] = state.copy()
            block = blocks[pos]
            waits = block.waits
            for i, (inst, a) in enumerate(zip(block.insts, block.accesses)):
                wait = waits[i]
                if state.any:
                    wait |= state.needed(inst, a)
                    waits[i] = wait
                    if wait:
                        state.clear(wait)
                state.issue(inst, a, block.wr[i], block.rd[i])
            old = exits[pos]
            if old is None or not old.same(state):
                exits[pos] = state
                dirty.update(cfg.succs[pos])
    return entries, list(again)
