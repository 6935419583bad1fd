"""Facts about instructions stand in the rows: lists of mnemonics elsewhere are few, and each has its reason here."""

from __future__ import annotations

from collections import Counter

from tests.structure.opcode_lists import all_lists

#: File -> (lists that it may hold, why).
ALLOWED = {
    "ir_format/hazards/model.py": (1, "moves between predicates and registers, whose mask says which"),
    "ir_format/isa/plan.py": (1, "how nvdisasm prints an immediate"),
    "stages/regalloc/checker/execute.py": (2, "what the checker evaluates itself"),
    "stages/regalloc/checker/values.py": (2, "what the checker evaluates itself"),
    "stages/check/convergence_checker.py": (3, "what each kind of meeting asks for"),
    "stages/check/records.py": (
        2,
        "what the records of a cubin name, worked out apart from the stages that write them",
    ),
    "stages/check/schedule_checker.py": (4, "measured distances of single pairs"),
    "stages/check/sides.py": (1, "what the simulator's copy notes"),
    "stages/check/streams.py": (1, "what the allocation stage may add"),
    "stages/lower/convergence/converge.py": (2, "what parts and ends a warp"),
    "stages/optimize/control/simplify_cfg.py": (1, "the pattern of a simple barrier"),
    "stages/optimize/scalar/fuse.py": (1, "the operations that saturate"),
    "stages/optimize/scalar/rules.py": (1, "which rules are tried on which mnemonic"),
    "stages/simulate/races.py": (4, "accesses as the judge of races sorts them"),
    "stages/simulate/strict.py": (1, "timing of the judge"),
    "stages/simulate/strict_runs.py": (1, "timing of the judge"),
    "stages/simulate/strict_time.py": (1, "timing of the judge"),
    "stages/simulate/timing.py": (3, "timing of the judge"),
}


def test_lists_of_mnemonics_are_counted() -> None:
    found = Counter(f.path for f in all_lists())
    assert {path: n for path, n in found.items() if n > ALLOWED.get(path, (0, ""))[0]} == {}
