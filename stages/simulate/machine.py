"""The engine: groups of lanes at one program counter, run in lockstep.

A :class:`Bundle` holds at most one converged group of each of its warps. All its lanes are at the same instruction, so
one numpy operation serves them all. Groups of the same warp never merge by accident: as on the hardware, only BSYNC,
WARPSYNC and similar instructions merge them, so a missing reconvergence shows. Groups of different warps merge whenever
they meet.

Order: the bundle with the lowest program counter runs; every :data:`FAIR` choices the bundle that waited longest runs
instead, so that spin loops end. A seed other than 0 adds random choices. The same seed gives the same run.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from stages.simulate.members import leave, together
from stages.simulate.state import EXITED, WAIT0, Lanes, View, ballot, warp_any, warp_bits

Arr = NDArray[Any]
FAIR: Final = 16
#: Most warps and places that a message names.
SHOWN: Final = 4
count = np.count_nonzero


class SimError(Exception):
    """An execution error: ``message`` and where it happened, in one line."""


class Fault(Exception):
    """An error of one instruction, raised before its place is known. ``lane``: index in the view, -1 = none."""

    def __init__(self, message: str, lane: int = -1) -> None:
        super().__init__(message)
        self.message = message
        self.lane = lane


class Bundle:
    """Lanes ``m`` (None = all) of ``view``, at instruction index ``pc``; ``warps``: bit set of their warps."""

    __slots__ = ("active", "m", "many", "pc", "stamp", "time", "um", "view", "warps", "yields")

    def __init__(self, view: View, m: Arr | None, pc: int, warps: int) -> None:
        self.view = view
        self.m = m
        self.pc = pc
        self.warps = warps
        self.many = warps.bit_count()
        if m is None:
            self.active = view.n
            self.um: Arr | None = None
        else:
            self.active = int(count(m))
            if self.active == view.n:
                self.m = self.um = None
            else:
                self.um = None if self.many * 32 == view.n else warp_any(m)
        self.stamp = 0
        self.yields = 0
        self.time: Any = None

    def mask(self) -> Arr:
        """The lanes as an array."""
        return np.ones(self.view.n, np.bool_) if self.m is None else self.m


InstFn = Callable[[View, "Arr | None"], None]
#: A control instruction moves the bundle. True: the same bundle continues. False: the set of bundles changed.
CtlFn = Callable[["Machine", Bundle], bool]


class Program(Protocol):
    """What the machine needs of the code: instructions are numbered from 0 over all sections."""

    fns: list[InstFn]
    ctls: dict[int, CtlFn]

    def segment_end(self, pc: int) -> int:
        """Index of the first control instruction at or after ``pc``."""

    def place(self, pc: int, kernel: str) -> str:
        """Where instruction ``pc`` is, in words."""


class Watcher(Protocol):
    """Follows which accesses are ordered (:mod:`races`); lanes are masks of a view."""

    def parted(self, view: View, mask: Arr) -> None:
        """These lanes stop running as one group: they split, wait or exit."""

    def met(self, view: View, mask: Arr) -> None:
        """These lanes of each warp continue together."""

    def arrived(self, arrival: Any, view: View, mask: Arr, pc: int) -> None:
        """The lanes arrived at a barrier by instruction ``pc``; the barrier has an attribute ``known`` for the
        watcher's use."""

    def released(self, arrival: Any, ended: Arr) -> None:
        """The barrier releases its waiting groups; ``ended``: lanes of the block that have exited."""


class Order(Protocol):
    """An order in which warps run (:mod:`orders`), other than the machine's own."""

    def pick(self, ready: list[Bundle]) -> tuple[Bundle, int]:
        """The next bundle and the instruction index before which it stops."""


class Limits:
    """Bounds of a launch: warp instructions."""

    __slots__ = ("instructions",)

    def __init__(self, instructions: int) -> None:
        self.instructions = instructions


