"""What PTX instructions read and write, where they may jump, and registers that are read before they are written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, Final

from ir_format.ptx import LabelList, LabelRef, NotPred, Pair, Part, PtxFunction, PtxInst, PtxLabel, Reg, Sink, Vec
from ir_format.record import Record

#: Unguarded, these instructions do not continue at the next one.
_ENDS: Final = frozenset(("bra", "brx", "ret", "exit", "trap"))


def mapped(x: Any, change: Callable[[Any], Any]) -> Any:
    """An operand with a function applied to all its parts, from the inside out."""
    if isinstance(x, tuple):
        return tuple([mapped(e, change) for e in x])
    if isinstance(x, Record):
        new = copy(x)
        for name in type(x).__annotations__:
            value = getattr(x, name)
            if isinstance(value, tuple | Record):
                setattr(new, name, mapped(value, change))
        return change(new)
    return x


def registers(x: Any) -> Iterator[int]:
    """The registers of an operand."""
    found: list[int] = []

    def note(e: Any) -> Any:
        if isinstance(e, Reg | NotPred):
            found.append(e.index)
        return e

    mapped(x, note)
    yield from found


def writes(i: PtxInst) -> int:
    """How many operands an instruction writes: the first, if its descriptor row says so (or if we made it)."""
    from stages.parse.table import rows

    if i.op == "call" or not i.operands:
        return 0
    name, _, number = i.row.partition("#")
    specs = rows(name)[int(number)].operands if number else ()
    if not i.row:
        return 1
    return int(
        bool(specs) and specs[0].role.startswith("d") and isinstance(i.operands[0], Reg | Vec | Pair | Part | Sink)
    )


def defined(i: PtxInst) -> set[int]:
    """Registers that an instruction writes."""
    if i.op == "call":
        return {r for o in i.operands for x in getattr(o, "rets", ()) for r in registers(x)}
    return {r for o in i.operands[: writes(i)] for r in registers(o)}


def used(i: PtxInst) -> set[int]:
    """Registers that it reads."""
    out = {r for o in i.operands[writes(i) :] for r in registers(o)}
    if i.op == "call":
        out -= defined(i)
    return out | ({i.guard[0]} if i.guard is not None else set())


def undefined(f: PtxFunction) -> set[int]:
    """Registers that are read on some path on which nothing has written them (a guarded write counts as one)."""
    places = {x.index: n for n, x in enumerate(f.body) if isinstance(x, PtxLabel)}
    everything = frozenset(range(len(f.regs)))
    given = [p.reg + n for p in f.params if p.space == "reg" for n in range(p.vec)]
    state: dict[int, frozenset[int]] = {0: frozenset(given)}
    todo = [0]
    out: set[int] = set()
    while todo:
        at = todo.pop()
        held = set(state[at])
        while at < len(f.body):
            x = f.body[at]
            at += 1
            if isinstance(x, PtxInst):
                out |= used(x) - held
                held |= defined(x)
                for target in jumps(x):
                    _join(state, places.get(target, len(f.body)), held, todo, everything)
                if x.op in _ENDS and x.guard is None:
                    break
            elif isinstance(x, PtxLabel):
                _join(state, at, held, todo, everything)
                break
    return out


def _join(
    state: dict[int, frozenset[int]], at: int, held: set[int], todo: list[int], everything: frozenset[int]
) -> None:
    new = state.get(at, everything) & held
    if at not in state or new != state[at]:
        state[at] = new
        todo.append(at)


def jumps(i: PtxInst) -> list[int]:
    """Labels that an instruction may go to."""
    found: list[int] = []

    def note(e: Any) -> Any:
        if isinstance(e, LabelRef):
            found.append(e.index)
        elif isinstance(e, LabelList):
            found.extend(e.labels)
        return e

    mapped(i.operands, note)
    return found
