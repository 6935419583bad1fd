"""High register pressure: rematerialized values, orders that save registers. Small kernels, and random programs
executed before and after."""

from __future__ import annotations

import copy

import pytest

from benchmarks.big_ptx import big_ptx
from ir_format.flow import liveness, written_regs
from ir_format.hazards import hazards
from ir_format.model import Block, Function, Header
from stages.analysis.dependences import build_graph
from stages.optimize.analyses import Analyses
from stages.optimize.late import list_schedule, order_trials
from stages.optimize.late.list_schedule import schedule_blocks
from stages.optimize.late.rematerialize import rematerialize
from stages.plumbing.runner import Context, Flags
from stages.regalloc.allocate import allocate_unit
from tests.lower.helpers import kernel, lower_text
from tests.optimize.test_passes import SMS, of, optimized
from tests.regalloc.execute import observe
from tests.regalloc.generate import make_unit


#: A loop over `count` sums that need a register each, and `count` masks of the thread's number that are cheap to
#: again.
def _loop(count: int) -> str:
    sums = "".join(f".reg .b32 %s<{count}>; .reg .b32 %m<{count}>;")
    start = "".join(f"mov.u32 %s{n}, {n}; xor.b32 %m{n}, %r1, {16 * n + 8};" for n in range(count))
    body = "".join(f"mad.lo.u32 %s{n}, %s{n}, %m{n}, %r2;" for n in range(count))
    end = "".join(f"st.global.u32 [%rd1+{4 * n}], %s{n};" for n in range(count))
    return (
        f"{sums} mov.u32 %r1, %tid.x; ld.param.u32 %r2, [n]; ld.param.u64 %rd1, [p]; "
        f"cvta.to.global.u64 %rd1, %rd1; {start}"
        f"L: {body} sub.s32 %r2, %r2, 1; setp.gt.s32 %p1, %r2, 0; @%p1 bra L; {end} ret;"
    )


def spilled(body: str, target: str, skip: tuple[str, ...] = ()) -> int:
    """Bytes that a kernel spills because registers ran out."""
    return stored(kernel(body, target), target, skip)


def stored(text: str, target: str, skip: tuple[str, ...] = ()) -> int:
    """The same for a program with one kernel."""
    from stages.optimize.passes import PASSES

    (unit,) = lower_text(text, target)
    header = Header("ori", target)
    ctx = Context(header, None, Flags())
    for p in PASSES:
        if p.name not in skip:
            p.run(unit, ctx)
    allocate_unit(unit, header)
    return sum(f.spills[0] for f in unit.functions)


def test_vectors_find_places_below_the_limit() -> None:
    """A matrix product with 128 accumulators: orders that left twelve registers free left no room for pairs and quads,
    and 368 bytes were spilled (ptxas 13.0: none)."""
    assert stored(big_ptx("sm_90", 1), "sm_90") == 0


@pytest.mark.parametrize("target", SMS)
def test_cheap_values_are_made_again(target: str) -> None:
    """130 sums and 130 masks do not fit into 252 registers; the masks are rematerialized in the loop."""
    assert spilled(_loop(130), target) == 0
    assert spilled(_loop(130), target, ("rematerialize",)) > 0


@pytest.mark.parametrize("target", SMS)
def test_nothing_is_made_again_where_all_fits(target: str) -> None:
    _, stats = optimized(_loop(20), target)
    assert "values made again" not in stats


@pytest.mark.parametrize("target", SMS)
def test_addresses_are_computed_just_in_time(target: str) -> None:
    """130 addresses computed long before their loads would need 260 registers."""
    count = 130
    head = (
        f".reg .b64 %a<{count}>; .reg .b32 %v<{count}>; mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [p]; "
        f"cvta.to.global.u64 %rd1, %rd1; ld.global.u64 %rd2, [%rd1];"
    )
    addresses = "".join(f"mul.wide.u32 %rd3, %r1, {4 * n + 12}; add.s64 %a{n}, %rd2, %rd3;" for n in range(count))
    loads = "".join(f"ld.global.u32 %v{n}, [%a{count - 1 - n}];" for n in range(count))
    total = "".join(f"add.s32 %r1, %r1, %v{n};" for n in range(count))
    body = f"{head}{addresses}{loads}bar.sync 0;{total}st.global.u32 [%rd1], %r1; ret;"
    assert spilled(body, target) == 0
    assert spilled(body, target, ("list-schedule",)) > 0
    unit, _ = optimized(body, target)
    assert len(of(unit, "LDG")) == count + 1


