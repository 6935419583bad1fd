"""Source lines in a listing, as `nvdisasm -g`, `-gi` and `-gp` print them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Final

from stages.analysis.line_programs import Row, files_of, rows_of
from stages.disasm.cubin import Cubin, relocations

#: The section with the lines, by kind.
SECTIONS: Final = {"source": ".debug_line", "inline": ".debug_line", "ptx": ".nv_debug_line_sass"}
_SHIFT: Final = 40  # an address is the section's number above the offset in it


def notes_of(cubin: Cubin, kind: str) -> dict[int, dict[int, list[str]]]:
    """Section number -> offset -> the lines before the instruction there. ``kind``: source, inline or ptx."""
    from elftools.elf.elffile import ELFFile

    elf = ELFFile(io.BytesIO(cubin.data))
    name = SECTIONS[kind]
    table = elf.get_section_by_name(name)
    if table is None:
        return {}
    data = bytes(table.data())
    starts: dict[int, int] = {}
    for section in elf.iter_sections():
        header = section.header
        if header["sh_type"] in ("SHT_REL", "SHT_RELA") and elf.get_section(header["sh_info"]).name == name:
            for r in relocations(section.data(), header["sh_type"] == "SHT_RELA", list(cubin.symbols)):
                starts[r.offset] = r.symbol.section << _SHIFT | r.symbol.value + (r.addend or 0)
    rows = rows_of(data, starts.get)
    files = files_of(data)
    out: dict[int, dict[int, list[str]]] = {}
    for row in rows:
        number, offset = row.address >> _SHIFT, row.address & (1 << _SHIFT) - 1
        out.setdefault(number, {})[offset] = _texts(row, rows, files, kind)
    return out


def _place(row: Row, files: Sequence[str], kind: str) -> str:
    name = ".nv_debug_ptx_txt" if kind == "ptx" else files[row.file - 1] if 0 < row.file <= len(files) else "?"
    return f'"{name}", line {row.line}'


def _texts(row: Row, rows: Sequence[Row], files: Sequence[str], kind: str) -> list[str]:
    out: list[str] = []
    for _ in range(len(rows)):
        text = f"\t//## File {_place(row, files, kind)}"
        if kind != "inline" or row.site < 0:
            return [*out, text + "\n"]
        caller = rows[row.site]
        out.append(f"{text} inlined at {_place(caller, files, kind)}\n")
        row = caller
    return out
