"""The code sections of a cubin, their symbols, relocations and `.nv.info` notes; pyelftools is imported when a file is
read."""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING, NamedTuple

from ir_format.diag import OriasError

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

WORD = 16


class CubinError(OriasError):
    """The file is no cubin that we can read; the text says why."""


class Symbol(NamedTuple):
    """A symbol in the order of the table. ``section``: index of its section, 0 = undefined. ``kind``: FUNC, OBJECT,
    NOTYPE, or the type's number. ``bind``: LOCAL, GLOBAL, WEAK. ``other``: the raw st_other byte."""

    name: str
    value: int
    size: int
    kind: str
    bind: str
    other: int
    section: int


class TextReloc(NamedTuple):
    """A relocation of an instruction. ``addend`` is None if the field itself contains it."""

    offset: int
    kind: int
    symbol: Symbol
    addend: int | None


class CodeSection(NamedTuple):
    """One section of instructions. ``offset``: of its bytes in the file. ``symbols``: (offset, size, name, global) of
    the functions in it. ``notes``: (attribute code, payload) of its `.nv.info` section; ``number``: its index in the
    file; ``registers``: what sh_info counts."""

    name: str
    offset: int
    data: bytes
    align: int
    symbols: tuple[tuple[int, int, str, bool], ...]
    number: int = 0
    relocs: tuple[TextReloc, ...] = ()
    notes: tuple[tuple[int, bytes], ...] = ()
    registers: int = 0

    @property
    def words(self) -> list[int]:
        """The instruction words."""
        return [int.from_bytes(self.data[i : i + WORD], "little") for i in range(0, len(self.data), WORD)]


class Cubin(NamedTuple):
    """The parts of a cubin that are needed. ``sm``: 90; ``data``: the whole file; ``linked``: an executable, not a
    relocatable object. Sections and symbols are in the file's order; ``noted`` are the indices of the code sections in
    the order of their `.nv.info` sections; ``accelerated``: made for a target with an `a` (sm_90a)."""

    sm: int
    data: bytes
    sections: tuple[CodeSection, ...]
    symbols: tuple[Symbol, ...] = ()
    linked: bool = True
    noted: tuple[int, ...] = ()
    accelerated: bool = False


