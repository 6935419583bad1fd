"""The table of lowering rules: modules that are imported on demand."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from stages.lower.rules import table

FOLDER = Path(table.__file__).parents[1]
MODULES = sorted(f"{p.parent.name}.{p.stem}" for d in ("rules", "math") for p in (FOLDER / d).glob("*.py"))


@pytest.mark.parametrize("name", sorted(table.MODULES))
def test_a_module_that_is_imported_when_met_is_met_by_all_its_names(name: str) -> None:
    module = import_module(f"stages.lower.{name}")
    assert {key.partition(".")[0] for key in module.RULES} == set(table.MODULES[name].split())
    types = table.TYPED.get(name)
    assert types is None or all(types & {*key.split(".")[1:]} for key in module.RULES)


def test_the_table_has_the_rules_of_all_modules() -> None:
    expected: dict[str, object] = {}
    for name in MODULES:
        if name == "rules.table":
            continue
        found = getattr(import_module(f"stages.lower.{name}"), "RULES", {})
        assert bool(found) == (name in table.MODULES)
        expected.update(found)
    assert table.rules() == expected


def test_a_module_is_imported_with_its_first_instruction_and_not_before() -> None:
    code = """if True:
        import sys
        from ir_format.ptx import PtxInst
        from stages.lower.rules.table import find_rule
        assert find_rule(PtxInst("add", (), ("u32",), ())) is not None
        assert "stages.lower.rules.atomic" not in sys.modules
        assert "stages.lower.math.half" not in sys.modules
        assert find_rule(PtxInst("atom", ("global", "add"), ("u32",), ())).__module__ == "stages.lower.rules.atomic"
        assert "stages.lower.rules.video" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", code], check=True, cwd=FOLDER.parents[1])
