"""Webs: a register that holds several unrelated values becomes several registers.

PTX of compilers that coalesce before they print (nvcc) reuses one register for values that never meet: a counter's start and a later loop's counter,
a zero that is also a loop variable elsewhere. The value passes look through registers with one definition only, so such registers are
split here: definitions that reach a common read belong together (a *web*), and every web but the first gets a register of its own.

A copy that belongs to a web with other definitions is made twice: once for the web, once into a register of its own for the reads that only it
reaches (`x = 0; y = x; z = x; loop: x = x + 1`: y and z are zeros).

Pre: a function at level `ori`. Post: the same; every register's definitions are one web. Reads that no definition reaches keep their register.
A definition under a guard does not kill, so it belongs to the web of what it may leave in place.
"""

from __future__ import annotations

from ir_format.flow import build_cfg, is_guarded, read_regs, solve, written_regs
from ir_format.model import RZ, Function, Inst, Reg, Unit, VReg
from ir_format.rename import Change, rename_reads, rename_writes
from stages.optimize.values import copied, is_pure
from stages.plumbing.runner import Context

Cell = tuple[int, int]  # (virtual register, component)
Place = tuple[int, int, int]  # register, first component, width of an operand


class _Sets:
    """Disjoint sets of definitions; the representative is the earliest."""

    __slots__ = ("up",)

    def __init__(self) -> None:
        self.up: list[int] = []

    def add(self) -> int:
        self.up.append(len(self.up))
        return len(self.up) - 1

    def find(self, x: int) -> int:
        up = self.up
        while up[x] != x:
            up[x] = up[up[x]]
            x = up[x]
        return x

    def join(self, x: int, y: int) -> None:
        x, y = self.find(x), self.find(y)
        if x != y:
            self.up[max(x, y)] = min(x, y)


def split_webs(unit: Unit, ctx: Context) -> None:
    """The pass."""
    for f in unit.functions:
        _Splitter(f, ctx).run()


def _candidates(f: Function) -> bytearray:
    """Which registers are written in more than one place."""
    written = [0] * len(f.vregs)
    for b in f.blocks:
        for i in b.insts:
            for r in written_regs(i):
                written[r.num] += 1
    return bytearray(n > 1 and v.fixed < 0 and v.file != "B" for n, v in zip(written, f.vregs, strict=True))


