"""The symbol table and its order.

Measured order: the null symbol; everything of LOCAL or WEAK binding in order of creation; everything GLOBAL in order of
creation; on sm_90+ the section symbols of the parameter banks come last although they are LOCAL. ``sh_info`` is one
more than the highest index of a LOCAL symbol.
"""

from __future__ import annotations

import struct

from ir_format.record import NamedTuple
from ir_format.typed import Final
from stages.elf.image import Strings

LOCAL: Final = 0
GLOBAL: Final = 1
WEAK: Final = 2

NOTYPE: Final = 0
OBJECT: Final = 1
FUNC: Final = 2
SECTION: Final = 3

OTHER_ENTRY: Final = 0x10
OTHER_MANAGED: Final = 0x04
OTHER_RESERVED_SHARED: Final = 0xA0
OTHER_HIDDEN: Final = 0x01

BINDING: Final = {"visible": GLOBAL, "extern": GLOBAL, "weak": WEAK, "common": WEAK, "static": LOCAL}


class Symbol(NamedTuple):
    """``section`` is a section name, '' for an undefined symbol."""

    name: str
    bind: int
    type: int
    section: str = ""
    value: int = 0
    size: int = 0
    other: int = 0


class SymbolTable:
    """Symbols under construction, then (after :meth:`freeze`) their indexes."""

    __slots__ = ("high", "index", "low", "rows", "tail")

    def __init__(self) -> None:
        self.low: list[Symbol] = []
        self.high: list[Symbol] = []
        self.tail: list[Symbol] = []
        self.rows: list[Symbol] = []
        self.index: dict[str, int] = {}

    def add(self, symbol: Symbol) -> None:
        """Append a symbol to the group that its binding says."""
        (self.high if symbol.bind == GLOBAL else self.low).append(symbol)

    def section(self, name: str, last: bool = False) -> None:
        """Append the section symbol of ``name``; ``last``: after all others."""
        (self.tail if last else self.low).append(Symbol(name, LOCAL, SECTION, name))

    def freeze(self) -> None:
        """Fix the order; afterwards :attr:`index` maps names to symbol indexes."""
        self.rows = [Symbol("", LOCAL, NOTYPE), *self.low, *self.high, *self.tail]
        self.index = {s.name: i for i, s in enumerate(self.rows) if s.name}

    def first_global(self) -> int:
        """``sh_info`` of the table."""
        return max(i for i, s in enumerate(self.rows) if s.bind == LOCAL) + 1 if self.tail else 1 + len(self.low)

    def pack(self, strings: Strings, sections: dict[str, int]) -> bytes:
        """The bytes of ``.symtab``."""
        out = bytearray()
        for s in self.rows:
            shndx = sections[s.section] if s.section else 0
            out += struct.pack("<I2BH2Q", strings.add(s.name), s.bind << 4 | s.type, s.other, shndx, s.value, s.size)
        return bytes(out)
