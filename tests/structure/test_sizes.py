"""Lines, files and functions stay short enough to read in one go: the limits, and each exception by name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("ir_format", "stages", "orchestrator")
FILE_LINES = 600
FUNCTION_LINES = 80
LINE_LENGTH = 120  # the linter lets pass lines that end in a pragma, and those without a space

#: File, or file and function, above the limit -> (its lines, reason).
EXCEPTIONS: dict[str, tuple[int, str]] = {}


def sizes() -> Iterator[tuple[str, int, int]]:
    """Name, lines and limit of every file and function."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            text = path.read_text()
            yield name, text.count("\n"), FILE_LINES
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    yield f"{name}:{node.name}", (node.end_lineno or 0) - node.lineno + 1, FUNCTION_LINES


def test_files_and_functions_are_short() -> None:
    found = {name: lines for name, lines, limit in sizes() if lines > max(limit, EXCEPTIONS.get(name, (0, ""))[0])}
    assert found == {}


def test_lines_are_short() -> None:
    long = [
        f"{path.relative_to(ROOT).as_posix()}:{number}"
        for folder in (*FOLDERS, "orias", "tests", "benchmarks")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > LINE_LENGTH
    ]
    assert long == []


def main() -> None:
    """Print everything above its limit."""
    for name, lines, limit in sizes():
        if lines > limit:
            print(f"{lines:5} {name}: {EXCEPTIONS.get(name, (0, 'no reason given'))[1]}")


if __name__ == "__main__":
    main()
