"""What a program must have: every function that is called, every variable, even where no kernel comes by them (measured
on ptxas, which has the same words but no lines; `explain` gives the lines)."""

from __future__ import annotations

from ir_format.diag import Diagnostic
from ir_format.ptx import CallTarget, PtxFunction, PtxInst, PtxModule, Sym
from ir_format.target import given_by_driver
from stages.parse.symbols import FuncSym
from stages.parse.units import mentioned


def check_definitions(
    module: PtxModule, functions: dict[str, FuncSym], file: str, separate: bool, explain: bool
) -> list[Diagnostic]:
    """Diagnostics about what no source defines, up to the first fatal one. An object (`separate`) may leave open what
    is `.extern`."""
    out: list[Diagnostic] = []

    def said(severity: str, text: str, line: int) -> Diagnostic:
        return Diagnostic(severity, text, file, line) if explain else Diagnostic(severity, text)

    for v in () if separate else module.variables:
        if v.linkage == "extern" and not v.size and v.space != "shared":
            return [*out, said("fatal", f"Unresolved extern variable '{v.name}'", v.line)]
        if v.linkage == "extern" and v.size:
            text = f"Unresolved extern variable '{v.name}' in whole program compilation, ignoring extern qualifier"
            out.append(Diagnostic("warning", text, file, v.line))
    aliases = {a.name for a in module.aliases}
    open_ = {n: f for n, f in functions.items() if f.function is None and n not in aliases and not given_by_driver(n)}
    if separate:
        open_ = {n: f for n, f in open_.items() if f.proto.linkage != "extern"}
    if not open_:
        return out
    for v in module.variables:
        for r in v.relocs:
            if r.symbol in open_:
                return [*out, said("fatal", f"Cannot take address of function '{r.symbol}' ", v.line)]
    for symbol in functions.values():
        if symbol.function is not None and not open_.keys().isdisjoint(mentioned(symbol.function)):
            found = _use(symbol.function, open_)
            if found is not None:
                return [*out, said("fatal", *found)]
    for name, symbol in open_.items():
        if symbol.proto.linkage != "extern":
            return [*out, said("fatal", f"Unresolved extern function '{name}'", symbol.line)]
    return out


def _use(function: PtxFunction, names: dict[str, FuncSym]) -> tuple[str, int] | None:
    """The first use of one of the names: a call, or the function's address."""
    for item in function.body:
        if type(item) is not PtxInst:
            continue
        for x in item.operands:
            if type(x) is CallTarget and isinstance(x.target, Sym) and x.target.name in names:
                return f"Unresolved extern function '{x.target.name}'", item.line
            if isinstance(x, Sym) and x.name in names:
                return f"Cannot take address of function '{x.name}' ", item.line
    return None
