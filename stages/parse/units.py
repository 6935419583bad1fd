"""Makes the units: a kernel with private copies of the functions that it reaches."""

from __future__ import annotations

from ir_format.ptx import Addr, Bracket, CallTarget, Operand, PtxFunction, PtxInst, PtxModule, PtxUnit, PtxVar, Sym, Vec
from stages.parse.symbols import FuncSym

MAX_REACHED = 1 << 20  # functions and variables of all units together: each unit lists its own


class UnitsTooLarge(Exception):
    """Kernels times what they reach is more than `MAX_REACHED`; the text is the message."""


def build_units(module: PtxModule, functions: dict[str, FuncSym], separate: bool) -> list[PtxUnit]:
    """Units in source order; fills `module.externs`, and drops from the module's lists the functions that no unit
    holds.

    Whole-program: one unit per entry.  `separate`: one per entry or function, no copies.  Raises UnitsTooLarge.
    """
    aliases = {a.name: a.aliasee for a in module.aliases}
    called: dict[str, tuple[str, ...]] = {}  # names that each function's body mentions, in order
    variables = {v.name: v for v in module.variables}
    module.externs = [f.proto for f in functions.values() if not f.defined]
    units: list[PtxUnit] = []
    reached = 0
    for name, symbol in functions.items():
        if symbol.function is None or not (symbol.entry or separate):
            continue
        unit = _unit(name, symbol.function, functions, variables, aliases, called, separate)
        reached += len(unit.functions) + len(unit.variables) + len(unit.externs) - 1
        if reached > MAX_REACHED:
            raise UnitsTooLarge(
                f"The kernels up to '{name}' reach more than {MAX_REACHED} functions and variables, "
                f"each counted for each kernel"
            )
        units.append(unit)
    if units and not separate:
        _fill_pointers(units, functions, variables, aliases, called)
        _adopt(units, functions, variables, aliases, called)
    if not separate:
        kept = {f.name for u in units for f in u.functions}
        module.functions = [name for name in module.functions if name in kept]
        module.aliases = [a for a in module.aliases if a.aliasee in kept]
    return units


class _Holdings:
    """What a unit holds, by name, while it takes in more."""

    def __init__(self, unit: PtxUnit) -> None:
        self.unit = unit
        self.functions = {f.name for f in unit.functions}
        self.variables = set(unit.variables)
        self.externs = {e.name for e in unit.externs}

    def take(self, extra: PtxUnit) -> list[PtxFunction]:
        """Add what another unit has and this one has not; the functions that are new."""
        new = [f for f in extra.functions if f.name not in self.functions]
        self.unit.functions += new
        self.unit.variables += [v for v in extra.variables if v not in self.variables]
        self.unit.externs += [e for e in extra.externs if e.name not in self.externs]
        self.functions.update(f.name for f in new)
        self.variables.update(extra.variables)
        self.externs.update(e.name for e in extra.externs)
        return new


def _fill_pointers(
    units: list[PtxUnit],
    functions: dict[str, FuncSym],
    variables: dict[str, PtxVar],
    aliases: dict[str, str],
    called: dict[str, tuple[str, ...]],
) -> None:
    """A kernel that calls by pointer may have got the pointer from any other kernel, or from data: it gets every
    function of which an address is taken."""
    bodies = {f.name: f for u in units for f in u.functions}
    calling = {name for name, f in bodies.items() if any(_by_pointer(i) for i in f.body)}
    if not calling:
        return
    taken = dict.fromkeys([r.symbol for v in variables.values() for r in v.relocs])
    for f in bodies.values():
        taken.update(dict.fromkeys(_addresses(f)))
    reached = sum(len(u.functions) for u in units)
    for unit in units:
        held = _Holdings(unit)
        if held.functions.isdisjoint(calling):
            continue
        work = list(taken)
        for word in work:  # grows while it is read
            name = aliases.get(word, word)
            symbol = functions.get(name)
            if symbol is None or symbol.function is None or symbol.entry or name in held.functions:
                continue
            extra = _unit(name, symbol.function, functions, variables, aliases, called, False)
            for f in held.take(extra):
                work.extend(_addresses(f))
            reached += len(extra.functions)
            if reached > MAX_REACHED:
                raise UnitsTooLarge(
                    f"The kernels up to '{unit.name}' reach more than {MAX_REACHED} functions and "
                    f"variables, each counted for each kernel"
                )


