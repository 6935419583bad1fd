"""Every judge catches what is planted for it: small seeded runs of :mod:`tests.check.mutants`; and one mutant for each
rule of the schedule checker that concerns a single place."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ir_format import isa
from ir_format.model import Inst
from orchestrator.api import compile_ptx
from stages.check.schedule_checker import check_cubin
from stages.disasm.cubin import Cubin, read_cubin
from stages.disasm.listing import decode_section
from tests import oracle
from tests.check import mutants
from tests.check.schedule_mutants import KERNELS, Mutant, certain
from tests.kernels import cases


@pytest.mark.parametrize("sm", ["80", "90", "120"])
def test_broken_control_words(sm: str) -> None:
    """The schedule checker finds all of them, the strict simulator at least 95 %."""
    tally = mutants.run(
        [sm], ("ours",), ("schedule", "strict"), ["vadd", "histogram", "switch10"], 1 if sm != "90" else 2, 3
    )
    assert tally.rate("schedule") == 1.0, tally.survivors
    assert tally.rate("strict") >= 0.95, tally.survivors
    judged = {kind for judge, kind in tally.made if judge == "strict"}
    assert {"stall raw", "wait result", "index result", "reuse"} <= judged
    assert sum(tally.caught.values()) > 15


def test_changed_computations() -> None:
    """At least 95 % by co-simulation."""
    tally = mutants.run(["90"], ("ours",), ("cosim",), ["vadd", "switch10", mutants.SPILLING], 3, 3)
    assert tally.rate("cosim") >= 0.95, tally.survivors
    assert {kind for _, kind in tally.made} == {"predicate", "immediate", "registers", "slot"}
    assert sum(tally.caught.values()) > 15


def test_strict_knows_wide_products_and_kept_operands() -> None:
    """IMAD.WIDE reads A and B as late as the table says, and an operand that is kept and overwritten shows even if the
    the values are equal."""
    from tests.check.strict_mutants import Bench

    seen = set()
    for name in ("reduce_sum", "histogram"):
        data = mutants.cubin_of(name, "80", "ours", False)
        assert data is not None
        bench = Bench(cases.CASES[name], data)
        for mutant in certain(bench.cubin, random.Random(1)):
            later = bench._inst(mutant.section, mutant.partner)
            wide = mutant.kind == "stall raw" and later.op == "IMAD" and "WIDE" in later.mods
            if wide or mutant.kind == "reuse":
                kind = "wide" if wide else "reuse"
                if (name, kind) not in seen:
                    seen.add((name, kind))
                    assert bench.judge(mutant).caught, mutants.describe(bench.cubin, mutant)
    assert {kind for _, kind in seen} == {"wide", "reuse"}


@pytest.mark.oracle
def test_ptxas_too() -> None:
    oracle.require("ptxas")
    tally = mutants.run(["90"], ("ptxas",), mutants.JUDGES[:3], ["vadd"], 2, 4)
    for judge in mutants.JUDGES[:3]:
        assert tally.rate(judge) >= 0.95, tally.survivors
        assert sum(n for (who, _), n in tally.caught.items() if who == judge) >= 4


def findings(cubin: Cubin, section: int, place: int, field: str, value: int) -> list[str]:
    """Kinds of findings when one field is changed."""
    return [f.kind for f in check_cubin(Mutant("", section, place, field, value).apply(cubin)).findings]


def code(cubin: Cubin, section: int = 0) -> list[Inst]:
    """The instructions of a section."""
    items = decode_section(cubin.sections[section], isa.target(cubin.sm))
    return [item.inst for item in items if item.inst is not None]


@pytest.mark.parametrize("sm", [80, 90, 120])
def test_least_stall(sm: int) -> None:
    cubin = read_cubin(compile_ptx((KERNELS / "ptx" / f"sm_{sm}" / "vadd.ptx").read_text(), f"sm_{sm}"))
    exits = [n for n, inst in enumerate(code(cubin)) if inst.op == "EXIT"]
    assert "stall" in findings(cubin, 0, exits[0], "stall", 1)


FENCED = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 o) {
.reg .b32 r<4>; .reg .b64 a;
.shared .align 16 .b8 s[128];
mov.u32 r0, %tid.x; shl.b32 r0, r0, 2; mov.u32 r1, s; add.u32 r1, r1, r0;
st.shared.u32 [r1], r0; fence.proxy.async.shared::cta; ld.shared.u32 r2, [r1+4];
ld.param.u64 a, [o]; st.global.u32 [a], r2; ret;
}
"""


