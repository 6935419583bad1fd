"""The code sections of a cubin and their symbols; pyelftools is imported when a file is read."""

from __future__ import annotations

import io
from typing import NamedTuple

from ir_format.diag import OriasError

WORD = 16


class CubinError(OriasError):
    """The file is no cubin that we can read; the text says why."""


class CodeSection(NamedTuple):
    """One section of instructions. ``offset``: of its bytes in the file. ``symbols``: (offset, size, name, global) of the functions in it."""

    name: str
    offset: int
    data: bytes
    align: int
    symbols: tuple[tuple[int, int, str, bool], ...]

    @property
    def words(self) -> list[int]:
        """The instruction words."""
        return [int.from_bytes(self.data[i : i + WORD], "little") for i in range(0, len(self.data), WORD)]


class Cubin(NamedTuple):
    """What is needed of a cubin. ``sm``: 90; ``data``: the whole file."""

    sm: int
    data: bytes
    sections: tuple[CodeSection, ...]


def read_cubin(data: bytes) -> Cubin:
    """Read a cubin. Raises :class:`CubinError`."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import SymbolTableSection

    if data[:4] != b"\x7fELF":
        raise CubinError("not an ELF file")
    try:
        elf = ELFFile(io.BytesIO(data))
        if elf["e_machine"] not in (190, "EM_CUDA"):
            raise CubinError("not a CUDA ELF file")
        abi = data[8]
        flags = elf["e_flags"]
        sm = flags >> 8 & 0xFF if abi >= 8 else flags & 0xFF
        found: dict[int, CodeSection] = {}
        for index, section in enumerate(elf.iter_sections()):
            header = section.header
            if header["sh_type"] == "SHT_PROGBITS" and header["sh_flags"] & 4:
                body = section.data()
                if len(body) % WORD or len(body) != header["sh_size"]:
                    raise CubinError(f"section {section.name} is cut off")
                found[index] = CodeSection(section.name, header["sh_offset"], body, header["sh_addralign"], ())
        symbols: dict[int, list[tuple[int, int, str, bool]]] = {}
        for section in elf.iter_sections():
            if not isinstance(section, SymbolTableSection):
                continue
            for symbol in section.iter_symbols():
                where = symbol["st_shndx"]
                if symbol["st_info"]["type"] == "STT_FUNC" and isinstance(where, int) and where in found:
                    symbols.setdefault(where, []).append(
                        (symbol["st_value"], symbol["st_size"], symbol.name, symbol["st_info"]["bind"] != "STB_LOCAL")
                    )
    except (ELFError, ValueError, KeyError, IndexError, UnicodeError, AttributeError, TypeError, AssertionError, OverflowError) as error:
        raise CubinError(f"damaged ELF file ({type(error).__name__})") from None
    sections = tuple(s._replace(symbols=tuple(sorted(set(symbols.get(i, ()))))) for i, s in found.items())
    return Cubin(sm, data, sections)


def patch_cubin(cubin: Cubin, code: dict[str, bytes]) -> bytes:
    """The file with the bytes of some code sections replaced; every other byte stays. Raises :class:`CubinError` where sizes differ."""
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
