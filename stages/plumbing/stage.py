"""A stage between `parse` and `elf`: its passes, its flags, and what its passes see besides the unit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ir_format.model import Header, Module, Unit
from ir_format.record import Record, fresh
from ir_format.typed import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stages.plumbing.observe import Remark


class Pass(Record, frozen=True):
    """One pass over a unit. ``min_opt`` is the lowest -O level at which it runs. A ``required`` pass can't be
    skipped."""

    name: str
    run: Callable[[Unit, Context], object]
    min_opt: int = 0
    required: bool = False


class Flags(Record):
    """The flags of a stage. ``only`` and ``skip`` hold pass names; ``limit`` is the number of rewrites that may be
    applied to each unit (None: all), or to ``limit_unit`` alone. No pass runs up to ``start_after``. ``upto``: a pass
    and how many rewrites it may apply to a unit; none runs after it. ``added``: the user's passes
    (:mod:`stages.plumbing.plugins`)."""

    stop_after: str = ""
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    limit: int | None = None
    dump_after: tuple[str, ...] = ()
    verify: bool = False
    stats: bool = False
    quiet: bool = False  # write diagnostics to the stream only (the orchestrator prints them in order)
    extra: dict[str, str] = fresh(default_factory=dict)
    limit_unit: str = ""
    start_after: str = ""
    upto: tuple[str, int] | None = None
    added: tuple[str, ...] = ()


class Context(Record):
    """What a pass can see besides its unit. ``module`` is the module record of the level that the stage reads.
    ``rewrites`` counts those of the current unit, ``earlier`` those of the units before it. ``kept``
    holds results that one pass leaves for the next (:mod:`stages.optimize.manager`,
    :mod:`stages.schedule.schedule_unit`). ``remarks``: a list where remarks are asked for."""

    header: Header
    module: Any
    flags: Flags
    stats: dict[str, int] = fresh(default_factory=dict)
    rewrites: int = 0
    kept: dict[str, Any] = fresh(default_factory=dict)
    earlier: int = 0
    remarks: list[Remark] | None = None

    @property
    def opt(self) -> int:
        """The -O level, 0 to 3."""
        level = self.header.options.get("opt-level", 3)
        return min(level, 3) if isinstance(level, int) else 3

    def allow(self) -> bool:
        """Count one rewrite; False if --limit forbids it (bisection). Rewrites are counted unit by unit, so that a
        limit means the same however the units of a module are shared out among processes."""
        limit = self.flags.limit
        if limit is not None and self.rewrites >= limit:
            return False
        self.rewrites += 1
        return True

    def remark(
        self, kind: str, pass_name: str, name: str, function: str, line: int, message: str, value: str = ""
    ) -> None:
        """Say what a pass decided and why (:class:`stages.plumbing.observe.Remark`). Where making the message costs
        something, ask before whether :attr:`remarks` is a list."""
        if self.remarks is not None:
            from stages.plumbing.observe import Remark

            self.remarks.append(Remark(kind, pass_name, name, function, line, message, value))

    def count(self, what: str, n: int = 1) -> None:
        """Add to a statistic that --stats prints."""
        self.stats[what] = self.stats.get(what, 0) + n


class Stage(Record, frozen=True):
    """A stage of the chain. ``passes`` is a function, so that the code of a stage is imported only when it runs.

    ``begin`` turns the record that was read into the unit that the passes work on (`lower`: PTX unit to Ori unit);
    ``module`` does so for the module record. ``finish`` follows the passes, whichever of them ran.
    ``knobs`` holds the stage's own options (:attr:`Flags.extra`), each with
    the values that it takes. ``renamed`` maps former names of passes to their names; the command line takes both.
    """

    name: str
    reads: str
    writes: str
    passes: Callable[[], Sequence[Pass]]
    begin: Callable[[], Callable[[Any, Context], Unit]] | None = None
    module: Callable[[], Callable[[Any, Header], Module]] | None = None
    knobs: dict[str, tuple[str, ...]] = fresh(default_factory=dict)
    renamed: dict[str, str] = fresh(default_factory=dict)
    finish: Callable[[], Callable[[Unit, Context], None]] | None = None


def as_tuples(x: Any) -> Any:
    """The value with every list in it made a tuple, as :func:`ir_format.wire.records` returns it."""
    if type(x) is list:
        return tuple(as_tuples(e) for e in x)
    if type(x) is dict:
        return {k: as_tuples(v) for k, v in x.items()}
    return x
