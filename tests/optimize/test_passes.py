"""The results of the optimize passes on small kernels. tests/kernels, tests/lower and co-simulation check that values
stay the same."""

from __future__ import annotations

import pytest

from ir_format.flow import is_guarded
from ir_format.model import Const, Header, Imm, Inst, Mem, Unit
from stages.optimize.manager import Order, check_order
from stages.optimize.passes import PASSES
from stages.plumbing.chain import OPTIMIZE
from stages.plumbing.runner import Context, Flags, run_unit, select
from tests.lower.helpers import insts, kernel, lower_text

SMS = ("sm_75", "sm_80", "sm_90", "sm_120")


def optimized(body: str, target: str) -> tuple[Unit, dict[str, int]]:
    """A kernel's unit after all passes, and their statistics."""
    (unit,) = lower_text(kernel(body, target), target)
    ctx = Context(Header("ori", target), None, Flags())
    for p in PASSES:
        p.run(unit, ctx)
    return unit, ctx.stats


def ops(unit: Unit) -> list[str]:
    return [i.op for i in insts(unit)]


def of(unit: Unit, op: str) -> list[Inst]:
    return [i for i in insts(unit) if i.op == op]


HEAD = (
    "mov.u32 %r1, %tid.x; ld.param.u32 %r2, [n]; ld.param.u64 %rd1, [p]; cvta.to.global.u64 %rd1, %rd1; "
    "mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;"
)


@pytest.mark.parametrize("target", SMS)
def test_short_arm_is_predicated(target: str) -> None:
    """A triangle with a load, another behind it: no branch, no barrier, the load under a guard, the address computed in
    any case."""
    unit, stats = optimized(
        HEAD
        + (
            "setp.ge.u32 %p1, %r1, %r2; mov.u32 %r3, 7; @%p1 bra J; ld.global.u32 %r3, [%rd3]; add.s32 %r3, "
            "%r3, 1; J: ld.global.u32 %r4, [%rd3+128]; add.s32 %r3, %r3, %r4; st.global.u32 [%rd3+64], %r3; ret;"
        ),
        target,
    )
    assert stats["arms predicated"] == 1
    assert not {"BRA", "BSSY", "BSYNC"} & set(ops(unit))
    assert sorted(is_guarded(i) for i in of(unit, "LDG")) == [False, True]
    assert [is_guarded(i) for i in of(unit, "STG")] == [False]


@pytest.mark.parametrize("target", SMS)
def test_both_arms_are_predicated(target: str) -> None:
    """A diamond: the stores of the two arms have opposite guards."""
    unit, stats = optimized(
        HEAD
        + (
            "setp.ge.u32 %p1, %r1, %r2; @%p1 bra F; st.global.u32 [%rd3], %r1; bra J; F: st.global.u32 [%rd3], "
            "%r2; J: st.global.u32 [%rd3+64], %r2; ret;"
        ),
        target,
    )
    assert stats["arms predicated"] == 2
    stores = sorted(of(unit, "STG"), key=lambda i: next(o.offset for o in (*i.dsts, *i.srcs) if type(o) is Mem))
    first, second, last = (i.guard for i in stores)
    assert first is not None and second is not None and last is None
    assert first.num == second.num and first.flags != second.flags


@pytest.mark.parametrize(
    "arm",
    [
        "atom.global.add.u32 %r3, [%rd3], 1;",
        "bar.sync 0;",
        "ld.volatile.global.u32 %r3, [%rd3];",
        "xor.b32 %r3, %r3, %r1; mul.lo.s32 %r3, %r3, %r3;" * 6,
    ],
)
def test_arms_that_are_not_predicated(arm: str) -> None:
    """Atomics, barriers, volatile accesses and long arms keep their branch."""
    unit, stats = optimized(
        HEAD + f"setp.ge.u32 %p1, %r1, %r2; mov.u32 %r3, 7; @%p1 bra J; {arm} J: st.global.u32 [%rd3+64], %r3; ret;",
        "sm_90",
    )
    assert "arms predicated" not in stats
    assert "BRA" in ops(unit)


def test_value_from_before_survives() -> None:
    """A register that the arm writes and that is read after it is written under the guard, whatever else the arm
    computes in it."""
    unit, _ = optimized(
        HEAD
        + (
            "setp.ge.u32 %p1, %r1, %r2; mov.u32 %r3, %r2; @%p1 bra J; mul.lo.s32 %r4, %r1, 5; add.s32 %r3, "
            "%r4, 1; J: st.global.u32 [%rd3], %r3; ret;"
        ),
        "sm_90",
    )
    (store,) = of(unit, "STG")
    kept = next(o for o in store.srcs if getattr(o, "file", "") == "R" and getattr(o, "num", -1) >= 0)
    writers = [
        i
        for i in insts(unit)
        if any(getattr(d, "num", None) == kept.num and getattr(d, "file", "") == "R" for d in i.dsts)
    ]  # type: ignore[union-attr]
    assert [is_guarded(i) for i in writers] == [False, True]


