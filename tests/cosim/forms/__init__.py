"""The corpus of one-instruction kernels: every row of the descriptor table, with its types and modifiers."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import NamedTuple

from stages.parse.table import Row
from tests.cosim.forms import arith, barriers, matrix, memory, screen, tensor, warp
from tests.cosim.forms.base import Choice, Form, population, walk

#: Families postponed, by a pattern of names: (pattern, reason).
APART = (
    (r"tex.*|tld4|txq.*|istypep", "textures"),
    (r"su(ld|st|red|q).*", "surfaces"),
    (r"cp\.async\.bulk\.prefetch\.tensor|tensormap\.cp_fenceproxy", "no effect on values, or on the whole warp"),
    (r"wgmma\.(fence|commit_group|wait_group)", "with the products"),
    (r"tcgen05\..*", "tcgen05"),
    (r"multimem\..*", "multimem: several devices"),
    (r"clusterlaunchcontrol\..*", "work stealing between clusters: depends on the grid's schedule"),
    (r"brkpt", "stops in a debugger"),
)


def apart(name: str) -> str:
    """Why a name is postponed; "" if it is not."""
    return next((why for pattern, why in APART if re.fullmatch(pattern, name)), "")


def make(row: Row, mods: list[str], types: tuple[str, ...], rng: random.Random) -> Form | None:
    """The form of a row with modifiers and types; None if no family has a rule for it."""
    first = row.name.split(".")[0]
    if tensor.NAMES.fullmatch(row.name):
        return tensor.form(row, mods, types, rng)
    if first in matrix.NAMES:
        return matrix.form(row, mods, types, rng)
    if row.name in barriers.NAMES or first in barriers.NAMES:
        return barriers.form(row, mods, types, rng)
    if first in warp.NAMES:
        return warp.form(row, mods, types, rng)
    if first in memory.NAMES:
        special = memory.special(row, mods, types, rng)
        return special or (memory.form(row, mods, types, rng) if first not in memory.SPECIAL else None)
    return arith.form(row, mods, types, rng)


#: Ending of a row's key if a screen chose its forms.
SCREENED = " screened"


class Item(NamedTuple):
    """One entry of the corpus: a form, or why there is none (``apart``; "" if no family has a rule)."""

    row: str
    form: Form | None
    drawn: bool
    population: int
    apart: str = ""


class Corpus:
    """The forms of a target."""

    def __init__(
        self,
        target: str,
        only: str = "",
        limit: int = 40,
        seed: int = 0,
        skip: int = 0,
        heads: screen.Heads | None = None,
    ) -> None:
        """``limit``: most forms of one row; ``skip``: a limit whose forms are left out; ``only``: a pattern of names.
        With the ``heads`` of a screen, at most ``limit`` of its forms instead, whatever their row."""
        self.target = target
        self.only = only
        self.limit = limit
        self.seed = seed
        self.skip = skip
        self.heads = heads

    def items(self) -> Iterator[Item]:
        """Row by row, except for a screen; modifiers and types determine the operands, with the seed."""
        if self.heads is not None:
            for row, choice, size in screen.draw(self.heads, self.limit, self.seed, self.skip):
                yield self._item(row, choice, size, SCREENED)
            return
        for row, choice in walk(self.target, self.only, self.limit, self.seed, self.skip):
            yield self._item(row, choice, population(row))
        extra: list[Form] = []
        if not self.only or re.fullmatch(self.only, "mov"):
            extra += arith.moves()
        if not self.only or re.fullmatch(self.only, "call"):
            extra.append(warp.indirect_call())
        for form in [] if self.skip else extra:
            form.row = "more"
            yield Item("more", form, False, len(extra))

    def _item(self, row: Row, choice: Choice, size: int, mark: str = "") -> Item:
        why = apart(row.name)
        if why:
            return Item(row.key, None, choice.drawn, size, why)
        form = make(
            row, choice.mods, choice.types, random.Random(f"{self.seed} {row.key} {choice.mods} {choice.types}")
        )
        if form is not None:
            form.row, form.drawn = row.key + mark, choice.drawn
        return Item(row.key + mark, form, choice.drawn, size)

    @property
    def forms(self) -> list[Form]:
        """All that were made."""
        return [item.form for item in self.items() if item.form is not None]
