"""Double constants in the kernel's own constant bank.

An instruction on doubles takes the upper word of a constant as an immediate, and only where the lower word is 0. Other
constants cost two moves and a register pair. Up to sm_89 a word pair in constant bank 2 (section `.nv.constant2.K`) is
as good as a register (measured: ptxas puts them there; from sm_90 on it uses uniform registers instead). Pre: a
function at level `ori`. Post: the same; the moves are left to `dce`.
"""

from __future__ import annotations

from ir_format import isa
from ir_format.diag import CompileError
from ir_format.features import has
from ir_format.isa import facts
from ir_format.model import ZERO, Const, Function, Inst, Operand, Reg, Unit
from ir_format.typed import TYPE_CHECKING
from stages.optimize.values import Values
from stages.plumbing.runner import Context

if TYPE_CHECKING:
    from ir_format.isa.machine import Target

_DOUBLE = facts.of_class("fp64")
_MAX = 0x8000  # bytes of the bank that the pool may fill (guessed: half of what an offset field reaches)


class Pool:
    """Constants of a unit: value of 64 bits -> byte offset in bank 2."""

    def __init__(self, unit: Unit) -> None:
        given = unit.attrs.get("bank2", ())
        self.words: list[int] = [w for w in given if isinstance(w, int)] if isinstance(given, tuple) else []
        self.offsets: dict[int, int] = {}

    def find(self, value: int) -> int:
        """Where a value is or would be placed."""
        return self.offsets.get(value, 4 * (len(self.words) + len(self.words) % 2))

    def place(self, value: int) -> None:
        """Give a value its place."""
        if value not in self.offsets:
            self.words += [0] * (len(self.words) % 2)
            self.offsets[value] = 4 * len(self.words)
            self.words += [value & 0xFFFFFFFF, value >> 32]


def pool_doubles(unit: Unit, ctx: Context) -> bool:
    """The pass; whether it changed anything."""
    target = isa.target(ctx.header.target)
    if not has(target.sm, "doubles-pooled") or ctx.header.options.get("compile-only"):
        return False  # in an object a kernel's bank 2 would have to be joined with those of the functions it calls
    pool = Pool(unit)
    for f in unit.functions:
        _function(f, pool, target, ctx)
    if pool.offsets:
        unit.attrs["bank2"] = tuple(pool.words)
    return bool(pool.offsets)


def _function(f: Function, pool: Pool, target: Target, ctx: Context) -> None:
    users = [i for b in f.blocks for i in b.insts if i.op in _DOUBLE]
    if not users:
        return
    values = Values(f)
    for i in users:
        for n, o in enumerate(i.srcs):
            if type(o) is not Reg or o.file != "R" or o.width != 2 or o.num == ZERO:
                continue
            low, high = values.constant(o), values.constant(o, 1)
            if not low or high is None:
                continue
            value = low | high << 32
            at = pool.find(value)
            srcs = _legal(target, i, n, Const("C", 2, at, 2, None, o.flags))
            if srcs is not None and at < _MAX and ctx.allow():
                pool.place(value)
                i.srcs = srcs
                ctx.count("pooled constants")
                break  # an instruction reads one constant


def _legal(target: Target, i: Inst, n: int, o: Const) -> tuple[Operand, ...] | None:
    """The sources with ``o`` as number ``n``; factors are swapped where only the second may be a constant. None where
    the target has no such form."""
    forms = [(*i.srcs[:n], o, *i.srcs[n + 1 :])]
    if n == 0 and target.fact(i, "comm").startswith("ab"):
        forms.append((i.srcs[1], o, *i.srcs[2:]))
    for srcs in forms:
        try:
            if target.match(Inst(i.op, i.mods, i.dsts, srcs, i.guard, i.line, i.loc)) is not None:
                return srcs
        except CompileError:
            continue
    return None
