"""Products of warpgroups and copies by tensor maps in the simulator and the interpreter, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from tests import oracle
from tests.tensor.cases import KERNELS
from tests.tensor.run import execute

#: What the suite runs of the kernels: the others take the command (tests.tensor.run).
QUICK = ("gemm_special", "gemm_major", "gemm_split", "attention")


@pytest.mark.parametrize("name", QUICK)
def test_our_code(name: str) -> None:
    """Our cubin gives numpy's values in the simulator."""
    file, small, _ = KERNELS[name]
    assert execute(small(np.random.default_rng(1)), file, "ours") == []


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["gemm_bf16", "gemm_tf32", "gemm_special"])
def test_code_of_ptxas(name: str) -> None:
    """So does ptxas's: its code uses what is measured of the machine."""
    oracle.require("ptxas")
    file, small, _ = KERNELS[name]
    assert execute(small(np.random.default_rng(2)), file, "ptxas") == []


@pytest.mark.parametrize("name", ["gemm_e4m3", "gemm_s8", "gemm_major", "gemm_split"])
def test_interpreter(name: str) -> None:
    """So does the interpreter."""
    file, small, _ = KERNELS[name]
    assert execute(small(np.random.default_rng(3)), file, "interpreter") == []
