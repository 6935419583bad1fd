"""Properties of the allocator on hand-written units."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ir_format.diag import CompileError
from ir_format.model import INV, RZ, Block, Imm, Inst, Mem, Operand, Reg, Sym, Unit, imm, label
from stages.analysis.register_limits import last_register, launch_bound_limit, register_limit
from tests.regalloc.build import Kernel, allocated, ops


def test_pair_is_built_in_place() -> None:
    """Words that are copied into a pair are computed there: no move remains."""
    k = Kernel()
    a, b = k.load(), k.load()
    pair = k.reg("R", 2)
    k.emit("COPY", (pair._replace(width=1),), (a,))
    k.emit("COPY", (pair._replace(sub=1, width=1),), (b,))
    k.emit("STG.E", (), (Mem("M", pair), RZ))
    after = allocated(k.unit())
    assert "MOV" not in ops(after)[2:]
    store = after.functions[0].blocks[0].insts[-2]
    base = store.srcs[0].base  # type: ignore[union-attr]
    assert base is not None and base.num % 2 == 0


def test_quad_alignment() -> None:
    k = Kernel()
    keep = k.load()
    quad = k.load(4)
    k.emit("STG.E.128", (), (Mem("M", k.load(2)), quad))
    k.emit("STS", (), (imm(0), keep))
    after = allocated(k.unit())
    loads = [i.dsts[0] for i in after.functions[0].blocks[0].insts if i.op == "LDS"]
    assert [r.num % r.width for r in loads if isinstance(r, Reg)] == [0, 0, 0]


def test_copy_of_a_live_value_shares_its_register() -> None:
    """v and its copy may share a register while both live: they have the same value."""
    k = Kernel()
    v = k.load()
    c = k.reg()
    k.emit("COPY", (c,), (v,))
    for reg in (c, v, c):
        k.emit("STS", (), (imm(0), reg))
    after = allocated(k.unit())
    assert ops(after).count("MOV") == 1  # that of R1


def test_copy_is_kept_when_the_source_changes() -> None:
    k = Kernel()
    v = k.load()
    c = k.reg()
    k.emit("COPY", (c,), (v,))
    k.emit("IADD3", (v,), (v, imm(1), RZ))
    for reg in (c, v):
        k.emit("STS", (), (imm(0), reg))
    after = allocated(k.unit())
    assert ops(after).count("MOV") == 2


def test_guarded_definition_keeps_the_old_value() -> None:
    k = Kernel()
    v, p = k.load(), k.reg("P")
    k.emit("ISETP.LT.AND", (p, Reg("P", -1)), (v, imm(3), Reg("P", -1)))
    out, other = k.load(), k.load()
    k.emit("IADD3", (out,), (other, v, RZ), guard=p)
    k.emit("STS", (), (imm(0), out))
    after = allocated(k.unit())
    add = next(i for i in after.functions[0].blocks[0].insts if i.op == "IADD3" and i.guard)
    assert add.dsts[0] not in add.srcs


def test_unused_values_do_not_cost_registers() -> None:
    k = Kernel()
    for _ in range(200):
        k.emit("STS", (), (imm(0), k.load()))
    assert allocated(k.unit()).functions[0].regs["R"] <= 2


def test_spill_and_statistics() -> None:
    """Thirty loaded values live at once in 22 registers: real spilling, with the figures that -v prints."""
    k = Kernel()
    values = [k.load() for _ in range(30)]
    for v in values:
        k.emit("STS", (), (imm(0), v))
    after = allocated(k.unit(), limit=24)
    fn = after.functions[0]
    insts = fn.blocks[0].insts
    stores = sum(4 * (2 if "64" in i.mods else 1) for i in insts if i.op == "STL")
    loads = sum(4 * (2 if "64" in i.mods else 1) for i in insts if i.op == "LDL")
    assert fn.spills == (stores, loads)
    assert 32 <= stores <= 48
    assert fn.frame % 8 == 0 and fn.frame >= stores
    move = insts[1]
    assert move.op == "IADD3" and Imm("I", -fn.frame & 0xFFFFFFFF) in move.srcs
    assert fn.regs["R"] <= 22


def test_constants_are_made_again_instead_of_spilled() -> None:
    k = Kernel()
    values = []
    for n in range(30):
        v = k.reg()
        k.emit("MOV", (v,), (imm(1000 + n),))
        values.append(v)
    for v in values:
        k.emit("STS", (), (imm(0), v))
    after = allocated(k.unit(), limit=24)
    assert after.functions[0].spills == (0, 0)


def test_predicates_spill_through_registers() -> None:
    k = Kernel()
    preds = []
    for _ in range(12):
        p = k.reg("P")
        k.emit("ISETP.LT.AND", (p, Reg("P", -1)), (k.load(), imm(3), Reg("P", -1)))
        preds.append(p)
    for p in preds:
        k.emit("STS", (), (imm(0), RZ), guard=p._replace(flags=INV))
    after = allocated(k.unit())
    assert after.functions[0].regs["P"] <= 7
    assert "SEL" in ops(after)


def test_uniform_registers_spill_to_registers() -> None:
    k = Kernel()
    regs = []
    for _ in range(80):
        u = k.fn.new_vreg("UR", uniform=1)
        k.emit("UIADD3", (u,), (imm(0), imm(1), Reg("UR", -1)))
        regs.append(u)
    for u in regs:
        k.emit("IADD3", (d := k.reg(),), (RZ, u, RZ))
        k.emit("STS", (), (imm(0), d))
    after = allocated(k.unit())
    assert after.functions[0].regs["UR"] <= 63
    assert "R2UR" in ops(after)


def test_parallel_copy_cycle() -> None:
    k = Kernel()
    a, b, c = k.load(), k.load(), k.load()
    k.emit("PCOPY", (a, b, c), (b, c, a))
    for v in (a, b, c):
        k.emit("STS", (), (imm(0), v))
    assert ops(allocated(k.unit())).count("MOV") <= 5


def test_fixed_registers_are_honoured() -> None:
    k = Kernel()
    v = k.load()
    f = k.reg(fixed=9)
    k.emit("COPY", (f,), (v,))
    k.emit("STS", (), (imm(0), f))
    after = allocated(k.unit())
    assert Reg("R", 9) in after.functions[0].blocks[0].insts[-2].srcs


def test_a_register_asked_for_twice_is_an_error() -> None:
    k = Kernel()
    a, b = k.reg(fixed=9), k.reg(fixed=9)
    k.emit("LDS", (a,), (imm(0),))
    k.emit("LDS", (b,), (imm(4),))
    k.emit("STS", (), (a, b))
    with pytest.raises(CompileError, match="R9"):
        allocated(k.unit())


def test_impossible_limit_is_named() -> None:
    k = Kernel()
    wide = k.fn.new_vreg("R", 64, 4)
    k.emit("HGMMA", (wide,), (wide,))
    unit = k.unit()
    with pytest.raises(CompileError, match="C7602"):
        allocated(unit, limit=32)


def test_values_live_through_a_loop_are_not_overwritten() -> None:
    k = Kernel()
    v = k.load()
    k.fn.blocks.append(Block(1))
    t = k.load()
    k.emit("STS", (), (imm(0), t))
    p = k.reg("P")
    k.emit("ISETP.LT.AND", (p, Reg("P", -1)), (t, v, Reg("P", -1)))
    k.fn.blocks[-1].insts.append(Inst("BRA", (), (), (label(1),), p))
    k.fn.blocks.append(Block(2))
    k.emit("STS", (), (imm(0), v))
    after = allocated(k.unit())
    body = after.functions[0].blocks[1].insts
    home = after.functions[0].blocks[0].insts[-1].dsts[0]
    assert home not in body[0].dsts


def test_uniform_registers_of_two_sides_are_kept_apart() -> None:
    """The sides of a divergent branch may interleave: what one writes must not be what the other needs."""
    k = Kernel()
    p = k.reg("P")
    k.emit("ISETP.LT.AND", (p, Reg("P", -1)), (k.load(), imm(3), Reg("P", -1)))
    k.emit("BRA", (), (label(2),), guard=p)
    written = []
    for block in (1, 2):
        k.fn.blocks.append(Block(block))
        u = k.fn.new_vreg("UR", uniform=1)
        k.emit("UMOV", (u,), (imm(block),))
        k.emit("IADD3", (d := k.reg(),), (RZ, u, RZ))
        k.emit("STS", (), (imm(0), d))
        if block == 1:
            k.emit("BRA", (), (label(3),))
    k.fn.blocks.append(Block(3))
    after = allocated(k.unit())
    for block in (1, 2):
        written.append(after.functions[0].blocks[block].insts[0].dsts[0])
    assert written[0] != written[1]


@pytest.mark.parametrize("depth", [12, 40])
def test_nested_barriers(depth: int) -> None:
    """There are sixteen barriers; further ones are kept in registers."""
    k = Kernel()
    barriers = []
    for _ in range(depth):
        b = k.reg("B")
        k.emit("BSSY", (b,), (label(1),))
        barriers.append(b)
    for b in reversed(barriers):
        k.emit("BSYNC", (), (b,))
    k.fn.blocks.append(Block(1))
    after = allocated(k.unit())
    assert after.functions[0].regs["B"] <= 16
    assert ("BMOV" in ops(after)) == (depth > 16)


@pytest.mark.parametrize(
    ("op", "dsts", "srcs"),
    [
        ("COPY", (), ()),
        ("COPY", (Reg("R", 1),), (Reg("R", 99),)),
        ("COPY", (Reg("R", 1),), (Reg("R", 2, 0, 2),)),
        ("PCOPY", (Reg("R", 1),), ()),
        ("IADD3", (Reg("R", 1, 3),), ()),
        ("IADD3", (Reg("P", 1),), ()),
        ("COPY", (Reg("R", 1),), (label(0),)),
    ],
)
def test_malformed_instructions_are_refused(op: str, dsts: tuple[Operand, ...], srcs: tuple[Operand, ...]) -> None:
    k = Kernel()
    k.reg()
    k.reg("R", 2)
    k.emit(op, dsts, srcs)
    with pytest.raises(CompileError):
        allocated(k.unit())


def _calling(callee: str) -> Kernel:
    k = Kernel()
    v = k.load()
    back = k.fn.new_vreg("R", 2, 2, 20)
    k.emit("MOV", (back._replace(width=1),), (Imm("I", 0, "k", "ret"),))
    k.emit("MOV", (back._replace(sub=1, width=1),), (imm(0),))
    call = k.emit("CALL.REL.NOINC", (), (Sym("S", callee),))
    call.uses = (back,)
    k.emit("STS", (), (imm(0), v))
    return k


def test_value_across_an_outside_call_is_in_a_preserved_register() -> None:
    after = allocated(_calling("elsewhere").unit())
    kept = after.functions[0].blocks[0].insts[-2].srcs[1]
    assert isinstance(kept, Reg) and kept.num in {2, *range(16, 20), *range(22, 32)}


def test_value_across_a_known_call_needs_no_preserved_register() -> None:
    """The callee is allocated first; the caller keeps its value in a register that the callee does not write."""
    k = _calling("leaf")
    leaf = Kernel("leaf")
    leaf.fn.kind = "func"
    leaf.fn.blocks[0].insts = []
    address = leaf.fn.new_vreg("R", 2, 2, 20)
    leaf.emit("FENTRY").defs = (address,)
    leaf.emit("STS", (), (imm(0), leaf.load()))
    leaf.emit("RET.REL.NODEC", (), (address, Sym("S", "k")))
    unit: Unit = k.unit()
    unit.functions.append(leaf.fn)
    after = allocated(unit)
    kept = after.functions[0].blocks[0].insts[-2].srcs[1]
    assert isinstance(kept, Reg) and kept.num == 2  # R0 is the callee's, R1 the stack
    assert after.functions[1].frame == 0


@pytest.mark.parametrize(
    ("sm", "threads", "ctas", "limit"),
    [
        (90, 1024, 1, 64),
        (90, 256, 4, 64),
        (90, 256, 1, 255),
        (75, 1024, 1, 64),
        (80, 1024, 2, 32),
        (86, 512, 2, 64),
        (90, 96, 1, 255),
    ],
)
def test_launch_bounds(sm: int, threads: int, ctas: int, limit: int) -> None:
    """floor8(65536 / (32 * roundup4(warps * ctas))), at most 255 (the measured rule)."""
    assert launch_bound_limit(sm, threads, ctas) == limit


def test_limit_precedence() -> None:
    unit = Unit("k")
    assert register_limit(unit, 90, {}) == 255
    assert register_limit(unit, 90, {"maxrregcount": 16}) == 24
    assert register_limit(unit, 90, {"maxrregcount": 256}) == 255
    assert register_limit(unit, 90, {"maxrregcount": "archmin"}) == 32
    unit.attrs["maxnreg"] = 40
    assert register_limit(unit, 90, {"maxrregcount": 64}) == 40
    assert register_limit(unit, 90, {"maxrregcount": 64, "override-directive-values": 1}) == 64
    assert last_register(24) == 21


def test_short_lives_go_from_register_to_register() -> None:
    """Eight values in a row, each stored at once, while eight others live: no register is used twice in a row, and no
    more registers than necessary."""
    k = Kernel()
    kept = [k.load() for _ in range(8)]
    for reg in kept:
        k.emit("STS", (), (imm(0), reg))
    for _ in range(8):
        k.emit("STS", (), (imm(0), k.load()))
    after = allocated(k.unit())
    numbers = [
        i.dsts[0].num for i in after.functions[0].blocks[0].insts if i.op == "LDS" and isinstance(i.dsts[0], Reg)
    ]
    assert all(a != b for a, b in pairwise(numbers[8:]))
    assert max(numbers) <= 8  # R1 is the stack pointer


def test_predicates_take_turns() -> None:
    """Tests of guards of one store each: every one has a predicate of its own, as in ptxas's code, so that none waits
    until the store before it has read its guard."""
    k = Kernel()
    v = k.load()
    for n in range(5):
        p = k.reg("P")
        k.emit("ISETP.LT.AND", (p, Reg("P", -1)), (v, imm(n), Reg("P", -1)))
        k.emit("STS", (), (imm(4 * n), v), guard=p)
    after = allocated(k.unit())
    guards = [i.guard.num for i in after.functions[0].blocks[0].insts if i.op == "STS" and i.guard is not None]
    assert len(set(guards)) == 5
