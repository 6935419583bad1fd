"""Numbers that a kernel's own code names.

Code takes another path at comparisons and sums with constants: the number of iterations left for an unrolled loop, the
argument above which a reduction is another one. A random value is rarely near such a constant. Fuzzers call such a
table a dictionary.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from ir_format.ptx import Imm, ImmF32, ImmF64, PtxInst, PtxUnit

#: Instructions whose integer constants are used.
_WHOLE: Final = frozenset(("setp", "set", "add", "sub", "min", "max", "slct"))
#: Instructions whose floats are used: coefficients of polynomials would tell nothing.
_FLOATS: Final = frozenset(("setp", "set", "min", "max", "slct"))
#: Greatest size or count derived from a constant.
MOST: Final = 4096


@dataclass(slots=True)
class Words:
    """`counts`: absolute values from 2 to `MOST`; `whole`: all integers by the width of their instruction in bits
    (two's complement); `floats`: bit patterns by width, among them integers that are compared with words of that width.
    """

    counts: list[int] = field(default_factory=list)
    whole: dict[int, list[int]] = field(default_factory=dict)
    floats: dict[int, list[int]] = field(default_factory=dict)


def words_of(unit: PtxUnit) -> Words:
    """The numbers of a kernel, sorted, without duplicates."""
    counts: set[int] = set()
    whole: dict[int, set[int]] = {}
    floats: dict[int, set[int]] = {}
    for f in unit.functions:
        for x in f.body:
            if not isinstance(x, PtxInst) or x.op not in _WHOLE or not x.types:
                continue
            width = int("".join(c for c in x.types[-1] if c.isdigit()) or 0)
            for o in x.operands:
                if isinstance(o, ImmF32 | ImmF64) and x.op in _FLOATS:
                    floats.setdefault(32 if isinstance(o, ImmF32) else 64, set()).add(o.bits)
                elif isinstance(o, Imm) and width in (32, 64):
                    if 2 <= abs(o.value) <= MOST:
                        counts.add(abs(o.value))
                    value = o.value & (1 << width) - 1
                    whole.setdefault(width, set()).add(value)
                    if x.op in _FLOATS:
                        floats.setdefault(width, set()).add(value)
    return Words(sorted(counts), {w: sorted(v) for w, v in whole.items()}, {w: sorted(v) for w, v in floats.items()})


def near(table: list[int], width: int, rng: np.random.Generator, count: int) -> Any:
    """`count` words drawn from a table, exact or off by one (uint64, cut to `width` bits)."""
    drawn = (
        np.array(table, np.uint64)[rng.integers(0, len(table), count)]
        + rng.integers(0, 3, count, dtype=np.uint64)
        - np.uint64(1)
    )
    return drawn & np.uint64((1 << width) - 1)
