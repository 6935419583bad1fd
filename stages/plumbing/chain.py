"""The chain: its seven stages as one list.

`parse` makes a stream from text (:mod:`stages.plumbing.front_end`), and `elf` makes a cubin from a stream
(:mod:`stages.plumbing.back_end`). The five stages between them turn one level of the stream into the next; they are
rows here. The code of a stage is imported when the stage runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ir_format import wire
from ir_format.diag import StreamError
from ir_format.model import Header, Module, Unit
from ir_format.typed import Any, Final
from stages.plumbing.runner import Context, Pass, Stage, check_unit, failed, read_unit, unit_name


def _lower_begin() -> Callable[[Any, Context], Unit]:
    from stages.lower.lower import lower_unit

    return lambda source, ctx: lower_unit(source, ctx.module, ctx.header, ctx.kept)


def _lower_module() -> Callable[[Any, Header], Module]:
    from stages.lower.lower import lower_module

    return lower_module


def _optimize_passes() -> Sequence[Pass]:
    import stages.optimize.scalar.rules  # noqa: F401 - warm
    from stages.optimize.passes import PASSES

    return PASSES


def _optimize_finish() -> Callable[[Unit, Context], None]:
    from stages.optimize.manager import finish

    return finish


def _regalloc_passes() -> Sequence[Pass]:
    import stages.regalloc.allocate
    import stages.regalloc.operand_slots  # noqa: F401 - warm
    from stages.regalloc.passes import PASSES

    return PASSES


def _schedule_passes() -> Sequence[Pass]:
    from stages.schedule.passes import PASSES

    return PASSES


def _encode_passes() -> Sequence[Pass]:
    import stages.encode.encode  # noqa: F401 - warm
    from stages.encode.passes import PASSES

    return PASSES


LOWER = Stage("lower", "ptx", "ori", tuple, _lower_begin, _lower_module)
OPTIMIZE = Stage(
    "optimize",
    "ori",
    "ori",
    _optimize_passes,
    finish=_optimize_finish,
    renamed={
        "guarded": "guarded-vectors",
        "simplify": "combine",
        "simplify-again": "combine-again",
        "branches": "simplify-cfg",
        "predicate": "if-conversion",
        "pool": "constant-pool",
        "vectors": "load-vectorize",
        "pointers": "pointer-sharing",
        "uniform": "uniform-promotion",
        "remat": "rematerialize",
        "convention": "return-register",
        "order": "list-schedule",
    },
)
REGALLOC = Stage("regalloc", "ori", "allocated", _regalloc_passes, knobs={"allocator": ("greedy", "naive")})
SCHEDULE = Stage(
    "schedule",
    "allocated",
    "scheduled",
    _schedule_passes,
    knobs={"scheduler": ("list", "inorder", "naive"), "why": ("1", "0")},
    renamed={"order": "list-schedule", "zeros": "zero-pairs"},
)
ENCODE = Stage("encode", "scheduled", "encoded", _encode_passes)

MIDDLE = (LOWER, OPTIMIZE, REGALLOC, SCHEDULE, ENCODE)
_OPTIONS = """
opt-level compile-only extensible-whole-program device-debug generate-line-info suppress-debug-info verbose fmad entry
minnctapersm maxntid maxrregcount device-function-maxrregcount override-directive-values def-load-cache
def-store-cache force-load-cache force-store-cache make-errors-visible-at-exit warn-on-double-precision-use
warn-on-spills warn-on-local-memory-usage warning-as-error disable-warnings explain legacy-bar-warp-wide-behavior
sp-bounds-check compiler-annotations tensor-memory-checks blocks-are-clusters
suppress-async-bulk-multicast-advisory-warning suppress-sparse-mma-advisory-info suppress-stack-size-warning
accept-newer-ptx release verbose2 observe fabric-access-checks
"""
#: The options that a stream's header holds, by ptxas's long names (`tensor-memory-checks` tells which of two options
#: was given, `fabric-access-checks` that they are not wanted;
#: `observe` is what several of them want to see, :mod:`stages.plumbing.observe`).
OPTIONS: Final = frozenset(_OPTIONS.split())
NAMES = ("parse", *(s.name for s in MIDDLE), "elf")


def next_stage(header: Header) -> int:
    """The index in NAMES of the stage that reads the stream: the stage after its last producer or, if that is no stage
    of ours, the stage that reads its level."""
    last = header.producers[-1][0] if header.producers else ""
    if last in NAMES[:-1]:
        return NAMES.index(last) + 1
    return next((n for n, s in enumerate(MIDDLE, 1) if s.reads == header.level), len(NAMES) - 1)


def stage(name: str) -> Stage:
    """The row of a middle stage."""
    return next(s for s in MIDDLE if s.name == name)


def check_stream(
    frames: Sequence[tuple[str, bytes]], level: str, target: str = "", given: Sequence[tuple[str, bytes]] = ()
) -> None:
    """Check a whole stream that another program wrote: its level, its target (if given), every record and every rule of
    the level. ``given`` holds the unit records that the program read; each of them must be in the stream. Raises
    StreamError."""
    from ir_format import ptx_wire

    header = wire.header_from_wire(wire.unpack(frames[0][1]))
    if header.level != level:
        raise StreamError(f"it is at level '{header.level}', not '{level}'")
    if target and header.target != target:
        raise StreamError(f"it is for target '{header.target}', not '{target}'")
    reader = next((s for s in MIDDLE if s.reads == level), None)
    if not any(tag == "module" for tag, _ in frames):
        raise StreamError("ori stream: no module record")
    names: list[str] = []
    for tag, data in frames:
        body = wire.unpack(data, raw_lists=level == "ptx")
        if tag == "module":
            if level == "ptx":
                ptx_wire.module_from_wire(body)
            else:
                wire.module_from_wire(body)
        elif tag == "unit":
            unit = read_unit(reader, body, len(names)) if reader is not None else wire.unit_from_wire(body, level)
            names.append(unit.name)
            if reader is not None and not (isinstance(unit, Unit) and failed(unit)):
                check_unit(reader, unit, header)
    wanted = [unit_name(wire.unpack(data, raw_lists=True)) for _, data in given]
    if given and names != wanted:
        raise StreamError(f"it holds the units {', '.join(names) or '(none)'}, not {', '.join(wanted) or '(none)'}")
