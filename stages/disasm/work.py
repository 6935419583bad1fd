"""What the command line does, on bytes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from ir_format.diag import StreamError
from stages.disasm.cubin import Cubin, CubinError, patch_cubin, read_cubin

if TYPE_CHECKING:
    from ir_format.model import Header, Unit


def run(
    path: Path,
    hex_words: bool,
    as_json: bool,
    ori: bool,
    patch: Path | None,
    exact: bool = False,
    allocated: bool = False,
) -> bytes:
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

    if as_json:
        return json_cubin(cubin).encode()
    return "".join(print_cubin(cubin, hex_words, exact)).encode()


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
