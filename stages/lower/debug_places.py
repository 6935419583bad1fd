"""What the debug sections (-g) have to know of a function: the places of its labels and variables, and the PTX
registers that hold the program's variables.

The front end describes a variable in a register by DW_OP_regx with the PTX register's name as the number: the
characters, the first one highest. A location list says between which labels the variable is there. ptxas keeps such a
register's value until then, used or not; so `regalloc` gets these stretches of lines with the registers' names.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise

from ir_format.model import AttrValue
from ir_format.ptx import PtxFixup, PtxLabel, PtxSection
from ir_format.typed import Final
from stages.lower.abi.arguments import param_base
from stages.lower.builder import Builder

OP_REGX: Final = 0x90
NAME_BYTES: Final = 64  # of the longest register name that is looked for


class DebugNames:
    """The names in the debug sections of a module. ``symbols``: of labels, variables and sections. ``located``: first
    label of a stretch -> (its end, register)."""

    __slots__ = ("located", "symbols")

    def __init__(self, sections: list[PtxSection]) -> None:
        self.symbols = frozenset(name for s in sections for x in s.fixups for name in (x.symbol, x.minus))
        self.located: dict[str, list[tuple[str, str]]] = {}
        for s in sections:
            if s.name in (".debug_loc", ".debug_info"):
                for begin, end, name in _stretches(s):
                    self.located.setdefault(begin, []).append((end, name))


def _register(data: bytes, at: int) -> str:
    """The name that an LEB128 number is, or ''."""
    value = shift = 0
    for byte in data[at : at + NAME_BYTES]:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            name = value.to_bytes((value.bit_length() + 7) // 8, "big")
            return name.decode("ascii") if name.isascii() else ""
    return ""


def _stretches(s: PtxSection) -> Iterator[tuple[str, str, str]]:
    """Labels of the begin and the end, and register: of an entry of a location list; of a variable for the function or
    the block whose addresses come before it, side by side. Other bytes that look like a register cost one's life."""
    fixups: list[PtxFixup] = sorted(s.fixups, key=lambda x: x.offset)
    pairs = [(a.symbol, b) for a, b in pairwise(fixups) if b.offset == a.offset + a.size and a.size == b.size]
    after = [b.offset + b.size for _, b in pairs]
    at = s.data.find(OP_REGX)
    while at >= 0:
        pair = bisect_right(after, at) - 1
        name = _register(s.data, at + 1) if pair >= 0 else ""
        if len(name) > 1 and name.isprintable():
            yield pairs[pair][0], pairs[pair][1].symbol, name
        at = s.data.find(OP_REGX, at + 1)


def set_debug_places(b: Builder, known: DebugNames) -> None:
    """Note the places of this function's symbols: labels by their PTX line, variables by their place in their space;
    and its registers. ``known``: the names in the debug sections of the function's module."""
    pf, ctx = b.pf, b.ctx
    names = known.symbols
    places: list[tuple[str, int]] = []
    local: list[tuple[str, int]] = []
    if pf.entry:
        places += [(p.name, param_base(b) + p.offset) for p in pf.params if p.name in names]
    for v in pf.vars:
        if v.name in names and v.space == "local":
            local.append((v.name, b.local_offset[v.name]))
        elif v.name in names and v.space == "shared" and not ctx.relocatable:
            places.append((v.name, ctx.target.smem_base + ctx.shared_offset(b, v.name)))
    labels = [(pf.labels[x.index], x.line) for x in pf.body if type(x) is PtxLabel and pf.labels[x.index] in names]
    if not ctx.relocatable:
        base = ctx.target.smem_base
        places += [(name, base + at) for name, at in ctx.shared_at.items() if name in names and name in ctx.module_vars]
    b.fn.attrs["places"] = tuple(places)
    b.fn.attrs["local_places"] = tuple(local)
    b.fn.attrs["labels"] = tuple(labels)
    b.fn.attrs["variables"] = _variables(b, dict(labels), known)


def _variables(b: Builder, line_of: dict[str, int], known: DebugNames) -> AttrValue:
    """One row for each PTX register in use: name of the virtual register, PTX name, type, number of elements of its
    vector, first part of that register in it, and the stretches of lines where a variable is in it."""
    kept: dict[str, list[tuple[int, int]]] = {}
    for begin, line in line_of.items():
        for end, name in known.located.get(begin, ()):
            if end in line_of:
                kept.setdefault(name, []).append((line, line_of[end]))
    rows: dict[str, AttrValue] = {}
    regs = b.pf.regs
    declared = {d.name for d in regs}
    for index, reg in b.regs.items():
        d = regs[index]
        name, element = d.name, 0
        if d.vec > 1:
            name, _, letter = d.name.rpartition(".")
            element = max(0, "xyzw".find(letter))
        outer, dollar, number = name.rpartition("$")
        if dollar and number.isdigit() and outer in declared:
            name = outer  # of an inner scope
        stretches = kept.get(name, [])
        rows.setdefault(d.name, (d.name, name, d.type, d.vec, element * reg.width, tuple(stretches)))
    return tuple(rows.values())
