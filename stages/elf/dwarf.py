"""Debug sections of ``-g``: what the PTX text holds in ``.section`` blocks goes into the file, its addresses resolved.

The front end writes DWARF for PTX: labels of the code, variables, other sections. A label's place is that of the first
instruction that came of a later line of the PTX text. Registers stay what the front end wrote (names of PTX registers
as numbers): the tables that tell a debugger where the allocator put them (`.nv_debug_info_reg_sass`,
`.nv_debug_info_reg_type`) are not written.
"""

from __future__ import annotations

from typing import Final

from ir_format.diag import CompileError
from ir_format.model import AttrValue, Code, Module
from ir_format.record import Record, fresh
from stages.elf.layout import Kernel

R_CUDA_32: Final = 1
R_CUDA_64: Final = 2


class DebugSection(Record):
    """Bytes, and relocations (offset, type, symbol, addend)."""

    name: str
    data: bytearray
    relocs: list[tuple[int, int, str, int]] = fresh(default_factory=list)


class _Names(Record):
    """The meaning of symbols of the debug sections: (symbol of the file, addend), or a plain number with an empty
    symbol."""

    known: dict[str, tuple[str, int]] = fresh(default_factory=dict)


def _place_of(code: Code, line: int) -> int:
    """Offset of the first instruction that a PTX line after ``line`` gave (0 if only the prologue comes before
    it), the end without one."""
    first = code.lines[0][1] if code.lines else 0
    prologue = True
    for at, of, _ in code.lines:
        if of > line:
            return 0 if prologue else at
        prologue = prologue and of == first
    return len(code.data)


def _rows(value: AttrValue | None) -> list[tuple[str, int]]:
    out: list[tuple[str, int]] = []
    for row in value if isinstance(value, tuple) else ():
        if not isinstance(row, tuple) or len(row) != 2 or not isinstance(row[0], str) or not isinstance(row[1], int):
            raise CompileError("a list of places among the attributes is malformed")
        out.append((row[0], row[1]))
    return out


def _names(kernels: list[Kernel], variables: list[str], sections: dict[str, AttrValue]) -> _Names:
    """Kernels in declaration order; of a device function with copies in several kernels the first copy counts."""
    out = _Names()
    known = out.known
    for name, body in sections.items():
        known.setdefault(name, ("", 0))
        for label, at in _rows(body[2] if isinstance(body, tuple) and len(body) == 3 else None):
            known.setdefault(label, ("", at))
    for name in variables:
        known.setdefault(name, (name, 0))
    for k in kernels:
        by_name = {f.name: f for f in k.unit.functions}
        for placed in k.functions:
            known.setdefault(placed.code.name, (k.name, placed.begin))
            f = by_name.get(placed.code.name)
            if f is None:
                continue
            for label, line in _rows(f.attrs.get("labels")):
                known.setdefault(label, (k.name, placed.begin + _place_of(placed.code, line)))
            for symbol, value in _rows(f.attrs.get("places")):
                known.setdefault(symbol, ("", value))
    return out


def debug_sections(module: Module, kernels: list[Kernel], variables: list[str]) -> list[DebugSection]:
    """The sections, in the order of the PTX text. ``variables``: those that the file has symbols for."""
    names = _names(kernels, variables, module.sections).known
    out: list[DebugSection] = []
    for name, body in module.sections.items():
        if (
            not isinstance(body, tuple)
            or len(body) != 3
            or not isinstance(body[0], str)
            or not isinstance(body[1], tuple)
        ):
            raise CompileError(f"section '{name}' is malformed")
        try:
            section = DebugSection(name, bytearray(body[0].encode("latin-1")))
        except UnicodeEncodeError:
            raise CompileError(f"section '{name}' is malformed") from None
        for fixup in body[1]:
            _apply(section, fixup, names)
        out.append(section)
    return out


def _apply(section: DebugSection, fixup: AttrValue, names: dict[str, tuple[str, int]]) -> None:
    match fixup:
        case (int(at), int(size), str(symbol), int(addend), str(minus)) if (
            0 <= at <= len(section.data) - size and 0 < size <= 8
        ):
            base, value = names.get(symbol, ("", 0))  # removed code is at 0, where nothing finds it
            value += addend
            if minus:
                value -= names.get(minus, ("", 0))[1]
            elif base and size in (4, 8):
                # the addend is in the bytes too, as in ptxas's: some readers apply no relocations
                section.relocs.append((at, R_CUDA_64 if size == 8 else R_CUDA_32, base, value))
            section.data[at : at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
        case _:
            raise CompileError(f"an address in section '{section.name}' is malformed")
