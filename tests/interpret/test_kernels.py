"""The interpreter against the numpy references of all test kernels."""

from __future__ import annotations

import pytest

from stages.interpret.launch import Module
from tests.kernels.model import KernelSpec, check
from tests.kernels.run import SETS, prepare, ptx_for, run_launch

SPECS = [pytest.param(spec, id=name) for name, spec in SETS["all"].items()]
ARCH = "90"


def judge(spec: KernelSpec, arch: str) -> list[str]:
    """Everything wrong with a kernel's launches."""
    module = Module(ptx_for(spec, arch).read_text(), f"sm_{arch}")
    lines: list[str] = []
    for launch in spec.launches(0):
        lines += [f"{launch.label}: {line}" for line in run_launch(module, launch)[0]]
    return lines


@pytest.mark.parametrize("spec", SPECS)
def test_reference(spec: KernelSpec) -> None:
    """The PTX computes what the reference computes."""
    assert judge(spec, ARCH if spec.min_sm <= int(ARCH) else str(spec.min_sm)) == []


@pytest.mark.parametrize("name", ["vadd", "scan", "histogram", "call_twice", "switch10", "reduce_sum"])
def test_warps_in_any_order(name: str) -> None:
    """Kernels without races give the same when warps run one by one in a random order."""
    spec = SETS["main"][name]
    module = Module(ptx_for(spec, "80").read_text(), "sm_80")
    for launch in spec.launches(0)[:2]:
        memory, args = prepare(module, launch)
        module.launch(launch.entry, launch.grid, launch.block, args, shared=launch.shared, shuffled=1, seed=3)
        assert (
            check(launch, memory, {n: module.get_global(n, w.values.dtype) for n, w in launch.expect_globals.items()})
            == []
        )
