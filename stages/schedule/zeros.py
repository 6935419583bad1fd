"""Pairs of registers that are set to zero: one CS2R of the zero register in place of two moves, as ptxas does on every
SM.

Pre: physical registers. Post: the same values; the later move is done at the place of the earlier.
"""

from __future__ import annotations

from ir_format import isa
from ir_format.flow import is_guarded, read_regs, written_regs
from ir_format.model import RZ, ZERO, AttrValue, Block, Imm, Inst, Name, Reg, Unit
from stages.plumbing.runner import Context


def pair_zeros(unit: Unit, ctx: Context) -> None:
    """The pass."""
    target = isa.target(ctx.header.target)
    for f in unit.functions:
        for b in f.blocks:
            _block(b, target, ctx)


def _zeroed(i: Inst) -> int:
    """The register that an instruction only sets to zero; -1 if it does something else."""
    if (
        i.op != "MOV"
        or is_guarded(i)
        or i.uses
        or i.defs
        or (i.attrs and not _unmarked(i.attrs))
        or (len(i.srcs) > 1 and i.srcs[1] != Imm("I", 15))
    ):
        return -1
    d, s = i.dsts[0], i.srcs[0]
    if type(d) is not Reg or d.file != "R" or d.num == ZERO or s not in (RZ, Imm("I", 0)):
        return -1
    return d.num


def _block(b: Block, target: isa.Target, ctx: Context) -> None:
    zero_at: dict[
        int, int
    ] = {}  # register -> place of the move that set it to zero, while nothing has written it since
    touched: dict[int, int] = {}  # register -> where it was last read or written
    gone: set[int] = set()
    for n, i in enumerate(b.insts):
        z = _zeroed(i)
        first = zero_at.get(z ^ 1, -1) if z >= 0 else -1
        if first >= 0 and touched.get(z, -1) < first and ctx.allow():
            low = Reg("R", z & ~1, 0, 2)
            dsts, srcs = target.complete("CS2R", (), (low,), (Name("N", "SRZ"),))
            old = b.insts[first]
            b.insts[first] = Inst("CS2R", (), dsts, srcs, None, old.line, old.loc, attrs=old.attrs)
            gone.add(n)
            del zero_at[z ^ 1]
            touched[z] = touched.get(z ^ 1, first)
            ctx.count("zeros paired")
            continue
        for r in read_regs(i):
            if r.file == "R":
                for k in range(r.num, r.num + r.width):
                    touched[k] = n
        for r in written_regs(i):
            if r.file == "R":
                for k in range(r.num, r.num + r.width):
                    touched[k] = n
                    zero_at.pop(k, None)
        if z >= 0:
            zero_at[z] = n
    if gone:
        b.insts = [i for n, i in enumerate(b.insts) if n not in gone]


def _unmarked(attrs: dict[str, AttrValue]) -> bool:
    """Whether an instruction that the allocator made, or one that bears added facts alone
    (`orias-facts --annotate`)."""
    return "ra" in attrs or all(name.startswith("hz.") for name in attrs)
