"""basalt-sass finds no error in our cubins, and does object to broken ones."""

from __future__ import annotations

import random

import pytest

from orchestrator.api import compile_ptx
from stages.disasm.cubin import read_cubin
from tests import oracle
from tests.check.schedule_mutants import KERNELS, certain

pytestmark = pytest.mark.oracle
pytest.importorskip("basalt", reason="basalt-sass is not installed: no second opinion")

from tests.check.second_opinion import opinion  # noqa: E402


@pytest.mark.parametrize("sm", [80, 90, 120])
def test_no_errors_in_our_cubins(sm: int) -> None:
    oracle.require("nvdisasm")
    said = opinion(compile_ptx((KERNELS / "ptx" / f"sm_{sm}" / "all16.ptx").read_text(), f"sm_{sm}"))
    assert said.errors == []
    assert said.instructions > 1500 and said.pairs > 1500


def test_mutants_draw_objections() -> None:
    """Certainly missing waits give an error or a warning that the sound cubin does not. (Not with tiles in shared
    memory, as in matmul: this judge assumes that loads from it are done when a later one is waited for.)"""
    oracle.require("nvdisasm")
    data = compile_ptx((KERNELS / "ptx" / "sm_120" / "softmax.ptx").read_text(), "sm_120")
    cubin = read_cubin(data)
    sound = set(opinion(data).warnings)
    mutants = [m for m in certain(cubin, random.Random(3)) if m.kind == "wait result"]
    objections = 0
    for mutant in random.Random(4).sample(mutants, 8):
        section = mutant.apply(cubin).sections[mutant.section]
        said = opinion(data[: section.offset] + section.data + data[section.offset + len(section.data) :])
        objections += bool(said.errors or set(said.warnings) - sound)
    assert objections == 8