@pytest.mark.parametrize("target", SMS)
def test_loads_start_early(target: str) -> None:
    """Loads that each precede their user are moved together before registers are allocated."""
    body = (
        HEAD
        + "".join(f"ld.global.f32 %f{n}, [%rd3+{4096 * n}]; fma.rn.f32 %f0, %f{n}, %f{n}, %f0;" for n in range(1, 9))
        + "st.global.f32 [%rd3], %f0; ret;"
    )
    unit, _ = optimized("mov.f32 %f0, 0f00000000;" + body, target)
    order = [i for i in ops(unit) if i in ("LDG", "FFMA")]
    assert order == ["LDG"] * 8 + ["FFMA"] * 8


def test_order_stops_at_the_limit() -> None:
    """With more loads than registers, the first users precede the last loads."""
    count = 19
    loads = "".join(
        (
            f"ld.global.v4.f32 {{%f1, %f2, %f3, %f4}}, [%rd3+{4096 * n}]; fma.rn.f32 %f5, %f1, %f2, %f5; "
            f"fma.rn.f32 %f5, %f3, %f4, %f5;"
        )
        for n in range(count)
    )
    unit, _ = optimized("mov.f32 %f5, 0f00000000;" + HEAD + loads + "st.global.f32 [%rd3], %f5; ret;", "sm_90")
    order = [i for i in ops(unit) if i in ("LDG", "FFMA")]
    assert order.index("FFMA") < len(order) - 1 - order[::-1].index("LDG")
    assert order.count("LDG") == count


def test_order_keeps_memory_and_barriers() -> None:
    """A load stays after the barrier, and after an earlier store that may alias it."""
    body = HEAD + (
        "st.global.u32 [%rd3], %r1; ld.global.u32 %r3, [%rd1]; bar.sync 0; ld.global.u32 %r4, [%rd3+4]; "
        "add.s32 %r5, %r3, %r4; st.global.u32 [%rd3+8], %r5; ret;"
    )
    unit, _ = optimized(body, "sm_80")
    assert [i for i in ops(unit) if i in ("STG", "LDG", "BAR")] == ["STG", "LDG", "BAR", "LDG", "STG"]


def test_no_warpsync_where_the_warp_has_converged() -> None:
    """The branch before a shuffle is gone, so nothing must wait for the warp; after a long divergent arm something
    must."""
    text = HEAD + (
        "setp.ge.u32 %p1, %r1, %r2; @%p1 bra J; {} J: shfl.sync.bfly.b32 %r3, %r1, 1, 31, 0xffffffff; "
        "st.global.u32 [%rd3], %r3; ret;"
    )
    short, _ = optimized(text.format("add.s32 %r1, %r1, 1;"), "sm_90")
    assert "WARPSYNC" not in ops(short)
    long, _ = optimized(text.format("mul.lo.s32 %r1, %r1, %r1; xor.b32 %r1, %r1, 3;" * 8), "sm_90")
    assert "WARPSYNC" in ops(long)


def test_no_convergence_barrier_before_exit() -> None:
    """A loop that threads leave one by one only to exit needs no barrier; with work after it, it does."""
    loop = (
        HEAD
        + 'L: .pragma "nounroll";'
        + "st.global.u32 [%rd3], %r1; add.s32 %r1, %r1, 32; setp.lt.u32 %p1, %r1, %r2; @%p1 bra L; {} ret;"
    )
    unit, _ = optimized(loop.format(""), "sm_90")
    assert not {"BSSY", "BSYNC"} & set(ops(unit))
    unit, _ = optimized(loop.format("st.global.u32 [%rd3+4], %r2;"), "sm_90")
    assert {"BSSY", "BSYNC"} <= set(ops(unit))


@pytest.mark.parametrize("target", SMS)
def test_shift_and_sum_are_one(target: str) -> None:
    """LEA, also if several sums share the shift."""
    unit, _ = optimized(
        HEAD
        + (
            "shl.b32 %r3, %r1, 3; add.s32 %r4, %r3, %r2; add.s32 %r5, %r3, 100; st.global.u32 [%rd3], %r4; "
            "st.global.u32 [%rd3+4], %r5; ret;"
        ),
        target,
    )
    assert ops(unit).count("LEA") == 2
    assert not any(i.op == "SHF" and i.mods[0] == "L" for i in insts(unit))


