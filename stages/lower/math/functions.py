"""Functions for arithmetic that SASS has no instruction for: their PTX text (package `library` here), parsed.

No stage imports another, so the parsed functions are kept next to the text, as `ptx` level records in one file.
`python -m tests.math.parsed_library` makes this file, and a test compares it with the text.
"""

from __future__ import annotations

import os
from functools import cache

import msgpack

from ir_format import ptx_wire
from ir_format.ptx import PtxFunction
from ir_format.typed import cast

PARSED = "functions.msgpack"  # name of a function -> the packed `unit` record that holds it


@cache
def _records() -> dict[str, bytes]:
    # importlib.resources would import thirty modules for this: 10 of the 270 ms of a small kernel.
    with open(os.path.join(os.path.dirname(__file__), "library", PARSED), "rb") as f:
        return cast("dict[str, bytes]", msgpack.unpackb(f.read()))


@cache
def load_helper(name: str) -> PtxFunction:
    """The PTX function ``name``; RuntimeError if the library has none (a fault of ours)."""
    record = _records().get(name)
    if record is None:
        raise RuntimeError(f"no library function '{name}'")
    unit = ptx_wire.unit_from_wire(msgpack.unpackb(record))
    return next(f for f in unit.functions if f.name == name)
