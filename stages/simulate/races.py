"""The race detector: accesses to shared and global memory that nothing orders.

Two accesses to one address by different threads, at least one a write, are a *race* unless :mod:`clocks` shows that the
first comes before the second. Atomics and strong accesses (.STRONG, as ptxas compiles volatile, relaxed, acquire and
release) do not race among themselves. Two kinds are reported separately: writes of the value that is already there
(``same value``), and pairs ordered only by a value that was read without a fence after it (``no fence``), as in the
usual code of a last block.

Memory is followed in words of four bytes, and in bytes from the first narrower access on. For each unit the last write
and two reads are kept. That takes a few times the size of the memory, and constant time per access. Local memory,
constants, and writes of asynchronous copies outside their own instructions are not followed. At most :data:`SHOWN`
kinds of pairs are reported, each once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from ir_format.isa import facts
from ir_format.model import Inst
from stages.simulate.arr import Arr
from stages.simulate.build import InstFn, View
from stages.simulate.clocks import Clocks
from stages.simulate.memory import Heap, Window
from stages.simulate.state import EXITED, warp_any

u8, u32, i32, i64 = np.uint8, np.uint32, np.int32, np.int64
SHOWN: Final = 200
#: Most bytes of memory that are followed.
MOST: Final = 1 << 28
_STRONG: Final = frozenset(("STRONG", "MMIO"))
_ATOMIC: Final = facts.atomics().keys()
#: Instructions that work on mbarriers or signal them.
_OBJECTS: Final = facts.of_class("syncs", "arrives") | facts.writing("cluster")
READ, WRITE = "read", "write"


class Race(NamedTuple):
    """A pair of accesses. ``kind``: ``race``, ``same value``, ``no fence``, or ``parted`` for a barrier; ``first``,
    ``second``: instruction numbers; ``count``: how often."""

    kind: str
    space: str
    first: int
    second: int
    first_what: str
    second_what: str
    text: str


class Touch:
    """The last accesses of one kind to every unit of a memory: lane + 1 (0: none), its clock, the instruction, and
    whether it was strong."""

    __slots__ = ("clock", "lane", "pc", "strong")

    def __init__(self, units: int) -> None:
        self.lane: Arr = np.zeros(units, i32)
        self.clock: Arr = np.zeros(units, u32)
        self.pc: Arr = np.zeros(units, i32)
        self.strong: Arr = np.zeros(units, np.bool_)

    def split(self) -> None:
        """Units of four bytes become bytes."""
        self.lane, self.clock, self.pc, self.strong = (
            x.repeat(4) for x in (self.lane, self.clock, self.pc, self.strong)
        )

    def put(self, at: Arr, lanes: Arr, clocks: Arr, pc: int, strong: bool) -> None:
        """Record accesses; of several to one unit the last one stays."""
        self.lane[at] = lanes + 1
        self.clock[at] = clocks
        self.pc[at] = pc
        self.strong[at] = strong

    def copy(self, source: Touch, at: Arr) -> None:
        """Copy the entries of some units from another table."""
        for name in self.__slots__:
            getattr(self, name)[at] = getattr(source, name)[at]

    def age(self, lanes: int, number: int) -> None:
        """From here on, everything recorded was done by set ``number`` of blocks."""
        done = self.lane > 0
        self.clock[done & (self.lane <= lanes)] = number
        self.lane[done] = lanes + 1


class Shadow:
    """The accesses of one memory."""

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.shift = 2
        units = -(-size // 4)
        self.write, self.read, self.also = Touch(units), Touch(units), Touch(units)
        self.pending: tuple[Arr, Arr, Arr, int] | None = None  # a write whose values are not known yet
        self.objects: set[int] = set()  # offsets of barrier objects (sm_80 reads their words with plain loads)

    def units(self, at: Arr, size: int) -> tuple[Arr, int]:
        """Units of accesses of ``size`` bytes at byte offsets, one access after the other, and how many units one
        has."""
        if size < 4 and self.shift:
            self.shift = 0
            for touch in (self.write, self.read, self.also):
                touch.split()
        count = max(size >> self.shift, 1)
        first = at >> self.shift
        return (first if count == 1 else (first[:, None] + np.arange(count)).reshape(-1)), count


class Races:
    """Follows the accesses of a launch; see the module text. ``place(pc)`` and ``who(lane)`` give names for
    messages."""

    def __init__(self, place: Callable[[int], str], who: Callable[[int], str]) -> None:
        self.place = place
        self.who = who
        self.clocks = Clocks(32)
        self.sets = 0
        self.found: dict[tuple[str, str, int, int, str, str], Race] = {}
        self.counts: dict[str, int] = {}
        self.shadows: dict[str, Shadow] = {}
        self.lo = 0
        self.pc = -1
        self.strong = self.atomic = self.object = self.publishes = False

    # --- sets of blocks ---

    def begin(self, lanes: int) -> None:
        """A set of blocks becomes resident."""
        if self.sets:
            self.flush()
            self.clocks = self.clocks.next_set(self.sets, lanes)
            heap = self.shadows["global"]
            for touch in (heap.write, heap.read, heap.also):
                touch.age(lanes, self.sets)
            del self.shadows["shared"]
        else:
            self.clocks = Clocks(lanes)
        self.sets += 1

    def shadow(self, memory: WatchedHeap | WatchedWindow) -> Shadow:
        """The accesses of a memory."""
        name = "global" if isinstance(memory, WatchedHeap) else "shared"
        got = self.shadows.get(name)
        if got is None:
            got = self.shadows[name] = Shadow(name, len(memory.data))
        return got

    # --- what the machine tells ---

    def parted(self, view: View, mask: Arr) -> None:
        self.clocks.part(view.lo, mask)

    def met(self, view: View, mask: Arr) -> None:
        self.clocks.meet(view.lo, mask)

    def arrived(self, arrival: Any, view: View, mask: Arr, pc: int) -> None:
        apart = warp_any(mask) & ~mask & ~view.P[EXITED]
        if apart.any():
            self._parted(view, mask, int(apart.argmax()), pc)
        arrival.known = self.clocks.gather(arrival.known, view.lo + np.flatnonzero(mask))

    def _parted(self, view: View, mask: Arr, absent: int, pc: int) -> None:
        key = ("parted", "barrier", pc, pc, "arrival", "absence")
        self.counts["parted"] = self.counts.get("parted", 0) + 1
        if key not in self.found and len(self.found) < SHOWN:
            here = absent // 32 * 32 + int(mask[absent // 32 * 32 : absent // 32 * 32 + 32].argmax())
            other = self.who(view.lo + absent)
            text = f"parted: {self.who(view.lo + here)} is at {self.place(pc)} without {other} of its warp"
            self.found[key] = Race(*key, text)

    def released(self, arrival: Any, ended: Arr) -> None:
        if arrival.known is None:
            return
        self.clocks.ended(arrival.known, np.flatnonzero(ended))
        for lo, mask, _ in arrival.groups:
            self.clocks.learn(arrival.known, lo + np.flatnonzero(mask))

    # --- instructions ---

    def watch(self, inst: Inst, pc: int, wrap: Callable[[InstFn], InstFn], run: InstFn) -> InstFn:
        """The instruction ``run``, put under its guard by ``wrap``, with its accesses recorded."""
        words = frozenset(w for m in inst.mods for w in m.split("."))
        if inst.op in ("MEMBAR", "FENCE") or (inst.op == "CCTL" and "IVALL" in words):
            # A MEMBAR wider than a block only publishes. Both compilers put CCTL.IVALL after it, without which plain
            # loads may hit old lines in L1.
            return self._fence(inst.op == "MEMBAR", inst.op != "MEMBAR" or "CTA" in words, wrap)
        strong = bool(words & _STRONG) or inst.op in _ATOMIC or inst.op in _OBJECTS
        if not strong and inst.op not in _PLAIN:
            return wrap(run)
        whole = inst.op in _OBJECTS or "ARRIVE" in words
        writes = inst.op in _ATOMIC or inst.op in facts.stores() or (whole and "PHASECHK" not in words)
        inner = wrap(run)

        def watched(v: View, m: Arr | None) -> None:
            self.group(v, m)
            self.pc, self.strong, self.object, self.publishes = pc, strong, whole, writes
            inner(v, m)
            self.flush()

        return watched

    def _fence(self, publishes: bool, acquires: bool, wrap: Callable[[InstFn], InstFn]) -> InstFn:
        def act(v: View, m: Arr | None) -> None:
            self.clocks.fence(v.lo + (np.arange(v.n) if m is None else np.flatnonzero(m)), publishes, acquires)

        inner = wrap(act)

        def watched(v: View, m: Arr | None) -> None:
            self.group(v, m)
            inner(v, m)

        return watched

    def group(self, v: View, m: Arr | None) -> None:
        """Lanes that execute now, whether their guard is true or not."""
        self.lo = v.lo
        here = self.clocks.executing
        here[:] = False
        here[v.lo : v.hi] = True if m is None else m

    # --- accesses ---

    def access(self, memory: WatchedHeap | WatchedWindow, at: Arr, size: int, act: Arr | None, what: str) -> None:
        """Active lanes ``act`` of the view access byte offsets."""
        if self.pc < 0 or not len(at):
            return
        shadow = self.shadow(memory)
        self._judge_pending(shadow, None)
        lanes = self.lo + (np.arange(len(at)) if act is None else act)
        units, count = shadow.units(at, size)
        each = lanes if count == 1 else lanes.repeat(count)
        if what == WRITE:
            shadow.pending = units, each, at, size
            if self.strong:
                self._tell(shadow, at, lanes)
            return
        if self.object:
            shadow.objects.update((at & ~7).tolist())
        elif what == READ and shadow.objects:
            plain = ~np.isin(at & ~7, list(shadow.objects))
            if not plain.all():
                self._ask(shadow, at[~plain], lanes[~plain])
                at, lanes, each = at[plain], lanes[plain], each[plain.repeat(count)]
                units = units[plain.repeat(count)]
        strong = self.strong
        self._judge(shadow, shadow.write, units, each, what, strong, WRITE, None)
        if what == READ:
            self._note_read(shadow, units, each, strong)
        else:
            self._judge_reads(shadow, units, each, what, strong, None)
            self._put_write(shadow, units, each, strong)
        if strong:
            self._tell(shadow, at, lanes)

    def _ask(self, shadow: Shadow, at: Arr, lanes: Arr) -> None:
        """Loads of the words of barrier objects."""
        for offset in np.unique(at & ~7):
            self.clocks.hear((shadow.name, int(offset)), lanes[at & ~7 == offset], True)

    def stored(self, memory: WatchedHeap | WatchedWindow, same: Arr) -> None:
        """The previous write has been made; ``same``: for each access, whether its value was already there."""
        self._judge_pending(self.shadow(memory), same)

    def flush(self) -> None:
        """Judge writes whose values were never reported."""
        for shadow in self.shadows.values():
            self._judge_pending(shadow, None)

    def _judge_pending(self, shadow: Shadow, same: Arr | None) -> None:
        if shadow.pending is None:
            return
        units, each, at, _ = shadow.pending
        shadow.pending = None
        if same is not None and len(units) != len(at):
            same = same.repeat(len(units) // len(at))
        self._judge(shadow, shadow.write, units, each, WRITE, self.strong, WRITE, same)
        self._judge_reads(shadow, units, each, WRITE, self.strong, same)
        if not self.strong:
            self._judge_batch(shadow, units, each, same)
        self._put_write(shadow, units, each, self.strong)

    def _put_write(self, shadow: Shadow, units: Arr, each: Arr, strong: bool) -> None:
        shadow.write.put(units, each, self.clocks.own[each], self.pc, strong)
        shadow.read.lane[units] = 0
        shadow.also.lane[units] = 0

    def _note_read(self, shadow: Shadow, units: Arr, each: Arr, strong: bool) -> None:
        """Record the read. The previous read moves to the second slot unless it comes before this one. Of several reads
        of one unit at once the first and the last are kept."""
        read, also, own = shadow.read, shadow.also, self.clocks.own
        kept = read.lane[units]
        held = np.flatnonzero((kept > 0) & (kept != each + 1))
        if len(held):
            known, _ = self.clocks.before(kept[held].astype(i64) - 1, read.clock[units[held]], each[held])
            move = units[held[~known]]
            also.copy(read, move)
        back = slice(None, None, -1)
        read.put(units, each, own[each], self.pc, strong)
        crowd = np.flatnonzero(read.lane[units] != each + 1)
        if len(crowd):
            also.put(units[crowd][back], each[crowd][back], own[each[crowd]][back], self.pc, strong)

    def _judge_reads(self, shadow: Shadow, units: Arr, each: Arr, what: str, strong: bool, same: Arr | None) -> None:
        for touch in (shadow.read, shadow.also):
            self._judge(shadow, touch, units, each, what, strong, READ, same)

    def _judge(
        self,
        shadow: Shadow,
        old: Touch,
        units: Arr,
        each: Arr,
        what: str,
        strong: bool,
        old_what: str,
        same: Arr | None,
    ) -> None:
        kept = old.lane[units]
        check = (kept > 0) & (kept != each + 1)
        if strong:
            check &= ~old.strong[units]
        some = np.flatnonzero(check)
        if not len(some):
            return
        there = units[some]
        known, heard = self.clocks.before(kept[some].astype(i64) - 1, old.clock[there], each[some])
        bad = np.flatnonzero(~known)
        for k in bad if len(bad) <= 64 else bad[_first_of_each(old.pc[there[bad]])]:
            kind = "no fence" if heard[k] else "same value" if same is not None and same[some[k]] else "race"
            self._add(
                kind,
                shadow,
                int(there[k]),
                int(kept[some[k]]) - 1,
                int(each[some[k]]),
                int(old.pc[there[k]]),
                old_what,
                what,
            )

    def _judge_batch(self, shadow: Shadow, units: Arr, each: Arr, same: Arr | None) -> None:
        """One instruction writes a unit several times: which write wins is undefined, so the values must be equal."""
        if len(units) < 2:
            return
        order = np.argsort(units, kind="stable")
        twice = order[1:][units[order[1:]] == units[order[:-1]]]
        for k in twice[:1]:
            other = int(order[np.searchsorted(units[order], units[k])])
            if each[k] == each[other]:
                continue
            kind = "race" if self.differs is None or self.differs[k * len(self.differs) // len(units)] else "same value"
            self._add(kind, shadow, int(units[k]), int(each[other]), int(each[k]), self.pc, WRITE, WRITE)

    differs: Arr | None = None

    def _add(
        self,
        kind: str,
        shadow: Shadow,
        unit: int,
        first: int,
        second: int,
        first_pc: int,
        first_what: str,
        second_what: str,
    ) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1
        key = (kind, shadow.name, first_pc, self.pc, first_what, second_what)
        if key in self.found or len(self.found) >= SHOWN:
            return
        earlier = self.who(first) if first < self.clocks.n else "a block that ran before"
        text = (
            f"{kind}: {shadow.name} memory at offset {unit << shadow.shift:#x}: {first_what} by {earlier}"
            f" at {self.place(first_pc)},"
            f" {second_what} by {self.who(second)} at {self.place(self.pc)}"
        )
        self.found[key] = Race(*key, text)

    def _tell(self, shadow: Shadow, at: Arr, lanes: Arr) -> None:
        """What a strong access publishes or hears at its address."""
        clocks = self.clocks
        if not clocks.fences and not self.object and not clocks.places:
            return
        at_once = self.object or shadow.name == "shared"
        for offset in np.unique(at):
            mine = lanes[at == offset]
            key = (shadow.name, int(offset))
            if not self.publishes:
                clocks.hear(key, mine, at_once)
                continue
            for k, lane in enumerate(mine):  # one lane at a time, as atomics are performed
                clocks.hear(key, mine[k : k + 1], at_once)
                clocks.publish(key, int(lane), self.object)


_PLAIN: Final = frozenset(
    op for op, space in (facts.loads() | facts.stores() | facts.copies()).items() if space != "local"
) | {"UMEMSETS", "LDTM"}


def _first_of_each(values: Arr) -> Arr:
    return np.asarray(np.unique(values, return_index=True)[1])


class WatchedHeap(Heap):
    """Global memory whose accesses are reported to the detector."""

    __slots__ = ("races",)

    def __init__(self, allocations: list[tuple[str, int]], races: Races) -> None:
        super().__init__(allocations)
        self.races = races

    def offsets(self, address: Arr, size: int, act: Arr | None, what: str) -> Arr:
        at = super().offsets(address, size, act, what)
        self.races.access(self, at, size, act, what)
        return at

    def store(self, at: Arr, size: int, values: Arr) -> None:
        _store(self, super().store, at, size, values)


class WatchedWindow(Window):
    """Shared memory whose accesses are reported to the detector."""

    __slots__ = ("races",)

    def __init__(self, name: str, size: int, count: int, lane_key: str, seed: int, races: Races) -> None:
        super().__init__(name, size, count, lane_key, seed)
        self.races = races

    def offsets(self, address: Arr, size: int, act: Arr | None, what: str, base: Arr) -> Arr:
        at = super().offsets(address, size, act, what, base)
        self.races.access(self, at, size, act, what)
        return at

    def store(self, at: Arr, size: int, values: Arr) -> None:
        _store(self, super().store, at, size, values)


def _store(
    memory: WatchedHeap | WatchedWindow, store: Callable[[Arr, int, Arr], None], at: Arr, size: int, values: Arr
) -> None:
    same = _equal(memory.load(at, size), values)
    store(at, size, values)
    memory.races.differs = ~_equal(memory.load(at, size), values)
    memory.races.stored(memory, same)
    memory.races.differs = None


def _equal(now: Arr, values: Arr) -> Arr:
    return np.asarray((now == values).all(axis=1) if now.ndim > 1 else now == values)
