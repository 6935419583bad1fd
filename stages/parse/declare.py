"""Declarations: registers, variables, parameters."""

from __future__ import annotations

from ir_format.ptx import PtxParam, PtxVar
from stages.parse import expr
from stages.parse.initial import initialise
from stages.parse.scan import Scanner
from stages.parse.symbols import Family as RegFamily
from stages.parse.symbols import FunctionState, ModuleReg, Scope, VarSym, declared_here, number
from stages.parse.table import Gate
from stages.parse.types import SCALARS, size

MAX_OBJECT = 1 << 40  # bytes of one variable; more is refused
MAX_FAMILY = (1 << 31) - 1
MAX_MODULE_FAMILY = 1 << 20  # variables of a module when a family is added: all of them are in the stream
_VECTORS = {".v2": 2, ".v4": 4}
_ATTRIBUTES = frozenset(("managed", "unified"))
_OPAQUE = ("texref", "samplerref", "surfref")


class Shape:
    """Type words collected before the names of a declaration."""

    __slots__ = ("align", "attributes", "line", "ptr", "ptr_align", "ptr_space", "type", "vec")

    def __init__(self, line: int) -> None:
        self.line = line
        self.type = ""
        self.vec = 1
        self.align = 0
        self.attributes: list[str] = []
        self.ptr = False
        self.ptr_space = ""
        self.ptr_align = 0


def shape(s: Scanner, parameter: bool = False) -> Shape:
    """Reads `.align`, `.v4`, `.attribute`, `.ptr` and the type up to the first name."""
    d = Shape(s.line)
    while s.kind == "dot":
        word = s.tok
        if word == ".align":
            line = s.line
            s.next()
            n = _integer(s)
            if n > 0xFFFFFFFF:
                s.notes.error("Constant overflow", line)
            if n <= 0 or n & (n - 1) or n > 0xFFFFFFFF:
                s.notes.error("Alignment must be a power of two", line)
                n = 1
            if d.type and not d.ptr:
                s.syntax_error()
            if d.ptr:
                d.ptr_align = n
            else:
                d.align = n
            continue
        if word in _VECTORS:
            d.vec = _VECTORS[word]
        elif word == ".attribute":
            s.next()
            _attributes(s, d)
            continue
        elif word == ".ptr" and parameter and not d.ptr:
            d.ptr = True
        elif d.ptr and word in (".global", ".const", ".shared", ".local"):
            d.ptr_space = word[1:]
        elif word[1:] in SCALARS and not d.type:
            d.type = word[1:]
        else:
            s.syntax_error()
        s.next()
    if not d.type:
        s.syntax_error()
    if d.vec > 1 and d.type == "pred":
        s.notes.error("Predicate type can only be used to define scalar register variables", d.line)
    elif d.vec * size(d.type) > 16:
        s.notes.error("Vector type too large, exceeds 128 bit limit", d.line)
    elif d.type == "f16x2" and d.vec == 1:
        for text in s.target.refuses(Gate(42, 53), "Feature", ".f16x2 packed data-type"):
            s.notes.error(text, d.line)
    return d


def _check_wide(s: Scanner, d: Shape, dims: tuple[int, ...], line: int) -> None:
    """The gate of `.b128`: for each name, but not for arrays (measured)."""
    if d.type == "b128" and d.vec == 1 and not dims:
        for text in s.target.refuses(Gate(83, 70, order="vt"), "Feature", "Type .b128"):
            s.notes.error(text, line)


def _attributes(s: Scanner, d: Shape) -> None:
    s.expect("(")
    while True:
        word = s.tok
        if s.kind != "dot":
            s.syntax_error()
        text = word[1:]
        if text not in _ATTRIBUTES:
            s.syntax_error()
        s.next()
        if s.kind == "(":
            s.next()
            args = [str(expr.integer(s))]
            while s.accept(","):
                args.append(str(expr.integer(s)))
            s.expect(")")
            text += "(" + ",".join(args) + ")"
        d.attributes.append(text)
        if not s.accept(","):
            break
    s.expect(")")


def _one_space(s: Scanner) -> None:
    """A second state space is an error, and skipped."""
    while s.kind == "dot" and s.tok in (".param", ".reg", ".global", ".const", ".shared", ".local"):
        s.notes.error("Multiple state spaces specified", s.line)
        s.next()


