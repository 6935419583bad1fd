"""PTX-level IR back to PTX text.

The text parses back to the same IR (line numbers apart), and ptxas makes the same code of it.  Scopes are flat: every
variable and register is at the top of its function under its unique name.
"""

from __future__ import annotations

from collections.abc import Iterable

from ir_format.ptx import (
    Addr,
    Bracket,
    CallTarget,
    Imm,
    ImmF32,
    ImmF64,
    LabelList,
    LabelRef,
    Neg,
    NotPred,
    Operand,
    Pair,
    Part,
    PtxDirectives,
    PtxFunction,
    PtxInst,
    PtxLabel,
    PtxModule,
    PtxParam,
    PtxPragma,
    PtxProto,
    PtxReloc,
    PtxSection,
    PtxUnit,
    PtxVar,
    Reg,
    SReg,
    Sym,
    Vec,
)
from stages.parse.types import size
from stages.parse.units import mentioned

_ROW = 16  # initialiser elements a line


def print_module(module: PtxModule, units: Iterable[PtxUnit]) -> str:
    """The whole module as PTX text."""
    out = [
        f".version {module.version[0]}.{module.version[1]}",
        f".target {', '.join((module.target, *module.target_options))}",
    ]
    if module.version >= (2, 3):
        out.append(f".address_size {module.address_size}")
    for f in module.files:
        extra = f", {f.timestamp}, {f.size}" if f.timestamp is not None else ""
        out.append(f'.file {f.index} "{f.name}"{extra}')
    out.extend(f'.pragma "{text}";' for text in module.pragmas)
    functions: dict[str, PtxFunction] = {}
    for unit in units:
        for function in unit.functions:
            functions.setdefault(function.name, function)
    for proto in module.externs:
        out.append(_signature(proto.linkage, False, proto.name, proto.rets, proto.params, proto.directives) + ";")
    order = sorted(functions.values(), key=lambda f: f.line)
    early = _used_early(module, order)
    out.extend(_function_head(f) + ";" for f in order if f.name in early)
    out.extend(variable(v) for v in module.variables)
    out.extend(f".alias {a.name}, {a.aliasee};" for a in module.aliases if a.aliasee in functions)
    for function in order:
        out.extend(print_function(function))
    for section in module.sections:
        out.extend(_section(section))
    return "\n".join(out) + "\n"


def _used_early(module: PtxModule, order: list[PtxFunction]) -> set[str]:
    """Functions that need a declaration because something refers to them before their body."""
    names = {f.name for f in order}
    used = {r.symbol for v in module.variables for r in v.relocs} | {
        a.aliasee for a in module.aliases if a.aliasee in names
    }
    early: set[str] = set()
    done: set[str] = set()
    for function in order:
        early.update(n for n in mentioned(function) if n not in done and n != function.name)
        done.add(function.name)
    return early | used


# --------------------------------------------------------------------------- declarations


def _typed(type_: str, vec: int) -> str:
    return f".v{vec} .{type_}" if vec > 1 else f".{type_}"


def _dims(dims: tuple[int, ...]) -> str:
    return "".join(f"[{n}]" if n else "[]" for n in dims)


def variable(v: PtxVar, comma: str = ";") -> str:
    """A variable declaration with its initialiser."""
    words = [f".{v.linkage}"] if v.linkage else []
    words.append(f".{'global' if v.space == 'tex' else v.space}")
    if v.attributes:
        words.append(".attribute(" + ", ".join(f".{a}" for a in v.attributes) + ")")
    if v.space != "tex":
        words.append(f".align {v.align}")
    words.append(_typed(v.type, v.vec))
    words.append(v.name + _dims(v.dims))
    text = " ".join(words)
    if v.fields:
        return text + " = {" + ", ".join(f"{key} = {value}" for key, value in v.fields) + "}" + comma
    if v.init is None:
        return text + comma
    return text + " = " + _initialiser(v) + comma


def _initialiser(v: PtxVar) -> str:
    assert v.init is not None
    item = size(v.type)
    relocs = {r.offset: r for r in v.relocs}
    elements = []
    for offset in range(0, len(v.init), item):
        reloc = relocs.get(offset)
        raw = int.from_bytes(v.init[offset : offset + item], "little")
        elements.append(_address_element(reloc) if reloc is not None else _element(v.type, raw))
    dims = (*v.dims, v.vec) if v.vec > 1 else v.dims
    if not dims:
        return elements[0]
    for n in dims[:0:-1]:
        elements = ["{" + ", ".join(elements[k : k + n]) + "}" for k in range(0, len(elements), n)]
    lines = [", ".join(elements[k : k + _ROW]) for k in range(0, len(elements), _ROW)]
    return "{" + ",\n".join(lines) + "}"


def _element(type_: str, raw: int) -> str:
    if type_ == "f32":
        return f"0f{raw:08X}"
    if type_ == "f64":
        return f"0d{raw:016X}"
    return str(raw)


