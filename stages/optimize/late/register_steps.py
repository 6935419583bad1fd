"""How many registers a kernel should have: one model of their cost in occupancy.

Registers are allocated in units, so a kernel's count falls into *steps*; up to a step the same number of warps is
resident. With ``w`` warps per scheduler, a block takes a warp ``max(issue, latency / w)`` cycles of its scheduler:
either the scheduler is busy with the instructions of all warps, or each warp waits for its results. More registers
lower the latency, since more loads are in flight before the first wait, and lower ``w`` too. An SM is not always full
(small grids, ends of grids, barriers), so half of the wait of a warp on a full SM is added. Blocks count as often as
their loops are assumed to run.
"""

from __future__ import annotations

from collections.abc import Sequence

from ir_format.record import NamedTuple
from ir_format.target import REG_CEILING, SM_RESIDENCY
from ir_format.typed import Final
from stages.analysis.register_limits import REGISTERS_PER_SM

_SCHEDULERS: Final = 4
_THREADS: Final = 32
_UNIT: Final = 8  # registers of a thread are given out in these
#: Times that a loop is taken to run, and the most levels of loops that count.
_ROUNDS: Final = 8
_LEVELS: Final = 4
#: A step that is cheaper by less than this part is not worth its registers (guessed: latencies are).
_WORTH: Final = 0.05


class Order(NamedTuple):
    """A way to put a block in order: the step that it needs, and the cycles that a lone warp takes."""

    step: int
    latency: int
    nodes: list[int]


class Choice(NamedTuple):
    """The orders of one block, the least step first; the cycles that its instructions need for issue; loop depth."""

    orders: list[Order]
    issue: int
    depth: int


def register_steps(sm: int) -> list[int]:
    """Register counts from which on fewer warps are resident, beginning with the count that is free of charge: 64 on
    sm_75, 32 on sm_80, 40 on sm_120 (ptxas fills them so too: measured)."""
    file = REGISTERS_PER_SM // _SCHEDULERS // _THREADS
    return sorted({min(REG_CEILING, file // n // _UNIT * _UNIT) for n in range(1, _most(sm) + 1)})


def _most(sm: int) -> int:
    return SM_RESIDENCY.get(sm, (64, 32))[0] // _SCHEDULERS


def resident(sm: int, registers: int) -> int:
    """Warps of each scheduler with this many registers for a thread."""
    return max(1, min(_most(sm), REGISTERS_PER_SM // _SCHEDULERS // _THREADS // (-(-registers // _UNIT) * _UNIT)))


def issue_cycles(timing: Sequence[tuple[str, int, int]]) -> int:
    """Cycles that the instructions of a block need for issue and in their pipes: (pipe, interval, latency) of each."""
    busy: dict[str, int] = {}
    for pipe, interval, _ in timing:
        busy[pipe] = busy.get(pipe, 0) + interval
    return max(len(timing), *busy.values())


def cycles(choices: Sequence[Choice], sm: int, step: int) -> float:
    """Cycles of a scheduler for each warp, with that step."""
    warps, most = resident(sm, step), _most(sm)
    total = 0.0
    for c in choices:
        latency = min([o.latency for o in within(c, step)])
        total += _ROUNDS ** min(c.depth, _LEVELS) * (max(c.issue, latency / warps) + latency / most / 2)
    return total


def within(c: Choice, step: int) -> list[Order]:
    """The orders that fit into a step; the first always does, for the program needs what it needs."""
    return [o for n, o in enumerate(c.orders) if not n or o.step <= step]


def best_step(choices: Sequence[Choice], sm: int) -> int:
    """The step that costs the fewest cycles; the least one unless another is worth its registers."""
    steps = sorted({o.step for c in choices for o in c.orders})
    least = max(c.orders[0].step for c in choices)
    best, found = least, cycles(choices, sm, least)
    for step in steps:
        if step > least:
            now = cycles(choices, sm, step)
            if now < found * (1 - _WORTH):
                best, found = step, now
    return best
