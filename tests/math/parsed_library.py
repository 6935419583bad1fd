"""Parse the math library's PTX text into the file that the lower stage reads: `python -m tests.math.parsed_library`."""

from __future__ import annotations

from pathlib import Path

import msgpack

from ir_format import ptx_wire
from stages.lower.math import functions, library
from stages.parse import parse_text


def parsed(target: str = "compute_75") -> bytes:
    """The records of all functions, packed; ``target`` only decides whether they parse."""
    records = {}
    for name in library.FUNCTIONS:
        _, units, diags = parse_text(library.module_text(name), f"{name}.ptx", target, separate=True)
        assert not diags, diags
        unit = next(u for u in units if any(f.name == name for f in u.functions))
        records[name] = msgpack.packb(ptx_wire.unit_to_wire(unit))
    return bytes(msgpack.packb(records))


if __name__ == "__main__":
    Path(library.__file__).with_name(functions.PARSED).write_bytes(parsed())
