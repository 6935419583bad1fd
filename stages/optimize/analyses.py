"""Typed analyses of a function: computed on demand, and kept until a pass changes what they depend on."""

from __future__ import annotations

from ir_format.flow import Cfg, DominatorTree, Liveness, build_cfg, dominators, liveness
from ir_format.hazards import hazards
from ir_format.model import Function, Unit
from ir_format.typed import Final
from stages.analysis.register_counts import changes_count, counts_of_blocks
from stages.analysis.register_limits import register_limit
from stages.optimize.late.def_use import Place, all_uses
from stages.optimize.late.pressure import room_for, shortages
from stages.optimize.ssa.construct import enter, written_again
from stages.optimize.ssa.destruct import leave
from stages.optimize.ssa.webs import Webs
from stages.optimize.values import Values
from stages.plumbing.runner import Context

#: What passes declare that they keep: names of the analyses of :class:`Analyses`.
NOTHING: Final[frozenset[str]] = frozenset()
FLOW: Final = frozenset(("cfg", "idom"))
ALL: Final = FLOW | {"live", "short", "values"}


class Analyses:
    """The analyses of one function. ``webs``: what SSA form knows, None outside of it."""

    __slots__ = (
        "_cfg",
        "_idom",
        "_live",
        "_reads",
        "_short",
        "_tree",
        "_values",
        "_writes",
        "ctx",
        "f",
        "swept",
        "unit",
        "webs",
    )

    def __init__(self, f: Function, unit: Unit, ctx: Context) -> None:
        self.f = f
        self.unit = unit
        self.ctx = ctx
        self.webs: Webs | None = None
        self.swept = False  # whether dead code went and nothing has changed since
        self._writes: bytearray | None = None
        self._cfg: Cfg | None = None
        self._idom: list[int] | None = None
        self._tree: DominatorTree | None = None
        self._live: Liveness | None = None
        self._short: dict[int, int] | None = None
        self._values: Values | None = None
        self._reads: dict[int, list[Place]] | None = None

    @property
    def register_limit(self) -> int:
        """The most registers that directives and options leave to the unit."""
        header = self.ctx.header
        return register_limit(self.unit, hazards(header.target).sm, header.options)

    @property
    def counts(self) -> list[int]:
        """The registers that exist in each block."""
        limit = self.register_limit
        return counts_of_blocks(self.f, limit) if self._counts_change else [limit] * len(self.f.blocks)

    @property
    def _counts_change(self) -> bool:
        return "reg_reconfig" in self.unit.attrs and changes_count(self.f)

    @property
    def room(self) -> int:
        """Live values up to which a function fits into its registers, wherever they are."""
        return room_for(min(self.counts)) if self._counts_change else room_for(self.register_limit)

    @property
    def short(self) -> dict[int, int]:
        """Block position -> words of file R that are too many there; outside SSA form."""
        if self._short is None:
            self._short = shortages(self.f, self.live, [room_for(n) for n in self.counts])
        return self._short

    @property
    def cfg(self) -> Cfg:
        """The control-flow graph."""
        if self._cfg is None:
            self._cfg = build_cfg(self.f)
        return self._cfg

    @property
    def idom(self) -> list[int]:
        """Immediate dominators by block position."""
        if self._idom is None:
            self._idom = dominators(self.cfg)
        return self._idom

    @property
    def tree(self) -> DominatorTree:
        """The dominator tree; right as long as :attr:`idom` is."""
        if self._tree is None:
            self._tree = DominatorTree(self.cfg, self.idom)
        return self._tree

    @property
    def written_again(self) -> bytearray:
        """1 for every register some lane of which is written in more than one place (:func:`written_again`)."""
        if self._writes is None or len(self._writes) != len(self.f.vregs) + 1:
            self._writes = written_again(self.f)
        return self._writes

    @property
    def live(self) -> Liveness:
        """Live cells at block boundaries; outside SSA form."""
        assert self.webs is None
        if self._live is None:
            self._live = liveness(self.f, self.cfg)
        return self._live

    @property
    def values(self) -> Values:
        """Which registers are values, their definitions, how often they are read."""
        if self._values is None:
            self._values = Values(self.f, self.webs, self.cfg, self.tree)
        return self._values

    @property
    def reads(self) -> dict[int, list[Place]]:
        """Register -> the places that read it, in order."""
        if self._reads is None:
            self._reads = all_uses(self.f)
        return self._reads

    @property
    def known_values(self) -> Values | None:
        """:attr:`values` where they are known: to be kept up to date by a pass that does not ask for them."""
        return self._values

    def keep(self, kept: frozenset[str]) -> None:
        """The function was changed, but not what these analyses say."""
        if "swept" not in kept:
            self.swept = False
        if "writes" not in kept:
            self._writes = None
        if "cfg" not in kept:
            self._cfg = None
        if "idom" not in kept:
            self._idom = self._tree = None
        if "live" not in kept:
            self._live = None
        if "short" not in kept:
            self._short = None
        if "values" not in kept:
            self._values = None
        if "reads" not in kept:
            self._reads = None

    def bring_into(self, ssa: bool | None) -> None:
        """Bring the function into the form that a pass wants; None: either will do."""
        if ssa:
            self.enter_ssa()
        elif ssa is not None:
            self.leave_ssa()

    def enter_ssa(self) -> None:
        """Bring the function into SSA form if it is not."""
        if self.webs is None:
            self.webs = enter(self.f, self.cfg, self.idom, self.tree, self.written_again, self.ctx)
            self.keep(FLOW)

    def leave_ssa(self) -> None:
        """Bring it out of SSA form if it is in it."""
        if self.webs is not None:
            leave(self.f, self.webs)
            self.webs = None
            self.keep(FLOW)
