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
from stages.plumbing.chain import LOWER, OPTIMIZE, REGALLOC
from stages.plumbing.front_end import parse_to_stream
from stages.plumbing.runner import Flags, run_stage
from stages.plumbing.stage import Stage
from stages.regalloc.allocate import allocate_unit
from stages.regalloc.checker.checker import check_allocation
from tests.kernels import cases
from tests.lower.test_stack import PTX as ALLOCA

FOLDER = Path(__file__).parents[1] / "kernels" / "ptx"
LIMITS = ((255, False), (32, False), (24, False), (255, True))


@functools.cache
def units(name: str, target: str, opt: int) -> list[Unit]:
    """The kernel's units at level `ori`, as regalloc gets them."""
    text = (FOLDER / target / f"{name}.ptx").read_bytes()
    return _units_of(text, target, {"opt-level": opt}, (LOWER, OPTIMIZE))


def _units_of(text: bytes, target: str, options: dict[str, AttrValue], stages: tuple[Stage, ...]) -> list[Unit]:
    """The units of a PTX text after some stages."""
    stream = io.BytesIO()
    assert parse_to_stream([("k.ptx", text)], target, options, stream.write) == 0
    for stage in stages:
        stream.seek(0)
        out = io.BytesIO()
        try:
            assert run_stage(stage, stream, out, Flags()) == 0
        finally:
            gc.enable()
        stream = out
    stream.seek(0)
    return [wire.unit_from_wire(body, stages[-1].writes) for tag, body in wire.records(stream) if tag == "unit"]


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


def test_uniform_registers_over_calls_below_alloca() -> None:
    """Descriptors live over calls that destroy uniform registers, in few general ones, while R1 is elsewhere."""
    options: dict[str, AttrValue] = {"opt-level": 3, "maxrregcount": 24}
    before, after = (
        _units_of(ALLOCA.encode(), "sm_90", options, stages)[0]
        for stages in ((LOWER, OPTIMIZE), (LOWER, OPTIMIZE, REGALLOC))
    )
    assert any(i.op == "R2UR" for fn in after.functions for b in fn.blocks for i in b.insts)
    assert not check_allocation(before, after)
