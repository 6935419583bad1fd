"""Random functions, compiled both ways, linked and run: values as computed in Python."""

from __future__ import annotations

import pytest

from tests import oracle
from tests.fuzz.functions import inputs, program
from tests.fuzz.links import check


@pytest.mark.parametrize(("seed", "arch", "level"), [(2, "90", 3), (3, "120", 1), (8, "75", 3)])
def test_whole_programs(seed: int, arch: str, level: int) -> None:
    assert check(seed, arch, level, ["whole"]) == []


@pytest.mark.oracle
@pytest.mark.parametrize(("seed", "arch", "level"), [(1, "80", 3), (6, "75", 0), (31009, "120", 2)])
def test_objects_of_both_compilers(seed: int, arch: str, level: int) -> None:
    """31009: a 16-byte aligned argument on the stack of a function whose caller aligns to 8."""
    oracle.require("ptxas", "nvlink")
    assert check(seed, arch, level, ["mixed"]) == []


def test_same_seed_same_program() -> None:
    a, b = program(7), program(7)
    assert (a.files, a.whole, a.expected(inputs(7))) == (b.files, b.whole, b.expected(inputs(7)))
