"""Where things go: functions inside a kernel's .text, variables inside sections, address slots inside bank 4."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from ir_format.alignment import align_up
from ir_format.diag import CompileError
from ir_format.model import AttrValue, Code, Module, Param, Unit, Var
from ir_format.record import Record, fresh
from ir_format.target import ABI_CALL_FLOOR, CONST_MAX, FRAME_MAX, PARAM_MAX, REG_CEILING, REG_RESERVED, Target
from ir_format.typed import Final
from stages.analysis.register_limits import register_limit
from stages.elf import attrs
from stages.elf.patch import OP_CALL_REL, OP_CONVERGENCE, OP_EXIT, append_tail, opcode, scan

MAX_TEXT: Final = 1 << 28
MAX_INIT: Final = 1 << 27  # bytes of initialised data held in memory; larger modules are refused
MAX_VAR: Final = 1 << 48
MAX_STACK: Final = FRAME_MAX

GLOBAL_INIT: Final = ".nv.global.init"
GLOBAL_ZERO: Final = ".nv.global"
CONST: Final = ".nv.constant3"
SLOTS: Final = ".nv.constant4"


class Placed(Record):
    """A function inside a kernel's .text. ``end`` is the end of its instructions; the symbol of the last one also
    covers the padding."""

    symbol: str
    code: Code
    begin: int
    end: int
    size: int = 0


class Kernel(Record):
    """A kernel with its code concatenated, ``text`` padded. Lists hold byte offsets in ``text``."""

    unit: Unit
    text: bytearray
    functions: list[Placed]
    regcount: int
    shared: int
    shared_align: int
    dynamic: int  # alignment of the dynamic shared array, 0 = the kernel uses none
    param_size: int
    min_stack: int
    register_limit: int
    begins: dict[str, int]
    exits: list[int] = fresh(default_factory=list)
    calls: bool = False
    converges: bool = False
    externs: list[str] = fresh(default_factory=list)
    instructions: int = 0  # to be noted with -annotate

    @property
    def name(self) -> str:
        return self.unit.name

    @property
    def static_shared(self) -> int:
        """Bytes of static shared memory as the driver must know them: dynamic memory begins after, at its own
        alignment (measured)."""
        return align_up(self.shared, self.dynamic or 1)

    def marks(self, kind: str) -> list[tuple[int, int]]:
        """(offset in .text, value) of every mark of ``kind``, in code order."""
        return [(f.begin + at, value) for f in self.functions for k, at, value in f.code.marks if k == kind]

    def base(self, function: str) -> int | None:
        """Where function ``function`` (its name inside the unit) begins in .text."""
        return self.begins.get(function)


class Variables(Record):
    """Placed module variables. ``order``: as they enter the symbol table; ``place``: name -> (section, offset);
    ``slot``: name -> offset in bank 4."""

    order: list[Var]
    place: dict[str, tuple[str, int]]
    slot: dict[str, int]
    init: bytearray
    init_align: int
    zero_size: int
    zero_align: int
    const: bytearray
    const_align: int
    crowded: bool = False  # more addresses than fit into bank 4: only those that code uses have a slot


def order_units(module: Module, units: list[Unit]) -> list[Unit]:
    """Units in declaration order. Raises :class:`CompileError` on names that do not fit the module, and on units that
    carry an error."""
    found: dict[str, Unit] = {}
    for u in units:
        if not u.name or "\0" in u.name:
            raise CompileError("a unit has an illegal name")
        if u.name in found:
            raise CompileError(f"two units are named '{u.name}'")
        found[u.name] = u
        for severity, message, line in u.diags:
            if severity in ("error", "fatal"):
                raise CompileError(message, line)
    known = set(module.units)
    if len(known) != len(module.units):
        raise CompileError("the module names a unit twice")
    for name in found:
        if name not in known:
            raise CompileError(f"unit '{name}' is not listed in the module record")
    for name in module.units:
        if name not in found:
            raise CompileError(f"unit '{name}' is missing from the stream")
    return [found[name] for name in module.units]


def _param_size(unit: Unit) -> int:
    size = 0
    for p in unit.params:
        _check_param(unit, p)
        size = max(size, p.offset + p.size)
    if size > PARAM_MAX:
        raise CompileError(
            f"Entry function '{unit.name}' uses too much parameter space ({size:#x} bytes, {PARAM_MAX:#x} max)."
        )
    return size


def _check_param(unit: Unit, p: Param) -> None:
    if p.offset < 0 or p.size < 0 or p.offset > PARAM_MAX * 2 or p.ptr_align < 0:
        raise CompileError(f"unit '{unit.name}': parameter '{p.name}' has an illegal place")


def _worst_stack(functions: list[Placed], pointed: Sequence[str]) -> int:
    """Bytes of the deepest call chain from the entry, without functions that call each other in a circle (as ptxas
    reports it: measured). A call by pointer may reach each of ``pointed``."""
    index = {f.code.name: i for i, f in enumerate(functions)}
    own = functions[0].code.name
    any_of = {index[name] for name in pointed if name in index}
    edges: list[list[int]] = []
    for f in functions:
        calls = [r for r in f.code.relocs if r.kind == "call"]
        called = {index[r.symbol] for r in calls if r.symbol in index and r.symbol != own}
        if any(
            r.symbol == own and opcode(f.code.data, r.offset) == OP_CALL_REL for r in calls
        ):  # returns name the kernel too
            called |= any_of
        edges.append(sorted(called))
    depth = [0] * len(functions)
    state = [0] * len(functions)  # 0 new, 1 open, 2 done
    circle: set[int] = set()
    stack = [0]
    while stack:
        at = stack[-1]
        if state[at] == 0:
            state[at] = 1
            for to in edges[at]:
                if state[to] == 1:
                    path = [x for x in stack if state[x] == 1]
                    circle.update(path[path.index(to) :])
                elif state[to] == 0:
                    stack.append(to)
        else:
            stack.pop()
            if state[at] == 1:
                state[at] = 2
                depth[at] = (0 if at in circle else functions[at].code.frame) + max(
                    (depth[to] for to in edges[at]), default=0
                )
    return depth[0]


def build_kernel(unit: Unit, target: Target, helper_number: int, options: Mapping[str, AttrValue]) -> Kernel:
    """Concatenate the functions of a unit. ``helper_number`` is the first free number of ``$__internal_N_$`` symbols of
    the module."""
    if unit.kind != "entry" and not options.get("compile-only"):
        raise CompileError(f"function '{unit.name}' stands alone in a whole program")
    if not unit.code or unit.code[0].kind != unit.kind:
        raise CompileError(f"unit '{unit.name}' has no code of kind '{unit.kind}' in first place")
    text = bytearray()
    functions: list[Placed] = []
    seen: set[str] = set()
    for code in unit.code:
        if len(code.data) % 16 or not code.data:
            raise CompileError(
                f"function '{code.name}' of unit '{unit.name}': {len(code.data)} bytes are no whole instructions"
            )
        if code.name in seen:
            raise CompileError(f"unit '{unit.name}' holds two functions named '{code.name}'")
        if not 0 <= code.frame <= MAX_STACK or not 0 <= code.regs <= REG_CEILING:
            raise CompileError(f"function '{code.name}' of unit '{unit.name}': illegal frame or register count")
        seen.add(code.name)
        begin = len(text)
        text += code.data
        if len(text) > MAX_TEXT:
            raise CompileError(f"unit '{unit.name}': more than {MAX_TEXT:#x} bytes of code")
        _check_places(unit, code)
        functions.append(Placed(_symbol(unit, code, helper_number), code, begin, len(text)))
        if code.kind == "helper":
            helper_number += 1
    append_tail(text, target.branch_low8, target.pad_nops)
    for f, following in itertools.pairwise(functions):
        f.size = following.begin - f.begin
    functions[-1].size = len(text) - functions[-1].begin
    functions[0].size = len(text)
    param_size = _param_size(unit)
    shared = attrs.number(unit, "shared", 0, 1 << 30)
    if shared > target.shared_max:
        raise CompileError(
            f"Entry function '{unit.name}' uses too much shared data ({shared:#x} bytes, {target.shared_max:#x} max)"
        )
    # R0 and R1 count even when unused: an empty kernel reports 4 registers (measured).
    regs = max(2, *(f.code.regs for f in functions)) + REG_RESERVED
    if attrs.number(unit, "abi_call", 0, 1):
        regs = max(regs, ABI_CALL_FLOOR)
    # a kernel whose parts have counts of their own begins with that of its launch bounds
    regs = attrs.number(unit, "regcount", 0, REG_CEILING) or regs
    kernel = Kernel(
        unit=unit,
        text=text,
        functions=functions,
        regcount=min(regs, REG_CEILING),
        shared=shared,
        shared_align=_power_of_two(unit, "shared_align", 16),
        dynamic=_power_of_two(unit, "dynamic_shared_align", 0),
        param_size=param_size,
        min_stack=attrs.number(
            unit, "min_stack", _worst_stack(functions, attrs.names(unit, "function_table")), MAX_STACK * 2
        ),
        register_limit=attrs.number(unit, "maxregcount", register_limit(unit, target.sm, options), REG_CEILING),
        begins={f.code.name: f.begin for f in functions},
    )
    marked = kernel.marks("exit")
    code_end = functions[-1].end
    kernel.exits = [at for at, _ in marked] if marked else scan(text, code_end, OP_EXIT)
    kernel.instructions = code_end // 16 if options.get("compiler-annotations") else 0
    kernel.converges = bool(scan(text, code_end, OP_CONVERGENCE))
    kernel.calls = any(
        r.kind == "call" and r.symbol != functions[0].code.name for f in functions for r in f.code.relocs
    )
    return kernel


def _power_of_two(unit: Unit, key: str, default: int) -> int:
    value = attrs.number(unit, key, default, 1 << 16)
    if value & (value - 1) or (value == 0 and key in unit.attrs):
        raise attrs.bad(unit, key)
    return value


def _check_places(unit: Unit, code: Code) -> None:
    last = len(code.data) - 16
    for r in code.relocs:
        if not 0 <= r.offset <= last or r.offset % 16:
            raise CompileError(
                f"function '{code.name}' of unit '{unit.name}': relocation at {r.offset:#x} is no instruction of it"
            )
    for kind, at, _ in code.marks:
        if not 0 <= at <= last or at % 16:
            raise CompileError(
                f"function '{code.name}' of unit '{unit.name}': mark '{kind}' at {at:#x} is no instruction of it"
            )


def _symbol(unit: Unit, code: Code, helper_number: int) -> str:
    if "\0" in code.name or not code.name:
        raise CompileError(f"unit '{unit.name}' holds a function with an illegal name")
    if code.kind == "entry" or (unit.kind == "func" and code.name == unit.name):
        return unit.name
    if code.kind == "helper":
        return f"$__internal_{helper_number}_${code.name}"
    return f"${unit.name}${code.name}"


# Creation order of variables (measured): first those that other modules see, then static ones, each in declaration
# order.
_RANK: Final = {"visible": 0, "extern": 0, "weak": 0, "common": 0, "static": 1}


def place_variables(module: Module) -> Variables:
    """Lay out ``.nv.global.init``, ``.nv.global`` and bank 3. Slots are given by
    :func:`stages.elf.resolve.collect_externs`."""
    seen: set[str] = set()
    kept: list[Var] = []
    for v in module.vars:
        if v.space in ("shared", "local", "param", "tex"):
            continue  # laid out per kernel by `lower`; for tex see `headers`
        _check_var(v, seen)
        kept.append(v)
    order = sorted(kept, key=lambda v: _RANK[v.linkage])
    out = Variables(order, {}, {}, bytearray(), 1, 0, 1, bytearray(), 1)
    for v in order:
        if v.space == "const":
            at = align_up(len(out.const), v.align)
            if at + v.size > CONST_MAX:
                raise CompileError(
                    f"File uses too much global constant data ({at + v.size:#x} bytes, {CONST_MAX:#x} max)"
                )
            out.const += bytes(at - len(out.const)) + v.init + bytes(v.size - len(v.init))
            out.const_align = max(out.const_align, v.align)
            out.place[v.name] = (CONST, at)
    filled = [v for v in order if v.space == "global" and (v.init or v.relocs)]
    empty = [v for v in order if v.space == "global" and not (v.init or v.relocs)]
    for v in [*_packed(filled), *_packed(empty)]:
        if v.init or v.relocs:
            at = align_up(len(out.init), v.align)
            if at + v.size > MAX_INIT:
                raise CompileError(f"more than {MAX_INIT:#x} bytes of initialised global data", severity="fatal")
            out.init += bytes(at - len(out.init)) + v.init + bytes(v.size - len(v.init))
            out.init_align = max(out.init_align, v.align)
            out.place[v.name] = (GLOBAL_INIT, at)
        else:
            at = align_up(out.zero_size, v.align)
            out.zero_size = at + v.size
            out.zero_align = max(out.zero_align, v.align)
            out.place[v.name] = (GLOBAL_ZERO, at)
    return out


def _packed(items: list[Var]) -> list[Var]:
    """Order inside the two global sections: by falling alignment, then by size. Equal ones come out of ptxas as a merge
    sort on a linked list leaves them that deals alternately on two stacks (measured: 1..9 equal variables, and all
    mixtures tried)."""
    if len(items) < 2:
        return items
    first, second = _packed(items[::2][::-1]), _packed(items[1::2][::-1])
    out: list[Var] = []
    i = j = 0
    while i < len(first) and j < len(second):
        a, b = first[i], second[j]
        if (b.align, -b.size) > (a.align, -a.size):
            out.append(b)
            j += 1
        else:
            out.append(a)
            i += 1
    return out + first[i:] + second[j:]


def size_of_part(form: int) -> int:
    """Bytes of an address in a variable's initialiser, by its form (`Var.relocs`)."""
    return {0: 8, 9: 4}.get(form >> 1, 1)


