"""Library functions: the PTX text of :mod:`stages.lower.math.library`, parsed.

No stage imports another, so the parsed functions are kept beside the text, as `ptx` level records in one file.
`python -m tests.math.parsed_library` makes this file, and a test compares it with the text.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import cast

import msgpack

from ir_format import ptx_wire
from ir_format.ptx import PtxFunction

PARSED = "functions.msgpack"  # name of a function -> the packed `unit` record that holds it


@cache
def _records() -> dict[str, bytes]:
    from stages.lower.math import library

    return cast("dict[str, bytes]", msgpack.unpackb(files(library).joinpath(PARSED).read_bytes()))


@cache
def load_helper(name: str) -> PtxFunction:
    """The PTX function ``name``; RuntimeError if the library has none (a fault of ours)."""
    record = _records().get(name)
    if record is None:
        raise RuntimeError(f"no library function '{name}'")
    unit = ptx_wire.unit_from_wire(msgpack.unpackb(record))
    return next(f for f in unit.functions if f.name == name)
