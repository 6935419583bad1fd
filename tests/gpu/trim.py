"""Variants of a cubin with one part removed, to find what the driver needs.

Two kinds of parts: a section (its header becomes a null header, so that all indices stay) and one record of a
``.nv.info``, ``.nv.info.KERNEL`` or ``.nv.compat`` section (the later records move up, the section shrinks).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
NO_BITS = 8
RECORD_SECTIONS = (".nv.info", ".nv.compat")


class BadCubin(ValueError):
    """Not a 64-bit little-endian ELF file with sections."""


class Section:
    """One section header: index, name, and the fields in use."""

    __slots__ = ("header_at", "index", "kind", "name", "offset", "size")

    def __init__(self, index: int, name: str, kind: int, offset: int, size: int, header_at: int) -> None:
        self.index, self.name, self.kind = index, name, kind
        self.offset, self.size, self.header_at = offset, size, header_at


def sections(image: bytes) -> list[Section]:
    """All sections.  Raises :class:`BadCubin`."""
    if image[:6] != b"\x7fELF\x02\x01" or len(image) < 64:
        raise BadCubin("not a 64-bit little-endian ELF file")
    table = struct.unpack_from("<Q", image, 0x28)[0]
    size, count, names = struct.unpack_from("<HHH", image, 0x3A)
    if size != SECTION_HEADER.size or names >= count or table + size * count > len(image):
        raise BadCubin("bad section table")
    raw = [SECTION_HEADER.unpack_from(image, table + i * size) for i in range(count)]
    found = []
    for i, (name_at, kind, _, _, offset, length, *_) in enumerate(raw):
        start = raw[names][4] + name_at
        end = image.find(b"\0", start)
        if end < 0 or (kind != NO_BITS and offset + length > len(image)):
            raise BadCubin(f"section {i} lies outside the file")
        found.append(Section(i, image[start:end].decode("latin-1"), kind, offset, length, table + i * size))
    return found


def without_section(image: bytes, section: Section) -> bytes:
    """The file with the section's header nulled; its bytes stay where they are."""
    return image[: section.header_at] + bytes(SECTION_HEADER.size) + image[section.header_at + SECTION_HEADER.size :]


def records(image: bytes, section: Section) -> list[tuple[int, int, int]]:
    """(attribute code, start, length) of each record, offsets into the file.

    A record is a format byte, a code byte, and two bytes of value; format 4 has there the size of the payload that
    follows.
    """
    found = []
    at, end = section.offset, section.offset + section.size
    while at + 4 <= end:
        kind, code, value = struct.unpack_from("<BBH", image, at)
        length = 4 + (value if kind == 4 else 0)
        if at + length > end:
            raise BadCubin(f"{section.name}: a record runs past the section")
        found.append((code, at, length))
        at += length
    return found


def without_record(image: bytes, section: Section, start: int, length: int) -> bytes:
    """The file with one record removed from its section."""
    end = section.offset + section.size
    body = image[section.offset : start] + image[start + length : end]
    changed = image[: section.offset] + body + bytes(length) + image[end:]
    size_at = section.header_at + 32  # sh_size
    return changed[:size_at] + struct.pack("<Q", section.size - length) + changed[size_at + 8 :]


def variants(image: bytes) -> Iterator[tuple[str, bytes]]:
    """(what is missing, the file) for every section and every record."""
    everything = sections(image)
    for section in everything:
        if section.kind != 0:
            yield f"section {section.name}", without_section(image, section)
    for section in everything:
        if section.name.startswith(RECORD_SECTIONS):
            seen: dict[int, int] = {}
            for code, start, length in records(image, section):
                seen[code] = seen.get(code, 0) + 1
                number = f" #{seen[code]}" if seen[code] > 1 else ""
                yield f"record {code:#04x}{number} of {section.name}", without_record(image, section, start, length)
