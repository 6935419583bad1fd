"""Registers and local variables at module scope, which PTX below 3.0 had: a thread has one of each, and all its
functions see it.

They become what later PTX has too. A kernel holds them among its own registers and local variables. A function that
names one, or calls a function that does, takes the registers as further arguments and gives them back as further
results, and takes the address of the local variables. Programs with such names have no recursion, no calls by pointer
and no functions from outside (:mod:`stages.parse.abi`), so that every call is known.
"""

from __future__ import annotations

from ir_format.ptx import (
    Addr,
    Bracket,
    CallTarget,
    Imm,
    Operand,
    PtxFunction,
    PtxInst,
    PtxModule,
    PtxParam,
    PtxReg,
    PtxVar,
    Reg,
    Sym,
    Vec,
)
from ir_format.record import replace
from stages.parse.symbols import FuncSym, ModuleReg, RegSym
from stages.parse.types import size


class NotSpread(Exception):
    """Something that orias can't do with a name of module scope; the text is the message."""


def spread(module: PtxModule, functions: dict[str, FuncSym]) -> None:
    """Make the names of module scope the functions' own."""
    local = {v.name: v for v in module.variables if v.space == "local"}
    module.variables = [v for v in module.variables if v.space != "local"]
    names: dict[str, dict[str, None]] = {}
    registers: dict[str, dict[ModuleReg, None]] = {}
    bodies = {name: f.function for name, f in functions.items() if f.function is not None}
    for name, f in bodies.items():
        registers[name] = dict.fromkeys(functions[name].module_registers)
        names[name] = dict.fromkeys(
            [n for i in f.body if type(i) is PtxInst for x in i.operands for n in _symbols(x) if n in local]
        )
    _close(bodies, names, registers)
    for name, f in bodies.items():
        _spread_one(f, functions[name], local, names, registers)


def _close(
    bodies: dict[str, PtxFunction], names: dict[str, dict[str, None]], registers: dict[str, dict[ModuleReg, None]]
) -> None:
    """Who calls a function needs what it needs."""
    callers: dict[str, dict[str, None]] = {}
    for name, f in bodies.items():
        for callee in _callees(f):
            callers.setdefault(callee, {})[name] = None
    work = list(bodies)
    for name in work:  # grows while it is read
        for caller in callers.get(name, ()):
            before = len(names[caller]) + len(registers[caller])
            names[caller].update(names[name])
            registers[caller].update(registers[name])
            if len(names[caller]) + len(registers[caller]) > before:
                work.append(caller)


def _callees(f: PtxFunction) -> list[str]:
    return [
        x.target.name
        for i in f.body
        if type(i) is PtxInst
        for x in i.operands
        if type(x) is CallTarget and type(x.target) is Sym
    ]


def _symbols(x: Operand) -> list[str]:
    if isinstance(x, Sym):
        return [x.name]
    if isinstance(x, Addr):
        return _symbols(x.base)
    if isinstance(x, Vec):
        return [n for e in x.elems for n in _symbols(e)]
    if isinstance(x, Bracket):
        return [n for e in x.parts for n in _symbols(e)]
    return []


def _spread_one(
    f: PtxFunction,
    symbol: FuncSym,
    local: dict[str, PtxVar],
    names: dict[str, dict[str, None]],
    registers: dict[str, dict[ModuleReg, None]],
) -> None:
    own = dict(symbol.module_registers)
    for m in registers[f.name]:
        if m not in own:
            own[m] = _new(f, m)
    pointers: dict[str, Reg] = {}
    passed = dict.fromkeys([n for callee in _callees(f) for n in names.get(callee, ())])
    for n in names[f.name] if not f.entry else passed:
        f.regs.append(PtxReg(f"&{n}", "b64"))
        pointers[n] = Reg(len(f.regs) - 1)
    if f.entry:
        f.vars += [local[n] for n in names[f.name]]
        f.body[:0] = [
            PtxInst("mov", ("u64",), ("u64",), (r, Sym(n)), None, f.line, None, "mov") for n, r in pointers.items()
        ]
    else:
        _replace(f, pointers)
        values = [_param(m, own[m]) for m in registers[f.name]]
        f.params = (
            *f.params,
            *values,
            *[PtxParam(f"&{n}", "b64", 8, 8, (), "reg", 0, r.index) for n, r in pointers.items()],
        )
        f.rets = (*f.rets, *values)
        symbol.proto.params, symbol.proto.rets = f.params, f.rets
    for at, i in enumerate(f.body):
        if (
            type(i) is PtxInst
            and i.operands
            and type(i.operands[0]) is CallTarget
            and type(i.operands[0].target) is Sym
        ):
            t = i.operands[0]
            assert isinstance(t.target, Sym)
            values_of = [_operand(own[m]) for m in registers.get(t.target.name, ())]
            args = (*t.args, *values_of, *[pointers[n] for n in names.get(t.target.name, ())])
            f.body[at] = replace(i, operands=(replace(t, args=args, rets=(*t.rets, *values_of)),))


def _new(f: PtxFunction, m: ModuleReg) -> RegSym:
    """A register of module scope that the function only hands on."""
    first = len(f.regs)
    if m.vec == 1:
        f.regs.append(PtxReg(f"{m.name}$", m.type))
        return RegSym(Reg(first), m.type)
    f.regs += [PtxReg(f"{m.name}$.{c}", m.type, m.vec) for c in "xyzw"[: m.vec]]
    return RegSym(None, m.type, tuple([Reg(first + k) for k in range(m.vec)]))


def _operand(r: RegSym) -> Operand:
    return Vec(r.components) if r.components else r.typed()[0]


def _param(m: ModuleReg, r: RegSym) -> PtxParam:
    item = size(m.type) * m.vec
    first = r.components[0] if r.components else r.reg
    assert first is not None
    return PtxParam(m.name, m.type, item, item, (), "reg", 0, first.index, vec=m.vec)


def _replace(f: PtxFunction, pointers: dict[str, Reg]) -> None:
    """In a function a local variable of module scope is where its argument points to."""

    def put(x: Operand, line: int) -> Operand:
        if isinstance(x, Addr) and isinstance(x.base, Sym) and x.base.name in pointers:
            return Addr(pointers[x.base.name], x.offset + x.base.offset)
        if isinstance(x, Sym) and x.name in pointers:
            if x.offset:
                raise NotSpread(
                    f"Offset from '{x.name}' of module scope outside of an address is not supported by "
                    f"orias, line {line}"
                )
            return pointers[x.name]
        if isinstance(x, (Vec, Bracket)):
            parts = tuple([put(e, line) for e in (x.elems if isinstance(x, Vec) else x.parts)])
            return Vec(parts) if isinstance(x, Vec) else Bracket(parts)
        return x

    for at, i in enumerate(f.body):
        if type(i) is not PtxInst or not any(n in pointers for x in i.operands for n in _symbols(x)):
            continue
        source = i.operands[1] if i.op == "mov" and len(i.operands) == 2 else None
        if isinstance(source, Sym) and source.offset:
            f.body[at] = replace(i, op="add", operands=(i.operands[0], pointers[source.name], Imm(source.offset)))
        else:
            f.body[at] = replace(i, operands=tuple([put(x, i.line) for x in i.operands]))
