"""Trials to order one block for a number of registers: list scheduling by critical path until the live values reach a
limit, then in program order until registers are free. If registers run out, instructions that free some go first.

All trials of a block share what does not depend on the limit (:class:`Body`): the dependence graph, the critical paths,
definitions and uses of each value. A trial that cannot be as fast as an earlier one ends as soon as that is known: an
instruction issues no earlier than its critical path allows.
"""

from __future__ import annotations

import heapq
from bisect import insort
from itertools import accumulate

from ir_format.flow import is_guarded
from ir_format.isa import facts
from ir_format.model import Inst
from ir_format.record import NamedTuple
from ir_format.typed import Final
from stages.analysis.dependences import Graph
from stages.optimize.values import is_pure

_FILES: Final = ("R", "P", "UR", "UP", "B")
#: Live values per file up to which order is by latency, but for R (P has 7: by trials on guarded loads).
_LIMITS: Final = (6, 24, 4, 16)
#: Registers below the limit where order is by what frees registers (guessed: vectors need room to be aligned).
TIGHT: Final = 16
_SPARE: Final = 8
#: Loads that come when they are needed where registers are short.
_NEAR: Final = frozenset(op for op, space in facts.loads().items() if space == "shared")
#: Instructions that are looked at for one that needs no register more.
_FOREMOST: Final = 6
#: Words of a result that many instructions make; where fewer are left, it is looked at what they need.
_WIDEST: Final = 4
NEVER: Final = 1 << 60


class Trial(NamedTuple):
    """An order, as indices into the instructions; the most live R values at once, and how many no order can do
    without: those at the start and at the end; the cycles of a lone warp. ``late``: it was given up."""

    nodes: list[int]
    peak: int
    least: int
    end: int
    late: bool = False


_LATE: Final = Trial([], 0, 0, 0, True)


class Body:
    """A block and what all tries to put it in order begin with. What a cell holds from one unguarded write to the next
    is a *value*: a loop variable is two, the one that comes in and the one that goes out. ``read``, ``written``: values
    by node; ``kind``: the file of every value; ``scarce``: nodes that make values of other files than R; ``live``,
    ``live_out``: live values at the start and at the end. ``left``: how many nodes read a value, and one more if it is
    live at the end; ``last``: the sum of their numbers, which is the last reader's once it is the only one.
    ``starts``: R values that a node begins, -1 where that depends on the order. ``keys``: numbers in the order in which
    nodes are wanted, the best one highest, with the node in the low bits (:meth:`node_of`)."""

    __slots__ = (
        "bits",
        "graph",
        "height",
        "insts",
        "interval",
        "keys",
        "kind",
        "last",
        "left",
        "live",
        "live_out",
        "mask",
        "read",
        "scarce",
        "starts",
        "undefined",
        "written",
    )

    def __init__(
        self,
        insts: list[Inst],
        cells: tuple[list[list[int]], list[list[int]]],
        interval: list[int],
        graph: Graph,
        ends: tuple[set[int], set[int]],
        file: list[str],
    ) -> None:
        """``cells``: read and written by each instruction; ``ends``: live at the start and at the end; ``file``: of
        each cell."""
        self.insts = insts
        self.interval = interval
        self.graph = graph
        self.height = graph.critical_paths()
        count = len(insts)
        kinds = {name: n for n, name in enumerate(_FILES)}
        kind: list[int] = []
        now: dict[int, int] = {}  # cell -> the value in it

        def value(cell: int) -> int:
            now[cell] = new = len(kind)
            kind.append(kinds[file[cell]])
            return new

        coming = [value(c) for c in sorted(ends[0])]
        self.read: list[list[int]] = []  # without repetitions
        self.written: list[list[int]] = []
        made = set(coming)  # values that are alive by the time that a guarded write adds to them, or read no more
        begun: list[list[int] | None] = []  # by node: values that it begins, None where that depends on the order
        self.undefined = bytearray(count)
        for node, (inst, reads, writes) in enumerate(zip(insts, *cells, strict=True)):
            read = [now[c] if c in now else value(c) for c in reads]
            self.read.append(read if len(read) < 2 else list(dict.fromkeys(read)))
            if is_guarded(inst):
                old = {now[c] for c in writes if c in now}
                self.written.append([now[c] if c in now else value(c) for c in writes])
                begun.append([v for v in self.written[node] if v not in old] if old <= made else None)
                continue
            written = [value(c) for c in writes]
            self.written.append(written)
            begun.append(written)
            if inst.op == "UNDEF":
                self.undefined[node] = 1
            else:
                made.update(written)
        self.live_out = {now[c] if c in now else value(c) for c in sorted(ends[1])}
        self.kind = bytes(kind)
        self.left = left = [0] * len(kind)
        self.last = last = [0] * len(kind)
        for node, read in enumerate(self.read):
            for v in read:
                left[v] += 1
                last[v] += node
        for v in self.live_out:
            left[v] += 1
            last[v] += count
        self.live = [v for v in coming if left[v]]
        self.scarce = bytearray([any([kind[v] and left[v] for v in values]) for values in self.written])
        self.starts = [-1 if values is None else sum([not kind[v] and left[v] > 0 for v in values]) for values in begun]
        self.bits = count.bit_length()
        self.mask = (1 << self.bits) - 1
        self.keys = [(height + 1 << self.bits) - 1 - node for node, height in enumerate(self.height)]

    def peak(self) -> int:
        """The most live R values at once in the order of the program."""
        kind, count = self.kind, len(self.insts)
        last = [-1] * len(kind)
        for node, read in enumerate(self.read):
            for v in read:
                last[v] = node
        for v in self.live_out:
            last[v] = count
        change = [0] * (count + 1)
        alive = 0
        live = set(self.live)
        for v in self.live:
            if not kind[v]:
                alive += 1
                change[last[v]] -= 1
        for node, written in enumerate(self.written):
            for v in written:
                if last[v] > node and not kind[v] and v not in live:
                    change[node] += 1
                    change[last[v]] -= 1
                    last[v] = -1  # a guarded write adds to the value
        return max(accumulate(change, initial=alive))


