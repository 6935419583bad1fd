"""The driver of the stages between `parse` and `elf`: it reads a stream, runs the passes of the stage over each unit,
and writes a stream.

A stage is a :class:`Stage` row: the level that it reads, the level that it writes, and its passes. :func:`run_stage`
handles each unit as its record arrives. A unit that fails turns into a diagnostic and passes on empty; the others are
compiled. Exit codes: 0 done, 1 input rejected, 2 internal fault (a message names a file that reproduces it).
"""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Callable, Sequence

from ir_format import wire
from ir_format.diag import CompileError, Diagnostic, StreamError
from ir_format.model import Header, Unit
from ir_format.record import replace
from ir_format.typed import TYPE_CHECKING, Any, BinaryIO, Final
from stages.plumbing import files
from stages.plumbing.stage import Context as Context
from stages.plumbing.stage import Flags as Flags
from stages.plumbing.stage import Pass as Pass
from stages.plumbing.stage import Stage as Stage
from stages.plumbing.stage import as_tuples as as_tuples
from stages.plumbing.version import VERSION as VERSION

if TYPE_CHECKING:
    from stages.plumbing.observe import Watch

#: What ptxas says last when errors keep it from writing a file.
ABORTED: Final = "ptxas fatal   : Ptx assembly aborted due to errors\n"
_ALL: Final = 1 << 62  # rewrites, where no number is given


def check_knobs(stage: Stage, flags: Flags) -> None:
    """Raise StreamError for an option, or a value of an option, that the stage doesn't have."""
    for name, value in flags.extra.items():
        known = stage.knobs.get(name)
        if known is None:
            has = ", ".join(f"{n}={'|'.join(v)}" for n, v in stage.knobs.items()) or "none of its own"
            raise StreamError(f"stage {stage.name} has no option '{name}'; it has {has}")
        if value not in known:
            raise StreamError(f"option '{name}' of stage {stage.name} takes {', '.join(known)}, not '{value}'")


def select(stage: Stage, passes: Sequence[Pass], ctx: Context) -> list[Pass]:
    """The passes to run under the flags; an unknown name is an error that lists the known names."""
    flags = ctx.flags
    check_knobs(stage, flags)
    if stage.renamed:
        flags.only, flags.skip, flags.dump_after = (
            tuple([stage.renamed.get(name, name) for name in names])
            for names in (flags.only, flags.skip, flags.dump_after)
        )
        flags.start_after = stage.renamed.get(flags.start_after, flags.start_after)
        if flags.upto is not None:
            flags.upto = stage.renamed.get(flags.upto[0], flags.upto[0]), flags.upto[1]
        flags.stop_after = stage.renamed.get(flags.stop_after, flags.stop_after)
    if flags.added:
        from stages.plumbing.plugins import with_added

        passes = with_added(stage, passes, flags.added)
    known = [p.name for p in passes]
    if flags.dump_after == ("all",):
        flags.dump_after = tuple(known)
    last = flags.stop_after or (flags.upto[0] if flags.upto else "")
    for name in (*flags.only, *flags.skip, *flags.dump_after, flags.start_after, last, *(flags.upto or ())[:1]):
        if name and name not in known:
            raise StreamError(f"stage {stage.name} has no pass '{name}'; it has {', '.join(known) or 'none'}")
    for p in passes:
        if p.required and p.name in flags.skip:
            raise StreamError(f"pass '{p.name}' of stage {stage.name} is required and can't be skipped")
    out = []
    for p in passes[known.index(flags.start_after) + 1 if flags.start_after else 0 :]:
        if p.required or (
            ctx.opt >= p.min_opt and p.name not in flags.skip and (not flags.only or p.name in flags.only)
        ):
            out.append(p)
        if p.name in (flags.stop_after, last):
            break
    return out


