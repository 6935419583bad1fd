"""Judging saved streams: rules of their level, reads of undefined words, allocation against the stream it came from,
schedule and convergence of the resulting code."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from ir_format import isa, wire
from ir_format.diag import CompileError, OriasError, StreamError
from ir_format.model import PSEUDO, Header, Unit
from stages.check.files import read

#: Warp-wide instructions that the allocation stage adds or removes after the allocator proper (stages/regalloc:
#: warpgroup, counts): no values move there.
_NO_VALUES: Final = {"WARPGROUP": ("ARRIVE", "DEPBAR"), "USETMAXREG": ()}
_SHOWN: Final = 20


class Stream:
    """A saved stream: its header and its units."""

    def __init__(self, data: bytes) -> None:
        """Raises StreamError for input that is no stream or is damaged."""
        frames = list(wire.frames(io.BytesIO(data)))
        self.data = data
        self.header: Header = wire.header_from_wire(wire.unpack(frames[0][1]))
        self._modules = [body for tag, body in frames if tag == "module"]
        self._units = [body for tag, body in frames if tag == "unit"]

    @property
    def module(self) -> bytes:
        """The module record."""
        return self._modules[0] if self._modules else b""

    def units(self) -> Iterator[Unit]:
        """The units, read one by one; none at level `ptx`."""
        for body in self._units if self.header.level != "ptx" else ():
            yield wire.unit_from_wire(wire.unpack(body), self.header.level)

    def read_ptx(self) -> int:
        """Read all records of level `ptx`; how many units there are. Raises StreamError."""
        from ir_format import ptx_wire

        if len(self._modules) != 1:
            raise StreamError("ori stream: one module record is wanted")
        ptx_wire.module_from_wire(wire.unpack(self._modules[0], raw_lists=True))
        for body in self._units:
            ptx_wire.unit_from_wire(wire.unpack(body, raw_lists=True))
        return len(self._units)


def is_stream(data: bytes) -> bool:
    """Whether a file begins like a stream (a damaged one too)."""
    return data[:1] != b"\x7f" and wire.MAGIC.encode() in data[:64]


def _lines(e: CompileError) -> str:
    return f"line {e.line}: {e.message}" if e.line else e.message


def verify(stream: Stream) -> Iterator[str]:
    """Violations of the level's rules (:mod:`ir_format.verify`), the first of each unit."""
    from ir_format.verify import verify_unit

    for unit in stream.units():
        failed = [m for severity, m, _ in unit.diags if severity in ("error", "fatal")]
        if failed:
            yield f"{unit.name}: rejected by a stage: {failed[0]}"
            continue
        try:
            verify_unit(unit, stream.header.level, stream.header.target)
        except CompileError as e:
            yield f"{unit.name}: {_lines(e)}"


def _comparable(unit: Unit, spec: isa.Target) -> Unit:
    """The unit with every operand slot filled and without instructions of :data:`_NO_VALUES`: the stage fills slots
    after the allocator has run."""
    for func in unit.functions:
        for block in func.blocks:
            block.insts = [
                i
                for i in block.insts
                if i.op not in _NO_VALUES or (_NO_VALUES[i.op] and not set(_NO_VALUES[i.op]) & set(i.mods))
            ]
            for i in block.insts:
                if i.op not in PSEUDO and spec.match(i) is None:
                    i.dsts, i.srcs = spec.complete(i.op, i.mods, i.dsts, i.srcs)
    return unit


def allocation(before: Stream, after: Stream) -> Iterator[str]:
    """Findings of the allocation checker. Raises StreamError if the two are not an input and an output of
    regalloc."""
    from stages.regalloc.checker.checker import check_allocation

    if before.header.level != "ori" or after.header.level != "allocated":
        raise StreamError(
            "streams are compared at levels 'ori' and 'ori' (optimize), 'ori' and 'allocated' (regalloc), "
            "'allocated' and 'scheduled' (schedule) or 'scheduled' and "
            f"'encoded' (encode), not '{before.header.level}' and '{after.header.level}'"
        )
    spec = isa.target(after.header.target)
    old = {u.name: u for u in before.units()}
    new = {u.name: u for u in after.units()}
    for name in (*old, *[n for n in new if n not in old]):
        if name not in old or name not in new:
            yield f"{name}: is in only one of the streams"
        elif old[name].functions and new[name].functions:
            try:
                found = check_allocation(_comparable(old[name], spec), _comparable(new[name], spec))
            except CompileError as e:
                yield f"{name}: {_lines(e)}"
            else:
                yield from (f"{name}: {f.render()}" for f in found)


