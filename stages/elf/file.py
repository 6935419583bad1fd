"""The parts that linked cubins and relocatable objects are put together from alike: name tables, contents, section
headers."""

from __future__ import annotations

from ir_format.alignment import align_up
from ir_format.record import Record
from stages.elf import image
from stages.elf.image import SHT_NOBITS, Section, Strings
from stages.elf.symbols import SymbolTable


class Layout(Record):
    """Sections in the order of the file, with their places; ``index`` numbers them, ``names`` are offsets in
    `.shstrtab`, ``shoff`` is where their headers go."""

    sections: list[Section]
    index: dict[str, int]
    names: list[int]
    shoff: int

    def pack(self, header: bytes) -> bytearray:
        """The file up to the end of its section headers, after the file header given."""
        out = bytearray(header)
        for s in self.sections:
            if s.type != SHT_NOBITS:
                out += bytes(s.offset - len(out)) + s.data
        out += bytes(self.shoff - len(out))
        out += bytes(image.SHDR_SIZE)
        for s, at in zip(self.sections, self.names, strict=True):
            out += image.section_header(s, at, self.index)
        return out


def lay_out(table: SymbolTable, strings: Strings, others: list[Section]) -> Layout:
    """Places for the name tables, the symbols and all other sections; ``strings`` may hold names already."""
    shstrtab = Section(".shstrtab", image.SHT_STRTAB)
    strtab = Section(".strtab", image.SHT_STRTAB)
    symtab = Section(
        ".symtab", image.SHT_SYMTAB, link=".strtab", info=table.first_global(), align=8, entsize=image.SYM_SIZE
    )
    sections = [shstrtab, strtab, symtab, *others]
    index = image.number(sections)
    names = Strings()
    name_at = [names.add(s.name) for s in sections]
    symtab.data = table.pack(strings, index)
    strtab.data = strings.data
    shstrtab.data = names.data
    for s in (shstrtab, strtab, symtab):
        s.size = len(s.data)
    return Layout(sections, index, name_at, align_up(image.place(sections), 8))
