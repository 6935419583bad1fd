"""Operands: grammar and name resolution in one step."""

from __future__ import annotations

from ir_format.late_pattern import late_pattern
from ir_format.ptx import (
    Addr,
    Bracket,
    Imm,
    ImmF32,
    ImmF64,
    LabelRef,
    Neg,
    NotPred,
    Operand,
    Pair,
    Part,
    Reg,
    Sink,
    SReg,
    Sym,
    Vec,
)
from ir_format.typed import Final
from stages.parse import expr, table, vectors
from stages.parse.rules import TYPES
from stages.parse.scan import Scanner
from stages.parse.sregs import SREGS, sreg_type
from stages.parse.symbols import (
    COLORS,
    COMPONENTS,
    FuncSym,
    FunctionState,
    ProtoSym,
    RegSym,
    Scope,
    TargetsSym,
    Typed,
    VarSym,
    lookup,
)
from stages.parse.table import Gate
from stages.parse.types import size

_SINK = Sink()
_SELECTOR = late_pattern(r"b[0-7]{1,4}|h[0-3]{1,2}")


def operand(s: Scanner, fs: FunctionState) -> Typed:
    """Reads one operand; stops with a syntax error if there is none."""
    kind = s.kind
    if kind == "id":
        left = _named(s, fs)
        if s.kind == "|":
            s.next()
            right = _pair_half(s, fs)
            return _pair(left, right, s)
        return left
    if kind == "{":
        left = _vector(s, fs)
        if s.kind == "|":
            s.next()
            return _pair(left, _pair_half(s, fs), s)
        return left
    if kind == "[":
        return _bracket(s, fs)
    if kind == "!" and _next_is_name(s):
        s.next()
        inner, k = _named(s, fs)
        if isinstance(inner, Reg):
            return NotPred(inner.index), "n" if k == "r:pred" else "n:" + k
        return inner, "n:" + k
    if kind == "-" and _next_is_name(s):
        s.next()
        line = s.line
        inner, k = _named(s, fs)
        if isinstance(inner, Reg | Part):
            return Neg(inner), "-:" + k
        s.notes.error("Illegal argument to unary minus", line)
        return inner, "-:" + k
    return _constant(s)


def _next_is_name(s: Scanner) -> bool:
    text = s.text
    pos = s.pos
    while pos < s.end and text[pos] in " \t\r\n\f\v":
        pos += 1
    return pos < s.end and (text[pos].isalpha() or text[pos] in "_$%") and not text.startswith("WARP_SZ", pos)


def _constant(s: Scanner) -> Typed:
    value = expr.constant(s)
    if isinstance(value, Imm):
        return value, "i"
    if isinstance(value, ImmF32):
        return value, "f"
    return value, "d"


def _pair_half(s: Scanner, fs: FunctionState) -> Typed:
    if s.kind != "id":
        s.syntax_error()
    return _named(s, fs)


def _pair(left: Typed, right: Typed, s: Scanner) -> Typed:
    kind = f"p:{left[1]}|{right[1]}"
    a, b = left[0], right[0]
    if isinstance(a, Reg | Sink | Vec) and isinstance(b, Reg | Sink):
        return Pair(a, b), kind
    return a, kind


def _named(s: Scanner, fs: FunctionState) -> Typed:
    """An identifier with its component, offset or subscript."""
    name = s.tok
    line = s.line
    s.next()
    if name == "_":
        return _SINK, "_"
    if name == "WARP_SZ":
        return Imm(32), "i"
    symbol = lookup(fs.scope, name, fs)
    if isinstance(symbol, RegSym):
        if s.kind == "dot":
            return _component(s, symbol)
        if s.kind == "[":
            s.notes.error("Array indexing on non-array", s.line)
            _bracket(s, fs)
        return symbol.typed()
    if symbol is None and name[0] == "%":
        special = _special(s, name, fs)
        if special is not None:
            return special
    if isinstance(symbol, VarSym):
        head = "V:" if s.kind == "[" else "v:"
        kind = head + symbol.space
        if head == "V:" and not symbol.var.dims:
            s.notes.error("Array indexing on non-array", s.line)
        fs.named = name, symbol.var
        return Sym(symbol.unique, _offset(s, symbol.var.type)), kind if symbol.writable else f"{kind}!{name}"
    if isinstance(symbol, FuncSym):
        if s.kind == "[":
            s.notes.error("Array indexing on non-array", s.line)
        offset = _offset(s)
        return Sym(name, offset), "F"
    if isinstance(symbol, TargetsSym | ProtoSym):
        return Sym(name), "t"
    if s.kind == "dot":
        _field(s)
        s.notes.error(f"Unknown field '{s.tok}'", s.line)
        s.next()
    return unresolved(fs.scope, name, line), "l"


def _field(s: Scanner) -> None:
    """A dotted word after a name: a modifier there is no field but a syntax error."""
    word = s.tok[1:]
    if word not in TYPES and table.is_modifier(word):
        s.syntax_error()


def unresolved(scope: Scope, name: str, line: int) -> LabelRef:
    """A reference to a label that may come later."""
    known: Scope | None = scope
    ref = LabelRef(-1)
    if name in scope.labels:
        ref.index = scope.labels[name]
        return ref
    assert known is not None
    entry = scope.pending.get(name)
    if entry is None:
        scope.pending[name] = ([ref], line)
    else:
        entry[0].append(ref)
    return ref


def _offset(s: Scanner, type_: str = "b8") -> int:
    """Bytes of `+ constant` or `[constant]` after a variable's name: a subscript counts elements of the variable's
    type, also those of its vectors and of inner arrays (measured)."""
    if s.kind == "+":
        s.next()
        return expr.integer(s)
    if s.kind == "[":
        s.next()
        value = expr.integer(s)
        s.expect("]")
        return value * (8 if type_ in ("texref", "surfref", "samplerref") else max(1, size(type_)))
    return 0


