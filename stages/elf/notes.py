"""The two notes: what the driver and the tools read about the tool that made the file, and its virtual SM."""

from __future__ import annotations

import struct

from ir_format.alignment import align_up
from ir_format.model import Header
from ir_format.typed import Final
from stages.elf.info import TOOLKIT
from stages.plumbing.runner import VERSION

OWNER: Final = b"NVIDIA Corp\0"  # the note's namespace: tools look these notes up by it
CUINFO: Final = 1000
TKINFO: Final = 2000

TOOL: Final = "orias"


def _note(kind: int, body: bytes) -> bytes:
    return struct.pack("<3I", len(OWNER), len(body), kind) + OWNER + body


def cuinfo(header: Header) -> bytes:
    """Note version 2, the SM of the PTX ``.target``, toolkit 13.0 (the generation of the layout)."""
    kind, _, number = header.ptx_target.partition("_")
    number = number[:-1] if number.endswith(("a", "f")) else number
    sm = int(number) if kind in ("sm", "compute") and number.isdecimal() and 2 <= len(number) <= 3 else 0
    return _note(CUINFO, struct.pack("<4H", 2, sm, TOOLKIT, 0))


def _options(header: Header) -> str:
    text = f"-arch {header.target} "
    level = header.options.get("opt-level")
    if isinstance(level, int) and level != 3:
        text = f"-O {level} {text}"
    if header.options.get("generate-line-info") == 1:  # not where they are written unasked
        text = f"-lineinfo {text}"
    return text


def tkinfo(header: Header) -> bytes:
    """Four string offsets (tool, version, build, options) and the strings: our own name and version."""
    strings = [TOOL, f"orias, an open ptxas, version {VERSION}", f"orias {VERSION}", _options(header)]
    table = bytearray(b"\0")
    offsets = []
    for s in strings:
        offsets.append(len(table))
        table += s.encode("ascii", "replace") + b"\0"
    table += bytes(align_up(len(table), 4) - len(table))
    return _note(TKINFO, struct.pack("<6I", 2, 0, *offsets) + bytes(table))