def _address_element(r: PtxReloc) -> str:
    inner = f"generic({r.symbol})" if r.generic else r.symbol
    if r.addend:
        inner += f"+{r.addend}"
    return f"{r.mask}({inner})" if r.mask else inner


def _parameter(p: PtxParam, regs: dict[int, str]) -> str:
    words = [f".{p.space}"]
    if p.space == "reg":
        return f".reg {_typed(p.type, p.vec)} {regs.get(p.reg, p.name)}"
    natural = size(p.type) * p.vec
    if p.align != natural and not p.ptr:
        words.append(f".align {p.align}")
    words.append(_typed(p.type, p.vec))
    if p.ptr:
        words.append(".ptr")
        if p.ptr_space:
            words.append(f".{p.ptr_space}")
        if p.ptr_align:
            words.append(f".align {p.ptr_align}")
    words.append(p.name + _dims(p.dims))
    return " ".join(words)


def _parameters(params: Iterable[PtxParam], regs: dict[int, str]) -> str:
    return "(" + ", ".join(_parameter(p, regs) for p in params) + ")"


def _signature(
    linkage: str,
    entry: bool,
    name: str,
    rets: tuple[PtxParam, ...],
    params: tuple[PtxParam, ...],
    directives: PtxDirectives,
    regs: dict[int, str] | None = None,
) -> str:
    regs = regs or {}
    head = f".{linkage} " if linkage else ""
    head += ".entry " if entry else ".func "
    if rets:
        head += _parameters(rets, regs) + " "
    head += name + _parameters(params, regs)
    return head + "".join(f"\n{line}" for line in _directives(directives))


def _directives(d: PtxDirectives) -> list[str]:
    out = []
    for word, triple in ((".maxntid", d.maxntid), (".reqntid", d.reqntid), (".reqnctapercluster", d.reqnctapercluster)):
        if triple is not None:
            out.append(f"{word} {', '.join(str(n) for n in triple)}")
    for word, value in (
        (".minnctapersm", d.minnctapersm), (".maxnctapersm", d.maxnctapersm), (".maxnreg", d.maxnreg),
        (".local_maxnreg", d.local_maxnreg), (".maxclusterrank", d.maxclusterrank), (".abi_preserve", d.abi_preserve),
        (".abi_preserve_control", d.abi_preserve_control),
    ):  # fmt: skip
        if value is not None:
            out.append(f"{word} {value}")
    for word, flag in (
        (".explicitcluster", d.explicitcluster),
        (".blocksareclusters", d.blocksareclusters),
        (".noreturn", d.noreturn),
    ):
        if flag:
            out.append(word)
    out.extend(f'.pragma "{text}";' for text in d.pragmas)
    return out


def _function_head(f: PtxFunction) -> str:
    names = {k: r.name.split(".")[0] for k, r in enumerate(f.regs)}
    return _signature(f.linkage, f.entry, f.name, f.rets, f.params, f.directives, names)


def _registers(f: PtxFunction) -> list[str]:
    """Declarations in table order, so that parsing numbers the registers the same way."""
    skip: set[int] = set()
    for p in (*f.params, *f.rets):
        if p.reg >= 0:
            skip.update(range(p.reg, p.reg + p.vec))
    out: list[str] = []
    names: list[str] = []
    current = ("", 0)
    k = 0
    while k < len(f.regs):
        reg = f.regs[k]
        if k not in skip:
            kind = (reg.type, reg.vec)
            if names and (kind != current or len(names) == _ROW):
                out.append(f".reg {_typed(*current)} {', '.join(names)};")
                names = []
            current = kind
            names.append(reg.name.split(".")[0] if reg.vec > 1 else reg.name)
        k += reg.vec
    if names:
        out.append(f".reg {_typed(*current)} {', '.join(names)};")
    return out


def print_function(f: PtxFunction) -> list[str]:
    """An entry or function with its body, as lines."""
    out = [_function_head(f), "{"]
    out.extend(_registers(f))
    out.extend(variable(v) for v in f.vars)
    for proto in f.protos:
        out.append(_prototype(proto))
    body = _Body(f)
    code = body.lines()
    out.extend(body.tables)
    out.extend(code)
    out.append("}")
    return out


def print_instruction(f: PtxFunction, inst: PtxInst) -> str:
    """One instruction of a function."""
    return _Body(f).instruction(inst)


def _prototype(proto: PtxProto) -> str:
    rets = _parameters(proto.rets, {}) + " " if proto.rets else ""
    tail = "".join(f" {line}" for line in _directives(proto.directives))
    return f"{proto.name}: .callprototype {rets}_ {_parameters(proto.params, {})}{tail};"


# --------------------------------------------------------------------------- bodies


