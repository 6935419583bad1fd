"""Shared by the lowering tests: PTX text in, Ori units out."""

from __future__ import annotations

import re

from ir_format.model import Header, Inst, Unit
from stages.lower import lower
from stages.lower.lower import lower_unit
from stages.parse import parse_text

lower.SHOW_FAULTS = True


def lower_text(text: str, target: str) -> list[Unit]:
    """Parse and lower every unit; AssertionError if the text does not parse, CompileError if it does not lower."""
    module, units, notes = parse_text(text, "t.ptx", target)
    assert module is not None, [n.render() for n in notes]
    return [lower_unit(u, module, Header("ptx", target, "t.ptx")) for u in units]


def kernel(body: str, target: str = "sm_80", params: str = ".param .u64 p, .param .u32 n", head: str = "") -> str:
    """A module with one kernel."""
    regs = (
        ".reg .b32 %r<60>; .reg .b64 %rd<40>; .reg .b16 %h<20>; .reg .f32 %f<20>; .reg .f64 %d<20>; .reg .pred %p<20>;"
    )
    version = "9.0" if int(re.sub(r"\D", "", target)) >= 100 else "8.0"
    return (
        f".version {version}\n.target {target}\n.address_size 64\n{head}\n.visible .entry k({params})\n{{ {regs}\n"
        f"{body}\n}}\n"
    )


def insts(unit: Unit) -> list[Inst]:
    """All instructions of a unit in layout order."""
    return [i for f in unit.functions for b in f.blocks for i in b.insts]


def names(unit: Unit) -> list[str]:
    """Dotted opcodes in layout order."""
    return [".".join((i.op, *i.mods)) for i in insts(unit)]
