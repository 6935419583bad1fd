"""Redundant memory accesses: loads of values that were loaded or stored before (load CSE, store-to-load forwarding),
stores that are overwritten (dead stores).

Pre: a function in SSA form. Post: the same contents of memory at every point at which another thread may read it in
order; COPYs in place of loads.

Every block has a version of each address space: that of all its predecessors if they agree, else a new one, and another
new one after each instruction that may write the space. Known contents are passed down the dominator tree. Within
chains of blocks an access is compared with each write; at a join the contents stay known as long as the version is
that at the end of the dominator.

Aliases: accesses of different spaces do not (generic ones alias all); accesses of one space do not where base registers
are the same value and the bytes are disjoint, or where both are offsets of different symbols. Read-only loads (.nc) see
no store of the kernel. Volatile, relaxed and stronger accesses, atomics, fences, barriers, calls and whatever is not
known are neither removed nor crossed: after them nothing is known, and no store before them is dead.
"""

from __future__ import annotations

from collections.abc import Hashable

from ir_format.flow import ENDS, Cfg, is_guarded, written_regs
from ir_format.isa import facts
from ir_format.model import RZ, ZERO, Function, Inst, Mem, Operand, Reg
from ir_format.record import NamedTuple
from ir_format.typed import Final
from stages.analysis.dependences import fences, is_wall, ordered
from stages.optimize.analyses import Analyses
from stages.optimize.ssa.webs import has_ties
from stages.optimize.values import FREE, OPAQUE, PURE, Values

_LOADS: Final = {op: space for op, space in facts.loads().items() if op not in facts.having("convergent")}
_STORES: Final = {op: space for op, space in facts.stores().items() if op not in facts.having("convergent")}
_PLAIN: Final = _LOADS.keys() | _STORES.keys()
_SPACES: Final = ("global", "shared", "local", "generic")
#: Bytes of an access by modifier; four without one.
_SIZES: Final = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}
#: What neither touches memory nor orders it.
_CONTROL: Final = facts.with_value("ctl", "branch", "exit", "bssy", "bsync")
_QUIET: Final = (
    PURE
    | _CONTROL
    | facts.having("sreg")
    | facts.with_value("effect", "warp", "state", "hint")
    - facts.having("fence")
    - facts.having("wall")
    - facts.having("protocol")
    - facts.reading(*_SPACES, "tensor")
    - facts.writing(*_SPACES, "tensor")
)
#: A value further back is loaded again: it would occupy a register for longer than a load takes (guessed; executed
#: cycles of kernels with long blocks would tell).
_FAR: Final = 160
_MOST: Final = 48  # places that are remembered at once: keeps a block's work linear

Base = tuple[str, object]  # address space, what the address is apart from its offset


class Access(NamedTuple):
    """``data``: the operand loaded to or stored from. ``words``: how many registers, 0 where it is less than one.
    ``how``: modifiers and other operands."""

    base: Base
    offset: int
    size: int
    data: Operand
    words: int
    how: Hashable
    load: bool


class _Known(NamedTuple):
    """A word of memory, or a narrow one read in one way (``how``): its value, and the instruction count at which it was
    last used."""

    value: Operand
    how: Hashable
    size: int
    at: int


State = dict[str, dict[tuple[object, int], _Known]]  # space -> (base, offset) -> what is there


def quiet(i: Inst) -> bool:
    """Whether an instruction neither touches memory nor orders accesses."""
    if i.attrs is None and i.op in PURE:
        return True
    if i.op == "PHI":
        return True
    if i.op not in _QUIET or fences(i) or (i.attrs is not None and "warp" in i.attrs):
        return False
    return i.op in _CONTROL or not is_wall(i)


