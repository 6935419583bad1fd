"""Machine code of a unit: every function becomes a :class:`~ir_format.model.Code` record.

Each function starts at offset 0. `elf` lays them out one after another and applies the relocations.
"""

from __future__ import annotations

from ir_format import isa
from ir_format.diag import CompileError
from ir_format.flow import build_cfg, loop_depths
from ir_format.isa import facts
from ir_format.model import (
    AttrValue,
    Block,
    Code,
    Const,
    Function,
    Header,
    Imm,
    Inst,
    Label,
    Mem,
    Operand,
    Reg,
    Reloc,
    Sym,
    Unit,
)
from ir_format.target import RETURN_REG
from ir_format.target import target as sm_facts
from ir_format.typed import TYPE_CHECKING

if TYPE_CHECKING:
    from ir_format.isa.machine import Target

WORD = 16

#: Places in the code that a cubin's records list, by mnemonic (docs/stream.md, `marks`).
_MARKS = {"EXIT": "exit"}
_WARP_WIDE = facts.exchanging()


def encode_unit(unit: Unit, header: Header) -> Unit:
    """Encode every function of the unit, in place. Raises a CompileError with the PTX line of an instruction that has
    no encoding."""
    target = isa.target(header.target)
    unit.code = [encode_function(f, target) for f in unit.functions]
    if sm_facts(header.target).compat:
        needed = max((target.isa_class(i) for f in unit.functions for b in f.blocks for i in b.insts), default=1)
        said = unit.attrs.get("isa_class", 1)
        if needed > 1 and isinstance(said, int):
            unit.attrs["isa_class"] = max(said, needed)
    return unit


def encode_function(f: Function, target: Target) -> Code:
    """Machine code of one function."""
    begin = block_offsets(f)
    data = bytearray()
    relocs: list[Reloc] = []
    lines: list[tuple[int, int, int]] = []
    marks: list[tuple[str, int, int]] = []
    place = (-1, -1)
    variables = _Variables() if "variables" in f.attrs else None
    encode = target.encode
    blocks = {block.id: block for block in f.blocks}
    for block in f.blocks:
        pc = begin[block.id]
        for index, inst in enumerate(block.insts):
            if inst.ctl is None:
                raise CompileError(
                    f"{f.name}: {inst.op} has no control word; the schedule stage comes first", inst.line
                )
            odd = [o for o in inst.srcs if type(o) is not Reg]
            try:
                word = encode(
                    _with_return(inst, block, index, pc) if odd else inst,
                    pc,
                    begin if inst.op != "BSSY" else _reconvergence_points(blocks, inst, begin),
                )
            except KeyError as error:
                raise CompileError(
                    f"{f.name}: {inst.op} names block {error.args[0]}, which the function does not have", inst.line
                ) from None
            data += word.to_bytes(WORD, "little")
            for o in odd:
                found = _reloc(o, pc, inst.line)
                if found is not None:
                    relocs.append(found)
            if (inst.line, inst.loc) != place:
                place = (inst.line, inst.loc)
                lines.append((pc, *place))
            _mark(inst, pc, marks, target)
            if variables is not None and inst.attrs and "variables" in inst.attrs:
                variables.see(inst, pc)
            pc += WORD
    if any(kind == "mbarrier" for kind, _, _ in marks):
        marks = _with_loops(f, begin, marks)
    if variables is not None:
        f.attrs["registers"] = variables.finish(len(data))
    regs = f.regs.get("R", 0)
    return Code(f.name, f.kind, bytes(data), tuple(relocs), tuple(lines), tuple(marks), regs, f.frame)


