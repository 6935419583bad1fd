"""Facts on the instructions of a stream, for schedulers that are written in other languages."""

from __future__ import annotations

from typing import BinaryIO, Final

from ir_format import wire
from ir_format.diag import CompileError, StreamError
from ir_format.hazards import Hazards, cell_name, file_of, hazards
from ir_format.model import PSEUDO, AttrValue, Inst

#: Prefix of every added attribute.
PREFIX: Final = "hz."


def annotated(stream: BinaryIO, strip: bool = False) -> bytes:
    """The stream with facts on every instruction, or with all of them removed. Raises StreamError for level `ptx` and
    for input that is no stream."""
    parts: list[bytes] = []
    writer = wire.Writer(parts.append)
    level = ""
    tables: Hazards | None = None
    for tag, data in wire.frames(stream):
        if tag == wire.MAGIC:
            header = wire.header_from_wire(wire.unpack(data))
            level = header.level
            if level not in ("ori", "allocated", "scheduled"):
                raise StreamError(
                    f"a stream of level {level} has no instructions to annotate: ori, allocated and scheduled have"
                )
            tables = hazards(header.target)
        if tag != "unit":
            writer.frame(tag, data)
            continue
        assert tables is not None
        unit = wire.unit_from_wire(wire.unpack(data), level)
        for f in unit.functions:
            for b in f.blocks:
                for i in b.insts:
                    _one(i, tables, level != "ori", strip)
        writer.record("unit", wire.unit_to_wire(unit))
    writer.end()
    return b"".join(parts)


def _one(i: Inst, tables: Hazards, physical: bool, strip: bool) -> None:
    attrs = {name: value for name, value in (i.attrs or {}).items() if not name.startswith(PREFIX)}
    if not strip and i.op not in PSEUDO:
        attrs.update(facts_of(i, tables, physical))
    i.attrs = attrs or None


def facts_of(i: Inst, tables: Hazards, physical: bool) -> dict[str, AttrValue]:
    """The attributes of one instruction: class, pipe, issue interval, estimated latency (cycles), scoreboards (`W`,
    `R`, `WR` or ''), least stall (0: drain); with physical registers also what it reads (register, role), writes
    (register, result column, group of later writer) and reads late. Roles, columns and groups are the names of rows
    and columns in ``distances`` of the JSON. ``hz.ready``: issue cycles after which every instruction may read its
    results without a scoreboard and overwrite its sources."""
    try:
        klass = tables.klass(i)
    except CompileError:
        return {}
    if not physical:
        pipe = tables.pipe(klass)
        return {
            "hz.class": klass, "hz.pipe": pipe.name, "hz.interval": pipe.interval, "hz.latency": pipe.latency,
            "hz.boards": tables.scoreboards(i),
            "hz.stall": tables.least_stall(i),
        }  # fmt: skip
    a = tables.access(i)
    far = [1]
    if not a.board_w:
        far += [tables.longest("w", file_of(cell), column + "@" * a.guarded) for cell, column, _ in a.writes]
    far += [
        tables.longest("r", file_of(cell), name) for cell, _, name in a.reads if not (a.board_r and a.late >> cell & 1)
    ]
    boards = ("W" if a.board_w else "") + ("R" if a.board_r else "")
    return {
        "hz.class": klass, "hz.pipe": a.pipe, "hz.interval": a.interval, "hz.latency": a.latency, "hz.boards": boards,
        "hz.stall": a.stall,
        "hz.reads": tuple((cell_name(cell), role) for cell, role, _ in a.reads),
        "hz.writes": tuple((cell_name(cell), column, group) for cell, column, group in a.writes),
        "hz.late": tuple(cell_name(cell) for cell in range(a.late.bit_length()) if a.late >> cell & 1),
        "hz.signals": int(a.signals), "hz.ready": max(far),
    }  # fmt: skip
