"""The terms of the field occur where the code implements them: a search for a term finds its code."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: Term -> the file that a search must find.
TERMS = {
    "list scheduling": "stages/schedule/list_scheduling.py",
    "critical path": "stages/schedule/list_scheduling.py",
    "ready list": "stages/analysis/dependences.py",
    "dependence graph": "stages/analysis/dependences.py",
    "scoreboard": "stages/schedule/scoreboards.py",
    "stall count": "stages/schedule/control.py",
    "live range": "stages/regalloc/live_ranges.py",
    "coalescing": "stages/regalloc/coalescing.py",
    "interference": "stages/regalloc/coalescing.py",
    "parallel cop": "stages/regalloc/parallel_copies.py",
    "register pressure": "stages/optimize/late/pressure.py",
    "spill": "stages/regalloc/spill.py",
    "rematerializ": "stages/regalloc/spill.py",
    "occupancy": "stages/analysis/register_limits.py",
    "calling convention": "stages/analysis/abi.py",
    "convergence barrier": "stages/lower/convergence/converge.py",
    "divergent": "stages/analysis/divergence.py",
    "dominator": "ir_format/flow.py",
    "copy propagation": "stages/optimize/scalar/copy_propagation.py",
    "dead code": "stages/optimize/scalar/dce.py",
    "value numbering": "stages/optimize/scalar/combine.py",
    "gvn": "stages/optimize/scalar/combine.py",
    "cse": "stages/optimize/scalar/combine.py",
    "instruction combining": "stages/optimize/scalar/combine.py",
    "peephole": "stages/optimize/scalar/fold.py",
    "constant folding": "stages/optimize/scalar/fold.py",
    "load cse": "stages/optimize/memory/redundancy.py",
    "load vectorizer": "stages/optimize/memory/vectorize_loads.py",
    "induction variable": "stages/optimize/loops/induction.py",
    "strength reduction": "stages/optimize/loops/share_pointers.py",
    "loop-invariant code motion": "stages/optimize/loops/licm.py",
    "unrolling": "stages/optimize/loops/unroll.py",
    "if-conversion": "stages/optimize/control/if_conversion.py",
    "cfg simplification": "stages/optimize/control/simplify_cfg.py",
    "rematerialization": "stages/optimize/late/rematerialize.py",
    "sinking": "stages/optimize/late/sink.py",
}


@pytest.mark.parametrize("term", TERMS)
def test_term_is_found_in_its_file(term: str) -> None:
    assert term in (ROOT / TERMS[term]).read_text().lower()
