"""The interpreter against the numpy references of all test kernels."""

from __future__ import annotations

import pytest

from stages.interpret.launch import Module
from tests.kernels.model import Array, Buffer, KernelSpec, check
from tests.kernels.run import SETS, ptx_for

SPECS = [pytest.param(spec, id=name) for name, spec in SETS["all"].items()]
ARCH = "90"


def judge(spec: KernelSpec, arch: str) -> list[str]:
    """Everything wrong with a kernel's launches."""
    module = Module(ptx_for(spec, arch).read_text(), f"sm_{arch}")
    lines: list[str] = []
    for launch in spec.launches(0):
        module.reset()
        for name, value in launch.globals.items():
            module.set_global(name, value)
        memory: dict[str, Array] = {name: buffer.data.copy() for name, buffer in launch.buffers().items()}
        args = [memory[a.name] if isinstance(a, Buffer) else a.data for a in launch.args]
        module.launch(launch.entry, launch.grid, launch.block, args, shared=launch.shared)
        symbols = {name: module.get_global(name, want.values.dtype) for name, want in launch.expect_globals.items()}
        lines += [f"{launch.label}: {line}" for line in check(launch, memory, symbols)]
    return lines


@pytest.mark.parametrize("spec", SPECS)
def test_reference(spec: KernelSpec) -> None:
    """What the PTX computes is what the reference says."""
    assert judge(spec, ARCH if spec.min_sm <= int(ARCH) else str(spec.min_sm)) == []


@pytest.mark.parametrize("name", ["vadd", "scan", "histogram", "call_twice", "switch10", "reduce_sum"])
def test_warps_in_any_order(name: str) -> None:
    """Kernels without races give the same when warps run one by one in a random order."""
    spec = SETS["main"][name]
    module = Module(ptx_for(spec, "80").read_text(), "sm_80")
    for launch in spec.launches(0)[:2]:
        module.reset()
        memory: dict[str, Array] = {n: buffer.data.copy() for n, buffer in launch.buffers().items()}
        args = [memory[a.name] if isinstance(a, Buffer) else a.data for a in launch.args]
        module.launch(launch.entry, launch.grid, launch.block, args, shared=launch.shared, shuffled=True, seed=3)
        assert check(launch, memory, {n: module.get_global(n, w.values.dtype) for n, w in launch.expect_globals.items()}) == []
