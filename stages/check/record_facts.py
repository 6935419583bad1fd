"""The records of a cubin and what they describe: `.nv.info`, `.nv.info.<function>`, `.nv.compat`, section headers,
symbols; decoded code."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from ir_format import isa
from ir_format.model import Const, Inst, Mem, Reg
from ir_format.target import Target, target
from stages.disasm.cubin import CodeSection, Cubin, CubinError, Symbol, read_cubin
from stages.disasm.listing import Decoded, decode_section


class Info(IntEnum):
    """Codes of records, by the names that cuobjdump prints."""

    CTAIDZ_USED = 0x04
    PARAM_CBANK = 0x0A
    EXTERNS = 0x0F
    FRAME_SIZE = 0x11
    MIN_STACK_SIZE = 0x12
    KPARAM_INFO = 0x17
    CBANK_PARAM_SIZE = 0x19
    EXIT_INSTR_OFFSETS = 0x1C
    CRS_STACK_SIZE = 0x1E
    MAX_STACK_SIZE = 0x23
    COOP_GROUP_INSTR_OFFSETS = 0x28
    COOP_GROUP_MASK_REGIDS = 0x29
    WMMA_USED = 0x2B
    ATOM16_EMUL_INSTR_REG_MAP = 0x2E
    REGCOUNT = 0x2F
    INT_WARP_WIDE_INSTR_OFFSETS = 0x31
    INDIRECT_BRANCH_TARGETS = 0x34
    SW2861232_WAR = 0x35
    SW_WAR = 0x36
    CUDA_API_VERSION = 0x37
    NUM_MBARRIERS = 0x38
    MBARRIER_INSTR_OFFSETS = 0x39
    INSTR_REG_MAP = 0x40
    UNUSED_LOAD_BYTE_OFFSET = 0x44
    KPARAM_INFO_V2 = 0x45
    SYSCALL_OFFSETS = 0x46
    VRC_CTA_INIT_COUNT = 0x4A
    NUM_BARRIERS = 0x4C
    AT_ENTRY_FRAGMENTS = 0x4F
    SPARSE_MMA_MASK = 0x50
    REG_RECONFIG = 0x54
    ANNOTATIONS = 0x55
    MERCURY_ISA_VERSION = 0x5F


class Place(NamedTuple):
    """The facts of a section header to which records refer."""

    number: int
    size: int
    info: int
    data: bytes
    flags: int


class Code(NamedTuple):
    """A kernel or function with its own section. ``items``: its instructions by offset, without the branch to itself at
    the end and the NOPs after it; ``functions``: symbols by place, itself first; ``records``: payloads by
    code; ``counts``: of the module's records, by code and symbol."""

    name: str
    target: Target
    section: CodeSection
    items: dict[int, Decoded]
    functions: tuple[Symbol, ...]
    records: dict[int, list[bytes]]
    counts: dict[tuple[int, int], int]
    cubin: Cubin
    places: dict[str, Place]
    entry: bool

    def words(self, code: int) -> tuple[int, ...]:
        """The 32-bit words of all records of a code; the value of a short one."""
        out: list[int] = []
        for data in self.records.get(code, []):
            out += (
                struct.unpack(f"<{len(data) // 4}I", data[: len(data) & ~3])
                if len(data) > 2
                else (int.from_bytes(data, "little"),)
            )
        return tuple(out)

    def said(self, code: int, name: str) -> int | None:
        """The value of the module's record about a symbol."""
        return next(
            (
                v
                for (c, s), v in self.counts.items()
                if c == code and s < len(self.cubin.symbols) and self.cubin.symbols[s].name == name
            ),
            None,
        )

    def insts(self) -> Iterator[tuple[int, Inst]]:
        """Offset and instruction."""
        for at, item in self.items.items():
            if item.inst is not None:
                yield at, item.inst

    def at(self, *ops: str) -> list[int]:
        """Offsets of all instructions of some mnemonics."""
        return [at for at, i in self.insts() if i.op in ops]

    def inst(self, at: int) -> Inst | None:
        """The instruction at an offset."""
        item = self.items.get(at)
        return None if item is None else item.inst

    def end(self, f: Symbol) -> int:
        """Where the code of a function ends."""
        size = len(self.section.data)
        return min(
            next((g.value for g in self.functions if g.value > f.value), size), size
        )  # a damaged symbol table says anything


def registers(i: Inst) -> Iterator[Reg]:
    """Every register that an instruction names."""
    for o in (*i.dsts, *i.srcs):
        if isinstance(o, Reg):
            yield o
        elif isinstance(o, Mem):
            yield from (r for r in (o.base, o.ubase, o.desc) if r is not None)
        elif isinstance(o, Const) and o.ireg is not None:
            yield o.ireg


def _pairs(body: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(body):
        if at + 4 > len(body):
            raise CubinError("a record is cut off")
        form, code, value = struct.unpack_from("<BBH", body, at)
        at += 4
        if form == 4:
            if at + value > len(body):
                raise CubinError(f"record {code:#x} is cut off")
            yield code, body[at : at + value]
            at += value
        else:
            yield code, struct.pack("<H", value)


def _headers(data: bytes) -> dict[str, Place]:
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        elf = ELFFile(io.BytesIO(data))
        out: dict[str, Place] = {}
        for index, s in enumerate(elf.iter_sections()):
            body = b"" if s.header["sh_type"] == "SHT_NOBITS" else s.data()
            out.setdefault(s.name, Place(index, s.header["sh_size"], s.header["sh_info"], body, s.header["sh_flags"]))
        return out
    except (
        ELFError,
        ValueError,
        KeyError,
        IndexError,
        UnicodeError,
        AttributeError,
        TypeError,
        AssertionError,
        OverflowError,
        struct.error,
    ) as error:
        raise CubinError(f"damaged ELF file ({type(error).__name__})") from None


def read_codes(data: bytes) -> list[Code]:
    """Every code section with its records. Raises :class:`CubinError`."""
    cubin = read_cubin(data)
    places = _headers(data)
    t = target(f"sm_{cubin.sm}")
    counts: dict[tuple[int, int], int] = {}
    for code, payload in _pairs(places[".nv.info"].data if ".nv.info" in places else b""):
        if len(payload) == 8:
            symbol, value = struct.unpack("<II", payload)
            counts[code, symbol] = value
    out: list[Code] = []
    for section in cubin.sections:
        name = section.name.removeprefix(".text.")
        records: dict[int, list[bytes]] = {}
        info = places.get(f".nv.info.{name}")
        for code, payload in _pairs(info.data if info is not None else b""):
            records.setdefault(code, []).append(payload)
        items = decode_section(section, isa.target(cubin.sm))
        last = max(
            (d.pc for d in items if d.inst is not None and d.inst.op == "BRA" and d.label == d.pc),
            default=len(section.data),
        )
        functions = sorted(
            (s for s in cubin.symbols if s.section == section.number and s.kind == "FUNC"),
            key=lambda s: (s.value, s.name != name),
        )
        entry = any(s.name == name and s.other & 0x10 for s in functions)
        out.append(
            Code(
                name,
                t,
                section,
                {d.pc: d for d in items if d.pc < last},
                tuple(functions),
                records,
                counts,
                cubin,
                places,
                entry,
            )
        )
    return out
