"""SSA form: random programs executed before, in and after it; values that it exposes; values seen through predicates,
guarded results."""

from __future__ import annotations

import random

import pytest

from ir_format import isa
from ir_format.flow import DominatorTree, build_cfg, dominators, is_guarded, solve
from ir_format.model import INV, PT, RZ, Block, Function, Header, Imm, Inst, Label, Operand, Reg, Unit, VReg
from stages.optimize.analyses import Analyses
from stages.optimize.memory.guarded_vectors import place_guarded_vectors
from stages.optimize.ssa.check import faults
from stages.optimize.ssa.construct import enter, written_again
from stages.optimize.ssa.destruct import leave
from stages.optimize.ssa.webs import TIED
from stages.plumbing.runner import Context, Flags
from tests.optimize.test_passes import HEAD, SMS, of, ops, optimized


@pytest.mark.parametrize("target", SMS)
def test_unrelated_values_of_one_register_are_split(target: str) -> None:
    """The zero that initializes a counter is known where only it can arrive."""
    body = HEAD + (
        "mov.u32 %r3, 0; mov.u32 %r4, %r3; mov.u32 %r5, %r3; L: add.u32 %r3, %r3, %r1; add.u32 %r4, %r4, "
        "%r3; setp.lt.u32 %p1, %r3, %r2; @%p1 bra L;"
    )
    unit, stats = optimized(body + "st.global.u32 [%rd3], %r4; st.global.u32 [%rd3+64], %r5; ret;", target)
    stores = of(unit, "STG")
    assert RZ in stores[1].srcs or stores[1].srcs[-1] != stores[0].srcs[-1]
    assert all(i.srcs[0] in (RZ, Imm("I", 0)) for i in of(unit, "COPY"))


@pytest.mark.parametrize("target", SMS)
def test_a_predicate_passed_through_a_register(target: str) -> None:
    """selp 1, 0 and setp.ne 0: the predicate itself."""
    body = HEAD + (
        "setp.lt.u32 %p1, %r1, %r2; selp.u32 %r3, 1, 0, %p1; setp.ne.s32 %p2, %r3, 0; "
        "@%p2 st.global.u32 [%rd3], %r1; ret;"
    )
    unit, _ = optimized(body, target)
    assert "SEL" not in ops(unit) and len(of(unit, "ISETP")) == 1
    (store,), (test,) = of(unit, "STG"), of(unit, "ISETP")
    assert store.guard == test.dsts[0]


@pytest.mark.parametrize(("how", "inverted"), [("ne", 0), ("eq", INV)])
def test_bits_are_tested_by_lop3(how: str, inverted: int) -> None:
    unit, _ = optimized(
        HEAD + f"and.b32 %r3, %r1, 5; setp.{how}.s32 %p1, %r3, 0; @%p1 st.global.u32 [%rd3], %r2; ret;", "sm_80"
    )
    assert "ISETP" not in ops(unit)
    (store,), (test,) = of(unit, "STG"), of(unit, "LOP3")
    assert store.guard is not None and store.guard.flags == inverted
    assert store.guard.num == test.dsts[0].num  # type: ignore[union-attr]
    assert test.dsts[1] == RZ and test.srcs[4] == Reg("P", PT.num, 0, 1, INV)


@pytest.mark.parametrize(("op", "mod"), [("and", "AND"), ("or", "OR"), ("xor", "XOR")])
def test_tests_are_joined(op: str, mod: str) -> None:
    unit, _ = optimized(
        HEAD
        + (
            f"setp.lt.u32 %p1, %r1, %r2; setp.gt.s32 %p2, %r1, 9; {op}.pred %p3, %p1, %p2; "
            f"@%p3 st.global.u32 [%rd3], %r2; ret;"
        ),
        "sm_80",
    )
    assert "PLOP3" not in ops(unit)
    assert sorted(i.mods[-1] for i in of(unit, "ISETP")) == sorted(["AND", mod])


@pytest.mark.parametrize("target", SMS)
def test_guarded_vectors_need_no_guarded_copies(target: str) -> None:
    body = HEAD + (
        "mov.u32 %r3, 1; mov.u32 %r4, 2; setp.lt.u32 %p1, %r1, %r2; @%p1 ld.global.v2.u32 {%r3, %r4}, "
        "[%rd3]; st.global.v2.u32 [%rd3+64], {%r4, %r3}; ret;"
    )
    unit, stats = optimized(body, target)
    assert stats["guarded results in place"] == 1
    assert not [i for i in of(unit, "COPY") if is_guarded(i)]