class _Splitter:
    """The work on one function. A *site* is one destination operand; a bit stands for one component that a site writes, where other blocks or
    guarded writes can see it: sets of them stay short in long blocks."""

    def __init__(self, f: Function, ctx: Context) -> None:
        self.f = f
        self.ctx = ctx
        self.many = _candidates(f)
        self.sets = _Sets()
        self.owner: list[int] = []  # site -> register
        self.site_of: list[int] = []  # bit -> site
        self.written: dict[tuple[int, Place], int] = {}  # (identity of the instruction, destination) -> site
        self.bits: dict[tuple[int, Cell], int] = {}  # (site, cell) -> bit
        self.all_of: dict[Cell, int] = {}  # every bit of a cell
        self.copies: dict[int, Inst] = {}  # sites that are copies
        self.twins: dict[int, int] = {}  # a copy's site -> the register of its second destination
        self.reads: list[tuple[Inst, dict[Place, int]]] = []  # for every reader, a site of each operand's web
        self.work: list[
            list[tuple[Inst, list[Reg], list[Reg], bool]]
        ] = []  # per block: instruction, what it reads and writes, whether it is guarded
        self.joined: dict[int, int] = {}  # sets of bits whose sites are joined already, and one of the sites

    def run(self) -> None:
        if not any(self.many):
            return
        self._number_sites()
        before = self._reaching()
        for pos, work in enumerate(self.work):
            self._join_block(work, before[pos])
        self._rename()

    def _number_sites(self) -> None:
        many = self.many
        made: list[tuple[int, Cell]] = []
        seen: set[Cell] = set()  # cells that a block reads and has not written yet, and those written under a guard
        for b in self.f.blocks:
            work: list[tuple[Inst, list[Reg], list[Reg], bool]] = []
            own: set[Cell] = set()
            for i in b.insts:
                reads = [r for r in read_regs(i) if many[r.num]]
                writes = [r for r in written_regs(i) if many[r.num]]
                if not reads and not writes:
                    continue
                guarded = is_guarded(i)
                work.append((i, reads, writes, guarded))
                for r in reads:
                    for c in range(r.sub, r.sub + r.width):
                        if (r.num, c) not in own:
                            seen.add((r.num, c))
                for r in writes:
                    site = self.sets.add()
                    self.owner.append(r.num)
                    self.written[(id(i), (r.num, r.sub, r.width))] = site
                    if copied(i) is not None and (r.width == 1 or r.width == self.f.vregs[r.num].width):
                        self.copies[site] = i
                    for c in range(r.sub, r.sub + r.width):
                        made.append((site, (r.num, c)))
                        (seen if guarded else own).add((r.num, c))
            self.work.append(work)
        for site, cell in made:
            if cell in seen:
                bit = len(self.site_of)
                self.site_of.append(site)
                self.bits[(site, cell)] = bit
                self.all_of[cell] = self.all_of.get(cell, 0) | 1 << bit

    def _reaching(self) -> list[int]:
        """The bits that reach the start of every block."""
        cfg = build_cfg(self.f)
        count = len(self.f.blocks)
        gen, kill = [0] * count, [0] * count
        for pos, work in enumerate(self.work):
            made = dead = 0
            for i, _, writes, guarded in work:
                for r in writes:
                    site = self.written[(id(i), (r.num, r.sub, r.width))]
                    for c in range(r.sub, r.sub + r.width):
                        bit = self.bits.get((site, (r.num, c)))
                        if bit is None:
                            continue
                        if not guarded:
                            dead |= self.all_of[(r.num, c)]
                            made &= ~self.all_of[(r.num, c)]
                        made |= 1 << bit
            gen[pos], kill[pos] = made, dead
        reached = set(cfg.rpo)
        order = cfg.rpo + [p for p in range(count) if p not in reached]
        return solve(order, cfg.preds, cfg.succs, gen, kill)[0]

    def _join_block(self, work: list[tuple[Inst, list[Reg], list[Reg], bool]], before: int) -> None:
        now: dict[Cell, int] = {}  # ~site where that one alone reaches, else a set of bits
        all_of, sets, site_of, joined = self.all_of, self.sets, self.site_of, self.joined
        partial: dict[int, tuple[int, Reg]] = {}  # register -> its last site, while nothing has read it since

        def reaching(cell: Cell) -> int:
            bits = now.get(cell)
            if bits is None:
                bits = now[cell] = before & all_of.get(cell, 0)
            return bits

        def copy(r: Reg) -> int:
            """The site of the copy that alone reaches all that the operand reads, and writes no more; -1 if it is not like that."""
            top = -1
            for c in range(r.sub, r.sub + r.width):
                bits = reaching((r.num, c))
                if bits < 0:
                    site = ~bits
                elif not bits or bits & bits - 1:
                    return -1
                else:
                    site = site_of[bits.bit_length() - 1]
                if site not in self.copies or top not in (-1, site):
                    return -1
                top = site
            d = self.copies[top].dsts[0]
            return top if type(d) is Reg and d.width == r.width else -1

        def web(r: Reg) -> int:
            """A site of the web that the operand belongs to, its definitions joined; -1 where none reaches."""
            top = -1
            for c in range(r.sub, r.sub + r.width):
                bits = reaching((r.num, c))
                if not bits:
                    continue
                site = ~bits if bits < 0 else joined.get(bits, -1)
                if site < 0:
                    low = bits & -bits
                    joined[bits] = site = site_of[low.bit_length() - 1]
                    while bits := bits ^ low:
                        low = bits & -bits
                        sets.join(site, site_of[low.bit_length() - 1])
                if top >= 0:
                    sets.join(top, site)
                top = site
            return top

        for i, reads, writes, guarded in work:
            if reads:
                here: dict[Place, int] = {}
                kept = () if is_pure(i) else {r.num for r in written_regs(i)}
                for r in reads:
                    found = copy(r)
                    if found >= 0 and r.num not in kept:
                        here[(r.num, r.sub, r.width)] = ~found
                        continue
                    found = web(r)
                    if found >= 0:
                        here[(r.num, r.sub, r.width)] = found
                    partial.pop(r.num, None)
                self.reads.append((i, here))
            if not writes:
                continue
            tied = not is_pure(i)
            for r in writes:
                site = self.written[(id(i), (r.num, r.sub, r.width))]
                last = partial.get(r.num)
                if last is not None and (last[1].sub + last[1].width <= r.sub or r.sub + r.width <= last[1].sub):
                    sets.join(last[0], site)  # the parts of one value, written one after the other
                partial[r.num] = (site, r)
                olds = [web(r)] if guarded else []
                if tied:  # e.g. the accumulators of a product of a warpgroup: read and written in place
                    olds += [web(x) for x in reads if x.num == r.num]
                for old in olds:
                    if old >= 0:
                        sets.join(site, old)
            for r in writes:
                site = self.written[(id(i), (r.num, r.sub, r.width))]
                for c in range(r.sub, r.sub + r.width):
                    cell = (r.num, c)
                    if not guarded:
                        now[cell] = ~site
                        continue
                    old = reaching(cell)
                    now[cell] = 1 << self.bits[(site, cell)] | (old if old >= 0 else 1 << self.bits[(~old, cell)])

    def _names(self, tops: list[int]) -> list[int]:
        """The register of every site's web: the first web of a register keeps it. ``tops``: the earliest site of each site's web."""
        f = self.f
        name: dict[int, int] = {}
        first: set[int] = set()
        for site, v in enumerate(self.owner):
            top = tops[site]
            if top in name:
                continue
            if v not in first or not self.ctx.allow():
                first.add(v)
                name[top] = v
            else:
                name[top] = len(f.vregs)
                f.vregs.append(f.vregs[v])
                self.ctx.count("webs split")
        return [name[top] for top in tops]

    def _rename(self) -> None:
        tops = [self.sets.find(site) for site in range(len(self.owner))]
        name = self._names(tops)
        members = [0] * len(tops)
        for top in tops:
            members[top] += 1
        for i, here in self.reads:
            to: dict[Place, Cell] = {}
            for k, s in here.items():
                cell = (name[s], k[1]) if s >= 0 else self._twin(~s, (name[~s], k[1]), members[tops[~s]] > 1)
                if cell != k[:2]:
                    to[k] = cell
            if to:
                rename_reads(i, _change(to))
        for b, work in zip(self.f.blocks, self.work, strict=True):
            twins: dict[int, list[Inst]] = {}  # identity of an instruction -> the second copies in front of it
            for i, _, writes, _ in work:
                to = {}
                for k in dict.fromkeys([(r.num, r.sub, r.width) for r in writes]):
                    site = self.written[(id(i), k)]
                    if site in self.twins:
                        v = self.f.vregs[self.twins[site]]
                        twin = Inst(
                            "COPY",
                            (),
                            (Reg(v.file, self.twins[site], 0, v.width),),
                            (copied(i) or RZ,),
                            None,
                            i.line,
                            i.loc,
                        )
                        twins.setdefault(id(i), []).append(twin)
                    if name[site] != k[0]:
                        to[k] = (name[site], k[1])
                if to:
                    rename_writes(i, _change(to))
            if twins:
                b.insts = [x for i in b.insts for x in (*twins.get(id(i), ()), i)]

    def _twin(self, site: int, web: Cell, shared: bool) -> Cell:
        """What reads that only this copy reaches read: its web's register when the web is nothing else, or when no change is allowed."""
        if not shared:
            return web
        got = self.twins.get(site)
        if got is None:
            if not self.ctx.allow():
                return web
            got = self.twins[site] = len(self.f.vregs)
            old = self.f.vregs[self.owner[site]]
            whole = type(d := self.copies[site].dsts[0]) is Reg and d.width == old.width
            self.f.vregs.append(old if whole else VReg(old.file, 1, 1, -1, old.uniform, old.name))
            self.ctx.count("copies made twice")
        return got, 0


def _change(to: dict[Place, Cell]) -> Change:
    def change(r: Reg) -> Reg:
        cell = to.get((r.num, r.sub, r.width))
        return r if cell is None else Reg(r.file, cell[0], cell[1], r.width, r.flags, r.mod)

    return change
