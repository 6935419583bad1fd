"""``.debug_frame``: one CIE and one FDE per function (64-bit DWARF, CIE version 3).

Register numbers are 0x05000000 | n, the return address column of device functions 0x05000100 (measured). The canonical
frame address is R1 + frame size once the prologue has moved R1. Device functions return to (start of .text + R20).
"""

from __future__ import annotations

import struct

from ir_format.alignment import align_up
from ir_format.record import Record, fresh
from ir_format.target import RETURN_REG, STACK_REG, Target
from ir_format.typed import Final
from stages.elf.layout import Kernel, Placed

R: Final = 0x05000000
RETURN_COLUMN: Final = 0x05000100
NO_RETURN: Final = 0xFFFFFFFF

CFA_ADVANCE4: Final = 0x04
CFA_SAME: Final = 0x08
CFA_DEF: Final = 0x0C
CFA_VAL_EXPRESSION: Final = 0x16
OP_ADDR: Final = 0x03
OP_PLUS: Final = 0x22
OP_BREGX: Final = 0x92

CODE_ALIGN: Final = 4


class Frames(Record):
    """Section bytes and its R_CUDA_64 relocations (section offset, symbol, addend), in file order."""

    data: bytearray = fresh(default_factory=bytearray)
    relocs: list[tuple[int, str, int]] = fresh(default_factory=list)


def uleb(value: int) -> bytes:
    """Unsigned LEB128."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _entry(body: bytes) -> bytes:
    length = align_up(12 + len(body), 8) - 12
    return struct.pack("<IQ", 0xFFFFFFFF, length) + body.ljust(length, b"\0")


def _cie(is_entry: bool, f: Placed) -> tuple[bytes, int]:
    """The CIE, and the offset in it of the address that needs a relocation (-1: none)."""
    head = struct.pack("<QBBB", 0xFFFFFFFFFFFFFFFF, 3, 0, CODE_ALIGN) + b"\x7c"  # data alignment -4
    sp = uleb(R | STACK_REG)
    rules = bytes((CFA_DEF,)) + sp + b"\0" + bytes((CFA_SAME,)) + uleb(R | 255) + bytes((CFA_SAME,)) + sp
    if is_entry:
        return _entry(head + uleb(NO_RETURN) + rules), -1
    ret = uleb(R | next((value for kind, _, value in f.code.marks if kind == "return"), RETURN_REG))
    body = head + uleb(RETURN_COLUMN) + rules + bytes((CFA_SAME,)) + ret
    expression = bytes((OP_ADDR,)) + bytes(8) + bytes((OP_BREGX,)) + ret + bytes((0, OP_PLUS))
    body += bytes((CFA_VAL_EXPRESSION,)) + uleb(RETURN_COLUMN) + uleb(len(expression))
    return _entry(body + expression), 12 + len(body) + 1


def _fde(cie: int, f: Placed, length: int, cfa_at: int) -> bytes:
    program = bytes((CFA_ADVANCE4,)) + struct.pack("<I", cfa_at // CODE_ALIGN)
    program += bytes((CFA_DEF,)) + uleb(R | STACK_REG) + uleb(f.code.frame)
    return _entry(struct.pack("<3Q", cie, f.begin, length) + program)


def _cfa_at(f: Placed) -> int:
    for kind, at, _ in f.code.marks:
        if kind == "frame":
            return at + 16
    # Kernels load R1 first, then lower it; device functions lower it first.
    first = 16 if f.code.kind == "entry" else 0
    return min(first + (16 if f.code.frame else 0), f.end - f.begin)


def debug_frame(kernels: list[Kernel], target: Target) -> Frames:
    """Build the section for ``kernels`` in file order. Relocations are in reverse order of kernels, FDEs before CIEs
    (measured)."""
    out = Frames()
    groups: list[tuple[list[tuple[int, str, int]], list[tuple[int, str, int]]]] = []
    for k in kernels:
        fdes: list[tuple[int, str, int]] = []
        cies: list[tuple[int, str, int]] = []
        for i, f in enumerate(k.functions):
            at = len(out.data)
            cie, address = _cie(i == 0, f)
            out.data += cie
            if address >= 0:
                cies.append((at + address, k.name, 0))
            # The entry's range ends where the next function begins; alone, it covers the padding.
            length = k.functions[1].begin if i == 0 and len(k.functions) > 1 else f.size
            fdes.append((len(out.data) + 20, k.name, f.begin))
            out.data += _fde(at, f, length, _cfa_at(f))
        groups.append((fdes, cies))
    for fdes, cies in reversed(groups):
        out.relocs += reversed(fdes)
        out.relocs += reversed(cies)
    return out
