"""The chain from PTX or a saved stream, with its optional parts enabled one after another.

The parts, in the order in which they run: the user's commands that replace our stages, the optional passes of each
stage, the greedy allocator instead of the naive one, control words from the tables instead of serial ones, the
scheduler's order and reuse hints. Without any of them the chain is as plain as it can be. Everything runs in processes
that may crash or hang (:mod:`stages.bisect.attempt`). Results are kept, stage by stage."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from copy import copy
from hashlib import sha256
from typing import Any, Final

from ir_format import wire
from ir_format.diag import StreamError
from ir_format.model import AttrValue, Header, Unit
from ir_format.record import Record, fresh
from stages.bisect.attempt import Failure, Note, Refused, attempt
from stages.plumbing.back_end import elf_from_stream
from stages.plumbing.chain import NAMES, next_stage, stage
from stages.plumbing.front_end import parse_to_stream
from stages.plumbing.runner import (
    VERSION,
    Context,
    Flags,
    Pass,
    Stage,
    failed,
    read_module,
    read_unit,
    run_unit,
    select,
)

_ALLOCATE: Final = "allocate"
_CONTROL: Final = "control"
#: Required passes left out of the chain in a run, which no flag can do.
Bypass = tuple[str, str]


class Part(Record, frozen=True):
    """An optional part. ``counted``: it counts its rewrites, so --limit applies inside it; ``command``: it is a whole
    stage, the user's."""

    stage: str
    name: str
    counted: bool
    command: bool = False

    def __str__(self) -> str:
        return f"{self.stage}: {self.name}"


class Setting(Record):
    """How a chain is run: flags by stage; which foreign stages are used; required passes left out (no flag of
    `orias` does that)."""

    flags: dict[str, Flags]
    foreign: dict[str, str] = fresh(default_factory=dict)
    bypass: tuple[Bypass, ...] = ()


#: The result of a stage: the stream, the rewrites, the statistics.
Ran = tuple[bytes, dict[tuple[str, str, str], tuple[int, int]], dict[str, int]]


class Made(Record):
    """The result of a run: the stream after each stage, the rewrites counted (stage, unit, pass) -> (before, after),
    the cubin; or how far the run came. ``counts``: the statistics of each stage."""

    streams: dict[str, bytes] = fresh(default_factory=dict)
    marks: dict[tuple[str, str, str], tuple[int, int]] = fresh(default_factory=dict)
    counts: dict[str, dict[str, int]] = fresh(default_factory=dict)
    cubin: bytes = b""
    failure: Failure | None = None


def header_of(data: bytes) -> Header:
    """The header of a stream. Raises StreamError."""
    _, raw = next(wire.frames(io.BytesIO(data)))
    return wire.header_from_wire(wire.unpack(raw))


def parts_of(
    stages: Sequence[Stage], opt: int, foreign: Sequence[str] = (), flags: dict[str, Flags] | None = None
) -> list[Part]:
    """The parts of these stages that an -O level runs, in order."""
    out = []
    for s in stages:
        if s.name in foreign:
            out.append(Part(s.name, "the command", False, True))
            continue
        given = (flags or {}).get(s.name) or Flags(quiet=True)
        context = Context(_at(opt), None, given)
        for p in select(s, s.passes(), context):
            if not p.required:
                out.append(Part(s.name, p.name, True))
            elif (p.name == _ALLOCATE and "allocator" not in given.extra) or (
                p.name == _CONTROL and opt > 0 and given.extra.get("scheduler", "list") == "list"
            ):
                out.append(Part(s.name, p.name, False))
    if opt > 0:  # the control words before the order: `inorder` is a separate scheduler
        names = [p.name for p in out]
        if _CONTROL in names and "list-schedule" in names[names.index(_CONTROL) - 1 :]:
            at = names.index(_CONTROL)
            out[at - 1 : at + 1] = [out[at], out[at - 1]]
    return out


def _at(opt: int) -> Header:
    header = Header("", "")
    header.options = {"opt-level": opt}
    return header


def warm(rows: Sequence[Stage], target: str) -> None:
    """Import what the stages and judges need and read their tables, so that forked processes do not each repeat it."""
    import stages.check.coding
    import stages.check.order_checker
    import stages.check.records
    import stages.check.schedule_checker
    import stages.check.undefined
    import stages.elf.link
    import stages.regalloc.checker.checker  # noqa: F401
    from ir_format.hazards import hazards

    hazards(target)
    for s in rows:
        s.passes()
        for load in (s.begin, s.module, s.finish):
            if load is not None:
                load()


