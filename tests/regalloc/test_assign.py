"""What is taken of registers and stack slots, against sets of points."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from stages.regalloc import assign
from stages.regalloc.assign import NO_LIMIT, Bank, masks_of
from stages.regalloc.coalescing import Group

_POINTS = 9000  # more than two rows


def _group(chance: random.Random, file: str) -> Group:
    width = chance.choice((1, 1, 2, 4))
    group = Group(file, 0, width, chance.choice((1, width)) if width != 4 else 4, -1, 1.0)
    for _ in range(width):
        start = chance.randrange(_POINTS - 1)
        stop = min(_POINTS, start + chance.choice((1, 2, 9, 300, 6000)))
        more = stop + chance.randrange(1, 40)
        group.segs.append([(start, stop), (more, more + 5)] if more + 5 < _POINTS else [(start, stop)])
    group.masks = [masks_of(segs) for segs in group.segs]
    return group


def _points(segs: list[tuple[int, int]]) -> set[int]:
    return {p for low, high in segs for p in range(low, high)}


@pytest.mark.parametrize(("file", "chunk"), [("R", 32), ("M", 32), ("M", 4)])
def test_each_group_takes_the_first_base_that_is_free(file: str, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assign, "_CHUNK", chunk)  # stack slots that are refused together
    chance = random.Random(1)
    registers = [r for r in range(40) if r != 1] if file == "R" else range(1 << 20)
    bank = Bank(file, registers, _POINTS)
    taken: dict[int, set[int]] = {}
    failed = 0
    for _ in range(120):
        group = _group(chance, file)
        wanted = [_points(segs) for segs in group.segs]
        base = next(
            (
                b
                for b in range(0, 300, group.align)
                if all(b + n in registers and not taken.get(b + n, set()) & want for n, want in enumerate(wanted))
            ),
            -1,
        )
        assert bank.place(group, (), NO_LIMIT) == (base >= 0)
        failed += base < 0
        if base >= 0:
            assert group.base == base
            for n, want in enumerate(wanted):
                taken.setdefault(base + n, set()).update(want)
    assert failed if file == "R" else not failed


def test_a_group_that_ends_behind_the_limit_is_not_placed() -> None:
    group = _group(random.Random(2), "R")
    assert not Bank("R", range(8, 40), _POINTS).place(group, (), 8)
    assert Bank("R", range(8, 40), _POINTS).place(group, (), NO_LIMIT)


def test_slots_of_nested_ranges_are_not_compared_in_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Barriers of nested conditions: each range lies in the one before, so each takes a new slot."""
    compared = 0

    def fits(self: Bank, group: Group, order: Sequence[int]) -> int:
        nonlocal compared
        compared += len(order)
        return real(self, group, order)

    real = Bank._first
    monkeypatch.setattr(Bank, "_first", fits)
    bank = Bank("M", range(1 << 20), 4000)
    for n in range(600):
        group = Group("M", 0, 1, 1, -1, 1.0)
        group.segs.append([(n, 4000 - n)])
        group.masks = [masks_of(group.segs[0])]
        assert bank.place(group, (), NO_LIMIT)
        assert group.base == n
    assert compared < 600 * 70
