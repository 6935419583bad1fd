"""State of time in the strict machine: pending writes, instructions in flight, the clock of a bundle, prepared
instructions."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ir_format.isa import facts
from ir_format.model import REUSE, ZERO, Ctl, Imm, Inst, Name, Reg
from stages.simulate.build import Build, count, is_uniform
from stages.simulate.control import CONTROL
from stages.simulate.machine import InstFn
from stages.simulate.state import P_SINK, RZ_ROW, UP0, UR0, View, warp_any
from stages.simulate.timing import is_dual, is_memory, is_variable, pipe_of, reader_class, writer_class

Arr = NDArray[Any]
Row = tuple[str, int]
DRAIN = 40  # cycles for a stall count of 0


_READS_AT_ISSUE: Final = facts.having("sreg") | {"LDGDEPBAR", "BMOV"}

#: Modifiers of loads of tensor memory that write the lower and the upper half of a warp's threads.
_HALVES: Final = ("t0_t15", "t16_t31")

_WARPGROUP: Final = facts.having("warpgroup") | {"WARPGROUP"}


class Entry:
    """A pending write: ``values`` for lanes ``mask`` (None = all of the view), issued at ``at``; ``ready`` >= 0 for
    variable latency."""

    __slots__ = ("at", "dual", "mask", "part", "pc", "ready", "values", "writer")

    def __init__(
        self, values: Arr, mask: Arr | None, at: int, ready: int, writer: str, part: int, dual: bool, pc: int
    ) -> None:
        self.values = values
        self.mask = mask
        self.at = at
        self.ready = ready
        self.writer = writer
        self.part = part
        self.dual = dual
        self.pc = pc


class Deferred:
    """A variable-latency instruction that has issued but has not read its registers."""

    __slots__ = ("at", "held", "mask", "plan", "read_at", "ready")

    def __init__(
        self, read_at: int, plan: Plan, mask: Arr | None, at: int, ready: int, held: list[tuple[Arr, Arr]]
    ) -> None:
        self.read_at = read_at
        self.plan = plan
        self.mask = mask
        self.at = at
        self.ready = ready
        self.held = held  # rows read at issue, with the values they had


class Time:
    """The clock of a bundle and everything in flight."""

    __slots__ = ("boards", "clock", "pending", "pipes", "queue", "read_pipe", "reuse")

    def __init__(self) -> None:
        self.clock = 0
        self.pending: dict[Row, list[Entry]] = {}
        self.boards: list[list[int]] = [[] for _ in range(6)]
        self.queue: deque[Deferred] = deque()
        self.pipes: dict[str, int] = {}
        self.read_pipe = 0
        #: slot -> register kept for the next instruction, its values, the instruction if it overwrites that register
        #: (-1)
        self.reuse: dict[int, tuple[int, Arr, int]] = {}

    def hold(self, board: int, until: int) -> None:
        """Add one instruction in flight on a scoreboard."""
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
                # The two sides of a branch carry parts of one older entry: join them again.
                twin = next((x for x in mine if x.pc == e.pc and (uniform or (x.at == at and x.ready == ready))), None)
                if twin is None or twin.mask is None:
                    twin = Entry(
                        np.zeros(target.n, e.values.dtype),
                        np.zeros(target.n, np.bool_),
                        at,
                        ready,
                        e.writer,
                        e.part,
                        e.dual,
                        e.pc,
                    )
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
        "depbar_all",
        "dual",
        "early",
        "guard",
        "guard_row",
        "half",
        "inst",
        "late",
        "late_reads",
        "memory",
        "parts",
        "pc",
        "pipe",
        "reader",
        "readers",
        "reads",
        "reuse",
        "run",
        "safe",
        "slots",
        "uniform",
        "uniform_out",
        "variable",
        "vector_reads",
        "vector_writes",
        "warpgroup",
        "writer",
        "writes",
    )  # fmt: skip

    def __init__(self, build: Build, run: InstFn | None, sm: int, guard: Any) -> None:
        inst = build.inst
        self.pc = build.pc
        self.safe: bool | None = None  # see strict_runs
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
        if inst.op in CONTROL and self.reader != "call":
            self.reader = "branch"
        self.pipe = pipe_of(inst)
        self.dual = is_dual(inst)
        self.reads = list(dict.fromkeys(build.reads))
        # IMAD.WIDE and IMAD.HI take C later than A and B (documented).
        self.readers: dict[Row, str] = {}
        if self.reader == "wide":
            self.readers = {
                ("U", o.num): "wab" for o in inst.srcs[:2] if isinstance(o, Reg) and o.file == "R" and o.num != ZERO
            }
        self.writes = list(dict.fromkeys(build.writes))
        #: for each row written, which register of the result it is (a predicate: 0)
        self.parts = [
            sum(k == "U" for k, _ in self.writes[:n]) if kind == "U" else 0 for n, (kind, _) in enumerate(self.writes)
        ]
        self.uniform_out = any(isinstance(o, Reg) and o.file in ("UR", "UP") and o.num != ZERO for o in inst.dsts)
        # A read scoreboard protects vector registers; predicates and uniform registers are read at issue (measured).
        self.late = (
            self.variable and inst.op not in _READS_AT_ISSUE and any(r[0] == "U" and r[1] < 256 for r in self.reads)
        )
        self.memory = self.variable and is_memory(inst)
        # A load of tensor memory may write half of the warp's threads: 0 the lower, 1 the upper, -1 all.
        self.half = next((n for n, h in enumerate(_HALVES) if any(h in m for m in inst.mods)), -1)
        self.early = [r for r in self.reads if not (r[0] == "U" and r[1] < 256)]
        self.late_reads = [r for r in self.reads if r[0] == "U" and r[1] < 256]
        # The predicate of a generic atomic without a result is known as soon as its address is (measured: the branch
        # waits for the read scoreboard).
        self.at_read = inst.op == "ATOM" and bool(self.writes) and all(kind == "P" for kind, _ in self.writes)
        self.warpgroup = inst.op in _WARPGROUP
        self.vector_reads = [r for kind, r in self.reads if kind == "U" and r < RZ_ROW]
        self.vector_writes = [r for kind, r in self.writes if kind == "U" and r < RZ_ROW]
        self.slots: dict[int, int] = {}
        self.reuse: list[int] = []
        for i, op in enumerate(o for o in inst.srcs if not (isinstance(o, Reg) and o.file in ("P", "UP"))):
            if isinstance(op, Reg) and op.file == "R" and op.num != ZERO and i < 3:
                self.slots[i] = op.num
                if op.flags & REUSE:
                    self.reuse.append(i)
        self.depbar: tuple[int, int] | None = None
        self.depbar_all: tuple[int, ...] = ()  # DEPBAR {5,4,...}: all that these count
        if inst.op == "DEPBAR":
            listed = next((o.name for o in inst.srcs if isinstance(o, Name) and o.name[:1] == "{"), "")
            self.depbar_all = tuple([int(x) for x in listed.strip("{}").split(",") if x])
            board = next((int(o.name[2]) for o in inst.srcs if isinstance(o, Name) and o.name.startswith("SB")), -1)
            least = next((o.value for o in inst.srcs if isinstance(o, Imm)), 0)
            if 0 <= board < 6:
                self.depbar = (board, least)


def half_of(half: int, mask: Arr | None, threads: int) -> Arr:
    """The threads of a mask in one half of each warp."""
    lanes = np.tile(np.repeat([half == 0, half == 1], 16), threads // 32)
    return lanes if mask is None else lanes & mask


def overlap(a: Arr | None, b: Arr | None) -> bool:
    """Do two lane sets (None = all) share a lane?"""
    if a is None or b is None:
        return True
    return bool(count(a & b))


def is_uniform_row(row: Row) -> bool:
    """Does the row belong to the uniform datapath, so that all lanes of a warp share it?"""
    kind, number = row
    return number >= UR0 if kind == "U" else UP0 <= number < P_SINK
