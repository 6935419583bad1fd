"""The text form back into a stream."""

from __future__ import annotations

import re
from typing import Final

from ir_format import wire
from ir_format.diag import CompileError, StreamError
from ir_format.model import Header, Module, Unit
from ir_format.text import parse_unit
from ir_format.verify import verify_unit

#: The first line that `orias-show` prints for a stream.
_TITLE: Final = re.compile(r"// (?P<source>.*) for (?P<target>sm_\w+), level (?P<level>\w+), by (?P<by>.*)")


def from_text(text: str, like: bytes | None = None) -> bytes:
    """A stream of the units in a text. ``like``: a stream whose header and module record are copied; without it the
    title line gives target and level, and the module has only its units. Raises StreamError."""
    units: list[Unit] = []
    level = ""
    for part in re.split(r'^(?=unit ")', text, flags=re.MULTILINE)[1:]:
        unit, level = parse_unit(part)
        units.append(unit)
    if not units:
        raise StreamError("ori text: no unit")
    header, module = _around(text, like, units)
    header.level = level
    for unit in units:
        try:
            verify_unit(unit, level, header.target)
        except CompileError as e:
            raise StreamError(f"unit {unit.name}: {e.message}") from None
    return wire.stream_of(header, module, units)


def _around(text: str, like: bytes | None, units: list[Unit]) -> tuple[Header, Module]:
    """Header and module record."""
    if like is not None:
        import io

        records = dict(r for r in wire.frames(io.BytesIO(like)) if r[0] != "unit")
        header = wire.header_from_wire(wire.unpack(records[wire.MAGIC]))
        if header.level == "ptx":
            raise StreamError("a stream of level ptx can't be used for another level")
        return header, wire.module_from_wire(wire.unpack(records["module"]))
    title = _TITLE.search(text)
    if title is None:
        raise StreamError("ori text: neither a title line nor --like gives the target")
    header = Header(title["level"], title["target"], title["source"])
    made = [made.partition("-") for made in title["by"].split()]
    header.producers = [(name, version) for name, _, version in made]
    module = Module()
    module.units = [u.name for u in units]
    return header, module
