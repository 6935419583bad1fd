"""Launch bounds and register limits that the target can't keep: each is ignored or raised, with a warning (measured;
the last function comes first)."""

from __future__ import annotations

from collections.abc import Mapping

from ir_format.diag import Diagnostic
from ir_format.ptx import CallTarget, PtxFunction, PtxInst, PtxModule, PtxPragma, PtxUnit, Sym
from ir_format.target import REG_CEILING, REG_FLOOR, SM_RESIDENCY, WARP
from stages.parse.symbols import FuncSym
from stages.parse.targets import parse_name

SPILLING = "enable_smem_spilling"


def check_bounds(functions: Mapping[str, FuncSym], arch: str, options: Mapping[str, object]) -> list[Diagnostic]:
    """The warnings about every function that has a body."""
    sm = parse_name(arch)
    if sm is None:
        return []
    out: list[Diagnostic] = []
    if options.get("compile-only") or options.get("device-debug"):
        for symbol in functions.values():
            if symbol.function is not None and _spills_to_shared(symbol.function):
                return [Diagnostic("fatal", f"Pragma '{SPILLING}' is not allowed for per-function compilation modes")]
    for name in reversed(list(functions)):
        symbol = functions[name]
        if symbol.function is None:
            continue
        d = symbol.function.directives
        if symbol.entry:
            out += _registers(name, "maxnreg", d.maxnreg)
            given = options if options.get("override-directive-values") else {}
            threads = _product(given.get("maxntid") or d.reqntid or d.maxntid or options.get("maxntid"))
            blocks = given.get("minnctapersm") or d.minnctapersm or options.get("minnctapersm")
            out += _blocks(name, sm.number, threads, blocks)
        else:
            out += _registers(name, "local_maxnreg", d.local_maxnreg)
    return out


def check_spilling(module: PtxModule, units: list[PtxUnit]) -> list[Diagnostic]:
    """Registers can't be spilled to shared memory where the launch says how much of it there is (measured)."""
    dynamic = {v.name for v in module.variables if v.space == "shared" and v.linkage == "extern" and not v.size}
    for unit in units:
        if not dynamic.isdisjoint(unit.variables) and _spills_to_shared(unit.functions[0]):
            return [Diagnostic("fatal", f"Pragma '{SPILLING}' is not allowed for dynamic SMEM")]
    return []


def recursive(units: list[PtxUnit]) -> list[str]:
    """The kernels that reach a function which calls itself, also by way of others: how much stack they need is not
    known."""
    out: list[str] = []
    for unit in units:
        held = {f.name for f in unit.functions}
        calls = {f.name: [n for n in _called(f) if n in held] for f in unit.functions}
        open_: set[str] = set()
        done: set[str] = set()
        work = [(unit.name, False)]
        while work:
            name, left = work.pop()
            if left:
                open_.discard(name)
                done.add(name)
            elif name in open_:
                out.append(unit.name)
                break
            elif name not in done:
                open_.add(name)
                work.append((name, True))
                work.extend([(n, False) for n in calls[name]])
    return out


def allocating(units: list[PtxUnit]) -> list[str]:
    """The kernels that reach a function in which the stack moves."""
    moving = ("alloca", "stackrestore")
    return [u.name for u in units if any(type(x) is PtxInst and x.op in moving for f in u.functions for x in f.body)]


def _called(function: PtxFunction) -> list[str]:
    found: dict[str, None] = {}
    for item in function.body:
        if type(item) is PtxInst and item.op == "call":
            for x in item.operands:
                if type(x) is CallTarget and isinstance(x.target, Sym):
                    found[x.target.name] = None
    return list(found)


def _spills_to_shared(function: PtxFunction) -> bool:
    return any(type(i) is PtxPragma and i.text.split(" ", 1)[0] == SPILLING for i in function.body)


def _registers(name: str, word: str, limit: int | None) -> list[Diagnostic]:
    if limit is None or REG_FLOOR <= limit <= REG_CEILING:
        return []
    if limit > REG_CEILING:
        return [Diagnostic("warning", f"Too many {word} specified for entry {name}, will be ignored")]
    return [
        Diagnostic(
            "warning", f"For entry {name} adjusting per thread register count of {limit} to lower bound of {REG_FLOOR}"
        )
    ]


def _product(sizes: object) -> int:
    total = 1
    for size in sizes if isinstance(sizes, tuple) else (0,):
        total *= size
    return total


def _blocks(name: str, sm: int, threads: int, blocks: object) -> list[Diagnostic]:
    if not threads or not isinstance(blocks, int) or not blocks:
        return []
    warps, most = SM_RESIDENCY.get(sm, (64, 32))
    if blocks > most:
        return [
            Diagnostic(
                "warning", f"Value of minnctapersm for entry {name} is out of range. minnctapersm will be ignored"
            )
        ]
    if -(-threads // WARP) * blocks > warps:
        return [
            Diagnostic(
                "warning", f"Value of threads per SM for entry {name} is out of range. .minnctapersm will be ignored"
            )
        ]
    return []
