"""Registers in use over ranges of points, against sets of points."""

from __future__ import annotations

import random

import pytest

from stages.regalloc.taken import Taken

_POINTS = 700  # more than two pages
_REGISTERS = 6


@pytest.mark.parametrize("seed", range(4))
def test_taken_as_sets_of_points(seed: int) -> None:
    chance = random.Random(seed)
    taken = Taken(_POINTS)
    points: list[set[int]] = [set() for _ in range(_REGISTERS)]
    held: list[tuple[int, list[tuple[int, int]]]] = []
    for _ in range(400):
        start = chance.randrange(_POINTS - 1)
        stop = min(_POINTS, start + chance.choice((1, 2, 9, 40, 300, 600)))
        more = stop + chance.randrange(1, 40)
        segs = [(start, stop), (more, min(_POINTS, more + 5))] if more < _POINTS else [(start, stop)]
        wanted = {p for low, high in segs for p in range(low, high)}
        expected = sum(1 << n for n, mine in enumerate(points) if mine & wanted)
        assert taken.within(segs) == expected
        number = chance.randrange(_REGISTERS)
        if held and chance.random() < 0.45:
            number, segs = held.pop(chance.randrange(len(held)))
            taken.release(number, segs)
            points[number] -= {p for low, high in segs for p in range(low, high)}
        elif not expected >> number & 1:
            taken.take(number, segs)
            points[number] |= wanted
            held.append((number, segs))
