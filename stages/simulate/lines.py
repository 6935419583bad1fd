"""The line table of a cubin: SASS address -> PTX line (.nv_debug_line_sass). DWARF 2 (measured)."""

from __future__ import annotations

import bisect
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stages.simulate.image import Image

_MAX_ROWS = 1 << 22


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
        rows: list[tuple[int, int]] = []
        try:
            _programs(elf.sections[index].data, starts, rows)
        except (struct.error, IndexError):
            pass  # a damaged table costs line numbers, nothing else
        rows.sort()
        return [a for a, _ in rows], [line for _, line in rows]


def _find(table: tuple[list[int], list[int]], address: int) -> int:
    at = bisect.bisect_right(table[0], address) - 1
    return table[1][at] if at >= 0 and address - table[0][at] < 1 << 20 else 0


def _leb(data: bytes, at: int, signed: bool) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            break
    if signed and byte & 0x40:
        value -= 1 << shift
    return value, at


def _programs(data: bytes, starts: dict[int, int], rows: list[tuple[int, int]]) -> None:
    """Run every line program; ``starts``: relocated addresses by place in the section."""
    at = 0
    while at + 10 < len(data):
        length, version, header = struct.unpack_from("<IHI", data, at)
        end = min(at + 4 + length, len(data))
        minimum, _, line_base, line_range, opcode_base = struct.unpack_from("<BBbBB", data, at + 10)
        sizes = data[at + 15 : at + 14 + opcode_base]
        pc = at + 10 + header
        address, line, known = 0, 1, False
        while pc < end and len(rows) < _MAX_ROWS:
            op = data[pc]
            pc += 1
            if op >= opcode_base and line_range:
                op -= opcode_base
                address += op // line_range * minimum
                line += line_base + op % line_range
                if known:
                    rows.append((address, line))
            elif op == 0:
                size, pc = _leb(data, pc, False)
                if size and data[pc] == 2:
                    known = pc + 1 in starts
                    address = starts.get(pc + 1, 0)
                elif size and data[pc] == 1:
                    line, known = 1, False
                pc += size
            elif op == 1:
                if known:
                    rows.append((address, line))
            elif op == 2:
                delta, pc = _leb(data, pc, False)
                address += delta * minimum
            elif op == 3:
                delta, pc = _leb(data, pc, True)
                line += delta
            elif op == 8 and line_range:
                address += (255 - opcode_base) // line_range * minimum
            elif op == 9:
                address += struct.unpack_from("<H", data, pc)[0]
                pc += 2
            else:
                for _ in range(sizes[op - 1] if op - 1 < len(sizes) else 0):
                    _, pc = _leb(data, pc, False)
        at = end
