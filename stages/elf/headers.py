"""Names of textures, samplers and surfaces: their symbols, the words of bank 0 that the driver fills with header numbers, and the relocations of these.

Measured on ptxas 13.0: a `.texref` and its like at module scope are undefined global symbols of a type of their own; each kernel that uses one has a word
for it behind its parameters, relocated by section `.rel[a].nv.constant0.K`, the last word first.
"""

from __future__ import annotations

from typing import Final

from ir_format.diag import CompileError
from ir_format.model import Module, Param, Unit, Var
from stages.elf.attrs import bad
from stages.elf.symbols import GLOBAL, LOCAL, Symbol

ATTRIBUTE: Final = "headers"
#: kind -> (symbol type, relocation)
KINDS: Final = {"texture": (10, 6), "sampler": (11, 7), "surface": (12, 52)}
#: From sm_90 on a sampler has a word of its own; before, it shares its texture's (upper twelve bits).
SAMPLER_ALONE: Final = 101
_TYPES: Final = {"texref": "texture", "samplerref": "sampler", "surfref": "surface"}
_BANK_END: Final = 1 << 16


def header_variables(module: Module) -> list[Var]:
    """The module's names of headers, in order of declaration."""
    return [v for v in module.vars if v.space == "tex"]


def header_symbol(v: Var) -> Symbol:
    """The symbol of such a name."""
    kind = next((_TYPES[a] for a in v.attrs if a in _TYPES), "")
    if not kind:
        raise CompileError(f"variable '{v.name}' is no texture, sampler or surface")
    return Symbol(v.name, GLOBAL, KINDS[kind][0])


def header_parameters(unit: Unit) -> list[Param]:
    """The kernel's parameters that are textures, samplers and surfaces: nothing is passed, the driver binds them by their symbols."""
    return [p for p in unit.params if p.space in KINDS]


def parameter_symbol(p: Param, text: str) -> Symbol:
    """The symbol of such a parameter: a local one of the kernel's section."""
    return Symbol(p.name, LOCAL, KINDS[p.space][0], text)


def header_words(unit: Unit, apart: bool) -> list[tuple[int, int, str]]:
    """(byte offset in bank 0, relocation, symbol) of the unit's words, in order of offsets; ``apart``: samplers have words of their own. Raises CompileError where the attribute is malformed."""
    value = unit.attrs.get(ATTRIBUTE, ())
    if not isinstance(value, tuple):
        raise bad(unit, ATTRIBUTE)
    out: list[tuple[int, int, str]] = []
    for entry in value:
        if not isinstance(entry, tuple) or len(entry) != 3:
            raise bad(unit, ATTRIBUTE)
        kind, name, at = entry
        if (
            not isinstance(kind, str)
            or kind not in KINDS
            or not isinstance(name, str)
            or not isinstance(at, int)
            or at & 3
            or not 0 <= at < _BANK_END
        ):
            raise bad(unit, ATTRIBUTE)
        out.append((int(at), SAMPLER_ALONE if apart and kind == "sampler" else KINDS[kind][1], str(name)))
    out.sort()
    if len({row[:2] for row in out}) != len(out):
        raise bad(unit, ATTRIBUTE)
    return out
