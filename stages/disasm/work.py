"""The actions of the command line, on bytes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from ir_format.diag import StreamError
from ir_format.record import Record
from stages.disasm.cubin import Cubin, CubinError, patch_cubin, read_cubin

if TYPE_CHECKING:
    from ir_format.model import Header, Unit


class View(Record, frozen=True):
    """The form of a listing. ``lines``: source, inline or ptx; ``life``: count, wide or narrow; ``graph``: hyperblocks
    or blocks, instead of the listing; ``functions``: a comma list of the functions to show."""

    hex_words: bool = False
    exact: bool = False
    lines: str = ""
    life: str = ""
    graph: str = ""
    separate: bool = False
    functions: str = ""


def run(path: Path, view: View, as_json: bool, ori: bool, patch: Path | None, allocated: bool = False) -> bytes:
    """The output for one cubin. Raises OriasError."""
    from ir_format.isa.rowlang import SMS

    cubin = read_cubin(path.read_bytes())
    if cubin.sm not in SMS:
        raise CubinError(f"no instruction set for sm_{cubin.sm}")
    if patch is not None:
        return patch_cubin(cubin, _new_code(patch.read_bytes(), cubin))
    if ori or allocated:
        return stream(cubin, path.name, allocated)
    from stages.disasm.listing import json_cubin, print_cubin

    if view.functions:
        cubin = chosen(cubin, view.functions)
    if as_json:
        return json_cubin(cubin).encode()
    if view.graph:
        from stages.disasm.flow_graph import flow_graph

        return "".join(flow_graph(cubin, view.graph == "blocks")).encode()
    if view.life:
        from stages.disasm.life_table import print_lives

        return "".join(print_lives(cubin, view.life, view.separate)).encode()
    return "".join(print_cubin(cubin, view.hex_words, view.exact, view.lines, view.separate)).encode()


def chosen(cubin: Cubin, functions: str) -> Cubin:
    """The cubin with only the code sections of some functions. A function is named, or numbered as a symbol. Raises
    CubinError."""
    wanted: set[int] = set()
    for word in functions.split(","):
        found = {s.section for n, s in enumerate(cubin.symbols) if word in (str(n), s.name)}
        found &= {s.number for s in cubin.sections}
        if not found:
            known = ", ".join(f"{n} {s.name}" for n, s in enumerate(cubin.symbols) if s.kind == "FUNC")
            raise CubinError(f"no function '{word}'; there are {known or 'none'}")
        wanted |= found
    sections = tuple([s for s in cubin.sections if s.number in wanted])
    return cubin._replace(sections=sections, noted=tuple([n for n in cubin.noted if n in wanted]))


def stream(cubin: Cubin, source: str, allocated: bool = False) -> bytes:
    """The lifted cubin as an Ori stream; ``allocated``: for `schedule` to read."""
    from ir_format import wire
    from stages.disasm.lift import lift, unscheduled

    header, module, units = lift(cubin, source)
    if allocated:
        unscheduled(header, units)
    header.producers.append(("disasm", "0.1.0"))
    return wire.stream_of(header, module, units)


def _new_code(data: bytes, cubin: Cubin) -> dict[str, bytes]:
    from stages.disasm.assemble import assemble
    from stages.disasm.lift import relowered

    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        header, units = _read_stream(data)
        return relowered(units, header)
    if text.isprintable() or ".section" in text:
        return assemble(text, cubin)
    header, units = _read_stream(data)
    return relowered(units, header)


def _read_stream(data: bytes) -> tuple[Header, list[Unit]]:
    from ir_format import wire

    header: Header | None = None
    units: list[Unit] = []
    for tag, body in wire.records(io.BytesIO(data)):
        if tag == wire.MAGIC:
            header = wire.header_from_wire(body)
            if header.level != "scheduled":
                raise StreamError(f"the stream is at level {header.level}, not scheduled")
        elif tag == "unit" and header is not None:
            units.append(wire.unit_from_wire(body, header.level))
    if header is None:
        raise StreamError("the stream has no header")
    return header, units