# ------------------------------------------------------------------ random programs


def function(vregs: list[VReg], blocks: list[Block]) -> Function:
    """A function of these parts."""
    f = Function("f")
    f.vregs, f.blocks = vregs, blocks
    return f


def unit_of(f: Function) -> Unit:
    """A unit with one function."""
    u = Unit("u")
    u.functions = [f]
    return u


def program(rng: random.Random) -> Function:
    """Blocks of copies, sums and stores over few registers, all set at the start; some are pairs written by halves;
    some writes are guarded."""
    vregs = [VReg("R", rng.choice((1, 1, 2))) for _ in range(rng.randint(2, 6))] + [VReg("P")]
    guard = len(vregs) - 1
    count = rng.randint(2, 7)

    def word() -> Reg:
        v = rng.randrange(guard)
        return Reg("R", v, rng.randrange(vregs[v].width))

    first = [
        Inst("COPY", (), (Reg("R", v, c),), (Imm("I", 10 * v + c),))
        for v in range(guard)
        for c in range(vregs[v].width)
    ]
    blocks = [Block(0, [*first, Inst("COPY", (), (Reg("P", guard),), (PT,))])]
    for n in range(1, count):
        body: list[Inst] = []
        for _ in range(rng.randint(1, 6)):
            p = Reg("P", guard, 0, 1, rng.choice((0, INV))) if rng.random() < 0.2 else None
            kind = rng.random()
            if kind < 0.4:
                d, s = word(), word() if rng.random() < 0.7 else Imm("I", rng.randrange(100))
                # a copy that disappears needs no guard
                body.append(Inst("COPY", (), (d,), (s,), None if d == s else p))
            elif kind < 0.7:
                body.append(Inst("IADD3", (), (word(), PT, PT), (word(), word(), RZ), p))
            else:
                body.append(Inst("STG", (), (), (word(),), p))
        if n < count - 1 and rng.random() < 0.7:
            body.append(Inst("BRA", (), (), (PT, Label("L", rng.randrange(1, count))), Reg("P", guard)))
        blocks.append(Block(n, body))
    blocks[-1].insts.append(Inst("EXIT"))
    for v in range(guard):
        blocks[-1].insts[-1:-1] = [Inst("STG", (), (), (Reg("R", v, c),)) for c in range(vregs[v].width)]
    return function(vregs, blocks)


def run(f: Function, way: random.Random, steps: int = 300) -> list[int]:
    """The values that the stores see on one path through the program; ``way`` decides branches and guards. In SSA form
    a PHI takes the value from the block that control came from; a guarded write that does not happen takes the value
    that it is tied to."""
    at = {b.id: n for n, b in enumerate(f.blocks)}
    cells: dict[tuple[int, int], int] = {}
    seen: list[int] = []

    def value(o: Operand) -> int:
        if type(o) is Reg:
            return 0 if o.num == RZ.num and o.file == "R" else 1 if o.file == "P" else cells[(o.num, o.sub)]
        assert type(o) is Imm
        return o.value

    pos = n = 0
    came = -1
    while steps:
        if n == len(f.blocks[pos].insts):
            came, pos, n = f.blocks[pos].id, pos + 1, 0
            continue
        i = f.blocks[pos].insts[n]
        if i.op == "PHI":
            got: dict[tuple[int, int], int | None] = {}
            while f.blocks[pos].insts[n].op == "PHI":
                i = f.blocks[pos].insts[n]
                assert i.attrs is not None and type(i.attrs["preds"]) is tuple
                s, d = i.srcs[i.attrs["preds"].index(came)], i.dsts[0]
                assert type(s) is Reg and type(d) is Reg
                got[d.num, d.sub] = cells.get((s.num, s.sub))
                n += 1
            cells |= {k: v for k, v in got.items() if v is not None}
            continue
        n += 1
        steps -= 1
        if i.op == "EXIT":
            break
        if is_guarded(i) and way.random() < 0.5:
            for o in i.uses:
                assert type(o) is Reg and o.mod == TIED
                d = i.dsts[0]
                assert type(d) is Reg
                cells[d.num, d.sub] = cells[o.num, o.sub]
            continue
        if i.op == "BRA":
            came = f.blocks[pos].id
            pos, n = at[next(o.block for o in i.srcs if type(o) is Label)], 0
        elif i.op == "STG":
            seen.append(value(i.srcs[0]))
        else:
            d = i.dsts[0]
            assert type(d) is Reg
            cells[(d.num, d.sub)] = (
                value(i.srcs[0]) if i.op == "COPY" else (value(i.srcs[0]) + value(i.srcs[1])) & 0xFFFF
            )
    return seen


