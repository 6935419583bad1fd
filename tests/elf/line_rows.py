"""Decode DWARF 2 line programs, including the extended opcode for inlined calls. For tests; independent of the
encoder."""

from __future__ import annotations

import struct
from typing import NamedTuple


class Row(NamedTuple):
    """``context``: row number of the call site inside the sequence, 0 outside inlined code; ``name``: offset in
    .debug_str."""

    address: int
    file: int
    line: int
    context: int
    name: int


class Table(NamedTuple):
    """``files``: (name, directory, time, size). ``sequences``: rows, then the end address. ``places``: section offsets
    of the start addresses."""

    folders: list[str]
    files: list[tuple[str, int, int, int]]
    sequences: list[tuple[list[Row], int]]
    places: list[int]


def _uleb(d: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (d[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not d[at - 1] & 0x80:
            return value, at


def _sleb(d: bytes, at: int) -> tuple[int, int]:
    begin = at
    value, at = _uleb(d, at)
    bits = 7 * (at - begin)
    return value - (1 << bits if value >> bits - 1 else 0), at


def decode(d: bytes) -> Table:
    total, version, header = struct.unpack_from("<IHI", d)
    assert version == 2 and total == len(d) - 4
    min_inst, _, base, span, opcode_base = struct.unpack_from("<BBbBB", d, 10)
    assert min_inst == 1
    lengths = d[15 : 14 + opcode_base]
    assert lengths == bytes((0, 1, 1, 1, 1, 0, 0, 0, 1))
    at = 14 + opcode_base
    folders: list[str] = []
    while d[at]:
        end = d.index(b"\0", at)
        folders.append(d[at:end].decode())
        at = end + 1
    at += 1
    files = []
    while d[at]:
        end = d.index(b"\0", at)
        name = d[at:end].decode()
        folder, at = _uleb(d, end + 1)
        time, at = _uleb(d, at)
        size, at = _uleb(d, at)
        files.append((name, folder, time, size))
    at += 1
    gap = d[at : 10 + header]
    at = 10 + header
    calls = False
    table = Table(folders, files, [], [])
    while at < len(d):
        rows: list[Row] = []
        address, file, line, context, name = 0, 1, 1, 0, 0
        while True:
            op = d[at]
            at += 1
            if op >= opcode_base:
                op -= opcode_base
                address += op // span
                line += base + op % span
                rows.append(Row(address, file, line, context, name))
            elif op == 0:
                size, at = _uleb(d, at)
                sub, end = d[at], at + size
                if sub == 1:
                    at = end
                    break
                if sub == 2:
                    table.places.append(at + 1)
                    (address,) = struct.unpack_from("<Q", d, at + 1)
                else:
                    assert sub == 0x90
                    calls = True
                    context, at = _uleb(d, at + 1)
                    name, at = _uleb(d, at)
                    assert at == end
                at = end
            elif op == 1:
                rows.append(Row(address, file, line, context, name))
            elif op == 2:
                step, at = _uleb(d, at)
                address += step
            elif op == 3:
                step, at = _sleb(d, at)
                line += step
            elif op == 4:
                file, at = _uleb(d, at)
            else:
                raise AssertionError(f"opcode {op}")
        table.sequences.append((rows, address))
    assert gap == (bytes(4) if calls else b"")  # a word more in the header where calls were inlined, as in ptxas's
    return table
