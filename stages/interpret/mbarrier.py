"""mbarrier objects: counts are kept outside memory, whose contents are opaque to programs anyway."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ir_format.ptx import Addr, Imm, Reg, Sink
from stages.interpret.code import Action, Code, Step, address, get, put, space_of
from stages.interpret.loads import resolve
from stages.interpret.machine import InterpreterError, Machine
from stages.interpret.rows import U64, Arr, Unsupported


@dataclass(slots=True)
class State:
    """Arrivals expected in each phase, and those still pending in this one; bytes still to arrive; the number of the
    phase; the layout that `init` asked for."""

    expected: int
    pending: int
    tx: int = 0
    phase: int = 0
    layout: int = 0

    def advance(self) -> None:
        """Begin the next phase if this one is complete."""
        if self.pending == 0 and self.tx == 0:
            self.phase += 1
            self.pending = self.expected


def mbarrier(code: Code, step: Step, pc: int) -> Action:
    """mbarrier.*"""
    inst = step.inst
    what = inst.mods[0]
    operands = list(inst.operands)
    dest: Any = None
    if what == "pending_count":
        read = get(code, step.function, operands[1])
        to = put(code.functions[step.function], operands[0])

        def pending(m: Machine) -> int | None:
            to(m, read(m) >> U64(32))
            return None

        return pending
    if not isinstance(operands[0], Addr):
        dest = operands.pop(0)
    at = operands.pop(0)
    if not isinstance(at, Addr):
        raise Unsupported(inst.opcode)
    where = address(code, step.function, at)
    space = space_of(code, step.function, at, inst)
    extra = [get(code, step.function, x) for x in operands if isinstance(x, (Reg, Imm))]
    out = put(code.functions[step.function], dest) if dest is not None and not isinstance(dest, Sink) else None
    expect = inst.has("expect_tx")
    parity = inst.has("parity")

    def run(m: Machine) -> int | None:
        threads = m.all[m.act]
        off = np.zeros(len(threads), np.int64)
        for memory, offsets, which in resolve(m, space, where(m), 8, "mbarrier", threads):
            if memory is not m.shared:
                raise Unsupported("an mbarrier outside of shared memory")
            off[which] = offsets
        values = [np.broadcast_to(x(m), threads.shape) for x in extra]
        results = np.zeros(len(threads), U64)
        for k in range(len(threads)):
            results[k] = _one(m, step, what, int(off[k]), [int(v[k]) for v in values], expect, parity)
        if what in ("test_wait", "try_wait") and not results.all():
            m.vain = True
        if out is not None:
            out(m, results)
        return None

    return run


def _one(m: Machine, step: Step, what: str, at: int, values: list[int], expect: bool, parity: bool) -> int:
    inst = step.inst
    if what == "init":
        m.barriers[at] = State(values[0], values[0], layout=int(inst.has("layout::v1")))
        return 0
    state: State | None = m.barriers.get(at)
    if state is None:
        raise InterpreterError("undefined", "an mbarrier that was not initialised", inst.line, inst.opcode)
    if what == "check_layout":
        return int(state.layout == inst.has("layout::v1"))
    if what == "inval":
        del m.barriers[at]
        return 0
    if what in ("arrive", "arrive_drop"):
        token: int = state.phase | state.pending << 32
        count = 1
        if expect and values:
            state.tx += values.pop()
        elif values:
            count = values[0]
        if count > state.pending:
            raise InterpreterError("undefined", "more arrivals than an mbarrier expects", inst.line, inst.opcode)
        state.pending -= count
        if what == "arrive_drop":
            state.expected -= count
        state.advance()
        return token
    if what == "expect_tx":
        state.tx += values[0]
        return 0
    if what == "complete_tx":
        state.tx -= values[0]
        state.advance()
        return 0
    if what in ("test_wait", "try_wait"):
        if parity:
            return int(state.phase % 2 != values[0] % 2)
        return int(state.phase != values[0] & 0xFFFFFFFF)
    raise Unsupported(inst.opcode)


__all__ = ["Arr", "State", "mbarrier"]
