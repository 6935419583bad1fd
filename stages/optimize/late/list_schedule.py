"""List scheduling before register allocation: long latencies start early, as far as register pressure allows.

The scheduler after the allocator cannot move an instruction over one that uses its register, so loads are moved while
registers are still virtual. Pre: a function at level `ori`. Post: the same instructions, with every dependence kept.

The limit on live values is the number of registers that cost no resident warps (occupancy), or the number that the next
step of the register file allows (:mod:`register_steps`); :mod:`order_trials` orders a block for one limit.
"""

from __future__ import annotations

from collections.abc import Iterable

from ir_format.diag import CompileError
from ir_format.flow import Cells, is_terminator, loop_depths, read_regs, written_regs
from ir_format.hazards import Hazards, hazards
from ir_format.hazards.load import pipes
from ir_format.isa import facts
from ir_format.model import ZERO, Block, Const, Function, Inst, Reg
from ir_format.target import STACK_REG
from ir_format.typed import Final
from stages.analysis.dependences import UNDER_WAY_TAIL, as_allowed, build_graph, is_wall, under_way
from stages.optimize.analyses import Analyses
from stages.optimize.late.order_trials import TIGHT, Body, fastest, fitting
from stages.optimize.late.register_steps import Choice, Order, best_step, issue_cycles, register_steps, within
from stages.optimize.values import PURE, is_pure

#: Registers below a step that values do not fill: vectors must be aligned, R1 is taken (guessed).
_MARGIN: Final = 4
#: Registers that what the program needs in its own order stays below a step (guessed).
_NEED: Final = 2
#: Above this steplive values do not grow beyond what the program's own order needs (by trials: tiles of Triton's).
_WIDE: Final = 80
#: Registers that stay free below the limit, and that part of it: vectors need aligned places between others (tiles of
#: 128 accumulators were spilled with 12 of 255 free, with 15 none was).
_SPARE: Final = 8
_SPARE_PART: Final = 12
_PSEUDO: Final = {"COPY": ("alu", 2, 4), "PCOPY": ("alu", 2, 4), "UNDEF": ("none", 0, 0), "FENTRY": ("none", 0, 0)}
#: Pipes that take turns: each has an interval of 2, together they take an instruction each cycle.
_SHARED: Final = frozenset(("alu", "fma", "uni"))
_LOADS: Final = facts.loads().keys()
#: Results at least so late are worth an early start.
_LONG: Final = 16
#: Nothing moves over these: their order is a protocol of its own.
_STAND: Final = facts.having("protocol")
#: Those of them that pure computations may move after.
_PASSED: Final = (facts.reading("tensor") | facts.writing("tensor")) & facts.having("convergent")
#: Products of matrices in registers: in front of a barrier that follows their loads they free operands (as in ptxas's
#: code); what they move over.
_PRODUCTS: Final = facts.having("latesrc") & facts.with_value("effect", "warp")
_RISING: Final = _PRODUCTS | {"COPY"}
_MEMORY_WALLS: Final = facts.with_value("effect", "order") | facts.of_class("syncs")
#: This many late results are worth an order of their own, or this many instructions in a loop, whose chains then
#: overlap.
_SEVERAL: Final = 2
_CHAINS: Final = 12
#: Registers that chains of a loop without loads may take beyond those that the program's own order needs (guessed).
_APART: Final = 12
#: Steps above the least one that are tried.
_MORE: Final = 1
_LARGE: Final = 4000  # instructions of a block; above, the estimate of pressure is not worth its time


def schedule_blocks(f: Function, a: Analyses) -> bool:
    """The pass."""
    return _function(f, a, hazards(a.ctx.header.target))