class _Variables:
    """Where in the code registers hold parts of PTX registers, from what `regalloc` noted at the instructions: (row of
    ``variables``, part, register, begin, end), by begin."""

    def __init__(self) -> None:
        self.open: dict[tuple[int, int, int], int] = {}
        self.rows: list[tuple[int, int, int, int, int]] = []

    def see(self, inst: Inst, pc: int) -> None:
        """What begins and ends before an instruction."""
        noted = inst.attrs.get("variables") if inst.attrs else None
        for event in noted if isinstance(noted, tuple) else ():
            match event:
                case (int(row), int(part), int(reg)) if reg >= 0:
                    self.open.setdefault((row, part, reg), pc)
                case (int(row), int(part), int(reg)):
                    begin = self.open.pop((row, part, ~reg), pc)
                    if begin < pc:
                        self.rows.append((row, part, ~reg, begin, pc))
                case _:
                    raise CompileError("attribute 'variables' has an illegal value", inst.line)

    def finish(self, end: int) -> AttrValue:
        """All rows, for code that ends there."""
        self.rows += [(*key, begin, end) for key, begin in self.open.items() if begin < end]
        return tuple(sorted(self.rows, key=lambda r: (r[3], r[0], r[1], r[2])))


def block_offsets(f: Function) -> dict[int, int]:
    """Byte offset of every block in the function."""
    begin: dict[int, int] = {}
    at = 0
    for block in f.blocks:
        begin[block.id] = at
        at += WORD * len(block.insts)
    return begin


def _reconvergence_points(blocks: dict[int, Block], inst: Inst, begin: dict[int, int]) -> dict[int, int]:
    """The target of a BSSY: the instruction after the BSYNC of its convergence barrier. The block that the BSSY names
    starts with this BSYNC (measured: so in all of ptxas's code)."""
    barrier = next((o for o in (*inst.dsts, *inst.srcs) if type(o) is Reg and o.file == "B"), None)
    for o in inst.srcs:
        block = blocks.get(o.block) if type(o) is Label else None
        for index, other in enumerate(block.insts if block is not None else ()):
            if other.op == "BSYNC" and barrier in other.srcs:
                assert block is not None
                return {block.id: begin[block.id] + WORD * (index + 1)}
    return begin


def _with_return(inst: Inst, block: Block, index: int, pc: int) -> Inst:
    """Set an immediate that depends on the block's next CALL. ``ret`` is the offset after the call, to which `elf` adds
    the function's place (in an object ``ret_lo`` and ``ret_hi``, the halves of the address). ``dist`` is the number of
    bytes from the LEPC before this instruction to the instruction after the call."""
    k = next(
        (k for k, o in enumerate(inst.srcs) if isinstance(o, Imm) and o.fmt in ("ret", "ret_lo", "ret_hi", "dist")), -1
    )
    if k < 0:
        return inst
    o = inst.srcs[k]
    assert isinstance(o, Imm)
    insts = block.insts
    call = next((i for i in range(index + 1, len(insts)) if insts[i].op == "CALL"), -1)
    start = next((i for i in range(index - 1, -1, -1) if insts[i].op == "LEPC"), -1) if o.fmt == "dist" else 0
    if call < 0 or start < 0:
        raise CompileError("a return address has no call after it in its block", inst.line)
    value = pc + (call - index + 1) * WORD if o.fmt != "dist" else (call + 1 - start) * WORD
    srcs: tuple[Operand, ...] = (*inst.srcs[:k], o._replace(value=value), *inst.srcs[k + 1 :])
    return Inst(inst.op, inst.mods, inst.dsts, srcs, inst.guard, inst.line, inst.loc, inst.ctl)


_IMM_KINDS = {
    "lo": "imm_lo",
    "hi": "imm_hi",
    "off": "imm_off",
    "": "imm_off",
    "ret": "imm_off",
    "ret_lo": "imm_lo",
    "ret_hi": "imm_hi",
    "call": "call_abs",
}


def _reloc(o: Operand, pc: int, line: int) -> Reloc | None:
    """The relocation of an operand. Raises CompileError for a symbol in a place that `elf` can't relocate."""
    if isinstance(o, Sym):
        return Reloc(pc, "call", o.name, o.addend)
    if isinstance(o, Const) and o.sym:
        return Reloc(pc, "bank4" if o.bank == 4 else "bank3", o.sym)
    if isinstance(o, Imm) and o.sym:
        kind = _IMM_KINDS.get(o.fmt)
        if kind is None:
            raise CompileError(f"a relocated immediate of format '{o.fmt}' is not known", line)
        return Reloc(pc, kind, o.sym)
    if isinstance(o, Mem) and o.sym:
        raise CompileError(
            f"an address relative to the symbol {o.sym} has no relocation; its place goes into a register", line
        )
    return None


