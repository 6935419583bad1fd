"""The order in which a scheduler put the instructions of each block, against the stream that it read. Every register,
and every word of memory with the same name, must get the same value as before.

Both blocks are executed symbolically. A value is the instruction that produced it and the values that it read, so equal
values have equal numbers. Instructions with an effect (stores, barriers, jumps...) must occur as often as before with
the same values; effects that nothing may pass must keep their order, with each access to memory between the same two;
and each cell must end with the same value. Two moves of zero may have become one CS2R. Not judged: accesses of one
space by different registers, which may alias. Written independently of :mod:`stages.schedule`; the facts about
instructions come from the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ir_format.flow import is_guarded, read_regs, written_regs
from ir_format.isa import facts
from ir_format.model import REUSE, RZ, ZERO, Block, Imm, Inst, Mem, Name, Operand, Reg, Unit
from ir_format.text import print_inst

#: Exchanges of values between threads keep their place among the walls, not their order among themselves.
_EXCHANGING: Final = facts.exchanging()
_WALLS: Final = (facts.having("wall") | facts.having("synchronizing")) - _EXCHANGING
_FENCES: Final = facts.having("fence") | facts.having("wall")
_LOADS: Final = facts.loads()
_STORES: Final = facts.stores()
_ATOMICS: Final = facts.atomics()
_PURE: Final = facts.having("pure")
_SIZES: Final = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}
_ZERO: Final = (RZ, Imm("I", 0))
_SHOWN: Final = 100

Cell = tuple[str, int]


def _bare(o: Operand) -> Operand:
    """An operand without its reuse hint."""
    return o._replace(flags=o.flags & ~REUSE) if isinstance(o, Reg) else o


def _cells(regs: Sequence[Reg]) -> list[Cell]:
    return [(r.file, n) for r in regs for n in range(r.num, r.num + r.width)]


def _by_meaning(
    op: str, mods: tuple[str, ...], dsts: tuple[Operand, ...], srcs: tuple[Operand, ...]
) -> tuple[Any, ...]:
    """What identifies an operation. A copy, a sum of two registers or a left shift by a constant may have become a
    product, and the other way round."""
    one = dsts[:1] if all(isinstance(d, Reg) and d.num == ZERO for d in dsts[1:]) else dsts
    if op == "MOV" and not mods and srcs[1:] == (Imm("I", 15),):
        return "copy", one, srcs[0]
    if op == "IMAD" and mods == ("MOV", "U32") and srcs[:2] == (RZ, RZ):
        return "copy", one, srcs[2]
    plain = all(isinstance(s, Reg) and s.num == ZERO for s in srcs[3:])
    if op == "IADD3" and not mods and srcs[2] == RZ and plain:
        return "sum", one, frozenset(Counter(srcs[:2]).items())
    if op == "IMAD" and mods == ("IADD",) and srcs[1] == Imm("I", 1):
        return "sum", one, frozenset(Counter((srcs[0], srcs[2])).items())
    if op == "SHF" and mods == ("L", "U32") and srcs[2] == RZ and isinstance(srcs[1], Imm) and 0 <= srcs[1].value < 32:
        return "product", one, srcs[0], 1 << srcs[1].value
    if op == "IMAD" and mods == ("SHL", "U32") and isinstance(srcs[1], Imm) and srcs[2] == RZ:
        return "product", one, srcs[0], srcs[1].value
    return op, mods, dsts, srcs


class _Run:
    """The symbolic execution of a block. ``ids``: numbers of values, shared by the two runs."""

    def __init__(self, ids: dict[Any, int], texts: dict[int, str]) -> None:
        self.ids = ids
        self.texts = texts
        self.cells: dict[Cell, int] = {}
        self.memory: dict[tuple[Any, ...], int] = {}
        self.effects: Counter[int] = Counter()
        # synchronisation of threads; memory fences: each keep their order
        self.walls: tuple[list[int], list[int]] = [], []
        self.reads: dict[int, list[tuple[Cell, int]]] = {}
        self.fences = 0

    def number(self, what: Any, text: str = "") -> int:
        """The number of a value."""
        found = self.ids.get(what)
        if found is None:
            found = self.ids[what] = len(self.ids)
            if text:
                self.texts[found] = text
        return found

    def cell(self, c: Cell) -> int:
        """The value in a register."""
        found = self.cells.get(c)
        return self.number(("in", c), f"{c[0]}{c[1]} as the block begins") if found is None else found

    def step(self, i: Inst) -> None:
        """Execute one instruction."""
        if i.op == "NOP" and not (i.attrs and "fence" in i.attrs):
            return
        zero = _zeroed(i)
        if zero:
            for c in zero:
                self.cells[c] = self.number("zero", "zero")
            return
        srcs, dsts = tuple(map(_bare, i.srcs)), tuple(map(_bare, i.dsts))
        key = (*_by_meaning(i.op, i.mods, dsts, srcs), i.guard, i.uses, i.defs)
        read = _cells(read_regs(i))
        values = tuple([self.cell(c) for c in read])
        if key[0] == "sum":
            values = tuple(sorted(values))
        written = _cells(written_regs(i))
        old = tuple([self.cell(c) for c in written]) if is_guarded(i) else ()
        space = _LOADS.get(i.op) or _STORES.get(i.op) or _ATOMICS.get(i.op)
        fence = i.op in _FENCES or bool(i.attrs and "fence" in i.attrs)
        seen: tuple[Any, ...] = ()
        places: list[tuple[Any, ...]] = []
        if space is not None:
            places = self._places(i, space)
            seen = (self.fences, *[self.memory.get(p, -1) for p in places])
        elif i.op in _EXCHANGING:
            seen = (len(self.walls[0]),)
        text = print_inst(_without_ctl(i), None)
        made = self.number((key, values, old, seen), text)
        self.reads.setdefault(made, list(zip(read, values)))
        for n, c in enumerate(written):
            self.cells[c] = self.number((made, n), text)
        if i.op in _STORES or i.op in _ATOMICS:
            for p in places:
                self.memory[p] = made
        if i.op in _WALLS:
            self.walls[0].append(made)
        if fence:
            self.walls[1].append(made)
        self.fences += fence
        if i.op not in _PURE and not (i.op in _LOADS and i.op not in _ATOMICS):
            self.effects[made] += 1

    def _places(self, i: Inst, space: str) -> list[tuple[Any, ...]]:
        """The bytes that an access names, as (space, value of the address register, offset)."""
        for o in (*i.dsts, *i.srcs):
            if isinstance(o, Mem):
                base = tuple(
                    [self.cell(c) for r in (o.base, o.ubase) if r is not None and r.num >= 0 for c in _cells([r])]
                )
                size = next((_SIZES[m] for m in i.mods if m in _SIZES), 4)
                return [(space, base, o.sym, o.offset + n) for n in range(size)]
        return []


def _zeroed(i: Inst) -> list[Cell]:
    """The cells that an instruction only sets to zero."""
    if is_guarded(i) or i.uses or i.defs or not i.dsts:
        return []
    d = i.dsts[0]
    if not isinstance(d, Reg) or d.num < 0:
        return []
    if i.op == "MOV" and i.srcs[0] in _ZERO and (len(i.srcs) < 2 or i.srcs[1] == Imm("I", 15)):
        return _cells([d])
    if i.op == "IMAD" and i.mods == ("MOV", "U32") and i.srcs[:2] == (RZ, RZ) and i.srcs[2] in _ZERO:
        return _cells([d])
    return _cells([d]) if i.op == "CS2R" and Name("N", "SRZ") in i.srcs else []


def _without_ctl(i: Inst) -> Inst:
    return Inst(i.op, i.mods, tuple(map(_bare, i.dsts)), tuple(map(_bare, i.srcs)), i.guard)


def check_order(before: Unit, after: Unit) -> Iterator[str]:
    """How the order of ``after`` (level `scheduled`) changes what ``before`` (level `allocated`) computes."""
    old = {f.name: f for f in before.functions}
    new = {f.name: f for f in after.functions}
    for name in (*old, *[n for n in new if n not in old]):
        if name not in old or name not in new:
            yield f"{name}: is in only one of the streams"
            continue
        blocks = {b.id: b for b in new[name].blocks}
        if _held(old[name].blocks) != _held(new[name].blocks):
            yield f"{name}: its blocks differ, or their order does"
            continue
        for b in old[name].blocks:
            if b.insts:
                yield from (f"{name}, block .L{b.id}: {text}" for text in _block(b, blocks[b.id]))


def _held(blocks: Sequence[Block]) -> list[int]:
    """The blocks that are not empty."""
    return [b.id for b in blocks if b.insts]


def _block(before: Block, after: Block) -> Iterator[str]:
    ids: dict[Any, int] = {}
    texts: dict[int, str] = {}
    runs = []
    for block in (before, after):
        run = _Run(ids, texts)
        for i in block.insts:
            run.step(i)
        runs.append(run)
    was, now = runs
    lost, found = was.effects - now.effects, now.effects - was.effects
    twins: dict[str, list[int]] = {}
    for value in lost:
        twins.setdefault(texts[value], []).append(value)
    for value in found:
        same = twins.get(texts[value])
        if same:
            yield f"{texts[value]}: {_why_different(was, same.pop(), now, value)}"
        else:
            yield f"{texts[value]}: it was not there"
    for values in twins.values():
        yield from (f"{texts[v]}: it is gone" for v in values)
    for first, then in zip(was.walls, now.walls):
        if not lost and not found and first != then:
            at = next(n for n, (a, b) in enumerate(zip(first, then)) if a != b)
            yield f"{texts[then[at]]} now precedes {texts[first[at]]}, which it must not pass"
    for c in sorted({*was.cells, *now.cells}):
        a, b = was.cell(c), now.cell(c)
        if a != b:
            yield f"{c[0]}{c[1]} ends as {_what(texts, b)}, not as {_what(texts, a)}"
    for p in was.memory:
        if was.memory[p] != now.memory.get(p, -1) and not lost and not found:
            yield f"the last store to a place is {texts.get(now.memory.get(p, -1), 'none')}, not {texts[was.memory[p]]}"
            break


def _what(texts: dict[int, str], value: int) -> str:
    return f"what `{texts[value]}` makes" if "block begins" not in texts.get(value, "") else texts[value]


def _why_different(was: _Run, old: int, now: _Run, new: int) -> str:
    """Why two executions of one instruction differ: what produced one of its registers, or one of theirs."""
    for _ in range(_SHOWN):
        for (c, a), (_, b) in zip(was.reads.get(old, ()), now.reads.get(new, ())):
            if a != b:
                if now.texts[a] != now.texts[b]:
                    return f"its {c[0]}{c[1]} is {_what(now.texts, b)}, not {_what(now.texts, a)}"
                back = {v: k for k, v in now.ids.items()}
                old, new = (back[v][0] if isinstance(back[v][0], int) else v for v in (a, b))
                break
        else:
            return "its order among memory accesses or barriers has changed"
    return "its values differ"
