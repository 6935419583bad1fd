"""Initialisers of variables: numbers, strings, addresses, in braces or not."""

from __future__ import annotations

from ir_format.ptx import PtxReloc, PtxVar
from stages.parse import expr
from stages.parse.scan import Scanner
from stages.parse.symbols import FuncSym, FunctionState, Scope, VarSym, lookup
from stages.parse.types import SCALARS, size

MAX_INIT = 1 << 28  # bytes of one initialiser


class _Filler:
    """Writes initialiser elements into the bytes of a variable."""

    __slots__ = ("data", "item", "relocs", "type", "var")

    def __init__(self, var: PtxVar) -> None:
        self.var = var
        self.type = var.type
        self.item = size(var.type)
        self.data = bytearray()
        self.relocs: list[PtxReloc] = []

    def put(self, index: int, raw: bytes) -> None:
        end = (index + 1) * self.item
        if len(self.data) < end:
            self.data.extend(bytes(end - len(self.data)))
        self.data[end - self.item : end] = raw

    def put_all(self, index: int, values: list[int]) -> None:
        """Integers at successive places."""
        mask = (1 << 8 * self.item) - 1
        raw = b"".join([(v & mask).to_bytes(self.item, "little") for v in values])
        start = index * self.item
        if len(self.data) < start:
            self.data.extend(bytes(start - len(self.data)))
        self.data[start : start + len(raw)] = raw


def initialise(s: Scanner, var: PtxVar, scope: Scope, fs: FunctionState | None) -> None:
    line = s.line
    if var.space not in ("global", "const", "tex"):
        s.notes.error(f"No initial value is allowed for '{var.name}' in this state space", line)
    elif var.linkage == "extern":
        s.notes.error(f"No initial value is allowed for external symbol '{var.name}'", line)
    if var.type in ("f16", "f16x2"):
        s.notes.fatal(f"No initial value is allowed for .{var.type} type", line)
    if var.space == "tex":
        var.fields = _fields(s)
        return
    dims = var.dims + ((var.vec,) if var.vec > 1 else ())
    fill = _Filler(var)
    if s.kind == "{":
        if not dims:
            s.notes.fatal("Initial value type mismatch", line)
        else:
            _braces(s, fill, dims, 0, 0, scope, fs)
    else:
        if s.kind not in ("id", "f32", "f64") and not expr.starts_constant(s):
            s.syntax_error()
        if dims:
            s.notes.fatal("Initial value type mismatch", line)
        _element(s, fill, 0, scope, fs)
    if var.dims and var.dims[0] == 0:
        row = fill.item * max(1, var.vec)
        for n in var.dims[1:]:
            row *= n
        count = -(-len(fill.data) // row) if row else 0
        var.dims = (count, *var.dims[1:])
        var.size = count * row
    if var.size > MAX_INIT:
        s.notes.fatal("Initialised variable too large", line)
    data = bytes(fill.data[: var.size])
    var.init = data + bytes(var.size - len(data))
    var.relocs = tuple(fill.relocs)


def _braces(
    s: Scanner, fill: _Filler, dims: tuple[int, ...], level: int, base: int, scope: Scope, fs: FunctionState | None
) -> int:
    """`{...}` at one dimension; returns the number of elements written by it (in innermost elements)."""
    s.expect("{")
    stride = 1
    for n in dims[level + 1 :]:
        stride *= n
    limit = dims[level]
    most = (limit * stride if limit else MAX_INIT) if level + 1 == len(dims) and SCALARS[fill.type][1] != "f" else 0
    index = 0
    if s.kind != "}":
        while True:
            values = expr.run(s, most - index)
            if values:
                fill.put_all(base + index, values)
                index += len(values)
                if s.kind == "}":
                    break
            if (limit and index >= limit * stride) or base + index > MAX_INIT:
                s.notes.fatal("Greater number of elements in array initializer", s.line)
            if s.kind == "{" and level + 1 < len(dims):
                index = -(-index // stride) * stride
                _braces(s, fill, dims, level + 1, base + index, scope, fs)
                index += stride
            elif s.kind == "{":
                s.notes.fatal("Initial value type mismatch", s.line)
            elif level + 1 < len(dims):
                s.notes.fatal(_flat(s, limit), s.line)
            else:
                _element(s, fill, base + index, scope, fs)
                index += 1
            if not s.accept(","):
                break
            if s.kind == "}":
                break
    s.expect("}")
    return index


def _flat(s: Scanner, limit: int) -> str:
    """A list that leaves out inner braces: its elements are counted, then refused."""
    count = 1
    while s.kind not in ("}", "eof"):
        count += s.kind == ","
        s.next()
    return (
        "Greater number of elements in array initializer" if limit and count > limit else "Initial value type mismatch"
    )


def _element(s: Scanner, fill: _Filler, index: int, scope: Scope, fs: FunctionState | None) -> None:
    kind = s.kind
    if kind == "id" and s.tok != "WARP_SZ":
        _address(s, fill, index, 0, scope, fs)
        return
    if kind == "f32" or kind == "f64":
        bits = int(s.tok[2:], 16)
        s.next()
        if kind == "f64" and fill.item == 4:
            bits = expr.f32_bits(expr.f64_from_bits(bits))
        fill.put(index, (bits & ((1 << 8 * fill.item) - 1)).to_bytes(fill.item, "little"))
        return
    line = s.line
    value = expr.expression(s).number
    if s.kind == "(" and isinstance(value, int):  # a byte mask: 0xff00(symbol)
        s.next()
        _address(s, fill, index, value, scope, fs)
        s.expect(")")
        return
    floating = SCALARS[fill.type][1] == "f"
    if isinstance(value, float) != floating:
        s.notes.fatal("Initial value type mismatch", line)
    if isinstance(value, float):
        bits = expr.f64_bits(value) if fill.item == 8 else expr.f32_bits(value)
    else:
        bits = value
    fill.put(index, (bits & ((1 << 8 * fill.item) - 1)).to_bytes(fill.item, "little"))


def _address(s: Scanner, fill: _Filler, index: int, mask: int, scope: Scope, fs: FunctionState | None) -> None:
    generic = False
    if s.kind == "id" and s.tok == "generic":
        generic = True
        s.next()
        s.expect("(")
    line = s.line
    name = s.expect("id")
    if generic:
        s.expect(")")
    addend = 0
    if s.kind == "+":
        s.next()
        addend = expr.integer(s)
    elif s.kind == "[":
        s.next()
        addend = expr.integer(s)
        s.expect("]")
    symbol = lookup(scope, name, fs)
    if isinstance(symbol, VarSym):
        if symbol.space in ("shared", "local", "param"):
            s.notes.fatal("Variable used as initial value not in .global or .const state space", line)
        name = symbol.unique
    elif not isinstance(symbol, FuncSym):
        s.notes.fatal(f"Invalid initial value symbol '{name}'", line)
    if SCALARS[fill.type][1] == "f":
        s.notes.fatal("Initial value type mismatch", line)
    fill.put(index, bytes(fill.item))
    fill.relocs.append(PtxReloc(index * fill.item, fill.item, name, addend, generic, mask))


def _fields(s: Scanner) -> tuple[tuple[str, str], ...]:
    """`{ key = value, ... }` of an opaque object."""
    out: list[tuple[str, str]] = []
    s.expect("{")
    while s.kind != "}":
        key = s.expect("id")
        s.expect("=")
        if s.kind == "id":
            value = s.tok
            s.next()
        else:
            value = str(expr.integer(s))
        out.append((key, value))
        if not s.accept(","):
            break
    s.expect("}")
    return tuple(out)


# --------------------------------------------------------------------------- parameters
