"""Debug sections of ``-g``: what the PTX text holds in ``.section`` blocks goes into the file, its addresses resolved.

The front end writes DWARF for PTX: labels of the code, variables, other sections. A label's place is that of the first
instruction that came of a later line of the PTX text. Registers stay what the front end wrote, names of PTX registers
as numbers; `.nv_debug_info_reg_sass` tells a debugger where the allocator put them, `.nv_debug_info_reg_type` of what
type they are. Both are lists of functions: the name, NUL, the number of rows (32 bits), the rows. A row of the first is
the part of the register (32 bits), its name, NUL, the machine's register as DWARF numbers it, begin and end in the code
of the function; of the second a byte (measured).
"""

from __future__ import annotations

import struct
from collections.abc import Collection

from ir_format.diag import CompileError
from ir_format.model import AttrValue, Code, Function, Module
from ir_format.record import Record, fresh
from ir_format.typed import Final, TypeAlias
from stages.elf.layout import Kernel
from stages.elf.lines import sleb

R_CUDA_32: Final = 1
R_CUDA_64: Final = 2

REG_SASS: Final = ".nv_debug_info_reg_sass"
REG_TYPE: Final = ".nv_debug_info_reg_type"
GENERAL: Final = 5 << 24  # numbers of R registers in DWARF
PREDICATE: Final = 2 << 24
# Numbers of register types (measured); plus 64 for vectors of two, 128 for vectors of four.
TYPES: Final = {
    "b8": 0, "b16": 1, "b32": 2, "b64": 3, "u8": 4, "u16": 5, "u32": 6, "u64": 7, "s8": 8, "s16": 9, "s32": 10,
    "s64": 11, "f16": 12, "f16x2": 13, "f32": 14, "f64": 15, "pred": 16, "b128": 17,
}  # fmt: skip
VECTORS: Final = {2: 64, 4: 128}

#: A relocation: offset, type, symbol, addend.
Row: TypeAlias = "tuple[int, int, str, int]"

FRAME: Final = "\0frame"
OP_ADDR: Final = 0x03
OP_FBREG: Final = 0x91
OP_NOP: Final = 0x96


class DebugSection(Record):
    """Bytes, and relocations (offset, type, symbol, addend)."""

    name: str
    data: bytearray
    relocs: list[tuple[int, int, str, int]] = fresh(default_factory=list)


class _Names(Record):
    """The meaning of symbols of the debug sections: (symbol of the file, addend), or a plain number with an empty
    symbol. With ``FRAME`` for a symbol the number is relative to the end of the function's frame."""

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


def _names(
    kernels: list[Kernel], variables: dict[str, str], sections: dict[str, AttrValue], linked: Collection[str]
) -> _Names:
    """Kernels in declaration order; of a device function with copies in several kernels the first copy counts."""
    out = _Names()
    known = out.known
    for name in linked:
        known[name] = (name, 0)
    for name, body in sections.items():
        known.setdefault(name, ("", 0))
        for label, at in _rows(body[2] if isinstance(body, tuple) and len(body) == 3 else None):
            known.setdefault(label, (known[name][0], at))
    for name, symbol in variables.items():
        known.setdefault(name, (symbol, 0))
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
            for symbol, value in _rows(f.attrs.get("local_places")):
                known.setdefault(symbol, (FRAME, value - placed.code.frame))
    return out


def debug_sections(
    module: Module, kernels: list[Kernel], variables: dict[str, str], linked: Collection[str] = ()
) -> list[DebugSection]:
    """The sections, in the order of the PTX text, without empty ones. ``variables``: the symbols of those that have
    one; ``linked``: sections that a linker joins with those of other files, so that places in them are relocated."""
    names = _names(kernels, variables, module.sections, linked).known
    out = register_sections(kernels)
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
        if name == ".debug_loc":
            _keep_lists(section)
        if section.data:
            out.append(section)
    return out


