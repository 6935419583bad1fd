"""A small cubin reader for tests: sections, symbols, program headers and .nv.info records as plain data.

It is independent of the writer in ``stages/elf`` and shares no code with it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(slots=True)
class Section:
    index: int
    name: str
    type: int
    flags: int
    addr: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entsize: int
    data: bytes


@dataclass(slots=True)
class Symbol:
    index: int
    name: str
    bind: int
    type: int
    other: int
    shndx: int
    value: int
    size: int


@dataclass(slots=True)
class Cubin:
    raw: bytes
    header: tuple[int, ...]
    sections: list[Section]
    symbols: list[Symbol] = field(default_factory=list)
    segments: list[tuple[int, ...]] = field(default_factory=list)

    def section(self, name: str) -> Section:
        for s in self.sections:
            if s.name == name:
                return s
        raise KeyError(name)

    def names(self) -> list[str]:
        return [s.name for s in self.sections]


def _cstr(table: bytes, at: int) -> str:
    return table[at : table.index(b"\0", at)].decode()


def read(raw: bytes) -> Cubin:
    """Parse the bytes of a cubin (64-bit little-endian ELF)."""
    header = struct.unpack_from("<16s2HI3QI6H", raw)
    shoff, shnum, shstrndx = header[6], header[12], header[13]
    rows = [struct.unpack_from("<2I4Q2I2Q", raw, shoff + 64 * i) for i in range(shnum)]
    strings = rows[shstrndx]
    names = raw[strings[4] : strings[4] + strings[5]]
    sections = []
    for i, (name, type_, flags, addr, offset, size, link, info, align, entsize) in enumerate(rows):
        data = b"" if type_ == 8 else raw[offset : offset + size]
        sections.append(
            Section(i, _cstr(names, name), type_, flags, addr, offset, size, link, info, align, entsize, data)
        )
    cubin = Cubin(raw, header, sections)
    for s in sections:
        if s.type == 2:
            table = sections[s.link].data
            for i in range(len(s.data) // 24):
                name, info, other, shndx, value, size = struct.unpack_from("<I2BH2Q", s.data, 24 * i)
                cubin.symbols.append(Symbol(i, _cstr(table, name), info >> 4, info & 15, other, shndx, value, size))
    phoff, phnum = header[5], header[10]
    cubin.segments = [struct.unpack_from("<2I6Q", raw, phoff + 56 * i) for i in range(phnum)]
    return cubin


def load(path: str | Path) -> Cubin:
    return read(Path(path).read_bytes())


def info_records(data: bytes) -> list[tuple[int, int, bytes]]:
    """``.nv.info`` / ``.nv.compat`` bytes as (format, code, payload)."""
    out: list[tuple[int, int, bytes]] = []
    at = 0
    while at < len(data):
        fmt, code, word = struct.unpack_from("<BBH", data, at)
        at += 4
        if fmt == 4:
            out.append((fmt, code, data[at : at + word]))
            at += word
        else:
            out.append((fmt, code, struct.pack("<H", word)))
    return out


def describe(cubin: Cubin) -> str:
    """A readable dump: header, sections with bytes, symbols, segments."""
    h = cubin.header
    lines = [
        f"ident {h[0].hex()} type {h[1]:#x} flags {h[7]:#x} phoff {h[5]:#x} shoff {h[6]:#x} phnum {h[10]} phent {h[9]}"
    ]
    for s in cubin.sections:
        lines.append(
            f"[{s.index:2}] {s.name:40} T{s.type:#x} F{s.flags:#x} off {s.offset:#x} size {s.size:#x} "
            f"L{s.link} I{s.info:#x} A{s.align} E{s.entsize}"
        )
        if s.name.startswith((".nv.info", ".nv.compat")) and s.type != 9:
            lines += [f"       {f:02x}{c:02x} {p.hex()}" for f, c, p in info_records(s.data)]
        elif s.type != 8 and any(s.data) and not s.name.startswith((".text", ".nv.merc", ".nv.capmerc", ".symtab")):
            lines.append(
                f"       {s.data[:512]!r}"
                if "strtab" in s.name or "tkinfo" in s.name
                else f"       {s.data[:512].hex(' ', 4)}"
            )
    for y in cubin.symbols:
        lines.append(
            f"sym {y.index:2} {y.name:50} bind {y.bind} type {y.type} other {y.other:#x} shndx {y.shndx} "
            f"value {y.value:#x} size {y.size:#x}"
        )
    for p in cubin.segments:
        lines.append("ph " + " ".join(f"{v:#x}" for v in p))
    return "\n".join(lines)


if __name__ == "__main__":
    import sys

    print(describe(load(sys.argv[1])))
