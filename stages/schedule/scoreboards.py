"""Scoreboards: which of the six scoreboards an instruction raises, and which instructions wait for it.

Allocation walks each block in its final order. Several instructions may share a scoreboard. An instruction that waits
for the scoreboard then waits for all of them, so instructions share one when their results are needed at about the same
place. An instruction raises a scoreboard only when a later instruction depends on it: a read gets one only if a
register that is read late may be overwritten before some instruction has waited for the result.

Waits come from a dataflow analysis over the blocks. Its state holds, for each scoreboard, the registers whose results
are outstanding and the registers that are still to be read. A wait clears its scoreboard. The analysis only ever adds
waits, so it reaches a fixed point.

In a function that has LDGDEPBAR or UTMACMDFLUSH, SB0 belongs to these instructions alone, because DEPBAR counts their
groups (ptxas uses SB0 for both too).
"""

from __future__ import annotations

from ir_format.flow import Cfg
from ir_format.hazards import Access
from ir_format.isa import facts
from ir_format.model import Inst
from ir_format.typed import Final

COUNT: Final = 6
_FAR: Final = 1 << 30
#: The most instructions that may share a scoreboard before we wait for it. A scoreboard is believed to count to 63
#: (guessed); this stays far below.
_MOST: Final = 32
#: No scoreboard may be raised here: the code that runs next does not know our scoreboards, or registers are released.
BOUNDARIES: Final = facts.having("boundary")
#: Estimated cycles until an instruction has read its sources.
_READ: Final = 16
#: The same for a result that was in flight when the block began: half of a load's latency (guessed).
_INHERITED: Final = 150
#: The cost of taking a free scoreboard, in cycles of waiting, by the number of scoreboards in use (found by trials).
_SCARCE: Final = (0, 0, 0, 0, 1, 2, 2)
#: The same while reads further down still need a scoreboard: one of their own keeps them from waiting for a result.
_KEPT: Final = (0, 0, 0, 1, 4, 32, 32)
#: Instructions whose groups DEPBAR counts.
_COUNTED: Final = facts.having("commit")
#: Cache invalidations, which wait for the access of their acquire.
_INVALIDATES: Final = facts.with_value("effect", "cache") & facts.having("fence")


class ScoreboardedBlock:
    """A block with its scoreboards. ``wr`` and ``rd`` hold, for each instruction, the scoreboard that it raises for its
    result and for its reads, or -1; ``waits`` holds the wait masks."""

    __slots__ = ("accesses", "insts", "rd", "waits", "wr")

    def __init__(self, insts: list[Inst], accesses: list[Access]) -> None:
        self.insts = insts
        self.accesses = accesses
        self.wr = [-1] * len(insts)
        self.rd = [-1] * len(insts)
        self.waits = [0] * len(insts)


class _State:
    """For each scoreboard, the registers whose results are outstanding and the registers still to be read."""

    __slots__ = ("any", "reads", "results")

    def __init__(self) -> None:
        self.results = [0] * COUNT
        self.reads = [0] * COUNT
        self.any = 0  # scoreboards that may be above zero

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
        """The scoreboards that must be zero before the instruction issues."""
        any_ = self.any
        if not any_:
            return 0
        if inst.op in BOUNDARIES:
            return any_
        wait = 0
        touched = a.read_mask | a.write_mask
        written = a.write_mask
        ordering = 0
        if inst.op in _INVALIDATES:
            ordering |= _ACQUIRED
        if a.pipe == "mio" and a.klass not in _UNORDERED:
            ordering |= _SIGNAL if a.klass in _IN_ORDER else _SIGNAL | _OBJECT
        for k in range(COUNT):
            if any_ >> k & 1 and (self.results[k] & (touched | ordering) or self.reads[k] & (written | ordering)):
                wait |= 1 << k
        return wait

    def clear(self, wait: int) -> None:
        for k in range(COUNT):
            if wait >> k & 1:
                self.results[k] = 0
                self.reads[k] = 0
        self.any &= ~wait

    def issue(self, inst: Inst, a: Access, wr: int, rd: int) -> None:
        """Record the results and reads that the instruction leaves outstanding."""
        if a.klass == "membar":
            # Loads before a fence finish before accesses after it start (measured: sm_90 waits for all scoreboards).
            for k in range(COUNT):
                if self.results[k]:
                    self.results[k] |= _SIGNAL
        if wr >= 0 and a.board_w and a.klass in ("ldg", "atom") and any(m.startswith("STRONG") for m in inst.mods):
            # The cache invalidation of an acquire waits for the access of that acquire: the last strong access before
            # it (measured).
            for k in range(COUNT):
                self.results[k] &= ~_ACQUIRED
            self.results[wr] |= _ACQUIRED
        if wr >= 0:
            self.results[wr] |= a.write_mask | (_signal(a) if a.signals else _LOAD if a.board_w else 0)
            self.any |= 1 << wr
        if rd >= 0:
            self.reads[rd] |= a.late | (_signal(a) if a.signals else 0)
            self.any |= 1 << rd


