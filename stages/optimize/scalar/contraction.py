"""FMA contraction: a product and a sum of it become one instruction that rounds once (`-fmad`, on by default).

Only what `lower` marked (attribute `contract`): PTX says that add, sub and mul without a rounding modifier may be
contracted. As ptxas does (measured on sm_75 to sm_100, for f32, f64, f16, bf16 and their pairs): within a block; where
all readers of a product are such sums, so that the product itself goes; not where a sum reads its magnitude, saturates
the product, or flushes subnormals when the product does not. Of two products in one sum the one that nothing else reads
is taken, and the first of two such.

Pre: a function on SSA form in which no other pass has joined equal products, since a marked one and one that must be
rounded are different values. Post: no instruction is marked any more.
"""

from __future__ import annotations

from collections.abc import Iterable

from ir_format import isa
from ir_format.diag import CompileError
from ir_format.flow import is_guarded, read_regs, written_regs
from ir_format.isa import facts
from ir_format.model import ABS, NEG, ZERO, Block, Function, Imm, Inst, Operand, Reg
from ir_format.record import Record, fresh
from ir_format.typed import Final
from stages.optimize.analyses import Analyses

MARK: Final = "contract"


class _Product(Record):
    """A marked product. ``sums``: index of each marked sum that may take it, and the source that it is there."""

    at: int
    inst: Inst
    sums: list[tuple[int, int]] = fresh(default_factory=list)


def contract(f: Function, a: Analyses) -> bool:
    """The pass."""
    if not any(i.attrs and MARK in i.attrs for b in f.blocks for i in b.insts):
        return False
    work = _Contraction(f, a)
    work.run()
    return work.fused


class _Contraction:
    """The state of the pass over one function."""

    def __init__(self, f: Function, a: Analyses) -> None:
        self.f = f
        self.ctx = a.ctx
        self.webs = a.webs
        self.values = a.values
        self.fused = False
        self.target = isa.target(a.ctx.header.target)
        self.joined = facts.contractions()

    def run(self) -> None:
        for pos, b in enumerate(self.f.blocks):
            marked = [i for i in b.insts if i.attrs and MARK in i.attrs]
            if len(marked) > 1:
                products = self._products(b)
                if products:
                    self._join(b, pos, products)
            for i in marked:
                assert i.attrs is not None
                i.attrs = {k: v for k, v in i.attrs.items() if k != MARK} or None

    def _products(self, b: Block) -> dict[int, _Product]:
        """The products of a block that have a sum, by register."""
        found: dict[int, _Product] = {}
        wrote: dict[int, int] = {}  # web -> the last instruction so far that writes its register
        for n, i in enumerate(b.insts):
            if i.attrs and MARK in i.attrs:
                self._add_sum(found, wrote, n, i)
                d = i.dsts[0]
                if i.op in self.joined and not is_guarded(i) and type(d) is Reg and self._alone(d, i):
                    found[d.num] = _Product(n, i)
            for r in written_regs(i):
                wrote[self._web(r)] = n
        return {num: p for num, p in found.items() if p.sums}

    def _web(self, r: Reg) -> int:
        return r.num if self.webs is None else self.webs.of(r.num)

    def _alone(self, d: Reg, i: Inst) -> bool:
        """Whether one instruction makes all of a register."""
        if d.num == ZERO or d.width != self.f.vregs[d.num].width or not self.values.value[d.num]:
            return False
        return all([self.values.defs[lane] is i for lane in self.values.lanes(d)])

    def _add_sum(self, found: dict[int, _Product], wrote: dict[int, int], n: int, i: Inst) -> None:
        """Note a sum with the products that it could take: those whose factors' registers still hold what they held
        there."""
        if len(i.srcs) < 2 or _register(i.srcs[0]) == _register(i.srcs[1]):
            return
        for k in (0, 1):
            x = i.srcs[k]
            p = found.get(_register(x))
            if (
                p is None
                or type(x) is not Reg
                or x.width != self.f.vregs[x.num].width
                or self.joined[p.inst.op][0] != i.op
                or not _fits(p.inst, i, x)
            ):
                continue
            if all(wrote.get(self._web(r), -1) <= p.at for r in read_regs(p.inst)):
                p.sums.append((n, k))

    def _join(self, b: Block, pos: int, products: dict[int, _Product]) -> None:
        taken: dict[int, _Product] = {}  # sum -> the product that it takes
        for p in self._by_first_source(products.values()):
            d = p.inst.dsts[0]
            assert type(d) is Reg
            if len(p.sums) == self.values.use_count(d) and not any(n in taken for n, _ in p.sums):
                taken.update((n, p) for n, _ in p.sums)
        new: dict[int, list[Inst]] = {}
        for p in sorted({p.at: p for p in taken.values()}.values(), key=_place):
            made = [(n, self._fused(p.inst, b.insts[n], k)) for n, k in p.sums]
            if all(insts for _, insts in made) and self.ctx.allow():
                new.update(made)
                new[p.at] = []
        if new:
            self.fused = True
            for n, made_of in new.items():
                self.values.remove(b.insts[n])
                for i in made_of:
                    self.values.add(i, pos)
            b.insts = [i for n, old in enumerate(b.insts) for i in new.get(n, [old])]

    @staticmethod
    def _by_first_source(products: Iterable[_Product]) -> list[_Product]:
        """Products with one sum first, in the order of their sums and of the sources there."""
        return sorted(products, key=lambda p: (len(p.sums) > 1, p.sums[0]))

    def _fused(self, product: Inst, total: Inst, k: int) -> list[Inst]:
        """The instruction for a sum and its product in source ``k``; before it a constant that has no place there.
        Empty where the target has no such form."""
        x, addend = total.srcs[k], total.srcs[1 - k]
        a, b = product.srcs[:2]
        if type(x) is Reg and x.flags & NEG:
            if type(a) is Reg:
                a = a._replace(flags=a.flags ^ NEG)
            elif type(b) is Reg:
                b = b._replace(flags=b.flags ^ NEG)
            else:
                return []
        op = self.joined[product.op][1]
        whole = self._made(op, total, (a, b, addend))
        if whole is not None:
            return [whole]
        if type(b) is Imm and type(x) is Reg and x.width == 1:
            reg = self.f.new_vreg("R")
            self.values.new_register()
            whole = self._made(op, total, (a, reg, addend))
            if whole is not None:
                return [Inst("MOV", (), (reg,), (b,), None, total.line, total.loc), whole]
        return []

    def _made(self, op: str, total: Inst, srcs: tuple[Operand, ...]) -> Inst | None:
        try:
            dsts, srcs, fits = self.target.completed(op, total.mods, total.dsts, srcs)
        except CompileError:
            return None
        return Inst(op, total.mods, dsts, srcs, total.guard, total.line, total.loc, None, total.uses) if fits else None


def _place(p: _Product) -> int:
    return p.at


def _register(o: Operand) -> int:
    """The number of a virtual register that an operand is; -1 for anything else."""
    return o.num if type(o) is Reg and o.num != ZERO else -1


def _fits(product: Inst, total: Inst, x: Reg) -> bool:
    """Whether one rounding can replace both: the same modifiers but .SAT after the sum, no magnitude of the product,
    and the same lanes: a scalar half reads the low one of a product, whose lanes are equal if its factors' are."""
    if x.flags & ABS or product.mods != tuple(m for m in total.mods if m != "SAT"):
        return False
    return not x.mod or all(type(o) is not Reg or o.num == ZERO or o.mod == x.mod for o in product.srcs)
