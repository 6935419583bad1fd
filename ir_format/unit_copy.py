"""Passing a unit from one stage to the next inside one process.

:func:`copy_unit` returns the same unit as writing and reading it would (:mod:`ir_format.wire`), without the bytes. The
copy has its own instructions, blocks, lists and maps, so that a stage can't change what another stage holds. Its maps
have the order of the wire. Operands are immutable and shared. Nothing is checked, because both stages are ours.
"""

from __future__ import annotations

from ir_format.model import AttrValue, Block, Function, Inst, Unit


def _value(x: AttrValue) -> AttrValue:
    return x if type(x) is int or type(x) is str else tuple([_value(e) for e in x])  # type: ignore[union-attr]


def _attrs(d: dict[str, AttrValue]) -> dict[str, AttrValue]:
    return {k: _value(d[k]) for k in sorted(d)}


def _insts(insts: list[Inst]) -> list[Inst]:
    return [
        Inst(
            i.op,
            tuple(i.mods),
            tuple(i.dsts),
            tuple(i.srcs),
            i.guard,
            i.line,
            i.loc,
            i.ctl,
            tuple(i.uses),
            tuple(i.defs),
            _attrs(i.attrs) if i.attrs else None,
        )
        for i in insts
    ]


def _function(f: Function) -> Function:
    out = Function(f.name, f.kind)
    out.frame = f.frame
    out.vregs = list(f.vregs)
    out.locs = list(f.locs)
    out.regs = {k: f.regs[k] for k in sorted(f.regs)}
    out.spills = f.spills
    out.attrs = _attrs(f.attrs)
    out.blocks = [Block(b.id, _insts(b.insts), b.depth) for b in f.blocks]
    return out


def copy_unit(u: Unit) -> Unit:
    """A copy of the unit as the next stage would read it."""
    out = Unit(u.name, u.kind, u.linkage)
    out.functions = [_function(f) for f in u.functions]
    out.params = list(u.params)
    out.code = list(u.code)
    out.symbols = list(u.symbols)
    out.attrs = _attrs(u.attrs)
    out.diags = list(u.diags)
    out.sections = _attrs(u.sections)
    return out