# Marks in addition to the register cells of a state.
_LOAD: Final = 1 << 600  # the scoreboard is in use, whether its instruction writes a register or not
_SIGNAL: Final = 1 << 601  # memory accesses and barriers wait for it
_ACQUIRED: Final = 1 << 602  # CCTL waits for it
_OBJECT: Final = 1 << 603  # barriers, fences and bulk copies wait for it
#: Classes of the memory pipe that wait for no memory access.
_UNORDERED: Final = frozenset(("ldc", "sreg", "errbar", "cgaerrbar"))
#: Accesses that the pipe keeps in order after operations on barrier objects (measured: STS and LDS after SYNCS.EXCH and
#: SYNCS.ARRIVE, at any address).
_IN_ORDER: Final = frozenset(("lds", "ldg", "ldl", "stg", "sts", "atom", "red", "ldgsts", "syncs"))


def _signal(a: Access) -> int:
    return _OBJECT if a.klass == "syncs" else _SIGNAL


def assign(blocks: list[ScoreboardedBlock], cfg: Cfg) -> None:
    """Allocate scoreboards in all blocks, then compute the waits."""
    reserved = any(i.op in _COUNTED for b in blocks for i in b.insts)
    later = _later_writes(blocks, cfg)
    order = layout_order(cfg)
    entries: dict[int, _State] = {}
    exits: dict[int, _State] = {}
    for again in (False, True):  # the second time, what is outstanding at the end of an iteration is known
        for pos in order:
            entry = _State()
            for pred in cfg.preds[pos]:
                if pred in exits:
                    entry.join(exits[pred])
            if again and entry.same(entries[pos]):
                continue
            entries[pos] = entry.copy()
            exits[pos] = _Allocator(blocks[pos], entry, later[pos], reserved).run()
    add_waits(blocks, cfg)


def layout_order(cfg: Cfg) -> list[int]:
    """Reachable blocks in reverse postorder, then the others."""
    reached = set(cfg.rpo)
    return cfg.rpo + [p for p in range(len(cfg.succs)) if p not in reached]


def _later_writes(blocks: list[ScoreboardedBlock], cfg: Cfg) -> list[int]:
    """For each block, the registers that may be written after its end (after a call or return: all of them)."""
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


def _needs(block: ScoreboardedBlock, later: int) -> list[tuple[int, int]]:
    """For each instruction, the index of the first instruction that depends on its result, and of the first that
    depends on its reads: _FAR if it comes after the block, -1 if there is none."""
    count = len(block.insts)
    out = [(-1, -1)] * count
    touched: dict[int, int] = {}
    written: dict[int, int] = {}
    boundary = _FAR
    next_memory = next_barrier = _FAR  # the next instruction that waits for fences; for operations on barrier objects
    for i in range(count - 1, -1, -1):
        a = block.accesses[i]
        if a.board_w or a.board_r:
            result = -1
            if a.board_w:
                result = min((touched.get(c, _FAR) for c, _, _ in a.writes), default=_FAR)
                signal = next_barrier if a.klass == "syncs" else next_memory
                result = min(result, boundary, signal if a.signals else _FAR)
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
                    read = -1  # an instruction that waits for the result waits for the reads too
                if a.signals:
                    read = min(first, next_barrier if a.klass == "syncs" else next_memory)
            out[i] = (result, read)
        if block.insts[i].op in BOUNDARIES:
            boundary = i
        if a.pipe == "mio" and a.klass not in _UNORDERED:
            next_memory = i
            if a.klass not in _IN_ORDER:
                next_barrier = i
        for cell, _, _ in a.writes:
            written[cell] = i
            touched[cell] = i
        for cell, _, _ in a.reads:
            touched[cell] = i
    return out


