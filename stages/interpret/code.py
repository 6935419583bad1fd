"""Code of a unit: all functions in one list of steps, symbols placed in their spaces, registers with their widths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ir_format.ptx import (
    Addr,
    Imm,
    ImmF32,
    ImmF64,
    NotPred,
    Operand,
    PtxFunction,
    PtxInst,
    PtxLabel,
    PtxModule,
    PtxUnit,
    Reg,
    SReg,
    Sym,
)
from stages.interpret.memory import WINDOWS
from stages.interpret.rows import BITS, U64, Arr, Unsupported

if TYPE_CHECKING:
    from stages.interpret.machine import Machine

FUNCTION_BASE: Final = 0x1000
Get = Callable[["Machine"], Arr]
Action = Callable[["Machine"], "int | None"]


@dataclass(slots=True)
class Step:
    """One instruction: its action, its guard, and whether it controls the flow itself."""

    inst: PtxInst
    function: int
    run: Action | None = None
    guard: tuple[int, bool] | None = None
    control: bool = False


#: Bytes reserved in a frame for an argument list without a size, `.param .b8 list[]`.
VARIADIC: Final = 1024


@dataclass(slots=True)
class Place:
    """The address of a symbol: a space (local: offset in the frame) and an offset; `func` for a function."""

    space: str
    offset: int
    size: int = 0


@dataclass(slots=True)
class FunctionCode:
    """A function: its first step, addresses of its own symbols, frame size, register widths."""

    function: PtxFunction
    start: int
    places: dict[str, Place] = field(default_factory=dict)
    frame: int = 0
    widths: list[int] = field(default_factory=list)
    labels: dict[int, int] = field(default_factory=dict)


class Code:
    """A unit prepared to run; an instruction's action is compiled when it is first reached."""

    def __init__(self, module: PtxModule, unit: PtxUnit) -> None:
        self.module = module
        self.unit = unit
        self.steps: list[Step] = []
        self.functions: list[FunctionCode] = []
        self.by_name: dict[str, int] = {}
        self.places: dict[str, Place] = {}
        self.shared_size = 0
        self.dynamic_align = 16
        self.const_size = 0
        self.globals: list[tuple[str, int]] = []  # (name, size) of module variables in global memory
        self._place_variables()
        for f in unit.functions:
            self._add(f)
        aliases = {a.name: a.aliasee for a in module.aliases}
        for name, target in aliases.items():
            if target in self.by_name:
                self.by_name[name] = self.by_name[target]
        for name, k in self.by_name.items():
            self.places[name] = Place("func", FUNCTION_BASE + 16 * k)
        for step in self.steps:
            step.control = step.inst.op in CONTROL

    def _place_variables(self) -> None:
        used = set(self.unit.variables)
        for v in self.module.variables:
            if v.space == "global":
                self.places[v.name] = Place("global", len(self.globals), v.size)
                self.globals.append((v.name, max(v.size, 1)))
            elif v.space == "const":
                at = -(-self.const_size // max(v.align, 1)) * max(v.align, 1)
                self.places[v.name] = Place("const", at, v.size)
                self.const_size = at + v.size
            elif v.space == "shared" and v.name in used:
                self._shared(v.name, v.size, v.align, bool(v.linkage == "extern"), self.places)

    def _shared(self, name: str, size: int, align: int, dynamic: bool, into: dict[str, Place]) -> None:
        if dynamic and size == 0:
            into[name] = Place("dynamic", align)
            self.dynamic_align = max(self.dynamic_align, align)
            return
        at = -(-self.shared_size // max(align, 1)) * max(align, 1)
        into[name] = Place("shared", at, size)
        self.shared_size = at + size

    def _add(self, f: PtxFunction) -> None:
        code = FunctionCode(f, len(self.steps))
        k = len(self.functions)
        self.functions.append(code)
        self.by_name[f.name] = k
        at = 0
        for v in f.vars:
            if v.space == "shared":
                self._shared(v.name, v.size, v.align, v.linkage == "extern", code.places)
            elif v.space in ("local", "param"):
                at = -(-at // max(v.align, 1)) * max(v.align, 1)
                code.places[v.name] = Place("local", at, v.size)
                at += v.size
            elif v.space == "global":
                code.places[v.name] = Place("global", len(self.globals), v.size)
                self.globals.append((v.name, max(v.size, 1)))
            elif v.space == "const":
                start = -(-self.const_size // max(v.align, 1)) * max(v.align, 1)
                code.places[v.name] = Place("const", start, v.size)
                self.const_size = start + v.size
        for p in (*f.params, *f.rets):
            if p.space != "param":
                continue
            if f.entry:
                code.places[p.name] = Place("kparam", p.offset, p.size)
            else:
                at = -(-at // max(p.align, 1)) * max(p.align, 1)
                code.places[p.name] = Place("local", at, p.size or VARIADIC)
                at += p.size or VARIADIC
        code.frame = -(-at // 16) * 16
        code.widths = [BITS.get(r.type, 64) for r in f.regs]
        for item in f.body:
            if isinstance(item, PtxInst):
                self.steps.append(Step(item, k, guard=item.guard))
            elif isinstance(item, PtxLabel):
                code.labels[item.index] = len(self.steps)
        end = PtxInst("ret", (), (), (), line=f.end_line)
        self.steps.append(Step(end, k))

    def place(self, function: int, name: str) -> Place:
        """The address of a function's symbol."""
        found = self.functions[function].places.get(name) or self.places.get(name)
        if found is None:
            raise Unsupported(f"symbol '{name}'")
        return found


CONTROL: Final = frozenset(
    [
        "bra",
        "brx",
        "call",
        "ret",
        "exit",
        "trap",
        "bar",
        "barrier",
        "shfl",
        "vote",
        "match",
        "redux",
        "elect",
        "activemask",
        "ldmatrix",
        "stmatrix",
        "movmatrix",
        "mma",
        "wmma",
        "wgmma",
        "tcgen05",
    ]
)


# --------------------------------------------------------------------------- operands


def get(code: Code, function: int, x: Operand) -> Get:
    """A reader for an operand: a function from the machine to uint64 values of the active threads (or one value)."""
    if isinstance(x, Reg):
        i = x.index
        return lambda m: np.asarray(m.regs[i][m.act])
    if isinstance(x, NotPred):
        i = x.index
        return lambda m: np.asarray(m.regs[i][m.act]) ^ U64(1)
    if isinstance(x, (Imm, ImmF32, ImmF64)):
        value = x.value if isinstance(x, Imm) else x.bits
        constant = np.array([value & (1 << 64) - 1], U64)
        return lambda m: constant
    if isinstance(x, SReg):
        name = x.name
        return lambda m: m.special(name)
    if isinstance(x, Sym):
        return symbol(code, function, x.name, x.offset)
    raise Unsupported(f"operand {type(x).__name__}")


def symbol(code: Code, function: int, name: str, offset: int) -> Get:
    """The address of a symbol in its space (global: the generic address)."""
    place = code.place(function, name)
    if place.space == "local":
        at = place.offset + offset
        return lambda m: np.asarray(m.base[m.act] + U64(at & (1 << 64) - 1))
    if place.space == "global":
        k = place.offset
        return lambda m: np.array([m.heap.address(k) + offset & (1 << 64) - 1], U64)
    if place.space == "dynamic":
        return lambda m: np.array([m.dynamic + offset], U64)
    constant = np.array([place.offset + offset & (1 << 64) - 1], U64)
    return lambda m: constant


def space_of(code: Code, function: int, x: Addr, inst: PtxInst) -> str:
    """The space of a memory operand: the instruction's, a parameter's actual one, or generic."""
    for m in inst.mods:
        word = m.split("::")[0]
        if word in ("global", "shared", "local", "const"):
            return "cluster" if m == "shared::cluster" else word
        if word == "param":
            if isinstance(x.base, Sym):
                return code.place(function, x.base.name).space
            return "kparam" if code.functions[function].function.entry else "local"
    if isinstance(x.base, Sym):
        space = code.place(function, x.base.name).space
        return "shared" if space == "dynamic" else space
    return "generic"


def address(code: Code, function: int, x: Addr) -> Get:
    """The address of an address operand."""
    if isinstance(x.base, Sym):
        return symbol(code, function, x.base.name, x.base.offset + x.offset)
    base = get(code, function, x.base)
    offset = U64(x.offset & (1 << 64) - 1)
    if not x.offset:
        return base
    return lambda m: base(m) + offset


def put(function: FunctionCode, x: Any) -> Callable[[Machine, Any], None]:
    """A writer for a destination, for the active threads."""
    if not isinstance(x, Reg):
        return lambda m, v: None
    i, width = x.index, function.widths[x.index]
    if width > 64:
        return lambda m, v: m.write_wide(i, v)
    low = U64((1 << width) - 1)

    def write(m: Machine, v: Any) -> None:
        r = m.regs[i]
        if r is m.junk or r is m.junk_bits:
            r = m.regs[i] = r.copy()
        r[m.act] = v & low

    return write


def generic(space: str, value: Arr) -> Arr:
    """An address of a space, as a generic address."""
    return value if space == "global" else value | U64(WINDOWS[space] << 32)
