"""The corpus of one-instruction kernels: every row of the descriptor table, with its types and modifiers."""

from __future__ import annotations

import random
import re
from collections import Counter

from stages.parse.table import Row
from tests.cosim.forms import arith, barriers, matrix, memory, warp
from tests.cosim.forms.base import Form, walk

#: Families left for later, by a pattern of names: (pattern, what).
APART = (
    (r"tex.*|tld4|txq.*|istypep", "textures"),
    (r"su(ld|st|red|q).*", "surfaces"),
    (r"cp\.(reduce\.)?async\.bulk\.(prefetch\.)?tensor|tensormap\..*", "tensor copies"),
    (r"wgmma\..*", "wgmma"),
    (r"tcgen05\..*", "tcgen05"),
    (r"multimem\..*", "multimem: several devices"),
    (r"clusterlaunchcontrol\..*", "work stealing between clusters: depends on the grid's schedule"),
    (r"brkpt", "stops in a debugger"),
)


def apart(name: str) -> str:
    """Why a name is left for later; "" if it is not."""
    return next((why for pattern, why in APART if re.fullmatch(pattern, name)), "")


def make(row: Row, mods: list[str], types: tuple[str, ...], rng: random.Random) -> Form | None:
    """The form of a row with modifiers and types; None where no family has a rule for it."""
    first = row.name.split(".")[0]
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


class Corpus:
    """The forms of a target; rows of the table by what became of them."""

    def __init__(self, target: str, only: str = "", limit: int = 40, seed: int = 0) -> None:
        """``limit``: most forms of one row; ``only``: a pattern of names."""
        rng = random.Random(seed)
        self.forms: list[Form] = []
        self.apart: Counter[str] = Counter()
        self.unmade: Counter[str] = Counter()
        for row, mods, types in walk(target, only, limit, rng):
            why = apart(row.name)
            if why:
                self.apart[why] += 1
                continue
            form = make(row, mods, types, rng)
            if form is None:
                self.unmade[row.name] += 1
                continue
            self.forms.append(form)
        if not only or re.fullmatch(only, "mov"):
            self.forms += arith.moves()
        if not only or re.fullmatch(only, "call"):
            self.forms.append(warp.indirect_call())
