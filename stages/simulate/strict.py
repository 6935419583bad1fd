"""The strict machine: results appear when their latency or scoreboard says so; whoever reads earlier gets the old value.

Every bundle has a clock. An instruction issues when the stall count of the one before has passed and the scoreboards in its wait
mask are free. Its results are kept aside as *pending* writes of rows, and enter the row when an instruction that reads it issues
late enough for its class. Instructions with variable latency read their registers some time after issue, until the
read scoreboard is released: a register that is overwritten in between is read new.
Latencies come from :mod:`timing`. Pending writes of one row with fixed latency stay in order of issue; one with variable latency lands
when it lands, also over a younger one. The operand reuse cache holds a value for the next instruction.

When bundles meet, the elapsed time of each since its own events is kept, none is added: waiting hides no hazard.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ir_format.model import REUSE, ZERO, Ctl, Imm, Inst, Name, Reg
from stages.simulate.build import Build, Unsupported, count, is_uniform
from stages.simulate.control import CONTROL
from stages.simulate.cycles import Profile
from stages.simulate.machine import Bundle, Fault, InstFn, Limits, Machine, SimError
from stages.simulate.program import OPS, Compiled
from stages.simulate.state import P_SINK, UP0, UR0, Lanes, View, warp_any
from stages.simulate.timing import Draw, is_dual, is_variable, latency, pipe_of, reader_class, writer_class

Arr = NDArray[Any]
Row = tuple[str, int]
_DRAIN = 40
_ARGUMENTS = range(4, 16)  # registers of arguments and results in the calling convention
_WRITE = 2  # cycles after issue in which no fixed-latency result lands


class Entry:
    """A pending write: ``values`` for lanes ``mask`` (None = all of the view), issued at ``at``; ``ready`` >= 0 for variable latency."""

    __slots__ = ("at", "dual", "mask", "part", "pc", "ready", "values", "writer")

    def __init__(self, values: Arr, mask: Arr | None, at: int, ready: int, writer: str, part: int, dual: bool, pc: int) -> None:
        self.values = values
        self.mask = mask
        self.at = at
        self.ready = ready
        self.writer = writer
        self.part = part
        self.dual = dual
        self.pc = pc


class Deferred:
    """A variable-latency instruction that has issued but not yet read its registers."""

    __slots__ = ("at", "held", "mask", "plan", "read_at", "ready")

    def __init__(self, read_at: int, plan: Plan, mask: Arr | None, at: int, ready: int, held: list[tuple[Arr, Arr]]) -> None:
        self.read_at = read_at
        self.plan = plan
        self.mask = mask
        self.at = at
        self.ready = ready
        self.held = held  # rows read at issue, with the values they had


class Time:
    """The clock of a bundle and all that is under way."""

    __slots__ = ("boards", "clock", "pending", "pipes", "queue", "read_pipe", "reuse")

    def __init__(self) -> None:
        self.clock = 0
        self.pending: dict[Row, list[Entry]] = {}
        self.boards: list[list[int]] = [[] for _ in range(6)]
        self.queue: deque[Deferred] = deque()
        self.pipes: dict[str, int] = {}
        self.read_pipe = 0
        self.reuse: dict[int, tuple[int, Arr]] = {}

    def hold(self, board: int, until: int) -> None:
        """One more instruction in flight on a scoreboard."""
        times = self.boards[board]
        if len(times) >= 64:
            times[:] = [t for t in times if t > self.clock]
        times.append(until)

    def restricted(self, source: View, target: View, lanes: Arr | None) -> Time:
        """This state for a bundle in ``target`` (inside ``source``) with lanes ``lanes`` of it."""
        out = Time()
        out.clock, out.pipes, out.read_pipe = self.clock, dict(self.pipes), self.read_pipe
        out.boards = [list(b) for b in self.boards]
        part = slice(target.lo - source.lo, target.hi - source.lo)
        warps = None if lanes is None else warp_any(lanes)
        for row, entries in self.pending.items():
            kept = []
            mine = warps if is_uniform_row(row) else lanes
            for e in entries:
                mask = mine if e.mask is None else e.mask[part] if mine is None else e.mask[part] & mine
                if mask is None or count(mask):
                    kept.append(Entry(e.values[part], mask, e.at, e.ready, e.writer, e.part, e.dual, e.pc))
            if kept:
                out.pending[row] = kept
        return out

    def absorb(self, other: Time, source: View, target: View, lanes: Arr) -> None:
        """Take over ``other``'s pending results for its ``lanes`` (of ``source``), moved to this clock and view."""
        shift = self.clock - other.clock
        offset = source.lo - target.lo
        warps = warp_any(lanes)
        for row, entries in other.pending.items():
            uniform = is_uniform_row(row)
            chosen = warps if uniform else lanes
            mine = self.pending.setdefault(row, [])
            part = slice(offset, offset + source.n)
            for e in entries:
                lanes_here = chosen if e.mask is None else e.mask & chosen
                at, ready = e.at + shift, e.ready + shift if e.ready >= 0 else -1
                # The two sides of a branch carry parts of one entry from before it: join them again.
                twin = next((x for x in mine if x.pc == e.pc and (uniform or (x.at == at and x.ready == ready))), None)
                if twin is None or twin.mask is None:
                    twin = Entry(np.zeros(target.n, e.values.dtype), np.zeros(target.n, np.bool_), at, ready, e.writer, e.part, e.dual, e.pc)
                    mine.append(twin)
                np.copyto(twin.values[part], e.values, where=lanes_here)
                grown = np.zeros(target.n, np.bool_) if twin.mask is None else twin.mask.copy()
                grown[part] |= lanes_here
                twin.mask = grown
        for board, times in zip(self.boards, other.boards, strict=True):
            board[:] = sorted({t for t in board if t > self.clock} | {t + shift for t in times if t > other.clock})
        for name, when in other.pipes.items():
            self.pipes[name] = max(self.pipes.get(name, 0), when + shift)
        self.read_pipe = max(self.read_pipe, other.read_pipe + shift)


