"""A bounds-checked reader of 64-bit little-endian ELF files: sections, symbols, relocations, no interpretation."""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from ir_format.diag import OriasError


class ImageError(OriasError):
    """The file is not a cubin that can be executed; the text says why."""


class Section(NamedTuple):
    """One section header and its bytes (b"" for NOBITS, whose ``size`` still counts)."""

    name: str
    type: int
    flags: int
    data: bytes
    link: int
    info: int
    align: int
    size: int


class Symbol(NamedTuple):
    """One symbol; ``section`` 0 is undefined."""

    name: str
    type: int
    bind: int
    other: int
    section: int
    value: int
    size: int


class Relocation(NamedTuple):
    """One relocation of section ``target``."""

    target: int
    offset: int
    type: int
    symbol: int
    addend: int | None  # None: stored in place (REL)


class Elf(NamedTuple):
    """What the file says."""

    flags: int
    type: int
    abi: int
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]
    relocations: tuple[Relocation, ...]


SHT_SYMTAB: Final = 2
SHT_RELA: Final = 4
SHT_NOBITS: Final = 8
SHT_REL: Final = 9
EM_CUDA: Final = 190
MAX_SECTIONS: Final = 100_000
MAX_FILE: Final = 1 << 30


def _string(table: bytes, at: int) -> str:
    if not 0 <= at < len(table):
        raise ImageError("string offset outside its table")
    end = table.find(b"\0", at)
    return table[at : end if end >= 0 else len(table)].decode("utf-8", "replace")


def read_elf(data: bytes) -> Elf:
    """Parse a file; raises :class:`ImageError`."""
    if len(data) > MAX_FILE:
        raise ImageError("file too large")
    if len(data) < 64 or data[:4] != b"\x7fELF":
        raise ImageError("not an ELF file")
    if data[4] != 2 or data[5] != 1:
        raise ImageError("not a 64-bit little-endian ELF file")
    kind, machine = struct.unpack_from("<HH", data, 16)
    if machine != EM_CUDA:
        raise ImageError(f"ELF machine {machine} is not CUDA ({EM_CUDA})")
    (shoff,) = struct.unpack_from("<Q", data, 0x28)
    (flags,) = struct.unpack_from("<I", data, 0x30)
    entsize, number, names_index = struct.unpack_from("<HHH", data, 0x3A)
    if entsize != 64 or not 0 < number <= MAX_SECTIONS or shoff + number * 64 > len(data) or names_index >= number:
        raise ImageError("section headers are outside the file (truncated?)")
    raw = [struct.unpack_from("<IIQQQQIIQQ", data, shoff + i * 64) for i in range(number)]

    def body(i: int) -> bytes:
        header = raw[i]
        if header[1] in (0, SHT_NOBITS):
            return b""
        if header[4] + header[5] > len(data):
            raise ImageError(f"section {i} is outside the file (truncated?)")
        return data[header[4] : header[4] + header[5]]

    names = body(names_index)
    sections = tuple(
        Section(_string(names, h[0]), h[1], h[2], body(i), h[6], h[7], h[8], h[5]) for i, h in enumerate(raw)
    )
    return Elf(flags, kind, data[8], sections, _symbols(sections), _relocations(sections))


def _symbols(sections: tuple[Section, ...]) -> tuple[Symbol, ...]:
    tables = [s for s in sections if s.type == SHT_SYMTAB and s.name == ".symtab"]
    if not tables:
        raise ImageError("no symbol table")
    table = tables[0]
    if table.link >= len(sections):
        raise ImageError("symbol table without strings")
    strings = sections[table.link].data
    out = []
    for at in range(0, len(table.data) - 23, 24):
        name, info, other, section, value, size = struct.unpack_from("<IBBHQQ", table.data, at)
        if section >= len(sections) and section < 0xFF00:
            raise ImageError("symbol in a section that does not exist")
        out.append(
            Symbol(_string(strings, name), info & 15, info >> 4, other, section if section < 0xFF00 else 0, value, size)
        )
    return tuple(out)


def _relocations(sections: tuple[Section, ...]) -> tuple[Relocation, ...]:
    out = []
    for section in sections:
        if section.type not in (SHT_REL, SHT_RELA) or not section.name.startswith((".rel.", ".rela.")):
            continue
        if section.info >= len(sections):
            raise ImageError(f"{section.name}: target section does not exist")
        rela = section.type == SHT_RELA
        step = 24 if rela else 16
        for at in range(0, len(section.data) - step + 1, step):
            if rela:
                offset, info, addend = struct.unpack_from("<QQq", section.data, at)
                out.append(Relocation(section.info, offset, info & 0xFFFFFFFF, info >> 32, addend))
            else:
                offset, info = struct.unpack_from("<QQ", section.data, at)
                out.append(Relocation(section.info, offset, info & 0xFFFFFFFF, info >> 32, None))
    return tuple(out)
