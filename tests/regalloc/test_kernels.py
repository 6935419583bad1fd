"""The test kernels: allocation with and without a limit, and the naive one, passes the checker; limits are kept."""

from __future__ import annotations

import copy
import functools
import gc
import io
from pathlib import Path

import pytest

from ir_format import wire
from ir_format.model import AttrValue, Header, Unit
from stages.plumbing.chain import LOWER, OPTIMIZE
from stages.plumbing.front_end import parse_to_stream
from stages.plumbing.runner import Flags, run_stage
from stages.regalloc.allocate import allocate_unit
from stages.regalloc.checker.checker import check_allocation
from tests.kernels import cases

FOLDER = Path(__file__).parents[1] / "kernels" / "ptx"
LIMITS = ((255, False), (32, False), (24, False), (255, True))


@functools.cache
def units(name: str, target: str, opt: int) -> list[Unit]:
    """The kernel's units at level `ori`, as regalloc gets them."""
    path = FOLDER / target / f"{name}.ptx"
    stream = io.BytesIO()
    options: dict[str, AttrValue] = {"opt-level": opt}
    assert parse_to_stream([(path.name, path.read_bytes())], target, options, stream.write) == 0
    for stage in (LOWER, OPTIMIZE):
        stream.seek(0)
        out = io.BytesIO()
        try:
            assert run_stage(stage, stream, out, Flags()) == 0
        finally:
            gc.enable()
        stream = out
    stream.seek(0)
    return [wire.unit_from_wire(body, "ori") for tag, body in wire.records(stream) if tag == "unit"]


@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_90", "sm_120"])
@pytest.mark.parametrize("name", sorted(cases.CASES))
def test_kernel(name: str, target: str) -> None:
    for opt in (0, 3) if target == "sm_90" else (3,):
        for before in units(name, target, opt):
            for limit, naive in LIMITS:
                after = copy.deepcopy(before)
                options: dict[str, AttrValue] = {"allocator": "naive"} if naive else {}
                allocate_unit(after, Header("ori", target), options, limit=limit)
                findings = check_allocation(before, after)
                assert not findings, f"-O{opt} limit {limit}: " + "\n".join(f.render() for f in findings[:5])
                used = max(fn.regs.get("R", 0) for fn in after.functions) + 2
                assert used <= limit
