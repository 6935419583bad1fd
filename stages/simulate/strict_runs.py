"""Which results cannot be read too early, so that the strict machine may write them at once.

Stall counts are a lower bound on the time between two instructions, and waits only add to it. If on every path from an
instruction each reader comes late enough, or after a wait for its scoreboard, then keeping the result aside shows
nothing: the machine would enter it before the first read. Such an instruction is *safe*. A :class:`Run` is a sequence
of safe instructions with fixed latency, which runs as in the plain machine. An instruction that the analysis cannot
follow (for example, an indirect branch comes before the time has passed) is not safe and takes the slow path. For a
safe instruction both ways give the same result: the slow path is the definition.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

from ir_format.isa import facts
from ir_format.model import INV, ZERO, Reg
from stages.simulate.build import Unsupported
from stages.simulate.control import CONTROL, target_of
from stages.simulate.machine import Fault
from stages.simulate.program import Compiled
from stages.simulate.strict_time import DRAIN, Plan, Row, is_uniform_row
from stages.simulate.timing import latency

#: Control instructions that may continue at the next one.
_FALLS: Final = (
    facts.with_value("ctl", "bsync", "break")
    | facts.of_class("bar")
    | {op for op in facts.with_value("effect", "sync") if op.startswith("UCGABAR")}
    | {"WARPSYNC", "YIELD"}
)
_READERS: Final = (
    "alu",
    "dual",
    "add64",
    "fma",
    "wab",
    "wide",
    "half",
    "halfmma",
    "fp64",
    "mma",
    "xu",
    "mem",
    "uni",
    "guard",
    "branch",
    "gmma",
    "call",
)
#: Most instructions that a search for waits visits.
_REACH: Final = 256
_NONE: Final = 7


class Run:
    """Safe instructions up to ``stop``; ``cycles`` from the issue of the first to that of ``stop``; ``touched``: rows
    read or written."""

    __slots__ = ("cycles", "stop", "touched")

    def __init__(self, stop: int, cycles: int, touched: frozenset[Row]) -> None:
        self.stop = stop
        self.cycles = cycles
        self.touched = touched


@cache
def longest(writer: str, part: int, dual: bool, kind: str, uniform: bool, sm: int) -> int:
    """Cycles after which every reader sees a fixed-latency result."""
    return max(latency(writer, part, dual, reader, kind, uniform, sm) for reader in _READERS)


class Runs:
    """Safe runs of one program; ``plan`` prepares an instruction."""

    def __init__(self, code: Compiled, plan: Callable[[int], Plan], sm: int) -> None:
        self.code = code
        self.plan = plan
        self.sm = sm
        self.known: dict[int, Run | None] = {}

    def find(self, start: int) -> Run | None:
        """The longest run from ``start``, None if the first instruction is not safe."""
        stop = end = start
        cycles = total = 0
        touched: set[Row] = set()
        limit = self.code.segment_end(start)
        while end < limit:
            try:
                plan = self.plan(end)
            except Fault:
                break
            if plan.variable or (end > start and plan.ctl.wait) or not self.safe(plan):
                break
            touched.update(plan.reads, plan.writes)
            if plan.guard_row >= 0:
                touched.add(("P", plan.guard_row))
            end += 1
            total += plan.ctl.stall or DRAIN
            if not plan.reuse or end == limit:  # what the reuse cache holds must not outlive the run
                stop, cycles = end, total
        run = Run(stop, cycles, frozenset(touched)) if stop > start else None
        self.known[start] = run
        return run

    def safe(self, plan: Plan) -> bool:
        """Do all readers see the instruction's result, and are its sources read before they change?"""
        if plan.safe is None:
            try:
                plan.safe = self._waited(plan) if plan.variable else self._distant(plan)
            except (Fault, Unsupported):  # something ahead cannot be prepared: it may never run
                plan.safe = False
        return plan.safe

    def _next(self, plan: Plan) -> tuple[int, ...] | None:
        """Indices of the instructions that can follow; None if not known."""
        inst = plan.inst
        if inst.op not in CONTROL:
            return (plan.pc + 1,)
        certain = all(
            o.num == ZERO and not o.flags & INV
            for o in (inst.guard, *inst.srcs)
            if isinstance(o, Reg) and o.file in ("P", "UP")
        )
        if inst.op == "EXIT":
            return () if certain else (plan.pc + 1,)
        if inst.op in _FALLS:
            return (plan.pc + 1,)
        if inst.op == "BRA":
            target = target_of(self.code.build_of(plan.pc))
            return (target,) if certain and len(inst.srcs) == 1 else (plan.pc + 1, target)
        return None

    def _distant(self, plan: Plan) -> bool:
        """Does every path keep the distance that each reader of a fixed-latency result needs?"""
        if plan.depbar is not None or plan.ctl.wr < _NONE or plan.ctl.rd < _NONE:
            return False
        parts = dict(zip(plan.writes, plan.parts, strict=True))
        if any(("U", plan.slots[i]) in parts for i in plan.reuse):
            return False
        needs = [
            longest(plan.writer, part, plan.dual, row[0], is_uniform_row(row), self.sm) for row, part in parts.items()
        ]
        need = max(needs, default=0)
        best: dict[int, int] = {}
        work = [(plan.pc + 1, plan.ctl.stall or DRAIN)]
        while work:
            index, distance = work.pop()
            if distance >= need or best.get(index, need) <= distance:
                continue
            best[index] = distance
            self.code.segment_end(index)
            other = self.plan(index)
            reads = [(row, other.readers.get(row, other.reader)) for row in other.reads]
            if other.guard_row >= 0:
                reads.append((("P", other.guard_row), "guard"))
            for row, reader in reads:
                part = parts.get(row, -1)
                if part >= 0 and distance < latency(
                    plan.writer, part, plan.dual, reader, row[0], is_uniform_row(row), self.sm
                ):
                    return False
            following = self._next(other)
            if following is None:
                return False
            work += [(i, distance + (other.ctl.stall or DRAIN)) for i in following]
        return True

    def _waited(self, plan: Plan) -> bool:
        """Does every path wait for the instruction's scoreboards before it touches the result or changes a source?"""
        if plan.at_read:
            return False
        writes = frozenset(plan.writes)
        sources = frozenset(plan.late_reads) if plan.late else frozenset()
        work = [(plan.pc + 1, plan.ctl.wr, bool(writes), bool(sources))]
        seen = set(work)
        while work:
            index, board, result, source = work.pop()
            self.code.segment_end(index)
            other = self.plan(index)
            mask = other.ctl.wait
            if other.depbar is not None and not other.depbar[1]:
                mask |= 1 << other.depbar[0]
            if board < _NONE and mask >> board & 1:
                result = source = False
            if plan.ctl.rd < _NONE and mask >> plan.ctl.rd & 1:
                source = False
            if not result and not source:
                continue
            if source and not sources.isdisjoint(other.writes):
                return False
            if result and not (
                writes.isdisjoint(other.reads)
                and writes.isdisjoint(other.writes)
                and ("P", other.guard_row) not in writes
            ):
                return False
            if (
                board == _NONE and plan.pipe and other.pipe == plan.pipe
            ):  # results of one pipe arrive in order: its next scoreboard covers them
                board = other.ctl.wr
            following = self._next(other)
            if following is None:
                return False
            for i in following:
                state = (i, board, result, source)
                if state not in seen:
                    seen.add(state)
                    work.append(state)
            if len(seen) > _REACH:
                return False
        return True