def test_random_programs_store_the_same() -> None:
    """In the form and after it; no additional instruction after it."""
    split = phis = 0
    for seed in range(150):
        before, after = program(random.Random(seed)), program(random.Random(seed))
        ctx = Context(Header("ori", "sm_80"), None, Flags())
        cfg = build_cfg(after)
        idom = dominators(cfg)
        webs = enter(after, cfg, idom, DominatorTree(cfg, idom), written_again(after), ctx)
        split += ctx.stats.get("webs split", 0)
        phis += sum(i.op == "PHI" for b in after.blocks for i in b.insts)
        assert not faults(after, webs), seed
        # Copies that join lanes are steps too, so runs in the form are compared up to the shorter one's length.
        for k in range(6):
            a, b = run(before, random.Random(k)), run(after, random.Random(k))
            assert a[: len(b)] == b[: len(a)], seed
        leave(after, webs)
        assert sum(len(b.insts) for b in after.blocks) <= sum(len(b.insts) for b in before.blocks)
        for k in range(6):
            a, b = run(before, random.Random(k)), run(after, random.Random(k))
            assert a[: len(b)] == b[: len(a)], seed
    assert split > 50 and phis > 50


def test_a_limit_of_rewrites_leaves_registers_together() -> None:
    """--limit 0: every register keeps its number."""
    for seed in range(20):
        before, after = program(random.Random(seed)), program(random.Random(seed))
        cfg = build_cfg(after)
        held = Context(Header("ori", "sm_80"), None, Flags(limit=0))
        idom = dominators(cfg)
        webs = enter(after, cfg, idom, DominatorTree(cfg, idom), written_again(after), held)
        leave(after, webs)
        kept = [i for b in after.blocks for i in b.insts]
        assert kept == [i for b in before.blocks for i in b.insts if i.op != "COPY" or i.dsts[0] != i.srcs[0]], seed


def test_a_guard_that_changes_between_keeps_its_copies() -> None:
    """The vector is made under one value of P and copied under another."""
    p, t = Reg("P", 0), Reg("R", 1, 0, 2)
    f = function([VReg("P"), VReg("R", 2), VReg("R"), VReg("R")], [])
    load = Inst("LDG", ("E", "64"), (PT, t), (Reg("R", 2), PT), p)
    copies = [Inst("COPY", (), (Reg("R", 2 + k),), (Reg("R", 1, k),), p) for k in range(2)]
    change = Inst("COPY", (), (p,), (Reg("P", PT.num, 0, 1, INV),))
    for insts, guarded in (
        ([load, *copies], False),
        ([load, change, *copies], True),
        ([load, copies[0], change, copies[1]], True),
    ):
        f.blocks = [
            Block(
                0,
                [
                    Inst("COPY", (), (p,), (PT,)),
                    Inst("UNDEF", (), (t,)),
                    *[Inst(i.op, i.mods, i.dsts, i.srcs, i.guard) for i in insts],
                    Inst("EXIT"),
                ],
            )
        ]
        place_guarded_vectors(f, Analyses(f, unit_of(f), Context(Header("ori", "sm_80"), None, Flags())))
        assert any(is_guarded(i) for i in f.blocks[0].insts if i.op == "COPY") == guarded


def test_scalar_forms_exist_on_every_sm() -> None:
    """CS2R of the zero register is an instruction of every SM."""
    from ir_format.model import Name

    for sm in SMS:
        dsts, srcs = isa.target(sm).complete("CS2R", (), (Reg("R", 4, 0, 2),), (Name("N", "SRZ"),))
        assert isa.target(sm).match(Inst("CS2R", (), dsts, srcs)) is not None


def test_blocks_that_nothing_reaches_are_left_out() -> None:
    """The solver visits only the blocks of its order, and ends."""
    succs: list[tuple[int, ...]] = [(1,), (), (1,)]
    preds: list[tuple[int, ...]] = [(), (0, 2), ()]
    after = solve([1, 0], succs, preds, [0, 1, 1], [0, 0, 0])[1]
    assert after[:2] == [1, 1]