def _function(f: Function, a: Analyses, tables: Hazards) -> bool:
    ctx, most = a.ctx, a.counts
    changed = False
    chosen: list[tuple[int, list[tuple[str, int, int]]]] = []
    depth = loop_depths(a.cfg)
    for pos, block in enumerate(f.blocks):
        timing = _timing(block, tables, depth[pos])
        if timing is not None:
            chosen.append((pos, timing))
    if not chosen:
        return False
    live, short = a.live, a.short
    file = live.cells.files
    words = 0
    for cell, bit in live.bit.items():
        if file[cell] == "R":
            words |= 1 << bit
    ends = max((alive & words).bit_count() for alive in (*live.live_in, *live.live_out))
    steps = register_steps(tables.sm)
    choices: list[Choice] = []
    registers = _Registers(f, live.cells)
    after: dict[int, dict[int, int]] = {}  # block -> what is under way at its end
    for pos, timing in chosen:
        block = f.blocks[pos]
        model = _Virtual(block.insts, timing, registers, pos in short)
        coming: dict[int, int] = {}
        for pred in a.cfg.preds[pos]:
            if pred not in after:
                after[pred] = _under_way(f.blocks[pred], tables, live.cells)
            coming.update(after[pred])
        graph = build_graph(block.insts, model, coming)
        ends_of = live.in_cells(pos), live.out_cells(pos)
        body = Body(block.insts, (model.read, model.written), model.interval, graph, ends_of, file)
        late = _late(block.insts, timing) >= _SEVERAL
        choices.append(Choice(_orders(body, steps, ends, most[pos], late), issue_cycles(timing), depth[pos]))
    if not choices:
        return False
    step = best_step(choices, tables.sm)
    for (pos, _), c in zip(chosen, choices):
        order = as_allowed(min(within(c, step), key=lambda o: o.latency).nodes, ctx.allow)
        if order != list(range(len(order))):
            block = f.blocks[pos]
            block.insts = _undefined_late([block.insts[n] for n in order])
            ctx.count("blocks in a new order")
            changed = True
    return changed


def _under_way(block: Block, tables: Hazards, cells: Cells) -> dict[int, int]:
    """The cells that are under way at the end of a block (:func:`under_way`)."""
    last = block.insts[-UNDER_WAY_TAIL:]
    if not any([i.op in _LOADS for i in last]):
        return {}
    known = pipes()

    def spread(regs: Iterable[Reg]) -> list[int]:
        return [c for r in regs for c in range(cells.first(r), cells.first(r) + r.width)]

    late = [known[tables.klass(i)].latency if i.op in _LOADS else 0 for i in last]
    return under_way([spread(read_regs(i)) for i in last], [spread(written_regs(i)) for i in last], late)


def _undefined_late(insts: list[Inst]) -> list[Inst]:
    """UNDEF directly in front of the first that names its register: allocation begins the register's life there, and a
    guarded load that comes much later would hold one for nothing."""
    waiting: dict[int, list[Inst]] = {}  # register -> UNDEFs of it that no instruction has needed yet
    out: list[Inst] = []
    for i in insts:
        if i.op == "UNDEF" and i.guard is None and type(i.dsts[0]) is Reg:
            waiting.setdefault(i.dsts[0].num, []).append(i)
            continue
        if waiting:
            for r in (*written_regs(i), *read_regs(i)):
                if r.num in waiting:
                    out += waiting.pop(r.num)
            if is_terminator(i):
                out += [u for found in waiting.values() for u in found]
                waiting = {}
        out.append(i)
    return out + [u for found in waiting.values() for u in found]