def _mark(inst: Inst, pc: int, marks: list[tuple[str, int, int]], target: Target) -> None:
    """Marks that the mnemonic requires, and those that ``attrs`` carries (``mark``: name, ``mark_value``: integer)."""
    kind = _MARKS.get(inst.op)
    if kind is not None:
        marks.append((kind, pc, 0))
    if inst.op == "RET":
        back = next((o for o in inst.srcs if isinstance(o, Reg) and o.file == "R" and o.num >= 0), None)
        if back is not None and back.num != RETURN_REG:
            marks.append(("return", pc, back.num))
    attrs = inst.attrs
    if inst.op in _WARP_WIDE and not (attrs and "coop" in attrs):
        marks.append(("int_warp_wide", pc, 0))
    if not attrs:
        return
    name = attrs.get("mark")
    if isinstance(name, str):
        value = attrs.get("mark_value", 0)
        marks.append((name, pc, value if isinstance(value, int) else 0))
    if attrs.get("coop") == 1 and (
        inst.op in _WARP_WIDE or inst.op in ("WARPSYNC", "NOP")
    ):  # the last two: bar.warp.sync
        places = (
            inst.srcs if inst.op == "WARPSYNC" else inst.uses
        )  # the slot of the register with the mask of the threads
        marks.append(
            (
                "coop",
                pc,
                next(
                    (
                        o.num
                        for o in places
                        if isinstance(o, Reg) and o.file == "R" and sm_facts(f"sm_{target.sm}").compat
                    ),
                    -1,
                ),
            )
        )
    if "half" in attrs:
        marks += [("half", pc, o.num) for o in inst.uses if isinstance(o, Reg) and o.num >= 0]
    if "mbarrier" in attrs:
        _mark_barrier(inst, pc, marks, attrs, target)


def _mark_barrier(
    inst: Inst, pc: int, marks: list[tuple[str, int, int]], attrs: dict[str, AttrValue], target: Target
) -> None:
    """Mark an operation on an mbarrier: its kind, the parts of its address, and an operand that the instruction does
    not show."""
    operation, offset = attrs["mbarrier"], attrs.get("offset", 0)
    base, uniform = 0xFF, sm_facts(f"sm_{target.sm}").ur_zero
    where = next((o for o in (*inst.srcs, *inst.dsts) if isinstance(o, Mem)), None)
    regs = [o.num for o in inst.uses if isinstance(o, Reg) and o.file == "R" and o.num >= 0]
    if where is not None:
        offset = where.offset
        if where.base is not None and where.base.num >= 0:
            base = where.base.num
        if where.ubase is not None and where.ubase.num >= 0:
            uniform = where.ubase.num
    elif regs:
        base = regs[0]
    if not isinstance(operation, int) or not isinstance(offset, int):
        raise CompileError("attribute 'mbarrier' has an illegal value", inst.line)
    marks.append(("mbarrier", pc, operation & 0xFF | uniform << 8 | base << 16 | (offset & 0xFFFFFFFF) << 24))
    operand, known = attrs.get("operand"), attrs.get("operand_value")
    if isinstance(operand, int):
        if isinstance(known, int):
            marks.append(("operand", pc, operand | 5 << 8 | (known & 0xFFFFFFFF) << 16))
        elif regs:
            marks.append(("operand", pc, operand | 2 << 8 | regs[-1] << 16))


def _with_loops(f: Function, begin: dict[int, int], marks: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """Mark the mbarriers that are initialized in a loop: their number is not known (bit 56 of the value)."""
    cfg = build_cfg(f)
    depths = loop_depths(cfg)
    spans = [(begin[block.id], depths[pos]) for pos, block in enumerate(f.blocks)]
    out = []
    for kind, at, value in marks:
        if kind == "mbarrier" and next((depth for start, depth in reversed(spans) if start <= at), 0):
            value |= 1 << 56
        out.append((kind, at, value))
    return out