@pytest.mark.parametrize(("amount", "left"), [(32, False), (40, False), (45, True)])
def test_words_of_wide_shifts(amount: int, left: bool) -> None:
    """Only one word of a double word reaches the result: at most one shift, of that word."""
    op = "shl.b64" if left else "shr.u64"
    want = "{%r5, %r6}" if left else "{%r6, %r5}"
    unit, _ = optimized(
        HEAD
        + (
            f"mov.b64 %rd4, {{%r1, %r2}}; {op} %rd4, %rd4, {amount}; mov.b64 {want}, %rd4; "
            f"st.global.u32 [%rd3], %r6; ret;"
        ),
        "sm_90",
    )
    shifts = [i for i in of(unit, "SHF") if "U64" in i.mods]
    assert shifts == []
    assert len(of(unit, "SHF")) == (0 if amount == 32 else 1)


@pytest.mark.parametrize("target", SMS)
def test_parameter_loaded_through_its_address(target: str) -> None:
    """A parameter loaded through its address, plus an offset added in 64 bits, is a constant-bank operand without an
    index and without a sum."""
    unit, _ = optimized(
        (
            "mov.b64 %rd1, p; add.s64 %rd2, %rd1, 4; ld.param.u32 %r1, [%rd2+4]; ld.param.u64 %rd3, [p]; "
            "cvta.to.global.u64 %rd3, %rd3; st.global.u32 [%rd3], %r1; ret;"
        ),
        target,
    )
    direct, _ = optimized(
        "ld.param.u32 %r1, [n]; ld.param.u64 %rd3, [p]; cvta.to.global.u64 %rd3, %rd3; st.global.u32 [%rd3], %r1; ret;",
        target,
    )
    assert sorted(o.replace("MOV", "COPY") for o in ops(unit)) == sorted(o.replace("MOV", "COPY") for o in ops(direct))
    assert constants(unit) == constants(direct)


def constants(unit: Unit) -> set[Const]:
    """The constant-bank operands of a unit."""
    return {o for i in insts(unit) for o in i.srcs if type(o) is Const}


@pytest.mark.parametrize(
    ("a", "b"), [(0xFFFFFFFF, 1), (0xFFFFFFFF, 0), (0x1_FFFFFFFF, 0x2_00000003), (0xFFFFFFFF_FFFFFFFF, 1)]
)
def test_carry_of_constants(a: int, b: int) -> None:
    """64-bit sums of constants are constants, including the carry."""
    unit, _ = optimized(HEAD + f"mov.b64 %rd4, {a}; add.s64 %rd5, %rd4, {b}; st.global.u64 [%rd3], %rd5; ret;", "sm_80")
    assert not any(i.op == "IADD3" and i.mods == ("X",) and any(type(o) is Imm for o in i.srcs) for i in insts(unit))
    total = a + b & (1 << 64) - 1
    stored = {o.value for i in insts(unit) if i.op == "COPY" for o in i.srcs if type(o) is Imm}
    assert {w for w in (total & 0xFFFFFFFF, total >> 32) if w} <= stored


@pytest.mark.parametrize("target", SMS)
def test_rows_of_a_tile_share_an_address(target: str) -> None:
    """(a + 0x1000) + b as an address is a + b with an offset if a + b exists already, also in a loop, where a is no
    SSA value."""
    body = (
        "ld.param.u32 %r2, [n]; mov.u32 %r1, %tid.x; mov.u32 %r3, 0; cvta.to.global.u64 %rd1, %rd1; L: "
        '.pragma "nounroll"; add.s32 %r4, %r3, %r1; ld.shared.u32 %r5, [%r4];'
        "add.s32 %r6, %r3, 4096; add.s32 %r7, %r6, %r1; ld.shared.u32 %r8, [%r7]; st.global.u32 [%rd1], "
        "%r5; st.global.u32 [%rd1+4], %r8;"
        "add.s32 %r3, %r3, 128; setp.lt.s32 %p1, %r3, %r2; @%p1 bra L; ret;"
    )
    unit, _ = optimized("ld.param.u64 %rd1, [p];" + body, target)
    where = [o for i in of(unit, "LDS") for o in i.srcs if type(o) is Mem]
    assert len({o.base for o in where}) == 1
    assert sorted(o.offset for o in where) == [0, 4096]