def _orders(body: Body, steps: list[int], ends: int, most: int, late: bool) -> list[Order]:
    """Ways to put a block in order: the one for the registers that it needs or that are free of charge, and where loads
    stay apart for lack of registers, those for some steps more."""
    need = max(ends, body.peak())
    top = most - max(_SPARE, most // _SPARE_PART)
    room = next((n for n in steps if n >= need + _NEED), steps[-1])
    if room > _WIDE:
        room = min(room, need + _MARGIN)
    low = min(steps[0], room if late else need + _APART)
    best = fastest(body, min(low - _MARGIN, top), min(room - _MARGIN, top), most - TIGHT)
    out = [Order(room, best.end, best.nodes)]
    if not late or room > _WIDE:
        return out
    for step in [n for n in steps if n > room][:_MORE]:
        limit = min(step, most) - _MARGIN
        if best.peak < room - 2 * _MARGIN or step > top:
            break
        best = fitting(body, limit, most - TIGHT, out[-1].latency - 1)
        if not best.late and best.peak > limit:  # once more with as much less as it took more
            best = fitting(body, 2 * limit - best.peak, most - TIGHT, out[-1].latency - 1)
        if not best.late and best.end < out[-1].latency and best.peak <= limit:
            out.append(Order(step, best.end, best.nodes))
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


class _Registers:
    """The virtual registers of a function. ``holding``: fixed ones and barriers; ``stack``: stack pointers; ``base``:
    the first cell of each."""

    __slots__ = ("base", "cells", "holding", "stack", "vregs")

    def __init__(self, f: Function, cells: Cells) -> None:
        assert cells.base is not None
        self.vregs = f.vregs
        self.cells = cells
        self.base = cells.base
        self.holding = bytes([v.fixed > 1 or v.file == "B" for v in f.vregs])
        self.stack = {n for n, v in enumerate(f.vregs) if v.fixed == STACK_REG}


class _Virtual:
    """The access model of virtual registers: latencies of :func:`_timing`, for any reader."""

    __slots__ = (
        "_held",
        "_insts",
        "_products",
        "_registers",
        "after",
        "coalesced",
        "interval",
        "late",
        "read",
        "until",
        "written",
    )

    def __init__(
        self, insts: list[Inst], timing: list[tuple[str, int, int]], registers: _Registers, short: bool
    ) -> None:
        self._insts = insts
        self._registers = registers
        self._held = bytearray(len(insts))  # nodes that name a fixed register or a barrier
        self.read: list[list[int]] = []  # cells by node
        self.written: list[list[int]] = []
        stack = registers.stack
        for node, inst in enumerate(insts):
            written = written_regs(inst)
            self.read.append(self._spread(read_regs(inst), node))
            self.written.append(self._spread(written, node) if written else [])
            # R1 moves for a call below what alloca took (not where it is set at the kernel's begin)
            if stack and any([r.num in stack for r in written]) and type(inst.srcs[0]) is not Const:
                self._held[node] = 1
        self.late = [t[2] for t in timing]
        self.interval = [1 if t[0] in _SHARED else max(1, t[1]) for t in timing]
        self.after = self.until = [1] * len(insts)
        self.coalesced = _coalesced(insts, registers.cells, self.written)
        self._products = short and any([i.op in _PRODUCTS for i in insts])

    def _spread(self, regs: Iterable[Reg], node: int) -> list[int]:
        base, holding = self._registers.base, self._registers.holding
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

    def distance(self, writer: int, result: int, reader: int, operand: int) -> int:
        """Never asked: ``late`` says all."""
        raise AssertionError(writer, result, reader, operand)

    def is_wall(self, node: int) -> bool:
        """Walls, protocols, the frame, what names fixed registers or a barrier (BSSY may move)."""
        inst = self._insts[node]
        if inst.op in PURE and not self._held[node] and inst.attrs is None:
            return False  # most instructions
        stands = inst.op == "FENTRY" or inst.op in _STAND or (inst.attrs is not None and "frame" in inst.attrs)
        if stands or is_wall(inst):
            return True
        vregs = self._registers.vregs
        return bool(self._held[node]) and (
            inst.op != "BSSY" or any(vregs[r.num].fixed > 1 for r in (*read_regs(inst), *written_regs(inst)))
        )

    def sinks(self, wall: int, nodes: list[int]) -> list[int]:
        """Pure computations may move after a transfer between registers and tensor memory."""
        if self._insts[wall].op not in _PASSED:
            return []
        insts, held = self._insts, self._held
        return [
            n
            for n in nodes
            if not held[n] and is_pure(insts[n]) and not is_wall(insts[n]) and insts[n].op not in ("R2UR", "UNDEF")
        ]

    def is_passed(self, wall: int) -> bool:
        """Fences and operations on barriers in shared memory stand for the sake of memory alone. Without need nothing
        moves before them: other threads wait for the barrier."""
        return self._products and self._insts[wall].op in _MEMORY_WALLS

    def rises(self, node: int) -> bool:
        """Products of matrices, and the copies of their sums."""
        return self._insts[node].op in _RISING and not self._held[node]

    def first_cell(self, reg: Reg) -> int:
        """The first cell of a register operand."""
        return self._registers.cells.first(reg)


def _coalesced(insts: list[Inst], cells: Cells, written: list[list[int]]) -> dict[tuple[int, int], int]:
    """(node, cell it writes) -> the cell that a later copy in the block hands the value to. Whoever still reads the old
    value of that cell stays before the node, so that both can share a register and the copy disappears."""
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