class Machine:
    """Runs one set of resident blocks to its end."""

    def __init__(self, lanes: Lanes, program: Program, kernel: str, limits: Limits, seed: int) -> None:
        self.lanes = lanes
        self.program = program
        self.kernel = kernel
        self.limits = limits
        self.random = random.Random(seed) if seed else None
        self.ready: list[Bundle] = []
        self.waiting = [0] * 17  # lanes that wait at each convergence barrier
        self.wait_pc = np.zeros(lanes.n, np.int64)
        self.executed = 0  # warp instructions
        self.lane_executed = 0
        self.picks = 0
        self.barriers = Barriers(self)
        self.firm = np.zeros(
            (16, lanes.n), np.bool_
        )  # lanes that wait at a barrier where all members must arrive (.RECONVERGENT, .RELIABLE)
        self.progress = False  # a warp never blocks at BSYNCs
        self.advanced = 0  # how often threads had to be released for that
        self.watcher: Watcher | None = None
        self.order: Order | None = None
        self.describe_lane: Callable[[int], str] = lambda lane: f"lane {lane}"

    # --- bundles ---

    def drop(self) -> None:
        """Drop references back to the machine (they are cycles); nothing runs after this."""

    def start(self, mask: Arr, pc: int) -> None:
        """Begin at ``pc`` with these lanes; the other lanes of the resident warps do not exist."""
        self.lanes.preds[EXITED] = ~mask
        if self.order is None:
            self.spawn(0, mask, pc)
            return
        for lo in range(0, self.lanes.n, 32):  # each warp separately
            self.spawn(lo, mask[lo : lo + 32], pc)

    def spawn(self, lo: int, mask: Arr, pc: int) -> Bundle | None:
        """A new ready bundle of lanes ``mask`` (counted from lane ``lo``), in the smallest view."""
        warps = warp_bits(mask, lo // 32)
        if not warps:
            return None
        view = self.lanes.view(warps)
        size = len(mask)
        if view.lo >= lo and view.hi <= lo + size:
            local = mask[view.lo - lo : view.hi - lo].copy()
        else:
            local = np.zeros(view.n, np.bool_)
            low, high = max(lo, view.lo), min(lo + size, view.hi)
            local[low - view.lo : high - view.lo] = mask[low - lo : high - lo]
        bundle = Bundle(view, local, pc, warps)
        bundle.stamp = self.picks
        self.ready.append(bundle)
        return bundle

    def split(self, bundle: Bundle, taken: Arr, target: int) -> bool:
        """Lanes ``taken`` (some, not all) go to ``target``, the rest to the next instruction."""
        view = bundle.view
        rest = bundle.mask() & ~taken
        self.retire(bundle)
        for mask, pc in ((taken, target), (rest, bundle.pc + 1)):
            child = self.spawn(view.lo, mask, pc)
            self.inherit(child, bundle)
        return False

    def part(self, bundle: Bundle, some: Arr) -> bool:
        """Lanes ``some`` (not all) and the rest become two groups, both still before the instruction."""
        rest = bundle.mask() & ~some
        self.retire(bundle)
        for mask in (some, rest):
            self.inherit(self.spawn(bundle.view.lo, mask, bundle.pc), bundle)
        return False

    def inherit(self, child: Bundle | None, parent: Bundle) -> None:
        """Hook of the timed machine: a child bundle takes over the pending results of its lanes."""

    def retire(self, bundle: Bundle) -> None:
        """The bundle ends: its lanes wait, have exited or moved to new bundles."""
        self.ready.remove(bundle)
        if self.watcher is not None:
            self.watcher.parted(bundle.view, bundle.mask())

    def scatter(self, bundle: Bundle, targets: Arr) -> bool:
        """Every lane goes to its own target (one instruction index per lane)."""
        mask = bundle.mask()
        values = np.unique(targets[mask])
        if len(values) == 1:
            bundle.pc = int(values[0])
            return True
        self.retire(bundle)
        for value in values:
            self.inherit(self.spawn(bundle.view.lo, mask & (targets == value), int(value)), bundle)
        return False

    # --- convergence barriers ---

    def converge(self, bundle: Bundle, k: int) -> bool:
        """The bundle's lanes arrive at convergence barrier ``k`` (16: WARPSYNC)."""
        view = bundle.view
        mask = bundle.mask()
        mine = view.B[k]
        if bundle.m is None:  # every lane of the warps is here
            bundle.pc += 1
            return True
        absent = (ballot(~mask & ~view.P[EXITED])).repeat(32)
        missing = mine & absent
        if not count(missing[mask]):
            bundle.pc += 1
            return True
        part = mine != 0
        waits = mask & part
        self.retire(bundle)
        if count(waits) != bundle.active:
            self.inherit(self.spawn(view.lo, mask & ~part, bundle.pc + 1), bundle)
        np.logical_or(view.P[WAIT0 + k], waits, out=view.P[WAIT0 + k])
        self.wait_pc[view.lo : view.hi][waits] = bundle.pc + 1
        self.waiting[k] += int(count(waits))
        self.park(bundle, waits)
        self.release(k, view, warp_any(waits))
        return False

    def park(self, bundle: Bundle, mask: Arr) -> None:
        """Hook of the timed machine: these lanes of the bundle begin to wait."""

    def unpark(self, child: Bundle | None) -> None:
        """Hook of the timed machine: the lanes of this bundle waited and continue."""

    def release(self, k: int, view: View, lanes: Arr) -> None:
        """Release those warps among ``lanes`` whose participating lanes all wait at barrier ``k``."""
        waits = view.P[WAIT0 + k]
        absent = (ballot(~waits & ~view.P[EXITED])).repeat(32)
        go = waits & lanes & ((view.B[k] & absent) == 0)
        n = int(count(go))
        if n and k < 16:
            go = together(view.B[k], waits, go)
            n = int(count(go))
        if not n:
            return
        waits[go] = False
        self.waiting[k] -= n
        pcs = self.wait_pc[view.lo : view.hi]
        for pc in np.unique(pcs[go]):
            some = go & (pcs == pc)
            self.unpark(self.spawn(view.lo, some, int(pc)))
            if self.watcher is not None:
                self.watcher.met(view, some)

    def loosen(self, bundle: Bundle) -> bool:
        """Release lanes that wait at plain convergence barriers for warps of this spinning bundle: a plain barrier
        gives way to progress (ptxas relies on it: it moves the body of a spin lock after the loop). True if any were
        released.
        """
        view = bundle.view
        around = warp_any(bundle.mask())
        freed = False
        for k in range(16):
            if not self.waiting[k]:
                continue
            go = view.P[WAIT0 + k] & around & ~self.firm[k, view.lo : view.hi]
            if count(go):
                self.let_go(view, k, go)
                freed = True
        return freed

    def let_go(self, view: View, k: int, go: Arr) -> None:
        """Lanes ``go`` stop waiting at barrier ``k`` and leave its members."""
        view.P[WAIT0 + k][go] = False
        leave(view, k, go)
        self.waiting[k] -= int(count(go))
        pcs = self.wait_pc[view.lo : view.hi]
        for pc in np.unique(pcs[go]):
            self.unpark(self.spawn(view.lo, go & (pcs == pc), int(pc)))

    def advance(self) -> bool:
        """Nothing can run: in one warp, the lanes that wait at the first BSYNC in the code continue. True if there are
        any. (A guess that fits ptxas's code, docs/simulator.md.)"""
        first: tuple[int, int, int] | None = None
        for k in range(16):
            if self.waiting[k]:
                at = np.flatnonzero(self.lanes.preds[WAIT0 + k])
                lane = int(at[self.wait_pc[at].argmin()])
                found = (int(self.wait_pc[lane]), lane, k)
                first = found if first is None else min(first, found)
        if first is None:
            return False
        pc, lane, k = first
        view = self.lanes.view(1 << (lane // 32))
        self.let_go(view, k, view.P[WAIT0 + k] & (self.wait_pc[view.lo : view.hi] == pc))
        self.advanced += 1
        return True

    def left(self, view: View, lanes: Arr) -> None:
        """Lanes exited or left barriers: release the lanes that waited only for them."""
        around = warp_any(lanes)
        for k in range(17):
            if self.waiting[k]:
                self.release(k, view, around)

    def exit(self, bundle: Bundle, mask: Arr) -> bool:
        """Lanes ``mask`` of the bundle end."""
        view = bundle.view
        rest = bundle.mask() & ~mask
        view.P[EXITED][mask] = True
        self.retire(bundle)
        if count(rest):
            self.inherit(self.spawn(view.lo, rest, bundle.pc + 1), bundle)
        if any(self.waiting):
            self.left(view, mask)
        self.barriers.exited(view)
        return False

    # --- the loop ---

    def pick(self) -> tuple[Bundle, int]:
        """The next bundle, and the instruction index at which another bundle waits to merge with it."""
        ready = self.ready
        self.picks += 1
        if self.order is not None:
            best, limit = self.order.pick(ready)
            best.stamp = self.picks
            return best, limit
        if len(ready) == 1:
            return ready[0], 1 << 60
        best = min(ready, key=_pc_of)
        if self.picks % FAIR == 0:
            best = min(ready, key=_stamp_of)
        elif self.random is not None and self.random.random() < 0.05:
            best = self.random.choice(ready)
        pc = best.pc
        same = [b for b in ready if b.pc == pc]
        if len(same) > 1:
            best = self.join(best, same)
        limit = min((b.pc for b in self.ready if b.pc > pc), default=1 << 60)
        best.stamp = self.picks
        return best, limit

    def join(self, first: Bundle, same: list[Bundle]) -> Bundle:
        """Merge bundles at one pc whose warps are disjoint."""
        chosen, warps = [first], first.warps
        for b in same:
            if b is not first and not b.warps & warps:
                chosen.append(b)
                warps |= b.warps
        if len(chosen) == 1:
            return first
        view = self.lanes.view(warps)
        mask = np.zeros(view.n, np.bool_)
        for b in chosen:
            at = b.view.lo - view.lo
            mask[at : at + b.view.n] |= True if b.m is None else b.m
            self.ready.remove(b)
        merged = Bundle(view, mask, first.pc, warps)
        self.merge_time(merged, chosen)
        self.ready.append(merged)
        return merged

    def merge_time(self, merged: Bundle, parts: list[Bundle]) -> None:
        """Hook of the timed machine."""

    def run(self) -> None:
        """Run until every lane has exited. Raises :class:`SimError`."""
        with np.errstate(all="ignore"):
            while self.ready:
                bundle, limit = self.pick()
                self.step(bundle, limit)
                if not self.ready:
                    self.barriers.idle()
                if not self.ready and self.progress:
                    self.advance()
        if not self.lanes.preds[EXITED].all():
            raise SimError(self.deadlock())

    def step(self, bundle: Bundle, limit: int) -> None:
        """Run the bundle until it reaches another bundle, or until the set of bundles changes."""
        program = self.program
        fns, ctls = program.fns, program.ctls
        view, m = bundle.view, bundle.m
        view.um = bundle.um
        i = bundle.pc
        many = bundle.many
        budget = 32 if len(self.ready) > 1 else 1 << 60
        try:
            while True:
                end = program.segment_end(i)
                stop = end if end < limit else limit
                for k in range(i, stop):
                    i = k
                    fns[k](view, m)
                self.executed += (stop - bundle.pc) * many
                bundle.pc = i = stop
                if stop == limit:
                    return
                self.executed += many
                if self.executed > self.limits.instructions:
                    raise Fault(
                        f"instruction limit of {self.limits.instructions} warp instructions reached (infinite loop?)"
                    )
                if not ctls[i](self, bundle):
                    return
                budget -= 1
                if bundle.pc >= limit or budget < 0:
                    return
                i = bundle.pc
        except Fault as fault:
            raise SimError(self.explain(fault, i, view)) from fault

    def explain(self, fault: Fault, pc: int, view: View) -> str:
        """The message of a fault with its place."""
        who = f", {self.describe_lane(view.lo + fault.lane)}" if fault.lane >= 0 else ""
        return f"{fault.message} at {self.program.place(pc, self.kernel)}{who}"

    def before_stub(self, bundle: Bundle) -> None:
        """Hook of the timed machine: a driver function is about to read its argument registers."""

    def hazard_lines(self) -> list[str]:
        """Timing hazards seen, in words; only the timed machine sees any."""
        return []

    def deadlock(self) -> str:
        """Which threads never ended and where they wait: a short text for each place, with the warps and lanes
        there."""
        places: dict[tuple[str, int], dict[int, int]] = {}

        def note(name: str, lo: int, mask: Arr, pc: int) -> None:
            for warp in np.flatnonzero(mask.reshape(-1, 32).any(1)):
                there = places.setdefault((name, pc), {})
                where = lo // 32 + int(warp)
                there[where] = there.get(where, 0) | int(ballot(mask[32 * warp : 32 * warp + 32])[0])

        for k in range(17):
            if self.waiting[k]:
                waits = self.lanes.preds[WAIT0 + k]
                for pc in np.unique(self.wait_pc[waits]):
                    note(
                        "WARPSYNC" if k == 16 else f"convergence barrier B{k}",
                        0,
                        waits & (self.wait_pc == pc),
                        int(pc) - 1,
                    )
        for (_, number), a in sorted(self.barriers.open.items()):
            for lo, mask, pc in a.groups:
                note(f"barrier {number} ({a.arrived} of {a.expected or 'all'} threads)", lo, mask, pc - 1)
        parts = []
        for (name, pc), warps in places.items():
            total = sum(bits.bit_count() for bits in warps.values())
            who = ", ".join(
                f"warp {w % self._warps()} of {self._block(w)} lanes {bits:#010x}"
                for w, bits in list(warps.items())[:SHOWN]
            )
            more = f", {len(warps) - SHOWN} more warps" if len(warps) > SHOWN else ""
            parts.append(f"{total} threads at {name}, {self.program.place(pc, self.kernel)}: {who}{more}")
        return "deadlock: " + ("; ".join(parts[: 2 * SHOWN]) or "no thread can run")

    def _warps(self) -> int:
        """Warps of a block."""
        return max(1, int(count(self.lanes.wide["block"] == 0)) // 32) if "block" in self.lanes.wide else 1 << 30

    def _block(self, warp: int) -> str:
        """The block of a resident warp, in words."""
        return self.describe_lane(32 * warp).partition(" thread")[0]


def _pc_of(bundle: Bundle) -> int:
    return bundle.pc


def _stamp_of(bundle: Bundle) -> int:
    return bundle.stamp


class Barriers:
    """CTA barriers of every resident block: 16 a block, with counts."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        # (block, barrier) -> [threads arrived, expected count or 0 = all, waiting groups (lo, mask, pc), finisher]
        self.open: dict[tuple[int, int], Arrival] = {}

    def arrive(
        self,
        bundle: Bundle,
        number: int,
        expected: int,
        waits: bool,
        finish: Finish | None = None,
        value: Arr | None = None,
    ) -> bool:
        """The bundle arrives at barrier ``number``; ``expected`` threads (0 = all of the block) release it. ``waits``:
        BAR.ARV does not wait.

        ``finish(view lanes, arrival)`` runs on release, for reductions; ``value``: this bundle's predicates.
        """
        machine = self.machine
        view = bundle.view
        blocks = view.wide("block")
        mask = bundle.mask()
        bundle.pc += 1
        if waits:
            machine.retire(bundle)
            machine.park(bundle, mask)
        present = np.unique(blocks[mask])
        for block in present:
            mine = mask & (blocks == block) if len(present) > 1 else mask
            arrival = self.open.setdefault((int(block), number), Arrival(expected))
            if expected and arrival.expected and expected != arrival.expected:
                raise Fault(f"barrier {number}: thread counts {arrival.expected} and {expected} meet")
            arrival.expected = arrival.expected or expected
            # Counts are of whole warps: lanes that the block does not have count too.
            lanes = int(count(warp_any(mine))) if expected else int(count(mine))
            arrival.arrived += lanes
            arrival.finish = finish or arrival.finish
            if value is not None:
                arrival.true += int(count(value & mine))
                arrival.total += int(count(mine))
            if machine.watcher is not None:
                machine.watcher.arrived(arrival, view, mine, bundle.pc - 1)
            if waits:
                arrival.groups.append((view.lo, mine, bundle.pc))
        released = False
        for block in present:
            released |= self.check(int(block), number)
        return not waits

    def check(self, block: int, number: int) -> bool:
        """Release the barrier of the block if it is complete."""
        arrival = self.open.get((block, number))
        if arrival is None:
            return False
        lanes = self.machine.lanes
        if arrival.expected:
            complete = arrival.arrived >= arrival.expected
        else:
            alive = int(count((lanes.wide["block"] == block) & ~lanes.preds[EXITED]))
            complete = arrival.arrived >= alive
        if not complete:
            return False
        del self.open[(block, number)]
        if self.machine.watcher is not None:
            self.machine.watcher.released(arrival, (lanes.wide["block"] == block) & lanes.preds[EXITED])
        for lo, mask, pc in arrival.groups:
            if arrival.finish is not None:
                arrival.finish(self.machine, lo, mask, arrival)
            self.machine.unpark(self.machine.spawn(lo, mask, pc))
        return True

    def exited(self, view: View) -> None:
        """Threads of the view exited: some barriers may be complete now."""
        for block, number in list(self.open):
            self.check(block, number)

    def idle(self) -> None:
        """Nothing is ready: the last chance to release a barrier."""
        self.exited(next(iter(self.machine.lanes.views.values())))


class Arrival:
    """One barrier in use."""

    __slots__ = ("arrived", "expected", "finish", "groups", "known", "total", "true")

    def __init__(self, expected: int) -> None:
        self.arrived = 0
        self.known: Any = None
        self.expected = expected
        self.groups: list[tuple[int, Arr, int]] = []
        self.finish: Finish | None = None
        self.true = 0
        self.total = 0


Finish = Callable[[Machine, int, Arr, Arrival], None]