def access_of(i: Inst) -> Access | None:
    """The plain access that an instruction makes; None for any other instruction, also for volatile and stronger
    accesses."""
    space = _LOADS.get(i.op)
    load = space is not None
    if space is None:
        space = _STORES.get(i.op)
    if space is None or ordered(i) or i.defs or (i.uses and not has_ties(i)) or (i.attrs):
        return None
    operands = (*i.dsts, *i.srcs)
    where = next((o for o in operands if type(o) is Mem), None)
    data = [o for o in (i.dsts if load else i.srcs) if type(o) is Reg and o.file == "R"]
    rest = tuple(o for o in operands if type(o) is not Mem and not (type(o) is Reg and o.file == "R"))
    if type(where) is not Mem or len(data) != 1 or any(type(o) is Reg and o.num != ZERO for o in rest):
        return None
    d = data[0]
    size = 4
    for m in i.mods:
        size = _SIZES.get(m, size)
    if d.num != ZERO and d.width * 4 != max(4, size) or d.mod or d.flags:
        return None
    return Access((space, where._replace(offset=0)), where.offset, size, d, size // 4, (i.mods, rest), load)


def remove_redundant_loads(f: Function, a: Analyses) -> bool:
    """The pass: load CSE and store-to-load forwarding."""
    if sum(i.op in _LOADS for b in f.blocks for i in b.insts) == 0:
        return False
    return _Loads(f, a).run()


class _Loads:
    """The walk down the dominator tree."""

    def __init__(self, f: Function, a: Analyses) -> None:
        self.f = f
        self.ctx = a.ctx
        self.values: Values = a.values
        self.cfg = a.cfg
        self.idom = a.idom
        self.fixed: set[int] | None = None  # fixed registers that only the entry block writes
        self.now: State = {}
        self.count = 0
        self.pos = 0  # the current block
        self.changed = False

    def run(self) -> bool:
        """Whether a load was replaced."""
        cfg, idom = self.cfg, self.idom
        versions = _versions(self.f, cfg)
        ends: dict[int, State] = {}
        for pos in cfg.rpo:
            up = idom[pos]
            if up == pos or up not in ends:
                self.now = {s: {} for s in _SPACES}
            else:
                same = cfg.preds[pos] == (up,)
                self.now = {
                    s: dict(ends[up][s]) if same or versions[pos][0][s] == versions[up][1][s] else {} for s in _SPACES
                }
            self.pos = pos
            self._block(pos)
            ends[pos] = self.now
        return self.changed

    def _block(self, pos: int) -> None:
        block = self.f.blocks[pos]
        entry = pos == self.cfg.rpo[0]
        out: list[Inst] = []
        for i in block.insts:
            self.count += 1
            access = access_of(i) if i.op in _PLAIN else None
            if access is None:
                if (i.op not in PURE or i.attrs is not None) and not quiet(i):
                    self._forget(i)
                out.append(i)
            elif access.load:
                out += self._load(i, access)
            else:
                self._store(i, access)
                out.append(i)
            if entry:
                self._overwritten(i)
        block.insts = out

    def _forget(self, i: Inst) -> None:
        """An instruction that may write anything; read-only data it does not."""
        for s in _SPACES:
            self.now[s] = {k: v for k, v in self.now[s].items() if _read_only(v.how)} if i.op != "CALL" else {}

    def _overwritten(self, i: Inst) -> None:
        """The base register of what is known is written: only registers that are no values are, in the entry block."""
        for r in written_regs(i):
            if self.values.value[r.num] == OPAQUE:
                for s in _SPACES:
                    known = self.now[s]
                    for key in [k for k in known if _names(k[0], r.num)]:
                        del known[key]

    def _stable(self, base: object) -> bool:
        """Whether an address means the same wherever it is read: made of values, or of registers that the entry block
        alone writes."""
        assert type(base) is Mem
        for r in (base.base, base.ubase):
            if r is not None and r.num != ZERO and self.values.value[r.num] == OPAQUE:
                if self.fixed is None:
                    self.fixed = _written_at_entry(self.f, self.cfg.rpo[0])
                if r.num not in self.fixed:
                    return False
        return True

    def _free(self, o: Operand) -> bool:
        return type(o) is Reg and (o.num == ZERO or self.values.value[o.num] == FREE)

    def _load(self, i: Inst, x: Access) -> list[Inst]:
        known = self.now[x.base[0]]
        words = [self._find(known, x, n) for n in range(max(1, x.words))]
        d = x.data
        if d != RZ and type(d) is Reg and d.num != ZERO and all(w is not None for w in words) and self.ctx.allow():
            self.ctx.count("loads replaced")
            self.changed = True
            out = []
            for n, w in enumerate(words):
                assert w is not None
                part = d._replace(sub=d.sub + n, width=1)
                old = [o._replace(sub=part.sub, width=1) for o in i.uses if type(o) is Reg and _holds(o, part.sub)]
                out.append(Inst("COPY", (), (part,), (w,), i.guard, i.line, i.loc, None, tuple(old)))
            self.values.remove(i)
            for new in out:
                self.values.add(new, self.pos)
            return out
        if not is_guarded(i) and self._free(d) and self._stable(x.base[1]):
            self._note(x, d, x.how if not x.words else ("CONSTANT" in i.mods,))
        return [i]

    def _find(self, known: dict[tuple[object, int], _Known], x: Access, n: int) -> Operand | None:
        got = known.get((x.base[1], x.offset + 4 * n))
        if got is None or self.count - got.at > _FAR:
            return None
        if x.words:
            constant = "CONSTANT" in x.how[0]  # type: ignore[index]
            return got.value if got.size == 4 and (got.how == (False,) or constant) else None
        return got.value if got.how == x.how else None

    def _note(self, x: Access, d: Operand, how: object) -> None:
        known = self.now[x.base[0]]
        for n in range(max(1, x.words)):
            assert type(d) is Reg
            word: Operand = RZ if d.num == ZERO else d._replace(sub=d.sub + n, width=1)
            known[x.base[1], x.offset + 4 * n] = _Known(word, how, min(4, x.size), self.count)
        while len(known) > _MOST:
            del known[next(iter(known))]

    def _store(self, i: Inst, x: Access) -> None:
        for s in aliased(x.base[0]):
            known = self.now[s]
            for key, v in list(known.items()):
                if not _read_only(v.how) and not disjoint(x, s, key[0], key[1], v.size):
                    del known[key]
        if x.words and not is_guarded(i) and self._free(x.data) and self._stable(x.base[1]):
            self._note(x, x.data, (False,))


def _holds(r: Reg, lane: int) -> bool:
    return r.sub <= lane < r.sub + r.width


def _read_only(how: object) -> bool:
    """Whether a value came by a read-only load."""
    if how == (True,):
        return True
    return type(how) is tuple and len(how) == 2 and type(how[0]) is tuple and "CONSTANT" in how[0]


def aliased(space: str) -> tuple[str, ...]:
    """The spaces that an access of a space may touch."""
    return _SPACES if space == "generic" else (space, "generic")


def disjoint(x: Access, space: str, base: object, offset: int, size: int) -> bool:
    """Whether an access touches none of ``size`` bytes at ``base`` + ``offset``."""
    if space != x.base[0]:
        return False
    mine = x.base[1]
    if mine == base:
        return x.offset + x.size <= offset or offset + size <= x.offset
    assert type(mine) is Mem and type(base) is Mem
    return bool(mine.sym and base.sym and mine.sym != base.sym) and all(
        r is None or r.num == ZERO for r in (mine.base, mine.ubase, base.base, base.ubase)
    )


def _names(base: object, num: int) -> bool:
    assert type(base) is Mem
    return any(r is not None and r.num == num for r in (base.base, base.ubase))


def _written_at_entry(f: Function, entry: int) -> set[int]:
    """Fixed registers that only the entry block writes: the stack pointer."""
    found = {n for n, v in enumerate(f.vregs) if v.fixed >= 0 and v.file == "R"}
    for pos, b in enumerate(f.blocks):
        if pos != entry:
            for i in b.insts:
                if i.dsts or i.defs:
                    found.difference_update([r.num for r in written_regs(i)])
    return found


Versions = dict[str, int]


def _versions(f: Function, cfg: Cfg) -> list[tuple[Versions, Versions]]:
    """Per block, the version of each space at its start and at its end: numbers of blocks, those of their starts
    below."""
    count = len(f.blocks)
    writes: list[set[str]] = []
    for b in f.blocks:
        found: set[str] = set()
        for i in b.insts:
            if i.op in PURE and i.attrs is None:
                continue
            x = access_of(i) if i.op in _PLAIN else None
            if x is None:
                if not quiet(i):
                    found.update(_SPACES)
            elif not x.load:
                found.update(aliased(x.base[0]))
        writes.append(found)
    top = -1  # not known yet
    start = [dict.fromkeys(_SPACES, top) for _ in range(count)]
    end = [dict.fromkeys(_SPACES, top) for _ in range(count)]
    changed = True
    while changed:
        changed = False
        for pos in cfg.rpo:
            for s in _SPACES:
                came = {end[p][s] for p in cfg.preds[pos]} - {top}
                if pos == cfg.rpo[0] or start[pos][s] == 2 * pos or len(came) > 1:
                    new = 2 * pos  # once it is one of its own it stays
                else:
                    new = came.pop() if came else top
                last = 2 * pos + 1 if s in writes[pos] else new
                if new != start[pos][s] or last != end[pos][s]:
                    start[pos][s], end[pos][s] = new, last
                    changed = True
    return list(zip(start, end, strict=True))


# ------------------------------------------------------------------ stores


def remove_dead_stores(f: Function, a: Analyses) -> bool:
    """The pass: stores whose bytes are all stored again before anybody may look; stores to local memory that a kernel
    does not read before it ends."""
    if sum(i.op in _STORES for b in f.blocks for i in b.insts) == 0:
        return False
    changed = False
    for b in f.blocks:
        dead = _dead_stores(f, b.insts, a)
        if dead:
            b.insts = [i for i in b.insts if id(i) not in dead]
            changed = True
    return changed


def _dead_stores(f: Function, insts: list[Inst], a: Analyses) -> set[int]:
    """Identities of dead stores of a block, which is walked from its end."""
    later: dict[Base, list[tuple[int, int, Reg | None]]] = {}  # what is stored again: bytes, and under which guard
    over = False  # the kernel ends: nothing reads local memory any more
    dead: set[int] = set()
    value = a.values.value
    last = insts[-1] if insts else None
    if last is not None and f.kind == "entry" and last.op in ENDS and not is_guarded(last):
        over = True
    for i in reversed(insts):
        x = access_of(i) if i.op in _PLAIN else None
        if x is None:
            if (i.op not in PURE or i.attrs is not None) and not quiet(i):
                later = {}
                over = over and i.op in ENDS
            elif later and any(value[r.num] == OPAQUE for r in written_regs(i)):
                later = {}
            continue
        if x.load:
            over = over and x.base[0] not in ("local", "generic")
            for s in aliased(x.base[0]):
                later = {
                    k: v for k, v in later.items() if k[0] != s or all(disjoint(x, s, k[1], at, n) for at, n, _ in v)
                }
            continue
        found = later.setdefault(x.base, [])
        guard = i.guard if is_guarded(i) else None
        hidden = any(at <= x.offset and x.offset + x.size <= at + n and g in (None, guard) for at, n, g in found)
        if (hidden or (over and x.base[0] == "local")) and a.ctx.allow():
            a.ctx.count("dead stores")
            dead.add(id(i))
            a.values.remove(i)
        elif len(found) < _MOST:
            found.append((x.offset, x.size, guard))
    return dead