def read_cubin(data: bytes) -> Cubin:
    """Read a cubin. Raises :class:`CubinError`."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    from ir_format.isa.rowlang import SMS

    if data[:4] != b"\x7fELF":
        raise CubinError("not an ELF file")
    try:
        elf = ELFFile(io.BytesIO(data))
        if elf["e_machine"] not in (190, "EM_CUDA"):
            raise CubinError("not a CUDA ELF file")
        flags = elf["e_flags"]
        # ABI versions before 8 have the SM in the low byte; without ABI, ptxas 13 writes version 2 and the flags of
        # version 8 (measured).
        sm = flags >> 8 & 0xFF if data[8] >= 8 or flags & 0xFF < 20 else flags & 0xFF
        if sm not in SMS:
            raise CubinError(f"no instruction set for sm_{sm}")
        return _read(elf, sm, data)
    except (
        ELFError,
        ValueError,
        KeyError,
        IndexError,
        UnicodeError,
        AttributeError,
        TypeError,
        AssertionError,
        OverflowError,
        struct.error,
    ) as error:
        raise CubinError(f"damaged ELF file ({type(error).__name__})") from None


def _read(elf: ELFFile, sm: int, data: bytes) -> Cubin:
    from elftools.elf.sections import SymbolTableSection

    found: dict[int, CodeSection] = {}
    by_name: dict[str, int] = {}
    symbols: list[Symbol] = []
    infos: list[tuple[str, int, bytes]] = []
    tables = []
    accelerated = False
    for index, section in enumerate(elf.iter_sections()):
        header = section.header
        kind = header["sh_type"]
        if kind == "SHT_PROGBITS" and header["sh_flags"] & 4:
            body = section.data()
            if len(body) % WORD or len(body) != header["sh_size"]:
                raise CubinError(f"section {section.name} is cut off")
            by_name[section.name] = index
            found[index] = CodeSection(
                section.name,
                header["sh_offset"],
                body,
                header["sh_addralign"],
                (),
                index,
                registers=header["sh_info"] >> 24,
            )
        elif isinstance(section, SymbolTableSection):
            symbols = _symbols(section.data(), elf.get_section(header["sh_link"]).data())
        elif section.name.startswith(".nv.info."):
            infos.append((section.name, header["sh_info"], section.data()))
        elif section.name == ".nv.compat":
            accelerated = b"\x02\x09\x01\x00" in section.data()
        elif kind in ("SHT_REL", "SHT_RELA"):
            tables.append((header["sh_info"], kind == "SHT_RELA", section.data()))
    noted: list[int] = []
    for name, about, body in infos:
        index = about if about in found else by_name.get(".text." + name.removeprefix(".nv.info."), -1)
        if index in found and name != ".nv.info" and index not in noted:
            noted.append(index)
            found[index] = found[index]._replace(notes=tuple(_attributes(body)))
    for about, with_addend, body in tables:
        if about in found:
            relocs = (*found[about].relocs, *relocations(body, with_addend, symbols))
            found[about] = found[about]._replace(relocs=tuple(sorted(relocs, key=lambda r: r.offset)))
    sections = []
    for index, code in found.items():
        functions = {
            (s.value, s.size, s.name, s.bind != "LOCAL") for s in symbols if s.section == index and s.kind == "FUNC"
        }
        sections.append(code._replace(symbols=tuple(sorted(functions))))
    return Cubin(sm, data, tuple(sections), tuple(symbols), elf["e_type"] == "ET_EXEC", tuple(noted), accelerated)


_KINDS = ("NOTYPE", "OBJECT", "FUNC", "SECTION", "FILE")
_BINDS = ("LOCAL", "GLOBAL", "WEAK")


def _symbols(body: bytes, names: bytes) -> list[Symbol]:
    """The symbol table, read here because pyelftools loses the bits of st_other that mark kernels."""
    out: list[Symbol] = []
    for name, info, other, where, value, size in struct.iter_unpack("<IBBHQQ", body):
        text = names[name : names.index(b"\0", name)].decode()
        kind, bind = info & 15, info >> 4
        kinds, binds = (
            _KINDS[kind] if kind < len(_KINDS) else str(kind),
            _BINDS[bind] if bind < len(_BINDS) else str(bind),
        )
        out.append(Symbol(text, value, size, kinds, binds, other, where))
    return out


def _attributes(body: bytes) -> list[tuple[int, bytes]]:
    """(code, payload) of every record: format and code bytes, then a 16-bit value or, in format 4, the payload's
    size."""
    out: list[tuple[int, bytes]] = []
    at = 0
    while at + 4 <= len(body):
        form, code, value = struct.unpack_from("<BBH", body, at)
        at += 4
        if form == 4:
            out.append((code, body[at : at + value]))
            at += value
    return out


def relocations(body: bytes, with_addend: bool, symbols: list[Symbol]) -> list[TextReloc]:
    """The relocations in a relocation section."""
    out: list[TextReloc] = []
    size = 24 if with_addend else 16
    for at in range(0, len(body) - size + 1, size):
        offset, info = struct.unpack_from("<QQ", body, at)
        addend = struct.unpack_from("<q", body, at + 16)[0] if with_addend else None
        if info >> 32 < len(symbols):
            out.append(TextReloc(offset, info & 0xFFFFFFFF, symbols[info >> 32], addend))
    return out


def patch_cubin(cubin: Cubin, code: dict[str, bytes]) -> bytes:
    """The file with the bytes of some code sections replaced; every other byte stays. Raises :class:`CubinError` if
    sizes differ."""
    out = bytearray(cubin.data)
    known = {s.name: s for s in cubin.sections}
    for name, data in code.items():
        section = known.get(name)
        if section is None:
            raise CubinError(f"the cubin has no section {name}")
        if len(data) != len(section.data):
            raise CubinError(f"section {name} has {len(section.data)} bytes, not {len(data)}")
        out[section.offset : section.offset + len(data)] = data
    return bytes(out)