class _Allocator:
    """Gives scoreboards to the instructions of one block. The times are estimates; only the choice depends on them."""

    __slots__ = ("block", "counts", "due", "here", "last_read", "needs", "now", "ready", "state", "usable")

    def __init__(self, block: ScoreboardedBlock, entry: _State, later: int, reserved: bool) -> None:
        self.block = block
        self.state = entry
        self.needs = _needs(block, later)
        self.last_read = max((i for i, (_, read) in enumerate(self.needs) if read >= 0), default=-1)
        self.usable = range(1 if reserved else 0, COUNT)
        self.due = [_FAR] * COUNT  # index of the first instruction that waits for the scoreboard
        self.counts = [0] * COUNT
        self.ready = [0] * COUNT  # time at which the scoreboard is zero again
        self.now = 0
        self.here = 0
        if entry.any:
            self._inherit(entry)

    def _inherit(self, entry: _State) -> None:
        """Find the first instruction that waits for each scoreboard raised before the block."""
        first_touch: dict[int, int] = {}
        for i in range(len(self.block.insts) - 1, -1, -1):
            a = self.block.accesses[i]
            for cell, _, _ in (*a.writes, *a.reads):
                first_touch[cell] = i
        for k in range(COUNT):
            if entry.results[k]:
                self.ready[k] = _INHERITED
            for cell, at in first_touch.items():
                if (entry.results[k] | entry.reads[k]) >> cell & 1 and at < self.due[k]:
                    self.due[k] = at

    def run(self) -> _State:
        """Allocate; returns the state at the end of the block."""
        block, state, ready = self.block, self.state, self.ready
        step = 0
        for i, (inst, a) in enumerate(zip(block.insts, block.accesses)):
            wait = state.needed(inst, a)
            self.now += step
            step = max(2, a.interval)
            self.here = i
            if wait:
                self.now = max([self.now, *(ready[k] for k in range(COUNT) if wait >> k & 1)])
                state.clear(wait)
            result, read = self.needs[i]
            if inst.op == "LDGDEPBAR":
                block.wr[i] = 0
                state.issue(inst, a, 0, -1)
                continue
            if inst.op == "UTMACMDFLUSH":
                block.rd[i] = 0
                state.issue(inst, a, -1, 0)
                continue
            if result >= 0:
                block.wr[i] = self._pick(i, result, self.now + a.latency, -1)
            if read >= 0:
                block.rd[i] = self._pick(i, read, self.now + _READ, block.wr[i])
            state.issue(inst, a, block.wr[i], block.rd[i])
        return state

    def _pick(self, i: int, due_at: int, done: int, other: int) -> int:
        """Take a scoreboard for instruction ``i``, whose result or reads are done at time ``done`` and needed at index
        ``due_at``. A free scoreboard costs more the fewer are left; a shared one costs the cycles that an instruction
        waits longer than it has to. ``other`` is the scoreboard that the instruction raises already: raising one twice
        would be right too, but no cubin was ever seen to do it."""
        state, due, ready, counts = self.state, self.due, self.ready, self.counts
        best = -1
        best_cost = 1 << 40
        scarce = (_KEPT if i < self.last_read else _SCARCE)[state.any.bit_count()]
        for k in self.usable:
            if k == other:
                continue
            if not state.any >> k & 1:
                cost = scarce * 16 + k
            else:
                # The instruction that waits for the scoreboard waits until ``ready[k]`` in any case.
                early = done - max(self._when(due[k]), ready[k]) if due[k] < due_at else 0
                late = ready[k] - max(self._when(due_at), done) if due_at < due[k] else 0
                cost = (max(early, 0) + max(late, 0)) * 16 + k
                if counts[k] >= _MOST:
                    cost += 1 << 30
            if cost < best_cost:
                best_cost = cost
                best = k
        if state.any >> best & 1 and counts[best] >= _MOST:
            self.block.waits[i] |= 1 << best
            state.clear(1 << best)
        if not state.any >> best & 1:
            due[best] = _FAR
            counts[best] = 0
            ready[best] = 0
        due[best] = min(due[best], due_at)
        ready[best] = max(ready[best], done)
        counts[best] += 1
        return best

    def _when(self, index: int) -> int:
        """The estimated issue time of the instruction at ``index``."""
        return 1 << 20 if index >= _FAR else self.now + 2 * (index - self.here)


def add_waits(blocks: list[ScoreboardedBlock], cfg: Cfg) -> None:
    """Complete the wait masks. Sweep over the blocks until nothing changes. A block of a loop that was visited before
    the state of its back edge was known may hold waits that are not needed; drop them and sweep a second time."""
    forced = [list(b.waits) for b in blocks]
    entries, revisited = _fixed_point(blocks, cfg)
    stale = False
    for pos in revisited:
        block, state = blocks[pos], entries[pos]
        for i, (inst, a) in enumerate(zip(block.insts, block.accesses)):
            wait = forced[pos][i] | state.needed(inst, a)
            stale |= wait != block.waits[i]
            block.waits[i] = wait
            state.clear(wait)
            state.issue(inst, a, block.wr[i], block.rd[i])
    if stale:
        _fixed_point(blocks, cfg)


def _fixed_point(blocks: list[ScoreboardedBlock], cfg: Cfg) -> tuple[dict[int, _State], list[int]]:
    """Add waits until nothing changes. Returns the states before the blocks, and the blocks visited more than once."""
    order = layout_order(cfg)
    exits: list[_State | None] = [None] * len(blocks)
    entries: dict[int, _State] = {}
    revisited: dict[int, None] = {}
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
                revisited[pos] = None
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
    return entries, list(revisited)
