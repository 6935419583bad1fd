"""Load vectorizer: loads of adjacent words of shared memory become one of 8 or 16 bytes, as in ptxas (measured: LDS.64
and LDS.128 if the base is known to be aligned).

Pre: a function at level `ori`. Post: the same values; the wide load is where the first of its words was loaded, copies
replace the others. Words are joined only within a block, if nothing between them may write shared memory, nothing
writes the base, and they are close enough not to keep many registers live.
"""

from __future__ import annotations

from itertools import pairwise

from ir_format import isa
from ir_format.flow import is_guarded, written_regs
from ir_format.isa import facts
from ir_format.model import ZERO, Function, Inst, Mem, Reg
from ir_format.typed import Final
from stages.analysis.dependences import WALLS, fences
from stages.optimize.analyses import Analyses
from stages.optimize.scalar.combine import Combiner
from stages.optimize.scalar.dce import remove_dead_code
from stages.optimize.scalar.known_bits import known_bits
from stages.plumbing.runner import Context

_NEAR: Final = 24  # instructions from the first word's load to the last one's
#: Accesses that do not write shared memory.
_QUIET: Final = facts.known_accesses() - facts.writing("shared", "generic")
_SHIFT: Final = {"": 0, "X4": 2, "X8": 3, "X16": 4}

Found = tuple[int, int, Inst]  # offset, place, load


def vectorize_loads(f: Function, a: Analyses) -> None:
    """The pass."""
    if any(sum(i.op == "LDS" for i in b.insts) > 1 for b in f.blocks) and _Joiner(f, a.ctx).run():
        from stages.optimize.scalar.rules import RULES

        Combiner(f, a.ctx, RULES).run()  # readers take the words from where they are
        remove_dead_code(f, a)


class _Joiner:
    """One function."""

    def __init__(self, f: Function, ctx: Context) -> None:
        self.f = f
        self.ctx = ctx
        self.target = isa.target(ctx.header.target)
        self.facts = Combiner(f, ctx, {})
        self.joined = 0

    def run(self) -> bool:
        """Walk the blocks; whether anything was joined."""
        for b in self.f.blocks:
            if sum(i.op == "LDS" for i in b.insts) < 2:
                continue
            before: dict[int, list[Inst]] = {}
            copies: dict[int, Inst] = {}
            seen: dict[Mem, list[Found]] = {}
            for n, i in enumerate(b.insts):
                where = self._word(i)
                if where is None and (
                    fences(i)
                    or i.op in WALLS
                    or (i.op not in _QUIET and any(type(o) is Mem for o in (*i.dsts, *i.srcs)))
                ):
                    self._flush(seen, before, copies)
                if where is not None:
                    seen.setdefault(where._replace(offset=0), []).append((where.offset, n, i))
                for r in written_regs(i):
                    gone = [
                        key
                        for key in seen
                        if (key.base is not None and key.base.num == r.num)
                        or (key.ubase is not None and key.ubase.num == r.num)
                    ]
                    if gone:
                        self._flush({key: seen.pop(key) for key in gone}, before, copies)
            self._flush(seen, before, copies)
            if before:
                b.insts = [x for n, i in enumerate(b.insts) for x in (*before.get(n, ()), copies.get(n, i))]
        return self.joined > 0

    def _word(self, i: Inst) -> Mem | None:
        """The address of a load of one word that may be joined with others."""
        if i.op != "LDS" or i.mods not in ((), ("U",)) or is_guarded(i) or i.attrs:
            return None
        where, d = i.srcs[0], i.dsts[0]
        if type(where) is not Mem or where.sym or type(d) is not Reg or d.num == ZERO or d.width != 1:
            return None
        if where.base is not None and where.base.num == d.num:
            return None
        return where

    def _flush(self, seen: dict[Mem, list[Found]], before: dict[int, list[Inst]], copies: dict[int, Inst]) -> None:
        """Join what has been seen, widest first."""
        for key, loads in seen.items():
            if len(loads) < 2:
                continue
            aligned = self._aligned(key)
            left = sorted(loads, key=lambda x: x[:2])
            for words in (4, 2):
                if aligned < 4 * words:
                    continue
                at = {offset: (offset, n, i) for offset, n, i in reversed(left)}
                for offset, _, _ in left:
                    if offset % (4 * words):
                        continue
                    group = [at[offset + 4 * k] for k in range(words) if offset + 4 * k in at]
                    places = [n for _, n, _ in group]
                    if len(group) == words and max(places) - min(places) <= _NEAR and self.ctx.allow():
                        self._join(key, group, before, copies)
                        for o, _, _ in group:
                            del at[o]
                left = [x for x in left if x[0] in at and at[x[0]][1] == x[1]]
            if self.ctx.remarks is not None:
                self._missed(aligned, left)
        seen.clear()

    def _missed(self, aligned: int, left: list[Found]) -> None:
        """Say of neighbours that were not joined why not."""
        for (offset, n, i), (more, m, _) in pairwise(left):
            if more != offset + 4:
                continue
            if aligned < 8:
                name, why = "Alignment", f"its base is only known to be a multiple of {aligned}"
            elif offset % 8:
                name, why = "Alignment", f"its offset {offset} is no multiple of 8"
            elif abs(n - m) > _NEAR:
                name, why = "FarApart", f"{abs(n - m)} instructions lie between it and its neighbour, more than {_NEAR}"
            else:
                continue
            self._say("missed", name, i, f"load not vectorized because {why}")

    def _say(self, kind: str, name: str, i: Inst, message: str) -> None:
        d = i.dsts[0]
        value = self.f.vregs[d.num].name or "?" if type(d) is Reg and d.num >= 0 else ""
        self.ctx.remark(kind, "load-vectorize", name, self.f.name, i.line, message, value)

    def _aligned(self, key: Mem) -> int:
        """A power of two, at most 16, that divides the address without its offset."""
        out = 16
        for r in (key.base, key.ubase):
            if r is None or r.num == ZERO:
                continue
            zero = (
                known_bits(self.facts, r._replace(mod=""))[0] << _SHIFT.get(r.mod, 0) | (1 << _SHIFT.get(r.mod, 0)) - 1
            )
            low = 1
            while low < 16 and zero & low:
                low <<= 1
            out = min(out, low)
        return out

    def _join(self, key: Mem, group: list[Found], before: dict[int, list[Inst]], copies: dict[int, Inst]) -> None:
        """One load for words that follow one another."""
        words = len(group)
        first = min(group, key=lambda x: x[1])
        wide = self.f.new_vreg("R", words)
        mods = (*first[2].mods, "64" if words == 2 else "128")
        dsts, srcs = self.target.complete("LDS", mods, (wide,), (key._replace(offset=group[0][0]),))
        before.setdefault(first[1], []).append(Inst("LDS", mods, dsts, srcs, None, first[2].line, first[2].loc))
        for k, (_, n, i) in enumerate(group):
            copies[n] = Inst("COPY", (), (i.dsts[0],), (wide._replace(sub=k, width=1),), None, i.line, i.loc)
        self.joined += 1
        self.ctx.count("loads joined", words)
        if self.ctx.remarks is not None:
            self._say("passed", "Vectorized", first[2], f"{words} loads of neighbouring words became one")