def registers(s: Scanner, fs: FunctionState | None, scope: Scope) -> None:
    """`.reg` up to its semicolon; without a function at module scope."""
    s.next()
    _one_space(s)
    d = shape(s)
    scope.cache.clear()
    twice: list[tuple[str, int]] = []  # reported after the semicolon: a syntax error before it comes first
    while True:
        line = s.line
        name = s.expect("id")
        _check_wide(s, d, (), line)
        if fs is None:
            scope.module_registers.append(name)
        if s.kind == "<":
            _family(s, scope, name, RegFamily(_count(s), d.type, d.vec), line, twice)
        elif declared_here(scope, name):
            twice.append((name, line))
        elif s.kind == "[":
            _dims(s)
            s.notes.error(f"Variable '{name}' cannot be allocated into a register", line)
        elif s.kind == "=":
            s.next()
            expr.constant(s)
            s.notes.error(f"No initial value is allowed for '{name}' in this state space", line)
        elif d.type in _OPAQUE:
            s.notes.error("Texture/surface variable must be at module or entry parameter scope", line)
            s.notes.error(f"Variable '{name}' cannot be allocated into a register", line)
        else:
            used_too_early(s, scope, name, line)
            number(scope, name)
            scope.names[name] = fs.add_reg(name, d.type, d.vec) if fs is not None else ModuleReg(name, d.type, d.vec)
        if not s.accept(","):
            break
    s.expect(";")
    _report_twice(s, twice)


def _count(s: Scanner) -> int:
    """`<count>` after the name of a family."""
    s.next()
    if s.kind != "int":
        s.syntax_error()
    count = int(expr.int_literal(s).number)
    s.expect(">")
    return count


def _family(s: Scanner, scope: Scope, name: str, family: RegFamily, line: int, twice: list[tuple[str, int]]) -> bool:
    """Adds a family to a scope; False (and a message, at once or among `twice`) if it can't be."""
    if name in scope.families:
        twice.append((f"{name}<", line))
        return False
    if family.count > MAX_FAMILY:
        s.notes.error("Constant overflow", line)
        return False
    scope.families[name] = family
    held = [n for n in scope.numbered.get(name, ()) if n < family.count]
    twice.extend([(f"{name}{n}", line) for n in sorted(held)])
    return not held


def _report_twice(s: Scanner, twice: list[tuple[str, int]]) -> None:
    for name, line in twice:
        s.notes.error(f"Duplicate definition of variable '{name}'", line)


def _dims(s: Scanner) -> tuple[int, ...]:
    dims: list[int] = []
    while s.kind == "[":
        s.next()
        if s.kind == "]":
            dims.append(0)
        else:
            dims.append(_integer(s))
        s.expect("]")
        if len(dims) > 64:
            s.syntax_error()
    return tuple(dims)


def _product(dims: tuple[int, ...], s: Scanner, line: int) -> int:
    total = 1
    for n in dims:
        total *= n
        if total > MAX_OBJECT:
            s.notes.fatal("Variable too large", line)
    return total


def _integer(s: Scanner) -> int:
    if s.kind != "int":
        s.syntax_error()
    return int(expr.int_literal(s).number)


def used_too_early(s: Scanner, scope: Scope, name: str, line: int) -> None:
    """A name may not be used before its declaration: the use was taken for a label."""
    if name in scope.pending:
        s.notes.fatal(f"Label expected for forward reference of '{name}'", line)


_WRONG_SPACE = {
    "local": "Module-scoped variables in .local state space are not allowed with ABI",
    "reg": "Module-scoped variables in .reg state space are not allowed with ABI",
    "param": "Parameter variables may not be declared at module scope",
}


