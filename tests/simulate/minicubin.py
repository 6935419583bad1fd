"""A minimal cubin around instructions given as IR objects, so that tests of the machine need neither an encoder nor an
NVIDIA tool.

Word i of the code is the number i; :func:`device` gives the simulator a decoder that returns instruction i.
"""

from __future__ import annotations

import struct

from ir_format.model import Imm, Inst, Mem, Name, Reg, cbank
from stages.simulate import Device

KERNEL = "k"


def elf(
    code: bytes,
    sm: int = 80,
    params: tuple[int, ...] = (8,),
    shared: int = 0,
    regs: int = 40,
    machine: int = 190,
    kind: int = 2,
) -> bytes:
    """A cubin with one kernel ``k`` whose parameters have the given byte sizes."""
    base = 0x160 if sm < 90 else 0x210 if sm < 100 else 0x380
    offsets, at = [], 0
    for size in params:
        at = -(-at // size) * size
        offsets.append(at)
        at += size
    info = b""
    for i in reversed(range(len(params))):
        info += struct.pack("<BBHIHHI", 4, 0x17, 12, 0, i, offsets[i], params[i] << 18 | 0x1F000)
    info += struct.pack("<BBHIHH", 4, 0x0A, 8, 3, base, at)
    strings = b"\0k\0"
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 0x12, 0x10, 6, 0, len(code))
    general = struct.pack("<BBHII", 4, 0x2F, 8, 1, regs)
    bodies = [
        ("", 0, b""), (".shstrtab", 3, b""), (".strtab", 3, strings), (".symtab", 2, symbols),
        (".nv.info", 0x70000000, general),
        (f".nv.info.{KERNEL}", 0x70000000, info), (f".text.{KERNEL}", 1, code), (f".nv.shared.{KERNEL}", 8, b""),
    ]  # fmt: skip
    names = b""
    starts = []
    for name, _, _ in bodies:
        starts.append(len(names))
        names += name.encode() + b"\0"
    bodies[1] = (".shstrtab", 3, names)
    out = bytearray(64)
    headers = b""
    for i, (name, type_, body) in enumerate(bodies):
        size = shared if name.startswith(".nv.shared") else len(body)
        link = 2 if name == ".symtab" else 0
        headers += struct.pack(
            "<IIQQQQIIQQ", starts[i], type_, 0, 0, len(out), size, link, 0, 16, 24 if type_ == 2 else 0
        )
        out += body
        out += bytes(-len(out) % 16)
    shoff = len(out)
    out += headers
    out[:64] = struct.pack(
        "<4sBBBBB7xHHIQQQIHHHHHH",
        b"\x7fELF",
        2,
        1,
        1,
        0x41,
        8,
        kind,
        machine,
        1,
        0,
        0,
        shoff,
        sm << 8 | 4,
        64,
        56,
        0,
        64,
        len(bodies),
        1,
    )
    return bytes(out)


def device(insts: list[Inst], sm: int = 80, params: tuple[int, ...] = (8,), shared: int = 0) -> Device:
    """A device whose kernel ``k`` is these instructions."""
    code = b"".join(i.to_bytes(16, "little") for i in range(len(insts)))

    def decode(word: int, address: int) -> Inst:
        if word >= len(insts):
            raise ValueError("no such word")
        return insts[word]

    return Device(elf(code, sm, params, shared), decode)


#: Code address of instruction i.
def at(i: int) -> Imm:
    """Branch target."""
    return Imm("I", 0x10_0000 + 16 * i)


def r(n: int, width: int = 1, flags: int = 0) -> Reg:
    """Rn."""
    return Reg("R", n, 0, width, flags)


def p(n: int, flags: int = 0) -> Reg:
    """Pn."""
    return Reg("P", n, 0, 1, flags)


def store(data: int, base: int = 2, offset: int = 0) -> Inst:
    """STG.E [R2.64 + offset], Rdata."""
    return Inst("STG", ("E",), (), (Mem("M", r(base, 2), None, offset), r(data)))


def prologue() -> list[Inst]:
    """R0 = tid.x, R2:R3 = first parameter + 4 * tid.x."""
    return [
        Inst("S2R", (), (r(0),), (Name("N", "SR_TID.X"),)),
        Inst("MOV", (), (r(4),), (Imm("I", 4),)),
        Inst("IMAD", ("WIDE",), (r(2, 2),), (r(0), r(4), cbank(0, 0x160, 2))),
    ]
