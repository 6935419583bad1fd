"""Reads of undefined words at level `ori`: words that no definition reaches, or only UNDEF.

The allocator, and therefore its checker, may use any register for an undefined word, so both accept a wrong UNDEF of an
earlier stage. Here a stream is judged by itself, and the output of `optimize` against its input: a word that is defined
there and may be undefined here.

Forward dataflow over cells (:mod:`ir_format.flow`). For every cell that may be undefined the state has the predicates
of which one must be true for it to be defined (`UNDEF t; @P LDG t` defines t if P is true), whether no definition
reaches it on any path, and where it was first read. Undefined values propagate through computations, as in a run-time
memory checker; a finding needs an effect: a store, an address, a guard of a jump, a call. Predicates known from
branches, and what follows from PLOP3 and ISETP.AND, are used, so that `if (p) x = 1; if (p) use(x)` is defined.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from ir_format.flow import Cfg, build_cfg, is_guarded, jump_targets, liveness, operand_regs, read_regs, written_regs
from ir_format.model import INV, ZERO, Block, Function, Imm, Inst, Mem, Reg, Unit
from ir_format.record import NamedTuple, Record, fresh

Literal: TypeAlias = int  # 2 * cell of a predicate, plus 1 if it is negated
_MOST: Final = 8  # predicates of a condition that are kept
_VISITS: Final = 100  # of a block; conditions are cut short, so convergence is not guaranteed


class Missing(NamedTuple):
    """A cell that may be undefined. ``unless``: one of these literals defines it; ``surely``: no definition reaches it;
    ``origin``: the PTX line and the text of the first read; ``made``: an UNDEF says so, not only a path from
    the entry."""

    unless: frozenset[Literal]
    surely: bool
    origin: tuple[int, str]
    made: bool = False


class Finding(Record, frozen=True):
    """An effect that depends on an undefined word. ``surely``: on every path; ``made``: an UNDEF reaches it."""

    function: str
    line: int
    op: str
    surely: bool
    made: bool
    origin: tuple[int, str]

    def __str__(self) -> str:
        line, what = self.origin
        text = f"{self.function}: line {self.line}: {self.op} depends on {what}"
        if line != self.line:
            text += f" (read at line {line})"
        return text + (", which nothing defines" if self.surely else ", which is undefined on some paths")


class _State(Record):
    """The state at one place. ``facts``: true literals; ``follows``: literal -> literals that it implies."""

    missing: dict[int, Missing] = fresh(default_factory=dict)
    facts: set[Literal] = fresh(default_factory=set)
    follows: dict[Literal, frozenset[Literal]] = fresh(default_factory=dict)

    def copy(self) -> _State:
        """One to change."""
        return _State(dict(self.missing), set(self.facts), dict(self.follows))

    def closure(self, more: Literal = -1) -> set[Literal]:
        """All true literals, with one more assumed."""
        work = [*self.facts] if more < 0 else [*self.facts, more]
        out: set[Literal] = set()
        while work:
            x = work.pop()
            if x not in out:
                out.add(x)
                work += self.follows.get(x, ())
        return out


class _Walker:
    """The dataflow of one function."""

    def __init__(self, f: Function) -> None:
        self.f = f
        self.cfg = build_cfg(f)
        live = liveness(f, self.cfg, clip=False)
        self.cells = live.cells
        self.live_out = [live.out_cells(n) for n in range(len(f.blocks))]
        self.start = live.in_cells(0) if f.blocks else set()
        self.found: list[Finding] | None = None  # filled in the last iteration
        self._edges: dict[tuple[int, int], _State] = {}

    def run(self) -> list[Finding]:
        """Findings, in the order of the code."""
        cfg: Cfg = self.cfg
        entries: dict[int, _State] = {}
        dirty = set(cfg.rpo)
        visits = dict.fromkeys(cfg.rpo, 0)
        while dirty:
            for pos in cfg.rpo:
                if pos not in dirty:
                    continue
                dirty.discard(pos)
                visits[pos] += 1
                if visits[pos] > _VISITS:
                    continue
                state = self._entry(pos)
                entries[pos] = state
                for succ in self._block(pos, state.copy()):
                    dirty.add(succ)
        self.found = []
        for pos in sorted(entries):
            self._block(pos, entries[pos])
        return self.found

    # ------------------------------------------------------------------ states

    def _entry(self, pos: int) -> _State:
        states = [s for p in self.cfg.preds[pos] if (s := self._edges.get((p, pos))) is not None]
        if pos == 0:
            fixed = [v.fixed >= 0 for v in self.f.vregs]
            owner = self.cells.owner
            start = {
                c: Missing(frozenset(), True, self._origin(c))
                for c in self.start
                if not fixed[owner[c][0]] and self.f.vregs[owner[c][0]].file != "B"
            }
            states.append(_State(start))
        return _join(states)

    def _origin(self, cell: int) -> tuple[int, str]:
        number, part = self.cells.owner[cell]
        v = self.f.vregs[number]
        return 1 << 30, f"{v.name or f'{v.file.lower()}{number}'}{f'[{part}]' if v.width > 1 else ''}"

    def _propagate(self, pos: int, to: int, state: _State, fact: Literal) -> bool:
        """Pass the state along an edge on which ``fact`` is true; whether it changed."""
        alive = self.live_out[pos]
        holds = state.closure(fact)
        missing = {c: m for c, m in state.missing.items() if c in alive and not m.unless & holds}
        new = _State(
            missing, {x for x in holds if x >> 1 in alive}, {k: v for k, v in state.follows.items() if k >> 1 in alive}
        )
        if self._edges.get((pos, to)) == new:
            return False
        self._edges[pos, to] = new
        return True

    def _block(self, pos: int, state: _State) -> list[int]:
        """Walk a block; the successors whose input changed."""
        block: Block = self.f.blocks[pos]
        for i in block.insts:
            self._inst(i, state)
        last = block.insts[-1] if block.insts else None
        guard = self._literal(last.guard) if last is not None and last.guard is not None and is_guarded(last) else -1
        jumps = {self.cfg.index[b] for b in jump_targets(last)} if last is not None else set()
        out = []
        for succ in self.cfg.succs[pos]:
            falls = succ == pos + 1
            fact = -1 if guard < 0 or (falls and succ in jumps) else guard ^ (1 if succ not in jumps else 0)
            if self._propagate(pos, succ, state, fact):
                out.append(succ)
        return out

    def _literal(self, r: Reg | None) -> Literal:
        """A predicate operand as a literal; -1 for PT."""
        if r is None or r.num == ZERO:
            return -1
        return 2 * self.cells.first(r) + bool(r.flags & INV)

    # ------------------------------------------------------------------ instructions

    def _inst(self, i: Inst, state: _State) -> None:
        first = self.cells.first
        written = [r for r in written_regs(i) if r.file != "B"]
        targets = [c for r in written for c in range(first(r), first(r) + r.width)]
        if i.op == "UNDEF":
            for c in targets:
                state.missing[c] = Missing(frozenset(), True, self._origin(c), True)
            self._forget(targets, state)
            return
        lit = self._literal(i.guard) if is_guarded(i) else -1
        holds = state.closure(lit) if state.missing else set()
        bad = self._undefined_reads(i, state, holds) if state.missing else None
        if bad is not None and self._has_effect(i):
            if self.found is not None:
                self.found.append(Finding(self.f.name, i.line, i.op, bad.surely, bad.made, bad.origin))
            bad = None
        if not targets:
            return
        if i.op == "SHFL" and bad is not None and not bad.surely:
            bad = None  # another thread's value, which may be defined when this one's is not
        if i.op in ("COPY", "PCOPY") and i.attrs is None and len(i.dsts) == len(i.srcs) and bad is not None:
            news = self._copied(i, state, holds)
        else:
            news = dict.fromkeys(targets, bad)
        if lit >= 0:
            news = {c: _either(m, state.missing.get(c), lit, holds) for c, m in news.items()}
        follows = self._follows(i) if lit < 0 else {}
        self._forget(targets, state)
        for c, m in news.items():
            if m is None:
                state.missing.pop(c, None)
            else:
                state.missing[c] = m._replace(unless=frozenset(x for x in m.unless if x >> 1 not in targets))
        state.follows.update(follows)
        if i.op == "COPY" and lit < 0:
            for d, o in zip(i.dsts, i.srcs, strict=False):
                if type(d) is Reg and type(o) is Reg and d.file in ("P", "UP") and d.num != ZERO and o.num == ZERO:
                    state.facts.add(2 * first(d) + bool(o.flags & INV))

    def _undefined_reads(self, i: Inst, state: _State, holds: set[Literal]) -> Missing | None:
        """The instruction's reads that may be undefined when it executes, combined."""
        if i.op == "SEL" and type(i.srcs[2]) is Reg:
            test = self._literal(i.srcs[2])
            arms = [
                self._use(i, state, r, holds | ({test ^ n} if test >= 0 else set()))
                for n, o in enumerate(i.srcs[:2])
                for r in operand_regs(o)
            ]
            return _combined([*arms, *(self._use(i, state, r, holds) for r in read_regs(i) if r.file in ("P", "UP"))])
        return _combined([self._use(i, state, r, holds) for r in read_regs(i)])

    def _use(self, i: Inst, state: _State, r: Reg, holds: set[Literal]) -> Missing | None:
        """Whether one operand may be undefined. Of consecutive uniform registers some may be unused (descriptors of a
        product whose other factor is in registers)."""
        at = self.cells.first(r)
        words = [m for c in range(at, at + r.width) if (m := state.missing.get(c)) is not None and not m.unless & holds]
        if not words or (r.file == "UR" and len(words) < r.width) or r.file == "B":
            return None
        out = _combined(list(words))
        assert out is not None
        return out if out.origin[0] < 1 << 30 else out._replace(origin=(i.line, out.origin[1]))

    def _copied(self, i: Inst, state: _State, holds: set[Literal]) -> dict[int, Missing | None]:
        """Word by word: in a copy of a pair whose upper half is undefined, the lower half is defined."""
        out: dict[int, Missing | None] = {}
        first = self.cells.first
        for d, s in zip(i.dsts, i.srcs, strict=True):
            if type(d) is not Reg or d.num == ZERO:
                continue
            for n in range(d.width):
                part = (
                    s._replace(sub=s.sub + n, width=1) if type(s) is Reg and s.num != ZERO and s.width == d.width else s
                )
                out[first(d) + n] = self._use(i, state, part, holds) if type(part) is Reg and part.num != ZERO else None
        return out

    @staticmethod
    def _has_effect(i: Inst) -> bool:
        """Whether anything but registers depends on what the instruction reads."""
        return not written_regs(i) or bool(i.uses) or any(type(o) is Mem for o in (*i.dsts, *i.srcs))

    def _forget(self, targets: list[int], state: _State) -> None:
        """Drop facts about predicates that are written."""
        gone = {2 * c + n for c in targets for n in (0, 1)}
        if not gone.isdisjoint(state.facts):
            state.facts -= gone
        for k in [k for k, v in state.follows.items() if k in gone or not gone.isdisjoint(v)]:
            kept = state.follows.pop(k) - gone
            if kept and k not in gone:
                state.follows[k] = kept
        for c, m in state.missing.items():
            if m.unless and not gone.isdisjoint(m.unless):
                state.missing[c] = m._replace(unless=m.unless - gone)

    def _follows(self, i: Inst) -> dict[Literal, frozenset[Literal]]:
        """What a predicate written by the instruction implies about predicates that it reads."""
        outs = [d for d in i.dsts if type(d) is Reg and d.file in ("P", "UP") and d.num != ZERO]
        if not outs:
            return {}
        ins = [s for s in i.srcs if type(s) is Reg and s.file in ("P", "UP")]
        lits = [self._literal(s) for s in ins]
        if any(self.cells.first(d) == x >> 1 for d in outs for x in lits if x >= 0):
            return {}
        out: dict[Literal, frozenset[Literal]] = {}
        if i.op in ("COPY", "PCOPY") and len(i.dsts) == len(i.srcs) == 1 and lits and lits[0] >= 0:
            p = 2 * self.cells.first(outs[0])
            out = {
                p: frozenset((lits[0],)),
                p + 1: frozenset((lits[0] ^ 1,)),
                lits[0]: frozenset((p,)),
                lits[0] ^ 1: frozenset((p + 1,)),
            }
        elif i.op in ("PLOP3", "UPLOP3") and len(ins) == 3:
            for d, o in zip(i.dsts, i.srcs[3:], strict=False):
                if type(d) is Reg and d.num != ZERO and type(o) is Imm:
                    out |= _table(2 * self.cells.first(d), o.value, ins, lits)
        elif lits and lits[0] >= 0 and ("AND" in i.mods or "OR" in i.mods):
            n = int("AND" not in i.mods)  # p = test and x: x if p is true; p = test or x: not x if p is false
            out = {2 * self.cells.first(d) + n: frozenset((lits[0] ^ n,)) for d in outs}
        return out


