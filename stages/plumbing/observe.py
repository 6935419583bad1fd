"""What is seen of a unit while the passes run: times and sizes, remarks, pictures.

A stream whose header has the option ``observe`` (:data:`PASSES`, :data:`REMARKS`, :data:`PICTURES`, joined by commas)
carries what was seen in the section ``watch`` of each unit, so that it also comes through pipes and other processes.
Without the option nothing of this module is imported. :func:`taken` reads it back and removes it.
"""

from __future__ import annotations

import re
import resource
import time

from ir_format import wire
from ir_format.model import AttrValue, Unit
from ir_format.record import NamedTuple, Record, fresh
from ir_format.typed import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from stages.plumbing.runner import Context

PASSES: Final = "passes"
REMARKS: Final = "remarks"
PICTURES: Final = "pictures"
SECTION: Final = "watch"
_PAGE_KIB: Final = resource.getpagesize() >> 10
_REGISTER: Final = re.compile(r"\b(r|ur|p|up|b)(\d+)\b")


class PassRow(NamedTuple):
    """One pass over one unit, or a whole stage (``name`` is '' then). ``begin`` and ``spent`` in nanoseconds of the
    machine's monotonic clock; ``before`` and ``after``: instructions; ``memory``: KiB by which the process grew;
    ``peak``: the most KiB that it had until then."""

    stage: str
    name: str
    begin: int
    spent: int
    before: int
    after: int
    rewrites: int
    memory: int
    peak: int


class Remark(NamedTuple):
    """What a pass says of a decision. ``kind``: passed, missed or analysis; ``name``: of the reason, as LLVM's;
    ``value``: the PTX register that it is about, '' for none, '?' for what the PTX of the line makes; ``line``: of the
    PTX."""

    kind: str
    pass_name: str
    name: str
    function: str
    line: int
    message: str
    value: str = ""


class Picture(NamedTuple):
    """The unit's text after a pass; ``name`` is '' after a whole stage."""

    stage: str
    name: str
    text: str


class Seen(Record):
    """What was seen of one unit."""

    unit: str
    passes: list[PassRow] = fresh(default_factory=list)
    remarks: list[Remark] = fresh(default_factory=list)
    pictures: list[Picture] = fresh(default_factory=list)


def resident() -> int:
    """KiB of memory that this process holds; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as f:
            return int(f.read().split()[1]) * _PAGE_KIB
    except (OSError, ValueError, IndexError):
        return 0


def instructions(unit: Unit) -> int:
    """Instructions of a unit; those of its code where it is encoded."""
    return sum([len(c.data) >> 4 for c in unit.code]) or sum([len(b.insts) for f in unit.functions for b in f.blocks])


class Watch:
    """Looks at one unit in one stage."""

    def __init__(self, stage: str, ctx: Context, unit: Unit) -> None:
        wanted = str(ctx.header.options["observe"]).split(",")
        self.stage = stage
        self.ctx = ctx
        self.times = PASSES in wanted
        self.pictures: list[Picture] | None = [] if PICTURES in wanted else None
        self.last = ""
        self.rows: list[PassRow] = []
        ctx.remarks = [] if REMARKS in wanted else None
        self.given = unit.sections.pop(SECTION, ())
        self.whole = self.now = self._mark(unit)

    def _mark(self, unit: Unit) -> tuple[int, int, int, int]:
        return time.perf_counter_ns(), instructions(unit), self.ctx.rewrites, resident()

    def _row(self, name: str, since: tuple[int, int, int, int], now: tuple[int, int, int, int]) -> None:
        begin, before, rewrites, memory = since
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        spent, done, grown = now[0] - begin, now[2] - rewrites, max(0, now[3] - memory)
        self.rows.append(PassRow(self.stage, name, begin, spent, before, now[1], done, grown, peak))

    def started(self, unit: Unit) -> None:
        """The first pass is about to run."""
        self.now = self._mark(unit)
        if self.pictures is not None:
            self.last = picture(unit, self.ctx)

    def ran(self, name: str, unit: Unit) -> None:
        """A pass has run."""
        now = self._mark(unit)
        if self.times:
            self._row(name, self.now, now)
        self._paint(name, unit)
        self.now = self._mark(unit) if self.pictures is not None else now

    def _paint(self, name: str, unit: Unit) -> None:
        if self.pictures is None:
            return
        text = picture(unit, self.ctx)
        if text != self.last or not name:
            self.pictures.append(Picture(self.stage, name, text))
            self.last = text

    def end(self, unit: Unit) -> None:
        """The stage is done with the unit, which takes along what was seen."""
        if self.times:
            self._row("", self.whole, self._mark(unit))
        if not unit.code:
            self._paint("", unit)
        seen: list[AttrValue] = [*self.given] if isinstance(self.given, tuple) else []
        seen += [("pass", *row) for row in self.rows]
        seen += [("remark", *r) for r in dict.fromkeys(self.ctx.remarks or ())]
        seen += [("picture", *p) for p in self.pictures or ()]
        self.ctx.remarks = None
        unit.sections[SECTION] = tuple(seen)


def picture(unit: Unit, ctx: Context | None) -> str:
    """The unit's text, in SSA form with the registers that its values become, so that texts can be compared."""
    from ir_format.text import print_inst

    known = getattr(ctx.kept.get("optimize"), "of", {}) if ctx is not None else {}
    out: list[str] = []
    for f in unit.functions:
        webs = getattr(known.get(id(f)), "webs", None)
        out.append(f"function {f.name}")
        vregs = None if f.regs else f.vregs
        for b in f.blocks:
            out.append(f".L{b.id}:" + (f" // loop depth {b.depth}" if b.depth else ""))
            lines = ["  " + print_inst(i, vregs) for i in b.insts]
            if webs is not None:
                lines = [_named(line, webs) for line in lines]
            out += lines
    return "\n".join(out)


def _named(line: str, webs: Any) -> str:
    def register(m: re.Match[str]) -> str:
        return f"{m[1]}{webs.of(int(m[2]))}"

    return _REGISTER.sub(register, line)


def taken(data: bytes) -> tuple[bytes, list[Seen]]:
    """A stream without what was seen of its units, and that."""
    import io

    parts: list[bytes] = []
    writer = wire.Writer(parts.append)
    seen: list[Seen] = []
    level = ""
    for tag, body in wire.records(io.BytesIO(data)):
        if tag == wire.MAGIC:
            header = wire.header_from_wire(body)
            level = header.level
            header.options.pop("observe", None)
            writer.record(tag, wire.header_to_wire(header))
        elif tag == "unit" and level != "ptx":
            unit = wire.unit_from_wire(body, level)
            seen.append(read(unit.name, unit.sections.pop(SECTION, ())))
            writer.record(tag, wire.unit_to_wire(unit))
        else:
            writer.record(tag, body)
    writer.end()
    return b"".join(parts), seen


def read(name: str, section: AttrValue) -> Seen:
    """The section of a unit. What is of another form, as another program may write it, is left out."""
    out = Seen(name)
    for row in section if isinstance(section, tuple) else ():
        kind, rest = (row[0], row[1:]) if isinstance(row, tuple) and row else ("", ())
        if kind == "pass" and len(rest) == len(PassRow._fields):
            out.passes.append(PassRow(*rest))  # type: ignore[arg-type]
        elif kind == "remark" and len(rest) == len(Remark._fields):
            out.remarks.append(Remark(*rest))  # type: ignore[arg-type]
        elif kind == "picture" and len(rest) == len(Picture._fields):
            out.pictures.append(Picture(*rest))  # type: ignore[arg-type]
    return out
