"""Names: scopes, the meaning of a name, and the tables of the function being read."""

from __future__ import annotations

from ir_format.ptx import LabelRef, Operand, PtxFunction, PtxLoc, PtxParam, PtxProto, PtxReg, PtxVar, Reg, Vec
from stages.parse.targets import Target

COMPONENTS = ("x", "y", "z", "w")
COLORS = ("r", "g", "b", "a")

# An operand with its kind, the string that instruction matching works on:
#   "r:f32"        register of that declared type          "i"            integer constant
#   "d", "f", "D"  double literal, 0f literal, 0d literal  "l"            label, or a name not known (yet)
#   "n"            negated predicate                       "s:u32"        special register of that type
#   "_"            bit bucket                              "v:global"     variable of that space (or "v:texref"...)
#   "F"            function                                "(k,k)"        vector of kinds
#   "p:k|k"        pair                                    "a:k"          address: base kind;  "a2:..." bracket list
#   "b:..."        part of a register                      "-:k"          negated register
Typed = tuple[Operand, str]


class VarSym:
    """A variable or parameter in memory; `place` is its index among the module's variables."""

    __slots__ = ("place", "space", "unique", "var", "writable")

    def __init__(self, unique: str, space: str, var: PtxVar | PtxParam, writable: bool = True) -> None:
        self.unique = unique
        self.space = space
        self.var = var
        self.writable = writable
        self.place = -1


class FuncSym:
    """A function or entry; `used` after a reference, `defined` after a body. `module_registers`: the registers of
    module scope that the body names."""

    __slots__ = ("defined", "entry", "function", "line", "proto", "module_registers")

    def __init__(self, proto: PtxProto, entry: bool, line: int) -> None:
        self.proto = proto
        self.entry = entry
        self.line = line
        self.defined = False
        self.function: PtxFunction | None = None
        self.module_registers: dict[ModuleReg, RegSym] = {}


class ModuleReg:
    """A register at module scope (PTX below 3.0): one for a thread, whichever function names it. Each function has its
    own entry in its table."""

    __slots__ = ("name", "type", "vec")

    def __init__(self, name: str, type_: str, vec: int) -> None:
        self.name = name
        self.type = type_
        self.vec = vec


class RegSym:
    """A register, or with `components` a whole vector register."""

    __slots__ = ("components", "reg", "type")

    def __init__(self, reg: Reg | None, type_: str, components: tuple[Reg, ...] = ()) -> None:
        self.reg = reg
        self.type = type_
        self.components = components

    def typed(self) -> Typed:
        """The operand for the whole register."""
        if self.components:
            return Vec(self.components), "(" + ",".join(["r:" + self.type] * len(self.components)) + ")"
        assert self.reg is not None
        return self.reg, "r:" + self.type


class Family:
    """Registers or variables `name<count>`: made one by one when first used, so a huge count costs nothing. `var` is
    what such a variable is like."""

    __slots__ = ("count", "type", "var", "vec")

    def __init__(self, count: int, type_: str, vec: int, var: PtxVar | None = None) -> None:
        self.count = count
        self.type = type_
        self.vec = vec
        self.var = var


class TargetsSym:
    """A `.branchtargets` or `.calltargets` list."""

    __slots__ = ("kind", "line", "names", "refs")

    def __init__(self, kind: str, names: tuple[str, ...], refs: list[LabelRef], line: int) -> None:
        self.kind = kind
        self.names = names
        self.refs = refs
        self.line = line


class ProtoSym:
    """A `.callprototype`."""

    __slots__ = ("proto",)

    def __init__(self, proto: PtxProto) -> None:
        self.proto = proto


Symbol = VarSym | FuncSym | RegSym | TargetsSym | ProtoSym | ModuleReg


class Scope:
    """Names of one `{}` (or of the module, or of parameters)."""

    __slots__ = ("cache", "families", "labels", "names", "numbered", "parent", "pending", "module_registers")

    def __init__(self, parent: Scope | None) -> None:
        self.parent = parent
        self.names: dict[str, Symbol] = {}
        self.families: dict[str, Family] = {}
        self.numbered: dict[str, list[int]] = {}  # by stem: numbers of the names that were declared one by one
        self.labels: dict[str, int] = {}
        # Names used before their definition, taken for labels: references to patch, and line of the first use.
        self.pending: dict[str, tuple[list[LabelRef], int]] = {}
        self.module_registers: list[str] = []  # registers and local variables of the module's scope, in order
        self.cache: dict[str, Typed] = {}  # operand text -> operand, valid while no new name is declared


