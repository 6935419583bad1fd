"""Which stage or pass makes a program wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from stages.optimize.passes import PASSES
from tests import oracle
from tests.fuzz.judge import Fault, Program, Way, check

NAMES = tuple(p.name for p in PASSES)


def _wrong(program: Program, fault: Fault) -> Callable[[Way], bool]:
    def test(way: Way) -> bool:
        found = check(program, way, [fault.kernel] if fault.kernel else [])
        return any(f.kind in ("value", "run", "fault", "refused") for f in found)

    return test


def guilty(program: Program, fault: Fault) -> str:
    """In words: the pass whose absence makes the program right, and how many rewrites of the stage are needed; else the
    stage."""
    wrong = _wrong(program, fault)
    way = fault.way
    if not wrong(way):
        return "does not show alone"
    said = []
    if way.level and not wrong(replace(way, skip=NAMES)):
        single = [n for n in NAMES if not wrong(replace(way, skip=(n,)))]
        said.append(
            f"optimize: right without {' or '.join(single) if single else 'all passes, not without any single one'}"
        )
        low, high = 0, 1
        while not wrong(replace(way, limit=high)) and high < 1 << 14:
            low, high = high, 2 * high
        if high < 1 << 14:
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if wrong(replace(way, limit=middle)) else (middle, high)
            said.append(f"wrong with --limit {high}, right with {low}")
        # The last pass that is needed: leave passes out from the end.
        needed = list(NAMES)
        for n in reversed(NAMES):
            rest = [m for m in needed if m != n]
            if wrong(replace(way, skip=tuple(m for m in NAMES if m not in rest))):
                needed = rest
        said.append(f"wrong with {', '.join(needed) or 'none'} alone")
    elif not wrong(replace(way, allocator="naive")):
        said.append("regalloc: right with the naive allocator")
    elif not wrong(replace(way, scheduler="naive")):
        said.append("schedule: right with the naive scheduler")
    elif way.level and not wrong(replace(way, level=0)):
        said.append("right at -O0, else wrong")
    else:
        said.append("wrong at all levels: lower, encode, or a judge")
    return "; ".join(said)


def theirs(program: Program, fault: Fault) -> str:
    """What ptxas's cubin does with the same program, if there is a ptxas: if it differs too, one of the judges may be
    wrong."""
    if not fault.kernel or not oracle.have("ptxas"):
        return ""
    found = check(program, replace(fault.way, by="ptxas", strict=False), [fault.kernel])
    return f"ptxas's cubin too: {found[0].what}" if found else "ptxas's cubin agrees with the interpreter"
