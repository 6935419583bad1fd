"""Where the PTX registers of a function are, for debuggers (-g).

`lower` leaves the rows ``variables`` at a function: registers by name, and the stretches of PTX lines in which the
debug sections say that a variable of the program is in one. :func:`keep` holds the register's value for so long, as
ptxas does. :func:`mark` notes at instructions which register from there on holds which PTX register: ``variables``, a
tuple of (row, part, physical register); the register's complement where its part ends.

A place ``i`` is the moment before instruction ``i``: a value is in its register from the place after its definition to
the place after its last use.
"""

from __future__ import annotations

from bisect import bisect_right

from ir_format.model import AttrValue, Function, Inst
from ir_format.typed import Final, TypeAlias
from stages.regalloc.coalescing import Grouping
from stages.regalloc.live_ranges import Ranges, union

FILES: Final = ("R", "P")

#: Before the instruction of that number: (row, part, register or its complement).
Events: TypeAlias = "dict[int, list[tuple[int, int, int]]]"


def _rows(func: Function) -> tuple[AttrValue, ...]:
    rows = func.attrs.get("variables")
    return rows if isinstance(rows, tuple) else ()


def _by_name(func: Function) -> dict[str, list[int]]:
    """The virtual registers of each name."""
    out: dict[str, list[int]] = {}
    for number, reg in enumerate(func.vregs):
        if reg.name and reg.file in FILES:
            out.setdefault(reg.name, []).append(number)
    return out


def _stretches(row: AttrValue) -> list[tuple[int, int]]:
    """The stretches of lines of a row."""
    out: list[tuple[int, int]] = []
    if isinstance(row, tuple) and len(row) == 6 and isinstance(row[5], tuple):
        for pair in row[5]:
            match pair:
                case (int(first), int(after)):
                    out.append((first, after))
    return out


def keep(ranges: Ranges) -> bool:
    """Extend the live ranges of registers with variables over the lines where the debug sections look for them.
    Returns whether there are any."""
    func = ranges.func
    wanted = [(row, _stretches(row)) for row in _rows(func)]
    if not any(stretches for _, stretches in wanted):
        return False
    lines = sorted((inst.line, i) for i, inst in enumerate(ranges.insts))
    last: list[int] = []  # the place after all instructions of these lines and those before
    for _, i in lines:
        last.append(max(i + 1, last[-1] if last else 0))
    keys = [line for line, _ in lines]

    def place(line: int) -> int:
        at = bisect_right(keys, line)
        return last[at - 1] if at else 0

    numbers = _by_name(func)
    base = ranges.cells.base
    assert base is not None
    for row, stretches in wanted:
        name = row[0] if isinstance(row, tuple) else ""
        for number in numbers.get(name, ()) if stretches and isinstance(name, str) else ():
            for cell in range(base[number], base[number] + func.vregs[number].width):
                _extend(ranges, cell, [(2 * place(first), 2 * place(after)) for first, after in stretches])
    return True


def _extend(ranges: Ranges, cell: int, stretches: list[tuple[int, int]]) -> None:
    """Bridge the range from what is live at the begin of a stretch, or was live last, to its end."""
    segs = ranges.segs[cell]
    if not segs:
        return
    starts = [start for start, _ in segs]
    longer = []
    for begin, end in stretches:
        at = bisect_right(starts, begin) - 1
        start = starts[max(at, 0)]  # a variable of the whole function begins where it is set first
        if start < end:
            longer.append((start, end))
    ranges.segs[cell] = union(segs, longer)


def events(func: Function, grouping: Grouping, place: list[int]) -> Events:
    """What :func:`mark` notes, by the number of the instruction before which it holds."""
    out: Events = {}
    ranges = grouping.ranges
    base = ranges.cells.base
    assert base is not None
    numbers = _by_name(func)
    for index, row in enumerate(_rows(func)):
        match row:
            case (str(name), _, _, _, int(part), _):
                for number in numbers.get(name, ()):
                    for k in range(func.vregs[number].width):
                        for start, stop in ranges.segs[base[number] + k]:
                            begin, end = (start + 1) // 2, (stop + 1) // 2
                            if begin < end:
                                out.setdefault(begin, []).append((index, part + k, place[number] + k))
                                out.setdefault(end, []).append((index, part + k, ~(place[number] + k)))
    return out


class Marker:
    """Hands the events to the instructions that become of the numbered ones, in layout order."""

    __slots__ = ("_at", "_events", "_order")

    def __init__(self, found: Events) -> None:
        self._events = found
        self._order = sorted(found)
        self._at = 0

    def mark(self, inst: Inst, number: int) -> None:
        """Note at an instruction what happens up to the place before the number that it came from."""
        due: list[tuple[int, int, int]] = []
        while self._at < len(self._order) and self._order[self._at] <= number:
            # what ends does so before something else begins
            due += sorted(self._events[self._order[self._at]], key=lambda e: e[2] >= 0)
            self._at += 1
        if due:
            inst.attrs = {**(inst.attrs or {}), "variables": tuple(due)}
