"""Strength reduction of pointers, in reverse: under high register pressure, pointers that advance through a loop in
step share one. `base + x * scale` is one IMAD.WIDE from a word that the loop does not change.

A front end that reads rows of a tile keeps a pointer for each row, `p = base + x * scale` before the loop and
`p += step` in it. As long as base, scale and step are the same, `p` is `q + x * scale` at all times, with one pair `q`
that starts at base. So the loop keeps words instead of pairs, and adds once. What else the loop adds to every one of
them (`p + y * size`) goes into q too. Then the words themselves, `(row + k) * pitch` for constants k, become
`first + pitch * k`: one instruction makes any of them again from two that they share
(:mod:`stages.optimize.late.rematerialize`). ptxas does neither: it keeps pairs and spills some.

Pre: a function at level `ori`. Post: the same values; sums and products are modulo 2**64 and 2**32 as before.
"""

from __future__ import annotations

from ir_format.flow import Loop, is_guarded, read_regs, written_regs
from ir_format.model import NOT_PT, PT, RZ, ZERO, Const, Function, Imm, Inst, Operand, Reg, imm
from ir_format.record import NamedTuple
from ir_format.rename import duplicate, fresh_names, rename, renumber_reads
from ir_format.typed import Final
from stages.optimize.analyses import FLOW, Analyses
from stages.optimize.evaluate.operands import value_of
from stages.optimize.late.def_use import Place, insert
from stages.optimize.loops.natural import find_loops, has_loops
from stages.optimize.scalar.dce import remove_dead_code
from stages.optimize.scalar.fold import plain_iadd3, split_terms
from stages.optimize.scalar.known_bits import known_bits
from stages.optimize.values import Lane

_LEAST: Final = 3  # pointers that share one: fewer would only move registers about
_GAP: Final = 24  # instructions between two uses that share one sum


class _Row(NamedTuple):
    """A pointer. ``sums``: what is added to base + x * scale before the loop, as instructions; ``steps``: the
    update in the loop, at ``places``; ``reads``: where the loop reads the pointer otherwise."""

    pair: Reg
    x: Reg
    scale: int
    mods: tuple[str, ...]
    base: Operand
    start: Inst
    sums: tuple[Inst, ...]
    steps: tuple[Inst, ...]
    places: tuple[Place, ...]
    reads: tuple[Place, ...]


def share_pointers(f: Function, a: Analyses) -> bool:
    """The pass."""
    if sum(v.width for v in f.vregs if v.file == "R") <= a.room or not has_loops(f) or not _some(f):
        return False
    if not a.short or not _Sharer(f, a).run(set(a.short)):
        return False
    a.keep(FLOW)
    remove_dead_code(f, a)
    return True


def _some(f: Function) -> bool:
    """Whether there may be enough pointers; quick: pairs that grow by a constant."""
    grow = 0
    for block in f.blocks:
        for i in block.insts:
            if (
                i.op in ("IADD3", "IADD")
                and i.srcs[0] == i.dsts[0]
                and type(i.srcs[1]) is Imm
                and i.dsts[-2 if i.op == "IADD3" else 0] != PT
                and not is_guarded(i)
            ):
                grow += 1
    return grow >= _LEAST


