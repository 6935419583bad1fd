"""Scoreboards that instructions set but their classes do not need (:meth:`ir_format.hazards.Hazards.needless`)."""

from __future__ import annotations

from ir_format import isa
from ir_format.hazards import hazards
from stages.disasm.cubin import read_cubin
from stages.disasm.listing import decode_section


def check_bytes(data: bytes) -> list[str]:
    """The findings for a cubin. Raises CubinError or CompileError."""
    cubin = read_cubin(data)
    tables, spec = hazards(cubin.sm), isa.target(cubin.sm)
    out = []
    for section in cubin.sections:
        for item in decode_section(section, spec):
            why = tables.needless(item.inst) if item.inst is not None else ""
            if why:
                out.append(f"{section.name.removeprefix('.text.')}: board: {item.pc:#06x} {item.text}: {why}")
    return out
