"""Names of textures, samplers and surfaces: their symbols, the words of bank 0 that the driver fills with header
numbers, and the relocations of these.

Measured on ptxas 13.0: a `.texref` and its like at module scope are undefined global symbols of a type of their own;
each kernel that uses one has a word for it after its parameters, relocated by section `.rel[a].nv.constant0.K`, the
last word first.
"""

from __future__ import annotations

from ir_format.diag import CompileError
from ir_format.model import Module, Unit, Var
from ir_format.typed import Final
from stages.elf.attrs import bad
from stages.elf.layout import Kernel
from stages.elf.symbols import GLOBAL, LOCAL, OBJECT, WEAK, Symbol

ATTRIBUTE: Final = "headers"
#: kind -> (symbol type, relocation)
KINDS: Final = {"texture": (10, 6), "sampler": (11, 7), "surface": (12, 52)}
#: From sm_90 on a sampler has a word of its own; before, it shares its texture's (upper twelve bits).
SAMPLER_ALONE: Final = 101
_TYPES: Final = {"texref": "texture", "samplerref": "sampler", "surfref": "surface"}
#: Sizes of the driver's entries for textures, samplers and surfaces: symbols that it resolves.
ENTRY_SIZES: Final = (
    ".nv.unified.texrefDescSize",
    ".nv.independent.texrefDescSize",
    ".nv.independent.samplerrefDescSize",
    ".nv.surfrefDescSize",
)
R_ABS32: Final = 55
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


def entry_sizes(k: Kernel) -> list[tuple[int, int, str, int]]:
    """The relocations of moves that take the size of an entry."""
    return [
        (f.begin + r.offset, R_ABS32, r.symbol, 0)
        for f in k.functions
        for r in f.code.relocs
        if r.symbol in ENTRY_SIZES
    ]


def header_symbols(k: Kernel, text: str) -> list[Symbol]:
    """Symbols of the kernel, each once a file whichever kernels name it: sizes of the driver's entries, and parameters
    that are textures and their like (local symbols of the kernel's section ``text``)."""
    sizes = [Symbol(name, WEAK, OBJECT, "", 0, 4) for _, _, name, _ in entry_sizes(k)]
    return [*sizes, *[Symbol(p.name, LOCAL, KINDS[p.space][0], text) for p in k.unit.params if p.space in KINDS]]


def header_words(unit: Unit, apart: bool) -> list[tuple[int, int, str]]:
    """(byte offset in bank 0, relocation, symbol) of the unit's words, in order of offsets; ``apart``: samplers have
    words of their own. Raises CompileError where the attribute is malformed."""
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
