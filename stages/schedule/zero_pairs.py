"""Zeroing of register pairs: one CS2R of the zero register replaces two moves of zero, as in ptxas's code on every SM.

Pre: physical registers. Post: the same values; the CS2R replaces the earlier move.
"""

from __future__ import annotations

from ir_format import isa
from ir_format.flow import is_guarded, read_regs, written_regs
from ir_format.model import RZ, ZERO, AttrValue, Block, Imm, Inst, Name, Reg, Unit
from stages.plumbing.runner import Context


def pair_zero_moves(unit: Unit, ctx: Context) -> None:
    """The pass."""
    target = isa.target(ctx.header.target)
    for f in unit.functions:
        for b in f.blocks:
            _block(b, target, ctx)


def _zeroed(i: Inst) -> int:
    """The register that the instruction sets to zero, or -1 if it is no plain move of zero."""
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
    # Register -> index of the move that set it to zero, until another instruction writes it.
    zero_at: dict[int, int] = {}
    touched: dict[int, int] = {}  # register -> index of its last read or write
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
    """Whether the instruction comes from the allocator, or has no attributes but those of
    `orias-facts --annotate`."""
    return "ra" in attrs or all(name.startswith("hz.") for name in attrs)
