"""wmma: whole products against numpy, and bit by bit against ptxas's cubins."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from orchestrator.api import compile_ptx
from stages.simulate import Device
from tests import oracle
from tests.lower import wmma_ptx

SMS = ("75", "80", "90", "120")


@pytest.mark.parametrize("sm", ("75", "120"))
def test_whole_numbers(sm: str) -> None:
    """Sums that are exact in every order of additions."""
    chosen = wmma_ptx.cases(int(sm))[int(sm) % 4 :: 4]
    device = Device(compile_ptx(wmma_ptx.module(sm, chosen), f"sm_{sm}", {}, name="wmma"))
    rng = np.random.default_rng(int(sm))
    for k, case in enumerate(chosen):
        a, b, c = wmma_ptx.operands(case, rng, False)
        got = wmma_ptx.launch(device, case, f"k{k}", a, b, c)
        want = wmma_ptx.image(case, "d", wmma_ptx.expected(case, a, b, c))
        mask = wmma_ptx.element_mask(case)
        assert (got & mask == want & mask).all(), case.name
        if case.space != "shared":
            assert (got | mask == want | mask).all(), f"{case.name}: written beside the matrix"


@pytest.mark.oracle
@pytest.mark.parametrize("sm", SMS)
def test_against_ptxas(sm: str) -> None:
    """Arbitrary numbers: the same bits as ptxas's cubin."""
    oracle.require("ptxas")
    chosen = [c for c in wmma_ptx.cases(int(sm)) if c.at in ("f16", "bf16", "tf32", "f64")][:: 5 if sm != "75" else 4]
    text = wmma_ptx.module(sm, chosen)
    theirs = oracle.compile_ptx(text, sm)
    assert isinstance(theirs, Path), theirs
    devices = [Device(compile_ptx(text, f"sm_{sm}", {}, name="wmma")), Device(theirs.read_bytes())]
    rng = np.random.default_rng(1)
    for k, case in enumerate(chosen):
        a, b, c = wmma_ptx.operands(case, rng, True)
        mine, other = (wmma_ptx.launch(d, case, f"k{k}", a, b, c) for d in devices)
        assert (mine == other).all(), case.name
