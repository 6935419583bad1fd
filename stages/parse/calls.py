"""Call signatures: arguments against formal parameters, and declarations of one function against each other.

Rules and texts as measured on ptxas 13.0: scalars agree as in instructions (an untyped side takes its size), arrays
need the same size in bytes; a parameter variable's alignment must be that of an array formal, and at most that of a
scalar one; registers are at their natural alignment; constants fit by kind.
"""

from __future__ import annotations

from ir_format.ptx import Operand, PtxParam, PtxProto, PtxVar, Sym
from stages.parse import compat
from stages.parse.scan import Notes
from stages.parse.symbols import FunctionState, VarSym, lookup
from stages.parse.types import size

Lists = tuple[list[Operand], list[str]]


def check_call(notes: Notes, fs: FunctionState, proto: PtxProto, rets: Lists, args: Lists, line: int) -> None:
    """Reports what is wrong with the lists of a call."""
    if len(rets[0]) != len(proto.rets) or len(args[0]) != len(proto.params):
        notes.error("Call has wrong number of parameters", line)
        return
    for formals, (operands, kinds) in ((proto.rets, rets), (proto.params, args)):
        for formal, operand, kind in zip(formals, operands, kinds, strict=True):
            for text in _argument(fs, formal, operand, kind):
                notes.error(text, line)


def _argument(fs: FunctionState, formal: PtxParam, operand: Operand, kind: str) -> list[str]:
    wrong_type = f"Type of argument does not match formal parameter '{formal.name}'"
    wrong_align = f"Alignment of argument does not match formal parameter '{formal.name}'"
    if kind in ("i", "d", "f"):
        if formal.dims or kind in compat.literals(formal.type) or (formal.type == "b8" and kind != "i"):
            return []
        if formal.type == "b32" and kind == "d":
            return []
        return [wrong_type]
    if kind == "_":
        return []
    if kind[:2] in ("r:", "s:"):
        type_ = kind[2:]
        out = [] if _agree(formal.type, type_) and not formal.dims else [wrong_type]
        return out if size(type_) == formal.align or (type_ == "pred" and formal.align == 4) else [*out, wrong_align]
    if kind[:2] == "v:" and isinstance(operand, Sym):
        symbol = _variable(fs, operand.name)
        if symbol is not None:
            if isinstance(symbol.var, PtxParam) and symbol.space == "param":
                return [
                    f"Formal parameter '{symbol.var.name}' declared in .param space cannot be used as argument to call"
                ]
            return _variable_argument(formal, symbol, wrong_type, wrong_align)
    if kind[0] == "(":
        return []
    return [f"Illegal argument for formal parameter '{formal.name}'", wrong_type, wrong_align]


def _variable(fs: FunctionState, unique: str) -> VarSym | None:
    name = unique
    found = lookup(fs.scope, name, None)
    if isinstance(found, VarSym) and found.unique == unique:
        return found
    stem = unique.rsplit("$", 1)[0]
    found = lookup(fs.scope, stem, None)
    return found if isinstance(found, VarSym) and found.unique == unique else None


def _variable_argument(formal: PtxParam, symbol: VarSym, wrong_type: str, wrong_align: str) -> list[str]:
    out: list[str] = []
    var: PtxVar | PtxParam = symbol.var
    if symbol.space != "param":
        out.append(f"Call argument '{var.name}' has illegal state space")
    array = bool(var.dims)
    incomplete = bool(formal.dims) and formal.dims[0] == 0
    if array != bool(formal.dims):
        same = False
    elif array:
        same = incomplete or var.size == formal.size
    else:
        same = _agree(formal.type, var.type) and var.vec == formal.vec
    if not same:
        out.append(wrong_type)
    if (
        var.align != formal.align
        if array or formal.dims
        else var.align > formal.align or size(var.type) != size(formal.type)
    ):
        out.append(wrong_align)
    return out


def _agree(formal: str, actual: str) -> bool:
    """Scalar types as in a move: equal size, and equal kind unless one side is untyped."""
    return actual in compat.STRICT.get(formal, frozenset((formal,)))


def check_redeclaration(notes: Notes, old: PtxProto, new: PtxProto, line: int) -> None:
    """Reports how a second declaration of a function differs from the first."""
    for what in differences(old, new):
        notes.error(f"Inconsistent prototypes of '{new.name}', {what} differ", line)


def differences(old: PtxProto, new: PtxProto) -> list[str]:
    """In what two signatures differ."""
    out: list[str] = []
    for what, a, b in (("parameter", old.params, new.params), ("return parameter", old.rets, new.rets)):
        if len(a) != len(b):
            out.append(f"number of {what}s")
            continue
        if any((p.type, p.size, p.dims) != (q.type, q.size, q.dims) for p, q in zip(a, b, strict=True)):
            out.append(f"{what} types")
        if any(p.align != q.align for p, q in zip(a, b, strict=True)):
            out.append(f"{what} alignment")
    return out