def test_rules_of_order_are_checked() -> None:
    """A table that breaks an ordering rule, and one that names an unknown pass, are refused with the reason."""
    rule = Order("licm", "unroll", "because")
    check_order(["licm", "dce", "unroll"], (rule,))
    for names, what in ((["unroll", "licm"], "because"), (["licm"], "names no pass"), (["licm", "licm"], "one name")):
        with pytest.raises(ValueError, match=what):
            check_order(names, (rule,))


def test_dump_after_all_passes(capsys: pytest.CaptureFixture[str]) -> None:
    """Each pass once and in order, in the form that it works on; the unit itself is written at level `ori`."""
    (unit,) = lower_text(
        kernel(HEAD + "mov.u32 %r3, 0; L: add.u32 %r3, %r3, %r1; setp.lt.u32 %p1, %r3, %r2; @%p1 bra L; ret;", "sm_80"),
        "sm_80",
    )
    ctx = Context(Header("ori", "sm_80"), None, Flags(dump_after=("all",), stop_after="combine"))
    unit = run_unit(OPTIMIZE, select(OPTIMIZE, PASSES, ctx), unit, ctx)
    said = capsys.readouterr().err
    names = [p.name for p in PASSES]
    dumped = [x.split("/")[1] for x in said.splitlines() if x.startswith("# after")]
    assert dumped == names[: names.index("combine") + 1]
    assert "PHI" in said and "PHI" not in ops(unit)


def test_former_names_of_passes() -> None:
    """Scripts that use the former names of passes continue to work."""
    assert all(new in {p.name for p in PASSES} for new in OPTIMIZE.renamed.values())
    ctx = Context(Header("ori", "sm_80"), None, Flags(only=("simplify", "order")))
    assert [p.name for p in select(OPTIMIZE, PASSES, ctx)] == ["combine", "list-schedule"]


@pytest.mark.parametrize("target", SMS)
@pytest.mark.parametrize(("test", "taken"), [("setp.lt.u32 %p1, %r4, 9;", True), ("setp.gt.u32 %p1, %r4, 9;", False)])
def test_branch_on_a_constant(test: str, taken: bool, target: str) -> None:
    """Only the executed arm is left, and no branch; %r4 is known to be below 8."""
    long = "xor.b32 %r3, %r3, %r1; mul.lo.s32 %r3, %r3, %r3;" * 6
    body = (
        f"and.b32 %r4, %r2, 7; {test} mov.u32 %r3, 7; @%p1 bra X; {long} bra J; X: st.global.u32 [%rd3], %r1; "
        f"J: st.global.u32 [%rd3+64], %r3; ret;"
    )
    unit, stats = optimized(HEAD + body, target)
    assert stats["branches on constants"] == 1 and "BRA" not in ops(unit)
    assert (len(of(unit, "STG")), "LOP3" in ops(unit)) == (2 if taken else 1, not taken)


def _with_q(body: str, target: str) -> tuple[Unit, dict[str, int]]:
    """Like :func:`optimized`, with an additional parameter."""
    text = kernel(body, target, ".param .u64 p, .param .u32 n, .param .u64 q")
    (unit,) = lower_text(text, target)
    ctx = Context(Header("ori", target), None, Flags())
    for p in PASSES:
        p.run(unit, ctx)
    return unit, ctx.stats


def test_parameters_are_loaded_after_the_exits() -> None:
    """Threads that exit at a second test load no parameter that only the others read. A parameter that is read before
    and after a loop, but not in it, is loaded twice and kept in no register meanwhile."""
    early = "ld.param.u64 %rd4, [q]; " + HEAD + "setp.ge.s32 %p1, %r1, %r2; @%p1 ret; "
    unit, stats = _with_q(
        early + "ld.global.u32 %r3, [%rd3]; setp.ne.s32 %p1, %r3, 7; @%p1 ret; st.global.u64 [%rd3], %rd4; ret;",
        "sm_90",
    )
    assert stats["loads sunk"] >= 1
    assert [i.op for i in unit.functions[0].blocks[-1].insts].count("LDC") == 1
    loop = (
        "add.s64 %rd5, %rd4, %rd2; L: ld.global.u32 %r3, [%rd5]; add.s64 %rd5, %rd5, 64; setp.ne.s32 %p1, %r3, 7; "
        "@%p1 bra L; mul.wide.u32 %rd6, %r3, 4; add.s64 %rd6, %rd4, %rd6; st.global.u32 [%rd6], %r3; ret;"
    )
    _, stats = _with_q(early + loop, "sm_90")
    assert stats["loads sunk into several blocks"] == 1
