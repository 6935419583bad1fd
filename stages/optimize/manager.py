"""The pass manager: each pass declares what it works on and what it keeps; the manager provides the form and the
analyses that it needs."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from ir_format.model import Function, Unit
from ir_format.record import Record
from ir_format.typed import Any, Final
from stages.optimize.analyses import NOTHING, Analyses
from stages.plumbing.runner import Context, Pass

_OPTIMIZE: Final = __name__.removesuffix(".manager")


class FunctionPass(Record, frozen=True):
    """A pass over one function. ``run`` returns False if it changed nothing. ``ssa``: whether it works on SSA form
    (:mod:`stages.optimize.ssa`) or on registers; None for a pass that looks at either and leaves SSA form itself where
    it finds something to do. ``keeps``: analyses that are right after it although it changed something. ``where``: a
    quick look whether there may be something to do; the pass is called only then."""

    name: str
    run: Callable[[Function, Analyses], object]
    ssa: bool | None = False
    keeps: frozenset[str] = NOTHING
    min_opt: int = 1
    where: Callable[[Function, Analyses], bool] | None = None

    def over(self, unit: Unit, ctx: Context) -> None:
        """Run it over all functions of a unit."""
        for f in unit.functions:
            a = analyses(f, unit, ctx)
            a.bring_into(self.ssa)
            if (self.where is None or self.where(f, a)) and self.run(f, a) is not False:
                a.keep(self.keeps)


class UnitPass(Record, frozen=True):
    """A pass that looks at all functions of a unit at once."""

    name: str
    run: Callable[[Unit, Context], object]
    ssa: bool | None = False
    keeps: frozenset[str] = NOTHING
    min_opt: int = 1
    where: Callable[[Unit], bool] | None = None

    def over(self, unit: Unit, ctx: Context) -> None:
        """Run it."""
        known = [analyses(f, unit, ctx) for f in unit.functions]
        for a in known:
            a.bring_into(self.ssa)
        if (self.where is None or self.where(unit)) and self.run(unit, ctx) is not False:
            for a in known:
                a.keep(self.keeps)


_late: list[str] = []


def late(module: str, name: str) -> Callable[..., object]:
    """A function of a module of `stages.optimize` that is imported when it is first called."""
    _late.append(f"{_OPTIMIZE}.{module}")

    def call(*given: Any) -> object:
        found: Callable[..., object] = getattr(import_module(f"{_OPTIMIZE}.{module}"), name)
        return found(*given)

    return call


def import_late() -> None:
    """Import the modules of all passes, for processes that are forked."""
    for module in _late:
        import_module(module)


def with_op(name: str) -> Callable[[Function, Analyses], bool]:
    """The condition that a function has an instruction of this mnemonic."""
    return lambda f, a: any(i.op == name for b in f.blocks for i in b.insts)


def with_attribute(name: str) -> Callable[[Function, Analyses], bool]:
    """The condition that an instruction of a function has this attribute."""
    return lambda f, a: any(i.attrs and name in i.attrs for b in f.blocks for i in b.insts)


def row(p: FunctionPass | UnitPass) -> Pass:
    """The row of the stage's table."""
    return Pass(p.name, p.over, p.min_opt)


class _State:
    """The analyses of the current unit."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.of: dict[int, Analyses] = {}


def analyses(f: Function, unit: Unit, ctx: Context) -> Analyses:
    """What is known of a function of the current unit."""
    state = ctx.kept.get("optimize")
    if not isinstance(state, _State) or state.unit is not unit:
        state = ctx.kept["optimize"] = _State(unit)
    got = state.of.get(id(f))
    if got is None or got.f is not f:
        got = state.of[id(f)] = Analyses(f, unit, ctx)
    return got


def finish(unit: Unit, ctx: Context) -> None:
    """Whatever passes ran: the unit leaves as level `ori` is documented."""
    for f in unit.functions:
        analyses(f, unit, ctx).leave_ssa()
    ctx.kept.pop("optimize", None)


class Order(Record, frozen=True):
    """Every pass named ``before`` precedes the first named ``after``: ``why``."""

    before: str
    after: str
    why: str


def check_order(names: list[str], rules: tuple[Order, ...]) -> None:
    """Raise ValueError where a table of passes breaks a rule, or a rule names no pass."""
    if len(set(names)) != len(names):
        raise ValueError("two passes have one name")
    for r in rules:
        if r.before not in names or r.after not in names:
            raise ValueError(f"a rule of order names no pass: {r.before}, {r.after}")
        if names.index(r.before) >= names.index(r.after):
            raise ValueError(f"pass {r.before} must come before {r.after}: {r.why}")
