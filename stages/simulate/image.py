"""A cubin as the driver would load it: code, constant banks, variables, kernels, with relocations applied."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from ir_format.diag import CompileError
from ir_format.target import Target, target
from stages.simulate.elfread import Elf, ImageError, Relocation, read_elf

#: Load address of code. Any address works: code addresses are a space of their own.
CODE_BASE: Final = 0x10_0000
#: Start of global memory: high, so that a truncated pointer cannot pass for a valid one.
GLOBAL_BASE: Final = 0x7F42_0000_0000
#: Stub addresses of functions that the driver provides (vprintf...), 16 bytes apart.
STUB_BASE: Final = 0x4000_0000
_GUARD: Final = 256

# .nv.info attribute codes used here (measured).
#: What nvlink writes if recursion leaves the depth open: the launch's own stack size then counts.
_UNKNOWN_STACK: Final = 0xFFFFFFFF
_PARAM_CBANK, _FRAME, _MIN_STACK, _REGCOUNT, _KPARAM, _KPARAM2 = 0x0A, 0x11, 0x12, 0x2F, 0x17, 0x45
_MAX_THREADS, _REQNTID, _CLUSTER, _PARAM_SIZE, _EXTERNS = 0x05, 0x10, 0x3D, 0x19, 0x0F

# Relocation numbers (measured): (bits, first bit, shift right of the value, whole word).
_PLACES: Final[dict[int, tuple[int, int, int]]] = {
    1: (32, 0, 0),  # 32
    2: (64, 0, 0),  # 64
    4: (64, 0, 0),  # G64: generic address
    55: (32, 32, 0),  # ABS32_32
    56: (32, 32, 0),  # ABS32_LO_32
    57: (32, 32, 32),  # ABS32_HI_32
    58: (47, 34, 0),  # ABS47_34
    59: (16, 32, 0),  # ABS16_32
    74: (24, 40, 0),  # ABS24_40
    112: (32, 32, 0),  # UNIFIED32_LO_32
    113: (32, 32, 32),  # UNIFIED32_HI_32
    **{
        first + i: (8, 0, 8 * i) for first in (76, 84, 104) for i in range(8)
    },  # one byte of an address: plain, generic, a function's
}
_IGNORED: Final = frozenset({0, 73})


@dataclass(slots=True)
class Param:
    """One kernel parameter: byte offset from the parameter base, byte size."""

    ordinal: int
    offset: int
    size: int


@dataclass(slots=True)
class Kernel:
    """One entry of the cubin. Sizes in bytes; ``entry`` is a code address; ``bank2`` and ``bank0`` hold the file's
    bytes."""

    name: str
    entry: int
    size: int
    regs: int = 255
    min_stack: int = 0
    param_base: int = 0
    param_size: int = 0
    params: list[Param] = field(default_factory=list)
    shared: int = 0
    bank0: bytes = b""
    bank2: bytes = b""
    max_threads: int = 0
    reqntid: tuple[int, int, int] | None = None
    cluster: tuple[int, int, int] | None = None


@dataclass(slots=True)
class Variable:
    """A module variable: ``space`` is global or const, ``at`` its offset in the global image or in bank 3."""

    name: str
    space: str
    at: int
    size: int


@dataclass(slots=True)
class CodeSection:
    """A .text section: code address of its first byte, its bytes, its functions as (offset, name)."""

    name: str
    base: int
    data: bytes
    functions: list[tuple[int, str]]


@dataclass(slots=True)
class Image:
    """A loaded module. ``globals_init`` are the bytes of all global variables, loaded at :data:`GLOBAL_BASE` +
    guard."""

    target: Target
    code: list[CodeSection]
    kernels: dict[str, Kernel]
    variables: dict[str, Variable]
    globals_init: bytearray
    bank3: bytearray
    bank4: bytearray
    stubs: dict[int, str]
    elf: Elf

    @property
    def globals_base(self) -> int:
        """Address of the first byte of the global variables."""
        return GLOBAL_BASE + _GUARD

    def function_at(self, address: int) -> tuple[str, int]:
        """(function name, offset in its section) of a code address."""
        for section in self.code:
            if section.base <= address < section.base + len(section.data):
                offset = address - section.base
                name = section.name.removeprefix(".text.")
                for start, candidate in section.functions:
                    if start <= offset:
                        name = candidate
                return name, offset
        return "?", address


def load_image(data: bytes) -> Image:
    """Load a cubin. Raises :class:`ImageError` with one sentence for anything unusable."""
    elf = read_elf(data)
    if elf.type == 1:
        raise ImageError("a relocatable object (-c) can't be executed: link it first")
    sm = (elf.flags >> 8) & 0xFF
    try:
        record = target(f"sm_{sm}")
    except (CompileError, ImageError, KeyError) as e:
        raise ImageError(f"unknown target sm_{sm} in the ELF header") from e
    image = Image(record, [], {}, {}, bytearray(), bytearray(), bytearray(), {}, elf)
    places = _place_sections(image)
    addresses = _symbol_addresses(image, places)
    bodies = {i: bytearray(s.data) for i, s in enumerate(elf.sections)}
    for relocation in elf.relocations:
        _apply(image, bodies, addresses, relocation)
    for section in image.code:
        section.data = bytes(bodies[_index(elf, section.name)])
    _load_data(image, bodies, places)
    _load_kernels(image, bodies)
    if not image.kernels:
        raise ImageError("no kernel in the file")
    return image


def _index(elf: Elf, name: str) -> int:
    return next((i for i, s in enumerate(elf.sections) if s.name == name), 0)


def _align(value: int, to: int) -> int:
    to = max(to, 1)
    return -(-value // to) * to


def _place_sections(image: Image) -> dict[int, int]:
    """Section index -> address of its first byte, for code and global data."""
    places: dict[int, int] = {}
    code, data = CODE_BASE, image.globals_base
    for i, section in enumerate(image.elf.sections):
        if section.align > 1 << 20 or section.size > 1 << 30:
            raise ImageError(f"{section.name}: absurd size or alignment")
        if section.name.startswith(".text."):
            functions = sorted((s.value, s.name) for s in image.elf.symbols if s.section == i and s.type == 2)
            code = _align(code, 0x1000)
            places[i] = code
            image.code.append(CodeSection(section.name, code, section.data, functions))
            code += section.size
        elif section.name in (".nv.global", ".nv.global.init"):
            data = _align(data, max(section.align, 256))
            places[i] = data
            data += section.size
    if data - image.globals_base > 1 << 30:
        raise ImageError(f"{data - image.globals_base} bytes of module variables")
    image.globals_init = bytearray(data - image.globals_base)
    return places


def _symbol_addresses(image: Image, places: dict[int, int]) -> list[int | None]:
    out: list[int | None] = []
    stub = STUB_BASE
    for symbol in image.elf.symbols:
        base = places.get(symbol.section)
        if base is not None:
            out.append(base + symbol.value)
        elif symbol.section == 0 and symbol.type == 2:
            image.stubs[stub] = symbol.name
            out.append(stub)
            stub += 16
        elif symbol.section and image.elf.sections[symbol.section].name.startswith((".nv.constant", ".nv.shared")):
            out.append(symbol.value)
        else:
            out.append(None)
    return out


def _apply(image: Image, bodies: dict[int, bytearray], addresses: list[int | None], r: Relocation) -> None:
    section = image.elf.sections[r.target]
    if r.type in _IGNORED or section.name.startswith((".debug", ".nv_debug", ".nv.merc", ".nv.capmerc", ".nv.info")):
        return
    if r.symbol >= len(addresses):
        raise ImageError(f"{section.name}: relocation against symbol {r.symbol}, which does not exist")
    name = image.elf.symbols[r.symbol].name
    place = _PLACES.get(r.type)
    if place is None and r.type != 75:
        raise ImageError(f"{section.name}: relocation type {r.type} against '{name}' is not supported")
    value = addresses[r.symbol]
    if value is None:
        raise ImageError(f"{section.name}: undefined symbol '{name}'")
    body = bodies[r.target]
    size = (
        16
        if section.name.startswith(".text.")
        else 1
        if place is not None and place[0] == 8
        else 8
        if r.type != 1
        else 4
    )
    if r.offset + size > len(body):
        raise ImageError(f"{section.name}: relocation outside the section")
    word = int.from_bytes(body[r.offset : r.offset + size], "little")
    if place is None:  # ABS55_16_34: low 8 bits at 16, the rest at 34
        total = (value + (r.addend or 0)) >> 2
        word = word & ~(0xFF << 16) | (total & 0xFF) << 16
        word = word & ~(((1 << 47) - 1) << 34) | ((total >> 8) & ((1 << 47) - 1)) << 34
    else:
        bits, first, shift = place
        mask = ((1 << bits) - 1) << first
        addend = (word & mask) >> first if r.addend is None else r.addend
        total = (value + addend) >> shift
        if r.type == 58:
            total >>= 2
        word = word & ~mask | (total << first) & mask
    body[r.offset : r.offset + size] = word.to_bytes(size, "little")


def _load_data(image: Image, bodies: dict[int, bytearray], places: dict[int, int]) -> None:
    for i, section in enumerate(image.elf.sections):
        if section.name == ".nv.global.init":
            at = places[i] - image.globals_base
            image.globals_init[at : at + len(bodies[i])] = bodies[i]
        elif section.name == ".nv.constant3":
            image.bank3 = bodies[i]
        elif section.name == ".nv.constant4":
            image.bank4 = bodies[i]
    for symbol in image.elf.symbols:
        if symbol.type not in (1, 13) or not symbol.section or not symbol.size:
            continue
        name = image.elf.sections[symbol.section].name
        if name in (".nv.global", ".nv.global.init"):
            at = places[symbol.section] - image.globals_base + symbol.value
            space, limit = "global", len(image.globals_init)
        elif name == ".nv.constant3":
            at, space, limit = symbol.value, "const", len(image.bank3)
        else:
            continue
        if at + symbol.size > limit:
            raise ImageError(f"variable '{symbol.name}' reaches outside its section")
        image.variables[symbol.name] = Variable(symbol.name, space, at, symbol.size)


def _records(data: bytes) -> list[tuple[int, int, bytes]]:
    """(format, code, payload) of a .nv.info section; formats 1-3 keep their two bytes."""
    out, at = [], 0
    while at + 4 <= len(data):
        form, code, size = struct.unpack_from("<BBH", data, at)
        if form == 4:
            if at + 4 + size > len(data):
                raise ImageError(".nv.info record outside its section")
            out.append((form, code, data[at + 4 : at + 4 + size]))
            at += 4 + size
        else:
            out.append((form, code, data[at + 2 : at + 4]))
            at += 4
    return out


def _words(payload: bytes, count: int) -> tuple[int, ...]:
    if len(payload) < 4 * count:
        raise ImageError(".nv.info record is too short")
    return struct.unpack_from(f"<{count}I", payload)


def _load_kernels(image: Image, bodies: dict[int, bytearray]) -> None:
    elf = image.elf
    by_symbol: dict[int, Kernel] = {}
    for i, symbol in enumerate(elf.symbols):
        section = elf.sections[symbol.section]
        if symbol.type != 2 or not symbol.other & 0x10 or not section.name.startswith(".text."):
            continue
        base = next(s.base for s in image.code if s.name == section.name)
        name = symbol.name
        kernel = Kernel(name, base + symbol.value, symbol.size, param_base=image.target.bank0.param_base)
        kernel.bank0 = (
            bytes(bodies[_index(elf, f".nv.constant0.{name}")]) if _index(elf, f".nv.constant0.{name}") else b""
        )
        kernel.bank2 = (
            bytes(bodies[_index(elf, f".nv.constant2.{name}")]) if _index(elf, f".nv.constant2.{name}") else b""
        )
        kernel.shared = elf.sections[_index(elf, f".nv.shared.{name}")].size if _index(elf, f".nv.shared.{name}") else 0
        by_symbol[i] = image.kernels[name] = kernel
    info = _index(elf, ".nv.info")
    for _, code, payload in _records(elf.sections[info].data if info else b""):
        if code in (_REGCOUNT, _MIN_STACK):
            symbol_index, value = _words(payload, 2)
            if symbol_index in by_symbol:
                if code == _REGCOUNT:
                    by_symbol[symbol_index].regs = value
                else:
                    by_symbol[symbol_index].min_stack = value if value < _UNKNOWN_STACK else 0
    for name, kernel in image.kernels.items():
        info = _index(elf, f".nv.info.{name}")
        for form, code, payload in _records(elf.sections[info].data if info else b""):
            handler = _KERNEL_RECORDS.get(code)
            if handler is not None and (form == 4 or code == _PARAM_SIZE):
                handler(kernel, payload)
        kernel.params.sort(key=lambda p: p.ordinal)


def _on_cbank(kernel: Kernel, payload: bytes) -> None:
    _, word = _words(payload, 2)
    kernel.param_base, kernel.param_size = word & 0xFFFF, word >> 16


def _on_kparam(kernel: Kernel, payload: bytes) -> None:
    _, place, info = _words(payload, 3)
    kernel.params.append(Param(place & 0xFFFF, place >> 16, info >> 18))


def _on_kparam2(kernel: Kernel, payload: bytes) -> None:
    _, place, size = _words(payload, 3)
    kernel.params.append(Param(place & 0xFFFF, place >> 16, size))


def _on_max(kernel: Kernel, payload: bytes) -> None:
    x, y, z = _words(payload, 3)
    kernel.max_threads = x * y * z


def _on_reqntid(kernel: Kernel, payload: bytes) -> None:
    x, y, z = _words(payload, 3)
    kernel.reqntid = (x, y, z)


def _on_cluster(kernel: Kernel, payload: bytes) -> None:
    x, y, z = _words(payload, 3)
    kernel.cluster = (x, y, z)


_KERNEL_RECORDS: Final[dict[int, Callable[[Kernel, bytes], None]]] = {
    _PARAM_CBANK: _on_cbank,
    _KPARAM: _on_kparam,
    _KPARAM2: _on_kparam2,
    _MAX_THREADS: _on_max,
    _REQNTID: _on_reqntid,
    _CLUSTER: _on_cluster,
}
