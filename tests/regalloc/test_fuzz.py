"""Random programs: allocation, then the checker and an execution of both sides must agree.

The default is small. The long mode: ``python -m tests.regalloc.test_fuzz 10000`` (first seed as a second argument).
"""

from __future__ import annotations

import copy
import random
import sys
from collections.abc import Iterable, Iterator

import pytest

from ir_format.model import AttrValue, Header, Unit
from stages.regalloc.allocate import allocate_unit
from stages.regalloc.checker.checker import check_allocation
from tests.regalloc.execute import observe
from tests.regalloc.generate import make_unit
from tests.regalloc.mutate import KINDS
from tests.regalloc.test_kernels import units

LIMITS = (24, 26, 32, 64, 255)
TARGETS = ("sm_80", "sm_90", "sm_120")


def one(seed: int, temporaries: bool = False) -> list[str]:
    """Faults of one program."""
    rnd = random.Random(seed)
    before = make_unit(seed, rnd.choice((15, 40, 80)), temporaries)
    after = copy.deepcopy(before)
    options: dict[str, AttrValue] = {"allocator": rnd.choice(("", "", "", "naive"))}
    allocate_unit(after, Header("ori", rnd.choice(TARGETS)), options, limit=rnd.choice(LIMITS))
    faults = [f.render() for f in check_allocation(before, after)]
    for run in range(2):
        if observe(before, False, run) != observe(after, True, run):
            faults.append(f"execution {run} differs")
    return faults


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_random_programs(first: int) -> None:
    bad = {seed: faults for seed in range(first, first + 50) if (faults := one(seed))}
    assert not bad


def test_temporaries_under_a_guard() -> None:
    bad = {seed: faults for seed in range(60) if (faults := one(seed, True))}
    assert not bad


@pytest.mark.parametrize("seed", [102319, 103892])
def test_programs_that_once_failed(seed: int) -> None:
    """A group that contains spill temporaries had to leave its register."""
    assert not one(seed)


def random_pairs(seeds: range) -> Iterator[tuple[str, Unit, Unit, random.Random]]:
    """Random programs, before and after allocation, with the generator for their faults."""
    for seed in seeds:
        rnd = random.Random(seed)
        before = make_unit(seed, 40, seed % 2 == 1)
        after = copy.deepcopy(before)
        options: dict[str, AttrValue] = {"allocator": rnd.choice(("", "", "naive"))}
        allocate_unit(after, Header("ori", "sm_90"), options, limit=rnd.choice((24, 26, 32, 64)))
        yield f"program {seed}", before, after, rnd


def kernel_pairs(target: str, names: Iterable[str], count: int) -> Iterator[tuple[str, Unit, Unit, random.Random]]:
    """The test kernels, each ``count`` times."""
    for name in names:
        for before in units(name, target, 3):
            for n in range(count):
                rnd = random.Random(f"{target} {name} {n}")
                after = copy.deepcopy(before)
                allocate_unit(after, Header("ori", target), {}, limit=(24, 255)[n % 2])
                yield f"{name} of {target}, number {n}", before, after, rnd


def kill_rate(
    pairs: Iterable[tuple[str, Unit, Unit, random.Random]], runs: int = 4
) -> tuple[dict[str, list[int]], list[str]]:
    """Per kind [made, value changed, killed], and the survivors: mutants that an execution shows to be wrong but the
    checker accepts."""
    table = {kind: [0, 0, 0] for kind in KINDS}
    survivors: list[str] = []
    for name, before, after, rnd in pairs:
        good = [observe(after, True, run) for run in range(runs)]
        for kind, plant in KINDS.items():
            mutant = plant(after, rnd)
            if mutant is None:
                continue
            row = table[kind]
            row[0] += 1
            if any(observe(mutant, True, run) != good[run] for run in range(runs)):
                row[1] += 1
                if check_allocation(before, mutant):
                    row[2] += 1
                else:
                    survivors.append(f"{kind} in {name}")
    return table, survivors


def test_mutants_are_killed() -> None:
    table, survivors = kill_rate(random_pairs(range(5000, 5030)))
    changed = sum(row[1] for row in table.values())
    assert changed > 30
    assert not survivors


def test_mutants_of_kernels_are_killed() -> None:
    table, survivors = kill_rate(kernel_pairs("sm_80", ("matmul", "softmax"), 2), 16)
    assert sum(row[1] for row in table.values()) > 3
    assert not survivors


def test_same_input_same_output() -> None:
    for seed in (3, 17):
        results = []
        for _ in range(2):
            unit = make_unit(seed, 60)
            allocate_unit(unit, Header("ori", "sm_90"), {}, limit=26)
            results.append(repr([(f.regs, f.frame, f.spills, [b.insts for b in f.blocks]) for f in unit.functions]))
        assert results[0] == results[1]


if __name__ == "__main__":
    total = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
    start = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    failed = 0
    for number in range(start, start + total):
        found = one(number, number % 2 == 1)
        if found:
            failed += 1
            print(number, found[:3])
    print(f"{total} programs, {failed} with faults")
    rates, alive = kill_rate(random_pairs(range(start, start + total // 20)))
    for name, (made, changed_, killed) in rates.items():
        print(f"{name:24} made {made:5} value changed {changed_:5} killed {killed:5}")
    print("survivors:", alive or "none")
