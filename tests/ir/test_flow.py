"""Dataflow over control flow graphs."""

from __future__ import annotations

import signal

from ir_format.flow import solve


def test_positions_that_are_not_in_the_order_stay_as_they_are() -> None:
    """An unreachable block (2) is not solved, though it uses the result of a reachable one (1)."""
    signal.alarm(20)  # it once ran for ever
    try:
        before, after = solve([0, 1], [(), (0, 2), (1,)], [(1,), (2,), (1,)], [1, 2, 4], None)
    finally:
        signal.alarm(0)
    assert before == [0, 5, 0] and after == [1, 7, 4]
