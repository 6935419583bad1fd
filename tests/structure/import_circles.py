"""Groups of modules that import each other, inside functions too: ``python -m tests.structure.import_circles`` prints
them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("ir_format", "stages", "orchestrator")


def _names(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Module, and name in it or '', of every import except those for type checking."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        if isinstance(child, ast.ImportFrom):
            yield from ((child.module or "", a.name) for a in child.names)
        elif isinstance(child, ast.Import):
            yield from ((a.name, "") for a in child.names)
        yield from _names(child)


def graph() -> dict[str, set[str]]:
    """Module -> the modules of ours that it imports."""
    paths = {
        ".".join(p.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): p
        for folder in FOLDERS
        for p in (ROOT / folder).rglob("*.py")
    }
    out: dict[str, set[str]] = {}
    for name, path in paths.items():
        found = _names(ast.parse(path.read_text()))
        wanted = {f"{m}.{n}" if f"{m}.{n}" in paths else m for m, n in found}
        out[name] = (wanted & paths.keys()) - {name}
    return out


def circles() -> list[list[str]]:
    """One circle of each group; a group's modules are removed when a circle is found."""
    left = graph()
    found: list[list[str]] = []
    while True:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as e:
            circle = sorted(set(e.args[1]))
            found.append(circle)
            gone = _group(left, circle[0])
            left = {m: to - gone for m, to in left.items() if m not in gone}
        else:
            return found


def _reached(edges: dict[str, set[str]], start: str) -> set[str]:
    seen, todo = {start}, [start]
    while todo:
        for m in edges.get(todo.pop(), ()):
            if m not in seen:
                seen.add(m)
                todo.append(m)
    return seen


def _group(edges: dict[str, set[str]], one: str) -> set[str]:
    """The modules that ``one`` reaches and that reach it."""
    back: dict[str, set[str]] = {}
    for m, to in edges.items():
        for n in to:
            back.setdefault(n, set()).add(m)
    return _reached(edges, one) & _reached(back, one)


if __name__ == "__main__":
    for each in circles():
        print(" ".join(each))
