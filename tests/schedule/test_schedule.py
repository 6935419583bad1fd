"""The scheduler on random code, judged pair by pair over random paths."""

from __future__ import annotations

import copy
import random

import pytest

from ir_format.hazards import hazards
from ir_format.isa import target
from ir_format.model import PT, RZ, Block, Function, Header, Inst, Label, Mem, Reg, Unit, imm
from orchestrator.api import compile_ptx
from stages.disasm.cubin import read_cubin
from stages.disasm.listing import decode_section
from stages.plumbing.chain import SCHEDULE
from stages.plumbing.runner import Context, Flags, select
from stages.schedule.schedule_unit import control_unit, order_unit
from tests.schedule.brute import Fault, random_function, random_inst, values, walk_path

SMS = (75, 80, 86, 90, 100, 103, 120)


def schedule(f: Function, sm: int, order: bool = True, **extra: str) -> Unit:
    """Schedule one function in place."""
    unit = Unit("f")
    unit.functions = [f]
    ctx = Context(Header("scheduled", f"sm_{sm}"), None, Flags(extra=extra))
    if order:
        order_unit(unit, ctx)
    control_unit(unit, ctx)
    return unit


@pytest.mark.parametrize("sm", SMS)
@pytest.mark.parametrize("order", (False, True))
def test_no_hazard_on_any_path(sm: int, order: bool) -> None:
    rng = random.Random(sm * 2 + order)
    pairs = 0
    for _ in range(25):
        f = random_function(rng, sm, rng.randrange(1, 7), 14)
        schedule(f, sm, order)
        for _ in range(4):
            pairs += walk_path(f, sm, rng, 150)
    assert pairs > 2000


@pytest.mark.parametrize("sm", SMS)
def test_order_keeps_the_meaning(sm: int) -> None:
    rng = random.Random(sm)
    tables = hazards(sm)
    moved = 0
    for _ in range(60):
        before = [random_inst(rng, sm, 24) for _ in range(30)]
        f = Function("f")
        f.blocks = [Block(0, list(before))]
        order_unit_of(f, sm)
        after = f.blocks[0].insts
        assert sorted(map(id, before)) == sorted(map(id, after))
        assert values(before, tables) == values(after, tables)
        moved += before != after
    assert moved > 30


def order_unit_of(f: Function, sm: int) -> None:
    """Only the order pass."""
    unit = Unit("f")
    unit.functions = [f]
    order_unit(unit, Context(Header("scheduled", f"sm_{sm}"), None, Flags()))


def insts(f: Function) -> list[Inst]:
    """All instructions."""
    return [i for b in f.blocks for i in b.insts]


@pytest.mark.parametrize("what", ("stall", "wait", "wr", "rd"))
def test_the_judge_finds_planted_faults(what: str) -> None:
    """A shorter stall, a missing wait, a missing scoreboard: the judge above must be able to fail."""
    rng = random.Random(7)
    planted = found = 0
    for _ in range(150):
        f = random_function(rng, 80, 4, 12)
        schedule(f, 80)
        places = [i for i in insts(f) if _breakable(i, what)]
        if not places:
            continue
        victim = rng.choice(places)
        assert victim.ctl is not None
        if what == "stall":
            victim.ctl = victim.ctl._replace(stall=1)
        elif what == "wait":
            victim.ctl = victim.ctl._replace(wait=0)
        else:
            victim.ctl = victim.ctl._replace(**{what: 7})
        planted += 1
        try:
            for _ in range(12):
                walk_path(f, 80, copy.copy(rng), 150)
                rng.random()
        except Fault:
            found += 1
    assert planted > 50
    assert found > planted * 0.4, (found, planted)  # many are on paths not taken, or a pipe caused the stall


def _breakable(i: Inst, what: str) -> bool:
    assert i.ctl is not None
    if what == "stall":
        return i.ctl.stall > 4 and i.op not in ("BAR", "MEMBAR", "BRA", "CCTL", "CALL", "EXIT", "NOP")
    return i.ctl.wait != 0 if what == "wait" else getattr(i.ctl, what) != 7


def test_same_input_same_output() -> None:
    rng = random.Random(3)
    f = random_function(rng, 90, 6, 30)
    g = copy.deepcopy(f)
    schedule(f, 90)
    schedule(g, 90)
    assert f == g


def test_reasons_only_on_request() -> None:
    rng = random.Random(5)
    f = random_function(rng, 80, 4, 20)
    g = copy.deepcopy(f)
    assert "why" not in schedule(f, 80).sections
    assert schedule(g, 80, why="1").sections["why"]
    assert f == g


def r(n: int, width: int = 1) -> Reg:
    return Reg("R", n, 0, width)