def order(before: Stream, after: Stream) -> Iterator[str]:
    """How the order of a scheduled stream changes what the allocated one computes
    (:mod:`stages.check.order_checker`)."""
    from stages.check.order_checker import check_order

    old = {u.name: u for u in before.units()}
    for unit in after.units():
        first = old.pop(unit.name, None)
        if first is None:
            yield f"{unit.name}: is in only one of the streams"
        else:
            yield from (_in_unit(unit, text) for text in check_order(first, unit))
    yield from (f"{name}: is in only one of the streams" for name in old)


def encoding(before: Stream, after: Stream) -> Iterator[str]:
    """Words of an encoded stream that differ from the instructions of the scheduled one
    (:mod:`stages.check.coding`)."""
    from stages.check.coding import encoding as compare

    old = {u.name: u for u in before.units()}
    for unit in after.units():
        if unit.name in old:
            yield from (_in_unit(unit, text) for text in compare(old[unit.name], unit, after.header.target))


def _in_unit(unit: Unit, finding: str) -> str:
    """A finding that begins with a function's name, with the unit's in front unless it is the same."""
    return finding if finding.startswith(f"{unit.name}:") else f"{unit.name}: {finding}"


def undefined(stream: Stream) -> Iterator[str]:
    """Effects that depend on words that nothing defines, at level `ori`."""
    from stages.check.undefined import surely_undefined

    for unit in stream.units() if stream.header.level == "ori" else ():
        yield from (_in_unit(unit, str(x)) for x in surely_undefined(unit))


def newly_undefined(before: Stream, after: Stream, doubts: bool = False) -> Iterator[str]:
    """Effects that depend on undefined words but do not in the stream that `optimize` read (``doubts``: undecided
    cases). Both are of level `ori`."""
    from stages.check.undefined import newly_undefined as compare

    old = {u.name: u for u in before.units()}
    for unit in after.units():
        if unit.name not in old:
            if not doubts:
                yield f"{unit.name}: is in only one of the streams"
        else:
            yield from (_in_unit(unit, str(x)) for x in compare(old.pop(unit.name), unit, doubts))
    yield from (f"{name}: is in only one of the streams" for name in old if not doubts)


def check_stream(file: Path, data: bytes, before: Path | None) -> int:
    """Judge a stream; prints findings. 1 for findings, 2 if something could not be judged."""
    found: list[str] = []
    unjudged: list[str] = []
    report: Any = None
    meeting: Any = None
    try:
        stream = Stream(data)
        level = stream.header.level
        count = stream.read_ptx() if level == "ptx" else len(list(stream.units()))
        found += verify(stream)
        if before is not None:
            first = Stream(read(before))
            if first.header.level == level == "ori":
                found += newly_undefined(first, stream)
                unjudged += newly_undefined(first, stream, True)
            elif (first.header.level, level) == ("allocated", "scheduled"):
                found += order(first, stream)
            elif (first.header.level, level) == ("scheduled", "encoded"):
                found += encoding(first, stream)
            else:
                found += allocation(first, stream)
        elif not found:
            found += undefined(stream)
        if level in ("scheduled", "encoded") and not found:
            from orchestrator.api import finish
            from stages.check import convergence_checker
            from stages.check.schedule_checker import check_bytes
            from stages.plumbing.chain import ENCODE

            cubin = finish(data, (ENCODE,) if level == "scheduled" else ())
            report = check_bytes(cubin)
            meeting = convergence_checker.check_bytes(cubin)
            found += [str(f) for f in (*report.findings, *meeting.findings, *meeting.notes)]
    except OSError as e:
        sys.stderr.write(f"orias-check: {e.filename}: {e.strerror}\n")
        return 2
    except OriasError as e:
        sys.stderr.write(f"orias-check: {file}: {e}\n")
        return 2
    for text in found[:_SHOWN]:
        print(text)
    if len(found) > _SHOWN:
        print(f"... {len(found) - _SHOWN} more")
    unjudged += [*report.unjudged, *meeting.unjudged] if report else []
    for text in unjudged:
        print(f"not judged: {text}")
    print(
        f"{len(found)} findings, {count} units at level {level}"
        + (f", {report.instructions} instructions" if report else "")
    )
    return 1 if found else 2 if unjudged else 0
