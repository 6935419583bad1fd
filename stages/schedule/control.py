"""Stall counts: the issue distance of every pair of instructions that the hazard tables speak of, over all paths.

A block's instructions get issue times in order: each as early as the tables allow after those before it. What is still
under way at the end of a block goes on to its successors with the cycles that have passed; where paths join the
youngest counts. A distance that is missing inside a block is put in front of the instruction that needs it; in front of
a block's first instruction it is put at the end of the predecessors it is missing from. Gaps only grow, so the sweeps
end. Stall counts above 15 continue in NOPs.
"""

from __future__ import annotations

from typing import Final

from ir_format.flow import Cfg, is_terminator
from ir_format.hazards import Access, Cell, Hazards, cell_name, file_of
from ir_format.hazards.model import WAIT
from ir_format.model import Ctl, Inst
from stages.schedule.boards import BOUNDARIES, COUNT, Boarded, layout_order

MOST: Final = 15
#: Behind a call or return another function runs that knows nothing of ours: everything fixed must have arrived when it
#: starts.
_SETTLED: Final = "settled"
_CONTROL: Final = frozenset("branch call ret bar membar depbar nop".split())  # noqa: SIM905

Reason = tuple[str, str, str, str]  # kind, register, earlier class, cell
Event = tuple[int, str, str]  # (cell, column, 'w' or class of the reader with 'r')


class _Op:
    """An instruction prepared for the walk."""

    __slots__ = (
        "boards",
        "boundary",
        "interval",
        "name",
        "pipe",
        "reads",
        "results",
        "sources",
        "stall",
        "wait",
        "writes",
    )

    def __init__(self, tables: _Tables, inst: Inst, a: Access, wr: int, rd: int, wait: int) -> None:
        self.name = inst.op
        self.pipe = a.pipe
        self.interval = a.interval
        self.stall = a.stall
        self.wait = wait
        self.boards = tuple(k for k in (wr, rd) if k >= 0)
        self.boundary = inst.op in BOUNDARIES
        if inst.op == "DEPBAR":
            self.wait = 1  # looks at SB0 without the wait mask
        self.reads = [(cell, tables.line("raw", file_of(cell), role)) for cell, role, _ in a.reads]
        self.writes = [
            (cell, tables.line("waw", file_of(cell), group), tables.line("war", file_of(cell), group))
            for cell, _, group in a.writes
        ]
        # What later instructions must know of this one: results without a scoreboard, reads that a later writer must
        # keep a distance from.
        self.results: list[tuple[int, str, int]] = []
        if not a.board_w:
            for cell, column, _ in a.writes:
                name = column + "@" if a.guarded else column
                self.results.append((cell, name, tables.longest("w", file_of(cell), name)))
        self.sources: list[tuple[int, str, int]] = []
        for cell, _, klass in a.reads:
            if a.board_r and a.late >> cell & 1:
                continue
            far = tables.longest("r", file_of(cell), klass)
            if far > 1:
                self.sources.append((cell, klass, far))


class _Tables:
    """Rows of the hazard tables, looked up once."""

    def __init__(self, hazards: Hazards) -> None:
        self.hazards = hazards
        self._lines: dict[tuple[str, str, str], _Line] = {}
        self._longest: dict[tuple[str, str, str], int] = {}

    def line(self, kind: str, file: str, later: str) -> _Line:
        key = (kind, file, later)
        found = self._lines.get(key)
        if found is None:
            found = self._lines[key] = _Line(self.hazards, kind, file, later)
        return found

    def longest(self, what: str, file: str, earlier: str) -> int:
        """The largest distance that any later instruction keeps from this result or reader."""
        key = (what, file, earlier)
        found = self._longest.get(key)
        if found is None:
            found = self._longest[key] = self.hazards.longest(what, file, earlier)
        return found


class _Line(dict[str, int]):
    """Cycles by name of the earlier class, filled on demand."""

    def __init__(self, hazards: Hazards, kind: str, file: str, later: str) -> None:
        super().__init__()
        self.source = (hazards, kind, file, later)

    def __missing__(self, earlier: str) -> int:
        value = self[earlier] = self.cell(earlier).cycles
        return value

    def describe(self, earlier: str) -> str:
        """``later operand, cycles, provenance`` of a number."""
        found = self.cell(earlier)
        return f"{self.source[3]} {found.cycles} {found.source}"

    def cell(self, earlier: str) -> Cell:
        """The table cell behind a number."""
        hazards, kind, file, later = self.source
        return hazards.cell(kind, file, earlier.rstrip("@"), later, earlier.endswith("@"))


# What is under way: register -> {result or reader: issue time}; counter -> time it was set.
Writers = dict[int, dict[str, int]]
State = tuple[dict[Event, int], tuple[int, ...]]  # events with their age, ages of the counters' last settings
_NOTHING: Final[State] = ({}, (99,) * COUNT)
_FAR: Final = 64


