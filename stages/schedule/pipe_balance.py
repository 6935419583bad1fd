"""Balance of the integer pipes: moves, sums and shifts go to the multiplier's pipe where the ALU is the busier one.

IMAD computes a copy (``RZ * RZ + s``), a sum of two registers (``a * 1 + b``) and a shift to the left (``a * 2**n +
RZ``) with the latency of MOV, IADD3 and SHF, and in a pipe of its own (classes ``alu`` and ``fma`` of
:mod:`ir_format.hazards.classes`). ptxas spreads such instructions over both (measured on sm_75 to sm_100: a ChaCha
block has 46 IMAD.IADD and 16 IMAD.MOV with 64 instructions that only the ALU can execute); shifts by a constant it
always multiplies, on sm_120 too, where the pipes are one.

Pre: physical registers. Post: the same values, as many instructions, in the same order. Within a block that keeps the
ALU busier than the multiplier, candidates are replaced at even distances until both are as busy.
"""

from __future__ import annotations

from ir_format import isa
from ir_format.features import has
from ir_format.hazards.model import Hazards, hazards
from ir_format.model import RZ, ZERO, Block, Const, Imm, Inst, Operand, Reg, Unit
from ir_format.typed import Final
from stages.plumbing.runner import Context

#: A candidate: modifiers and sources of the IMAD that takes its place.
Multiply = tuple[tuple[str, ...], tuple[Operand, ...]]
_WHOLE_MASK: Final = Imm("I", 15)  # of MOV: all four bytes
_ONE: Final = Imm("I", 1)


def balance_pipes(unit: Unit, ctx: Context) -> None:
    """The pass."""
    target = isa.target(ctx.header.target)
    tables = hazards(ctx.header.target)
    split = has(tables.sm, "multiplier-pipe-apart")
    for f in unit.functions:
        for b in f.blocks:
            _block(b, target, tables, split, ctx)


def _plain_reg(o: Operand) -> bool:
    return type(o) is Reg and o.file == "R" and o.width == 1 and not o.flags


def _multiply(i: Inst) -> Multiply | None:
    """How IMAD computes what the instruction does, or None."""
    if len(i.dsts) < 1 or not _plain_reg(i.dsts[0]) or i.uses or i.defs:
        return None
    if i.op == "MOV" and not i.mods and i.srcs[1:] == (_WHOLE_MASK,):
        s = i.srcs[0]
        return (("MOV", "U32"), (RZ, RZ, s)) if _plain_reg(s) or type(s) in (Imm, Const) else None
    if i.op == "IADD3" and not i.mods:
        a, b, c = i.srcs[:3]
        if type(a) is not Reg or type(b) is not Reg or c != RZ or a.file != "R" or b.file != "R":
            return None
        if any(type(o) is Reg and o.file == "P" and o.num != ZERO for o in (*i.dsts[1:], *i.srcs[3:])):
            return None
        if a.flags:
            a, b = b, a
        return (("IADD",), (a, _ONE, b)) if not a.flags and ZERO not in (a.num, b.num) else None
    return None


def _shift(i: Inst) -> Multiply | None:
    """A shift to the left by a constant as a product."""
    if i.op != "SHF" or i.mods != ("L", "U32") or not _plain_reg(i.dsts[0]) or i.uses or i.defs:
        return None
    a, n, c = i.srcs
    if not _plain_reg(a) or c != RZ or type(n) is not Imm or not 0 < n.value < 31:
        return None
    return ("SHL", "U32"), (a, Imm("I", 1 << n.value), RZ)


def _block(b: Block, target: isa.Target, tables: Hazards, split: bool, ctx: Context) -> None:
    busy = {"alu": 0, "fma": 0}
    found: list[tuple[int, Multiply]] = []
    for n, i in enumerate(b.insts):
        product = _shift(i)
        if product is not None and ctx.allow():
            _replace(b, n, product, target)
            ctx.count("shifts multiplied")
            i = b.insts[n]
        pipe = tables.pipe(tables.klass(i))
        if pipe.name in busy:
            busy[pipe.name] += pipe.interval
        if split and pipe.name == "alu":
            product = _multiply(i)
            if product is not None:
                found.append((n, product))
    surplus = busy["alu"] - busy["fma"]
    wanted = min(len(found), surplus // (2 * tables.pipe("alu").interval))
    if wanted <= 0:
        return
    for k, (n, product) in enumerate(found):
        if (k + 1) * wanted // len(found) > k * wanted // len(found) and ctx.allow():
            _replace(b, n, product, target)
            ctx.count("pipes balanced")


def _replace(b: Block, n: int, product: Multiply, target: isa.Target) -> None:
    old = b.insts[n]
    mods, srcs = product
    dsts, full = target.complete("IMAD", mods, old.dsts[:1], srcs)
    b.insts[n] = Inst("IMAD", mods, dsts, full, old.guard, old.line, old.loc, attrs=old.attrs)
