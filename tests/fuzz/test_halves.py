"""A few random kernels of 64-bit values by halves and carry chains: Python integers, our code, ptxas's and the
interpreter agree."""

from __future__ import annotations

import pytest

from tests import oracle
from tests.fuzz import pieces
from tests.fuzz.halves import case, judge


@pytest.mark.parametrize(
    ("seed", "arch", "level"),
    [(3, "sm_75", 3), (14, "sm_80", 1), (22, "sm_90", 3), (35, "sm_100", 2), (41, "sm_120", 3), (6, "sm_80", 0)],
)
def test_ours_and_the_interpreter(seed: int, arch: str, level: int) -> None:
    c = case(seed)
    assert judge(c, "ours", arch, level) == ""
    assert judge(c, "interpreter", arch, level) == ""


@pytest.mark.oracle
@pytest.mark.parametrize(("seed", "arch", "level"), [(3, "sm_120", 3), (22, "sm_75", 3), (35, "sm_90", 0)])
def test_ptxas(seed: int, arch: str, level: int) -> None:
    oracle.require("ptxas")
    assert judge(case(seed), "ptxas", arch, level) == ""


@pytest.mark.parametrize(("seed", "arch", "level"), [(2, "sm_120", 3), (5, "sm_75", 2)])
def test_pieces(seed: int, arch: str, level: int) -> None:
    c = pieces.case(seed)
    assert judge(c, "ours", arch, level) == ""
    assert judge(c, "interpreter", arch, level) == ""


def test_same_seed_same_program() -> None:
    assert case(7).text == case(7).text