def _number(text: str, whole: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise StreamError(f"'{whole}': expected a number of rewrites")
    return int(text)


def set_limit(flags: Flags, text: str) -> None:
    """Read ``N`` or ``UNIT:N``. Raises StreamError."""
    flags.limit_unit, _, number = text.rpartition(":")
    flags.limit = _number(number, text)


def read_upto(text: str) -> tuple[str, int]:
    """Read ``PASS:N``, or ``PASS`` for all of its rewrites. Raises StreamError."""
    name, colon, number = text.partition(":")
    return name, _number(number, text) if colon else _ALL


def _flags_of(ctx: Context, unit: str) -> Flags:
    """The flags under which a unit is worked on: those given, without a limit that is another unit's."""
    flags = ctx.flags
    if not flags.limit_unit or flags.limit_unit == unit:
        return flags
    return replace(flags, limit=None)


def _cut(ctx: Context, most: int) -> None:
    """Let the current pass apply this many rewrites and no more."""
    flags = ctx.flags
    limit = ctx.rewrites + most if flags.limit is None else min(flags.limit, ctx.rewrites + most)
    ctx.flags = replace(flags, limit=limit)


def failed(unit: Unit) -> bool:
    """Whether an earlier stage reported an error for the unit."""
    return any(d[0] in ("error", "fatal") for d in unit.diags)


def _watch(stage: Stage, ctx: Context, unit: Unit) -> Watch:
    from stages.plumbing.observe import Watch

    return Watch(stage.name, ctx, unit)


def run_unit(stage: Stage, passes: Sequence[Pass], source: Any, ctx: Context) -> Unit:
    """Run the passes over one unit. A CompileError becomes a diagnostic of the unit, which is then emptied."""
    unit = source if isinstance(source, Unit) else Unit(source.name)
    timed = bool(ctx.header.options.get("verbose"))
    began = time.perf_counter_ns() if timed else 0
    given = ctx.flags
    ctx.flags = _flags_of(ctx, unit.name)
    ctx.earlier, ctx.rewrites = ctx.earlier + ctx.rewrites, 0
    watch = _watch(stage, ctx, unit) if "observe" in ctx.header.options else None
    try:
        if stage.begin is not None:
            unit = stage.begin()(source, ctx)
        if failed(unit):
            return unit
        if watch is not None:
            watch.started(unit)
        for p in passes:
            if ctx.flags.upto is not None and ctx.flags.upto[0] == p.name:
                _cut(ctx, ctx.flags.upto[1])
            p.run(unit, ctx)
            if watch is not None:
                watch.ran(p.name, unit)
            if p.name in ctx.flags.dump_after:
                from ir_format.text import print_unit

                sys.stderr.write(f"# after {stage.name}/{p.name}\n{print_unit(unit, ctx.header.level)}")
        if stage.finish is not None:
            stage.finish()(unit, ctx)
        if ctx.flags.verify:
            from ir_format.verify import verify_unit

            verify_unit(unit, stage.writes, ctx.header.target)
    except CompileError as e:
        unit.diags.append((e.severity, e.message, e.line))
        unit.functions = []
        unit.code = []
    finally:
        ctx.flags = given
        if watch is not None:
            watch.end(unit)
    if timed:
        before = unit.attrs.get("compile_us", 0)
        unit.attrs["compile_us"] = (before if isinstance(before, int) else 0) + (time.perf_counter_ns() - began) // 1000
    return unit


def run_stage(stage: Stage, inp: BinaryIO, out: BinaryIO, flags: Flags, trusted: bool = False) -> int:
    """Run a stage over a stream. Returns the exit code; bad input never raises. ``trusted`` says that our own stage
    wrote the stream in this run, so that the rules of its level need no check."""
    header: Header | None = None
    code = 0
    units = 0
    level = stage.reads
    try:
        writer = wire.Writer(out.write, out.flush)
        recs = wire.records(inp, raw_lists=stage.reads == "ptx")
        ctx: Context | None = None
        passes: list[Pass] = []
        raw_header: Any = None
        raw_module: Any = None
        for tag, body in recs:
            if tag == wire.MAGIC:
                raw_header = body
                header = wire.header_from_wire(as_tuples(body) if stage.reads == "ptx" else body)
                level = header.level
                if level != stage.reads and not (flags.start_after and level == stage.writes):
                    raise StreamError(
                        f"stage {stage.name} reads level '{stage.reads}', this stream is at level '{header.level}'"
                    )
                header.level = stage.writes
                header.producers.append((stage.name, VERSION))
                writer.record(wire.MAGIC, wire.header_to_wire(header))
            elif header is None:
                raise StreamError("ori stream: no header")
            elif tag == "module":
                raw_module = body
                module = read_module(stage, body)
                ctx = Context(header, module, flags)
                passes = select(stage, stage.passes(), ctx)
                lowered = stage.module()(module, header) if stage.module is not None else module
                writer.record("module", wire.module_to_wire(lowered))
            elif ctx is None:
                raise StreamError("ori stream: a unit before the module record")
            else:
                source = read_unit(stage, body, units, level)
                units += 1
                known = isinstance(source, Unit) and failed(source)
                if not trusted and not known and level == stage.reads:  # between two passes rules may be broken
                    check_unit(stage, source, header)
                try:
                    unit = run_unit(stage, passes, source, ctx)
                except Exception as e:
                    return _fault(stage, raw_header, raw_module, body, e)
                if failed(unit):
                    code = 1
                    if not flags.quiet and not known:
                        print_diags(unit, header)
                writer.record("unit", wire.unit_to_wire(unit))
        writer.end()
        if flags.stats and ctx is not None:
            ctx.count("rewrites", ctx.earlier + ctx.rewrites)
            for k in sorted(ctx.stats):
                sys.stderr.write(f"{stage.name}: {k} {ctx.stats[k]}\n")
    except BROKEN as e:
        return broken(stage.name, e, inp)
    return code


#: The exceptions that end the reading of a stream.
BROKEN: Final = (StreamError, OSError, MemoryError, RecursionError)


def broken(name: str, e: Exception, inp: BinaryIO | None = None) -> int:
    """Report why a stage could not read its stream to the end; returns its exit code."""
    if isinstance(e, BrokenPipeError):  # the reader of our output is gone
        return 1
    if isinstance(e, StreamError):
        file = getattr(inp, "name", "")
        text = (f"{file}: " if isinstance(file, str) and file else "") + str(e)
    elif isinstance(e, OSError):
        text = e.strerror or type(e).__name__
        files.reported.add(e.errno)
    else:
        text = f"{type(e).__name__} while reading the stream"
    sys.stderr.write(f"orias-{name}: {text}\n")
    return 1


def check_unit(stage: Stage, source: Any, header: Header) -> None:
    """Raise StreamError if the unit breaks a rule of the level that the stage reads (a forged stream, or one that
    another program wrote)."""
    if not isinstance(source, Unit):
        return
    from ir_format.verify import verify_unit

    try:
        verify_unit(source, stage.reads, header.target)
    except CompileError as e:
        raise StreamError(f"unit {source.name}: {e.message}" + (f" (PTX line {e.line})" if e.line else "")) from None


def print_diags(unit: Unit, header: Header, say: Callable[[str], object] | None = None) -> None:
    """Print the errors of a unit in ptxas's form, and its warnings as the options ask, to ``say`` (standard error)."""
    say = say or sys.stderr.write
    for sev, msg, line in unit.diags:
        if sev == "warning":
            if header.options.get("disable-warnings"):
                continue
            sev = "error" if header.options.get("warning-as-error") else sev
        say(Diagnostic(sev, msg, header.source, line).render() + "\n")


def read_module(stage: Stage, body: Any) -> Any:
    """The module record that a stage reads."""
    if stage.reads == "ptx":
        from ir_format import ptx_wire

        return ptx_wire.module_from_wire(body)
    return wire.module_from_wire(body)


def read_unit(stage: Stage, body: Any, number: int = 0, level: str = "") -> Any:
    """The unit record that a stage reads, the ``number``-th of its stream, at another ``level`` where the stage was
    stopped between two passes. Raises a StreamError that names the unit."""
    try:
        if stage.reads == "ptx":
            from ir_format import ptx_wire

            return ptx_wire.unit_from_wire(body)
        return wire.unit_from_wire(body, level or stage.reads)
    except StreamError as e:
        name = unit_name(body)
        raise StreamError(f"unit {name if name else number}: {e}") from None


def unit_name(body: Any) -> str:
    """The name in a unit record that has not been checked; '' if there is none."""
    name = body.get("name") if isinstance(body, dict) else body[0] if isinstance(body, list) and body else None
    return name if isinstance(name, str) else ""


def _fault(stage: Stage, header: Any, module: Any, unit: Any, e: Exception) -> int:
    """Write the input of one unit to a file and name the file: it reproduces an internal fault."""
    import tempfile
    import traceback

    try:
        fd, path = tempfile.mkstemp(prefix=f"orias-{stage.name}-", suffix=".ori")
        with os.fdopen(fd, "wb") as f:
            w = wire.Writer(f.write)
            w.record(wire.MAGIC, header)
            w.record("module", module)
            w.record("unit", unit)
            w.end()
        kept = f"with the file {path}"
    except OSError as full:
        kept = f"(its input could not be kept: {full.strerror})"
    where = traceback.extract_tb(e.__traceback__)[-1]
    sys.stderr.write(
        f"orias-{stage.name}: internal fault ({type(e).__name__}: {e}) at "
        f"{os.path.basename(where.filename)}:{where.lineno}; please report it {kept}\n"
    )
    return 2


def run_files(stage: Stage, stream: str | None, output: str | None, flags: Flags) -> int:
    """Run a stage over files or the standard streams. An output file appears whole or not at all."""
    try:
        inp = sys.stdin.buffer if stream is None or stream == "-" else open(stream, "rb")
    except OSError as e:
        sys.stderr.write(f"orias-{stage.name}: can't read '{stream}': {e.strerror}\n")
        return 1
    if output is None:
        return run_stage(stage, inp, sys.stdout.buffer, flags)
    made = io.BytesIO()
    code = run_stage(stage, inp, made, flags)
    data = made.getvalue()
    if code > 1 or not ended(data):
        return code
    try:
        files.write_file(output, data)
    except OSError as e:
        sys.stderr.write(f"orias-{stage.name}: can't write '{output}': {e.strerror}\n")
        return 1
    return code


def ended(data: bytes) -> bool:
    """Whether a stage wrote its stream to the end (the stream of a refused input ends early)."""
    try:
        for _ in wire.frames(io.BytesIO(data)):
            pass
    except StreamError:
        return False
    return True