class Plan:
    """An instruction prepared for the strict machine."""

    __slots__ = (
        "at_read",
        "ctl",
        "depbar",
        "dual",
        "early",
        "guard",
        "guard_row",
        "inst",
        "late",
        "late_reads",
        "pc",
        "pipe",
        "reader",
        "reads",
        "reuse",
        "run",
        "slots",
        "uniform",
        "uniform_out",
        "variable",
        "writer",
        "writes",
    )  # fmt: skip

    def __init__(self, build: Build, run: InstFn | None, sm: int, guard: Any) -> None:
        inst = build.inst
        self.pc = build.pc
        self.inst: Inst = inst
        self.ctl: Ctl = inst.ctl or Ctl()
        self.run = run
        self.guard = guard
        self.guard_row = -1
        g = inst.guard
        if g is not None and g.num != ZERO:
            self.guard_row = g.num + (UP0 if g.file == "UP" else 0)
        self.uniform = is_uniform(inst)
        self.variable = is_variable(inst, sm)
        self.writer = writer_class(inst, sm)
        self.reader = reader_class(inst, sm)
        self.pipe = pipe_of(inst)
        self.dual = is_dual(inst)
        self.reads = list(dict.fromkeys(build.reads))
        self.writes = list(dict.fromkeys(build.writes))
        self.uniform_out = any(isinstance(o, Reg) and o.file in ("UR", "UP") and o.num != ZERO for o in inst.dsts)
        # A read scoreboard protects vector registers; predicates and uniform registers are read at issue (measured).
        self.late = self.variable and inst.op not in ("S2R", "S2UR", "LDGDEPBAR", "BMOV") and any(r[0] == "U" and r[1] < 256 for r in self.reads)
        self.early = [r for r in self.reads if not (r[0] == "U" and r[1] < 256)]
        self.late_reads = [r for r in self.reads if r[0] == "U" and r[1] < 256]
        # The predicate of a generic atomic without a result is known when its address is (measured: the branch waits for the read scoreboard).
        self.at_read = inst.op == "ATOM" and bool(self.writes) and all(kind == "P" for kind, _ in self.writes)
        self.slots: dict[int, int] = {}
        self.reuse: list[int] = []
        for i, op in enumerate(o for o in inst.srcs if not (isinstance(o, Reg) and o.file in ("P", "UP"))):
            if isinstance(op, Reg) and op.file == "R" and op.num != ZERO and i < 3:
                self.slots[i] = op.num
                if op.flags & REUSE:
                    self.reuse.append(i)
        self.depbar: tuple[int, int] | None = None
        if inst.op == "DEPBAR":
            board = next((int(o.name[2]) for o in inst.srcs if isinstance(o, Name) and o.name.startswith("SB")), -1)
            least = next((o.value for o in inst.srcs if isinstance(o, Imm)), 0)
            if 0 <= board < 6:
                self.depbar = (board, least)


