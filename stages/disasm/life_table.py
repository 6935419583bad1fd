"""Live ranges of registers beside a listing, as `nvdisasm -plr` prints them: a column for each register."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ir_format import isa
from stages.analysis.life_ranges import FILES, Life, of_file
from stages.disasm.cubin import Cubin
from stages.disasm.flow import lives, without_padding
from stages.disasm.labels import Names
from stages.disasm.listing import decode_section, print_cubin

_TITLES: Final = {"R": "GPR", "P": "PRED", "UR": "UGPR", "UP": "UPRED"}
_LEGEND: Final = (
    "Legend:",
    "    ^       : Register assignment",
    "    v       : Register usage",
    "    x       : Register usage and reassignment",
    "    :       : Register in use",
    "    <space> : Register not in use",
    "    #       : Number of occupied registers",
)


class _Table:
    """The columns of one section. ``mode``: count, wide or narrow."""

    def __init__(self, ranges: Sequence[Life], mode: str) -> None:
        self.mode = mode
        self.columns: list[tuple[str, int, int, int]] = []  # file, registers, digits of the count, width
        for file in FILES:
            masks = [of_file(r.occupied, file) for r in ranges]
            used = max([m.bit_length() for m in masks], default=0)
            if used:
                digits = len(str(max(m.bit_count() for m in masks)))
                self.columns.append((file, used, digits, max(len(self._head(used, digits)), 8)))

    def _head(self, used: int, digits: int) -> str:
        if self.mode == "count":
            return f" {'#':>{digits}} "
        if self.mode == "narrow":
            return f" {'#':>{digits}} {''.join([str(n % 10) for n in range(used)])} "
        return f" {'#':>{digits}}{''.join([f' {n}' for n in range(used)])}  "

    def titles(self) -> Iterator[str]:
        """The lines above the code."""
        line = "+".join(["-" * width for *_, width in self.columns])
        yield f"+{line}+"
        yield "|" + "|".join([f"{_TITLES[file]:^{width}}" for file, _, _, width in self.columns]) + "|"
        yield "|" + "|".join([f"{self._head(used, digits):<{width}}" for _, used, digits, width in self.columns]) + "|"
        yield f"+{line}+"

    def empty(self) -> str:
        """A line that belongs to no instruction."""
        return "|" + "|".join([" " * width for *_, width in self.columns]) + "|"

    def row(self, life: Life, label: bool = False) -> str:
        """The line of an instruction; ``label``: of the place before it."""
        cells = []
        for file, used, digits, width in self.columns:
            reads, writes, after = (of_file(mask, file) for mask in life)
            alive = (after & ~writes | reads) if label else reads | writes | after
            text = f" {alive.bit_count() or '':>{digits}}"
            if self.mode != "count":
                marks = [_mark(n, alive, 0 if label else reads, 0 if label else writes) for n in range(used)]
                gap = "" if self.mode == "narrow" else " "
                text += (" " if self.mode == "narrow" else "") + "".join(
                    [f"{gap}{m:<{1 if self.mode == 'narrow' else len(str(n))}}" for n, m in enumerate(marks)]
                )
            cells.append(f"{text:<{width}}")
        return "|" + "|".join(cells) + "|"


def _mark(n: int, alive: int, reads: int, writes: int) -> str:
    read, written = reads >> n & 1, writes >> n & 1
    return "x" if read and written else "v" if read else "^" if written else ":" if alive >> n & 1 else " "


def print_lives(cubin: Cubin, mode: str, separate: bool = False) -> Iterator[str]:
    """The listing followed by the columns."""
    target = isa.target(cubin.sm)
    names = Names(cubin, {s.number: decode_section(s, target) for s in cubin.sections})
    parts = list(print_cubin(cubin, separate=separate))
    sections = iter(cubin.sections)
    at = 0
    while at < len(parts):
        if not parts[at].startswith("\t.align") and not (parts[at].startswith("\n\t.align")):
            yield parts[at]
            at += 1
            continue
        yield parts[at]
        end = next((k for k in range(at + 1, len(parts)) if parts[k] == "\n"), len(parts))
        section = next(sections)
        items = without_padding(decode_section(section, target))
        yield from _section(parts[at + 1 : end], lives(items, section, names), mode)
        at = end


def _section(parts: list[str], ranges: list[Life], mode: str) -> Iterator[str]:
    table = _Table(ranges, mode)
    lines = [line for part in parts for line in part.split("\n")[:-1]]
    places = [int(line.split("*")[1], 16) // 16 if line.lstrip().startswith("/*") else -1 for line in lines]
    last = max([n for n, place in enumerate(places) if 0 <= place < len(ranges)], default=-1)
    shown = [(line, place) for n, (line, place) in enumerate(zip(lines, places)) if n <= last or place < 0]
    width = max([len(line.rstrip()) for line, _ in shown], default=0) + 2
    for text in table.titles():
        yield f"{'':<{width}} // {text}\n"
    for n, (line, place) in enumerate(shown):
        following = next((p for _, p in shown[n + 1 :] if p >= 0), -1)
        if place >= 0:
            text = table.row(ranges[place])
        elif following > 0 and line.endswith(":"):
            text = table.row(ranges[following], label=True)
        else:
            text = table.empty()
        yield f"{line.rstrip():<{width}} // {text}\n"
    for text in ("", *_LEGEND, ""):
        yield f"{'':<{width}} // {text}\n" if text else "\n"