class _Sharer:
    """One function."""

    def __init__(self, f: Function, a: Analyses) -> None:
        self.f = f
        self.ctx = a.ctx
        self.values = v = a.values
        self.writers: dict[int, list[tuple[Place, Inst]]] = {}  # of pairs
        pairs = {n for n, r in enumerate(f.vregs) if r.width == 2 and r.file == "R"}
        for pos in v.cfg.rpo:
            for n, inst in enumerate(f.blocks[pos].insts):
                for r in inst.dsts if not inst.defs else written_regs(inst):
                    if type(r) is Reg and r.num in pairs:
                        self.writers.setdefault(r.num, []).append(((pos, n), inst))
        self._readers: dict[int, list[Place]] | None = None
        self._place: dict[int, Place] | None = None
        self.bits: dict[Lane, tuple[int, int]] = {}
        self.before: dict[Place, list[Inst]] = {}
        self.gone: set[int] = set()

    @property
    def readers(self) -> dict[int, list[Place]]:
        """Register -> the places that read it; few functions have a pointer that needs them."""
        found = self._readers
        if found is None:
            found = self._readers = {}
            for pos in self.values.cfg.rpo:
                for n, inst in enumerate(self.f.blocks[pos].insts):
                    for num in {r.num for r in read_regs(inst)}:
                        found.setdefault(num, []).append((pos, n))
        return found

    @property
    def place(self) -> dict[int, Place]:
        """Identity of an instruction with a result -> its place."""
        if self._place is None:
            blocks = self.f.blocks
            self._place = {id(i): (p, n) for p in self.values.cfg.rpo for n, i in enumerate(blocks[p].insts) if i.dsts}
        return self._place

    def run(self, short: set[int]) -> bool:
        """Share the pointers of all loops that reach a block of ``short``; whether there were any."""
        taken: set[int] = set()
        for loop in find_loops(self.f, self.values.cfg):
            if short.isdisjoint(loop.body):
                continue
            groups: dict[object, list[_Row]] = {}
            for num, made in self.writers.items():
                if len(made) > 1 and num not in taken:
                    row = self._row(num, loop)
                    if row is not None:
                        groups.setdefault(self._key(row), []).append(row)
            for rows in groups.values():
                rows = self._together(rows)
                if len(rows) >= _LEAST and self.ctx.allow():
                    self._share(rows, loop)
                    taken.update(r.pair.num for r in rows)
                    self.ctx.count("pointers that share one", len(rows))
        count = self.ctx.rewrites
        self._from_first()
        if not taken and self.ctx.rewrites == count:
            return False
        insert(self.f, self.before, self.gone)
        return True

    def _row(self, num: int, loop: Loop) -> _Row | None:
        """The pointer in register ``num``; None where it is none."""
        v = self.f.vregs[num]
        body = set(loop.body)
        inside = [(at, i) for at, i in self.writers[num] if at[0] in body]
        outside = [(at, i) for at, i in self.writers[num] if at[0] not in body]
        if v.file != "R" or v.fixed >= 0 or not 1 <= len(inside) <= 2 or not 1 <= len(outside) <= 2:
            return None
        pair = Reg("R", num, 0, 2)
        steps = [i for _, i in inside]
        if _constant_sum(steps, pair) != pair:
            return None
        start = [i for _, i in outside]
        if (
            any(is_guarded(i) for i in start)
            or not self.values.dominates(outside[0][0][0], loop.header)
            or outside[0][0][0] != outside[-1][0][0]
        ):
            return None
        sums: list[Inst] = []
        of = _constant_sum(start, pair)
        if of is not None and of.num != num:
            sums = start
            made = self.values.part_of(of.num, 0)
            if (
                made is None
                or not self.values.value[of.num]
                or of.sub
                or self.f.vregs[of.num].width != 2
                or written_regs(made) != [of]
            ):
                return None
            start = [made]
        if len(start) != 1:
            return None
        product = start[0]
        if (
            product.op != "IMAD"
            or product.mods not in (("WIDE",), ("WIDE", "U32"))
            or product.dsts != (pair if not sums else of, PT)
            or product.srcs[3] != NOT_PT
        ):
            return None
        x, scale, base = product.srcs[0], self.constant(product.srcs[1]), product.srcs[2]
        if (
            type(x) is not Reg
            or not self._is_value(x)
            or scale is None
            or not (self._is_value(base, ("R", "UR")) or (type(base) is Const and base.ireg is None and not base.flags))
        ):
            return None
        own = {id(i) for i in (*steps, *sums)}
        reads = [p for p in self.readers.get(num, []) if id(self._at(p)) not in own]
        if not reads or any(pos not in body for pos, _ in reads):
            return None
        return _Row(
            pair,
            x,
            scale,
            product.mods,
            base,
            product,
            tuple(sums),
            tuple(steps),
            tuple(at for at, _ in inside),
            tuple(reads),
        )

    def _at(self, place: Place) -> Inst:
        return self.f.blocks[place[0]].insts[place[1]]

    def _is_value(self, o: Operand, files: tuple[str, ...] = ("R",)) -> bool:
        """Whether an operand is a value of one of the register files."""
        return (
            type(o) is Reg
            and o.file in files
            and o.num != ZERO
            and not o.flags
            and not o.mod
            and bool(self.values.value[o.num])
        )

    def constant(self, o: Operand) -> int | None:
        """The constant that an operand is (:class:`stages.optimize.scalar.known_bits.Facts`)."""
        return self.values.constant(o) if type(o) is Reg and o.num != ZERO else value_of(o)

    def _key(self, row: _Row) -> object:
        """What the pointers of a group have in common."""
        step = tuple(value_of(o) for i in row.steps for o in i.srcs if type(o) is Imm)
        sums = tuple(value_of(o) for i in row.sums for o in i.srcs if type(o) is Imm)
        home = self.place[id(row.sums[0] if row.sums else row.start)][0]
        return (
            row.scale,
            row.mods,
            row.base,
            step,
            sums,
            len(row.sums),
            len(row.steps),
            home,
            row.places[0][0],
            self._more(row),
        )

    def _more(self, row: _Row) -> tuple[object, ...]:
        """(modifiers, y, size) if all that the loop does with the pointer is to add y * size to it; y is where
        the pointers start."""
        found: set[tuple[object, ...]] = set()
        home = self.place[id(row.sums[0] if row.sums else row.start)]
        for p in row.reads:
            i = self._at(p)
            if (
                i.op != "IMAD"
                or i.mods not in (("WIDE",), ("WIDE", "U32"))
                or is_guarded(i)
                or i.dsts[1] != PT
                or i.srcs[2:] != (row.pair, NOT_PT)
            ):
                return ()
            y, size = i.srcs[0], self.constant(i.srcs[1])
            if size is None or type(y) is not Reg or not self._is_value(y):
                return ()
            at = self.place[id(self.values.part_of(y.num, y.sub))]
            if not (at[1] < home[1] if at[0] == home[0] else self.values.dominates(at[0], home[0])):
                return ()
            found.add((i.mods, y, size))
        return found.pop() if len(found) == 1 else ()

    def _together(self, rows: list[_Row]) -> list[_Row]:
        """Those of a group that nothing reads from the first update of any to the last, so that all may be updated at
        once."""
        first = min(at for r in rows for _, at in r.places)
        last = max(at for r in rows for _, at in r.places)
        pos = rows[0].places[0][0]
        return [
            r
            for r in rows
            if all(p != pos or not first <= at <= last for p, at in r.reads) and all(p == pos for p, _ in r.places)
        ]

    def _share(self, rows: list[_Row], loop: Loop) -> None:
        f, before = self.f, self.before
        lead = rows[0]
        shared = f.new_vreg("R", 2, 2, -1, min(f.vregs[r.pair.num].uniform for r in rows), "")
        home = max(self.place[id(i)] for r in rows for i in (r.sums or (r.start,)))
        home = home[0], home[1] + 1
        out = before.setdefault(home, [])
        line, loc = lead.start.line, lead.start.loc
        now: Operand = lead.base
        if type(now) is Const or (type(now) is Reg and now.file == "UR"):
            out.append(Inst("COPY", (), (shared,), (now,), None, line, loc))
            now = shared
        more = self._more(lead)
        if more:
            mods, y, size = more
            sources = (y, imm(size), now, NOT_PT)  # type: ignore[arg-type]
            out.append(Inst("IMAD", mods, (shared, PT), sources, None, line, loc))  # type: ignore[arg-type]
        elif now is not shared:
            out.append(Inst("COPY", (), (shared,), (now,), None, line, loc))
        if lead.sums:
            source = lead.start.dsts[0]
            names = {lead.pair.num: shared.num, source.num: shared.num}  # type: ignore[union-attr]
            out += self._renamed(lead.sums, names)
        for r in rows:
            self.gone.update(id(i) for i in r.steps)
        before.setdefault(lead.places[0], []).extend(self._renamed(lead.steps, {lead.pair.num: shared.num}))
        for r in rows:
            if more:
                for p in r.reads:
                    i = self._at(p)
                    i.mods, i.srcs = r.mods, (r.x, imm(r.scale), shared, NOT_PT)
                continue
            step = lead.places[0]
            last: Place | None = None
            for p in r.reads:
                user = self._at(p)
                if (
                    last is None
                    or last[0] != p[0]
                    or p[1] - last[1] > _GAP
                    or (p[0] == step[0] and last[1] < step[1] < p[1])
                ):
                    new = f.new_vreg("R", 2, 2, -1, f.vregs[r.pair.num].uniform, f.vregs[r.pair.num].name)
                    before.setdefault(p, []).append(
                        Inst("IMAD", r.mods, (new, PT), (r.x, imm(r.scale), shared, NOT_PT), None, user.line, user.loc)
                    )
                last = p
                renumber_reads(user, {r.pair.num: new.num})

    def _renamed(self, insts: tuple[Inst, ...], to: dict[int, int]) -> list[Inst]:
        """Copies of instructions with other registers; what else they write (a carry) has a new name."""
        names = {old: new for old, new in fresh_names(self.f, insts).items() if old not in to} | to
        out = list(map(duplicate, insts))
        for i in out:
            rename(i, lambda r: r._replace(num=names.get(r.num, r.num)))
        return out

    def _from_first(self) -> None:
        """Words `(row + k) * pitch` in one block become `first + pitch * (k - k0)`."""
        groups: dict[tuple[Reg, Operand, int], list[tuple[int, int, Inst]]] = {}
        imads = [
            (pos, at, i)
            for pos in self.values.cfg.rpo
            for at, i in enumerate(self.f.blocks[pos].insts)
            if i.op == "IMAD" and not i.mods
        ]
        for pos, at, made in imads:
            d = made.dsts[0]
            if (
                type(d) is not Reg
                or not self._is_value(d)
                or made.srcs[2] != RZ
                or made.srcs[3:] not in ((), (NOT_PT,))
                or self.f.vregs[d.num].width != 1
            ):
                continue
            for row, pitch in (made.srcs[:2], made.srcs[1::-1]):
                if (
                    type(row) is Reg
                    and self._is_value(row)
                    and row.width == 1
                    and (self._is_value(pitch) or (type(pitch) is Const and pitch.ireg is None and not pitch.flags))
                ):
                    source, k = self._offset(row)
                    groups.setdefault((source, pitch, pos), []).append((at, k, made))
        done: set[int] = set()
        for (_, pitch, pos), found in sorted(
            groups.items(), key=lambda group: -len(group[1])
        ):  # of two ways to see a product the one that others share
            found = sorted([x for x in found if id(x[2]) not in done], key=lambda x: x[0])
            if len({k for _, k, _ in found}) <= _LEAST or not self.ctx.allow():
                continue
            first_at, k0, first = found[0]
            factor = pitch
            if type(factor) is not Reg:
                factor = self.f.new_vreg("R", 1, 1, -1, 1, "")
                self.before.setdefault((pos, first_at), []).append(
                    Inst("COPY", (), (factor,), (pitch,), None, first.line, first.loc)
                )
            done.update(id(made) for _, _, made in found)
            for _, k, made in found[1:]:
                made.srcs = (factor, imm(k - k0), first.dsts[0], *made.srcs[3:])
            self.ctx.count("products from the first of a row", len(found) - 1)

    def _offset(self, row: Reg) -> tuple[Reg, int]:
        """(register, constant) whose sum the register is; setting bits that are 0 is a sum too."""
        made = self.values.def_of(row)
        if made is None or is_guarded(made):
            return row, 0
        if made.op == "IADD3" and plain_iadd3(made):
            regs, consts = split_terms(made.srcs[:3])
            if len(regs) == 1 and self._is_value(regs[0]):
                return regs[0], sum(consts)  # type: ignore[return-value]
        if (
            made.op == "LOP3"
            and made.mods == ("LUT",)
            and made.dsts == (PT, row)
            and made.srcs[2] == RZ
            and made.srcs[3:] == (imm(0xFC), NOT_PT)
        ):
            of, k = made.srcs[0], value_of(made.srcs[1])
            if type(of) is Reg and k is not None and self._is_value(of) and not k & ~known_bits(self, of)[0]:
                return of, k
        return row, 0


