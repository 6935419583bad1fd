"""What only a whole program must have: every function that is called, every variable, even where no kernel comes by them (measured on ptxas, which has the same words but no lines)."""

from __future__ import annotations

from ir_format.diag import Diagnostic
from ir_format.ptx import CallTarget, PtxFunction, PtxInst, PtxModule, Sym
from ir_format.target import given_by_driver
from stages.parse.symbols import FuncSym
from stages.parse.units import mentioned


def check_whole(module: PtxModule, functions: dict[str, FuncSym], file: str) -> list[Diagnostic]:
    """Diagnostics about what no source defines, up to the first fatal one."""
    out: list[Diagnostic] = []
    for v in module.variables:
        if v.linkage == "extern" and (v.size or v.space != "shared"):
            out.append(_variable(v.name, not v.size, file, v.line))
            if not v.size:
                return out
    aliases = {a.name for a in module.aliases}
    open_ = {name for name, f in functions.items() if f.function is None and name not in aliases and not given_by_driver(name)}
    if not open_:
        return out
    for v in module.variables:
        for r in v.relocs:
            if r.symbol in open_:
                return [*out, _address(r.symbol, file, v.line)]
    for symbol in functions.values():
        if symbol.function is not None and not open_.isdisjoint(mentioned(symbol.function)):
            found = _use(symbol.function, open_, file)
            if found is not None:
                return [*out, found]
    return out


def _variable(name: str, open_: bool, file: str, line: int) -> Diagnostic:
    """An external variable. One without a size can't be made here."""
    if open_:
        return Diagnostic("fatal", f"Unresolved extern variable '{name}'", file, line)
    return Diagnostic("warning", f"Unresolved extern variable '{name}' in whole program compilation, ignoring extern qualifier", file, line)


def _address(name: str, file: str, line: int) -> Diagnostic:
    return Diagnostic("fatal", f"Cannot take address of function '{name}'", file, line)


def _use(function: PtxFunction, names: set[str], file: str) -> Diagnostic | None:
    """The first use of one of the names: a call, or the function's address."""
    for item in function.body:
        if type(item) is not PtxInst:
            continue
        for x in item.operands:
            if type(x) is CallTarget and isinstance(x.target, Sym) and x.target.name in names:
                return Diagnostic("fatal", f"Unresolved extern function '{x.target.name}'", file, item.line)
            if isinstance(x, Sym) and x.name in names:
                return _address(x.name, file, item.line)
    return None
