"""Rows of the table with too many forms to try: ptxas accepts one in fifty of the combinations of `ld` and `st`.

A screen first asks ptxas which modifiers it accepts at all, ignoring types and vectors: with one register of 32 bits,
or with a vector of 256 bits, which some modifiers require. Forms are then drawn from all types and vectors of those
modifiers. Modifiers outside the screen are assumed to have no form; the draw without a screen, from all combinations,
checks that.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from stages.parse import table
from stages.parse.table import Row
from tests.cosim.forms.base import Choice, Form, choices, modifiers, population, reaches, type_tuples

#: Types and vectors that represent all.
_STAND_FOR: Final = (("b32", ""), ("b32", "v8"))
_VECTORS: Final = "v2"
#: Rows by key: modifiers that ptxas accepts, without a vector.
Heads = dict[str, list[list[str]]]


def vector_slot(row: Row) -> int:
    """The slot of a row that has the vectors."""
    return next(k for k, s in enumerate(row.slots) if _VECTORS in s.values)


def great_rows(target: str, limit: int) -> list[Row]:
    """Rows of a target that a limit does not cover, with vectors."""
    every = [row for name in table.names() for row in table.rows(name) if reaches(row, target)]
    return [row for row in every if population(row) > limit and any(_VECTORS in s.values for s in row.slots)]


def screen(
    rows: list[Row],
    make: Callable[[Row, list[str], tuple[str, ...], random.Random], Form | None],
    takes: Callable[[list[Form]], list[Form]],
    most: int,
) -> Heads:
    """The modifiers of some rows that ptxas accepts; ``takes`` returns those of at most ``most`` forms that it
    compiles."""
    out: Heads = {}
    for row in rows:
        slot = vector_slot(row)
        left = [m for m in modifiers(row) if not m[slot]]
        kept: list[list[str]] = []
        for type_, vector in _STAND_FOR:
            refused = []
            for at in range(0, len(left), most):
                part = left[at : at + most]
                made = [(m, make(row, [*m[:slot], vector, *m[slot + 1 :]], (type_,), random.Random(0))) for m in part]
                good = {id(form) for form in takes([form for _, form in made if form is not None])}
                kept += [m for m, form in made if id(form) in good]
                refused += [m for m, form in made if id(form) not in good]
            left = refused
        out[row.key] = sorted(kept)
    return out


def load(path: str, target: str, find: Callable[[], Heads]) -> Heads:
    """The screen of a target from a file; missing parts are computed and added."""
    file = Path(path)
    known: dict[str, Heads] = json.loads(file.read_text()) if file.exists() else {}
    if target not in known:
        known[target] = find()
        file.write_text(json.dumps(known))
    return known[target]


def inside(heads: Heads, row: Row, mods: list[str]) -> bool:
    """Whether modifiers are in the screen."""
    slot = vector_slot(row)
    return [*mods[:slot], "", *mods[slot + 1 :]] in heads[row.key]


def draw(heads: Heads, limit: int, seed: int, skip: int) -> Iterator[tuple[Row, Choice, int]]:
    """Forms of all rows of a screen in one random order, at most ``limit``, each with the number of all such forms of
    its row; ``skip``: a limit of `choices` whose forms are left out, for what was drawn without the screen."""
    rows = [next(r for r in table.rows(key.split("#")[0]) if r.key == key) for key in heads]
    every: list[tuple[int, int]] = []
    spaces = []
    sizes = []
    for k, row in enumerate(rows):
        slot = vector_slot(row)
        gone = {(tuple(c.mods), c.types) for c in choices(row, skip, seed)} if skip else set()
        space = [
            (mods, vector, types)
            for mods in heads[row.key]
            for vector in ("", *row.slots[slot].values)
            for types in type_tuples(row)
        ]
        numbers = [n for n, (m, v, t) in enumerate(space) if ((*m[:slot], v, *m[slot + 1 :]), t) not in gone]
        every += [(k, n) for n in numbers]
        spaces.append(space)
        sizes.append(len(numbers))
    random.Random(f"{seed} screen").shuffle(every)
    for k, n in every[:limit]:
        mods, vector, types = spaces[k][n]
        slot = vector_slot(rows[k])
        yield rows[k], Choice([*mods[:slot], vector, *mods[slot + 1 :]], types, True), sizes[k]
