"""The strict machine: a result becomes visible only when its latency or scoreboard says so; an earlier read gets the
old value.

Every bundle has a clock. An instruction issues when the stall count of the one before has passed and the scoreboards in
its wait mask are free. Its results are kept aside as *pending* writes of rows. They enter the row when an instruction
that reads the row issues late enough for its class. Instructions with variable latency read their registers some time
after issue, until the read scoreboard is released: if a register is overwritten in between, they read the new value.
Latencies come from :mod:`timing`. Pending writes of one row with fixed latency enter in order of issue; one with
variable latency enters when it is done, even over a younger one. The operand reuse cache holds a value for the next
instruction.

When bundles merge, each keeps the time since its own events and none is added: waiting hides no hazard.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ir_format.isa import facts
from ir_format.model import ZERO, Ctl
from stages.simulate.build import Unsupported, count, guarded
from stages.simulate.control import CONTROL
from stages.simulate.cycles import Profile
from stages.simulate.flight import Copies, Flight
from stages.simulate.machine import Bundle, Fault, Limits, Machine, SimError
from stages.simulate.program import OPS, Compiled
from stages.simulate.state import P_SINK, UP0, UR0, Lanes, View
from stages.simulate.strict_runs import Run, Runs, longest
from stages.simulate.strict_time import DRAIN, Deferred, Entry, Plan, Row, Time, half_of, is_uniform_row, overlap
from stages.simulate.timing import Draw, latency

Arr = NDArray[Any]
_ARGUMENTS = range(4, 16)  # registers of arguments and results in the calling convention
_WRITE = 2  # cycles after issue in which no fixed-latency result lands


#: Deferred instructions read their registers before any of these.
_DRAINING: Final = facts.with_value("ctl", "exit", "call") | facts.of_class("bar")


class StrictMachine(Machine):
    """See the module text."""

    def __init__(
        self, lanes: Lanes, program: Compiled, kernel: str, limits: Limits, seed: int, typical: bool = False
    ) -> None:
        super().__init__(lanes, program, kernel, limits, seed)
        self.code = program
        self.sm = program.context.sm
        self.draw = Draw(seed, typical)
        self.plans: dict[int, Plan] = {}
        self.runs = Runs(program, self.plan, self.sm)
        self.parked: list[tuple[View, Arr, Time]] = []
        self.watch: Profile | None = None
        self.flight = Flight(lambda what, first, second, row: self.note(what, first, second, ("U", row), 0))
        program.context.flight, program.context.copies = self.flight, Copies()
        #: (what, first, second, row) -> distance, for every register that two instructions use too close together.
        self.hazards: dict[tuple[str, int, int, Row], int] = {}

    # --- plans ---

    def run(self) -> None:
        super().run()
        self.code.context.copies.end()

    def drop(self) -> None:
        self.code.context.flight = self.code.context.copies = None
        self.plans.clear()
        del self.runs

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
            if run is not None:
                self.code.fns[index] = guarded(build.inst, run, build)  # what a run of safe instructions calls
        return got

    def hazard_lines(self) -> list[str]:
        """One line for every pair of instructions in which the second came too early."""
        names = []
        for (what, first, second, (kind, row)), distance in self.hazards.items():
            if kind == "U":
                name = f"UR{row - UR0}" if row >= UR0 else f"R{row}"
            else:
                name = f"UP{row - UP0}" if UP0 <= row < P_SINK else f"P{row}"
            names.append(
                f"{name} of {self.program.place(first, self.kernel)} {what} "
                f"{self.program.place(second, self.kernel)} {distance} cycles later"
            )
        return names

    # --- time of bundles ---

    def time_of(self, bundle: Bundle) -> Time:
        """The bundle's clock, created on first use."""
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
            mine[low - source.lo : high - source.lo] = (
                mask[low - source.lo : high - source.lo] & lanes[low - view.lo : high - view.lo]
            )
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
                child.time.absorb(
                    time.restricted(source, middle, mine[low - source.lo : high - source.lo]),
                    middle,
                    view,
                    mine[low - source.lo : high - source.lo],
                )

        self.trim(child.time, view)

    # --- rows ---

    def note(self, what: str, first: int, second: int, row: Row, distance: int) -> None:
        """Remember a hazard."""
        key = (what, first, second, row)
        if key not in self.hazards and len(self.hazards) < 1000:
            self.hazards[key] = distance

    def write_back(self, time: Time, view: View, row: Row, reader: str, at: int, pc: int) -> None:
        """Write the pending results of a row that a ``reader`` issuing at ``at`` sees. ``pc``: the reading instruction,
        to report what it misses (-1: do not)."""
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
        for e in _unseen(rest, seen) if pc >= 0 else ():
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
        """Run the instruction and keep its results as pending."""
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
        if plan.half >= 0:
            lanes = half_of(plan.half, mask, view.n)
        for part, key, row, before in zip(plan.parts, plan.writes, rows, old, strict=True):
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
            if len(held) > 8:  # a row that is written repeatedly but not read
                self.write_back(time, view, key, "alu", at, -1)

    def perform(self, time: Time, view: View, d: Deferred) -> None:
        """A deferred instruction reads its registers and acts."""
        plan = d.plan
        for row in plan.late_reads:
            if row in time.pending:
                for e in time.pending[row]:
                    if e.at > d.at and e.ready < 0 and d.read_at - e.at >= _WRITE and overlap(e.mask, d.mask):
                        self.note("overwritten by", plan.pc, e.pc, row, e.at - d.at)
                self.write_back(time, view, row, plan.reader, d.read_at, -1)
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
        """Enter completed writes of rows with many pending writes, so that merges do not accumulate them."""
        for row in [r for r, entries in time.pending.items() if len(entries) > 8]:
            self.write_back(time, view, row, "alu", time.clock, -1)

    def before_stub(self, bundle: Bundle) -> None:
        time = self.time_of(bundle)
        for number in _ARGUMENTS:
            row = ("U", number)
            if row in time.pending:
                self.write_back(time, bundle.view, row, "branch", time.clock, -1)

    def landed(self, time: Time, view: View, row: Row, at: int) -> bool:
        """Enter the pending writes of a row if a read at ``at`` can see all of them."""
        kind, uniform = row[0], is_uniform_row(row)
        for e in time.pending[row]:
            if at < e.ready if e.ready >= 0 else at - e.at < longest(e.writer, e.part, e.dual, kind, uniform, self.sm):
                return False
        self.write_back(time, view, row, "alu", at, -1)
        return True

    # --- issue ---

    def enter(self, bundle: Bundle, time: Time, run: Run, first: Ctl) -> bool:
        """Can the run begin? Wait for what its first instruction waits for."""
        at = time.clock = self.wait(time, first)
        queue = time.queue
        while queue and queue[0].read_at <= at:
            self.perform(time, bundle.view, queue.popleft())
        if queue or time.reuse:
            return False
        pending = time.pending
        touched = run.touched
        return not pending or all(
            self.landed(time, bundle.view, row, at) for row in [r for r in pending if r in touched]
        )

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

    def _begin(self, time: Time, plan: Plan) -> int:
        """The cycle at which a data instruction can issue; a DEPBAR waits for what its operands name."""
        at = self.wait(time, plan.ctl)
        if plan.depbar is not None:
            board, least = plan.depbar
            times = sorted(time.boards[board])
            if len(times) > least:
                at = max(at, times[len(times) - least - 1])
                time.boards[board] = times[len(times) - least :]
        for board in plan.depbar_all:
            at = max([at, *time.boards[board]])
            time.boards[board].clear()
        return at

    def issue(self, bundle: Bundle, time: Time, plan: Plan) -> None:
        """Issue one data instruction."""
        view = bundle.view
        ctl = plan.ctl
        at = self._begin(time, plan)
        queue = time.queue
        while queue and (queue[0].read_at <= at or plan.inst.op == "FENCE"):
            self.perform(time, view, queue.popleft())
        pending = time.pending
        base = bundle.um if plan.uniform else bundle.m
        mask = base
        skip = False
        if plan.guard is not None:
            row = ("P", plan.guard_row)
            if row in pending:
                self.write_back(time, view, row, "guard", at, plan.pc)
            g = plan.guard(view)
            mask = g.copy() if base is None else g & base
            n = int(count(mask))
            skip = not n
            if n == view.n:
                mask = None
        if self.watch is not None:
            self.watch.issued(plan.pc, bundle.many, ctl.stall or DRAIN, at - time.clock, at, not skip)
        if self.flight.seen and not plan.warpgroup and not skip:
            self.flight.touches(view, mask, plan.vector_reads, plan.vector_writes, plan.pc)
        ready = -1
        if plan.warpgroup:
            self._issue_warpgroup(time, view, plan, mask, at, skip)
        elif plan.variable:
            ready = at + self.draw.result(plan.inst)
            if plan.pipe:
                ready = time.pipes[plan.pipe] = max(ready, time.pipes.get(plan.pipe, 0))
            read_at = at
            if plan.late:
                read_at = time.read_pipe = max(at + self.draw.source(plan.inst), time.read_pipe)
            elif queue and plan.memory:  # after stores that have yet to read their registers
                read_at = max(at, time.read_pipe)
            ready = read_at if plan.at_read else max(ready, read_at + 2)
            if ctl.wr < 6:
                time.hold(ctl.wr, ready)
            if ctl.rd < 6:
                time.hold(ctl.rd, read_at)
            if queue and not skip:
                self.overtakes(queue, plan, mask, at, ready)
            if not skip:
                held = (
                    [(view.U[number], values) for number, values in self.kept(time, view, plan)] if time.reuse else []
                )
                for row in plan.reads:
                    if row in pending:
                        self.write_back(time, view, row, plan.reader, at, plan.pc)
                        if plan.late and row in pending:  # too early: it gets the old value, however late it reads
                            source = (view.U if row[0] == "U" else view.P)[row[1]]
                            held.append((source, source.copy()))
                direct = not held and not queue and self.runs.safe(plan) and not any(r in pending for r in plan.reads)
                if direct and all(r not in pending or self.landed(time, view, r, at) for r in plan.writes):
                    assert plan.run is not None
                    plan.run(view, mask)
                elif plan.late or (queue and plan.memory):
                    for kind, number in plan.early:
                        source = (view.U if kind == "U" else view.P)[number]
                        held.append((source, source.copy()))
                    queue.append(Deferred(read_at, plan, mask, at, ready, held))
                else:
                    self.capture(time, view, plan, mask, at, ready)
        else:
            self._issue_fixed(time, view, plan, mask, at, skip)
        time.reuse = self.keep(view, plan) if plan.reuse and not skip else {}
        time.clock = _next(time, plan, at, ready)

    def _issue_warpgroup(self, time: Time, view: View, plan: Plan, mask: Arr | None, at: int, skip: bool) -> None:
        """A product of a warpgroup, or an instruction that orders products: see :mod:`flight`."""
        for board in (plan.ctl.wr, plan.ctl.rd):
            if board < 6:
                time.hold(board, at + 2)
        for row in plan.reads:
            if row in time.pending:
                self.write_back(time, view, row, plan.reader, at, plan.pc)
        if not skip:
            assert plan.run is not None
            plan.run(view, mask)

    def _issue_fixed(self, time: Time, view: View, plan: Plan, mask: Arr | None, at: int, skip: bool) -> None:
        """Issue an instruction of fixed latency at cycle ``at``; ``skip``: no lane executes it."""
        ctl = plan.ctl
        if ctl.wr < 6:
            time.hold(ctl.wr, at + 2)
        if ctl.rd < 6:
            time.hold(ctl.rd, at + 2)
        if skip:
            return
        if time.queue:
            self.overtakes(time.queue, plan, mask, at, at + _WRITE)
        pending = time.pending
        for row in plan.reads:
            if row in pending:
                self.write_back(time, view, row, plan.readers.get(row, plan.reader), at, plan.pc)
        if time.reuse:
            self.capture_reused(time, view, plan, mask, at)
        else:
            self.capture(time, view, plan, mask, at, -1)

    def overtakes(self, queue: Iterable[Deferred], plan: Plan, mask: Arr | None, at: int, ready: int) -> None:
        """Report what the instruction reads or writes too early: results of instructions that have not even read their
        registers."""
        for d in queue:
            written = d.plan.writes
            for row in plan.reads if plan.guard_row < 0 else (*plan.reads, ("P", plan.guard_row)):
                if row in written and overlap(d.mask, mask):
                    self.note("read too early by", d.plan.pc, plan.pc, row, at - d.at)
            for row in plan.writes:
                if row in written and d.ready > ready and overlap(d.mask, mask):
                    self.note("still to be written over", d.plan.pc, plan.pc, row, at - d.at)

    def keep(self, view: View, plan: Plan) -> dict[int, tuple[int, Arr, int]]:
        """What the reuse cache holds after an instruction (called before its results are visible)."""
        return {
            i: (n, view.U[n].copy(), plan.pc if ("U", n) in plan.writes else -1)
            for i in plan.reuse
            for n in (plan.slots[i],)
        }

    def kept(self, time: Time, view: View, plan: Plan) -> list[tuple[int, Arr]]:
        """Operands that come from the reuse cache and differ from their registers: number, values."""
        stale: list[tuple[int, Arr]] = []
        for slot, (number, values, over) in time.reuse.items():
            if plan.slots.get(slot) == number:
                if over >= 0:
                    self.note("kept for reuse and overwritten by", over, plan.pc, ("U", number), 0)
                if not np.array_equal(view.U[number], values):
                    stale.append((number, values))
        return stale

    def capture_reused(self, time: Time, view: View, plan: Plan, mask: Arr | None, at: int) -> None:
        """Run an instruction some of whose operands come from the reuse cache."""
        swapped: list[tuple[int, Arr]] = []
        for number, values in self.kept(time, view, plan):
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
        m, fns = bundle.m, program.fns
        known, find = self.runs.known, self.runs.find
        direct, flight = self.watch is None, self.flight
        try:
            while True:
                view.um = bundle.um
                end = program.segment_end(i)
                stop = end if end < limit else limit
                k = i
                while k < stop:
                    i = k
                    plan = plans.get(k) or self.plan(k)
                    run = known[k] if k in known else find(k)
                    if (
                        run is not None
                        and run.stop <= stop
                        and direct
                        and not flight.seen
                        and self.enter(bundle, time, run, plan.ctl)
                    ):
                        for i in range(k, run.stop):
                            fns[i](view, m)
                        time.clock += run.cycles
                        k = run.stop
                        continue
                    self.issue(bundle, time, plan)
                    k += 1
                self.executed += (stop - bundle.pc) * bundle.many
                bundle.pc = i = stop
                if stop == limit:
                    return
                self.executed += bundle.many
                if self.executed > self.limits.instructions:
                    raise Fault(
                        f"instruction limit of {self.limits.instructions} warp instructions reached (infinite loop?)"
                    )
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
        while queue and (queue[0].read_at <= at or plan.inst.op in _DRAINING):
            self.perform(time, view, queue.popleft())
        if plan.guard_row >= 0 and ("P", plan.guard_row) in time.pending:
            self.write_back(time, view, ("P", plan.guard_row), "guard", at, plan.pc)
        for row in plan.reads:
            if row in time.pending:
                self.write_back(time, view, row, plan.reader, at, plan.pc)
        if queue:
            self.overtakes(queue, plan, None, at, at + _WRITE)
        if self.watch is not None:
            self.watch.issued(plan.pc, bundle.many, plan.ctl.stall or DRAIN, at - time.clock, at)
        time.reuse = {}
        if plan.ctl.rd < 6:
            time.hold(plan.ctl.rd, at + 2)
        time.clock = at + (plan.ctl.stall or DRAIN)
        return self.program.ctls[index](self, bundle)


def _next(time: Time, plan: Plan, at: int, ready: int) -> int:
    """The first cycle in which the instruction after one issued at ``at`` can issue."""
    ctl = plan.ctl
    if ctl.stall:
        return at + ctl.stall
    if plan.variable and ctl.wr > 5 and ctl.rd > 5:  # without scoreboards it is done (all code of ptxas 13.5 at -O0)
        return max(at + DRAIN, ready, time.read_pipe)
    return at + DRAIN


def _unseen(rest: list[Entry], seen: list[Entry]) -> list[Entry]:
    """The writes that a reader misses, without those that a younger visible write replaces."""
    return [e for e in rest if not any(s.ready < 0 and s.at > e.at and s.mask is None for s in seen)]


def _superseded(rest: list[Entry], seen: list[Entry]) -> list[Entry]:
    """The unseen fixed-latency writes that remain after younger ones of the same lanes have entered."""
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
