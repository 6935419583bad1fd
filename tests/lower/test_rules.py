"""The table of lowering rules: modules that are imported when they are met."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from stages.lower import rules as table

FOLDER = Path(table.__file__).parent
MODULES = sorted(p.stem for p in FOLDER.glob("*.py") if p.stem.startswith(("rules_", "math")))


@pytest.mark.parametrize("name", sorted(table.SELDOM))
def test_a_module_that_is_imported_when_met_is_met_by_all_its_names(name: str) -> None:
    module = import_module(f"stages.lower.{name}")
    assert {key.partition(".")[0] for key in module.RULES} == set(table.SELDOM[name].split())


def test_the_table_has_the_rules_of_all_modules() -> None:
    expected: dict[str, object] = {}
    for name in MODULES:
        expected.update(getattr(import_module(f"stages.lower.{name}"), "RULES", {}))
    assert table.rules() == expected


def test_a_seldom_module_is_imported_with_its_first_instruction_and_not_before() -> None:
    code = """if True:
        import sys
        from ir_format.ptx import PtxInst
        from stages.lower.rules import find_rule
        assert find_rule(PtxInst("add", (), ("u32",), ())) is not None
        assert "stages.lower.rules_atomic" not in sys.modules
        assert find_rule(PtxInst("atom", ("global", "add"), ("u32",), ())).__module__ == "stages.lower.rules_atomic"
        assert "stages.lower.rules_video" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", code], check=True, cwd=FOLDER.parents[1])
