"""The rows of the ISA spec, a text per family of instructions; the language is that of :mod:`ir_format.isa.rowlang`."""

from __future__ import annotations

from ir_format.isa.rows import (
    bulk,
    control,
    convert,
    floating,
    half,
    integer,
    memory,
    newer,
    pseudo,
    tables,
    tensor,
    tensor_memory,
    texture,
    uniform,
    warpgroup,
)

#: Order matters only for tables and macros, which come first.
TEXTS = (
    tables.TEXT, pseudo.TEXT, integer.TEXT, floating.TEXT, half.TEXT, convert.TEXT, memory.TEXT, newer.TEXT,
    control.TEXT, uniform.TEXT, tensor.TEXT, tensor_memory.TEXT, texture.TEXT, bulk.TEXT, warpgroup.TEXT,
)  # fmt: skip