class Chain:
    """PTX or a stream, and cubins made from it. ``given``: the user's flags by stage; ``foreign``: commands that
    replace stages; ``without``: parts that are disabled in every run."""

    def __init__(
        self,
        data: bytes,
        saved: bool = True,
        given: dict[str, Flags] | None = None,
        foreign: dict[str, str] | None = None,
        seconds: float = 60.0,
        say: Callable[[str], object] | None = None,
        without: Sequence[str] = (),
    ) -> None:
        """``saved``: the user has the stream as a file; else it was just made from PTX. Raises StreamError for input
        that is no stream."""
        self.data = data
        self.saved = saved
        self.seconds = seconds
        self.say = say
        self.header = header_of(data)
        self.given = given or {}
        self.foreign = foreign or {}
        level = self.header.options.get("opt-level", 3)
        self.opt = min(level, 3) if isinstance(level, int) else 3
        self.stages = [stage(n) for n in NAMES[next_stage(self.header) : -1]]
        warm(self.stages, self.header.target)
        parts = parts_of(self.stages, self.opt, list(self.foreign), self.given)
        known = [str(p) for p in parts]
        for name in without:
            if name.replace(":", ": ", 1).replace(":  ", ": ") not in known:
                raise StreamError(f"there is no part '{name}'; there are {', '.join(known)}")
        self.without = {name.replace(":", ": ", 1).replace(":  ", ": ") for name in without}
        self.parts = [p for p in parts if str(p) not in self.without]
        self.off = [p for p in parts if str(p) in self.without]
        self._made: dict[str, Ran] = {}
        self._whole: dict[str, Made] = {}

    # ------------------------------------------------------------ settings

    def setting(self, on: int, limit: int | None = None, unit: str = "") -> Setting:
        """The setting with only the first ``on`` parts; ``limit``: how many rewrites the stage of the last of them may
        apply (to ``unit``, or to each)."""
        given = set(self.parts[:on])
        flags: dict[str, Flags] = {}
        for s in self.stages:
            off = [p.name for p in (*self.off, *self.parts) if p.stage == s.name and p not in given]
            f = copy(self.given.get(s.name) or Flags(quiet=True))
            f.quiet, f.extra = True, dict(f.extra)
            f.skip = (*f.skip, *[n for n in off if n not in (_ALLOCATE, _CONTROL)])
            if _ALLOCATE in off:
                f.extra["allocator"] = "naive"
            if _CONTROL in off:
                f.extra["scheduler"] = "naive"
            elif s.name == "schedule" and "list-schedule" in off and self.opt > 0:
                f.extra.setdefault("scheduler", "inorder")
            if limit is not None and self.parts[on - 1].stage == s.name:
                f.limit, f.limit_unit = limit, unit
            flags[s.name] = f
        commands = {p.stage: self.foreign[p.stage] for p in given if p.command}
        for s in self.stages:
            if s.name in self.foreign and s.name not in commands:
                flags[s.name] = self._plain(s)
        return Setting(flags, commands)

    def _plain(self, s: Stage) -> Flags:
        """Flags for our stage when it replaces the user's command: as plain as possible."""
        f = Flags(quiet=True, skip=tuple([p.name for p in s.passes() if not p.required]))
        f.extra = {k: "naive" for k in ("allocator", "scheduler") if k in s.knobs}
        return f

    def flags(self, on: int, limit: int | None = None, unit: str = "") -> dict[str, Flags]:
        """The flags of :meth:`setting`."""
        return self.setting(on, limit, unit).flags

    # ------------------------------------------------------------ runs

    def make(self, setting: Setting, upto: str = "elf") -> Made:
        """Run the chain, up to a stage."""
        name = f"{setting!r}{upto}"
        if name not in self._whole:
            made = Made()

            def keep(got: tuple[Any, ...]) -> None:
                which, key, data, marks, counts = got
                self._made[key] = data, marks, counts
                made.streams[which] = data
                made.marks.update(marks)
                made.counts[which] = counts

            got = attempt(lambda note: self._job(setting, upto, note), self.seconds, self.say, keep)
            if isinstance(got, Failure):
                made.failure = got
            else:
                made.cubin = got
            self._whole[name] = made
        return self._whole[name]

    def on(self, on: int, limit: int | None = None, unit: str = "") -> Made:
        """The result of the chain with the first ``on`` parts."""
        return self.make(self.setting(on, limit, unit))

    def _job(self, setting: Setting, upto: str, note: Note) -> bytes:
        data, key = self.data, sha256(self.data).hexdigest()
        for s in self.stages:
            mine = [name for place, name in setting.bypass if place == s.name]
            command = setting.foreign.get(s.name, "")
            key = sha256(f"{key}{s.name}{setting.flags[s.name]!r}{command}{mine}".encode()).hexdigest()
            try:
                got = self._made.get(key) or run_row(s, data, setting.flags[s.name], command, mine, note)
            except StreamError as e:
                raise Refused(str(e)) from None
            data = got[0]
            note((s.name, key, *got))
            if s.name == upto:
                return b""
        note("elf")
        return linked(data)

    def stream(self, on: int, limit: int | None = None, unit: str = "") -> bytes:
        """The stream right after the last of ``on`` parts; b'' if there is none."""
        setting = self.setting(on, limit, unit)
        last = self.parts[on - 1]
        if not last.command:
            setting.flags[last.stage].stop_after = last.name
        return self.make(setting, last.stage).streams.get(last.stage, b"")

    def counted(self, on: int, unit: str = "") -> tuple[int, int]:
        """Rewrites of a unit (the most of any) before and after the last of ``on`` parts, counted in its stage."""
        part, made = self.parts[on - 1], self.on(on)
        if made.failure is not None:
            setting = self.setting(on)
            setting.flags[part.stage].stop_after = part.name
            made = self.make(setting, part.stage)
        found = [m for (s, u, p), m in made.marks.items() if s == part.stage and p == part.name and unit in ("", u)]
        return max([a for a, _ in found], default=0), max([b for _, b in found], default=0)


