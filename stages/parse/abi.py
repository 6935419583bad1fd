"""What ptxas calls the ABI of a program. It is given up, with a warning, where a function has several results or where
PTX below 3.0 has a register or a local variable at module scope; then nothing may recurse, be called by pointer, or
come from outside. With it, predicates and integers of 8 and 16 bits are no arguments or results (those without a sign,
`.b8` and `.b16`, are, and so are arrays). All measured on ptxas 13.0, whose words these are; it gives no lines here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ir_format.diag import Diagnostic
from ir_format.ptx import CallTarget, PtxFunction, PtxInst, PtxModule, PtxParam, PtxProto, Sym
from stages.parse.symbols import FuncSym
from stages.parse.units import mentioned

_SMALL = frozenset(("pred", "u8", "s8", "u16", "s16"))


def without_abi(functions: dict[str, FuncSym], first: str) -> list[Diagnostic]:
    """The warnings that the program goes without the ABI; none when it has one. ``first``: the first register or local
    variable at module scope."""
    out: list[Diagnostic] = []
    if first:
        out.append(
            Diagnostic("warning", f"Use of module scoped .local or .reg variable '{first}' found, disabling ABI")
        )
    several = next((name for name, f in functions.items() if len(f.proto.rets) > 1), "")
    if several:
        out.append(Diagnostic("warning", f"Function '{several}' with multiple return values found, disabling ABI"))
    return out


def check_object(module: PtxModule, separate: bool, abi: bool) -> list[Diagnostic]:
    """The requirements of an object."""
    if separate and module.version < (3, 1):
        return [Diagnostic("fatal", "'Compile only(-c)' requires PTX ISA .version 3.1 or later")]
    if separate and not abi:
        return [Diagnostic("fatal", "'Compile only(-c)' requires ABI")]
    return []


def check_abi(module: PtxModule, functions: dict[str, FuncSym], separate: bool, abi: bool) -> list[Diagnostic]:
    """What the program may not have with the ABI, or without it: the first fatal diagnostic."""
    return _small(module, functions, separate) if abi else _closed(module, functions)


def _small(module: PtxModule, functions: dict[str, FuncSym], separate: bool) -> list[Diagnostic]:
    if not any(_has_small((*f.proto.params, *f.proto.rets)) for f in functions.values() if not f.entry) and not any(
        _has_small((*p.params, *p.rets)) for f in functions.values() if f.function for p in f.function.protos
    ):
        return []
    for what, how in (
        ("passing", "passing predicate, 8-bit and 16-bit parameters to"),
        ("returning", "returning predicate, 8-bit and 16-bit values from"),
    ):
        for f in _compiled(module, functions, separate):
            signatures: list[PtxProto | PtxFunction] = [] if f.entry else [f]
            signatures += _called(f, functions)
            if any(_has_small(s.params if what == "passing" else s.rets) for s in signatures):
                return [Diagnostic("fatal", f"In ABI compilation, {how} device functions is not supported")]
    return []


def _has_small(params: Iterable[PtxParam]) -> bool:
    return any(p.type in _SMALL and not p.dims and p.vec == 1 for p in params)


def _compiled(module: PtxModule, functions: dict[str, FuncSym], separate: bool) -> Iterator[PtxFunction]:
    """The functions for which code is made."""
    if separate:
        yield from [f.function for f in functions.values() if f.function is not None]
        return
    variables = {v.name: v for v in module.variables}
    work = [name for name, f in functions.items() if f.entry]
    seen = set(work)
    for name in work:  # grows while it is read
        symbol = functions.get(name)
        if symbol is not None and symbol.function is not None:
            yield symbol.function
            more: Iterable[str] = mentioned(symbol.function)
        else:
            more = [r.symbol for r in variables[name].relocs] if name in variables else ()
        for word in more:
            if word not in seen:
                seen.add(word)
                work.append(word)


def _called(f: PtxFunction, functions: dict[str, FuncSym]) -> Iterator[PtxProto]:
    protos = {p.name: p for p in f.protos}
    for target in _targets(f):
        if isinstance(target.target, Sym):
            if target.target.name in functions:
                yield functions[target.target.name].proto
        elif target.proto in protos:
            yield protos[target.proto]


def _targets(f: PtxFunction) -> Iterator[CallTarget]:
    for i in f.body:
        if type(i) is PtxInst and i.op == "call" and type(i.operands[0]) is CallTarget:
            yield i.operands[0]


def _closed(module: PtxModule, functions: dict[str, FuncSym]) -> list[Diagnostic]:
    """Without the ABI: no calls by pointer or of functions from outside, no recursion."""
    calls: dict[str, list[str]] = {}
    for f in _compiled(module, functions, False):
        calls[f.name] = names = []
        for target in _targets(f):
            if (
                not isinstance(target.target, Sym)
                or target.target.name not in functions
                or functions[target.target.name].function is None
            ):
                return [Diagnostic("fatal", "'Indirect Functions or Extern Functions' requires ABI")]
            names.append(target.target.name)
    done: set[str] = set()
    for root in calls:
        path: dict[str, Iterator[str]] = {root: iter(calls[root])} if root not in done else {}
        while path:
            name = next(reversed(path))
            target_name = next(path[name], "")
            if not target_name:
                done.add(name)
                del path[name]
            elif target_name in path:
                return [Diagnostic("fatal", f"Function '{target_name}' is recursive")]
            elif target_name not in done and target_name in calls:
                path[target_name] = iter(calls[target_name])
    return []
