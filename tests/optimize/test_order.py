"""List scheduling before allocation: it uses the registers that cost no resident warps (occupancy), and no more."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ir_format.model import Header, Inst, Unit
from stages.optimize.late.register_steps import Choice, Order, best_step, register_steps, resident
from stages.optimize.passes import PASSES
from stages.plumbing.runner import Context, Flags
from tests.kernels import cases, run
from tests.lower.helpers import kernel, lower_text


@pytest.mark.parametrize(("sm", "free"), [(75, 64), (80, 32), (86, 40), (89, 40), (90, 32), (100, 32), (120, 40)])
def test_registers_that_are_free(sm: int, free: int) -> None:
    """65,536 registers divided by the most resident warps (tables of the PTX and CUDA manuals), in units of 8; then one
    step per warp less in a quarter of the SM."""
    steps = register_steps(sm)
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
    """The most LDS in flight at once, until each is first used."""
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
    """The loop of a tiled product keeps several shared loads in flight, though 28 other values are live on sm_120."""
    unit = _unit("matmul", sm)
    tiles = [b.insts for b in unit.functions[0].blocks if sum(i.op == "LDS" for i in b.insts) >= 16]
    assert tiles
    assert min(map(_ahead, tiles)) >= 4


@pytest.mark.parametrize(("latency", "depth", "step"), [(340, 1, 40), (1100, 1, 32), (340, 0, 32)])
def test_more_registers_where_they_pay(latency: int, depth: int, step: int) -> None:
    """Four warps of sixteen are given up if a wait of three disappears from a loop, none if little is gained, nor for
    code that runs only once next to a loop. By hand: 1200/16 + 1200/32 = 112.5 cycles, 40 (issue) + 340/32 = 50.6; next
    to it 178.1 and 217.7."""
    assert (resident(90, 32), resident(90, 33), resident(86, 40)) == (16, 12, 12)
    loop = Choice([Order(32, 1900, [])], 100, 1)
    found = best_step([loop, Choice([Order(32, 1200, []), Order(40, latency, [])], 40, depth)], 90)
    assert found == step


def _rows(body: str, sm: str) -> list[list[Inst]]:
    (unit,) = lower_text(kernel(body, sm), sm)
    ctx = Context(Header("ori", sm), None, Flags())
    for p in PASSES:
        p.run(unit, ctx)
    return [b.insts for f in unit.functions for b in f.blocks]


START = (
    "mov.u32 %r1, %tid.x; ld.param.u32 %r2, [n]; ld.param.u64 %rd1, [p]; cvta.to.global.u64 %rd1, %rd1; "
    "mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; "
)


def test_loads_under_many_guards_come_together() -> None:
    """Nine loads, each under its own predicate: more predicates than the file has, but all loads precede the first sum
    (as in ptxas's code)."""
    tests = "".join(
        f"and.b32 %t{n}, %r1, {1 << n}; setp.ne.s32 %q{n}, %t{n}, 0; mov.f32 %g{n}, 0f00000000;" for n in range(9)
    )
    loads = "".join(
        f"@%q{n} ld.global.nc.f32 %g{n}, [%rd3+{64 * n}]; @%q{n} add.f32 %f1, %f1, %g{n};" for n in range(9)
    )
    body = (
        START + ".reg .pred %q<9>; .reg .b32 %t<9>; .reg .f32 %g<9>; mov.f32 %f1, 0f3F800000;"
        f"L: {tests} {loads} add.s32 %r2, %r2, -1; setp.ne.s32 %p1, %r2, 0; @%p1 bra L; st.global.f32 [%rd3], %f1; ret;"
    )
    for insts in _rows('.pragma "nounroll"; ' + body, "sm_90"):
        ops = [i.op for i in insts]
        if "LDG" in ops:
            assert ops.count("LDG") == 9
            assert ops.index("FADD") > max(n for n, op in enumerate(ops) if op == "LDG")


def test_chains_of_a_loop_overlap() -> None:
    """Four chains of eight dependent steps, one after another in the program: adjacent instructions are of different
    chains."""
    chains = "".join("".join(f"mad.lo.s32 %c{c}, %c{c}, %c{c}, {n};" for n in range(8)) for c in range(4))
    ends = "".join(f"st.global.u32 [%rd3+{4 * c}], %c{c};" for c in range(4))
    body = (
        START + ".reg .b32 %c<4>; mov.u32 %c0, %r1; mov.u32 %c1, 1; mov.u32 %c2, 2; mov.u32 %c3, 3;"
        f"L: {chains} add.s32 %r2, %r2, -1; setp.ne.s32 %p1, %r2, 0; @%p1 bra L; {ends} ret;"
    )
    (insts,) = [b for b in _rows('.pragma "nounroll"; ' + body, "sm_90") if sum(i.op == "IMAD" for i in b) >= 32]
    made = [i.dsts[0] for i in insts if i.op == "IMAD"]
    assert not any(a == b for a, b in pairwise(made))
