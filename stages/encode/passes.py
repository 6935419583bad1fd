"""The passes of the encode stage."""

from __future__ import annotations

from ir_format.model import Unit
from stages.plumbing.runner import Context, Pass


def _encode(unit: Unit, ctx: Context) -> None:
    from stages.encode.encode import encode_unit

    encode_unit(unit, ctx.header)


PASSES = (Pass("encode", _encode, required=True),)