def variables(s: Scanner, scope: Scope, fs: FunctionState | None, linkage: str, out: list[PtxVar]) -> None:
    """A variable declaration from its state space to the semicolon."""
    line = s.line
    space = s.tok[1:]
    module_registers = fs is None and space in ("local", "reg") and s.target.version < 30
    if module_registers and space == "reg":
        registers(s, None, scope)
        return
    s.next()
    if space == "tex":
        _old_texture(s, fs, line)
    if fs is None and space in _WRONG_SPACE and not module_registers:
        s.notes.error(_WRONG_SPACE[space], line)
    if fs is not None and space == "param" and s.target.version < 20:
        s.notes.error("Parameter variables must be declared within .entry parameter list", line)
    if linkage == "common" and space != "global":
        s.notes.error(".common variables must be declared in .global space", line)
    if space == "const" and s.kind == "[":
        s.next()
        expr.integer(s)
        s.expect("]")
    d = shape(s)
    scope.cache.clear()
    twice: list[tuple[str, int]] = []
    while True:
        line = s.line
        name = s.expect("id")
        if s.kind == "<":
            _variable_family(s, d, space, scope, fs, _variable(s, d, space, name, line, linkage), out, twice)
            if not s.accept(","):
                break
            continue
        var = _variable(s, d, space, name, line, linkage)
        if module_registers:
            scope.module_registers.append(name)
        if fs is not None:
            used_too_early(s, scope, name, line)
        if s.kind == "=":
            s.next()
            initialise(s, var, scope, fs)
        elif 0 in var.dims and linkage != "extern" and space != "param":
            s.notes.error(f"Non-external variable '{name}' has incomplete type", line)
        _check_variable(s, var, d, space, line)
        if not _declare(s, scope, fs, var, out, line):
            twice.append((name, line))
        if not s.accept(","):
            break
    s.expect(";")
    _report_twice(s, twice)


def _variable_family(
    s: Scanner,
    d: Shape,
    space: str,
    scope: Scope,
    fs: FunctionState | None,
    like: PtxVar,
    out: list[PtxVar],
    twice: list[tuple[str, int]],
) -> None:
    """`name<count>` in memory: scalars without a value (measured). In a function each is made when first used; those of
    the module are there anyway."""
    family = RegFamily(_count(s), d.type, d.vec, like)
    _check_variable(s, like, d, space, like.line)
    if not _family(s, scope, like.name, family, like.line, twice) or fs is not None:
        return
    if len(out) + family.count > MAX_MODULE_FAMILY:
        s.notes.fatal(f"More than {MAX_MODULE_FAMILY} variables of a module are not supported by orias", like.line)
    del scope.families[like.name]  # each has its own name from here on; the family's is kept for what follows
    for n in range(family.count):
        var = PtxVar(
            f"{like.name}{n}", like.space, like.type, like.align, like.size, like.dims, like.vec,
            linkage=like.linkage, attributes=like.attributes, line=like.line,
        )  # fmt: skip
        _declare(s, scope, None, var, out, like.line)
    scope.families[like.name] = family


def _old_texture(s: Scanner, fs: FunctionState | None, line: int) -> None:
    """`.tex .u64 name`: what a texture was before `.texref` (PTX 1.5)."""
    if s.target.version >= 15:
        s.notes.error("Deprecated feature: '.tex' not supported as of PTX version 1.5", line)
    elif fs is not None:
        s.notes.error("Texture variables must be declared at module scope", line)


def _check_variable(s: Scanner, var: PtxVar, d: Shape, space: str, line: int) -> None:
    if d.type == "pred" and d.vec == 1:
        s.notes.error(f"Predicate variable '{var.name}' must be in register state space", line)
    if space == "tex":
        if d.type not in ("u32", "u64") or d.vec > 1 or var.dims:
            s.notes.error(f"Variable '{var.name}' must be type .u32 or .u64", line)
        var.type = "texref"
        return
    if space == "param" and not var.dims and (d.type == "f16x2" or d.vec > 1):
        s.notes.error(f"Variable '{var.name}' cannot be allocated in .param state space", line)
    if space != "global":
        for word in var.attributes:
            if word in ("managed", "unified"):
                s.notes.error(f"Illegal attribute '.{word}' for symbol '{var.name}'", line)
        if d.type in _OPAQUE:
            s.notes.error("Texture and surface variables must be declared in .global space", line)


def _variable(s: Scanner, d: Shape, space: str, name: str, line: int, linkage: str) -> PtxVar:
    dims = _dims(s)
    _check_wide(s, d, dims, line)
    item = size(d.type) * d.vec
    total = item * _product(dims, s, line)
    return PtxVar(
        name, "tex" if d.type in _OPAQUE else space, d.type, d.align or item, total, dims, d.vec,
        linkage=linkage, attributes=tuple(d.attributes), line=line,
    )  # fmt: skip


