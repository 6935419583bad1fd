"""The line table of a cubin: SASS address -> PTX line (.nv_debug_line_sass). DWARF 2 (measured)."""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING

from stages.analysis.line_programs import rows_of

if TYPE_CHECKING:
    from stages.simulate.image import Image


class LineTable:
    """The lazily read table."""

    __slots__ = ("_ptx", "image")

    def __init__(self, image: Image) -> None:
        self.image = image
        self._ptx: tuple[list[int], list[int]] | None = None

    def ptx_line(self, address: int) -> int:
        """PTX line of the instruction at a code address, 0 where unknown."""
        if self._ptx is None:
            self._ptx = self._read(".nv_debug_line_sass")
        return _find(self._ptx, address)

    def _read(self, name: str) -> tuple[list[int], list[int]]:
        elf = self.image.elf
        index = next((i for i, s in enumerate(elf.sections) if s.name == name), 0)
        if not index:
            return [], []
        bases = {s.name: s.base for s in self.image.code}
        starts: dict[int, int] = {}
        for r in elf.relocations:
            if r.target == index and r.symbol < len(elf.symbols):
                symbol = elf.symbols[r.symbol]
                section = elf.sections[symbol.section].name
                if section in bases:
                    starts[r.offset] = bases[section] + symbol.value + (r.addend or 0)
        rows = sorted([(row.address, row.line) for row in rows_of(elf.sections[index].data, starts.get)])
        return [a for a, _ in rows], [line for _, line in rows]


def _find(table: tuple[list[int], list[int]], address: int) -> int:
    at = bisect.bisect_right(table[0], address) - 1
    return table[1][at] if at >= 0 and address - table[0][at] < 1 << 20 else 0
