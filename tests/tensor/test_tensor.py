"""Products of warpgroups and copies by tensor maps in the simulator and the interpreter, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from ir_format.model import Inst
from stages.simulate.device import Device
from stages.simulate.program import isa_decoder
from tests import oracle
from tests.tensor.cases import KERNELS
from tests.tensor.run import cubin, execute

#: What the suite runs of the kernels: the others take the command (tests.tensor.run).
QUICK = ("gemm_special", "gemm_major", "gemm_split", "attention", "gemm5_f16", "gemm5_major")


@pytest.mark.parametrize("name", QUICK)
def test_our_code(name: str) -> None:
    """Our cubin gives numpy's values in the simulator."""
    file, small, _ = KERNELS[name]
    assert execute(small(np.random.default_rng(1)), file, "ours") == []


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["gemm_bf16", "gemm_tf32", "gemm_special", "gemm5_f16", "gemm5_major"])
def test_code_of_ptxas(name: str) -> None:
    """So does ptxas's: its code uses what is measured of the machine."""
    oracle.require("ptxas")
    file, small, _ = KERNELS[name]
    assert execute(small(np.random.default_rng(2)), file, "ptxas") == []


@pytest.mark.parametrize("name", ["gemm_e4m3", "gemm_s8", "gemm_major", "gemm_split", "gemm5_f16", "gemm5_major"])
def test_interpreter(name: str) -> None:
    """So does the interpreter."""
    file, small, _ = KERNELS[name]
    assert execute(small(np.random.default_rng(3)), file, "interpreter") == []


class _Without:
    """A decoder in which some instructions do nothing."""

    def __init__(self, *names: str) -> None:
        self.names, self.gone, self.decode = names, 0, isa_decoder(90)

    def __call__(self, word: int, address: int) -> Inst:
        inst = self.decode(word, address)
        if ".".join((inst.op, *inst.mods)).startswith(self.names):
            self.gone += 1
            return Inst("NOP", (), (), (), None, inst.line, ctl=inst.ctl)
        return inst


@pytest.mark.parametrize(
    ("name", "without", "seen"),
    [
        ("gemm_split", "WARPGROUP.DEPBAR", "under way, read by"),
        ("gemm_split", "WARPGROUP.ARRIVE", "not handed over to"),
        ("gemm_special", "WARPGROUP.DEPBAR", "under way, read by"),
    ],
)
def test_strict_mode_misses_waits(name: str, without: str, seen: str) -> None:
    """Without a wait for products, or without what hands registers over to them, strict mode says who touches what;
    with them it is silent."""
    file, small, _ = KERNELS[name]
    assert execute(small(np.random.default_rng(4)), file, "ours", True) == []
    decoder = _Without(without)
    case = small(np.random.default_rng(4))
    device = Device(cubin(file, "ours"), decoder)
    stats = device.launch(case.kernel, case.grid, case.block, case.args, shared=case.shared, strict=True, limit=100_000)
    assert decoder.gone and any(seen in x for x in stats.hazards)
