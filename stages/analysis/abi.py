"""The calling convention: which registers a call destroys, and the order in which the functions of a unit are
allocated.

A callee inside the unit that only direct calls reach is allocated before its callers. The callers then know which
registers it writes, and it saves none. Recursive functions, functions whose address is taken, the function that is a
unit by itself, and all functions outside the unit follow the measured convention: R1, R2, R16-R19, R22-R31 and the
upper half of each eight from R32 on are callee-saved, and so are B6 and up; P, UP and UR registers are not.
"""

from __future__ import annotations

from ir_format.model import Const, Function, Imm, Inst, Sym, Unit
from ir_format.target import B_COUNT, CALLEE_SAVED, STACK_REG
from ir_format.typed import Final

FIRST_SAVED_B: Final = 6  # B6 is saved by the callee that uses it (measured); that B0-B5 are not is a guess

ALL: Final = (1 << 256) - 1
_SAVED_R: Final = sum(1 << r for r in (STACK_REG, *CALLEE_SAVED))
ABI_CLOBBER: Final = {"R": ALL & ~_SAVED_R, "UR": ALL, "P": ALL, "UP": ALL, "B": (1 << FIRST_SAVED_B) - 1, "M": 0}
SAVED_B: Final = range(FIRST_SAVED_B, B_COUNT)


def callee(inst: Inst) -> str:
    """Name of the function that a CALL reaches, '' when it is not known."""
    for operand in (*inst.srcs, *inst.dsts):
        if type(operand) is Sym:
            return operand.name
    return ""


def call_graph(unit: Unit) -> dict[str, list[str]]:
    """Function name -> names called, in order of first call."""
    graph: dict[str, list[str]] = {}
    for func in unit.functions:
        seen: dict[str, None] = {}
        for block in func.blocks:
            for inst in block.insts:
                if inst.op == "CALL":
                    seen[callee(inst)] = None
        graph[func.name] = list(seen)
    return graph


def _address_taken(func: Function) -> set[str]:
    found: set[str] = set()
    for block in func.blocks:
        for inst in block.insts:
            for operand in (*inst.srcs, *inst.uses):
                if (type(operand) is Imm and operand.sym and operand.fmt != "ret") or (
                    type(operand) is Const and operand.sym
                ):
                    found.add(operand.sym)
                elif type(operand) is Sym and inst.op not in ("CALL", "RET"):
                    found.add(operand.name)
    return found


def plan(unit: Unit) -> tuple[list[Function], set[str]]:
    """The functions in allocation order (callees first), and the names of those that follow the full convention."""
    graph = call_graph(unit)
    by_name = {func.name: func for func in unit.functions}
    order: list[Function] = []
    standard: set[str] = set()
    state: dict[str, int] = {}  # 1 open, 2 done
    for root in unit.functions:
        stack: list[tuple[str, int]] = [(root.name, 0)]
        while stack:
            name, at = stack.pop()
            if at == 0:
                if state.get(name):
                    continue
                state[name] = 1
            targets = [t for t in graph[name] if t in by_name]
            if at < len(targets):
                stack.append((name, at + 1))
                target = targets[at]
                if state.get(target) == 1:
                    standard.add(target)  # a back edge of the call graph: recursion
                elif not state.get(target):
                    stack.append((target, 0))
            else:
                state[name] = 2
                order.append(by_name[name])
    for func in unit.functions:
        standard |= _address_taken(func) & by_name.keys()
    table = unit.attrs.get("function_table", ())
    standard |= by_name.keys() & set(table if isinstance(table, tuple) else ())
    if unit.functions and unit.functions[0].kind != "entry":
        standard.add(unit.functions[0].name)
    return order, {name for name in standard if by_name[name].kind != "entry"}


def without_saves(unit: Unit) -> frozenset[str]:
    """Functions of a unit that save no register for their caller, nor does anything that they call: what they destroy
    is known exactly."""
    if len(unit.functions) < 2:
        return frozenset()
    order, standard = plan(unit)
    graph = call_graph(unit)
    exact: set[str] = set()
    for func in order:  # callees first; a recursion has a function of the standard convention in it
        if func.name not in standard and all(name in exact for name in graph[func.name]):
            exact.add(func.name)
    return frozenset(exact)
