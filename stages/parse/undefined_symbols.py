"""What a program must have: every function that is called, every variable, even where no kernel comes by them (measured
on ptxas, which has the same words but no lines; `explain` gives the lines)."""

from __future__ import annotations

from collections.abc import Mapping

from ir_format.diag import Diagnostic
from ir_format.ptx import CallTarget, PtxFunction, PtxInst, PtxModule, Sym
from ir_format.target import given_by_driver
from stages.parse.symbols import FuncSym
from stages.parse.units import mentioned


def check_definitions(
    module: PtxModule, functions: dict[str, FuncSym], file: str, options: Mapping[str, object]
) -> list[Diagnostic]:
    """Diagnostics about what no source defines, up to the first fatal one. An object may leave open what is `.extern`,
    an extensible whole program what is called."""
    separate = bool(options.get("compile-only"))
    extensible = bool(options.get("extensible-whole-program"))

    def said(severity: str, text: str, line: int) -> Diagnostic:
        return Diagnostic(severity, text, file, line) if options.get("explain") else Diagnostic(severity, text)

    aliases = {a.name for a in module.aliases}
    open_ = {n: f for n, f in functions.items() if f.function is None and n not in aliases and not given_by_driver(n)}
    tail = " in extensible whole program compilation." if extensible else " "
    if extensible:
        found = _address(module, functions, open_)
        if found is not None:
            return [said("fatal", f"Cannot take address of function '{found[0]}'{tail}", found[1])]
    if separate or extensible:
        open_ = {n: f for n, f in open_.items() if f.proto.linkage != "extern"}
    for symbol in functions.values():
        if symbol.function is not None and not open_.keys().isdisjoint(mentioned(symbol.function)):
            use = _use(symbol.function, open_)
            if use is not None:
                called, name, line = use
                text = (
                    f"Unresolved extern function '{name}'" if called else f"Cannot take address of function '{name}' "
                )
                return [said("fatal", text, line)]
    out: list[Diagnostic] = []
    for v in () if separate or extensible else module.variables:
        if v.linkage == "extern" and not v.size and v.space != "shared":
            return [*out, said("fatal", f"Unresolved extern variable '{v.name}'", v.line)]
        if v.linkage == "extern" and v.size:
            text = f"Unresolved extern variable '{v.name}' in whole program compilation, ignoring extern qualifier"
            out.append(said("warning", text, v.line))
    for v in module.variables:
        for r in v.relocs:
            if r.symbol in open_:
                return [*out, said("fatal", f"Cannot take address of function '{r.symbol}' ", v.line)]
    for name, symbol in open_.items():
        if symbol.proto.linkage != "extern":
            return [*out, said("fatal", f"Unresolved extern function '{name}'", symbol.line)]
    return out


def _address(module: PtxModule, functions: dict[str, FuncSym], names: dict[str, FuncSym]) -> tuple[str, int] | None:
    """Where the address of one of the names is taken."""
    for v in module.variables:
        for r in v.relocs:
            if r.symbol in names:
                return r.symbol, v.line
    for symbol in functions.values():
        if symbol.function is None or names.keys().isdisjoint(mentioned(symbol.function)):
            continue
        for item in symbol.function.body:
            for x in item.operands if type(item) is PtxInst else ():
                if isinstance(x, Sym) and x.name in names:
                    return x.name, item.line
    return None


def _use(function: PtxFunction, names: dict[str, FuncSym]) -> tuple[bool, str, int] | None:
    """The first use of one of the names: whether it is a call or the function's address, the name, the line."""
    for item in function.body:
        if type(item) is not PtxInst:
            continue
        for x in item.operands:
            if type(x) is CallTarget and isinstance(x.target, Sym) and x.target.name in names:
                return True, x.target.name, item.line
            if isinstance(x, Sym) and x.name in names:
                return False, x.name, item.line
    return None
