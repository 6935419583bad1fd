"""The context that the functions of a unit share while they are lowered: target, module, symbols, shared-memory layout,
library functions."""

from __future__ import annotations

from collections.abc import Sequence

from ir_format import ptx
from ir_format.alignment import align_up
from ir_format.diag import CompileError
from ir_format.model import Function, Header, Imm, Reg, Unit
from ir_format.ptx import PtxFunction, PtxInst, PtxModule, PtxUnit, PtxVar
from ir_format.target import CONST_MAX, Target, target
from stages.lower.builder import Builder


class UnitContext:
    """Shared state of a unit. ``module_vars`` holds the module variables by name; ``funcs`` the PTX functions of the
    unit and the library functions by name."""

    __slots__ = (
        "_divisions",
        "_places",
        "cache_options",
        "contracts",
        "debugging",
        "funcs",
        "header",
        "helpers",
        "module",
        "module_vars",
        "pu",
        "relocatable",
        "shared_at",
        "shared_size",
        "sm",
        "target",
        "target_name",
        "unit",
    )

    def __init__(self, pu: PtxUnit, module: PtxModule, header: Header, unit: Unit) -> None:
        self.pu = pu
        self.module = module
        self.header = header
        self.unit = unit
        self.target: Target = target(header.target)
        self.target_name = header.target
        self.sm = self.target.sm
        self.module_vars: dict[str, PtxVar] = {v.name: v for v in module.variables}
        self.funcs: dict[str, PtxFunction] = {f.name: f for f in pu.functions}
        self.relocatable = bool(header.options.get("compile-only"))  # an object for the linker: addresses are symbols
        self.contracts = header.options.get("fmad", 1) != 0 and header.options.get("opt-level", 3) != 0
        self._places: dict[str, int] | None = None
        self._divisions: frozenset[str] | None = None
        self.helpers: list[str] = []  # requested library functions, in order
        self.cache_options: dict[str, str] = {
            name: value for name, value in header.options.items() if name.endswith("-cache") and isinstance(value, str)
        }
        options = header.options
        self.debugging = bool(options.get("device-debug")) and not options.get("suppress-debug-info")
        self.shared_at: dict[str, int] = {}
        self.shared_size = 0
        self._lay_out_shared()

    @property
    def divisions(self) -> frozenset[str]:
        """The integer divisions and remainders of the unit's own functions, as ``div.u64``."""
        if self._divisions is None:
            self._divisions = frozenset(
                f"{i.op}.{i.types[0]}"
                for f in self.pu.functions
                for i in f.body
                if type(i) is PtxInst and i.op in ("div", "rem") and i.types
            )
        return self._divisions

    # ------------------------------------------------------------------ shared memory

    def _lay_out_shared(self) -> None:
        """Static shared variables of the kernel in order of declaration; unsized extern arrays all start after them."""
        static: list[tuple[str, PtxVar]] = []
        dynamic: list[PtxVar] = []
        for name in self.pu.variables:
            v = self.module_vars.get(name)
            if v is not None and v.space == "shared" and not self.relocatable:
                (dynamic.append(v) if v.linkage == "extern" and v.size == 0 else static.append((v.name, v)))
        for f in self.pu.functions:
            for v in f.vars:
                if v.space == "shared":
                    (
                        dynamic.append(v)
                        if v.linkage == "extern" and v.size == 0
                        else static.append((self.local_name(f, v.name), v))
                    )
        at = 0
        align = 1
        for name, v in static:
            align = max(align, v.align)
            at = align_up(at, max(1, v.align))
            self.shared_at[name] = at
            at += v.size
        most = self.target.shared_max
        if at > most:
            raise CompileError(
                f"Entry function '{self.pu.name}' uses too much shared data (0x{at:x} bytes, 0x{most:x} max)"
            )
        dyn_align = max((v.align for v in dynamic), default=1)
        if dynamic and not self.relocatable:
            at = align_up(at, max(dyn_align, 16))  # measured: the static part is rounded up where a dynamic one follows
        self.shared_size = at
        if self.relocatable and static:
            self.unit.attrs["shared_vars"] = tuple((self.shared_symbol(name), v.size, v.align) for name, v in static)
        for v in dynamic:
            self.shared_at[v.name] = align_up(at, dyn_align)
        if dynamic:
            self.unit.attrs["dynamic_shared_align"] = dyn_align
            align = max(align, dyn_align)
        self.unit.attrs["shared"] = at
        self.unit.attrs["shared_align"] = align

    @staticmethod
    def local_name(f: PtxFunction, name: str) -> str:
        """Key of a function-scope shared variable (two functions may use one name)."""
        return f"{f.name}\0{name}"

    def shared_symbol(self, key: str) -> str:
        """The name of a shared variable in an object: its own name, or one made of the function's name and its own."""
        function, _, name = key.partition("\0")
        return f"${function}${name}" if name else key

    def shared_offset(self, b: Builder, name: str) -> int:
        """Byte offset of a shared variable in the CTA's window, without the base that the SM adds."""
        got = self.shared_at.get(self.local_name(b.pf, name))
        return self.shared_at[name] if got is None else got

    # ------------------------------------------------------------------ symbols

    def find(self, b: Builder, name: str) -> tuple[str, object]:
        """The declaration of a symbol: (``param``|``var``|``func``|``extern``, declaration)."""
        for p in (*b.pf.params, *b.pf.rets):
            if p.name == name:
                return "param", p
        for v in b.pf.vars:
            if v.name == name:
                return "var", v
        got = self.module_vars.get(name)
        if got is not None:
            return "var", got
        if name in self.funcs:
            return "func", self.funcs[name]
        if not self.relocatable:
            for a in self.module.aliases:
                if a.name == name and a.aliasee in self.funcs:
                    return "func", self.funcs[a.aliasee]
        for e in (*self.pu.externs, *self.module.externs):
            if e.name == name:
                return "extern", e
        raise CompileError(f"Unknown symbol '{name}'", b.line)

    def address_of(self, b: Builder, x: ptx.Sym) -> Reg | Imm:
        """The 64-bit address of a symbol in its space."""
        from stages.lower.spaces import symbol_address

        return symbol_address(b, x)

    def call_helper(self, b: Builder, name: str, args: Sequence[Reg | Imm]) -> list[Reg]:
        """Call a library function (:func:`stages.lower.abi.calls.call_helper`)."""
        from stages.lower.abi.calls import call_helper

        return call_helper(b, name, args)

    def special(self, b: Builder, name: str, t: str) -> Reg:
        """The value of a special register."""
        from stages.lower.special import read_special

        return read_special(b, name, b.words(t))

    def use_symbol(self, name: str) -> str:
        """Record that the unit refers to a module symbol."""
        if name not in self.unit.symbols:
            self.unit.symbols.append(name)
        return name

    def space_of(self, b: Builder, x: ptx.Operand) -> str:
        """The state space of an address operand's symbol, '' if it has none."""
        base = x.base if type(x) is ptx.Addr else x
        if type(base) is not ptx.Sym:
            return ""
        kind, decl = self.find(b, base.name)
        if kind == "param":
            return "param"
        return decl.space if isinstance(decl, PtxVar) else ""

    def pointer_to(self, name: str) -> int:
        """The pointer to a function in a whole program: the function's index in the table that every kernel with calls
        by pointer has in bank 2 (see :func:`function_places`); 0 if there is no such function."""
        if self._places is None:
            self._places = function_places(self.module)
        return self._places.get(name, 0)

    def use_table(self, line: int) -> None:
        """Put the table of functions at the start of the kernel's bank 2. `elf` fills in the places of the copies."""
        attrs = self.unit.attrs
        if "function_table" not in attrs:
            names = sorted(_pointed(self.pu, self.module), key=self.pointer_to)
            size = max((self.pointer_to(n) for n in names), default=0) + 8
            if size > CONST_MAX:
                raise CompileError(f"more than {CONST_MAX // 8 - 1} functions in a module that calls by pointer", line)
            attrs["function_table"] = tuple(names)
            attrs["function_places"] = tuple([self.pointer_to(n) for n in names])
            attrs["bank2"] = (
                1,
                *[0] * (size // 4 - 1),
            )  # a null pointer leads to 1, which is no instruction's place (measured)

    def need_helper(self, name: str) -> PtxFunction:
        """The library function ``name``, which is lowered into this unit. CompileError if the library has none."""
        got = self.funcs.get(name)
        if got is None:
            from stages.lower.math.functions import load_helper

            got = load_helper(name)
            self.funcs[name] = got
        if name not in self.helpers and all(f.name != name for f in self.pu.functions):
            self.helpers.append(name)
        return got


def function_places(module: PtxModule) -> dict[str, int]:
    """The pointers to the functions of a whole program, by name. They are the same in all kernels, because kernels may
    pass them to each other through memory."""
    out = {name: 8 * (i + 1) for i, name in enumerate(module.functions)}
    for a in module.aliases:
        if a.aliasee in out:
            out[a.name] = out[a.aliasee]
    return out


def _pointed(pu: PtxUnit, module: PtxModule) -> set[str]:
    """The functions of the unit to which pointers may exist: those that bodies or data name, and those that no direct
    call reaches (they are in the unit because other kernels take their address)."""
    own = {f.name: f for f in pu.functions[1:]}
    calls: dict[str, set[str]] = {}
    other = {a.name: a.aliasee for a in module.aliases}
    named = {r.symbol for v in module.variables for r in v.relocs}
    for f in pu.functions:
        mine = calls[f.name] = set()
        named.update(r.symbol for v in f.vars for r in v.relocs)
        for item in f.body:
            if type(item) is ptx.PtxInst:
                for x in item.operands:
                    if type(x) is ptx.CallTarget:
                        if type(x.target) is ptx.Sym:
                            mine.add(other.get(x.target.name, x.target.name))
                    else:
                        named.update(_symbols(x))
    found = {other.get(n, n) for n in named} & own.keys()
    seen: set[str] = set()
    work = [pu.name, *found]
    while work:
        name = work.pop()
        if name not in seen:
            seen.add(name)
            work += calls.get(name, ())
    return found | (own.keys() - seen)


def _symbols(x: object) -> list[str]:
    """The names in an operand that is not the target of a call. Only the whole operand of a move, or an element of a
    vector, can be a function."""
    if type(x) is ptx.Sym:
        return [x.name]
    return [n for e in x.elems for n in _symbols(e)] if type(x) is ptx.Vec else []


def function_kind(ctx: UnitContext, f: PtxFunction) -> str:
    """Kind of a function of the unit."""
    if f.entry:
        return "entry"
    return "helper" if f.name in ctx.helpers else "func"


def new_function(ctx: UnitContext, f: PtxFunction) -> Function:
    """An empty Ori function for a PTX one, with its source positions."""
    fn = Function(f.name, function_kind(ctx, f))
    fn.locs = [
        (
            loc.file,
            loc.line,
            loc.col,
            -1 if loc.inlined_at is None else loc.inlined_at,
            loc.function[0] if loc.function else "",
        )
        for loc in f.locs
    ]
    return fn
