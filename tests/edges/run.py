"""Directed edge operands for every PTX instruction whose result is not obvious, against sources outside the project.

    python -m tests.edges.run [--arch sm_80 ...] [-O LEVEL] [--only TEXT ...] [--every N] [--who ours ptxas interpreter]
    [--markdown]

Sources: Python integers, exact fractions, C on the host in its rounding modes, numpy, ml_dtypes, tables of the PTX
manual. Sides: our cubin and ptxas's in the simulator, the PTX interpreter. Prints a line for each difference, then a
table by family of instructions: forms, rows, source, and how many rows of each side match the source.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from orchestrator.api import ChainError, compile_ptx
from stages.interpret.launch import InterpreterError, Module, ParseError
from stages.simulate import Device, SimError
from tests import oracle
from tests.edges import compares, floats, integers, pairs, videos, warps
from tests.edges.form import Form, Rows, same

ARCHES: Final = ("sm_75", "sm_80", "sm_90", "sm_100", "sm_120")
SIDES: Final = ("ours", "ptxas", "interpreter")
_BLOCK: Final = 256
_TOGETHER: Final = 12  # forms per module


@dataclass(slots=True)
class Family:
    """A row of the table."""

    forms: set[str] = field(default_factory=set)
    source: dict[str, None] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    right: dict[str, int] = field(default_factory=dict)


def number(arch: str) -> int:
    """The SM of an arch."""
    return int(re.sub(r"\D", "", arch))


def all_forms() -> list[Form]:
    """The forms of all tables."""
    tables = (integers, floats, warps, pairs, compares, videos)
    return [f for table in tables for f in table.forms()]


def module(forms: Sequence[Form], arch: str) -> str:
    """A module with a kernel for each form."""
    return f".version 8.8\n.target {arch}\n.address_size 64\n" + "".join(f.kernel(f"k{n}") for n, f in enumerate(forms))


def results(form: Form, name: str, rows: Rows, side: Device | Module) -> Rows | str:
    """The results that a side stores, or why there are none."""
    padded = np.concatenate([rows, np.repeat(rows[-1:], -len(rows) % form.together, axis=0)])
    out = np.zeros((len(padded), len(form.gives)), np.uint64)
    block = form.together if form.together > 1 else min(_BLOCK, len(padded))
    if form.together == 1:
        padded = np.concatenate([padded, np.repeat(padded[-1:], -len(padded) % block, axis=0)])
        out = np.zeros((len(padded), len(form.gives)), np.uint64)
    args = [np.ascontiguousarray(padded).reshape(-1), out.reshape(-1)]
    try:
        if isinstance(side, Device):
            side.reset()
            side.launch(name, len(padded) // block, block, args)
        else:
            side.launch(name, (len(padded) // block, 1, 1), (block, 1, 1), args)
    except (SimError, InterpreterError) as e:
        return str(e).splitlines()[0]
    return out[: len(rows)]


def sides(text: str, arch: str, level: int, who: Sequence[str]) -> Iterator[tuple[str, Device | Module | str]]:
    """The sides of a module, or why there is none."""
    if "ours" in who:
        try:
            yield "ours", Device(compile_ptx(text, arch, {"opt-level": level, "fmad": 0}))
        except ChainError as e:
            yield "ours", str(e).strip().splitlines()[-1]
    if "ptxas" in who:
        made = oracle.compile_ptx(text, arch[3:], f"-O{level}", "-fmad=false")
        yield "ptxas", str(made) if isinstance(made, oracle.ToolError) else Device(made.read_bytes())
    if "interpreter" in who:
        try:
            yield "interpreter", Module(text, arch)
        except ParseError as e:
            yield "interpreter", str(e).splitlines()[0]


def taken(forms: Sequence[Form], arch: str) -> list[Form]:
    """The forms that ptxas accepts: it decides which forms exist."""
    if not isinstance(oracle.compile_ptx(module(forms, arch), arch[3:], "-O0"), oracle.ToolError):
        return list(forms)
    if len(forms) == 1:
        return []
    half = len(forms) // 2
    return taken(forms[:half], arch) + taken(forms[half:], arch)


def judge(forms: Sequence[Form], arch: str, level: int, who: Sequence[str], table: dict[str, Family]) -> list[str]:
    """Run some forms on all sides; report results that differ from the source. If a whole module fails, form by
    form."""
    found: list[str] = []
    if not forms:
        return found
    text = module(forms, arch)
    for name, side in sides(text, arch, level, who):
        if isinstance(side, str):
            if len(forms) > 1:
                for f in forms:
                    found += judge([f], arch, level, [name], table)
            else:
                found.append(f"{forms[0].text} {name} {arch}: {side}")
            continue
        for n, f in enumerate(forms):
            rows = f.rows()
            wanted = f.expected(rows)
            got = results(f, f"k{n}", rows, side)
            line = table.setdefault(f.family, Family())
            line.forms.add(f.text)
            line.source[f.source] = None
            line.rows[name] = line.rows.get(name, 0) + len(rows)
            if isinstance(got, str):
                found.append(f"{f.text} {name} {arch}: {got}")
                continue
            right = same(f, got, wanted)
            line.right[name] = line.right.get(name, 0) + int(right.sum())
            if not right.all():
                at = int(np.flatnonzero(~right)[0])
                given, good, bad = ([hex(int(v)) for v in x[at]] for x in (rows, wanted, got))
                found.append(
                    f"{f.text} {name} {arch} -O{level}: {int((~right).sum())} of {len(rows)} rows, "
                    f"first {given}: {good} by {f.source}, {bad} found"
                )
    return found


def markdown(table: dict[str, Family], who: Sequence[str]) -> Iterator[str]:
    """The table for docs."""
    yield f"| instructions | forms | source | {' | '.join(who)} |"
    yield "|---|---|---|" + "---|" * len(who)
    for name, f in table.items():
        cells = [
            f"{f.right.get(w, 0):,}" + ("" if f.right.get(w, 0) == f.rows.get(w, 0) else f" of {f.rows.get(w, 0):,}")
            for w in who
        ]
        yield f"| {name} | {len(f.forms)} | {', '.join(f.source)} | {' | '.join(cells)} |"


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(
        description="Edge operands of PTX instructions against sources outside of the project."
    )
    parser.add_argument("--arch", nargs="+", default=list(ARCHES))
    parser.add_argument("-O", dest="level", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=[], help="forms whose text has one of these")
    parser.add_argument("--every", type=int, default=1, help="every Nth form")
    parser.add_argument("--who", nargs="+", choices=SIDES, default=list(SIDES))
    parser.add_argument("--markdown", action="store_true", help="print the table for docs")
    options = parser.parse_args()
    began = time.monotonic()
    chosen = [f for f in all_forms() if not options.only or any(t in f.text for t in options.only)][:: options.every]
    table: dict[str, Family] = {}
    wrong = refused = 0
    for arch in options.arch:
        mine = [f for f in chosen if f.sm <= number(arch) and not f.suffix]
        family = [f for f in chosen if f.sm <= number(arch) and f.suffix]
        for group, target in ((mine, arch), (family, f"{arch}a")):
            for at in range(0, len(group), _TOGETHER):
                some = taken(group[at : at + _TOGETHER], target)
                refused += len(group[at : at + _TOGETHER]) - len(some)
                for line in judge(some, target, options.level, options.who, table):
                    wrong += 1
                    print(line, flush=True)
    for line in markdown(table, options.who):
        print(line)
    print(
        f"{len(chosen)} forms, {refused} times refused by ptxas, {wrong} with differences, "
        f"{time.monotonic() - began:.0f} s"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
