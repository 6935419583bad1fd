"""ELF as data: sections, string tables, file offsets, headers. Knows nothing of kernels.

Layout (measured): ELF header, sections in index order, section headers (8-aligned), program headers last.
"""

from __future__ import annotations

import struct

from ir_format.alignment import align_up
from ir_format.diag import CompileError
from ir_format.typed import Final

EHDR_SIZE: Final = 64
SHDR_SIZE: Final = 64
PHDR_SIZE: Final = 56
SYM_SIZE: Final = 24

SHT_PROGBITS: Final = 1
SHT_SYMTAB: Final = 2
SHT_STRTAB: Final = 3
SHT_RELA: Final = 4
SHT_NOTE: Final = 7
SHT_NOBITS: Final = 8
SHT_REL: Final = 9
SHT_INFO: Final = 0x70000000
SHT_CALLGRAPH: Final = 0x70000001
SHT_REL_ACTION: Final = 0x7000000B
SHT_COMPAT: Final = 0x70000086

EM_CUDA: Final = 190
# ABI generation 8: ELFOSABI 0x41 and ABIVERSION 8 (measured on every target).
IDENT: Final = bytes((0x7F, 0x45, 0x4C, 0x46, 2, 1, 1, 0x41, 8)) + bytes(7)

MAX_SECTIONS: Final = 0xFF00  # SHN_LORESERVE: .symtab_shndx is not written
MAX_FILE: Final = 1 << 32


class Section:
    """One section. ``size`` is that of the contents, or of memory for NOBITS. ``link`` and ``info`` may name another
    section; names are resolved to indexes when the image is laid out."""

    __slots__ = ("align", "data", "entsize", "flags", "index", "info", "link", "name", "offset", "size", "type")

    def __init__(
        self,
        name: str,
        type: int,
        flags: int = 0,
        data: bytes | bytearray = b"",
        *,
        size: int = -1,
        link: str | int = 0,
        info: str | int = 0,
        align: int = 1,
        entsize: int = 0,
    ) -> None:
        self.name = name
        self.type = type
        self.flags = flags
        self.data = data
        self.size = len(data) if size < 0 else size
        self.link = link
        self.info = info
        self.align = align
        self.entsize = entsize
        self.index = 0
        self.offset = 0

    @property
    def in_file(self) -> int:
        """Bytes that the section takes in the file."""
        return 0 if self.type == SHT_NOBITS else self.size


class Strings:
    """A string table under construction: each distinct string once, in order of first use."""

    __slots__ = ("_at", "data")

    def __init__(self) -> None:
        self.data = bytearray(b"\0")
        self._at: dict[str, int] = {"": 0}

    def add(self, text: str) -> int:
        """Offset of ``text`` in the table."""
        at = self._at.get(text)
        if at is None:
            at = len(self.data)
            self._at[text] = at
            try:
                self.data += text.encode() + b"\0"
            except UnicodeEncodeError:
                raise CompileError(f"name {text!r} is not valid text") from None
        return at


def number(sections: list[Section]) -> dict[str, int]:
    """Give sections their indexes, in list order, and return them by name. ``sections[0]`` is index 1."""
    if len(sections) + 1 >= MAX_SECTIONS:
        raise CompileError(f"too many sections for one cubin ({len(sections) + 1})")
    index: dict[str, int] = {}
    for i, s in enumerate(sections, 1):
        s.index = i
        index[s.name] = i
    return index


def place(sections: list[Section]) -> int:
    """Give sections file offsets; returns the end of the last one."""
    at = EHDR_SIZE
    for s in sections:
        at = align_up(at, s.align)
        s.offset = at
        at += s.in_file
    if at > MAX_FILE:
        raise CompileError(f"cubin too large ({at:#x} bytes)")
    return at


def section_header(s: Section, name: int, index: dict[str, int]) -> bytes:
    """The 64-byte header of a placed section."""
    link = index[s.link] if isinstance(s.link, str) else s.link
    info = index[s.info] if isinstance(s.info, str) else s.info
    return struct.pack("<2I4Q2I2Q", name, s.type, s.flags, 0, s.offset, s.size, link, info, s.align, s.entsize)


def file_header(type_: int, flags: int, phoff: int, phnum: int, shoff: int, shnum: int) -> bytes:
    """The ELF header; program headers are absent when ``phnum`` is 0."""
    return struct.pack(
        "<16s2HI3QI6H",
        IDENT,
        type_,
        EM_CUDA,
        1,
        0,
        phoff if phnum else 0,
        shoff,
        flags,
        EHDR_SIZE,
        PHDR_SIZE,
        phnum,
        SHDR_SIZE,
        shnum,
        1,
    )


def segment(type_: int, flags: int, offset: int, filesz: int, memsz: int) -> bytes:
    """A program header; addresses are 0 and alignment 8 in every cubin (measured)."""
    return struct.pack("<2I6Q", type_, flags, offset, 0, 0, filesz, memsz, 8)