def _by_pointer(item: object) -> bool:
    return (
        type(item) is PtxInst
        and item.op == "call"
        and any(type(x) is CallTarget and not isinstance(x.target, Sym) for x in item.operands)
    )


def _addresses(function: PtxFunction) -> tuple[str, ...]:
    """Names that a function mentions elsewhere than as what it calls."""
    out: dict[str, None] = {}
    for item in function.body:
        if type(item) is PtxInst:
            for x in item.operands:
                if not isinstance(x, CallTarget):
                    _names(x, out)
    for var in function.vars:
        for reloc in var.relocs:
            out[reloc.symbol] = None
    return tuple(out)


def _adopt(
    units: list[PtxUnit],
    functions: dict[str, FuncSym],
    variables: dict[str, PtxVar],
    aliases: dict[str, str],
    called: dict[str, tuple[str, ...]],
) -> None:
    """Functions that only module data point to: the first unit gets them, so that no address is left without code."""
    reached = {f.name for u in units for f in u.functions}
    held = _Holdings(units[0])
    for var in variables.values():
        for reloc in var.relocs:
            symbol = functions.get(reloc.symbol)
            if symbol is None or symbol.function is None or symbol.entry or reloc.symbol in reached:
                continue
            extra = _unit(reloc.symbol, symbol.function, functions, variables, aliases, called, False)
            held.take(extra)
            reached.update(f.name for f in extra.functions)


def _unit(
    name: str,
    top: PtxFunction,
    functions: dict[str, FuncSym],
    variables: dict[str, PtxVar],
    aliases: dict[str, str],
    called: dict[str, tuple[str, ...]],
    separate: bool,
) -> PtxUnit:
    unit = PtxUnit(name, [top])
    seen = {name}
    used: dict[str, None] = {}
    work = [top]
    for function in work:  # grows while it is read
        if function.name not in called:
            called[function.name] = mentioned(function)
        queue = list(called[function.name])
        queue.reverse()
        while queue:
            word = queue.pop()
            if word in variables:
                if word not in used:
                    used[word] = None
                    queue.extend([r.symbol for r in reversed(variables[word].relocs)])
                continue
            symbol = functions.get(word)
            if symbol is None or word in seen:
                continue
            seen.add(word)
            if word in aliases and not separate:
                unit.externs.append(symbol.proto)
                queue.append(aliases[word])
            elif symbol.function is None or separate:
                unit.externs.append(symbol.proto)
            else:
                copy = symbol.function
                if symbol.entry:
                    from copy import deepcopy

                    copy = deepcopy(copy)
                unit.functions.append(copy)
                work.append(copy)
    unit.variables = list(used)
    return unit


def mentioned(function: PtxFunction) -> tuple[str, ...]:
    """Names of symbols in a body and in the initialisers of its variables, in order of first mention."""
    out: dict[str, None] = {}
    for item in function.body:
        if type(item) is PtxInst:
            for x in item.operands:
                _names(x, out)
    for var in function.vars:
        for reloc in var.relocs:
            out[reloc.symbol] = None
    own = {v.name for v in function.vars} | {p.name for p in (*function.params, *function.rets)}
    return tuple([n for n in out if n not in own])


def _names(x: Operand, out: dict[str, None]) -> None:
    if isinstance(x, Sym):
        out[x.name] = None
    elif isinstance(x, Addr):
        if isinstance(x.base, Sym):
            out[x.base.name] = None
    elif isinstance(x, Vec):
        for e in x.elems:
            _names(e, out)
    elif isinstance(x, Bracket):
        for e in x.parts:
            _names(e, out)
    elif isinstance(x, CallTarget):
        if isinstance(x.target, Sym):
            out[x.target.name] = None
        for e in (*x.rets, *x.args):
            _names(e, out)
        for name in x.targets:
            out[name] = None