def _table(p: Literal, lut: int, ins: list[Reg], lits: list[Literal]) -> dict[Literal, frozenset[Literal]]:
    """The implications of a bit of a truth table of three literals. Constant predicates of the operand select only
    their rows."""
    out: dict[Literal, frozenset[Literal]] = {}
    always = [None if x >= 0 else not r.flags & INV for x, r in zip(lits, ins, strict=True)]
    rows = [n for n in range(8) if all(w is None or bool(n >> 2 - k & 1) == w for k, w in enumerate(always))]
    for value in (1, 0):
        mine = [n for n in rows if lut >> n & 1 == value]
        said = [
            x ^ (0 if mine[0] >> 2 - k & 1 else 1)
            for k, x in enumerate(lits)
            if mine and x >= 0 and len({n >> 2 - k & 1 for n in mine}) == 1
        ]
        if said:
            out[p + 1 - value] = frozenset(said)
    return out


def _combined(all_: list[Missing | None]) -> Missing | None:
    """Undefined if any is."""
    some = [m for m in all_ if m is not None]
    if len(some) < 2:
        return some[0] if some else None
    return Missing(
        frozenset.intersection(*(m.unless for m in some)),
        any(m.surely for m in some),
        min(m.origin for m in some),
        any(m.made for m in some),
    )


