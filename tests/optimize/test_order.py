"""Order before allocation: registers that cost no resident warps are used, and no more."""

from __future__ import annotations

import pytest

from ir_format.model import Header, Inst, Unit
from stages.optimize.late import list_schedule
from stages.optimize.passes import PASSES
from stages.plumbing.runner import Context, Flags
from tests.kernels import cases, run
from tests.lower.helpers import lower_text


@pytest.mark.parametrize(("sm", "free"), [(75, 64), (80, 32), (86, 40), (89, 40), (90, 32), (100, 32), (120, 40)])
def test_registers_that_are_free(sm: int, free: int) -> None:
    """65,536 registers over the most resident warps (PTX and CUDA manuals' tables), in units of 8; then one step per
    warp less in a quarter of the SM."""
    steps = list_schedule._steps(sm)
    assert steps[0] == free and steps[-1] == 255
    assert {64, 72, 80, 96, 128, 168} <= set(steps)


def _unit(name: str, sm: str) -> Unit:
    spec = cases.CASES[name]
    (unit,) = lower_text(run.ptx_for(spec, sm).read_text(), f"sm_{sm}")
    ctx = Context(Header("ori", f"sm_{sm}"), None, Flags())
    for p in PASSES:
        p.run(unit, ctx)
    return unit


def _ahead(insts: list[Inst]) -> int:
    """The most LDS under way at once where each is used first."""
    made: set[int] = set()
    most = 0
    for i in insts:
        for o in i.srcs:
            if o[0] == "R" and o[1] in made:
                made.discard(o[1])
        if i.op == "LDS":
            made.add(i.dsts[0].num)  # type: ignore[union-attr]
            most = max(most, len(made))
    return most


@pytest.mark.parametrize("sm", ["75", "80", "120"])
def test_tile_loads_start_ahead(sm: str) -> None:
    """The loop of a tiled product keeps several shared loads under way, though 28 values are alive without them on
    sm_120."""
    unit = _unit("matmul", sm)
    tiles = [b.insts for b in unit.functions[0].blocks if sum(i.op == "LDS" for i in b.insts) >= 16]
    assert tiles
    assert min(map(_ahead, tiles)) >= 4
