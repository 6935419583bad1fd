"""Forms of instructions that read a uniform register, or that compute on the uniform datapath."""

from __future__ import annotations

from ir_format import isa
from ir_format.diag import CompileError
from ir_format.flow import read_regs
from ir_format.isa import facts
from ir_format.model import PT, UPT, URZ, ZERO, Inst, Mem, Operand, Reg
from stages.optimize.scalar.fold import TURNED

#: Mnemonics that exist on the uniform datapath too, with `U` before them.
UNIFORM_OPS = frozenset(n[1:] for n in facts.table() if n[0] == "U" and n[1:] in facts.table())


class UniformForms:
    """The forms of one target. Answers do not depend on register numbers, and are remembered."""

    __slots__ = ("_known", "target")

    def __init__(self, target: str) -> None:
        self.target = isa.target(target)
        self._known: dict[tuple[object, ...], bool] = {}

    def fits(self, new: Inst) -> bool:
        """Whether the target has the form."""
        shape = [_shape(o) for o in (*new.dsts, *new.srcs)]
        key = (new.op, new.mods, *shape)
        known = self._known.get(key)
        if known is None:
            try:
                known = self.target.match(new) is not None
            except CompileError:
                known = False
            self._known[key] = known
        return known

    def reading(self, inst: Inst, num: int) -> Inst | None:
        """The instruction with a uniform register instead of ``num`` (as a stand-in, of the same number); None where
        there is no such form."""
        if len([r for r in read_regs(inst) if r.num == num]) != 1:
            return None
        found = [n for n, o in enumerate(inst.srcs) if type(o) is Reg and o.num == num]
        if not found:
            return self._addressed(inst, num)
        n = found[0]
        o = inst.srcs[n]
        assert type(o) is Reg
        srcs = [*inst.srcs]
        srcs[n] = o._replace(file="UR")
        if inst.op == "COPY":
            return None if o.flags or o.mod else _with(inst, inst.mods, tuple(srcs))
        if inst.op == "R2UR":
            d = inst.dsts[-1]
            fits = not inst.mods and not o.flags and inst.guard is None and all(x == PT for x in inst.dsts[:-1])
            return Inst("COPY", (), (d,), tuple(srcs), None, inst.line, inst.loc) if fits else None
        if inst.op == "PCOPY":
            return None
        orders: list[tuple[tuple[str, ...], list[Operand]]] = [(inst.mods, srcs)]
        if n == 0 and len(srcs) > 1:
            turned = [srcs[1], srcs[0], *srcs[2:]]
            if inst.op in ("ISETP", "FSETP") and "EX" not in inst.mods:
                plain = inst.mods[0].removesuffix("U") if inst.op == "FSETP" else inst.mods[0]
                if plain in TURNED:
                    orders.append(((TURNED[plain] + inst.mods[0][len(plain) :], *inst.mods[1:]), turned))
            elif self.target.fact(inst, "comm").startswith("ab"):
                orders.append((inst.mods, turned))
        if n == 2 and inst.op == "IADD3":
            orders.append((inst.mods, [srcs[0], srcs[2], srcs[1], *srcs[3:]]))
        for mods, operands in orders:
            new = _with(inst, mods, tuple(operands))
            if self.fits(new):
                return new
        return None

    def _addressed(self, inst: Inst, num: int) -> Inst | None:
        """The same for the base of a 32-bit address."""
        operands = (*inst.dsts, *inst.srcs)
        at = [o for o in operands if type(o) is Mem and o.base is not None and o.base.num == num]
        if len(at) != 1 or inst.uses or inst.defs:
            return None
        old = at[0]
        base = old.base
        assert base is not None
        if old.ubase is not None or base.width != 1 or base.mod or base.flags or base.sub:
            return None
        new = old._replace(base=None, ubase=base._replace(file="UR"))
        out = _with(inst, inst.mods, tuple(new if o is old else o for o in inst.srcs))
        out.dsts = tuple(new if o is old else o for o in inst.dsts)
        return out if self.fits(out) else None

    def computing(self, maker: Inst, to: Reg, srcs: tuple[Operand, ...]) -> Inst | None:
        """The instruction on the uniform datapath, with these sources there and ``to`` as its result; None if the
        target has none."""
        if maker.op == "COPY":
            plain = type(srcs[0]) is not Reg or not srcs[0].flags
            return Inst("COPY", (), (to,), srcs, None, maker.line, maker.loc) if plain else None
        if any(type(d) is not Reg or (d.file == "P" and d.num != ZERO) for d in maker.dsts):
            return None
        dsts = tuple(UPT if type(d) is Reg and d.file == "P" else to for d in maker.dsts)
        op = "U" + maker.op
        new = Inst(op, maker.mods, dsts, srcs, None, maker.line, maker.loc)
        if self.fits(new):
            return new
        words = tuple(s for s in srcs if not (type(s) is Reg and s.file == "UP"))
        try:
            new.dsts, new.srcs = self.target.complete(op, maker.mods, (to,), words)
        except CompileError:
            return None
        return new if self.fits(new) else None


def uniform_zero(s: Reg) -> Reg:
    """RZ or PT on the uniform datapath."""
    return (URZ if s.file == "R" else UPT)._replace(flags=s.flags, width=s.width)


def _shape(o: Operand) -> object:
    """An operand without the number of its register."""
    if type(o) is Reg:
        return (o.file, o.num == ZERO, *o[3:])
    if type(o) is Mem:
        return (*[() if r is None else _shape(r) for r in (o.base, o.ubase, o.desc)], o.offset, o.sym)
    return o


def _with(inst: Inst, mods: tuple[str, ...], srcs: tuple[Operand, ...]) -> Inst:
    return Inst(inst.op, mods, inst.dsts, srcs, inst.guard, inst.line, inst.loc, None, inst.uses, inst.defs, inst.attrs)
