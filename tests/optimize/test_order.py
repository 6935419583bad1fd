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


def _first_wait(ops: list[str], loaded: str, reader: str) -> int:
    """The most instructions of ``loaded`` before the first ``reader``."""
    return ops[: ops.index(reader)].count(loaded)


def test_chains_of_exchanges_overlap() -> None:
    """Four sums over a warp, one after another in the program: the four exchanges of a step come together, as in
    ptxas's code."""
    steps = "".join(
        f"shfl.sync.bfly.b32 %g{c}, %f{c}, {16 >> n}, 31, -1; add.f32 %f{c}, %f{c}, %g{c};"
        for c in range(4)
        for n in range(5)
    )
    loads = "".join(f"ld.global.f32 %f{c}, [%rd3+{128 * c}];" for c in range(4))
    ends = "".join(f"st.global.f32 [%rd3+{128 * c}], %f{c};" for c in range(4))
    body = START + f".reg .f32 %g<4>; {loads} {steps} {ends} ret;"
    (ops,) = [[i.op for i in b] for b in _rows(body, "sm_90") if any(i.op == "SHFL" for i in b)]
    assert _first_wait(ops, "SHFL", "FADD") == 4


def test_a_barrier_keeps_exchanges_on_its_side() -> None:
    """Exchanges pass one another, but none passes a barrier."""
    one = "shfl.sync.bfly.b32 %f{0}, %f{0}, 1, 31, -1;"
    body = (
        START + "ld.global.f32 %f0, [%rd3]; ld.global.f32 %f1, [%rd3+128];"
        "ld.global.f32 %f2, [%rd3+256]; ld.global.f32 %f3, [%rd3+384];"
        f"{one.format(0)} {one.format(1)} bar.sync 0; {one.format(2)} {one.format(3)}"
        "st.global.f32 [%rd3], %f0; st.global.f32 [%rd3+128], %f1; st.global.f32 [%rd3+256], %f2;"
        "st.global.f32 [%rd3+384], %f3; ret;"
    )
    ops = [i.op for b in _rows(body, "sm_90") for i in b if i.op in ("SHFL", "BAR")]
    assert ops == ["SHFL", "SHFL", "BAR", "SHFL", "SHFL"]


def test_words_needed_late_leave_room_for_the_quad_needed_first() -> None:
    """Steps of a product from shared memory, each with a quad and a word, in 32 registers: the second quad is under way
    when the first is used; words for later steps do not fill its place."""
    steps = "".join(
        f"ld.shared.v4.f32 {{%b0, %b1, %b2, %b3}}, [%r3+{16 * n}]; ld.shared.f32 %a, [%r4+{260 * n}];"
        + "".join(f"fma.rn.f32 %c{k}, %a, %b{k}, %c{k};" for k in range(4))
        for n in range(12)
    )
    keep = "".join(f"mul.lo.s32 %k{n}, %r1, {n + 3};" for n in range(9))
    used = "".join(f"st.global.u32 [%rd3+{128 * n + 16}], %k{n};" for n in range(9))
    ends = "".join(f"st.global.f32 [%rd3+{4 * k}], %c{k};" for k in range(4))
    zero = "".join(f"mov.f32 %c{k}, 0f3F800000;" for k in range(4))
    body = (
        '.pragma "nounroll"; .shared .align 16 .b8 sm[8192]; .reg .f32 %a, %b<4>, %c<4>; .reg .b32 %k<9>;'
        + START
        + f"mov.u32 %r3, sm; add.s32 %r4, %r3, 4096; shl.b32 %r5, %r1, 2; add.s32 %r4, %r4, %r5; {keep} {zero}"
        f"L: bar.sync 0; {steps} add.s32 %r2, %r2, -1; setp.ne.s32 %p1, %r2, 0; @%p1 bra L; {ends} {used} ret;"
    )
    (insts,) = [b for b in _rows(body, "sm_80") if sum(i.op == "FFMA" for i in b) == 48]
    quads = words = late = 0
    for i in insts:
        quads += i.op == "LDS" and "128" in i.mods
        if i.op == "FFMA":
            if words % 4 == 0 and words < 40 and quads <= words // 4 + 1:
                late += 1
            words += 1
    assert not late
