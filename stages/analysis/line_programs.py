"""Line tables of a cubin, read: `.debug_line` (source positions) and `.nv_debug_line_sass` (lines of the PTX).

Format (measured): DWARF 2 line programs. Beside its standard, extended opcode 0x90 carries two numbers: the row of the
call site that inlined what follows (1 = first of the sequence, 0: none), and the place of the function's name in
`.debug_str`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from ir_format.record import NamedTuple
from ir_format.typed import Final

MOST_ROWS: Final = 1 << 22
_INLINED_CALL: Final = 0x90


class Row(NamedTuple):
    """A row: the code from ``address`` on comes from ``line`` of file number ``file``. ``site``: the index, in the list
    of all rows, of the call that inlined it, or -1; ``name``: place of the inlined function's name."""

    address: int
    file: int
    line: int
    site: int = -1
    name: int = 0


def leb(data: bytes, at: int, signed: bool) -> tuple[int, int]:
    """A LEB128 number, and the place after it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            break
    if signed and byte & 0x40:
        value -= 1 << shift
    return value, at


def rows_of(data: bytes, start_at: Callable[[int], int | None]) -> list[Row]:
    """The rows of all sequences. ``start_at``: the address of a place in the section that a relocation fills; None
    where it is not known, which leaves the sequence out. A damaged table ends early."""
    rows: list[Row] = []
    try:
        at = 0
        while at + 10 < len(data):
            at = _unit(data, at, start_at, rows)
    except (struct.error, IndexError):
        pass  # costs lines, nothing else
    return rows


def files_of(data: bytes) -> list[str]:
    """The names of the first unit's files, from number 1, with their folders."""
    out: list[str] = []
    try:
        sizes = data[14]
        at = 14 + sizes
        folders, at = _texts(data, at)
        while data[at]:
            end = data.index(b"\0", at)
            name = data[at:end].decode("utf-8", "replace")
            folder, at = leb(data, end + 1, False)
            _, at = leb(data, at, False)
            _, at = leb(data, at, False)
            out.append(f"{folders[folder - 1]}/{name}" if 0 < folder <= len(folders) else name)
    except (struct.error, IndexError, ValueError):
        pass
    return out


def _texts(data: bytes, at: int) -> tuple[list[str], int]:
    out = []
    while data[at]:
        end = data.index(b"\0", at)
        out.append(data[at:end].decode("utf-8", "replace"))
        at = end + 1
    return out, at + 1


def _unit(data: bytes, at: int, start_at: Callable[[int], int | None], rows: list[Row]) -> int:
    """One unit; returns the place after it."""
    length: int
    length, _, header = struct.unpack_from("<IHI", data, at)
    end = min(at + 4 + length, len(data))
    minimum, _, line_base, line_range, opcode_base = struct.unpack_from("<BBbBB", data, at + 10)
    sizes = data[at + 15 : at + 14 + opcode_base]
    pc = at + 10 + header
    address, file, line, known = 0, 1, 1, False
    first, site, name = len(rows), -1, 0

    def row() -> None:
        if known:
            rows.append(Row(address, file, line, site, name))

    while pc < end and len(rows) < MOST_ROWS:
        op = data[pc]
        pc += 1
        if op >= opcode_base and line_range:
            op -= opcode_base
            address += op // line_range * minimum
            line += line_base + op % line_range
            row()
        elif op == 0:
            size, pc = leb(data, pc, False)
            kind = data[pc] if size else 0
            if kind == 2:
                start = start_at(pc + 1)
                known, address = start is not None, start or 0
            elif kind == 1:
                file, line, known = 1, 1, False
                first, site, name = len(rows), -1, 0
            elif kind == _INLINED_CALL:
                call, place = leb(data, pc + 1, False)
                name, _ = leb(data, place, False)
                site = first + call - 1 if 0 < call <= len(rows) - first else -1
            pc += size
        elif op == 1:
            row()
        elif op == 2:
            delta, pc = leb(data, pc, False)
            address += delta * minimum
        elif op == 3:
            delta, pc = leb(data, pc, True)
            line += delta
        elif op == 4:
            file, pc = leb(data, pc, False)
        elif op == 8 and line_range:
            address += (255 - opcode_base) // line_range * minimum
        elif op == 9:
            address += struct.unpack_from("<H", data, pc)[0]
            pc += 2
        else:
            for _ in range(sizes[op - 1] if op - 1 < len(sizes) else 0):
                _, pc = leb(data, pc, False)
    return end
