"""Facts that the benchmarks read from a cubin: per kernel, instructions before the tail padding and registers."""

from __future__ import annotations

import io
import struct
from typing import NamedTuple

# Tail: `BRA .` then NOP to a multiple of 128 bytes (measured B3). The low 12 bits of a word are the opcode.
_NOP, _BRA = 0x918, 0x947


class KernelFacts(NamedTuple):
    """``instructions``: without the padding NOPs and the final branch to itself. ``registers``: EIATTR REGCOUNT."""

    instructions: int
    registers: int


def kernel_facts(cubin: bytes) -> dict[str, KernelFacts]:
    """Facts of every entry by name, in file order."""
    from elftools.elf.elffile import ELFFile

    elf = ELFFile(io.BytesIO(cubin))
    symtab = elf.get_section_by_name(".symtab")
    regs: dict[int, int] = {}
    info = elf.get_section_by_name(".nv.info")
    if info is not None:
        data = info.data()
        at = 0
        while at + 4 <= len(data):
            fmt, code, size = struct.unpack_from("<BBH", data, at)
            at += 4
            if fmt == 4:
                if code == 0x2F:
                    sym, n = struct.unpack_from("<II", data, at)
                    regs[sym] = n
                at += size
    names = {s.name: i for i, s in enumerate(symtab.iter_symbols())}
    out = {}
    for section in elf.iter_sections():
        if not section.name.startswith(".text."):
            continue
        name = section.name[6:]
        data = section.data()
        n = len(data) // 16
        while n and struct.unpack_from("<H", data, (n - 1) * 16)[0] & 0xFFF == _NOP:
            n -= 1
        if n and struct.unpack_from("<H", data, (n - 1) * 16)[0] & 0xFFF == _BRA:
            n -= 1
        out[name] = KernelFacts(n, regs.get(names.get(name, -1), 0))
    return out