def _either(new: Missing | None, old: Missing | None, lit: Literal, holds: set[Literal]) -> Missing | None:
    """A word written if ``lit`` is true: the new value then, the old one otherwise."""
    if old is None:
        return None if new is None else Missing(frozenset((*new.unless, lit ^ 1)), False, new.origin, new.made)
    if new is None:
        if lit ^ 1 in old.unless:
            return None
        return Missing(frozenset((*sorted(old.unless)[: _MOST - 1], lit)), False, old.origin, old.made)
    return Missing(
        new.unless & old.unless, new.surely and old.surely, min(new.origin, old.origin), new.made or old.made
    )


def _join(states: list[_State]) -> _State:
    """The state where paths merge."""
    if len(states) == 1:
        return states[0].copy()
    if not states:
        return _State()
    facts = set.intersection(*(s.facts for s in states))
    follows = {
        k: v
        for k in states[0].follows
        if (v := frozenset.intersection(*(s.follows.get(k, frozenset()) for s in states)))
    }
    missing: dict[int, Missing] = {}
    for c in sorted(set().union(*(s.missing for s in states))):
        mine = [(s, s.missing.get(c)) for s in states]
        some = [m for _, m in mine if m is not None]
        wanted = {x for m in some for x in m.unless} | {x ^ 1 for s, m in mine if m is not None for x in s.facts}
        unless = [x for x in sorted(wanted) if all(m is None or x in m.unless or x ^ 1 in s.facts for s, m in mine)]
        surely = len(some) == len(states) and all(m.surely for m in some)
        missing[c] = Missing(frozenset(unless[:_MOST]), surely, min(m.origin for m in some), any(m.made for m in some))
    return _State(missing, facts, follows)


def undefined_reads(unit: Unit) -> list[Finding]:
    """Effects that depend on words that are undefined on some path (``surely``: on all)."""
    return [x for f in unit.functions for x in _Walker(f).run()]


def surely_undefined(unit: Unit) -> Iterator[Finding]:
    """Effects that depend on words that nothing defines, each reported once. Arguments and results of calls may
    have words of padding."""
    return iter(dict.fromkeys(x for x in undefined_reads(unit) if x.surely and x.op not in ("CALL", "RET")))


def newly_undefined(before: Unit, after: Unit, doubts: bool = False) -> Iterator[Finding]:
    """Effects of ``after`` that depend on undefined words when those of the same PTX line in ``before`` do not: by an
    UNDEF, or on every path. ``doubts``: instead of these, effects that are undefined only on a path from the entry: for
    unrolled loops the optimizer may know by arithmetic that one of the copies executes an iteration."""
    known = {(x.function, x.line) for x in undefined_reads(before)}
    return iter(
        dict.fromkeys(
            x for x in undefined_reads(after) if (x.function, x.line) not in known and (x.made or x.surely) != doubts
        )
    )