def address_kind(v: Var, symbol: str, form: int, whole: int, first_byte: int) -> int:
    """The relocation of a part of an address: one type for all eight bytes, one for each byte of them."""
    part = form >> 1
    if part == 9:
        raise CompileError(f"variable '{v.name}': 32 bits of the address of '{symbol}' are not supported by orias")
    return first_byte + part - 1 if part else whole


def is_offset(variables: Variables, symbol: str, form: int) -> bool:
    """Whether an address in an initialiser is an offset in the const bank, which a whole program knows (measured: ptxas
    relocates none)."""
    return not form & 1 and symbol in variables.place and variables.place[symbol][0] == CONST


def fill_offsets(variables: Variables) -> None:
    """Put the offsets of const variables where initialisers name them."""
    for v in variables.order:
        section, base = variables.place[v.name]
        data = variables.const if section == CONST else variables.init
        for at, symbol, addend, form in v.relocs:
            if is_offset(variables, symbol, form):
                n, part = size_of_part(form), form >> 1
                value = variables.place[symbol][1] + addend >> (8 * (part - 1) if n == 1 else 0)
                data[base + at : base + at + n] = (value & (1 << 8 * n) - 1).to_bytes(n, "little")


def _check_var(v: Var, seen: set[str]) -> None:
    if not v.name or "\0" in v.name or v.name in seen:
        raise CompileError(f"variable '{v.name}' has an illegal name, or is there twice")
    seen.add(v.name)
    if v.space not in ("global", "const"):
        raise CompileError(f"variable '{v.name}': state space '{v.space}' is not supported by orias")
    if v.linkage not in _RANK:
        raise CompileError(f"variable '{v.name}': illegal linkage '{v.linkage}'")
    if not 0 < v.align <= 1 << 16 or v.align & (v.align - 1):
        raise CompileError(f"variable '{v.name}': illegal alignment {v.align}")
    if not 0 <= v.size <= MAX_VAR or len(v.init) > v.size:
        raise CompileError(f"variable '{v.name}': illegal size {v.size}")
    for at, symbol, _, form in v.relocs:
        if not 0 <= at <= v.size - size_of_part(form):
            raise CompileError(f"variable '{v.name}': the address of '{symbol}' does not fit at offset {at}")
