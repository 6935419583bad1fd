"""An SM's capabilities are in :mod:`ir_format.features`: other code asks for a feature and compares no SM numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("ir_format", "stages", "orchestrator")


def _is_sm(node: ast.expr) -> bool:
    """`sm`, `x.sm`, `x.family`, `int(sm)`, and the `number` of a target."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "int" and node.args:
        return _is_sm(node.args[0])
    if isinstance(node, ast.Attribute) and node.attr == "number":
        return ast.unparse(node.value).rpartition(".")[2] in ("target", "sm", "goal")
    return (isinstance(node, ast.Name) and node.id == "sm") or (
        isinstance(node, ast.Attribute) and node.attr in ("sm", "family")
    )


def _has_number(node: ast.expr) -> bool:
    if isinstance(node, ast.IfExp):
        return _has_number(node.body) or _has_number(node.orelse)
    parts = node.elts if isinstance(node, (ast.Tuple, ast.List, ast.Set)) else [node]
    return any(isinstance(n, ast.Constant) and type(n.value) is int for n in parts)


def comparisons() -> Iterator[str]:
    """Places that compare an SM with numbers: ``file:line``."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Compare):
                    sides = (node.left, *node.comparators)
                    if any(map(_is_sm, sides)) and any(_has_number(s) for s in sides if not _is_sm(s)):
                        yield f"{path.relative_to(ROOT).as_posix()}:{node.lineno}"


def test_no_code_compares_sm_numbers() -> None:
    assert list(comparisons()) == []