class Timed:
    """A block with its gaps: ``gaps[i]`` issue cycles from instruction i to the next one issued, on whatever path."""

    __slots__ = ("block", "gaps", "last_is_jump", "ops", "why")

    def __init__(self, tables: _Tables, block: Boarded) -> None:
        self.block = block
        self.ops = [
            _Op(tables, i, a, wr, rd, wait)
            for i, a, wr, rd, wait in zip(block.insts, block.accesses, block.wr, block.rd, block.waits)
        ]
        self.gaps = [max(op.stall, 1) for op in self.ops]
        self.last_is_jump = bool(block.insts) and is_terminator(block.insts[-1])
        self.why: list[tuple[str, ...]] = []


def _first_need(timed: Timed, state: State) -> int:
    """Cycles by which the first instruction of a block comes too early on an edge that arrives with ``state``."""
    op = timed.ops[0]
    events, boards = state
    need = 0
    for (cell, name, what), age in events.items():
        if what == "w":
            for at, line in op.reads:
                if at == cell:
                    need = max(need, line[name] - age)
        for at, waw, war in op.writes:
            if at == cell:
                need = max(need, (waw if what == "w" else war)[name] - age)
    for k in range(COUNT):
        if op.wait >> k & 1:
            need = max(need, WAIT.cycles - boards[k])
    return need


def _walk(timed: Timed, state: State, tables: _Tables, explain: bool = False) -> State:
    """Issue times of a block that starts in ``state``; widens gaps where a distance is missing and returns the state at
    the end."""
    writers: Writers = {}
    readers: Writers = {}
    for (cell, name, what), age in state[0].items():
        (writers if what == "w" else readers).setdefault(cell, {})[name] = -age
    set_at = [-age for age in state[1]]
    setters = ["another block"] * COUNT
    gaps = timed.gaps
    pipes: dict[str, int] = {}
    now = 0
    limit: list[tuple[int, int, str]] = []  # (drop time, cell, name) of everything that may still matter at the end
    for i, op in enumerate(timed.ops):
        if i:
            now += gaps[i - 1]
        at = now
        if explain and i:  # look for what forced the gap, from the least one on
            at += max(timed.ops[i - 1].stall, 1) - gaps[i - 1]
        reason: Reason | None = None
        for cell, line in op.reads:
            pending = writers.get(cell)
            if pending:
                for name, when in pending.items():
                    when += line[name]
                    if when > at:
                        at = when
                        if explain:
                            reason = ("raw", cell_name(cell), name, line.describe(name))
        for cell, waw, war in op.writes:
            pending = writers.get(cell)
            if pending:
                for name, when in pending.items():
                    when += waw[name]
                    if when > at:
                        at = when
                        if explain:
                            reason = ("waw", cell_name(cell), name, waw.describe(name))
            pending = readers.get(cell)
            if pending:
                for name, when in pending.items():
                    when += war[name]
                    if when > at:
                        at = when
                        if explain:
                            reason = ("war", cell_name(cell), name, war.describe(name))
        if op.wait:
            for k in range(COUNT):
                if op.wait >> k & 1 and set_at[k] + WAIT.cycles > at:
                    at = set_at[k] + WAIT.cycles
                    reason = ("set", f"SB{k}", "", f"{WAIT.cycles} {WAIT.source}")
        if op.boundary:
            for drop, cell, name in limit:
                if drop - op.stall > at:
                    at = drop - op.stall
                    reason = ("call", cell_name(cell), name, "everything has arrived")
        free = pipes.get(op.pipe, 0)
        if free > at:
            at = free
            reason = ("pipe", op.pipe, "", "issue interval")
        if explain:
            timed.why += _explain(i, op, at - now + gaps[i - 1] if i else 0, reason, setters)
        elif i and at > now:  # i == 0: the predecessors' ends have been widened before, see assign_gaps
            gaps[i - 1] += at - now
            now = at
        pipes[op.pipe] = now + op.interval
        for k in op.boards:
            set_at[k] = now
            setters[k] = f"{i} {op.name}"
        for cell, name, far in op.sources:
            readers.setdefault(cell, {})[name] = now
            limit.append((now + far, cell, name))
        for cell, name, far in op.results:
            pending = writers.get(cell)
            if pending is None or not name.endswith("@"):
                writers[cell] = {name: now}
            else:
                pending[name] = now
            limit.append((now + far, cell, name))
        for cell, _, _ in op.writes:
            if not op.results:
                writers.pop(cell, None)
        if len(limit) > 256:
            limit = [e for e in limit if e[0] > now]
    end = now + gaps[-1] if timed.ops else 0
    events: dict[Event, int] = {}
    for what, table in (("w", writers), ("r", readers)):
        for cell, pending in table.items():
            file = file_of(cell)
            for name, when in pending.items():
                if end - when < tables.longest(what, file, name):
                    events[(cell, name, what)] = end - when
    return events, tuple(min(end - when, 99) for when in set_at)


