"""Where registers run short: values made again, orders that save registers. Small kernels, and random programs run before and after."""

from __future__ import annotations

import copy

import pytest

from ir_format.model import Header
from stages.optimize.order import order_blocks
from stages.optimize.remat import make_again
from stages.regalloc.allocate import allocate_unit
from stages.runner import Context, Flags
from tests.lower.helpers import kernel, lower_text
from tests.optimize.test_passes import SMS, of, optimized
from tests.regalloc.execute import observe
from tests.regalloc.generate import make_unit


#: A loop over `count` sums that need a register each, and `count` masks of the thread's number that are cheap to make again.
def _loop(count: int) -> str:
    sums = "".join(f".reg .b32 %s<{count}>; .reg .b32 %m<{count}>;")
    start = "".join(f"mov.u32 %s{n}, {n}; xor.b32 %m{n}, %r1, {16 * n + 8};" for n in range(count))
    body = "".join(f"mad.lo.u32 %s{n}, %s{n}, %m{n}, %r2;" for n in range(count))
    end = "".join(f"st.global.u32 [%rd1+{4 * n}], %s{n};" for n in range(count))
    return (
        f"{sums} mov.u32 %r1, %tid.x; ld.param.u32 %r2, [n]; ld.param.u64 %rd1, [p]; cvta.to.global.u64 %rd1, %rd1; {start}"
        f"L: {body} sub.s32 %r2, %r2, 1; setp.gt.s32 %p1, %r2, 0; @%p1 bra L; {end} ret;"
    )


def spilled(body: str, target: str, skip: tuple[str, ...] = ()) -> int:
    """Bytes that a kernel stores because registers ran out."""
    from stages.optimize.passes import PASSES

    (unit,) = lower_text(kernel(body, target), target)
    header = Header("ori", target)
    ctx = Context(header, None, Flags())
    for p in PASSES:
        if p.name not in skip:
            p.run(unit, ctx)
    allocate_unit(unit, header)
    return sum(f.spills[0] for f in unit.functions)


@pytest.mark.parametrize("target", SMS)
def test_cheap_values_are_made_again(target: str) -> None:
    """130 sums and 130 masks do not fit into 252 registers; the masks are made in the loop."""
    assert spilled(_loop(130), target) == 0
    assert spilled(_loop(130), target, ("remat",)) > 0


@pytest.mark.parametrize("target", SMS)
def test_nothing_is_made_again_where_all_fits(target: str) -> None:
    _, stats = optimized(_loop(20), target)
    assert "values made again" not in stats


@pytest.mark.parametrize("target", SMS)
def test_addresses_are_computed_just_in_time(target: str) -> None:
    """130 addresses that are computed long before their loads would need 260 registers."""
    count = 130
    head = f".reg .b64 %a<{count}>; .reg .b32 %v<{count}>; mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [p]; cvta.to.global.u64 %rd1, %rd1; ld.global.u64 %rd2, [%rd1];"
    addresses = "".join(f"mul.wide.u32 %rd3, %r1, {4 * n + 12}; add.s64 %a{n}, %rd2, %rd3;" for n in range(count))
    loads = "".join(f"ld.global.u32 %v{n}, [%a{count - 1 - n}];" for n in range(count))
    total = "".join(f"add.s32 %r1, %r1, %v{n};" for n in range(count))
    body = f"{head}{addresses}{loads}bar.sync 0;{total}st.global.u32 [%rd1], %r1; ret;"
    assert spilled(body, target) == 0
    assert spilled(body, target, ("order",)) > 0
    unit, _ = optimized(body, target)
    assert len(of(unit, "LDG")) == count + 1


@pytest.mark.parametrize("first", range(0, 120, 40))
def test_random_programs_mean_the_same(first: int) -> None:
    """Under a limit of 24 registers both passes have a lot to do."""
    made = 0
    for seed in range(first, first + 40):
        before = make_unit(seed, 60)
        after = copy.deepcopy(before)
        header = Header("ori", "sm_80")
        header.options["maxrregcount"] = "24"
        ctx = Context(header, None, Flags())
        make_again(after, ctx)
        made += ctx.stats.get("values made again", 0)
        for run in range(2):
            assert observe(before, False, run) == observe(after, False, run), seed
        order_blocks(after, ctx)  # disjoint accesses may change places
        for run in range(2):
            assert sorted(map(repr, observe(before, False, run))) == sorted(map(repr, observe(after, False, run))), seed
    assert made