def parsed(
    name: str,
    data: bytes,
    target: str,
    options: dict[str, AttrValue],
    seconds: float,
    say: Callable[[str], object] | None = None,
) -> bytes | Failure:
    """The stream at level `ptx`, or why there is none."""

    def job(note: Note) -> bytes:
        note("parse")
        out, said = io.BytesIO(), io.StringIO()
        if parse_to_stream([(name, data)], target, dict(options), out.write, say=said.write):
            raise Refused(said.getvalue().strip())
        return out.getvalue()

    got = attempt(job, seconds, say)
    assert isinstance(got, bytes | Failure)
    return got


def linked(data: bytes) -> bytes:
    """The cubin of a stream at level `encoded`. Raises Refused."""
    parts: list[bytes] = []
    said = io.StringIO()
    with redirect_stderr(said):
        code = elf_from_stream(io.BytesIO(data), parts.append)
    if code:
        raise Refused(said.getvalue().strip())
    return b"".join(parts)


def run_row(s: Stage, data: bytes, flags: Flags, command: str, bypass: Sequence[str], note: Note) -> Ran:
    """One stage over a stream, like :func:`stages.plumbing.runner.run_stage`, but faults propagate and each pass is
    noted. Raises Refused."""
    if command:
        note(f"{s.name}: {command}")
        return _by_command(s, data, command), {}, {}
    header = header_of(data)
    header.level = s.writes
    header.producers.append((s.name, VERSION))
    parts: list[bytes] = []
    writer = wire.Writer(parts.append)
    writer.record(wire.MAGIC, wire.header_to_wire(header))
    marks: dict[tuple[str, str, str], tuple[int, int]] = {}
    ctx: Context | None = None
    passes: list[Pass] = []
    for tag, body in wire.records(io.BytesIO(data), raw_lists=s.reads == "ptx"):
        if tag == "module":
            module = read_module(s, body)
            ctx = Context(header, module, flags)
            passes = [_noted(p, s.name, note, marks) for p in select(s, s.passes(), ctx) if p.name not in bypass]
            note(f"{s.name}: module")
            writer.record("module", wire.module_to_wire(s.module()(module, header) if s.module is not None else module))
        elif tag == "unit" and ctx is not None:
            source = read_unit(s, body)
            note(s.name)
            unit = run_unit(s, passes, source, ctx)
            bad = [d for d in unit.diags if d[0] in ("error", "fatal")] if failed(unit) else []
            if bad:
                raise Refused(f"{bad[0][1]}" + (f" (PTX line {bad[0][2]})" if bad[0][2] else ""))
            writer.record("unit", wire.unit_to_wire(unit))
    writer.end()
    return b"".join(parts), marks, ctx.stats if ctx is not None else {}


def _noted(p: Pass, stage_name: str, note: Note, marks: dict[tuple[str, str, str], tuple[int, int]]) -> Pass:
    def run(unit: Unit, ctx: Context) -> None:
        note(f"{stage_name}: {p.name}")
        before = ctx.rewrites
        p.run(unit, ctx)
        marks[stage_name, unit.name, p.name] = before, ctx.rewrites

    return Pass(p.name, run, p.min_opt, p.required)


def _by_command(s: Stage, data: bytes, command: str) -> bytes:
    from stages.plumbing.chain import check_stream
    from stages.plumbing.plugins import piped

    out, failed = piped(command, data)
    if failed:
        raise Refused(f"'{command}' {failed}")
    try:
        check_stream(list(wire.frames(io.BytesIO(out))), s.writes, header_of(data).target)
    except StreamError as e:
        raise Refused(f"'{command}' wrote no valid stream ({e})") from None
    return out