def test_addresses_move_after_a_load_from_tensor_memory() -> None:
    """128 words from tensor memory, and 128 addresses computed before the load."""
    words = ", ".join(f"%v{n}" for n in range(128))
    head = (
        ".reg .b64 %a<128>; .reg .b32 %v<128>; mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [p]; "
        "cvta.to.global.u64 %rd1, %rd1; ld.global.u64 %rd2, [%rd1]; ld.global.u32 %r3, [%rd1+8];"
    )
    addresses = "".join(f"mul.wide.u32 %rd3, %r1, {4 * n + 12}; add.s64 %a{n}, %rd2, %rd3;" for n in range(128))
    load = f"tcgen05.ld.sync.aligned.32x32b.x128.b32 {{{words}}}, [%r3]; tcgen05.wait::ld.sync.aligned;"
    body = head + addresses + load + "".join(f"st.global.u32 [%a{127 - n}], %v{n};" for n in range(128)) + "ret;"
    assert spilled(body, "sm_100a") == 0
    assert spilled(body, "sm_100a", ("list-schedule",)) > 0


@pytest.mark.parametrize("first", range(0, 120, 40))
def test_random_programs_mean_the_same(first: int) -> None:
    """Under a limit of 24 registers both passes change much."""
    made = 0
    for seed in range(first, first + 40):
        before = make_unit(seed, 60)
        after = copy.deepcopy(before)
        header = Header("ori", "sm_80")
        header.options["maxrregcount"] = "24"
        ctx = Context(header, None, Flags())
        for f in after.functions:
            rematerialize(f, Analyses(f, after, ctx))
        made += ctx.stats.get("values made again", 0)
        for run in range(2):
            assert observe(before, False, run) == observe(after, False, run), seed
        for f in after.functions:
            schedule_blocks(f, Analyses(f, after, ctx))  # disjoint accesses may be exchanged
        for run in range(2):
            assert sorted(map(repr, observe(before, False, run))) == sorted(map(repr, observe(after, False, run))), seed
    assert made


def _alive(f: Function, block: Block, pos: int) -> int:
    """Most words of file R live after an instruction of the block, among those that have a value by then."""
    live = liveness(f)
    owner, first = live.cells.owner, live.cells.first
    there = live.in_cells(pos)
    most = 0
    for inst, (_, _, now) in zip(block.insts, [(a, b, set(c)) for a, b, c in live.walk_back(block, pos)][::-1]):
        there |= {c for r in written_regs(inst) for c in range(first(r), first(r) + r.width)}
        most = max(most, sum(f.vregs[owner[c][0]].file == "R" for c in now & there))
    return most


@pytest.mark.parametrize("tight", [2, 8, 40])
def test_order_counts_what_is_alive(tight: int) -> None:
    """The peak that a new order claims equals the one that liveness finds in it, including loop variables."""
    seen = 0
    for seed in range(60):
        (f,) = make_unit(seed, 40).functions[:1]
        live = liveness(f)
        for pos, block in enumerate(f.blocks):
            timing = list_schedule._timing(block, hazards("sm_80"), 1)
            if timing is None or any(i.op == "UNDEF" for i in block.insts):
                continue
            model = list_schedule._Virtual(block.insts, timing, list_schedule._Registers(f, live.cells), False)
            file = [f.vregs[v].file for v, _ in live.cells.owner]
            body = order_trials.Body(
                block.insts,
                (model.read, model.written),
                model.interval,
                build_graph(block.insts, model),
                (live.in_cells(pos), live.out_cells(pos)),
                file,
            )
            got = order_trials._order(body, 6, tight, 1 << 30, order_trials.NEVER)
            assert got is not None
            assert body.peak() == max(sum(not body.kind[v] for v in body.live), _alive(f, block, pos)), seed
            peak = got.peak
            block.insts = [block.insts[n] for n in got.nodes]
            start = sum(not body.kind[v] for v in body.live)
            assert peak == max(start, _alive(f, block, pos)), seed
            seen += 1
    assert seen > 20