class FunctionState:
    """The function being read: its tables and open scopes."""

    __slots__ = ("function", "lasting", "loc", "loc_index", "named", "scope", "target", "module_registers", "unique")

    def __init__(self, function: PtxFunction, scope: Scope, target: Target, lasting: list[PtxVar]) -> None:
        self.function = function
        self.target = target
        self.scope = scope
        # the module's variables: those of .global and .const in a body are there too, under names of their own
        self.lasting = lasting
        self.module_registers: dict[ModuleReg, RegSym] = {}
        self.loc: int | None = None
        self.named: tuple[str, PtxVar | PtxParam] | None = None  # the last variable that an operand named
        self.loc_index: dict[tuple[object, ...], int] = {}
        self.unique: dict[
            str, int
        ] = {}  # names of registers and variables in the tables, and how often they were declared

    def fresh(self, scope: Scope | None, name: str) -> str:
        """A name for the tables: the name itself, or `name$1`, `name$2`... if another one (or a visible outer one) has
        it."""
        count = self.unique.get(name)
        if count is None and (name[0] == "%" or not isinstance(lookup(scope, name, None), VarSym | FuncSym)):
            self.unique[name] = 1
            return name
        n = count or 1
        while True:
            unique = f"{name}${n}"
            n += 1
            if unique not in self.unique and lookup(scope, unique, None) is None:
                self.unique[name] = n
                self.unique[unique] = 1
                return unique

    def table(self, space: str) -> list[PtxVar]:
        """Where a variable of the body goes: what outlives the function belongs to the module."""
        return self.lasting if space in ("global", "const", "tex") else self.function.vars

    def place(self, space: str, name: str) -> str:
        """The name under which a variable of the body is in its table."""
        if self.table(space) is self.function.vars:
            return self.fresh(self.scope.parent, name)
        top = self._top()
        unique, n = f"{self.function.name}${name}", 0
        while unique in top.names:
            n += 1
            unique = f"{self.function.name}${name}${n}"
        return unique

    def enter(self, symbol: VarSym, var: PtxVar) -> None:
        """Puts a variable into its table."""
        table = self.table(var.space)
        symbol.place = len(table)
        table.append(var)
        if table is self.lasting:
            self._top().names[var.name] = symbol

    def _top(self) -> Scope:
        top = self.scope
        while top.parent is not None:
            top = top.parent
        return top

    def add_reg(self, name: str, type_: str, vec: int) -> RegSym:
        """Adds a register (or a vector register's components) to the table."""
        regs = self.function.regs
        if name[0] == "%" and name not in self.unique:
            self.unique[name] = 1
        else:
            name = self.fresh(self.scope.parent, name)
        if vec == 1:
            regs.append(PtxReg(name, type_))
            return RegSym(Reg(len(regs) - 1), type_)
        first = len(regs)
        regs.extend([PtxReg(f"{name}.{c}", type_, vec) for c in COMPONENTS[:vec]])
        return RegSym(None, type_, tuple([Reg(first + k) for k in range(vec)]))

    def module_register(self, of: ModuleReg) -> RegSym:
        """This function's entry for a register of module scope."""
        got = self.module_registers.get(of)
        if got is None:
            got = self.module_registers[of] = self.add_reg(of.name, of.type, of.vec)
        return got

    def add_var(self, name: str, like: PtxVar) -> VarSym:
        """Adds a variable of a family to the table."""
        unique = self.place(like.space, name)
        var = PtxVar(
            unique,
            like.space,
            like.type,
            like.align,
            like.size,
            like.dims,
            like.vec,
            linkage=like.linkage,
            attributes=like.attributes,
            line=like.line,
        )
        symbol = VarSym(unique, like.space, var)
        self.enter(symbol, var)
        return symbol

    def add_loc(self, key: tuple[object, ...], loc: PtxLoc) -> int:
        """Adds a source location once; returns its index."""
        index = self.loc_index.get(key)
        if index is None:
            index = self.loc_index[key] = len(self.function.locs)
            self.function.locs.append(loc)
        return index


def find_family(scope: Scope, name: str) -> tuple[str, Family] | None:
    """The register family that declares a numbered name in this scope (not its parents), and the name without leading
    zeros."""
    stem = name.rstrip("0123456789")
    family = scope.families.get(stem)
    if family is None:
        return None
    digits = name[len(stem) :]
    if not digits or len(digits) > 10:
        return None
    number = int(digits)
    if number >= family.count:
        return None
    return (name if digits[0] != "0" or len(digits) == 1 else stem + str(number)), family


def lookup(scope: Scope | None, name: str, state: FunctionState | None) -> Symbol | None:
    """The innermost declaration of a name; registers of a family come into being here."""
    while scope is not None:
        symbol = scope.names.get(name)
        if symbol is not None:
            return state.module_register(symbol) if type(symbol) is ModuleReg and state is not None else symbol
        if scope.families and state is not None:
            found = find_family(scope, name)
            if found is not None:
                plain, family = found
                if plain is not name:
                    symbol = scope.names.get(plain)
                if symbol is None:
                    if family.var is not None:
                        symbol = state.add_var(plain, family.var)
                    elif scope.parent is None:
                        symbol = ModuleReg(plain, family.type, family.vec)
                    else:
                        symbol = state.add_reg(plain, family.type, family.vec)
                scope.names[name] = scope.names[plain] = symbol
                return state.module_register(symbol) if type(symbol) is ModuleReg else symbol
        scope = scope.parent
    return None


def number(scope: Scope, name: str) -> None:
    """Notes a name that was declared alone, if a family could hold it."""
    if name[-1].isdigit():
        stem = name.rstrip("0123456789")
        digits = name[len(stem) :]
        if len(digits) <= 10 and (digits[0] != "0" or len(digits) == 1):
            scope.numbered.setdefault(stem, []).append(int(digits))


def declared_here(scope: Scope, name: str) -> bool:
    """True if the scope itself declares the name already."""
    return name in scope.names or find_family(scope, name) is not None