def test_memory_waits_for_a_fence() -> None:
    """A FENCE that nothing waits for. (Accesses do not wait for SYNCS: measured on ptxas's code.)"""
    cubin = read_cubin(compile_ptx(FENCED, "sm_90"))
    tried = 0
    for s in range(len(cubin.sections)):
        insts = code(cubin, s)
        for n, inst in enumerate(insts):
            if inst.op != "FENCE" or inst.ctl is None or inst.ctl.wr == 7:
                continue
            broken = cubin
            for later in range(n + 1, len(insts)):
                ctl = insts[later].ctl
                if ctl is not None and ctl.wait:
                    broken = Mutant("", s, later, "wait", 0).apply(broken)
            assert any(f.register == "memory" for f in check_cubin(broken).findings)
            tried += 1
    assert tried


@pytest.mark.oracle
@pytest.mark.parametrize("sm", [80, 90, 120])
def test_nothing_is_in_flight_when_control_leaves(sm: int) -> None:
    oracle.require("ptxas")
    text = """.version 8.0
.target sm_75
.address_size 64
.visible .func mine(.param .b64 p)
{ .reg .b32 %r<4>; .reg .b64 %d; ld.param.u64 %d, [p]; ld.u32 %r0, [%d]; add.u32 %r0, %r0, 3; st.u32 [%d+128], %r0; \
ret; }
"""
    path = oracle.compile_ptx(text, str(sm), "-c")
    assert isinstance(path, Path), path
    cubin = read_cubin(path.read_bytes())
    assert check_cubin(cubin).findings == []
    place = next(n for n, inst in enumerate(code(cubin)) if inst.op == "RET")
    assert "call" in findings(cubin, 0, place, "wait", 0)


def test_reuse_of_an_overwritten_operand() -> None:
    judged = 0
    for name in ("histogram", "divrem64", "softmax"):
        cubin = read_cubin(compile_ptx((KERNELS / "ptx" / "sm_90" / f"{name}.ptx").read_text(), "sm_90"))
        for mutant in [m for m in certain(cubin, random.Random(1)) if m.kind == "reuse"][:5]:
            assert "reuse" in [f.kind for f in check_cubin(mutant.apply(cubin)).findings]
            judged += 1
    assert judged


def products(left: int) -> str:
    """Two groups of warpgroup products with separate accumulators; those of the first are stored when ``left`` groups
    may be in flight."""
    first, second = (", ".join(f"%f{k}" for k in range(at, at + 4)) for at in (0, 4))
    product = (
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%s}, %%d1, %%d2, 1, 1, 1, 0, 0; "
        "wgmma.commit_group.sync.aligned;\n"
    )
    stores = "".join([f"st.global.f32 [%d0+{4 * k}], %f{k};\n" for k in range(4)])
    rest = "".join([f"st.global.f32 [%d0+{4 * k}], %f{k};\n" for k in range(4, 8)])
    return (
        ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .b64 p, .param .b64 q, "
        ".param .b64 r)\n{ .reg .b64 %d<3>; .reg .f32 %f<8>;\n"
        "ld.param.b64 %d0, [p]; ld.param.b64 %d1, [q]; ld.param.b64 %d2, [r];\n"
        + "".join([f"ld.global.f32 %f{k}, [%d0+{4 * k}];\n" for k in range(8)])
        + f"wgmma.fence.sync.aligned;\n{product % first}{product % second}"
        + f"wgmma.wait_group.sync.aligned {left};\n{stores}wgmma.wait_group.sync.aligned 0;\n{rest}ret; }}\n"
    )


@pytest.mark.parametrize("who", ["ours", pytest.param("ptxas", marks=pytest.mark.oracle)])
@pytest.mark.parametrize("left", [0, 1])
def test_products_in_flight(who: str, left: int) -> None:
    """A warpgroup product's registers are touched only after the wait for its group; a missing wait is found."""
    if who == "ptxas":
        oracle.require("ptxas")
        path = oracle.compile_ptx(products(left), "90a")
        assert isinstance(path, Path), path
        cubin = read_cubin(path.read_bytes())
    else:
        cubin = read_cubin(compile_ptx(products(left), "sm_90a"))
    assert check_cubin(cubin).findings == []
    insts = code(cubin)
    waits = [n for n, inst in enumerate(insts) if inst.op == "WARPGROUP" and "DEPBAR" in inst.mods]
    assert waits
    if left:
        for n in waits:
            nothing = isa.target(90).encode(Inst("NOP", ctl=insts[n].ctl), n * 16)
            assert "wait" in findings(cubin, 0, n, "word", nothing), n
    else:
        certainly = [m for m in certain(cubin, random.Random(1)) if m.kind == "wait product"]
        assert certainly
        for mutant in certainly:
            assert "wait" in [f.kind for f in check_cubin(mutant.apply(cubin)).findings]