def _declare(s: Scanner, scope: Scope, fs: FunctionState | None, var: PtxVar, out: list[PtxVar], line: int) -> bool:
    """Adds a variable to its scope; False if the scope has the name already."""
    name = var.name
    known = scope.names.get(name)
    if (
        fs is None
        and isinstance(known, VarSym)
        and isinstance(known.var, PtxVar)
        and "extern" in (known.var.linkage, var.linkage)
    ):
        old = known.var
        if (old.type, old.space, old.vec) != (var.type, var.space, var.vec):
            s.notes.error(f"Inconsistent redefinition of variable '{name}'", line)
        elif old.linkage == "extern" and var.linkage == "":
            s.notes.error(f"'.extern' variable '{name}' cannot be resolved by a '.static'", line)
        if var.linkage != "extern":
            out[known.place] = var
            known.var = var
        return True
    if declared_here(scope, name):
        return False
    if fs is not None:
        var.name = fs.place(var.space, name)
    number(scope, name)
    symbol = scope.names[name] = VarSym(var.name, var.type if var.space == "tex" else var.space, var)
    if fs is not None:
        fs.enter(symbol, var)
    else:
        symbol.place = len(out)
        out.append(var)
    return True


def parameters(
    s: Scanner, scope: Scope, fs: FunctionState | None, entry: bool, returns: bool = False
) -> list[PtxParam]:
    """`( parameter, ... )`.  With a function state the names are declared in the scope."""
    s.expect("(")
    out: list[PtxParam] = []
    offset = 0
    while s.kind != ")":
        space = s.tok
        bare = s.kind == "dot" and space[1:] in SCALARS
        if s.kind != "dot" or (not bare and space not in (".param", ".reg")):
            s.syntax_error()
        if bare:
            space = ".param"
        else:
            s.next()
            _one_space(s)
        d = shape(s, parameter=True)
        line = s.line
        name = s.expect("id")
        if bare:
            what = "Entry" if entry else "Function"
            s.notes.error(f"{what} parameter '{name}' must have .param state space", line)
        p = _parameter(s, d, name, space[1:], line)
        if d.type == "pred" and space != ".reg":
            s.notes.error(f"Predicate variable '{name}' must be in register state space", line)
        opaque = d.type in _OPAQUE
        if space == ".param" and (
            (not p.dims and (d.type == "f16x2" or d.vec > 1))
            or (opaque and not entry and s.target.can("parameters-in-memory"))
        ):
            s.notes.error(f"Variable '{name}' cannot be allocated in .param state space", line)
        if not entry and space == ".param" and not s.target.can("parameters-in-memory"):
            s.notes.error(f"Function parameter '{name}' has illegal state space", line)
        if entry and space == ".reg":
            s.notes.error(f"Entry parameter '{name}' must have .param state space", line)
        if entry and p.dims and 0 in p.dims:
            s.notes.error("Parameter to entry function cannot be an incomplete array.", line)
        if opaque and entry:  # the driver binds it by its symbol: nothing is passed
            p.size = 0
            p.offset = offset
        elif p.space == "param":
            offset = -(-offset // p.align) * p.align
            p.offset = offset
            offset += p.size
        if fs is not None and name != "_":
            _declare_parameter(s, scope, fs, p, line, entry, returns)
        out.append(p)
        if not s.accept(","):
            break
    if returns and len(out) > 1 and any(p.space != "reg" for p in out):
        s.notes.error("Multiple return parameters require .register state space", s.line)
    s.expect(")")
    return out


def _parameter(s: Scanner, d: Shape, name: str, space: str, line: int) -> PtxParam:
    dims = _dims(s)
    _check_wide(s, d, dims, line)
    item = size(d.type) * d.vec
    total = item * _product(dims, s, line)
    return PtxParam(
        name, d.type, d.align or item, total, dims, space,
        ptr=d.ptr, ptr_space=d.ptr_space, ptr_align=d.ptr_align, vec=d.vec,
    )  # fmt: skip


def _declare_parameter(
    s: Scanner, scope: Scope, fs: FunctionState, p: PtxParam, line: int, entry: bool, returns: bool
) -> None:
    if declared_here(scope, p.name):
        s.notes.error(f"Duplicate definition of variable '{p.name}'", line)
        return
    name = p.name
    if p.space == "reg":
        symbol = fs.add_reg(name, p.type, p.vec)
        p.reg = symbol.reg.index if symbol.reg is not None else symbol.components[0].index
        scope.names[name] = symbol
        return
    p.name = fs.fresh(scope.parent, name)
    kind = p.type if p.type in _OPAQUE else "param"
    scope.names[name] = VarSym(p.name, kind, p, writable=(returns and not entry) or kind != "param")
