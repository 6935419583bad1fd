"""One-instruction kernels through the whole chain and the simulator, against the references; and ptxas's cubins of the
same PTX."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests import oracle

from . import cases as table
from . import kernels
from .reference import Case

NOT_SIMULATED = "not supported by the simulator"
ARCHES = ("sm_75", "sm_80", "sm_90", "sm_120")


def number(arch: str) -> int:
    return int("".join(c for c in arch if c.isdigit()))


@cache
def cases(group: str, arch: str, step: int = 1) -> tuple[Case, ...]:
    """The cases of a group that the SM has; every ``step``-th of them, different ones on every SM."""
    return tuple(c for c in table.GROUPS[group]() if c.sm <= number(arch))[number(arch) % step :: step]


def stride(size: int) -> int:
    """All cases on each SM in a thorough run, else a seventh of them."""
    return 1 if size >= 20_000 else 7


def check(device: Any, chosen: tuple[Case, ...], n: int) -> None:
    wrong: list[str] = []
    for i, case in enumerate(chosen):
        try:
            bad = kernels.failures(device, f"k{i}", case, n, seed=i)
        except Exception as e:
            bad = [] if NOT_SIMULATED in str(e) else [f"{type(e).__name__}: {e}"]
        if bad:
            wrong.append(f"{case.op}: {len(bad)} of {n}, {bad[0]}")
    assert not wrong, "\n".join(wrong[:10])


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("group", table.GROUPS)
def test_instructions_match_the_reference(group: str, arch: str, size: int) -> None:
    from orchestrator.api import compile_ptx
    from stages.simulate import Device

    chosen = cases(group, arch, stride(size))
    check(Device(compile_ptx(kernels.module_text(chosen, arch), arch)), chosen, max(128, size // 32 // 64 * 64))


@pytest.mark.oracle
@pytest.mark.parametrize("group", table.GROUPS)
def test_ptxas_agrees(group: str, size: int) -> None:
    """A second source for the references: ptxas's cubins give the same in the simulator (except for .ftz, which it
    ignores in one conversion)."""
    from stages.simulate import Device

    oracle.require("ptxas")
    arch = "sm_90"
    chosen = cases(group, arch, stride(size))
    out = oracle.compile_ptx(kernels.module_text(chosen, arch), arch)
    assert isinstance(out, Path), out
    device = Device(out.read_bytes())
    wrong = []
    for i, case in enumerate(chosen):
        if any(name in case.op for name in PTXAS_DIFFERS):
            continue
        try:
            bad = kernels.failures(device, f"k{i}", case, max(128, size // 32 // 64 * 64), seed=i)
        except Exception as e:
            if NOT_SIMULATED not in str(e):
                raise
            continue
        if bad:
            wrong.append(f"{case.op}: {len(bad)}, {bad[0]}")
    assert not wrong, "\n".join(wrong[:10])


# .ftz has no effect on subnormal operands here (measured); the manual says that it flushes them.
PTXAS_DIFFERS = ("cvt.rm.ftz.f16.f32", "cvt.rp.ftz.f16.f32")
