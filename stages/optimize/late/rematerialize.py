"""Rematerialization: under high register pressure, values are computed again where they are needed instead of being
kept.

Front ends compute addresses, masks and multiples of strides once, far from their use. Live across a loop full of
accumulators they force other values into memory; one or two cheap instructions compute them again from values that are
live there already, from a parameter, a special register or a constant. ptxas does so too (seen: multiples of a stride
in Triton's products, thread indices after the main loop of CUTLASS's).

Pre: a function at level `ori`. Post: the same values; functions that fit into their registers are unchanged. Only
*values* (:mod:`stages.optimize.values`) are rematerialized, from values: a use of `x = f(y)` sees the same y as f did,
since the definition of x dominates the use, and the definition of y that of x.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from ir_format.flow import Liveness, is_guarded, loop_depths, read_regs, written_regs
from ir_format.isa import facts
from ir_format.model import NOT_PT, PT, Const, Function, Inst, Reg
from ir_format.record import NamedTuple
from ir_format.rename import fresh_names, rename, renumber_reads
from ir_format.typed import Final
from stages.optimize.analyses import Analyses
from stages.optimize.late.def_use import Place, insert
from stages.optimize.late.pressure import CHEAP
from stages.optimize.late.uniform_promotion import paths_reconverge
from stages.optimize.scalar.dce import remove_unread
from stages.optimize.values import Values, is_pure

_CONSTANTS: Final = facts.having("constant")
_LONGEST: Final = 3  # instructions to make one value
_GAP: Final = 24  # instructions between two uses that share one copy
_LOOP: Final = 8  # assumed trip count
_SHARED: Final = 3  # words that must go for each one that lives longer
_COMMON: Final = 6  # values that can be made from a register that is worth keeping for them


class _Recipe(NamedTuple):
    """``insts``: what to compute, in order; ``leaves``: registers that it reads and that are not made by it."""

    vreg: int
    insts: tuple[Inst, ...]
    leaves: frozenset[int]


def rematerialize(f: Function, a: Analyses) -> bool:
    """The pass."""
    if sum(v.width for v in f.vregs if v.file == "R") <= a.room or not a.short:
        return False

    @cache
    def together() -> bool:
        """Whether divergent groups of a warp reconverge where their paths do."""
        return all(map(paths_reconverge, a.unit.functions))

    ctx, live, values, need = a.ctx, a.live, a.values, a.short
    through = _through(f, live, values, need)
    uses = {v: a.reads[v] for v in through if v in a.reads}
    finder = _Finder(f, live, values, uses, together)
    recipes = finder.recipes(sorted(through))
    depth = loop_depths(values.cfg)
    for r in _choose(f, recipes, through, need, finder, [_LOOP ** min(d, 5) for d in depth], uses):
        if not ctx.allow():
            break
        ctx.count("values made again")
        finder.chosen.append(r)
    if finder.chosen:
        _rewrite(f, values, finder.chosen, uses)
        makers = [values.defs[values.base[r.vreg] + c] for r in finder.chosen for c in range(f.vregs[r.vreg].width)]
        remove_unread(f, a, values, [i for i in makers if i is not None])
    return bool(finder.chosen)


def _through(f: Function, live: Liveness, values: Values, need: dict[int, int]) -> dict[int, list[int]]:
    """Value of file R -> blocks short of registers at whose start it is live."""
    found: dict[int, list[int]] = {}
    owner = live.cells.owner
    for pos in sorted(need):
        for num in sorted({owner[c][0] for c in live.in_cells(pos)}):
            if f.vregs[num].file == "R" and values.value[num]:
                found.setdefault(num, []).append(pos)
    return found


class _Finder:
    """How to make a value again."""

    def __init__(
        self, f: Function, live: Liveness, values: Values, uses: dict[int, list[Place]], together: Callable[[], bool]
    ) -> None:
        self.f = f
        self.live = live
        self.values = values
        self.uses = uses
        self.chosen: list[_Recipe] = []
        self.together = together

    def recipes(self, vregs: list[int]) -> list[_Recipe]:
        """How to make each of the values again, where that is known. What many could be made from is left as it is, to
        live longer for them."""
        chains = {v: self._chain(v, frozenset()) for v in vregs}
        wanted: dict[
            int, int
        ] = {}  # register that is not live where it would be needed -> how many values could be made from it
        for v, chain in chains.items():
            for num in {r.num for i in chain for r in read_regs(i) if r.file == "R"}:
                if num != v and not self.alive(num, v):
                    wanted[num] = wanted.get(num, 0) + 1
        common = frozenset(num for num, n in wanted.items() if n >= _COMMON)
        found: list[_Recipe] = []
        for v, chain in chains.items():
            if len(chain) > 1 and not common.isdisjoint(d.num for i in chain for d in written_regs(i)):
                chain = self._chain(v, common)
            own = self._own(v)
            if len(own) < len(chain) and self._lacks(own, v, common) <= self._lacks(chain, v, common):
                chain = own
            if chain:
                found.append(_Recipe(v, chain, _leaves(chain)))
        return found

    def _lacks(self, insts: tuple[Inst, ...], vreg: int, common: frozenset[int]) -> int:
        """Words that would have to live longer for this value alone."""
        return sum(self.f.vregs[n].width for n in _leaves(insts) if n not in common and not self.alive(n, vreg))

    def _own(self, vreg: int) -> tuple[Inst, ...]:
        """The instructions that make the value, where they are cheap."""
        if vreg not in self.uses:
            return ()
        own = self._sum(vreg)
        if not own:
            maker = self._maker(vreg)
            if maker is not None:
                own = (maker,)
        return own

    def _chain(self, vreg: int, common: frozenset[int]) -> tuple[Inst, ...]:
        """Few instructions that make the value, as far as that goes from what is live at its uses or is ``common``."""
        own = self._own(vreg)
        makers = {d.num: i for i in own for d in written_regs(i)}
        count = len(own)
        work = list(own)
        while work:
            for r in read_regs(work.pop(0)):
                if (
                    count < _LONGEST
                    and r.file == "R"
                    and r.num not in makers
                    and r.num not in common
                    and not self.alive(r.num, vreg)
                ):
                    made = self._maker(r.num)
                    if made is not None:
                        makers[r.num] = made
                        count += 1
                        work.append(made)
        return _ordered(own, makers)

    def _sum(self, vreg: int) -> tuple[Inst, ...]:
        """The two instructions that make the words of a pair (a 64-bit sum, a sign-extended word); none if one makes
        it, or more."""
        reg = self.f.vregs[vreg]
        low, high = (self.values.part_of(vreg, 0), self.values.part_of(vreg, 1)) if reg.width > 1 else (None, None)
        if reg.width != 2 or reg.fixed >= 0 or low is None or high is None or low is high:
            return ()
        carry = low.dsts[1] if low.op == "IADD3" and not low.mods else PT
        if carry == PT:
            return (
                (low, high)
                if self._word(low) and self._word(high) and not any(r.num == vreg for r in read_regs(high))
                else ()
            )
        if (
            type(carry) is not Reg
            or low.dsts[2] != PT
            or high.op != "IADD3"
            or high.mods != ("X",)
            or high.dsts[1:] != (PT, PT)
        ):
            return ()
        if (
            high.srcs[3] != carry
            or high.srcs[4] != NOT_PT
            or not self.values.value[carry.num]
            or is_guarded(low)
            or is_guarded(high)
        ):
            return ()
        reads = [r for r in (*read_regs(low), *read_regs(high)) if r.num != carry.num]
        return (low, high) if all(map(self._lasts, reads)) else ()

    def _lasts(self, r: Reg) -> bool:
        """Whether what a register holds where a value is made it holds wherever that may be rematerialized. A uniform
        register belongs to the warp: another part of it, in the same code or after it, may write it meanwhile. So it
        must be a constant, and divergent groups must reconverge where their paths do."""
        if not self.values.value[r.num] or r.file != "UR":
            return bool(self.values.value[r.num]) and r.file == "R"
        made = self.values.part_of(r.num, 0)
        if made is None or made.op not in _CONSTANTS or not is_pure(made) or read_regs(made):
            return False
        return self.together()

    def _word(self, inst: Inst) -> bool:
        """Whether a cheap instruction makes one word from values."""
        if (
            inst.op not in CHEAP
            or not is_pure(inst)
            or is_guarded(inst)
            or sum(r.width for r in written_regs(inst)) != 1
        ):
            return False
        if any(type(o) is Const and o.ireg is not None for o in inst.srcs):
            return False
        return all(map(self._lasts, read_regs(inst)))

    def _maker(self, vreg: int) -> Inst | None:
        """The cheap instruction that makes a whole value from values."""
        reg = self.f.vregs[vreg]
        inst = self.values.part_of(vreg, 0)
        if inst is None or reg.fixed >= 0 or inst.op not in CHEAP or not is_pure(inst) or is_guarded(inst):
            return None
        made = written_regs(inst)
        if len(made) != 1 or made[0].num != vreg or made[0].sub or made[0].width != reg.width:
            return None
        if any(type(o) is Const and o.ireg is not None for o in inst.srcs):
            return None
        return inst if all(map(self._lasts, read_regs(inst))) else None

    def alive(self, num: int, vreg: int) -> bool:
        """Whether the value ``num`` is already live where ``vreg`` is used."""
        base = self.live.cells.base
        assert base is not None
        bit = self.live.bit.get(base[num], -1)
        at = self.values.place[self.values.base[num]]
        return all(at == pos or (bit >= 0 and self.live.live_in[pos] >> bit & 1) for pos, _ in self.uses[vreg])


def _ordered(roots: tuple[Inst, ...], makers: dict[int, Inst]) -> tuple[Inst, ...]:
    """``roots`` and the instructions that they need, each after those that it needs."""
    out: list[Inst] = []

    def put(inst: Inst) -> None:
        for r in read_regs(inst):
            made = makers.get(r.num)
            if made is not None and made is not inst and not any(x is made for x in out):
                put(made)
        if not any(x is inst for x in out):
            out.append(inst)

    for root in roots:
        put(root)
    return tuple(out)


def _leaves(insts: tuple[Inst, ...]) -> frozenset[int]:
    """What the instructions read and do not make."""
    return frozenset(r.num for i in insts for r in read_regs(i)) - {r.num for i in insts for r in written_regs(i)}


def _clusters(uses: list[Place]) -> list[list[Place]]:
    """Uses that are close together."""
    out: list[list[Place]] = []
    for pos, n in uses:
        if out and out[-1][-1][0] == pos and n - out[-1][-1][1] <= _GAP:
            out[-1].append((pos, n))
        else:
            out.append([(pos, n)])
    return out


def _choose(
    f: Function,
    recipes: list[_Recipe],
    through: dict[int, list[int]],
    need: dict[int, int],
    finder: _Finder,
    weight: list[int],
    uses: dict[int, list[Place]],
) -> list[_Recipe]:
    """The cheapest recipes that make enough room. A leaf that lives longer than before must serve several."""
    longer: dict[int, int] = {}  # leaf -> words that would go if it lived longer
    extra = {
        r.vreg: frozenset(n for n in r.leaves if f.vregs[n].file == "R" and not finder.alive(n, r.vreg))
        for r in recipes
    }
    for r in recipes:
        for n in extra[r.vreg]:
            longer[n] = longer.get(n, 0) + f.vregs[r.vreg].width
    ranked = []
    for r in recipes:
        if all(longer[n] >= _SHARED * len(extra[r.vreg]) * f.vregs[n].width for n in extra[r.vreg]):
            price = sum(CHEAP[i.op] for i in r.insts)
            cost = sum(weight[c[0][0]] for c in _clusters(uses[r.vreg])) * price / f.vregs[r.vreg].width
            ranked.append((cost, r.vreg, r))
    ranked.sort(key=lambda x: x[:2])
    need = dict(need)
    chosen: list[_Recipe] = []
    gone: set[int] = set()
    kept: set[int] = set()
    for _, vreg, r in ranked:
        inner = {d.num for i in r.insts[:-1] for d in written_regs(i)}
        if vreg in kept or not gone.isdisjoint(r.leaves) or all(need[p] <= 0 for p in through[vreg]):
            continue
        chosen.append(r)
        gone.add(vreg)
        for p in through[vreg]:
            need[p] -= f.vregs[vreg].width
            need[p] += sum(f.vregs[n].width for n in extra[vreg] - kept)
        kept |= r.leaves | inner
    return chosen


def _rewrite(f: Function, values: Values, chosen: list[_Recipe], uses: dict[int, list[Place]]) -> None:
    """Put copies of the recipes before the uses. The originals are dead then."""
    before: dict[Place, list[Inst]] = {}
    for r in chosen:
        for cluster in _clusters(uses[r.vreg]):
            pos, at = cluster[0]
            user = f.blocks[pos].insts[at]
            fresh = fresh_names(f, r.insts)
            for number in sorted(fresh.values()):
                values.new_register(f.vregs[number].width)

            def new(reg: Reg, fresh: dict[int, int] = fresh) -> Reg:
                return reg._replace(num=fresh[reg.num]) if reg.num in fresh else reg

            for old in r.insts:
                inst = Inst(old.op, old.mods, old.dsts, old.srcs, None, user.line, user.loc)
                rename(inst, new)
                values.adjust(inst, +1)
                before.setdefault((pos, at), []).append(inst)
            for place, n in cluster:
                reader = f.blocks[place].insts[n]
                values.adjust(reader, -1)
                renumber_reads(reader, {r.vreg: fresh[r.vreg]})
                values.adjust(reader, +1)
    if before:
        insert(f, before)
