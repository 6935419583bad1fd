"""Facts about instructions are in the rows: lists of mnemonics elsewhere are few, and each has its reason here."""

from __future__ import annotations

from collections import Counter

from tests.structure.opcode_lists import all_lists

#: File -> (lists that it may have, reason).
ALLOWED = {
    "stages/check/schedule_rules.py": (1, "measured distances of single pairs"),
    "stages/optimize/control/simplify_cfg.py": (1, "the pattern of a simple barrier"),
    "stages/optimize/scalar/rules.py": (1, "which rules are tried on which mnemonic"),
    "stages/simulate/timing.py": (2, "timing of the judge"),
}


def test_lists_of_mnemonics_are_counted() -> None:
    found = Counter(f.path for f in all_lists())
    assert {path: n for path, n in found.items() if n > ALLOWED.get(path, (0, ""))[0]} == {}