class _Pressure:
    """Live values per file (as in :data:`_FILES`) while a block is put together. ``over``: in how many files there are
    more than the limits say; ``ends``: by node, the live R values that nothing else still reads."""

    __slots__ = ("_body", "_last", "_limits", "alive", "ends", "left", "live", "over")

    def __init__(self, body: Body, room: int) -> None:
        kind = body.kind
        self._body = body
        self._limits = (room, *_LIMITS)
        self.left = body.left.copy()
        self._last = body.last.copy()
        self.live = bytearray(len(kind))
        self.alive = [0] * len(_FILES)
        self.ends = [0] * (len(body.insts) + 1)  # the last for what is live at the end
        for v in body.live:
            self.live[v] = 1
            self.alive[kind[v]] += 1
            if body.left[v] == 1 and not kind[v]:
                self.ends[body.last[v]] += 1
        self.over = sum([n > most for n, most in zip(self.alive, self._limits, strict=True)])

    def begins(self, node: int) -> int:
        """The R values that an instruction would start, where that depends on the order."""
        live, left, kind = self.live, self.left, self._body.kind
        return sum([not kind[v] and not live[v] and left[v] > 0 for v in self._body.written[node]])

    def issue(self, node: int) -> None:
        """The instruction comes next."""
        body, live, all_left, all_last = self._body, self.live, self.left, self._last
        kind = body.kind
        for v in body.read[node]:
            left = all_left[v] = all_left[v] - 1
            last = all_last[v] = all_last[v] - node
            if live[v]:
                if not left:
                    live[v] = 0
                    k = kind[v]
                    if self.alive[k] == self._limits[k] + 1:
                        self.over -= 1
                    self.alive[k] -= 1
                elif left == 1 and not kind[v]:
                    self.ends[last] += 1
        for v in body.written[node]:
            if not live[v] and all_left[v] and not body.undefined[node]:
                live[v] = 1
                k = kind[v]
                if self.alive[k] == self._limits[k]:
                    self.over += 1
                self.alive[k] += 1
                if all_left[v] == 1 and not k:
                    self.ends[all_last[v]] += 1