def _explain(i: int, op: _Op, gap: int, reason: Reason | None, setters: list[str]) -> list[tuple[str, ...]]:
    """Records for one instruction: what made the gap in front of it, and whom it waits for."""
    records: list[tuple[str, ...]] = []
    if reason is not None:
        records.append((str(i), op.name, "stall", str(gap), *reason))
    if op.name != "DEPBAR":
        records += [(str(i), op.name, "wait", f"SB{k}", setters[k]) for k in range(COUNT) if op.wait >> k & 1]
    return records


def _join(states: list[State]) -> State:
    if not states:
        return _NOTHING
    if len(states) == 1:
        return states[0]
    events = dict(states[0][0])
    boards = states[0][1]
    for more, ages in states[1:]:
        for event, age in more.items():
            old = events.get(event)
            if old is None or age < old:
                events[event] = age
        boards = tuple(map(min, boards, ages))
    return events, boards


def assign_gaps(blocks: list[Boarded], cfg: Cfg, hazards: Hazards, explain: bool = False) -> list[Timed]:
    """Gaps of all blocks of a function. Every block has an instruction."""
    tables = _Tables(hazards)
    timed = [Timed(tables, b) for b in blocks]
    order = layout_order(cfg)
    exits: list[State | None] = [None] * len(blocks)
    entries: list[State | None] = [None] * len(blocks)
    dirty = set(order)
    while dirty:
        for pos in order:
            if pos not in dirty:
                continue
            dirty.discard(pos)
            arriving: list[State] = []
            for pred in cfg.preds[pos]:
                before = exits[pred]
                if before is None:
                    continue
                need = _first_need(timed[pos], before)
                if need > 0:  # the predecessor ends later from now on
                    timed[pred].gaps[-1] += need
                    before = exits[pred] = _aged(before, need, tables)
                    dirty.update(cfg.succs[pred])
                    dirty.discard(pos)
                arriving.append(before)
            entry = _join(arriving)
            if entries[pos] is not None and entries[pos] == entry:
                continue
            entries[pos] = entry
            out = _walk(timed[pos], entry, tables)
            if out != exits[pos]:
                exits[pos] = out
                dirty.update(cfg.succs[pos])
    if explain:
        for pos in order:
            _walk(timed[pos], entries[pos] or _NOTHING, tables, True)
    return timed


def _aged(state: State, cycles: int, tables: _Tables) -> State:
    events = {
        e: age + cycles for e, age in state[0].items() if age + cycles < tables.longest(e[2], file_of(e[0]), e[1])
    }
    return events, tuple(min(age + cycles, 99) for age in state[1])


def emit(timed: Timed) -> list[Inst]:
    """The block with control words, and the NOPs that long gaps need."""
    out: list[Inst] = []
    block = timed.block
    count = len(block.insts)
    gaps = list(timed.gaps)
    lead = 0
    if (
        count and timed.last_is_jump and gaps[-1] > MOST
    ):  # nothing can stand behind a jump: the rest comes in front of it
        rest = gaps[-1] - MOST
        gaps[-1] = MOST
        if count > 1:
            gaps[-2] += rest
        else:
            lead = rest
    _pad(out, lead, block.insts[0] if count else None)
    for i, inst in enumerate(block.insts):
        a = block.accesses[i]
        gap = gaps[i]
        stall = min(gap, MOST)
        if a.stall == 0:
            stall = 0
            gap -= 1
        inst.ctl = Ctl(
            stall,
            _yield(a, stall),
            7 if block.wr[i] < 0 else block.wr[i],
            7 if block.rd[i] < 0 else block.rd[i],
            block.waits[i],
        )
        out.append(inst)
        _pad(out, gap - stall, inst)
    return out


def _yield(a: Access, stall: int) -> int:
    """The bit that keeps the warp on: set while the stall is the pipe's own, clear where the warp waits for a result
    (measured C4)."""
    if a.board_w or a.board_r or a.pipe == "mio":
        return int(1 <= stall <= 8)
    if a.klass in _CONTROL or a.pipe == "tensor":
        return int(1 <= stall <= 11)
    return int(1 <= stall <= 2)


def _pad(out: list[Inst], cycles: int, near: Inst | None) -> None:
    while cycles > 0:
        stall = min(cycles, MOST)
        nop = Inst("NOP", line=near.line if near is not None else 0, loc=near.loc if near is not None else -1)
        nop.ctl = Ctl(stall, 0)
        out.append(nop)
        cycles -= stall
