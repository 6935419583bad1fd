"""Reads the tables of this package into matrices, one set per SM."""

from __future__ import annotations

from functools import cache

from ir_format.features import covers
from ir_format.hazards.classes import PACES, PIPES, SCOREBOARDS, STALLS
from ir_format.hazards.distances import TABLES
from ir_format.isa import facts
from ir_format.kept import kept
from ir_format.record import NamedTuple
from ir_format.typed import Final

KINDS: Final = ("raw", "waw", "war")
_SOURCES: Final = {"d": "documented", "m": "measured", "g": "guessed"}


class Cell(NamedTuple):
    """One table cell: cycles from issue to issue, and their provenance (``documented``, ``measured``, ``guessed``)."""

    cycles: int
    source: str


class Pipe(NamedTuple):
    """Pipe of a class, issue cycles until it takes the next instruction, cycles until a result can be used (priorities
    only)."""

    name: str
    interval: int
    latency: int


Matrix = dict[str, dict[str, Cell]]  # later role or group -> earlier class -> cell


def _lines(text: str) -> list[list[str]]:
    return [t for line in text.splitlines() if (t := line.partition("#")[0].split())]


@cache
def matrices(sm: int) -> dict[tuple[str, str], Matrix]:
    """(kind, register file) -> matrix."""
    texts, numbers = _numbered(sm)
    cells = [Cell(*text) for text in texts]
    return {
        key: {later: {name: cells[n] for name, n in line.items()} for later, line in matrix.items()}
        for key, matrix in numbers.items()
    }


@kept
def _numbered(sm: int) -> tuple[list[tuple[int, str]], dict[tuple[str, str], dict[str, dict[str, int]]]]:
    """The cells that differ, and the matrices with the number of a cell in place of each."""
    made = _matrices(sm)
    cells = {cell: None for matrix in made.values() for line in matrix.values() for cell in line.values()}
    number = {cell: n for n, cell in enumerate(cells)}
    return [(cell.cycles, cell.source) for cell in cells], {
        key: {later: {name: number[cell] for name, cell in line.items()} for later, line in matrix.items()}
        for key, matrix in made.items()
    }


def _matrices(sm: int) -> dict[tuple[str, str], Matrix]:
    out: dict[tuple[str, str], Matrix] = {}
    universe: dict[tuple[str, str], tuple[dict[str, None], dict[str, None]]] = {}
    lines = _lines(TABLES)
    for words in lines:  # names first: `*` and `any` speak of all rows and columns of a kind and file
        if words[0] in KINDS:
            rows, columns = universe.setdefault((words[0], words[1]), ({}, {}))
            use = covers(words[2], sm)
        elif words[0] == ":":
            columns.update(dict.fromkeys(words[1:] if use else ()))
        elif use:
            rows.update(dict.fromkeys(_row(words)[0]))
    for words in lines:
        if words[0] in KINDS:
            key = (words[0], words[1])
            use = covers(words[2], sm)
            rows, columns = universe[key]
            matrix = out.setdefault(key, {})
        elif words[0] == ":":
            names = words[1:]
        elif use:
            later, tag, cells = _row(words)
            if len(cells) != len(names):
                raise ValueError(f"hazard table {key}: row {later} has {len(cells)} cells for {len(names)} columns")
            for row in rows if later == ["*"] else later:
                line = matrix.setdefault(row, {})
                for name, text in zip(names, cells):
                    if text == "-":
                        continue
                    number, own = (text[:-1], text[-1]) if text[-1].isalpha() else (text, tag)
                    for column in columns if name == "any" else (name,):
                        line[column] = Cell(int(number), _SOURCES[own])
    for matrix in out.values():  # a row that only later tables name has the values of `*`
        for line in matrix.values():
            for column, cell in matrix.get("*", {}).items():
                line.setdefault(column, cell)
    return out


def _row(words: list[str]) -> tuple[list[str], str, list[str]]:
    at = next(i for i, w in enumerate(words) if w in _SOURCES)
    return words[:at], words[at], words[at + 1 :]


@kept
def classes(sm: int) -> dict[str, list[tuple[frozenset[str], str]]]:
    """Mnemonic -> (modifiers that must be there, class), most modifiers first."""
    out: dict[str, list[tuple[frozenset[str], str]]] = {}
    for op, f in facts.table().items():
        entries = [(frozenset(mods), name) for mods, name, sms in facts.alternatives(f) if not sms or covers(sms, sm)]
        entries.sort(key=lambda e: -len(e[0]))
        out[op] = entries
    return out


@cache
def pipes() -> dict[str, Pipe]:
    """Class -> pipe."""
    return {name: Pipe(*text) for name, text in _pipes().items()}


@kept
def _pipes() -> dict[str, tuple[str, int, int]]:
    out = {}
    for words in _lines(PIPES):
        at = words.index(":")
        for name in words[:at]:
            out[name] = words[at + 1], int(words[at + 2]), int(words[at + 3])
    return out


def _per_class(text: str, sm: int) -> dict[str, tuple[str, str]]:
    out: dict[str, tuple[str, str]] = {}
    for words in _lines(text):
        at = words.index(":")
        if covers(words[at - 1], sm):
            for name in words[: at - 2]:
                out[name] = (words[at + 1], _SOURCES[words[at - 2]])
    return out


@kept
def scoreboards(sm: int) -> dict[str, tuple[str, str]]:
    """Class -> (``W``, ``R``, ``WR``; source) for the classes that use scoreboards."""
    return _per_class(SCOREBOARDS, sm)


@kept
def paces(sm: int) -> dict[str, int]:
    """Class, perhaps with a modifier -> issue interval, where that depends on the SM."""
    return {name: int(text) for name, (text, _) in _per_class(PACES, sm).items()}


@kept
def stalls(sm: int) -> dict[str, tuple[str, str]]:
    """Class -> (least stall as text, source)."""
    return _per_class(STALLS, sm)


@kept
def late_results(least: int) -> frozenset[str]:
    """The mnemonics whose results are available only after at least ``least`` cycles, by the estimate of :func:`pipes`,
    in their plainest form on some SM."""
    return facts.of_class(*(name for name, pipe in pipes().items() if pipe.latency >= least))
