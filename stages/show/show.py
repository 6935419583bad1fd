"""Read streams and print them."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from ir_format import wire
from ir_format.diag import StreamError
from ir_format.model import Header, Unit
from ir_format.ptx import PtxInst, PtxUnit
from ir_format.text import print_unit


def load(path: str) -> tuple[Header, list[Unit], str, list[str]]:
    """(header, units, PTX text, its instructions by the lines of the source). At level `ptx` the units are empty and
    the text is PTX printed back; else the text is empty."""
    try:
        with sys.stdin.buffer if path == "-" else open(path, "rb") as stream:
            return _load(path, list(wire.frames(stream)))
    except StreamError as e:
        raise StreamError(str(e) if str(e).startswith(f"'{path}'") else f"'{path}': {e}") from None


def _load(path: str, frames: list[tuple[str, bytes]]) -> tuple[Header, list[Unit], str, list[str]]:
    header = wire.header_from_wire(wire.unpack(frames[0][1]))
    if header.level == "ptx":
        from ir_format import ptx_wire
        from stages.parse.printer import print_module

        module = None
        units = []
        for tag, data in frames[1:]:
            body = wire.unpack(data, raw_lists=True)
            if tag == "module":
                module = ptx_wire.module_from_wire(body)
            else:
                units.append(ptx_wire.unit_from_wire(body))
        if module is None:
            raise StreamError(f"'{path}': ori stream: no module record")
        try:
            return header, [], print_module(module, units), _by_line(units)
        except (
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
        ) as e:  # types, spaces and forms are looked up by name, and a forged stream may have unknown names
            raise StreamError(f"'{path}': a unit that is no PTX ({type(e).__name__}: {e})") from None
    return header, [wire.unit_from_wire(wire.unpack(d), header.level) for tag, d in frames if tag == "unit"], "", []


def _by_line(units: list[PtxUnit]) -> list[str]:
    """The instructions, labels and names of functions, each at the line of the source that it is of."""
    from stages.parse.printer import print_instruction

    found: dict[int, list[str]] = {}
    for f in {f.name: f for u in units for f in u.functions}.values():
        found.setdefault(f.line, []).append(f"{'.entry' if f.entry else '.func'} {f.name}")
        for item in f.body:
            if isinstance(item, PtxInst):
                found.setdefault(item.line, []).append(print_instruction(f, item))
    return ["  ".join(found.get(n, ())) for n in range(1, max(found, default=0) + 1)]


def show(paths: list[str], form: str, only: str) -> Iterator[str]:
    """The parts of the output."""
    from stages.show.graph import Stream, dot, view

    ptx: list[str] = []  # by line of the source
    streams: list[Stream] = []
    for path in paths:
        header, units, text, lines = load(path)
        if text:
            if form == "text":
                yield text
            elif form == "dot" and len(paths) == 1:
                raise StreamError(f"'{path}' is at level ptx: it has no graph")
            ptx = ptx or lines
            continue
        picked = [u for u in units if not only or u.name == only]
        if only and not picked:
            raise StreamError(f"'{path}' has no unit '{only}'; it has {', '.join(u.name for u in units)}")
        if form == "text":
            made = " ".join(f"{s}-{v}" for s, v in header.producers)
            yield f"// {header.source} for {header.target}, level {header.level}, by {made}\n"
            yield from (print_unit(u, header.level) for u in picked)
        streams.append((header, picked))
    if form == "dot":
        yield from (dot(u, header.level, ptx) for header, units in streams for u in units)
    elif form == "html":
        yield view(ptx, streams)
