"""A sample of the edge operands: our code, ptxas's and the interpreter match outside sources. The full set:
`python -m tests.edges.run`."""

from __future__ import annotations

import pytest

from tests import oracle
from tests.edges.form import Form
from tests.edges.run import SIDES, all_forms, judge, number, taken

EVERY = 53


def _sample(arch: str, first: int) -> list[Form]:
    return [f for f in all_forms()[first::EVERY] if f.sm <= number(arch) and not f.suffix]


@pytest.mark.oracle
@pytest.mark.parametrize(("arch", "first"), [("sm_80", 3), ("sm_120", 17)])
def test_sample_of_edge_operands(arch: str, first: int) -> None:
    oracle.require("ptxas")
    forms = taken(_sample(arch, first), arch)
    assert len(forms) > 20
    assert judge(forms, arch, 3, SIDES, {}) == []


def test_without_ptxas() -> None:
    """The instructions that were once wrong everywhere, and some that lower to several instructions."""
    wanted = (
        "bfe.s32",
        "shf.r.clamp",
        "cvt.rn.ftz.f32.f64",
        "min.NaN.f32",
        "atom.global.inc",
        "cvt.rpi.u64.f64",
        "prmt.b32.ecr",
        "testp.normal.f64",
        "ex2.approx.ftz.f32",
        "cvt.pack.sat.s8",
    )
    forms = [f for f in all_forms() if f.sm <= 90 and (f.text.startswith(wanted) or "atom.global.inc" in f.text)]
    assert len(forms) >= len(wanted)
    assert judge(forms, "sm_90", 3, ("ours", "interpreter"), {}) == []
