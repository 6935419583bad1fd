"""Order before register allocation: long latencies start early, as far as registers allow.

The scheduler behind the allocator can't move an instruction over one that uses its register: loads are moved while
registers are still virtual. Pre: a function at level `ori`. Post: the same instructions, every dependence kept.

List scheduling by the longest chain of latencies until the values alive reach a limit (the registers that cost no
resident warps), then in program order until there is room. Where registers run out, whatever frees some goes first.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from itertools import accumulate
from typing import Final

from ir_format.diag import CompileError
from ir_format.flow import Cells, is_guarded, loop_depths, read_regs, written_regs
from ir_format.hazards import Hazards, hazards
from ir_format.hazards.load import pipes
from ir_format.isa import facts
from ir_format.model import ZERO, Block, Const, Function, Inst, Reg
from ir_format.target import STACK_REG
from stages.analysis.dependences import Graph, ReadyList, Uses, as_allowed, build_graph, is_wall
from stages.optimize.analyses import Analyses
from stages.optimize.late.register_steps import Choice, Order, best_step, issue_cycles, register_steps, within
from stages.optimize.values import PURE, is_pure

#: Values alive per file up to which order is by latency (guessed; P has 7). R: :mod:`register_steps`.
_LIMITS: Final = {"UR": 24, "P": 4, "UP": 4, "B": 16}
_FILES: Final = ("R", "P", "UR", "UP", "B")
#: Registers below a step that values do not fill: vectors must be aligned, R1 is taken (guessed).
_MARGIN: Final = 4
#: Registers that what the program needs in its own order stays below a step (guessed).
_NEED: Final = 2
#: Above this step values alive do not grow beyond what the program's own order needs (by trials: tiles of Triton's).
_WIDE: Final = 80
#: Registers that stay free below the limit, and that part of it: vectors need aligned places between others (tiles of
#: 128 accumulators were spilled with 12 of 255 free, with 15 none was).
_SPARE: Final = 8
_SPARE_PART: Final = 12
#: Registers below the limit where order is by what frees registers (guessed: vectors need room to be aligned).
_TIGHT: Final = 16
_PSEUDO: Final = {"COPY": ("alu", 2, 4), "PCOPY": ("alu", 2, 4), "UNDEF": ("none", 0, 0), "FENTRY": ("none", 0, 0)}
#: Pipes that take turns: each has an interval of 2, together they take an instruction each cycle.
_SHARED: Final = frozenset(("alu", "fma", "uni"))
#: Results at least so late are worth an early start.
_LONG: Final = 16
#: Loads that come when they are needed where registers are short.
_NEAR: Final = frozenset(op for op, space in facts.loads().items() if space == "shared")
#: Nothing moves over these: their order is a protocol of its own.
_STAND: Final = facts.having("protocol")
#: Those of them that what only computes may come behind.
_PASSED: Final = (facts.reading("tensor") | facts.writing("tensor")) & facts.having("convergent")
#: So many late results are worth an order of their own, or so many instructions in a loop, whose chains then overlap.
_SEVERAL: Final = 2
_CHAINS: Final = 12
#: Registers that chains of a loop without loads may take beyond those that the program's own order needs (guessed).
_APART: Final = 12
#: Steps above the least one that are tried.
_MORE: Final = 1
#: Instructions that are looked at for one that needs no register more.
_FOREMOST: Final = 6
#: Words of a result that many instructions make; where fewer are left, it is looked at what they need.
_WIDEST: Final = 4
_LARGE: Final = 4000  # instructions of a block; above, the estimate of pressure is not worth its time


def schedule_blocks(f: Function, a: Analyses) -> bool:
    """The pass."""
    return _function(f, a, hazards(a.ctx.header.target))


def _function(f: Function, a: Analyses, tables: Hazards) -> bool:
    ctx, most = a.ctx, a.register_limit
    changed = False
    chosen: list[tuple[int, list[tuple[str, int, int]]]] = []
    depth = loop_depths(a.cfg)
    for pos, block in enumerate(f.blocks):
        timing = _timing(block, tables, depth[pos])
        if timing is not None:
            chosen.append((pos, timing))
    if not chosen:
        return False
    live = a.live
    file = live.cells.files
    words = 0
    for cell, bit in live.bit.items():
        if file[cell] == "R":
            words |= 1 << bit
    ends = max((alive & words).bit_count() for alive in (*live.live_in, *live.live_out))
    steps = register_steps(tables.sm)
    choices: list[Choice] = []
    for pos, timing in chosen:
        block = f.blocks[pos]
        model = _Virtual(block.insts, timing, f, live.cells)
        graph = build_graph(block.insts, model)
        body = _Body(block.insts, model, graph, live.in_cells(pos), live.out_cells(pos), file)
        late = _late(block.insts, timing) >= _SEVERAL
        choices.append(Choice(_orders(body, steps, ends, most, late), issue_cycles(timing), depth[pos]))
    if not choices:
        return False
    step = best_step(choices, tables.sm)
    for (pos, _), c in zip(chosen, choices):
        order = as_allowed(min(within(c, step), key=lambda o: o.latency).nodes, ctx.allow)
        if order != list(range(len(order))):
            block = f.blocks[pos]
            block.insts = [block.insts[n] for n in order]
            ctx.count("blocks in a new order")
            changed = True
    return changed


def _orders(body: _Body, steps: list[int], ends: int, most: int, late: bool) -> list[Order]:
    """Ways to put a block in order: the one for the registers that it needs or that are free of charge, and where loads
    stay apart for lack of registers, those for some steps more."""
    need = max(ends, body.peak())
    top = most - max(_SPARE, most // _SPARE_PART)
    room = next((n for n in steps if n >= need + _NEED), steps[-1])
    if room > _WIDE:
        room = min(room, need + _MARGIN)
    low = min(steps[0], room if late else need + _APART)
    nodes, peak, end = _fitting(body, sorted({min(n - _MARGIN, top) for n in (low, room)}), most - _TIGHT)
    out = [Order(room, end, nodes)]
    if not late or room > _WIDE:
        return out
    for step in [n for n in steps if n > room][:_MORE]:
        limit = min(step, most) - _MARGIN
        if peak < room - 2 * _MARGIN or step > top:
            break
        nodes, peak, end = _fitting(body, [limit], most - _TIGHT)
        if end < out[-1].latency and peak <= limit:
            out.append(Order(step, end, nodes))
        room = step
    return out


def _late(insts: list[Inst], timing: list[tuple[str, int, int]]) -> int:
    """How many results of a block come late."""
    return sum([t[2] >= _LONG and bool(i.dsts) for i, t in zip(insts, timing)])


def _timing(block: Block, tables: Hazards, depth: int) -> list[tuple[str, int, int]] | None:
    """(pipe, interval, latency) per instruction; None for a block that stays as it is."""
    insts = block.insts
    if not 4 <= len(insts) <= _LARGE:
        return None
    known = pipes()
    out: list[tuple[str, int, int]] = []
    try:
        for i in insts:
            t = _PSEUDO.get(i.op) or known[tables.klass(i)]
            out.append((t[0], t[1], t[2]))
    except CompileError:
        return None
    return out if _late(insts, out) >= _SEVERAL or (depth and len(insts) >= _CHAINS) else None


class _Virtual:
    """The access model of virtual registers: latencies of :func:`_timing`, whoever reads."""

    __slots__ = (
        "_base",
        "_first",
        "_held",
        "_holding",
        "_insts",
        "_vregs",
        "after",
        "coalesced",
        "interval",
        "late",
        "read",
        "until",
        "written",
    )

    def __init__(self, insts: list[Inst], timing: list[tuple[str, int, int]], f: Function, cells: Cells) -> None:
        self._insts = insts
        self._vregs = f.vregs
        self._first = cells.first
        assert cells.base is not None
        self._base = cells.base
        self._holding = bytes([v.fixed > 1 or v.file == "B" for v in f.vregs])
        self._held = bytearray(len(insts))  # nodes that name a fixed register or a barrier
        self.read: list[list[int]] = []  # cells by node
        self.written: list[list[int]] = []
        stack = {n for n, v in enumerate(f.vregs) if v.fixed == STACK_REG}
        for node, inst in enumerate(insts):
            written = written_regs(inst)
            self.read.append(self._spread(read_regs(inst), node))
            self.written.append(self._spread(written, node))
            # R1 moves for a call below what alloca took (not where it is set at the kernel's begin)
            if stack and any([r.num in stack for r in written]) and type(inst.srcs[0]) is not Const:
                self._held[node] = 1
        self.late = [t[2] for t in timing]
        self.interval = [1 if t[0] in _SHARED else max(1, t[1]) for t in timing]
        self.after = self.until = [1] * len(insts)
        self.coalesced = _coalesced(insts, cells, self.written)

    def _spread(self, regs: Iterable[Reg], node: int) -> list[int]:
        base, holding = self._base, self._holding
        out: list[int] = []
        for r in regs:
            if holding[r.num]:
                self._held[node] = 1
            cell = base[r.num] + r.sub
            if r.width == 1:
                out.append(cell)
            else:
                out += range(cell, cell + r.width)
        return out

    def reads(self, node: int) -> Uses:
        """Cells read."""
        return [(c, "", None) for c in self.read[node]]

    def writes(self, node: int) -> Uses:
        """Cells written."""
        return [(c, "", None) for c in self.written[node]]

    def distance(self, cell: int, name: str, role: str) -> int:
        """Never asked: ``late`` says all."""
        raise AssertionError(cell, name, role)

    def is_wall(self, node: int) -> bool:
        """Walls, protocols, the frame, what names fixed registers or a barrier (BSSY may move)."""
        inst = self._insts[node]
        if inst.op in PURE and not self._held[node] and inst.attrs is None:
            return False  # most instructions
        stands = inst.op == "FENTRY" or inst.op in _STAND or (inst.attrs is not None and "frame" in inst.attrs)
        if stands or is_wall(inst):
            return True
        return bool(self._held[node]) and (
            inst.op != "BSSY" or any(self._vregs[r.num].fixed > 1 for r in (*read_regs(inst), *written_regs(inst)))
        )

    def sinks(self, wall: int, nodes: list[int]) -> list[int]:
        """What only computes may come behind a transfer between registers and tensor memory."""
        if self._insts[wall].op not in _PASSED:
            return []
        insts, held = self._insts, self._held
        return [
            n
            for n in nodes
            if not held[n] and is_pure(insts[n]) and not is_wall(insts[n]) and insts[n].op not in ("R2UR", "UNDEF")
        ]

    def first_cell(self, reg: Reg) -> int:
        """The first cell of a register operand."""
        return self._first(reg)


def _coalesced(insts: list[Inst], cells: Cells, written: list[list[int]]) -> dict[tuple[int, int], int]:
    """(node, cell it writes) -> the cell that a later copy in the block hands the value to. Whoever still reads the old
    value of that cell stays in front of the node, so that both can share a register and the copy vanishes."""
    first = cells.first
    made: dict[int, int] = {}
    out: dict[tuple[int, int], int] = {}
    for node, inst in enumerate(insts):
        if inst.op == "COPY":
            d, s = inst.dsts[0], inst.srcs[0]
            if type(d) is Reg and type(s) is Reg and ZERO not in (d.num, s.num) and d.file == s.file:
                a, b = first(d), first(s)
                for n in range(min(d.width, s.width)):
                    at = made.get(b + n, -1)
                    if at >= 0 and made.get(a + n, -1) < at:
                        out[(at, b + n)] = a + n
        for c in written[node]:
            made[c] = node
    return out


class _Body:
    """A block and what all tries to put it in order begin with. What a cell holds from one unguarded write to the next
    is a *value*: a loop variable is two, the one that comes in and the one that goes out. ``read``, ``written``: values
    by node; ``scarce``: nodes that make values of other files than R; ``file`` of every value; ``uses``: how often it
    is read, and once more if it is alive at the end; ``live``, ``live_out``: values alive at the start and at the
    end."""

    __slots__ = ("file", "graph", "height", "insts", "live", "live_out", "model", "read", "scarce", "uses", "written")

    def __init__(
        self, insts: list[Inst], model: _Virtual, graph: Graph, live_in: set[int], live_out: set[int], file: list[str]
    ) -> None:
        self.insts = insts
        self.model = model
        self.graph = graph
        self.height = graph.critical_paths()
        self.file: list[str] = []
        self.uses: list[int] = []
        now: dict[int, int] = {}  # cell -> the value in it

        def value(cell: int) -> int:
            now[cell] = len(self.uses)
            self.uses.append(0)
            self.file.append(file[cell])
            return now[cell]

        coming = [value(c) for c in sorted(live_in)]
        self.read: list[list[int]] = []
        self.written: list[list[int]] = []
        for node, inst in enumerate(insts):
            read = [now[c] if c in now else value(c) for c in model.read[node]]
            for v in read:
                self.uses[v] += 1
            self.read.append(read)
            same = is_guarded(inst)
            self.written.append([now[c] if same and c in now else value(c) for c in model.written[node]])
        self.live_out = {now[c] if c in now else value(c) for c in sorted(live_out)}
        for v in self.live_out:
            self.uses[v] += 1
        self.live = {v for v in coming if self.uses[v]}
        self.scarce = bytearray(
            any([self.file[v] != "R" and self.uses[v] > 0 for v in values]) for values in self.written
        )

    def peak(self) -> int:
        """The most R values alive at once in the order of the program."""
        file, count = self.file, len(self.insts)
        last = [-1] * len(file)
        for node, read in enumerate(self.read):
            for v in read:
                last[v] = node
        for v in self.live_out:
            last[v] = count
        change = [0] * (count + 1)
        alive = 0
        for v in self.live:
            if file[v] == "R":
                alive += 1
                change[last[v]] -= 1
        for node, written in enumerate(self.written):
            for v in written:
                if last[v] > node and file[v] == "R" and v not in self.live:
                    change[node] += 1
                    change[last[v]] -= 1
                    last[v] = -1  # a guarded write adds to the value
        return max(accumulate(change, initial=alive))


class _Pressure:
    """Values alive per file (as in :data:`_FILES`) while a block is put together. ``over``: in how many files there are
    more than ``limits`` says."""

    __slots__ = ("_body", "_kind", "_limits", "_read", "_uses", "_written", "alive", "live", "over")

    def __init__(self, body: _Body, limits: dict[str, int]) -> None:
        kinds = {name: n for n, name in enumerate(_FILES)}
        self._body = body
        self._read = body.read
        self._written = body.written
        self._kind = bytes([kinds[name] for name in body.file])
        self._limits = [limits[name] for name in _FILES]
        self._uses = body.uses.copy()
        self.live = body.live.copy()
        self.alive = [0] * len(_FILES)
        for c in self.live:
            self.alive[self._kind[c]] += 1
        self.over = sum([n > most for n, most in zip(self.alive, self._limits, strict=True)])

    def grows_within(self, node: int, room: int) -> bool:
        """Whether the R values that the instruction would start, less those that it would end, are at most ``room``."""
        live, uses, kind, read = self.live, self._uses, self._kind, self._read[node]
        grown = 0
        for c in self._written[node]:
            if not kind[c] and c not in live and uses[c] > 0:
                grown += 1
        if grown <= room:
            return True
        for n, c in enumerate(read):
            if not kind[c] and c in live:
                left = uses[c]
                if left == 1 or (left == read.count(c) and c not in read[:n]):
                    grown -= 1
        return grown <= room

    def issue(self, node: int) -> None:
        """The instruction comes next."""
        live, uses, alive, kind, limits = self.live, self._uses, self.alive, self._kind, self._limits
        for c in self._read[node]:
            left = uses[c] - 1
            uses[c] = left
            if not left and c in live:
                live.discard(c)
                k = kind[c]
                if alive[k] == limits[k] + 1:
                    self.over -= 1
                alive[k] -= 1
        for c in self._written[node]:
            if c not in live and uses[c]:
                inst = self._body.insts[node]
                if inst.op != "UNDEF" or is_guarded(inst):
                    live.add(c)
                    k = kind[c]
                    if alive[k] == limits[k]:
                        self.over += 1
                    alive[k] += 1


class _Tight:
    """Which of the instructions that may come next frees registers: a heap by the change in R values alive. Made when
    registers first run short. Where none does, what the first memory access or other instruction with an effect needs
    comes next, so that addresses are computed just in time.

    ``delta[n]``: values that n starts minus those that nothing but n still reads. Entries go stale when a value loses
    its other readers; the newer entry stands before them."""

    __slots__ = ("_cells", "_done", "_due", "_heap", "_left", "_sum", "_when", "delta")

    def __init__(self, body: _Body, done: bytearray, ready: list[int], live: set[int]) -> None:
        insts, file, live_out, succs = body.insts, body.file, body.live_out, body.graph.succs
        self._done = done
        self._left: dict[int, int] = {}  # cell -> how many instructions still read it
        self._sum: dict[int, int] = {}  # and the sum of their numbers: the number itself when one is left
        self._cells: list[tuple[int, ...]] = []
        self.delta: list[int] = []
        for node, inst in enumerate(insts):
            if done[node]:
                self._cells.append(())
                self.delta.append(0)
                continue
            reads = {c for c in body.read[node] if file[c] == "R"}
            writes = {c for c in body.written[node] if file[c] == "R"}
            self._cells.append(tuple(sorted(reads)))
            self.delta.append(0 if inst.op == "UNDEF" else len(writes - live))
            for c in reads - live_out:
                self._left[c] = self._left.get(c, 0) + 1
                self._sum[c] = self._sum.get(c, 0) + node
        for c, n in self._left.items():
            if n == 1:
                self.delta[self._sum[c]] -= 1
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

    def issue(self, node: int, front: ReadyList) -> None:
        """The instruction comes next."""
        for c in self._cells[node]:
            n = self._left.get(c, 0)
            if n:
                self._left[c] = n - 1
                self._sum[c] -= node
                if n == 2:
                    last = self._sum[c]
                    self.delta[last] -= 1
                    if not front.waiting(last):
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


def _fitting(body: _Body, rooms: list[int], tight: int) -> tuple[list[int], int, int]:
    """The new order: the fastest of those by latency as long as not more registers are in use than ``rooms`` says.
    Where it needs more registers than there are, another try begins to save them earlier; the order that needs the
    fewest stands. With it, the most R values alive at once and the cycles of a lone warp."""
    best = list(range(len(body.insts)))
    soonest, fewest = 1 << 60, 1 << 60
    for room in rooms:
        limits = {**_LIMITS, "R": room}
        peak, least = 1 << 30, 0
        for start in (tight, (tight + room) // 2, room):
            got = _order(body, limits, start, peak)
            if got is not None:
                order, peak, least, end = got
            if peak <= max(least, tight + _TIGHT - _SPARE):
                break
        if end < soonest and peak <= max(fewest, room):
            best, soonest, fewest = order, end, peak
    return best, fewest, soonest


def _next_of(
    ready: list[tuple[int, int]],
    coming: list[tuple[int, int]],
    makers: list[tuple[int, int]],
    scarce: bytearray,
    height: list[int],
    done: bytearray,
    now: int,
) -> list[tuple[int, int]]:
    """``ready``, once what may come now has left ``coming`` for it or for ``makers``, and what is done has left it."""
    while coming and coming[0][0] <= now:
        node = heapq.heappop(coming)[1]
        if not done[node]:
            heapq.heappush(makers if scarce[node] else ready, (-height[node], node))
    while ready and done[ready[0][1]]:
        heapq.heappop(ready)
    return ready


def _modest(ready: list[tuple[int, int]], done: bytearray, pressure: _Pressure, room: int) -> int:
    """The first of the foremost instructions that makes no more R values than it ends and there is room for; -1 if
    there is none."""
    found = -1
    aside: list[tuple[int, int]] = []
    while ready and len(aside) < _FOREMOST:
        entry = heapq.heappop(ready)
        if done[entry[1]]:
            continue
        if pressure.grows_within(entry[1], room):
            found = entry[1]
            break
        aside.append(entry)
    for entry in aside:
        heapq.heappush(ready, entry)
    return found


def _order(body: _Body, limits: dict[str, int], tight: int, most: int) -> tuple[list[int], int, int, int] | None:
    """The new order, as indices into the instructions, the most R values alive at once, and how many no order can do
    without: those at the start and at the end. None where it needs ``most`` or more."""
    interval, height = body.model.interval, body.height
    count = len(interval)
    front = ReadyList(body.graph)
    pressure = _Pressure(body, limits)
    earliest = front.earliest
    done = bytearray(count)
    scarce = body.scarce
    coming: list[tuple[int, int]] = [(0, n) for n in front.first()]
    ready: list[tuple[int, int]] = []
    makers: list[tuple[int, int]] = []  # of ``ready``, those that make values of the scarce files
    first = [n for _, n in coming]  # whatever may come next, in program order
    heapq.heapify(coming)
    heapq.heapify(first)
    out: list[int] = []
    now = 0
    short: _Tight | None = None
    alive = pressure.alive
    before = peak = alive[0]
    while len(out) < count:
        if pressure.over:
            if alive[0] > tight:
                if short is None:
                    short = _Tight(body, done, first, pressure.live)
                node = short.best()
            else:
                others = _next_of(ready, coming, makers, scarce, height, done, now)
                node = _modest(others, done, pressure, max(0, limits["R"] - alive[0]))
                if node < 0:
                    node = heapq.heappop(first)
            if done[node]:
                continue
            now = max(now, earliest[node])
        else:
            got = _next_of(ready, coming, makers, scarce, height, done, now)
            while makers and done[makers[0][1]]:
                heapq.heappop(makers)
            if makers and (not got or makers[0] < got[0]):
                got = makers
            if not got:
                now = max(now + 1, coming[0][0])
                continue
            left = limits["R"] - alive[0]
            node = heapq.heappop(got)[1] if left >= _WIDEST else _modest(got, done, pressure, left)
            if node < 0:
                node = heapq.heappop(first)
                if done[node]:
                    continue
                now = max(now, earliest[node])
        done[node] = 1
        out.append(node)
        pressure.issue(node)
        if alive[0] > peak:
            peak = alive[0]
            if peak >= most:
                return None
        if short is not None:
            short.issue(node, front)
        for later in front.release(node, now):
            heapq.heappush(coming, (max(earliest[later], now + 1), later))
            heapq.heappush(first, later)
            if short is not None:
                short.push(later)
        now += interval[node]
    return out, peak, max(before, alive[0]), now