def _keep_lists(section: DebugSection) -> None:
    """Two zeros end a location list. An empty stretch at the begin of a function, whose moves took no instructions,
    goes one byte further."""
    at = {row[0]: n for n, row in enumerate(section.relocs)}
    for n, (first, kind, symbol, addend) in enumerate(section.relocs):
        other = at.get(first + 8, -1)
        if kind == R_CUDA_64 and not addend and other >= 0 and section.relocs[other][1:] == (kind, symbol, addend):
            for k in (n, other):
                place = section.relocs[k][0]
                section.relocs[k] = (place, kind, symbol, 1)
                section.data[place : place + 8] = (1).to_bytes(8, "little")


def split_relocations(section: str, rows: list[Row], exec_rel: bool) -> tuple[list[Row], list[Row]]:
    """The rows for ``.rel`` and for ``.rela`` of a debug section, as ptxas splits them before sm_90: addends in the
    code are in the data, but .debug_info and places in other sections have explicit ones."""
    in_data = [exec_rel and section != ".debug_info" and not symbol.startswith(".") for _, _, symbol, _ in rows]
    paired = list(zip(rows, in_data, strict=True))
    return [r for r, inside in paired if inside], [r for r, inside in paired if not inside]


def register_sections(kernels: list[Kernel]) -> list[DebugSection]:
    """The two tables of PTX registers, for ``kernels`` in declaration order. Of a device function with copies in
    several kernels the first copy counts, as for its addresses."""
    places, types = bytearray(), bytearray()
    seen: set[str] = set()
    for k in kernels:
        by_name = {f.name: f for f in k.unit.functions}
        for placed in k.functions:
            name = placed.code.name
            f = by_name.get(name)
            if f is None or name in seen or "registers" not in f.attrs:
                continue
            seen.add(name)
            rows = _registers(f)
            head = name.encode() + b"\0" + struct.pack("<I", len(rows))
            places += head + b"".join(row for row, _ in rows)
            types += head + bytes([of for _, of in rows])
    return [DebugSection(REG_SASS, places), DebugSection(REG_TYPE, types)] if places else []


def _registers(f: Function) -> list[tuple[bytes, int]]:
    """A function's rows: where a register is, and its type."""
    out: list[tuple[bytes, int]] = []
    variables, found = f.attrs.get("variables"), f.attrs["registers"]
    for place in found if isinstance(found, tuple) else ():
        match place:
            case (int(row), int(part), int(number), int(begin), int(end)) if isinstance(variables, tuple):
                pass
            case _:
                raise CompileError(f"the registers of '{f.name}' are malformed")
        match variables[row] if 0 <= row < len(variables) else None:
            case (_, str(name), str(of), int(elements), _, _):
                number |= PREDICATE if of == "pred" else GENERAL
            case _:
                raise CompileError(f"the variables of '{f.name}' are malformed")
        try:
            text = struct.pack("<I", part) + name.encode() + b"\0" + struct.pack("<3I", number, begin, end)
        except (struct.error, UnicodeEncodeError):
            raise CompileError(f"the registers of '{f.name}' are malformed") from None
        out.append((text, TYPES.get(of, 2) + VECTORS.get(elements, 0)))
    return out


def _apply(section: DebugSection, fixup: AttrValue, names: dict[str, tuple[str, int]]) -> None:
    match fixup:
        case (int(at), int(size), str(symbol), int(addend), str(minus)) if (
            0 <= at <= len(section.data) - size and 0 < size <= 8
        ):
            base, value = names.get(symbol, ("", 0))  # removed code is at 0, where nothing finds it
            value += addend
            if base == FRAME:
                if size == 8 and at and section.data[at - 1] == OP_ADDR and not minus:
                    # A local variable has no address: ptxas writes its place in the frame in as many bytes.
                    section.data[at - 1 : at + 8] = (bytes((OP_FBREG,)) + sleb(value)).ljust(9, bytes((OP_NOP,)))
                    return
                base = ""
            if minus:
                value -= names.get(minus, ("", 0))[1]
            elif base and size in (4, 8):
                # the addend is in the bytes too, as in ptxas's: some readers apply no relocations
                section.relocs.append((at, R_CUDA_64 if size == 8 else R_CUDA_32, base, value))
            section.data[at : at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
        case _:
            raise CompileError(f"an address in section '{section.name}' is malformed")