@pytest.mark.parametrize("sm", [80, 120])
def test_addresses_do_not_wait_for_loads(sm: int) -> None:
    """Addresses that are overwritten while loads are in flight wait only for the read: no scoreboard serves both the
    reads and results that are needed much later."""
    f = Function("f")
    f.blocks.append(Block(0))
    code = f.blocks[0].insts
    for n in range(12):
        address = r(40 + 2 * (n % 3), 2)
        code.append(Inst("IMAD", ("WIDE",), (address,), (r(60), imm(n), r(62, 2))))
        code.append(Inst("LDG", ("E",), (r(10 + n),), (Mem("M", address),)))
    for n in range(12):
        code.append(Inst("IADD3", (), (r(70 + n), PT, PT), (r(10 + n), r(10 + n), RZ)))
    code.append(Inst("EXIT"))
    schedule(f, sm, order=False)
    pending = read = early = 0
    for i in insts(f):
        c = i.ctl
        assert c is not None
        if i.op == "IMAD":
            read += c.wait != 0
            early += (c.wait & pending).bit_count()
        pending &= ~c.wait
        if i.op == "LDG" and c.wr < 6:
            pending |= 1 << c.wr
    assert read and not early


def test_a_loop_waits_for_nothing_that_its_last_iteration_waited_for() -> None:
    """A value loaded before a loop has arrived after the loop's first wait, also if that wait is for the previous
    iteration: a later use waits for no load in between."""
    text = """.version 8.7
.target sm_120
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n)
{ .reg .b64 %x, %y, %o, %p, %q; .reg .f32 %a, %f, %g; .reg .b32 %n, %i, %s, %t; .reg .pred %c;
ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; ld.param.f32 %a, [a]; ld.param.u32 %n, [n]; mov.u32 %i, %ctaid.x;
mov.u32 %t, %ntid.x; mov.u32 %s, %tid.x;
mad.lo.s32 %i, %i, %t, %s; setp.ge.s32 %c, %i, %n; @%c ret; mov.u32 %s, %nctaid.x; mul.lo.s32 %s, %s, %t;
LOOP: mul.wide.s32 %o, %i, 4; add.s64 %p, %x, %o; add.s64 %q, %y, %o; ld.global.f32 %f, [%p]; ld.global.f32 %g, [%q];
fma.rn.f32 %f, %f, %a, %g; st.global.f32 [%q], %f;
add.s32 %i, %i, %s; setp.lt.s32 %c, %i, %n; @%c bra LOOP; ret; }
"""
    (section,) = read_cubin(compile_ptx(text, "sm_120")).sections
    insts = [item.inst for item in decode_section(section, target(120)) if item.inst is not None]
    loads = [n for n, inst in enumerate(insts) if inst.op == "LDG"]
    assert len(loads) == 2 and all(i.op != "BRA" for i in insts[loads[0] : loads[1]])
    ctl = insts[loads[0]].ctl
    assert ctl is not None and ctl.wr < 6
    assert not [i for i in insts[loads[0] + 1 : loads[1] + 1] if i.ctl is not None and i.ctl.wait >> ctl.wr & 1]


def test_no_load_joins_a_scoreboard_from_the_end_of_a_loop() -> None:
    """A loop of two blocks that ends with a store: what overwrites the store's address at the start of the next
    iteration waits for that read alone, not for the load before it."""
    f = Function("f")
    head, tail, end = Block(0), Block(1), Block(2)
    f.blocks = [head, tail, end]
    p = Reg("P", 0)
    head.insts = [
        Inst("LDG", ("E",), (r(20),), (Mem("M", r(2, 2)),)),
        Inst("LDG", ("E",), (r(10),), (Mem("M", r(4, 2)),)),
        Inst("IADD3", (), (r(21), PT, PT), (r(20), r(10), RZ)),
        Inst("BRA", (), (), (Label("L", 2),), guard=p),
    ]
    tail.insts = [
        Inst("IADD3", (), (r(11), PT, PT), (r(21), r(20), RZ)),
        Inst("STG", ("E",), (), (Mem("M", r(10, 2)), r(21))),
        Inst("BRA", (), (), (Label("L", 0),)),
    ]
    end.insts = [Inst("EXIT")]
    schedule(f, 120, order=False)
    first, second = (i.ctl for i in head.insts[:2])
    assert first is not None and second is not None
    assert first.wr < 6 and second.wait and not second.wait >> first.wr & 1


def test_former_names_of_passes_are_taken() -> None:
    header = Header("allocated", "sm_90", "")
    header.options = {"opt-level": 3}
    ctx = Context(header, None, Flags(skip=("order",), stop_after="control"))
    assert [p.name for p in select(SCHEDULE, SCHEDULE.passes(), ctx)] == [
        "zero-pairs",
        "pipe-balance",
        "control",
    ]