class _Body:
    """Prints the items of a function; `tables` gets the target lists that they need."""

    __slots__ = ("function", "names", "tables")

    def __init__(self, function: PtxFunction) -> None:
        self.function = function
        self.names = [r.name for r in function.regs]
        self.tables: list[str] = []

    def lines(self) -> list[str]:
        out: list[str] = []
        loc: int | None = None
        shown = 0  # the table's places up to here are printed; later ones may name them in `inlined_at`
        labels = self.function.labels
        for item in self.function.body:
            if isinstance(item, PtxInst):
                if item.loc != loc and item.loc is not None:
                    out.extend(self.location(k) for k in range(shown, item.loc))
                    out.append(self.location(item.loc))
                    shown = max(shown, item.loc + 1)
                loc = item.loc
                out.append(self.instruction(item))
            elif isinstance(item, PtxLabel):
                out.append(f"{labels[item.index]}:")
            elif isinstance(item, PtxPragma):
                out.append(f'.pragma "{item.text}";')
        out.extend(self.location(k) for k in range(shown, len(self.function.locs)))
        return out

    def location(self, index: int) -> str:
        loc = self.function.locs[index]
        text = f".loc {loc.file} {loc.line} {loc.col}"
        if loc.function is not None and loc.inlined_at is not None:
            label, offset = loc.function
            outer = self.function.locs[loc.inlined_at]
            shift = f"+{offset}" if offset else ""
            text += f", function_name {label}{shift}, inlined_at {outer.file} {outer.line} {outer.col}"
        return text

    def instruction(self, inst: PtxInst) -> str:
        guard = ""
        if inst.guard is not None:
            guard = f"@{'!' if inst.guard[1] else ''}{self.names[inst.guard[0]]} "
        operands = ", ".join(self.operand(x) for x in inst.operands)
        return f"{guard}{inst.opcode} {operands};" if operands else f"{guard}{inst.opcode};"

    def operand(self, x: Operand) -> str:
        if isinstance(x, Reg):
            return self.names[x.index]
        if isinstance(x, Imm):
            return _integer(x.value)
        if isinstance(x, Addr):
            base = self.operand(x.base)
            return f"[{base}+{x.offset}]" if x.offset else f"[{base}]"
        if isinstance(x, Vec):
            return "{" + ", ".join(self.operand(e) for e in x.elems) + "}"
        if isinstance(x, NotPred):
            return "!" + self.names[x.index]
        if isinstance(x, LabelRef):
            return self.function.labels[x.index]
        if isinstance(x, ImmF32):
            return f"0f{x.bits:08X}"
        if isinstance(x, ImmF64):
            return f"0d{x.bits:016X}"
        if isinstance(x, SReg):
            return x.name
        if isinstance(x, Sym):
            return f"{x.name}+{x.offset}" if x.offset else x.name
        return self.rare(x)

    def rare(self, x: Operand) -> str:
        if isinstance(x, Pair):
            return f"{self.operand(x.first)}|{self.operand(x.second)}"
        if isinstance(x, Bracket):
            parts = [self.operand(p)[1:-1] if isinstance(p, Addr) else self.operand(p) for p in x.parts]
            return "[" + ", ".join(parts) + "]"
        if isinstance(x, Part):
            return f"{self.names[x.reg.index]}.{x.selector}"
        if isinstance(x, Neg):
            return "-" + self.operand(x.operand)
        if isinstance(x, LabelList):
            name = f"$targets{len(self.tables)}"
            self.tables.append(f"{name}: .branchtargets {', '.join(self.function.labels[k] for k in x.labels)};")
            return name
        if isinstance(x, CallTarget):
            return self.call(x)
        return "_"

    def call(self, x: CallTarget) -> str:
        parts = []
        if x.rets:
            parts.append("(" + ", ".join(self.operand(e) for e in x.rets) + ")")
        parts.append(self.operand(x.target))
        if x.args or x.proto or x.targets:
            parts.append("(" + ", ".join(self.operand(e) for e in x.args) + ")")
        if x.proto:
            parts.append(x.proto)
        elif x.targets:
            name = f"$targets{len(self.tables)}"
            self.tables.append(f"{name}: .calltargets {', '.join(x.targets)};")
            parts.append(name)
        return ", ".join(parts)


def _integer(value: int) -> str:
    return str(value) if value > -(1 << 63) else "-9223372036854775807-1"


def _section(section: PtxSection) -> list[str]:
    out = [f".section {section.name}", "{"]
    labels: dict[int, list[str]] = {}
    for name, offset in section.labels:
        labels.setdefault(offset, []).append(name)
    fixups = {f.offset: f for f in section.fixups}
    stops = sorted({*labels, *fixups, *(f.offset + f.size for f in section.fixups), 0, len(section.data)})
    for start, end in zip(stops, [*stops[1:], len(section.data)], strict=True):
        out.extend(f"{name}:" for name in labels.get(start, ()))
        fixup = fixups.get(start)
        if fixup is not None:
            tail = f"-{fixup.minus}" if fixup.minus else ""
            tail += f"+{fixup.addend}" if fixup.addend else ""
            out.append(f".b{8 * fixup.size} {fixup.symbol}{tail}")
            continue
        data = section.data[start:end]
        for k in range(0, len(data), _ROW):
            out.append(".b8 " + ", ".join(str(b) for b in data[k : k + _ROW]))
    out.append("}")
    return out
