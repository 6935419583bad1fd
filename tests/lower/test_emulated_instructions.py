"""PTX instructions that the SM emulates by a sequence: a few forms of each, our cubins in the simulator against the PTX
interpreter (`tests.cosim.one_op` runs all forms)."""

from __future__ import annotations

import pytest

from tests import oracle
from tests.cosim.forms import Corpus
from tests.cosim.one_op import sweep

CASES = [("80", "v(mad|set2|shl|absdiff4)|fns|alloca|isspacep|cvt\\.pack"), ("90", "mma")]


@pytest.mark.oracle
@pytest.mark.parametrize(("arch", "names"), CASES, ids=[arch for arch, _ in CASES])
def test_values(arch: str, names: str) -> None:
    oracle.require("ptxas")
    found = sweep(Corpus(f"sm_{arch}", names, 1), ("ours",)).counts
    assert found["ours equal"] >= 10
    assert not found["ours differs"] and not found["ours refused by compiler"]
