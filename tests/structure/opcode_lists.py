"""Lists of SASS mnemonics in the product's code: ``python -m tests.structure.opcode_lists`` prints them.

A list is a literal tuple, list, set, dict or a split string with at least three mnemonics. Tables that say what to *do*
with each mnemonic (their values are functions or rules) are no lists of facts, and do not count.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from ir_format.isa.rowlang import source
from ir_format.record import NamedTuple

ROOT = Path(__file__).parents[2]
LEAST = 3


class Found(NamedTuple):
    """A list: file, line, mnemonics."""

    path: str
    line: int
    mnemonics: tuple[str, ...]


def _strings(nodes: list[ast.expr]) -> list[str]:
    return [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]


def _dispatches(node: ast.Dict) -> bool:
    """Whether a dict's values are code: names, attributes, lambdas, tuples of them."""
    values = [v for k, v in zip(node.keys, node.values, strict=True) if k is not None]
    return bool(values) and all(
        isinstance(v, (ast.Name, ast.Attribute, ast.Lambda, ast.Tuple, ast.Call)) for v in values
    )


def lists(path: Path, known: frozenset[str]) -> Iterator[Found]:
    """The lists of one file."""
    for node in ast.walk(ast.parse(path.read_text())):
        words: list[str] = []
        if isinstance(node, ast.Dict):
            if _dispatches(node):
                continue
            words = _strings([k for k in node.keys if k is not None])
        elif isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            inner = [x for e in node.elts if isinstance(e, ast.Tuple) for x in e.elts]
            words = _strings([*node.elts, *inner])
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split":
            words = [w for text in _strings([node.func.value]) for w in text.split()]
        named = tuple(w for w in words if w.partition(".")[0] in known)
        if len(named) >= LEAST:
            yield Found(str(path.relative_to(ROOT)), node.lineno, named)


def all_lists() -> list[Found]:
    """The lists of `ir_format`, `stages` and `orchestrator`, without the rows."""
    known = frozenset(source().rows)
    paths = sorted(
        p
        for top in ("ir_format", "stages", "orchestrator")
        for p in (ROOT / top).rglob("*.py")
        if "rows" not in p.relative_to(ROOT).parts
    )
    return [found for path in paths for found in lists(path, known)]


if __name__ == "__main__":
    for each in all_lists():
        print(f"{each.path}:{each.line}: {' '.join(each.mnemonics)}")