def _component(s: Scanner, symbol: RegSym) -> Typed:
    selector = s.tok[1:]
    line = s.line
    if not symbol.components and not _SELECTOR.fullmatch(selector):
        _field(s)
    s.next()
    if symbol.components:
        for names in (COMPONENTS, COLORS):
            if selector in names and names.index(selector) < len(symbol.components):
                return symbol.components[names.index(selector)], "r:" + symbol.type
        s.notes.error(f"Unknown vector selector: '{selector}'", line)
        return symbol.components[0], "r:" + symbol.type
    assert symbol.reg is not None
    if not _SELECTOR.fullmatch(selector):
        wide = symbol.type in ("b32", "u32", "s32", "f32", "f16x2")
        s.notes.error(f"Unknown video selector: '.{selector}'" if wide else f"Unknown field '.{selector}'", line)
    return Part(symbol.reg, selector), "b:" + symbol.type


def _special(s: Scanner, name: str, fs: FunctionState) -> Typed | None:
    facts = SREGS.get(name) or SREGS.get(name + ".x")
    if facts is not None and (facts[1] > fs.target.version or facts[2] > fs.target.number):
        for text in fs.target.refuses(Gate(facts[1], facts[2], order="vt"), "Feature", name):
            s.notes.error(text, s.line)
    if s.kind == "dot":
        full = name + s.tok
        kind = sreg_type(full)
        if kind is None:
            if sreg_type(name + ".x") is None:
                return None
            s.notes.error(f"Unknown vector selector: '{s.tok[1:]}'", s.line)
            full, kind = name + ".x", "u32"
        s.next()
        return SReg(full), "s:" + kind
    kind = sreg_type(name)
    if kind is None and sreg_type(name + ".x") is not None:
        return Vec(tuple([SReg(f"{name}.{c}") for c in "xyzw"])), "(s:b32,s:b32,s:b32,s:b32)"
    return None if kind is None else (SReg(name), "s:" + kind)


def _vector(s: Scanner, fs: FunctionState) -> Typed:
    """`{a, b, ...}`: registers, constants and `_`; other names are errors at once."""
    s.next()
    elems: list[Operand] = []
    kinds: list[str] = []
    while True:
        name, line, end = s.tok, s.line, s.pos
        if s.kind == "id":
            elem, kind = _named(s, fs)
            if not vectors.is_element(kind):
                if s.text[end : s.start].strip():
                    s.syntax_error()
                s.notes.error(f"Illegal expression '{name}'", line)
        else:
            elem, kind = _constant(s)
        elems.append(elem)
        kinds.append(kind)
        if s.kind != ",":
            break
        s.next()
    s.expect("}")
    return Vec(tuple(elems)), "(" + ",".join(kinds) + ")"


#: What follows the first name in brackets: names and vectors (measured, ptxas 13.5): coordinates; a sampler, or the
#: offset of a handle, and another; a tensor's address, sizes and strides before its coordinates.
_INSIDE: Final = ("V", "N", "NV", "NN", "NVV", "NVVNV")


def _bracket(s: Scanner, fs: FunctionState) -> Typed:
    """`[address]`; for textures and tensors `[name, name]`, `[name, {...}]` or `[name, name, {...}]`."""
    s.next()
    plain = s.kind == "id"
    end = s.pos
    line = s.line
    first, kind = _address(s, fs)
    if kind.startswith("a:V:"):  # an element is an address without brackets around it
        s.notes.fatal("Parsing error near '[': syntax error", line)
    if s.kind == "]":
        s.next()
        return first, kind
    if s.kind != "," or not plain or s.text[end : s.start].strip():
        s.syntax_error()
    s.next()
    parts, kinds, seen = [first], [kind], ""
    while True:
        seen += "V" if s.kind == "{" else "N" if s.kind == "id" and s.tok != "_" else "?"
        if not any(form.startswith(seen) for form in _INSIDE):
            s.syntax_error()
        end = s.pos
        part, kind = _vector(s, fs) if seen[-1] == "V" else _named(s, fs)
        if seen[-1] == "N" and s.text[end : s.start].strip():
            s.syntax_error()
        parts.append(part)
        kinds.append(kind)
        if s.kind != "," or seen == "V":
            break
        s.next()
    if seen not in _INSIDE:
        s.syntax_error()
    s.expect("]")
    return Bracket(tuple(parts)), "a2:" + ",".join(kinds)


def _address(s: Scanner, fs: FunctionState) -> Typed:
    if s.kind == "id" and s.tok != "WARP_SZ":
        base, kind = _named(s, fs)
        if isinstance(base, Sym):
            return Addr(Sym(base.name), base.offset), "a:" + kind
        if isinstance(base, Reg):
            offset = 0
            if s.kind == "+":
                s.next()
                offset = expr.integer(s)
            return Addr(base, offset), "a:" + kind
        if s.kind == "+":
            s.next()
            expr.integer(s)
        return base, "a:" + kind
    value, kind = _constant(s)
    return (Addr(value), "a:i") if isinstance(value, Imm) else (value, "a:" + kind)


def literal_bits(value: Operand, type_: str) -> Operand:
    """A double literal in an f32 position becomes f32 bits, and the other way round; in a vector, element by
    element."""
    if isinstance(value, ImmF64) and type_ == "f32":
        return ImmF32(expr.f32_bits(expr.f64_from_bits(value.bits)))
    if isinstance(value, ImmF32) and type_ == "f64":
        return ImmF64(expr.f64_bits(expr.f32_value(value.bits)))
    if isinstance(value, Vec):
        return Vec(tuple([literal_bits(e, type_) for e in value.elems]))
    return value