class StrictMachine(Machine):
    """See the module text."""

    def __init__(self, lanes: Lanes, program: Compiled, kernel: str, limits: Limits, seed: int, typical: bool = False) -> None:
        super().__init__(lanes, program, kernel, limits, seed)
        self.code = program
        self.sm = program.context.sm
        self.draw = Draw(seed, typical)
        self.plans: dict[int, Plan] = {}
        self.parked: list[tuple[View, Arr, Time]] = []
        self.watch: Profile | None = None
        #: (what, first, second, row) -> distance, for every register that two instructions use too close to each other.
        self.hazards: dict[tuple[str, int, int, Row], int] = {}

    # --- plans ---

    def plan(self, index: int) -> Plan:
        """The prepared instruction."""
        got = self.plans.get(index)
        if got is None:
            try:
                build = self.code.build_of(index)
                guard = build.inst.guard
                get = build.p(guard) if guard is not None and not (guard.num == ZERO and not guard.flags & 4) else None
                n = len(build.reads)
                if build.inst.op in CONTROL:
                    self.code.segment_end(index)
                    run = None
                else:
                    builder = OPS.get(build.inst.op)
                    if builder is None:
                        raise build.refuse()
                    del build.reads[: 0 if get is None else n]
                    run = builder(build)
            except Unsupported as e:
                raise Fault(str(e)) from e
            except (IndexError, StopIteration, AttributeError, TypeError, KeyError) as e:
                raise Fault(f"instruction number {index} has operands that the simulator can't read ({e!r})") from e
            got = self.plans[index] = Plan(build, run, self.sm, get)
        return got

    def hazard_lines(self) -> list[str]:
        """One line for every pair of instructions of which the second read too early."""
        names = []
        for (what, first, second, (kind, row)), distance in self.hazards.items():
            if kind == "U":
                name = f"UR{row - UR0}" if row >= UR0 else f"R{row}"
            else:
                name = f"UP{row - UP0}" if UP0 <= row < P_SINK else f"P{row}"
            names.append(f"{name} of {self.program.place(first, self.kernel)} {what} {self.program.place(second, self.kernel)} {distance} cycles later")
        return names

    # --- time of bundles ---

    def time_of(self, bundle: Bundle) -> Time:
        """The bundle's clock, made on first use."""
        if bundle.time is None:
            bundle.time = Time()
        return bundle.time  # type: ignore[no-any-return]

    def inherit(self, child: Bundle | None, parent: Bundle) -> None:
        if child is not None and parent.time is not None:
            self.drain(parent)
            child.time = parent.time.restricted(parent.view, child.view, child.m)

    def merge_time(self, merged: Bundle, parts: list[Bundle]) -> None:
        for part in parts:
            self.drain(part)
        time = merged.time = Time()
        time.clock = max(self.time_of(p).clock for p in parts)
        for part in parts:
            time.absorb(self.time_of(part), part.view, merged.view, part.mask())
        self.trim(time, merged.view)

    def park(self, bundle: Bundle, mask: Arr) -> None:
        self.drain(bundle)
        self.parked.append((bundle.view, mask.copy(), self.time_of(bundle)))

    def unpark(self, child: Bundle | None) -> None:
        if child is None:
            return
        view, lanes = child.view, child.mask()
        sources = []
        kept = []
        for source, mask, time in self.parked:
            low, high = max(source.lo, view.lo), min(source.hi, view.hi)
            if low >= high:
                kept.append((source, mask, time))
                continue
            mine = np.zeros(source.n, np.bool_)
            mine[low - source.lo : high - source.lo] = mask[low - source.lo : high - source.lo] & lanes[low - view.lo : high - view.lo]
            if count(mine):
                sources.append((source, mine, time))
                mask = mask & ~mine
            if count(mask):
                kept.append((source, mask, time))
        self.parked = kept
        child.time = Time()
        child.time.clock = max((t.clock for _, _, t in sources), default=0)
        for source, mine, time in sources:
            if source.lo >= view.lo and source.hi <= view.hi:
                child.time.absorb(time, source, view, mine)
            else:
                low, high = max(source.lo, view.lo), min(source.hi, view.hi)
                middle = self.lanes.views.get((low // 32, (high - low).bit_length() - 6)) or View(self.lanes, low, high)
                child.time.absorb(time.restricted(source, middle, mine[low - source.lo : high - source.lo]), middle, view, mine[low - source.lo : high - source.lo])

        self.trim(child.time, view)

    # --- rows ---

    def note(self, what: str, first: int, second: int, row: Row, distance: int) -> None:
        """Remember a hazard."""
        key = (what, first, second, row)
        if key not in self.hazards and len(self.hazards) < 1000:
            self.hazards[key] = distance

    def settle(self, time: Time, view: View, row: Row, reader: str, at: int, pc: int) -> None:
        """Enter the pending writes of a row that a ``reader`` issuing at ``at`` sees. ``pc``: the instruction, to note what it does not see (-1: do not)."""
        entries = time.pending[row]
        kind, number = row
        uniform = is_uniform_row(row)
        seen: list[Entry] = []
        rest: list[Entry] = []
        for e in entries:
            if e.ready >= 0:
                visible = at >= e.ready
            else:
                visible = at - e.at >= latency(e.writer, e.part, e.dual, reader, kind, uniform, self.sm)
            (seen if visible else rest).append(e)
        for e in rest if pc >= 0 else ():
            self.note("read too early by", e.pc, pc, row, at - e.at)
        if not seen:
            return
        seen.sort(key=_landing)
        target = (view.U if kind == "U" else view.P)[number]
        for e in seen:
            if e.mask is None:
                target[:] = e.values
            else:
                np.copyto(target, e.values, where=e.mask)
        if rest:
            rest = _superseded(rest, seen)
        if rest:
            time.pending[row] = rest
        else:
            del time.pending[row]

    def capture(self, time: Time, view: View, plan: Plan, mask: Arr | None, at: int, ready: int) -> None:
        """Run the instruction and set its results aside."""
        run = plan.run
        assert run is not None
        rows = [(view.U if k == "U" else view.P)[r] for k, r in plan.writes]
        if not rows:
            run(view, mask)
            return
        old = [row.copy() for row in rows]
        run(view, mask)
        lanes = mask
        if plan.uniform_out and not plan.uniform and mask is not None:
            lanes = view.um
        for part, (key, row, before) in enumerate(zip(plan.writes, rows, old, strict=True)):
            entry = Entry(row.copy(), lanes, at, ready, plan.writer, part, plan.dual, plan.pc)
            row[:] = before
            held = time.pending.get(key)
            if held is not None:
                for e in held:
                    if e.ready > (at + _WRITE if ready < 0 else ready) and overlap(e.mask, lanes):
                        self.note("still to be written over", e.pc, plan.pc, key, at - e.at)
            if held is None:
                time.pending[key] = [entry]
                continue
            held.append(entry)
            if len(held) > 8:  # a row that is written again and again but not read
                self.settle(time, view, key, "alu", at, -1)

    def perform(self, time: Time, view: View, d: Deferred) -> None:
        """A deferred instruction reads its registers and acts."""
        plan = d.plan
        for row in plan.late_reads:
            if row in time.pending:
                for e in time.pending[row]:
                    if e.at > d.at and e.ready < 0 and d.read_at - e.at >= _WRITE and overlap(e.mask, d.mask):
                        self.note("overwritten by", plan.pc, e.pc, row, e.at - d.at)
                self.settle(time, view, row, plan.reader, d.read_at, -1)
        if not d.held:
            self.capture(time, view, plan, d.mask, d.at, d.ready)
            return
        now = [held.copy() for held, _ in d.held]
        for held, values in d.held:
            held[:] = values
        self.capture(time, view, plan, d.mask, d.at, d.ready)
        for (held, _), values in zip(d.held, now, strict=True):
            held[:] = values

    def drain(self, bundle: Bundle) -> None:
        """Make every deferred instruction of the bundle read now."""
        time = bundle.time
        if time is None:
            return
        saved = bundle.view.um
        bundle.view.um = bundle.um
        while time.queue:
            self.perform(time, bundle.view, time.queue.popleft())
        bundle.view.um = saved

    def trim(self, time: Time, view: View) -> None:
        """Enter what has landed of rows with many pending writes: joins must not let them pile up."""
        for row in [r for r, entries in time.pending.items() if len(entries) > 8]:
            self.settle(time, view, row, "alu", time.clock, -1)

    def before_stub(self, bundle: Bundle) -> None:
        time = self.time_of(bundle)
        for number in _ARGUMENTS:
            row = ("U", number)
            if row in time.pending:
                self.settle(time, bundle.view, row, "branch", time.clock, -1)

    # --- issue ---

    def wait(self, time: Time, ctl: Ctl) -> int:
        """The cycle at which the instruction can issue."""
        at = time.clock
        mask = ctl.wait
        if mask:
            for i in range(6):
                if mask >> i & 1 and time.boards[i]:
                    at = max(at, max(time.boards[i]))
                    time.boards[i].clear()
        return at

    def issue(self, bundle: Bundle, time: Time, plan: Plan) -> None:
        """Issue one data instruction."""
        view = bundle.view
        ctl = plan.ctl
        at = self.wait(time, ctl)
        if plan.depbar is not None:
            board, least = plan.depbar
            times = sorted(time.boards[board])
            if len(times) > least:
                at = max(at, times[len(times) - least - 1])
                time.boards[board] = times[len(times) - least :]
        queue = time.queue
        while queue and queue[0].read_at <= at:
            self.perform(time, view, queue.popleft())
        pending = time.pending
        base = bundle.um if plan.uniform else bundle.m
        mask = base
        skip = False
        if plan.guard is not None:
            row = ("P", plan.guard_row)
            if row in pending:
                self.settle(time, view, row, "guard", at, plan.pc)
            g = plan.guard(view)
            mask = g.copy() if base is None else g & base
            n = int(count(mask))
            skip = not n
            if n == view.n:
                mask = None
        if self.watch is not None:
            self.watch.issued(plan.pc, bundle.many, ctl.stall or _DRAIN, at - time.clock, at)
        ready = -1
        if plan.variable:
            ready = at + self.draw.result(plan.inst)
            if plan.pipe:
                ready = time.pipes[plan.pipe] = max(ready, time.pipes.get(plan.pipe, 0))
            read_at = at
            if plan.late:
                read_at = time.read_pipe = max(at + self.draw.source(plan.inst), time.read_pipe)
            ready = read_at if plan.at_read else max(ready, read_at + 2)
            if ctl.wr < 6:
                time.hold(ctl.wr, ready)
            if ctl.rd < 6:
                time.hold(ctl.rd, read_at)
            if not skip:
                held = []
                for row in plan.reads:
                    if row in pending:
                        self.settle(time, view, row, plan.reader, at, plan.pc)
                        if plan.late and row in pending:  # too early for this one: it gets the old value, however late it reads
                            source = (view.U if row[0] == "U" else view.P)[row[1]]
                            held.append((source, source.copy()))
                if plan.late:
                    for kind, number in plan.early:
                        source = (view.U if kind == "U" else view.P)[number]
                        held.append((source, source.copy()))
                    queue.append(Deferred(read_at, plan, mask, at, ready, held))
                else:
                    self.capture(time, view, plan, mask, at, ready)
        else:
            if ctl.wr < 6:
                time.hold(ctl.wr, at + 2)
            if ctl.rd < 6:
                time.hold(ctl.rd, at + 2)
            if not skip:
                for row in plan.reads:
                    if row in pending:
                        self.settle(time, view, row, plan.reader, at, plan.pc)
                if time.reuse:
                    self.capture_reused(time, view, plan, mask, at)
                else:
                    self.capture(time, view, plan, mask, at, -1)
        time.reuse = {i: (plan.slots[i], view.U[plan.slots[i]].copy()) for i in plan.reuse} if plan.reuse and not skip else {}
        time.clock = at + (ctl.stall or _DRAIN)

    def capture_reused(self, time: Time, view: View, plan: Plan, mask: Arr | None, at: int) -> None:
        """Run an instruction some of whose operands come from the reuse cache."""
        swapped: list[tuple[int, Arr]] = []
        for slot, (number, values) in time.reuse.items():
            if plan.slots.get(slot) == number and not np.array_equal(view.U[number], values):
                swapped.append((number, view.U[number].copy()))
                view.U[number][:] = values
        self.capture(time, view, plan, mask, at, -1)
        for number, values in swapped:
            view.U[number][:] = values

    def step(self, bundle: Bundle, limit: int) -> None:
        program = self.program
        view = bundle.view
        time = self.time_of(bundle)
        i = bundle.pc
        budget = 32 if len(self.ready) > 1 else 1 << 60
        plans = self.plans
        try:
            while True:
                view.um = bundle.um
                end = program.segment_end(i)
                stop = end if end < limit else limit
                for k in range(i, stop):
                    i = k
                    plan = plans.get(k) or self.plan(k)
                    self.issue(bundle, time, plan)
                self.executed += (stop - bundle.pc) * bundle.many
                bundle.pc = i = stop
                if stop == limit:
                    return
                self.executed += bundle.many
                if self.executed > self.limits.instructions:
                    raise Fault(f"instruction limit of {self.limits.instructions} warp instructions reached (infinite loop?)")
                if not self.control(bundle, time, i):
                    return
                budget -= 1
                if bundle.pc >= limit or budget < 0:
                    return
                i = bundle.pc
        except Fault as fault:
            raise SimError(self.explain(fault, i, view)) from fault

    def control(self, bundle: Bundle, time: Time, index: int) -> bool:
        """Issue a control instruction."""
        view = bundle.view
        if index not in self.plans and index in self.program.ctls and index not in self.code.builds:
            return self.program.ctls[index](self, bundle)  # a refusal
        plan = self.plans.get(index) or self.plan(index)
        at = self.wait(time, plan.ctl)
        queue = time.queue
        while queue and (queue[0].read_at <= at or plan.inst.op in ("BAR", "EXIT", "CALL")):
            self.perform(time, view, queue.popleft())
        if plan.guard_row >= 0 and ("P", plan.guard_row) in time.pending:
            self.settle(time, view, ("P", plan.guard_row), "guard", at, plan.pc)
        for row in plan.reads:
            if row in time.pending:
                self.settle(time, view, row, "branch", at, plan.pc)
        if self.watch is not None:
            self.watch.issued(plan.pc, bundle.many, plan.ctl.stall or _DRAIN, at - time.clock, at)
        time.reuse = {}
        if plan.ctl.rd < 6:
            time.hold(plan.ctl.rd, at + 2)
        time.clock = at + (plan.ctl.stall or _DRAIN)
        return self.program.ctls[index](self, bundle)


def overlap(a: Arr | None, b: Arr | None) -> bool:
    """Do two lane sets (None = all) share a lane?"""
    if a is None or b is None:
        return True
    return bool(count(a & b))


def is_uniform_row(row: Row) -> bool:
    """Does the row belong to the uniform datapath, so that all lanes of a warp share it?"""
    kind, number = row
    return number >= UR0 if kind == "U" else UP0 <= number < P_SINK


def _superseded(rest: list[Entry], seen: list[Entry]) -> list[Entry]:
    """What is left of unseen fixed-latency writes after younger ones of the same lanes have entered."""
    out = []
    for e in rest:
        if e.ready < 0:
            for s in seen:
                if s.ready < 0 and s.at > e.at:
                    if s.mask is None:
                        break
                    e.mask = ~s.mask if e.mask is None else e.mask & ~s.mask
            else:
                if e.mask is None or count(e.mask):
                    out.append(e)
            continue
        out.append(e)
    return out


def _landing(e: Entry) -> tuple[int, int]:
    return (e.ready, e.at) if e.ready >= 0 else (e.at + 4, e.at)


