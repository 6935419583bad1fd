"""The slow paths of divisions and roots: one function per unit for any number of instructions, with only the results
that the unit needs, and no longer than ptxas's."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.cubin_facts import kernel_facts
from orchestrator.api import compile_ptx
from tests import oracle
from tests.lower.helpers import lower_text

OPS = {
    "div.rn.f64": "f64", "rcp.rn.f64": "f64", "sqrt.rn.f64": "f64", "div.rn.f32": "f32", "rcp.rn.f32": "f32",
    "sqrt.rn.f32": "f32",
    "div.u64": "u64", "rem.u64": "u64", "div.s64": "s64", "rem.s64": "s64",
}  # fmt: skip
HELPERS = {
    "div.rn.f64": "div_f64_rn", "rcp.rn.f64": "rcp_f64_rn", "sqrt.rn.f64": "sqrt_f64_rn", "div.rn.f32": "div_f32_rn",
    "rcp.rn.f32": "rcp_f32_rn", "sqrt.rn.f32": "sqrt_f32_rn",
    "div.u64": "div_u64", "rem.u64": "rem_u64", "div.s64": "div_s64", "rem.s64": "rem_s64",
}  # fmt: skip


def kernel(ops: list[str], target: str) -> str:
    """A kernel that uses each of ``ops`` once, on numbers from memory."""
    kind = OPS[ops[0]]
    size = int(kind[1:]) // 8
    lines = [f"ld.global.{kind} x{k}, [p+{size * k}];" for k in range(len(ops) + 1)]
    lines += [
        f"{op} d{k}, x{k}" + (f", x{k + 1};" if op.startswith(("div", "rem")) else ";") for k, op in enumerate(ops)
    ]
    lines += [f"st.global.{kind} [p+{size * k}], d{k};" for k in range(len(ops))]
    regs = f".reg .{kind} x<{len(ops) + 1}>, d<{len(ops) + 1}>; .reg .b64 p; ld.param.u64 p, [o];"
    return (
        f".version 8.7\n.target {target}\n.address_size 64\n.visible .entry k(.param .u64 o)\n{{\n{regs}\n"
        + "\n".join(lines)
        + "\nret;\n}\n"
    )


@pytest.mark.parametrize("op", OPS)
def test_one_function(op: str) -> None:
    for times in (1, 5):
        (unit,) = lower_text(kernel([op] * times, "sm_90"), "sm_90")
        assert [f.name for f in unit.functions[1:]] == ["__orias_" + HELPERS[op]]


def test_quotient_and_remainder_share_a_function() -> None:
    """Quotients and remainders of one kind come from one function; of two kinds from two, each with the needed
    results."""
    (unit,) = lower_text(kernel(["div.u64", "rem.u64", "div.u64"], "sm_90"), "sm_90")
    assert [f.name for f in unit.functions[1:]] == ["__orias_divmod_u64"]
    (unit,) = lower_text(kernel(["div.u64", "rem.s64"], "sm_90"), "sm_90")
    assert sorted(f.name for f in unit.functions[1:]) == ["__orias_div_u64", "__orias_rem_s64"]


@pytest.mark.oracle
@pytest.mark.parametrize("op", OPS)
def test_slow_paths_are_no_longer_than_ptxas(op: str) -> None:
    """The number of instructions, for one and five divisions on two SMs, exceeds ptxas's by at most a twentieth (or
    two)."""
    oracle.require("ptxas")
    for target in ("sm_80", "sm_90"):
        for times in (1, 5):
            source = kernel([op] * times, target)
            theirs = oracle.compile_ptx(source, target.removeprefix("sm_"))
            assert isinstance(theirs, Path), theirs
            ours, limit = kernel_facts(compile_ptx(source, target))["k"][0], kernel_facts(theirs.read_bytes())["k"][0]
            assert ours <= max(limit + 2, limit * 1.05), (target, times, ours, limit)
