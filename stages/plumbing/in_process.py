"""Several stages in one process: each unit passes through all of them before the next unit is read, and only the last
stage's result is written.

The result is the same as that of processes joined by pipes. :func:`ir_format.unit_copy.copy_unit` replaces the bytes
between two stages. If a stage raises, its unit runs again through the bytes, so that the fault, the stage and the file
to report are the same as in a pipe.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

from ir_format import wire
from ir_format.diag import StreamError
from ir_format.typed import Any, BinaryIO
from ir_format.unit_copy import copy_unit
from stages.plumbing.runner import (
    BROKEN,
    VERSION,
    Context,
    Flags,
    Pass,
    Stage,
    as_tuples,
    broken,
    failed,
    read_module,
    read_unit,
    run_stage,
    run_unit,
    select,
)


def run_in_process(stages: Sequence[Stage], inp: BinaryIO, out: BinaryIO, note: Callable[[str], object]) -> int:
    """Run consecutive stages of the chain over a stream, without flags. ``note`` is called with the name of each stage
    before it runs. The exit codes are those of :func:`stages.plumbing.runner.run_stage`."""
    first = stages[0]
    rows: list[tuple[Stage, list[Pass], Context]] = []
    code = 0
    raw_header: Any = None
    raw_module: Any = None
    try:
        writer = wire.Writer(out.write, out.flush)
        for tag, body in wire.records(inp, raw_lists=first.reads == "ptx"):
            if tag == wire.MAGIC:
                raw_header = body
            elif tag == "module":
                raw_module = body
                rows, header, module = _contexts(stages, raw_header, raw_module)
                writer.record(wire.MAGIC, header)
                writer.record("module", module)
            elif not rows:
                raise StreamError("ori stream: a unit before the module record")
            else:
                try:
                    unit = read_unit(first, body)
                    for at, (stage, passes, ctx) in enumerate(rows):
                        note(stage.name)
                        unit = run_unit(stage, passes, copy_unit(unit) if at else unit, ctx)
                    code = code or int(failed(unit))
                    record = wire.unit_to_wire(unit)
                except Exception:
                    bad, data = _through_bytes(stages, raw_header, raw_module, body, note)
                    if bad > 1 or not data:
                        return bad or 1
                    code = code or bad
                    writer.frame("unit", data)
                else:
                    writer.record("unit", record)
        writer.end()
    except BROKEN as e:
        return broken(first.name, e, inp)
    return code


def _contexts(
    stages: Sequence[Stage], raw_header: Any, raw_module: Any
) -> tuple[list[tuple[Stage, list[Pass], Context]], Any, Any]:
    """The passes and the context of each stage, and the header and module records after the last stage."""
    first = stages[0]
    header = wire.header_from_wire(as_tuples(raw_header))
    if header.level != first.reads:
        raise StreamError(f"stage {first.name} reads level '{first.reads}', this stream is at level '{header.level}'")
    module = read_module(first, raw_module)
    rows: list[tuple[Stage, list[Pass], Context]] = []
    for stage in stages:
        header = wire.header_from_wire(_written(wire.MAGIC, wire.header_to_wire(header)))
        header.level = stage.writes
        header.producers.append((stage.name, VERSION))
        ctx = Context(header, module, Flags(quiet=True))
        rows.append((stage, select(stage, stage.passes(), ctx), ctx))
        if stage.module is not None:
            module = wire.module_from_wire(_written("module", wire.module_to_wire(stage.module()(module, header))))
    return rows, wire.header_to_wire(header), wire.module_to_wire(module)


def _written(tag: str, body: Any) -> Any:
    """The body of a record after writing and reading it."""
    parts: list[bytes] = []
    wire.Writer(parts.append).record(tag, body)
    return wire.unpack(b"".join(parts))


def _through_bytes(
    stages: Sequence[Stage], header: Any, module: Any, unit: Any, note: Callable[[str], object]
) -> tuple[int, bytes]:
    """Run one unit with bytes between all stages: (exit code, its record, which is empty if a stage failed)."""
    feed = io.BytesIO()
    w = wire.Writer(feed.write)
    w.record(wire.MAGIC, header)
    w.record("module", module)
    w.record("unit", unit)
    w.end()
    code = 0
    for stage in stages:
        note(stage.name)
        out = io.BytesIO()
        feed.seek(0)
        bad = run_stage(stage, feed, out, Flags(quiet=True), trusted=True)
        if bad > 1:
            return bad, b""
        code = code or bad
        feed = out
    feed.seek(0)
    return code, next((data for tag, data in wire.frames(feed) if tag == "unit"), b"")