def _constant_sum(insts: list[Inst], pair: Reg) -> Reg | None:
    """The pair that ``insts`` add a constant to, for ``pair``; None where they do something else."""
    if any(is_guarded(i) for i in insts):
        return None
    low, high = pair._replace(width=1), pair._replace(sub=pair.sub + 1, width=1)
    if len(insts) == 1:
        i = insts[0]
        if (
            i.op == "IADD"
            and i.mods == ("64",)
            and i.dsts == (pair, PT)
            and i.srcs[2:] == (NOT_PT,)
            and value_of(i.srcs[1]) is not None
            and type(i.srcs[1]) is Imm
        ):
            o = i.srcs[0]
            return o if type(o) is Reg and o.num != ZERO and o.width == 2 and not o.flags and not o.mod else None
        return None
    a, b = insts
    carry = a.dsts[1] if len(a.dsts) > 1 else PT
    if (
        a.op != "IADD3"
        or a.mods
        or b.op != "IADD3"
        or b.mods != ("X",)
        or carry == PT
        or a.dsts != (low, carry, PT)
        or b.dsts != (high, PT, PT)
    ):
        return None
    if (
        a.srcs[2:] != (RZ, NOT_PT, NOT_PT)
        or b.srcs[2:] != (RZ, carry, NOT_PT)
        or type(a.srcs[1]) is not Imm
        or type(b.srcs[1]) is not Imm
    ):
        return None
    x, y = a.srcs[0], b.srcs[0]
    if (
        value_of(a.srcs[1]) is None
        or value_of(b.srcs[1]) is None
        or type(x) is not Reg
        or x.num == ZERO
        or x.width != 1
        or x.flags
        or x.mod
    ):
        return None
    return x._replace(width=2) if y == x._replace(sub=x.sub + 1) else None
