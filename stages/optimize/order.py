"""Order before register allocation: long latencies start early, as far as registers allow.

The allocator gives short-lived values the same few registers, and the scheduler behind it can't move an instruction over one that uses its register. So
loads that stand one by one in front of their users stay there unless they are moved while registers are still virtual. Pre: a function at level `ori`.
Post: the same instructions in every block, in an order that keeps every dependence.

List scheduling by the longest chain of latencies, as in :mod:`stages.schedule.order`, until the values alive reach a limit; from there on in program order, which
uses up what is under way, until there is room again. Where registers are about to run out, whatever frees some goes first. Only blocks with several
results of long latency are touched.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Final

from ir_format.diag import CompileError
from ir_format.flow import Cells, build_cfg, is_guarded, liveness, read_regs, written_regs
from ir_format.hazards import Hazards, hazards
from ir_format.hazards.load import pipes
from ir_format.model import ZERO, Block, Const, Function, Inst, Reg, Unit
from ir_format.target import STACK_REG
from stages.optimize.values import is_pure
from stages.regalloc.limits import register_limit
from stages.runner import Context
from stages.schedule.deps import Front, Graph, Uses, build_graph, is_wall

#: Values alive per file up to which order is by latency (guessed: 32 registers are free of charge on every SM; P has 7).
_LIMITS: Final = {"R": 28, "UR": 24, "P": 4, "UP": 4, "B": 16}
#: Registers that stay free below a limit that directives or options set.
_SPARE: Final = 8
#: Registers below the limit where order is by what frees registers (guessed: vectors need room to be aligned).
_TIGHT: Final = 16
_PSEUDO: Final = {"COPY": ("alu", 2, 4), "PCOPY": ("alu", 2, 4), "UNDEF": ("none", 0, 0), "FENTRY": ("none", 0, 0)}
#: Results at least so late are worth an early start.
_LONG: Final = 16
#: Loads that come when they are needed where registers are short.
_NEAR: Final = frozenset(("LDS", "LDSM"))
#: Nothing moves over these: their order is a protocol of its own.
_STAND: Final = ("WARPGROUP", "HGMMA", "QGMMA", "IGMMA", "BGMMA", "UT", "UBLK", "SYNCS", "USETMAXREG", "UVIRT", "LDTM", "STTM")
_LARGE: Final = 4000  # instructions of a block; above, the estimate of pressure is not worth its time


def order_blocks(unit: Unit, ctx: Context) -> None:
    """The pass."""
    tables = hazards(ctx.header.target)
    limits = dict(_LIMITS)
    most = register_limit(unit, tables.sm, ctx.header.options)
    limits["R"] = min(limits["R"], most - _SPARE)
    for f in unit.functions:
        _function(f, tables, limits, most - _TIGHT, ctx)


def _function(f: Function, tables: Hazards, limits: dict[str, int], tight: int, ctx: Context) -> None:
    chosen: list[tuple[int, list[tuple[str, int, int]]]] = []
    for pos, block in enumerate(f.blocks):
        timing = _timing(block, tables)
        if timing is not None:
            chosen.append((pos, timing))
    if not chosen:
        return
    cfg = build_cfg(f)
    live = liveness(f, cfg)
    for pos, timing in chosen:
        if not ctx.allow():
            return
        block = f.blocks[pos]
        graph = build_graph(block.insts, _Virtual(block.insts, timing, f, live.cells))
        order = _fitting(block.insts, timing, graph, live.in_cells(pos), live.out_cells(pos), live.cells, f, limits, tight)
        if order != list(range(len(order))):
            block.insts = [block.insts[n] for n in order]
            ctx.count("blocks in a new order")


def _timing(block: Block, tables: Hazards) -> list[tuple[str, int, int]] | None:
    """(pipe, interval, latency) per instruction; None for a block that stays as it is."""
    insts = block.insts
    if not 4 <= len(insts) <= _LARGE:
        return None
    known = pipes()
    out: list[tuple[str, int, int]] = []
    late = 0
    try:
        for i in insts:
            t = _PSEUDO.get(i.op) or known[tables.klass(i)]
            out.append((t[0], t[1], t[2]))
            late += t[2] >= _LONG and bool(i.dsts)
    except CompileError:
        return None
    return out if late >= 2 else None


class _Virtual:
    """The access model of virtual registers: latencies of :func:`_timing`, whoever reads."""

    __slots__ = ("_first", "_held", "_insts", "_vregs", "after", "heirs", "late", "until")

    def __init__(self, insts: list[Inst], timing: list[tuple[str, int, int]], f: Function, cells: Cells) -> None:
        self._insts = insts
        self._vregs = f.vregs
        self._first = cells.first
        self._held = False  # whether the node at hand names a fixed register or a barrier
        self.late = [t[2] for t in timing]
        self.after = self.until = [1] * len(insts)
        self.heirs = _heirs(insts, cells)

    def reads(self, node: int) -> Uses:
        """Cells read."""
        self._held = False
        return self._spread(read_regs(self._insts[node]))

    def writes(self, node: int) -> Uses:
        """Cells written."""
        inst = self._insts[node]
        written = written_regs(inst)
        # R1 moves for a call below what alloca took (not where it is set at the kernel's begin)
        if any(self._vregs[r.num].fixed == STACK_REG for r in written) and type(inst.srcs[0]) is not Const:
            self._held = True
        return self._spread(written)

    def _spread(self, regs: Iterable[Reg]) -> Uses:
        first, vregs = self._first, self._vregs
        out: list[tuple[int, str, None]] = []
        for r in regs:
            if vregs[r.num].fixed > 1 or r.file == "B":
                self._held = True
            cell = first(r)
            if r.width == 1:
                out.append((cell, "", None))
            else:
                out += [(c, "", None) for c in range(cell, cell + r.width)]
        return out

    def distance(self, cell: int, name: str, role: str) -> int:
        """Never asked: ``late`` says all."""
        raise AssertionError(cell, name, role)

    def stands(self, node: int) -> bool:
        """Walls, protocols, the frame, what names fixed registers or a barrier (BSSY may move)."""
        inst = self._insts[node]
        if is_wall(inst) or inst.op == "FENTRY" or inst.op.startswith(_STAND) or (inst.attrs is not None and "frame" in inst.attrs):
            return True
        return self._held and (inst.op != "BSSY" or any(self._vregs[r.num].fixed > 1 for r in (*read_regs(inst), *written_regs(inst))))

    def first_cell(self, reg: Reg) -> int:
        """The first cell of a register operand."""
        return self._first(reg)


def _heirs(insts: list[Inst], cells: Cells) -> dict[tuple[int, int], int]:
    """(node, cell it writes) -> the cell that a later copy in the block hands the value to. Whoever still reads the old value of that cell stays in
    front of the node, so that both can share a register and the copy vanishes."""
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
        for r in written_regs(inst):
            cell = first(r)
            for c in range(cell, cell + r.width):
                made[c] = node
    return out


class _Pressure:
    """Values alive per file while a block is put together."""

    __slots__ = ("alive", "file", "first", "live", "limits", "over", "uses")

    def __init__(self, insts: list[Inst], live_in: set[int], live_out: set[int], cells: Cells, f: Function, limits: dict[str, int]) -> None:
        self.file = [f.vregs[v].file for v, _ in cells.owner]
        self.first = cells.first
        self.limits = limits
        self.uses: dict[int, int] = dict.fromkeys(live_out, 1)
        for inst in insts:
            for r in read_regs(inst):
                cell = self.first(r)
                for c in range(cell, cell + r.width):
                    self.uses[c] = self.uses.get(c, 0) + 1
        self.live: set[int] = {c for c in live_in if self.uses.get(c, 0)}
        self.alive = dict.fromkeys(limits, 0)
        for c in self.live:
            self.alive[self.file[c]] += 1
        self.over = any(n > limits[k] for k, n in self.alive.items())

    def issue(self, inst: Inst) -> None:
        """The instruction comes next."""
        live, uses, alive, file = self.live, self.uses, self.alive, self.file
        for r in read_regs(inst):
            cell = self.first(r)
            for c in range(cell, cell + r.width):
                uses[c] -= 1
                if not uses[c] and c in live:
                    live.discard(c)
                    alive[file[c]] -= 1
        for r in written_regs(inst):
            cell = self.first(r)
            for c in range(cell, cell + r.width):
                if c not in live and uses.get(c, 0) and (inst.op != "UNDEF" or is_guarded(inst)):
                    live.add(c)
                    alive[file[c]] += 1
        limits = self.limits
        self.over = alive["R"] > limits["R"] or alive["P"] > limits["P"] or alive["UR"] > limits["UR"] or alive["UP"] > limits["UP"]


class _Tight:
    """Which of the instructions that may come next frees registers: a heap by the change in R values alive. Made when registers first run short. Where none
    does, what the first memory access or other instruction with an effect needs comes next, so that addresses are computed just in time.

    ``delta[n]``: values that n starts minus those that nothing but n still reads. Entries go stale when a value loses its other readers; the newer entry
    stands before them."""

    __slots__ = ("_cells", "_done", "_due", "_heap", "_left", "_sum", "_when", "delta")

    def __init__(self, insts: list[Inst], graph: Graph, done: bytearray, ready: list[int], pressure: _Pressure, live_out: set[int]) -> None:
        self._done = done
        self._left: dict[int, int] = {}  # cell -> how many instructions still read it
        self._sum: dict[int, int] = {}  # and the sum of their numbers: the number itself when one is left
        self._cells: list[tuple[int, ...]] = []
        self.delta: list[int] = []
        first, file = pressure.first, pressure.file
        for node, inst in enumerate(insts):
            if done[node]:
                self._cells.append(())
                self.delta.append(0)
                continue
            reads = {c for r in read_regs(inst) if r.file == "R" for c in range(first(r), first(r) + r.width)}
            writes = {c for r in written_regs(inst) for c in range(first(r), first(r) + r.width) if file[c] == "R"}
            self._cells.append(tuple(sorted(reads)))
            self.delta.append(0 if inst.op == "UNDEF" else len(writes - pressure.live))
            for c in reads - live_out:
                self._left[c] = self._left.get(c, 0) + 1
                self._sum[c] = self._sum.get(c, 0) + node
        for c, n in self._left.items():
            if n == 1:
                self.delta[self._sum[c]] -= 1
        self._when = list(range(len(insts)))  # the first instruction with an effect that needs it
        for node in range(len(insts) - 1, -1, -1):
            if (insts[node].op in _NEAR or is_pure(insts[node])) and graph.succs[node]:
                self._when[node] = min(self._when[later] for later, _ in graph.succs[node])
        self._heap = [(self.delta[n], n) for n in ready if not done[n]]
        self._due = [(self._when[n], n) for n in ready if not done[n]]
        heapq.heapify(self._heap)
        heapq.heapify(self._due)

    def push(self, node: int) -> None:
        """The instruction may come next."""
        heapq.heappush(self._heap, (self.delta[node], node))
        heapq.heappush(self._due, (self._when[node], node))

    def issue(self, node: int, front: Front) -> None:
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


def _fitting(
    insts: list[Inst], timing: list[tuple[str, int, int]], graph: Graph, live_in: set[int], live_out: set[int], cells: Cells, f: Function, limits: dict[str, int], tight: int
) -> list[int]:
    """The new order. Where it needs more registers than there are, another try begins to save them earlier; the order that needs the fewest stands."""
    best: tuple[int, list[int]] | None = None
    for start in (tight, (tight + limits["R"]) // 2, limits["R"]):
        order, peak = _order(insts, timing, graph, live_in, live_out, cells, f, limits, start)
        if best is None or peak < best[0]:
            best = peak, order
        if peak <= tight + _TIGHT - _SPARE:
            break
    assert best is not None
    return best[1]


def _order(
    insts: list[Inst], timing: list[tuple[str, int, int]], graph: Graph, live_in: set[int], live_out: set[int], cells: Cells, f: Function, limits: dict[str, int], tight: int
) -> tuple[list[int], int]:
    """The new order, as indices into ``insts``, and the most R values alive at once."""
    count = len(insts)
    height = graph.heights()
    front = Front(graph)
    pressure = _Pressure(insts, live_in, live_out, cells, f, limits)
    earliest = front.earliest
    done = bytearray(count)
    coming: list[tuple[int, int]] = [(0, n) for n in front.first()]
    ready: list[tuple[int, int]] = []
    first = [n for _, n in coming]  # whatever may come next, in program order
    heapq.heapify(coming)
    heapq.heapify(first)
    out: list[int] = []
    now = 0
    short: _Tight | None = None
    alive = pressure.alive
    peak = alive["R"]
    while len(out) < count:
        if pressure.over:
            if alive["R"] > tight:
                if short is None:
                    short = _Tight(insts, graph, done, first, pressure, live_out)
                node = short.best()
            else:
                node = heapq.heappop(first)
            if done[node]:
                continue
            now = max(now, earliest[node])
        else:
            while coming and coming[0][0] <= now:
                _, node = heapq.heappop(coming)
                if not done[node]:
                    heapq.heappush(ready, (-height[node], node))
            while ready and done[ready[0][1]]:
                heapq.heappop(ready)
            if not ready:
                now = max(now + 1, coming[0][0])
                continue
            node = heapq.heappop(ready)[1]
        done[node] = 1
        out.append(node)
        pressure.issue(insts[node])
        peak = max(peak, alive["R"])
        if short is not None:
            short.issue(node, front)
        for later in front.release(node, now):
            heapq.heappush(coming, (max(earliest[later], now + 1), later))
            heapq.heappush(first, later)
            if short is not None:
                short.push(later)
        now += max(1, timing[node][1])
    return out, peak