class _Tight:
    """Which of the instructions that may come next frees registers: a heap by the change in live R values. Made when
    registers first run short. Where none does, what the first memory access or other instruction with an effect needs
    comes next, so that addresses are computed just in time.

    ``delta[n]``: values that n starts minus those that nothing but n still reads. Entries go stale when a value loses
    its other readers; the newer entry precedes them."""

    __slots__ = ("_cells", "_done", "_due", "_heap", "_left", "_sum", "_when", "delta")

    def __init__(self, body: Body, done: bytearray, ready: list[int], live: bytearray) -> None:
        insts, kind, live_out, succs = body.insts, body.kind, body.live_out, body.graph.succs
        self._done = done
        self._left: dict[int, int] = {}  # cell -> how many instructions still read it
        self._sum: dict[int, int] = {}  # and the sum of their numbers: the number itself when one is left
        self._cells: list[list[int]] = []
        self.delta: list[int] = []
        for node, inst in enumerate(insts):
            if done[node]:
                self._cells.append([])
                self.delta.append(0)
                continue
            reads = [v for v in body.read[node] if not kind[v]]
            self._cells.append(sorted(reads))
            begun = {v for v in body.written[node] if not kind[v] and not live[v]}
            self.delta.append(0 if inst.op == "UNDEF" else len(begun))
            for v in reads:
                if v not in live_out:
                    self._left[v] = self._left.get(v, 0) + 1
                    self._sum[v] = self._sum.get(v, 0) + node
        for v, n in self._left.items():
            if n == 1:
                self.delta[self._sum[v]] -= 1
        self._when = list(range(len(insts)))  # the first instruction with an effect that needs it
        for node in range(len(insts) - 1, -1, -1):
            if succs[node] and (insts[node].op in _NEAR or is_pure(insts[node])):
                self._when[node] = min([self._when[later] for later, _ in succs[node]])
        self._heap = [(self.delta[n], n) for n in ready if not done[n]]
        self._due = [(self._when[n], n) for n in ready if not done[n]]
        heapq.heapify(self._heap)
        heapq.heapify(self._due)

    def push(self, node: int) -> None:
        """The instruction may come next."""
        heapq.heappush(self._heap, (self.delta[node], node))
        heapq.heappush(self._due, (self._when[node], node))

    def issue(self, node: int, waits: list[int]) -> None:
        """The instruction comes next. ``waits``: by node, what it still waits for."""
        for c in self._cells[node]:
            n = self._left.get(c, 0)
            if n:
                self._left[c] = n - 1
                self._sum[c] -= node
                if n == 2:
                    last = self._sum[c]
                    self.delta[last] -= 1
                    if not waits[last]:
                        self.push(last)

    def best(self) -> int:
        """The instruction that frees most, or the one that is due first where none frees any."""
        heap, due = self._heap, self._due
        while heap and (self._done[heap[0][1]] or heap[0][0] != self.delta[heap[0][1]]):
            heapq.heappop(heap)
        if heap and heap[0][0] <= 0:
            return heapq.heappop(heap)[1]
        while self._done[due[0][1]]:
            heapq.heappop(due)
        return due[0][1]


def fastest(body: Body, low: int, room: int, tight: int) -> Trial:
    """The faster of the orders for ``low`` and for ``room`` registers, as long as not more are in use than the latter
    says; the one for fewer where both take as long."""
    high = fitting(body, room, tight, NEVER)
    if low == room:
        return high
    assert not high.late
    small = fitting(body, low, tight, high.end if high.peak <= room else NEVER)
    if small.late or (high.end < small.end and high.peak <= max(small.peak, room)):
        return high
    return small


