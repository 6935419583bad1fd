"""Stall counts: they keep the issue distances of the hazard tables, between all pairs of instructions on all paths.

Each instruction of a block gets the earliest issue time that the tables allow after the instructions before it. The
results and reads that are outstanding at the end of a block pass to its successors with their ages; where paths join,
the smallest age counts. A missing distance widens the gap before the instruction that needs it. Before the first
instruction of a block, it widens the last gap of those predecessors from which it is missing. Gaps only grow, so the
sweeps reach a fixed point. A stall above 15 cycles continues in NOPs.
"""

from __future__ import annotations

from ir_format.flow import Cfg, is_terminator
from ir_format.hazards import Access, Cell, Hazards, cell_name
from ir_format.hazards.model import FILE_OF, WAIT
from ir_format.model import Ctl, Inst
from ir_format.typed import Final
from stages.schedule.scoreboards import BOUNDARIES, COUNT, ScoreboardedBlock, layout_order

#: The largest stall count.
MOST: Final = 15
_CONTROL: Final = frozenset("branch call ret bar membar depbar nop".split())  # noqa: SIM905

Reason = tuple[str, str, str, str]  # kind, register, earlier class, cell
Event = tuple[int, str, str]  # (cell, column, 'w' or class of the reader with 'r')


class _Op:
    """An instruction prepared for :class:`_Walk`."""

    __slots__ = (
        "boundary",
        "interval",
        "name",
        "pipe",
        "reads",
        "results",
        "scoreboards",
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
        self.scoreboards = tuple(k for k in (wr, rd) if k >= 0)
        self.boundary = inst.op in BOUNDARIES
        if inst.op == "DEPBAR":
            self.wait = 1  # it reads SB0, whatever its wait mask says
        raw, waw, war = tables.raw, tables.waw, tables.war
        self.reads = [(cell, raw[FILE_OF[cell], role]) for cell, role, _ in a.reads]
        self.writes = [(cell, waw[FILE_OF[cell], group], war[FILE_OF[cell], group]) for cell, _, group in a.writes]
        # Later instructions keep a distance from results without a scoreboard, and later writers from these reads.
        self.results: list[tuple[int, str, int]] = []
        if not a.board_w:
            for cell, column, _ in a.writes:
                name = column + "@" if a.guarded else column
                self.results.append((cell, name, tables.longest["w"][FILE_OF[cell], name]))
        self.sources: list[tuple[int, str, int]] = []
        late, longest = a.late if a.board_r else 0, tables.longest["r"]
        for cell, _, klass in a.reads:
            if late >> cell & 1:
                continue
            far = longest[FILE_OF[cell], klass]
            if far > 1:
                self.sources.append((cell, klass, far))


class _Tables:
    """Rows of the hazard tables by register file and role or group, filled on demand. ``longest``: the largest distance
    that any later instruction keeps from a result ("w") or reader ("r"), by file and column."""

    __slots__ = ("longest", "raw", "war", "waw")

    def __init__(self, hazards: Hazards) -> None:
        self.raw = _Lines(hazards, "raw")
        self.waw = _Lines(hazards, "waw")
        self.war = _Lines(hazards, "war")
        self.longest = {what: _Longest(hazards, what) for what in ("w", "r")}


class _Lines(dict[tuple[str, str], "_Line"]):
    """Rows of one kind of distance."""

    def __init__(self, hazards: Hazards, kind: str) -> None:
        super().__init__()
        self.source = (hazards, kind)

    def __missing__(self, key: tuple[str, str]) -> _Line:
        found = self[key] = _Line(*self.source, *key)
        return found


class _Longest(dict[tuple[str, str], int]):
    """The largest distances from results or readers."""

    def __init__(self, hazards: Hazards, what: str) -> None:
        super().__init__()
        self.source = (hazards, what)

    def __missing__(self, key: tuple[str, str]) -> int:
        hazards, what = self.source
        found = self[key] = hazards.longest(what, *key)
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
        """The table cell of a number."""
        hazards, kind, file, later = self.source
        return hazards.cell(kind, file, earlier.rstrip("@"), later, earlier.endswith("@"))


# Outstanding results or reads: register -> {class of the result or reader: issue time}.
Writers = dict[int, dict[str, int]]
State = tuple[dict[Event, int], tuple[int, ...]]  # ages of the events, and of the last raising of each scoreboard
_NOTHING: Final[State] = ({}, (99,) * COUNT)
_FAR: Final = 64


class Timed:
    """A block with its gaps: ``gaps[i]`` is the number of issue cycles from instruction i to the next instruction, on
    every path."""

    __slots__ = ("block", "gaps", "last_is_jump", "ops", "why")

    def __init__(self, tables: _Tables, block: ScoreboardedBlock) -> None:
        self.block = block
        self.ops = [
            _Op(tables, i, a, wr, rd, wait)
            for i, a, wr, rd, wait in zip(block.insts, block.accesses, block.wr, block.rd, block.waits)
        ]
        self.gaps = [max(op.stall, 1) for op in self.ops]
        self.last_is_jump = bool(block.insts) and is_terminator(block.insts[-1])
        self.why: list[tuple[str, ...]] = []


def _first_need(timed: Timed, state: State) -> int:
    """The cycles by which a block's first instruction comes too early on an edge that arrives with ``state``."""
    op = timed.ops[0]
    events, raised = state
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
            need = max(need, WAIT.cycles - raised[k])
    return need


class _Walk:
    """Issue times of a block that starts in ``state``. :meth:`run` widens the gaps where a distance is missing or, with
    ``explain``, records what forced the gaps."""

    __slots__ = (
        "at",
        "explain",
        "limit",
        "pipes",
        "readers",
        "reason",
        "set_at",
        "setters",
        "tables",
        "timed",
        "writers",
    )

    def __init__(self, timed: Timed, state: State, tables: _Tables, explain: bool) -> None:
        self.timed = timed
        self.tables = tables
        self.explain = explain
        self.writers: Writers = {}
        self.readers: Writers = {}
        for (cell, name, what), age in state[0].items():
            (self.writers if what == "w" else self.readers).setdefault(cell, {})[name] = -age
        self.set_at = [-age for age in state[1]]
        self.setters = ["another block"] * COUNT
        self.pipes: dict[str, int] = {}
        # Events that may still matter at a call: (time at which they expire, cell, name).
        self.limit: list[tuple[int, int, str]] = []
        self.at = 0  # the issue time of the current instruction
        self.reason: Reason | None = None  # what moved it there

    def run(self) -> State:
        """Walk the block; returns the state at its end."""
        timed, gaps, explain = self.timed, self.timed.gaps, self.explain
        now = 0
        for i, op in enumerate(timed.ops):
            if i:
                now += gaps[i - 1]
            self.at = now
            if explain and i:  # find what forced the gap: start from the least one
                self.at += max(timed.ops[i - 1].stall, 1) - gaps[i - 1]
            self.reason = None
            self._keep_register_distances(op)
            self._keep_other_distances(op)
            if explain:
                timed.why += _explain(i, op, self.at - now + gaps[i - 1] if i else 0, self.reason, self.setters)
            elif i and self.at > now:  # for i == 0, assign_gaps has widened the ends of the predecessors
                gaps[i - 1] += self.at - now
                now = self.at
            self._issue(i, op, now)
        return self._end(now + gaps[-1] if timed.ops else 0)

    def _keep_register_distances(self, op: _Op) -> None:
        """Delay the issue for the results and reads that the registers of ``op`` depend on."""
        writers, readers, explain, at = self.writers, self.readers, self.explain, self.at
        for cell, line in op.reads:
            pending = writers.get(cell)
            if pending:
                for name, when in pending.items():
                    when += line[name]
                    if when > at:
                        at = when
                        if explain:
                            self.reason = ("raw", cell_name(cell), name, line.describe(name))
        for cell, waw, war in op.writes:
            pending = writers.get(cell)
            if pending:
                for name, when in pending.items():
                    when += waw[name]
                    if when > at:
                        at = when
                        if explain:
                            self.reason = ("waw", cell_name(cell), name, waw.describe(name))
            pending = readers.get(cell)
            if pending:
                for name, when in pending.items():
                    when += war[name]
                    if when > at:
                        at = when
                        if explain:
                            self.reason = ("war", cell_name(cell), name, war.describe(name))
        self.at = at

    def _keep_other_distances(self, op: _Op) -> None:
        """Delay the issue for raised scoreboards, the pipe and, at a call, everything outstanding."""
        if op.wait:
            for k in range(COUNT):
                if op.wait >> k & 1 and self.set_at[k] + WAIT.cycles > self.at:
                    self.at = self.set_at[k] + WAIT.cycles
                    self.reason = ("set", f"SB{k}", "", f"{WAIT.cycles} {WAIT.source}")
        if op.boundary:
            for drop, cell, name in self.limit:
                if drop - op.stall > self.at:
                    self.at = drop - op.stall
                    self.reason = ("call", cell_name(cell), name, "everything has arrived")
        free = self.pipes.get(op.pipe, 0)
        if free > self.at:
            self.at = free
            self.reason = ("pipe", op.pipe, "", "issue interval")

    def _issue(self, i: int, op: _Op, now: int) -> None:
        """Record the results and reads of instruction ``i``, which issues at ``now``."""
        writers = self.writers
        self.pipes[op.pipe] = now + op.interval
        for k in op.scoreboards:
            self.set_at[k] = now
            self.setters[k] = f"{i} {op.name}"
        for cell, name, far in op.sources:
            self.readers.setdefault(cell, {})[name] = now
            self.limit.append((now + far, cell, name))
        for cell, name, far in op.results:
            pending = writers.get(cell)
            if pending is None or not name.endswith("@"):
                writers[cell] = {name: now}
            else:
                pending[name] = now
            self.limit.append((now + far, cell, name))
        for cell, _, _ in op.writes:
            if not op.results:
                writers.pop(cell, None)
        if len(self.limit) > 256:
            self.limit = [e for e in self.limit if e[0] > now]

    def _end(self, end: int) -> State:
        """The events that still matter at time ``end``."""
        events: dict[Event, int] = {}
        for what, table in (("w", self.writers), ("r", self.readers)):
            longest = self.tables.longest[what]
            for cell, pending in table.items():
                file = FILE_OF[cell]
                for name, when in pending.items():
                    if end - when < longest[file, name]:
                        events[(cell, name, what)] = end - when
        return events, tuple(min(end - when, 99) for when in self.set_at)


def _explain(i: int, op: _Op, gap: int, reason: Reason | None, setters: list[str]) -> list[tuple[str, ...]]:
    """The `why` records of one instruction: what made the gap before it, and which instructions it waits for."""
    records: list[tuple[str, ...]] = []
    if reason is not None:
        records.append((str(i), op.name, "stall", str(gap), *reason))
    if op.name != "DEPBAR":
        records += [(str(i), op.name, "wait", f"SB{k}", setters[k]) for k in range(COUNT) if op.wait >> k & 1]
    return records


def _join(states: list[State]) -> State:
    """The state where paths meet: the smallest age of each event."""
    if not states:
        return _NOTHING
    if len(states) == 1:
        return states[0]
    events = dict(states[0][0])
    raised = states[0][1]
    for more, ages in states[1:]:
        for event, age in more.items():
            old = events.get(event)
            if old is None or age < old:
                events[event] = age
        raised = tuple(map(min, raised, ages))
    return events, raised


def assign_gaps(blocks: list[ScoreboardedBlock], cfg: Cfg, hazards: Hazards, explain: bool = False) -> list[Timed]:
    """Find the gaps of all blocks of a function. No block may be empty."""
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
                if need > 0:  # the predecessor now ends later
                    timed[pred].gaps[-1] += need
                    before = exits[pred] = _aged(before, need, tables)
                    dirty.update(cfg.succs[pred])
                    dirty.discard(pos)
                arriving.append(before)
            entry = _join(arriving)
            if entries[pos] is not None and entries[pos] == entry:
                continue
            entries[pos] = entry
            out = _Walk(timed[pos], entry, tables, False).run()
            if out != exits[pos]:
                exits[pos] = out
                dirty.update(cfg.succs[pos])
    if explain:
        for pos in order:
            _Walk(timed[pos], entries[pos] or _NOTHING, tables, True).run()
    return timed


def _aged(state: State, cycles: int, tables: _Tables) -> State:
    events = {
        e: age + cycles for e, age in state[0].items() if age + cycles < tables.longest[e[2]][FILE_OF[e[0]], e[1]]
    }
    return events, tuple(min(age + cycles, 99) for age in state[1])


def emit(timed: Timed) -> list[Inst]:
    """The block's instructions with their control words, and the NOPs that long gaps need."""
    out: list[Inst] = []
    block = timed.block
    count = len(block.insts)
    gaps = list(timed.gaps)
    lead = 0
    if count and timed.last_is_jump and gaps[-1] > MOST:
        # No NOP can follow a jump: the rest of its gap goes before it.
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
    """The yield bit (bit 109). If set, the scheduler prefers to stay with this warp. ptxas sets it while the stall is
    the pipe's own, and clears it where the warp waits for a result (measured C4)."""
    if a.board_w or a.board_r or a.pipe == "mio":
        return int(1 <= stall <= 8)
    if a.klass in _CONTROL or a.pipe == "tensor":
        return int(1 <= stall <= 11)
    return int(1 <= stall <= 2)


def _pad(out: list[Inst], cycles: int, source: Inst | None) -> None:
    """Append NOPs that stall for ``cycles``, at the source line of ``source``."""
    while cycles > 0:
        stall = min(cycles, MOST)
        nop = Inst("NOP", line=source.line if source is not None else 0, loc=source.loc if source is not None else -1)
        nop.ctl = Ctl(stall, 0)
        out.append(nop)
        cycles -= stall