def fitting(body: Body, room: int, tight: int, until: int) -> Trial:
    """The order for this many registers. Where it needs more registers than there are, another try begins to save them
    earlier; the order that needs the fewest is kept. It is given up where it takes more than ``until`` cycles."""
    found: Trial | None = None
    peak, least = 1 << 30, 0
    for start in (tight, (tight + room) // 2, room):
        got = _order(body, room, start, peak, until)
        if got is not None:
            if got.late:
                return got
            found = got
            peak, least = got.peak, got.least
        if peak <= max(least, tight + TIGHT - _SPARE):
            break
    assert found is not None
    return found


class _Front:
    """What may come next: ``coming`` by the cycle from which on it may, ``ready`` and ``makers`` (what makes values of
    the scarce files) by what is wanted, the best last. What is done leaves them when it is met."""

    __slots__ = ("_body", "_done", "_shift", "coming", "makers", "ready")

    def __init__(self, body: Body, done: bytearray, first: list[int]) -> None:
        self._body = body
        self._done = done
        self.coming = [body.graph.begin[n] << body.bits | n for n in first]  # cycle << bits | node
        heapq.heapify(self.coming)
        self.ready: list[int] = []
        self.makers: list[int] = []

    def at(self, now: int) -> list[int]:
        """``ready``, once what may come now has left ``coming``."""
        body, coming, ready, done = self._body, self.coming, self.ready, self._done
        mask, keys, scarce = body.mask, body.keys, body.scarce
        most = now << body.bits | mask
        while coming and coming[0] <= most:
            node = heapq.heappop(coming) & mask
            if not done[node]:
                insort(self.makers if scarce[node] else ready, keys[node])
        while ready and done[mask - (ready[-1] & mask)]:
            ready.pop()
        return ready

    def best(self, now: int) -> list[int]:
        """``ready`` or ``makers``: the one whose last is the best; empty where both are."""
        ready, makers, done, mask = self.at(now), self.makers, self._done, self._body.mask
        while makers and done[mask - (makers[-1] & mask)]:
            makers.pop()
        return makers if makers and (not ready or makers[-1] > ready[-1]) else ready

    def modest(self, some: list[int], pressure: _Pressure, room: int) -> int:
        """The foremost instruction if there is room for the R values that it makes and does not end, or the first one
        behind it that needs no room: that is kept for the foremost. It is taken out. -1 if there is none."""
        body, done = self._body, self._done
        mask, starts, ends = body.mask, body.starts, pressure.ends
        seen, at = 0, len(some) - 1
        while at >= 0 and seen < _FOREMOST:
            node = mask - (some[at] & mask)
            if done[node]:
                del some[at]
            else:
                begun = starts[node]
                if (begun if begun >= 0 else pressure.begins(node)) - ends[node] <= room:
                    del some[at]
                    return node
                seen += 1
                room = 0
            at -= 1
        return -1


def _order(body: Body, room: int, tight: int, most: int, until: int) -> Trial | None:
    """One trial. None where it needs ``most`` or more registers."""
    interval, height, succs, mask, bits = body.interval, body.height, body.graph.succs, body.mask, body.bits
    count = len(interval)
    waits = body.graph.waits[:]
    earliest = body.graph.begin[:]
    pressure = _Pressure(body, room)
    alive = pressure.alive
    done = bytearray(count)
    first = [n for n in range(count) if not waits[n]]  # whatever may come next, in program order
    front = _Front(body, done, first)
    coming = front.coming
    out: list[int] = []
    now = 0
    rest = sum(interval)  # cycles that what is left takes at least
    short: _Tight | None = None
    before = peak = alive[0]
    while len(out) < count:
        node = -1
        if pressure.over:
            if alive[0] > tight:
                if short is None:
                    short = _Tight(body, done, first, pressure.live)
                node = short.best()
            else:
                node = front.modest(front.at(now), pressure, max(0, room - alive[0]))
                if node < 0 and coming and not done[first[0]] and now < coming[0] >> bits < earliest[first[0]]:
                    now = coming[0] >> bits  # what is ready before the next of the program may be more modest
                    continue
        else:
            some = front.best(now)
            if not some:
                now = max(now + 1, coming[0] >> bits)
                continue
            left = room - alive[0]
            node = mask - (some.pop() & mask) if left >= _WIDEST else front.modest(some, pressure, left)
        if node < 0:
            node = heapq.heappop(first)
        if done[node]:
            continue
        if earliest[node] > now:
            now = earliest[node]
        if now + height[node] >= until or now + rest > until:
            return _LATE
        done[node] = 1
        out.append(node)
        pressure.issue(node)
        if alive[0] > peak:
            peak = alive[0]
            if peak >= most:
                return None
        if short is not None:
            short.issue(node, waits)
        for later, cycles in succs[node]:
            if now + cycles > earliest[later]:
                earliest[later] = now + cycles
            waits[later] -= 1
            if not waits[later]:
                heapq.heappush(coming, max(earliest[later], now + 1) << bits | later)
                heapq.heappush(first, later)
                if short is not None:
                    short.push(later)
        now += interval[node]
        rest -= interval[node]
    return Trial(out, peak, max(before, alive[0]), now)
